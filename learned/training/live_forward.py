"""The forward pass that training differentiates: only what the loss can see, in the cheapest order.

The same function as `rasplens.model.forward`, to rounding. What a step has to compute is decided once, from
the config, the mask and the loss positions:

- Only positions that reach the loss are computed; a layer's keys are those that a computed row sees.
- A row that sees one key attends to it, and a silent row to nothing: neither needs queries or scores.
- In the first layer the residual stream is the sum of two table rows, one for the token and one for the
  position. What is linear in it is computed on the tables and then looked up: queries, keys and values;
  and, where heads are wide and tokens few, the scores of all pairs of tokens.
- Behind the last attention everything is linear, if there is no MLP and no layer norm. Values that are wider
  than the logits are then carried as logits.
"""

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from rasplens.learned.training.layer_plan import LayerPlan, Positions, plan_layers, previous
from rasplens.learned.training.products import attend, times_transposed
from rasplens.model.config import Config
from rasplens.model.forward import activated, normalized, rotary_angles, rotated, sinusoids
from rasplens.model.hook_points import norm_name, param_name
from rasplens.model.jax_forward import JaxWeights

WIDE_HEAD = 32
"""From this d_head on, looking a score up in a table costs less than the product of query and key."""


def live_forward(
    config: Config, mask: np.ndarray, loss_positions: Positions
) -> Callable[[JaxWeights, jax.Array], jax.Array]:
    """The function (weights, tokens `[batch, n_ctx]`) → logits at the loss positions `[batch, loss_pos, answer]`.

    Equal to `jax_forward(...)[:, loss_positions]` to rounding, gradients included.
    """
    plans = plan_layers(mask, loss_positions, config.smeared_keys)

    def logits(weights: JaxWeights, tokens: jax.Array) -> jax.Array:
        position_table = weights["pos_embed.W_pos"] if config.positions == "learned" else None
        stream: _Stream = _Embedded(tokens, weights["embed.W_E"], position_table)
        unembed = weights["unembed.W_U"]
        for index, plan in enumerate(plans):
            layer = _Layer(config, weights, index, plan, mask[index])
            if index == len(plans) - 1 and carries_logits(config):
                out = stream.read(unembed[None], plan.after)[0] + layer.attention(stream, then=unembed)
                return _plus(_Computed(out, plan.after).at(loss_positions), weights.get("unembed.b_U"))
            residual = stream.at(plan.after) + layer.attention(layer.normalized(stream))
            if not config.attn_only:
                residual = residual + layer.mlp(residual)
            stream = _Computed(residual, plan.after)
        read = normalized(weights, config, "ln_final", stream.at(loss_positions), xp=jnp)
        return _plus(_times(read, unembed), weights.get("unembed.b_U"))

    return logits


def carries_logits(config: Config) -> bool:
    """Whether the last attention's values are carried as logits: all behind it is linear, and logits narrower."""
    is_linear_behind = config.attn_only and config.normalization == "none"
    return is_linear_behind and config.d_vocab_out < config.d_head


@dataclass(frozen=True)
class _Embedded:
    """The residual stream at the start: at each position the row of the token plus the row of the position."""

    tokens: jax.Array
    token_table: jax.Array
    position_table: jax.Array | None

    def at(self, positions: Positions) -> jax.Array:
        """`[batch, position, d_model]`."""
        found = self.token_table[_pick(self.tokens, positions)]
        return found if self.position_table is None else found + self.position_table[np.array(positions)]

    def read(self, matrices: jax.Array, positions: Positions) -> jax.Array:
        """The stream times matrices `[head, d_model, width]`: `[head, batch, position, width]`."""
        by_token, by_position = self.tables(matrices, positions)
        return by_token[:, _pick(self.tokens, positions)] + by_position[:, None]

    def tables(self, matrices: jax.Array, positions: Positions) -> tuple[jax.Array, jax.Array]:
        """Return the terms of tokens and of positions in `read`: `[head, token or position, width]`."""
        by_token = self.token_table @ matrices
        if self.position_table is None:
            return by_token, jnp.zeros((len(matrices), len(positions), matrices.shape[-1]), matrices.dtype)
        return by_token, self.position_table[np.array(positions)] @ matrices


@dataclass(frozen=True)
class _Computed:
    """The residual stream further on: `[batch, position, d_model]` at the positions where it is known."""

    values: jax.Array
    positions: Positions

    def at(self, positions: Positions) -> jax.Array:
        """`[batch, position, d_model]`."""
        return _pick(self.values, tuple(self.positions.index(position) for position in positions))

    def read(self, matrices: jax.Array, positions: Positions) -> jax.Array:
        """The stream times matrices `[head, d_model, width]`: `[head, batch, position, width]`."""
        side_by_side = jnp.concatenate(list(matrices), axis=1)
        product = _times(self.at(positions), side_by_side)
        return jnp.moveaxis(product.reshape(*product.shape[:-1], *matrices.shape[::2]), 2, 0)


_Stream = _Embedded | _Computed


@dataclass(frozen=True)
class _Layer:
    """One layer: what it computes from a stream, on the positions of its plan."""

    config: Config
    weights: JaxWeights
    index: int
    plan: LayerPlan
    mask: np.ndarray

    def normalized(self, stream: _Stream) -> _Stream:
        """Return the attention's input from the residual stream, normalised where the model has layer norm."""
        if self.config.normalization == "none":
            return stream
        return _Computed(self._norm("ln1", stream.at(self.plan.before)), self.plan.before)

    def mlp(self, residual: jax.Array) -> jax.Array:
        """Return the output of the MLP: `[batch, after, d_model]`."""
        pre = _plus(_times(self._norm("ln2", residual), self._weight("W_in")), self._bias("b_in"))
        return _plus(
            _times(activated(pre, self.config.activation, jnp), self._weight("W_out")), self._bias("b_out")
        )

    def attention(self, stream: _Stream, then: jax.Array | None = None) -> jax.Array:
        """Return the sum of the heads' outputs, times the matrix that comes `then`: `[batch, after, width]`."""
        plan, circuit = self.plan, self._output_circuit(then)
        parts = []
        if plan.free:
            parts.append(attend(*self._scores_and_values(stream, circuit)))
        if plan.forced:
            parts.append(circuit.values(stream, plan.seen))
        silent = tuple(row for row in plan.after if row not in (*plan.free, *plan.forced))
        written = [circuit.write(jnp.concatenate(parts, axis=2))] if parts else []
        if silent:
            written.append(jnp.zeros((len(stream.at(silent)), len(silent), circuit.width)))
        rows = _Computed(jnp.concatenate(written, axis=1), (*plan.free, *plan.forced, *silent))
        return _plus(rows.at(plan.after), circuit.output_bias)

    def _output_circuit(self, then: jax.Array | None) -> "_OutputCircuit":
        config, read, write = self.config, self._weight("W_V"), self._weight("W_O")
        value_bias, output_bias = self._bias("b_V"), self._bias("b_O")
        if then is not None:
            write = write @ then
            value_bias = None if value_bias is None else (value_bias[:, None] @ write)[:, 0]
            output_bias = None if output_bias is None else output_bias @ then
            return _OutputCircuit(read @ write, None, value_bias, output_bias, then.shape[1])
        is_square = config.d_head == config.d_model
        return _OutputCircuit(
            None if config.identity_v and config.n_heads == 1 and is_square else read,
            None if config.identity_o and is_square else write,
            value_bias,
            output_bias,
            config.d_model,
        )

    def _scores_and_values(self, stream: _Stream, circuit: "_OutputCircuit") -> tuple[jax.Array, jax.Array]:
        """Scores of the free rows `[head, batch, free, key]`, and values `[head, batch, key, value]`."""
        if isinstance(stream, _Embedded) and self._tables_pay(stream):
            scores, values = self._looked_up_scores(stream), circuit.values(stream, self.plan.keys)
        else:
            keys, values = self._keys_and_values(stream, circuit)
            queries = (
                self._turned(self._read("Q", stream, self.plan.free), self.plan.free) / self.config.attn_scale
            )
            scores = times_transposed(queries, keys)
        visible = self.mask[np.ix_(self.plan.free, self.plan.keys)]
        return scores if visible.all() else jnp.where(visible, scores, -jnp.inf), values

    def _keys_and_values(self, stream: _Stream, circuit: "_OutputCircuit") -> tuple[jax.Array, jax.Array]:
        """Both read at once, if a matrix reads values too."""
        at = self.plan.keys
        if circuit.read is None:
            keys, values = self._read("K", stream, at), circuit.values(stream, at)
        else:
            both = stream.read(jnp.concatenate([self._weight("W_K"), circuit.read], axis=2), at)
            keys, values = jnp.split(both, [self.config.d_head], axis=-1)
            keys, values = keys + self._offset("K", at)[:, None], circuit.plus_bias(values)
        if self.config.smeared_keys:
            share = jax.nn.sigmoid(self._weight("smear"))[:, None, np.array(at), None]
            keys = (1 - share) * keys + share * self._read("K", stream, previous(at))
        return self._turned(keys, at), values

    def _turned(self, read: jax.Array, positions: Positions) -> jax.Array:
        """Queries or keys `[head, batch, position, d_head]` as rotary positions turn them."""
        if self.config.positions != "rotary":
            return read
        return rotated(read, rotary_angles(self.config.n_ctx, self.config.rotary_dim)[np.array(positions)], jnp)

    def _read(self, letter: str, stream: _Stream, positions: Positions) -> jax.Array:
        """Queries or keys: `[head, batch, position, d_head]`."""
        return stream.read(self._weight(f"W_{letter}"), positions) + self._offset(letter, positions)[:, None]

    def _tables_pay(self, stream: _Embedded) -> bool:
        """Whether there are fewer pairs of tokens than scores, and heads wide enough."""
        n_tokens, batch = len(stream.token_table), len(stream.tokens)
        is_wide = self.config.d_head >= WIDE_HEAD
        return is_wide and self.config.has_score_terms and n_tokens**2 <= batch * len(self.plan.keys)

    def _looked_up_scores(self, stream: _Embedded) -> jax.Array:
        """Scores from tables of every pair of a query's and a key's token, one table for each query position.

        Source: the four terms of Elhage et al. 2021; see `rasplens.model.weight_circuits.score_terms`.
        """
        rows, keys = self.plan.free, self.plan.keys
        query_token, query_position = stream.tables(self._weight("W_Q"), rows)
        key_token, key_position = stream.tables(self._weight("W_K"), keys)
        query_position = query_position + self._offset("Q", rows)
        key_position = key_position + self._offset("K", keys)
        tokens = times_transposed(query_token, key_token)[:, None]
        tokens = tokens + times_transposed(query_position, key_token)[:, :, None]
        positions = times_transposed(query_token, key_position)
        both_positions = times_transposed(query_position, key_position)[:, None]
        of_query, of_key = _pick(stream.tokens, rows), _pick(stream.tokens, keys)
        row = np.arange(len(rows))[:, None]
        scores = tokens[:, row, of_query[:, :, None], of_key[:, None]] + positions[:, of_query] + both_positions
        return scores / self.config.attn_scale

    def _offset(self, letter: str, positions: Positions) -> jax.Array:
        """Return the part of queries or keys apart from the stream, `[head, position, d_head]`.

        It is the bias, and what positions add to queries and keys alone.
        """
        config, bias = self.config, self._bias(f"b_{letter}")
        offset = jnp.zeros((config.n_heads, len(positions), config.d_head), self.weights["embed.W_E"].dtype)
        if bias is not None:
            offset = offset + bias[:, None]
        if config.positions == "shortformer":
            table = self.weights["pos_embed.W_pos"][np.array(positions)]
            offset = offset + table @ self._weight(f"W_{letter}")
        if config.positions == "sinusoidal_qk":
            waves = sinusoids(config.n_ctx, config.n_heads * config.d_head)
            waves = waves.reshape(config.n_ctx, config.n_heads, config.d_head)[np.array(positions)]
            offset = offset + jnp.asarray(np.swapaxes(waves, 0, 1), dtype=offset.dtype)
        return offset

    def _norm(self, norm: str, residual: jax.Array) -> jax.Array:
        return normalized(self.weights, self.config, norm_name(norm, self.index), residual, xp=jnp)

    def _weight(self, name: str) -> jax.Array:
        return self.weights[param_name(name, self.index)]

    def _bias(self, name: str) -> jax.Array | None:
        return self.weights.get(param_name(name, self.index))


@dataclass(frozen=True)
class _OutputCircuit:
    """How heads read values and write them.

    Attributes:
        read: `[head, d_model, value]`; None if the one head's values are the residual stream itself.
        write_by: `[head, value, width]`; None if heads write their values as they are.
        value_bias: `[head, value]`, or None.
        output_bias: `[width]`, or None.
        width: Of what is written.
    """

    read: jax.Array | None
    write_by: jax.Array | None
    value_bias: jax.Array | None
    output_bias: jax.Array | None
    width: int

    def values(self, stream: _Stream, positions: Positions) -> jax.Array:
        """`[head, batch, position, value]`."""
        values = stream.at(positions)[None] if self.read is None else stream.read(self.read, positions)
        return self.plus_bias(values)

    def plus_bias(self, values: jax.Array) -> jax.Array:
        """Values with their bias, if there is one."""
        return values if self.value_bias is None else values + self.value_bias[:, None, None]

    def write(self, values: jax.Array) -> jax.Array:
        """`[batch, position, width]`."""
        if self.write_by is None:
            return values.sum(axis=0)
        side_by_side = jnp.moveaxis(values, 0, 2)
        return _times(side_by_side.reshape(*side_by_side.shape[:2], -1), jnp.concatenate(list(self.write_by)))


def _pick(array: jax.Array, indices: Positions) -> jax.Array:
    """Entries of the second axis, by slices where neighbours follow each other."""
    if indices == tuple(range(array.shape[1])):
        return array
    breaks = [i for i in range(1, len(indices)) if indices[i] != indices[i - 1] + 1]
    runs = [indices[start:end] for start, end in zip([0, *breaks], [*breaks, len(indices)], strict=True)]
    return jnp.concatenate([array[:, run[0] : run[-1] + 1] for run in runs], axis=1)


def _times(array: jax.Array, matrix: jax.Array) -> jax.Array:
    """The last axis of an array with the first of a matrix `[d_model, ...]`.

    As one product of two matrices: XLA's gradient of a product over batches takes twice the time.
    """
    flat = array.reshape(-1, array.shape[-1]) @ matrix.reshape(len(matrix), -1)
    return flat.reshape(*array.shape[:-1], *matrix.shape[1:])


def _plus(array: jax.Array, bias: jax.Array | None) -> jax.Array:
    return array if bias is None else array + bias
