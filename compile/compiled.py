"""The result of compiling: a transformer, and the knowledge of what its every part means."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int

from rasplens.compile import rasp
from rasplens.compile.analysis.domains import Finite
from rasplens.compile.analysis.table_evaluation import trace
from rasplens.compile.errors import UndefinedValue
from rasplens.compile.rasp import Encoding, Value
from rasplens.compile.rasp.input_space import InputSpace
from rasplens.compile.rasp.interpreter import run
from rasplens.compile.rasp.values import NUMBERS_AGREE, value_key, values_agree
from rasplens.model import Transformer

if TYPE_CHECKING:
    import networkx as nx
    from transformer_lens.model_bridge import TransformerBridge

LEAK = 1e-11
"""The most attention that the sequence may get from a BOS that sees it."""

TOLERANCE = 0.25
"""How far a number may be off from one of its values, as a fraction of the gap to the next."""


@dataclass(frozen=True, eq=False)
class Variable:
    """An s-op as the residual stream holds it.

    Attributes:
        name: As in the program.
        encoding: One coordinate per value, or one for the number (then a second if it can be undefined).
        values: What it can be; a value's place is its code.
        columns: What to multiply the residual stream by to read it: `[d_model, width]`. Of a variable with
            directions of its own these are unit vectors; of a map of another one, sums of that one's.
        directions: The directions of the residual stream that it is read from.
        written_at: The hook point of the residual stream from which on it is there.
        is_view: Whether it has no directions of its own but follows from those of others.
        is_auxiliary: Whether it is none of the program's s-ops but a step that the compiler takes.
    """

    name: str
    encoding: Encoding
    values: tuple[Value, ...]
    columns: Float[np.ndarray, "d_model _"]
    directions: Int[np.ndarray, " direction"]
    written_at: str
    is_view: bool = False
    is_auxiliary: bool = False

    def read(self, residual: Float[np.ndarray, "*batch d_model"]) -> Float[np.ndarray, "*batch width"]:
        """Its coordinates in some residual streams."""
        return residual @ self.columns

    def code(self, value: Value) -> int:
        """The place of a value among `values`; for a number, of the one that it equals up to rounding.

        Raises:
            KeyError: If the variable cannot be that.
        """
        exact = self._codes.get(value_key(value))
        if exact is not None:
            return exact
        if self.encoding is Encoding.NUMERICAL and isinstance(value, int | float):
            distances = np.abs(np.array(self.values, dtype=float) - value)
            if distances.min() <= NUMBERS_AGREE * np.abs(np.array(self.values, dtype=float)).max():
                return int(distances.argmin())
        for code, known in enumerate(self.values):
            if values_agree(known, value, self.encoding):
                return code
        raise KeyError(f"{self.name!r} is never {value!r}.")

    @cached_property
    def _codes(self) -> Mapping[tuple[Any, ...], int]:
        return {value_key(value): code for code, value in enumerate(self.values)}

    def decode(
        self, coordinates: Float[np.ndarray, "*batch width"], tolerance: float = TOLERANCE
    ) -> Int[np.ndarray, "*batch"]:
        """The codes that coordinates stand for; -1 where undefined.

        Args:
            coordinates: What `read` gives.
            tolerance: How far they may be off a value, in the units of `nearest`.

        Raises:
            UndefinedValue: If some coordinates are a mixture, no value.
        """
        codes, errors = nearest(self, coordinates)
        if (errors > tolerance).any():
            worst = coordinates[np.unravel_index(np.argmax(errors), errors.shape)]
            raise UndefinedValue(
                f"{self.name!r} holds no single value but a mixture ({_describe(self, worst)}): an aggregate met "
                "different values on this input. To average numbers, make the aggregate numerical(...)."
            )
        return codes


@dataclass(frozen=True, eq=False)
class CompiledModel:
    """A transformer that computes a RASP program, with its anatomy; call it like the program.

    Attributes:
        program: The source.
        inputs: The sequences that it takes.
        transformer: The weights. If `has_bos`, position 0 is a beginning-of-sequence token, whose id comes
            after those of the vocabulary; positions of the sequence come after it.
        has_bos: Whether there is that position.
        has_pad: Whether there is a token for padding; its id is the last one.
        variables: The s-ops that the residual stream holds, by name, in the order of the program.
        output: The name of the result.
        heads: By (layer, head), the name of the s-op that the head computes.
        neurons: By (layer, first neuron, end), the name of the s-op that these neurons compute.
        partial: If the program may have no value on some inputs, its tables, to notice those.
    """

    program: rasp.SOp
    inputs: InputSpace
    transformer: Transformer
    has_bos: bool
    has_pad: bool
    variables: Mapping[str, Variable]
    output: str
    heads: Mapping[tuple[int, int], str]
    neurons: Mapping[tuple[int, int, int], str]
    partial: Finite | None = None

    def __call__(self, tokens: Sequence[Value], *, check: bool = True) -> list[Value]:
        """What the transformer answers on one sequence: one value per position, None for undefined.

        Args:
            tokens: The sequence.
            check: Whether to look at every variable on the way, and not at the answer alone.

        Raises:
            ValueError: If the sequence is empty, too long, or holds a token outside the vocabulary.
            UndefinedValue: If a variable is a mixture of values.
        """
        return self.run_batch([tokens], check=check)[0]

    def run_batch(self, sequences: Sequence[Sequence[Value]], *, check: bool = True) -> list[list[Value]]:
        """The answers on many sequences, those of one length together.

        Args:
            sequences: The sequences.
            check: As for one sequence.

        Raises:
            ValueError: As for one sequence.
            UndefinedValue: As for one sequence.
        """
        if len({len(tokens) for tokens in sequences}) > 1:
            by_length: dict[int, list[int]] = {}
            for i, tokens in enumerate(sequences):
                by_length.setdefault(len(tokens), []).append(i)
            answers: dict[int, list[Value]] = {}
            for rows in by_length.values():
                answers |= zip(rows, self.run_batch([sequences[i] for i in rows], check=check), strict=True)
            return [answers[i] for i in range(len(sequences))]
        ids, output = self.encode(sequences), self.variables[self.output]
        if check:
            codes = self.trace(ids[:, self.offset :])[self.output]
            self._refuse_gaps(ids[:, self.offset :])
        else:
            codes = output.decode(self.outputs(ids), self.tolerance(output))
        values = (*output.values, None)
        return [[values[code] for code in row] for row in codes]

    def _refuse_gaps(self, ids: Int[np.ndarray, "batch pos"]) -> None:
        """Notices inputs on which a function of the program raises, of which the weights know nothing."""
        if self.partial is None:
            return
        failing = np.flatnonzero(trace(self.partial, ids, self.inputs.visible).fails())
        if len(failing):
            tokens = [self.inputs.vocab[token] for token in ids[failing[0]]]
            raise UndefinedValue(f"The program has no value on {tokens}.")

    def tolerance(self, variable: Variable) -> float:
        """How far a variable may be off: less than any mixture of classes is.

        Of `max_len` values that were averaged, one that differs changes its share by 1 / max_len.
        """
        return TOLERANCE if variable.encoding is Encoding.NUMERICAL else min(TOLERANCE, 0.5 / self.inputs.max_len)

    def interpret(self, tokens: Sequence[Value]) -> list[Value]:
        """What the program itself says on one sequence, by the interpreter."""
        length = len(tokens)
        return run(self.program, tokens, mask=self.inputs.visible[:length, :length])

    def encode(self, sequences: Sequence[Sequence[Value]]) -> Int[np.ndarray, "batch pos"]:
        """Token ids for the transformer, the BOS included; short sequences are padded behind.

        Raises:
            ValueError: If a sequence does not fit, or the lengths differ and the model knows no padding.
        """
        longest = max(len(tokens) for tokens in sequences)
        if not self.has_pad and any(len(tokens) < longest for tokens in sequences):
            raise ValueError(
                "The sequences of a batch must have one length: the model knows no padding. Compile it with "
                "pad=True, or call run_batch."
            )
        padding = [self.transformer.config.d_vocab - 1] * longest
        ids = [(self.inputs.ids(tokens) + padding)[:longest] for tokens in sequences]
        return self.with_bos(np.array(ids))

    def with_bos(self, ids: Int[np.ndarray, "batch pos"]) -> Int[np.ndarray, "batch ctx"]:
        """Token ids of the vocabulary as the transformer takes them: behind a BOS if it has one."""
        if not self.has_bos:
            return ids
        return np.pad(ids, ((0, 0), (1, 0)), constant_values=len(self.inputs.vocab))

    @property
    def offset(self) -> int:
        """How many positions of the transformer come before the sequence: 1 for the BOS, or 0."""
        return int(self.has_bos)

    def outputs(self, tokens: Int[np.ndarray, "batch ctx"]) -> Float[np.ndarray, "batch pos width"]:
        """The logits at the positions of the sequence: the result in its own coordinates."""
        return self.transformer(tokens)[:, self.offset :]

    def trace(self, ids: Int[np.ndarray, "batch pos"]) -> dict[str, Int[np.ndarray, "batch pos"]]:
        """The codes of every variable at every position, read from the residual stream.

        Args:
            ids: Token ids of the vocabulary, without a BOS.

        Raises:
            UndefinedValue: If a variable holds a mixture.
        """
        _, cache = self.transformer.run_with_cache(self.with_bos(ids))
        return {
            name: variable.decode(
                variable.read(cache[variable.written_at][:, self.offset :]), self.tolerance(variable)
            )
            for name, variable in self.variables.items()
        }

    def save(self, path: str | Path) -> None:
        """Writes it to one file; see `rasplens.compile.storage.save_compiled`."""
        from rasplens.compile.storage import save_compiled

        save_compiled(self, path)

    def to_bridge(self) -> "TransformerBridge":
        """The model as a native TransformerLens bridge, for token ids as `encode` gives them.

        A bridge that sees everything lets the BOS see the sequence too: every head gets one more dimension
        by which the BOS attends to itself.

        Raises:
            ValueError: If a bridge cannot express the model, such as one with a mask of its own.
        """
        from rasplens.model.bridge import to_bridge

        (ids, *_) = self.inputs.sampled_ids(8, seed=0)
        model = self.transformer
        if self.has_bos and self.inputs.visible.all():
            model = _with_bos_by_itself(model, len(self.inputs.vocab))
        return to_bridge(model, self.with_bos(ids))

    def circuit(self, granularity: str = "head", positions: Sequence[int] | None = None) -> "nx.DiGraph":
        """The connections that the answers depend on; see `rasplens.compile.ground_truth_circuit.circuit`."""
        from rasplens.compile.ground_truth_circuit import circuit

        return circuit(self, granularity, positions)

    def __repr__(self) -> str:
        bos = "with" if self.has_bos else "without"
        return (
            f"CompiledModel({self.output!r}: {len(self.inputs.vocab)} tokens, max_len={self.inputs.max_len}, "
            f"{bos} BOS, {len(self.variables)} variables, {self.transformer!r})"
        )


def _with_bos_by_itself(model: Transformer, bos_id: int) -> Transformer:
    """The same function of sequences behind a BOS, with a mask that lets everything see everything."""
    bos = np.flatnonzero(model.W_E[bos_id])
    weights, head = dict(model.weights), (model.config.n_heads, model.config.d_model, 1)
    for layer in range(model.config.n_layers):
        name = f"blocks.{layer}.attn."
        reads_bos = np.zeros(head, dtype=model.dtype)
        reads_bos[:, bos] = 1
        scores = model.config.attn_scale * math.log(model.config.n_ctx / LEAK)
        weights[f"{name}W_Q"] = np.concatenate(
            [weights[f"{name}W_Q"], scores * reads_bos], axis=2, dtype=model.dtype
        )
        weights[f"{name}W_K"] = np.concatenate([weights[f"{name}W_K"], reads_bos], axis=2)
        weights[f"{name}W_V"] = np.concatenate([weights[f"{name}W_V"], np.zeros_like(reads_bos)], axis=2)
        no_output = np.zeros_like(weights[f"{name}W_O"][:, :1])
        weights[f"{name}W_O"] = np.concatenate([weights[f"{name}W_O"], no_output], axis=1)
    config = replace(model.config, d_head=model.config.d_head + 1)
    return Transformer(config, weights, np.ones_like(model.mask))


def nearest(
    variable: Variable, coordinates: Float[np.ndarray, "*batch width"]
) -> tuple[Int[np.ndarray, "*batch"], Float[np.ndarray, "*batch"]]:
    """The codes that coordinates are nearest to (-1: undefined), and how far off they are.

    The distance is in the units of `TOLERANCE`: at 0.5, another answer is as near.
    """
    if variable.encoding is Encoding.CATEGORICAL:
        return _nearest_onehot(coordinates)
    codes, errors = _nearest_number(variable, coordinates[..., 0])
    if coordinates.shape[-1] == 1:
        return codes, errors
    is_defined = coordinates[..., 1] > 0.5
    errors = np.maximum(np.where(is_defined, errors, 0), np.abs(coordinates[..., 1] - is_defined))
    return np.where(is_defined, codes, -1), errors


def _nearest_onehot(coordinates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    codes = np.where(coordinates.max(axis=-1) > 0.5, coordinates.argmax(axis=-1), -1)
    ideal = codes[..., None] == np.arange(coordinates.shape[-1])
    return codes, np.abs(coordinates - ideal).max(axis=-1)


def _nearest_number(variable: Variable, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    values = np.array([float(value) for value in variable.values])
    codes = np.abs(numbers[..., None] - values).argmin(axis=-1)
    gaps = np.diff(values, prepend=-np.inf, append=np.inf)
    room = np.minimum(gaps[:-1], gaps[1:])
    room[np.isinf(room)] = 1.0
    return codes, np.abs(numbers - values[codes]) / room[codes]


def _describe(variable: Variable, coordinates: np.ndarray) -> str:
    if variable.encoding is Encoding.NUMERICAL:
        return f"{coordinates[0]:.4g}, between its values"
    shares = sorted(zip(coordinates, variable.values, strict=True), key=lambda pair: -pair[0])[:3]
    return ", ".join(f"{share:.2f} of {value!r}" for share, value in shares)
