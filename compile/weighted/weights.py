"""A weighted program as the weights of an attention-only transformer, whose every direction is a value.

The residual stream holds tokens, positions and each mixture with one direction a value. Scores are as they are in
that basis: a head's keys are the stream, and its queries the stream through the tables. What is mixed by the same
scores is gathered by one head.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from rasplens.compile import rasp
from rasplens.compile.rasp.language import Value
from rasplens.compile.weighted.language import (
    Expression,
    Mix,
    Term,
    Variable,
    Vote,
    Weigh,
    numbers_of,
    parts_of,
    sops_of,
)
from rasplens.compile.weighted.tables import HIDDEN, Table
from rasplens.errors import RaspLensError
from rasplens.model import Config, Transformer
from rasplens.model.hook_points import param_name


def as_transformer(program: Vote, vocab: Sequence[Value], mask: Bool[np.ndarray, "query key"]) -> Transformer:
    """The weights that a weighted program describes; its logits are the program's votes.

    Args:
        program: The program, which reads tokens and positions.
        vocab: The tokens.
        mask: What each query sees, in every layer.

    Raises:
        RaspLensError: If it reads another s-op, for which attention alone is not enough; or if some query may have
            no key that is not hidden, where the program gathers nothing and a softmax gathers all.
    """
    for sop in sops_of(program):
        if sop is not rasp.tokens and sop is not rasp.indices:
            raise RaspLensError(f"Only tokens and indices have weights here; the program reads {sop.name!r}.")
    layout = _layout(program, tuple(vocab), len(mask))
    for mix in _mixtures(program):
        _check_some_key(layout, mix.scores, mask)
    by_layer: dict[int, dict[int, tuple[Term[Weigh], list[Mix]]]] = {}
    for mix in _mixtures(program):
        by_layer.setdefault(_depth(mix) - 1, {}).setdefault(id(mix.scores), (mix.scores, []))[1].append(mix)
    n_heads = max((len(heads) for heads in by_layer.values()), default=1)
    width = layout.width
    config = Config(
        n_layers=max(1, len(by_layer)), n_heads=n_heads, d_model=width, d_head=width, n_ctx=len(mask),
        d_vocab=len(vocab), d_vocab_out=len(program.candidates), attn_scale=1.0,
    )  # fmt: skip
    weights: dict[str, np.ndarray] = {
        "embed.W_E": np.eye(len(vocab), width, layout.places[id(rasp.tokens)].start),
        "pos_embed.W_pos": np.eye(len(mask), width, layout.places[id(rasp.indices)].start),
        "unembed.W_U": layout.unembedding(),
    }
    for layer in range(config.n_layers):
        shape = (n_heads, width, width)
        arrays = {letter: np.zeros(shape) for letter in "QKVO"}
        for head, (scores, mixes) in enumerate(by_layer.get(layer, {}).values()):
            arrays["Q"][head] = layout.scores(scores)
            arrays["K"][head] = np.eye(width)
            for mix in mixes:
                read, write = layout.places[id(mix.sop)], layout.places[id(mix)]
                arrays["V"][head][read, write] = arrays["O"][head][write, write] = np.eye(read.stop - read.start)
        weights |= {param_name(f"W_{letter}", layer): array for letter, array in arrays.items()}
    single = {name: array.astype(np.float32) for name, array in weights.items()}
    return Transformer(config, single, np.repeat(mask[None], config.n_layers, axis=0))


@dataclass(frozen=True, eq=False)
class _Layout:
    """Where variables are held in the residual stream.

    Attributes:
        program: The program.
        places: By variable's id, its directions.
        values: By variable's id, the value of each.
    """

    program: Vote
    places: Mapping[int, slice]
    values: Mapping[int, tuple[Value, ...]]

    @property
    def width(self) -> int:
        return max(place.stop for place in self.places.values())

    def table(self, table: Table, variable: Variable, values: tuple[Value, ...]) -> Float[np.ndarray, "key query"]:
        return np.asarray(table.over(self.values[id(variable)], values, numbers_of(self.program), np))

    def scores(self, scores: Term[Weigh]) -> Float[np.ndarray, "d_model d_head"]:
        """Return the weights from a query's stream to what each direction of a key's stream counts."""
        found = np.zeros((self.width, self.width))
        for part in scores.terms:
            table = self.table(part.score, part.keys, self.values[id(part.queries)])
            found[self.places[id(part.queries)], self.places[id(part.keys)]] += table.T
        return found

    def unembedding(self) -> Float[np.ndarray, "d_model candidate"]:
        found = np.zeros((self.width, len(self.program.candidates)))
        for part in self.program.votes.terms:
            found[self.places[id(part.voters)]] += self.table(part.gain, part.voters, self.program.candidates)
        return found


def _check_some_key(layout: _Layout, scores: Term[Weigh], mask: Bool[np.ndarray, "query key"]) -> None:
    """Raises unless every query that sees a key sees one that is hidden by no score, whatever the tokens."""
    seen = mask.copy()
    for part in scores.terms:
        hidden = layout.table(part.score, part.keys, layout.values[id(part.queries)]).T <= HIDDEN / 2
        if part.keys is rasp.indices and part.queries is rasp.indices:
            seen &= ~hidden
        elif hidden.any():
            seen[:] = False  # it depends on the input
    if (mask.any(axis=1) & ~seen.any(axis=1)).any():
        raise RaspLensError(
            "A score hides keys so that some query may have none left: there the program gathers nothing, and "
            "weights would gather everything. Use a low score in place of Only(...)."
        )


def _layout(program: Vote, vocab: tuple[Value, ...], n_ctx: int) -> _Layout:
    values: dict[int, tuple[Value, ...]] = {id(rasp.tokens): vocab, id(rasp.indices): tuple(range(n_ctx))}
    for mix in _mixtures(program):
        values[id(mix)] = values[id(mix.sop)]
    ends = np.cumsum([len(one) for one in values.values()]).tolist()
    places = {of: slice(end - len(one), end) for (of, one), end in zip(values.items(), ends, strict=True)}
    return _Layout(program, places, values)


def _mixtures(program: Expression) -> list[Mix]:
    return [part for part in parts_of(program) if isinstance(part, Mix)]


def _depth(mix: Mix) -> int:
    """The number of layers that a mixture takes: one more than what it reads."""
    return 1 + max((_depth(part) for part in _mixtures(mix) if part is not mix), default=0)
