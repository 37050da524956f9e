"""The anatomy of a compiled transformer: its program, its variables, and what its heads and neurons compute."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Bool, Float, Int

from rasplens.compile import rasp
from rasplens.compile.analysis.table_evaluation import trace
from rasplens.compile.ir import FiniteGraph
from rasplens.compile.rasp import Encoding, Value
from rasplens.compile.rasp.input_space import InputSpace
from rasplens.compile.variable import TOLERANCE, Variable
from rasplens.errors import RaspLensError
from rasplens.model import Transformer


@dataclass(frozen=True, eq=False, repr=False)
class Anatomy:
    """A transformer that computes a RASP program, and what each of its parts means.

    `CompiledModel` is this with what one does with it: calling, drawing circuits, saving.

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
        partial: If functions of the program may raise on some inputs, its tables, to notice those.
        arguments: By place among the expressions of the program, the values of every s-op that functions
            are called with. A program that was loaded needs none: its functions are tables.
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
    partial: FiniteGraph | None = None
    arguments: Mapping[int, tuple[Value, ...]] = field(default_factory=dict)

    @property
    def offset(self) -> int:
        """How many positions of the transformer come before the sequence: 1 for the BOS, or 0."""
        return int(self.has_bos)

    def tolerance(self, variable: Variable) -> float:
        """How far a variable may be off: less than any mixture of classes is.

        Of `max_len` values that were averaged, one that differs changes its share by 1 / max_len.
        """
        return TOLERANCE if variable.encoding is Encoding.NUMERICAL else min(TOLERANCE, 0.5 / self.inputs.max_len)

    def encode(self, sequences: Sequence[Sequence[Value]]) -> Int[np.ndarray, "batch pos"]:
        """Token ids for the transformer, the BOS included; short sequences are padded behind.

        Raises:
            RaspLensError: If there is no sequence, one does not fit, or lengths differ and there is no padding.
        """
        if not len(sequences):
            raise RaspLensError("There is no sequence to encode. Give at least one.")
        longest = max(len(tokens) for tokens in sequences)
        if not self.has_pad and any(len(tokens) < longest for tokens in sequences):
            raise RaspLensError(
                "All sequences of a batch must have one length, as the model has no padding token; got lengths "
                f"{sorted({len(tokens) for tokens in sequences})}. Compile it with pad=True, or call run_batch."
            )
        padding = [self.transformer.config.d_vocab - 1] * longest
        ids = [(self.inputs.ids(tokens) + padding)[:longest] for tokens in sequences]
        return self.with_bos(np.array(ids))

    def with_bos(self, ids: Int[np.ndarray, "batch pos"]) -> Int[np.ndarray, "batch ctx"]:
        """Token ids of the vocabulary as the transformer takes them: behind a BOS if it has one."""
        if not self.has_bos:
            return ids
        return np.pad(ids, ((0, 0), (1, 0)), constant_values=len(self.inputs.vocab))

    def codes(self, ids: Int[np.ndarray, "batch pos"]) -> dict[str, Int[np.ndarray, "batch pos"]]:
        """The codes of every variable at every position, read from the residual stream.

        Args:
            ids: Token ids of the vocabulary, without a BOS.

        Raises:
            UndefinedValue: If a variable holds a mixture.
        """
        _, cache = self.transformer.run_with_cache(self.with_bos(ids))
        return self.decoded({point: cache[point][:, self.offset :] for point in self.written_points})

    def is_undefined(self, ids: Int[np.ndarray, "batch pos"]) -> Bool[np.ndarray, " batch"]:
        """The inputs on which the program has no value at some position, of which the weights know nothing.

        Args:
            ids: Token ids of the vocabulary, without a BOS.
        """
        if self.partial is None:
            return np.zeros(len(ids), dtype=bool)
        return trace(self.partial, ids, self.inputs.visible).fails()

    @property
    def written_points(self) -> list[str]:
        """The hook points of the residual stream from which on some variable is there."""
        return list(dict.fromkeys(variable.written_at for variable in self.variables.values()))

    def decoded(
        self,
        streams: Mapping[str, Float[np.ndarray, "batch pos d_model"]],
        is_undefined: Bool[np.ndarray, " batch"] | None = None,
    ) -> dict[str, Int[np.ndarray, "batch pos"]]:
        """The codes of every variable at every position.

        Args:
            streams: The residual stream at `written_points`, whatever ran the weights; without that of a BOS.
            is_undefined: On which inputs the program has no value somewhere: there a mixture is undefined. By
                default on none.

        Raises:
            UndefinedValue: If a variable holds a mixture elsewhere.
        """
        may_mix = False if is_undefined is None else is_undefined[:, None]
        return {
            name: variable.decode(variable.read(streams[variable.written_at]), self.tolerance(variable), may_mix)
            for name, variable in self.variables.items()
        }

    def __repr__(self) -> str:
        bos = "with" if self.has_bos else "without"
        return (
            f"{type(self).__name__}({self.output!r}: {len(self.inputs.vocab)} tokens, "
            f"max_len={self.inputs.max_len}, {bos} BOS, {len(self.variables)} variables, {self.transformer!r})"
        )
