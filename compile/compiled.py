"""The result of compiling: a transformer that is called like its program, with its anatomy."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np
from jaxtyping import Int

from rasplens.compile.analysis.rounding import LEAK
from rasplens.compile.anatomy import Anatomy
from rasplens.compile.display.attribution_graph import attribution_graph
from rasplens.compile.display.notebook_views import anatomy_view
from rasplens.compile.errors import UndefinedValue
from rasplens.compile.ground_truth_circuit import Granularity, circuit
from rasplens.compile.limits import DEFAULT_LIMITS, CompileLimits
from rasplens.compile.rasp import Value
from rasplens.compile.rasp.input_space import batches
from rasplens.compile.rasp.interpreter import run
from rasplens.compile.rasp.values import value_key
from rasplens.compile.stock_checkpoint import Checked, Family, save_stock_checkpoint
from rasplens.compile.storage.anatomy_files import load_anatomy, save_anatomy
from rasplens.compile.variable import ObliqueDirections
from rasplens.errors import RaspLensError
from rasplens.model import Transformer
from rasplens.model.hook_points import param_name
from rasplens.model.twins.reparametrise import Reparametrisation

if TYPE_CHECKING:
    from transformer_lens.model_bridge import TransformerBridge


@dataclass(frozen=True, eq=False, repr=False)
class CompiledModel(Anatomy):
    """A transformer that computes a RASP program, with its anatomy; call it like the program."""

    @classmethod
    def of(cls, anatomy: Anatomy) -> "CompiledModel":
        """The model with an anatomy."""
        return cls(**{field.name: getattr(anatomy, field.name) for field in fields(Anatomy)})

    def __call__(self, tokens: Sequence[Value], *, check: bool = True) -> list[Value]:
        """The answer of the transformer on one sequence: one value per position, None for undefined.

        Args:
            tokens: The sequence.
            check: Whether to look at every variable on the way, and not at the answer alone.

        Raises:
            RaspLensError: If the sequence is empty, too long, or holds a token outside the vocabulary.
            UndefinedValue: If a variable is a mixture of values.
        """
        return self.run_batch([tokens], check=check)[0]

    def run_batch(self, sequences: Sequence[Sequence[Value]], *, check: bool = True) -> list[list[Value]]:
        """The answers on many sequences, those of one length together.

        Args:
            sequences: The sequences.
            check: As for one sequence.

        Raises:
            RaspLensError: As for one sequence.
            UndefinedValue: As for one sequence.
        """
        order = sorted(range(len(sequences)), key=lambda i: len(sequences[i]))
        ordered = (sequences[i] for i in order)
        answers = [answer for batch in batches(ordered) for answer in self._answers(batch, check)]
        return [answer for _, answer in sorted(zip(order, answers, strict=True), key=lambda pair: pair[0])]

    def _answers(self, sequences: Sequence[Sequence[Value]], check: bool) -> list[list[Value]]:
        """The answers on sequences of one length."""
        ids = self.encode(sequences)
        if not check:
            return self.decode(self.transformer(ids))
        codes = self.codes(ids[:, self.offset :])[self.output]
        self._refuse_undefined(ids[:, self.offset :])
        return self._values(codes)

    def generate(self, tokens: Sequence[Value], n: int) -> list[Value]:
        """The tokens that follow when each answer is appended, and read by the next.

        Args:
            tokens: The sequence to go on with.
            n: How many tokens.

        Raises:
            RaspLensError: If an answer is no token that it takes, or the sequence becomes too long.
            UndefinedValue: If the program has no value.
        """
        written = list(tokens)
        known = set(map(value_key, self.inputs.vocab))
        for _ in range(n):
            answer = self(written)[-1]
            if value_key(answer) not in known:
                raise RaspLensError(f"The answer behind {written} is {answer!r}, which is no token to go on with.")
            written.append(answer)
        return written[len(tokens) :]

    def trace(self, tokens: Sequence[Value]) -> dict[str, list[Value]]:
        """The value of every variable at each position of a sequence, as the weights hold it; None for undefined.

        Raises:
            RaspLensError: If the sequence is empty, too long, or has a token that it was not compiled for.
            UndefinedValue: If the program has no value on it.
        """
        ids = self.encode([tokens])[:, self.offset :]
        self._refuse_undefined(ids)
        values = {name: (*variable.values, None) for name, variable in self.variables.items()}
        return {name: [values[name][code] for code in codes[0]] for name, codes in self.codes(ids).items()}

    def decode(self, logits: Any) -> list[list[Value]]:
        """The answers that logits stand for: one value per position, None for undefined.

        Args:
            logits: `[batch, ctx, d_vocab_out]` of numpy or torch, as the transformer, a `HookedModel` of it or
                `to_bridge()` gives them for ids from `encode`. What stands at the BOS is left out. A program that
                answers with numbers has one logit, the number itself.

        Raises:
            RaspLensError: If they have another shape.
            UndefinedValue: If some are a mixture, no value.
        """
        output, width = self.variables[self.output], self.transformer.config.d_vocab_out
        array = np.asarray(logits.detach().cpu() if hasattr(logits, "detach") else logits)
        if array.ndim != 3 or array.shape[2] != width:
            raise RaspLensError(
                f"The logits of {self.output!r} are [batch, ctx, {width}]; got shape {array.shape}."
            )
        return self._values(output.decode(array[:, self.offset :], self.tolerance(output)))

    def _values(self, codes: Int[np.ndarray, "batch pos"]) -> list[list[Value]]:
        values = (*self.variables[self.output].values, None)
        return [[values[code] for code in row] for row in codes]

    def _refuse_undefined(self, ids: Int[np.ndarray, "batch pos"]) -> None:
        failing = np.flatnonzero(self.is_undefined(ids))
        if len(failing):
            tokens = [self.inputs.vocab[token] for token in ids[failing[0]]]
            raise UndefinedValue(f"The program has no value on {tokens}.")

    def interpret(self, tokens: Sequence[Value]) -> list[Value]:
        """The values of the program itself on one sequence, by the interpreter."""
        length = len(tokens)
        return run(self.program, tokens, mask=self.inputs.visible[:length, :length])

    def save(self, path: str | Path) -> None:
        """Writes it to one file, which `load_compiled` reads; see `rasplens.compile.storage.anatomy_files`.

        Raises:
            StorageError: If the folder does not exist.
        """
        save_anatomy(self, path)

    def circuit(
        self,
        granularity: Granularity = "head",
        positions: Sequence[int] | None = None,
        limits: CompileLimits = DEFAULT_LIMITS,
    ) -> nx.DiGraph:
        """The connections that the answers depend on; see `rasplens.compile.ground_truth_circuit.circuit`."""
        return circuit(self, granularity, positions, limits)

    def attribution_graph(self, tokens: Sequence[Value], position: int = -1) -> dict[str, Any]:
        """The program on one input as an attribution graph; see `rasplens.compile.display.attribution_graph`.

        Args:
            tokens: The sequence.
            position: Of the answer; by default the last.

        Raises:
            RaspLensError: If the sequence is not one that it takes, or has no such position.
            UndefinedValue: If the program has no value on it.
        """
        return attribution_graph(self, tokens, position)

    def reparametrised(self, change: Reparametrisation) -> "CompiledModel":
        """Return the model in other weights; `rasplens.model.disguise` calls it.

        Its variables are read from the new residual stream, and its heads and neurons are those of the twin: each
        neuron by itself, as a disguise takes them apart.
        """
        heads = {
            (layer, place): self.heads[layer, was]
            for layer, order in enumerate(change.heads)
            for place, was in enumerate(order.tolist())
            if (layer, was) in self.heads
        }
        of_neuron = {
            (layer, neuron): name
            for (layer, start, end), name in self.neurons.items()
            for neuron in range(start, end)
        }
        neurons = {
            (layer, place, place + 1): of_neuron[layer, was]
            for layer, order in enumerate(change.neurons)
            for place, was in enumerate(order.tolist())
            if (layer, was) in of_neuron
        }
        variables = {name: variable.in_basis(change.residual) for name, variable in self.variables.items()}
        return replace(self, transformer=change.transformer, variables=variables, heads=heads, neurons=neurons)

    def _repr_html_(self) -> str:
        return anatomy_view(self)

    def to_huggingface(self, folder: str | Path, family: Family = "gpt2") -> Checked:
        """Writes it as a stock model, which `AutoModelForCausalLM` loads; see `rasplens.compile.stock_checkpoint`.

        Args:
            folder: A new or empty folder.
            family: `"gpt2"` or `"llama"`.

        Raises:
            RaspLensError: If the family cannot express it, answers differ in single precision, or something is
                there.
        """
        return save_stock_checkpoint(self, folder, family)

    def to_bridge(self) -> "TransformerBridge":
        """The model as a native TransformerLens bridge, for token ids as `encode` gives them.

        A bridge that sees everything lets the BOS see the sequence too: every head gets one more dimension
        by which the BOS attends to itself.

        Raises:
            RaspLensError: If a bridge cannot express the model, such as one with a mask of its own, or a disguised
                one with a BOS that is not to see the sequence.
        """
        from rasplens.model.exports.bridge import to_bridge

        (ids, *_) = self.inputs.sampled_ids(8, seed=0)
        model = self.transformer
        if self.has_bos and self.inputs.visible.all():
            if any(isinstance(variable.place, ObliqueDirections) for variable in self.variables.values()):
                raise RaspLensError(
                    "A disguised model whose BOS attends only to itself cannot become a bridge: no axis of its "
                    "residual stream marks the BOS. Call to_bridge() on the model before the disguise."
                )
            model = _with_bos_by_itself(model, len(self.inputs.vocab))
        return to_bridge(model, self.with_bos(ids))


def load_compiled(path: str | Path) -> CompiledModel:
    """The compiled model that `CompiledModel.save` wrote.

    Raises:
        StorageError: If the file is missing, truncated, edited, foreign, or holds no compiled program.
    """
    return CompiledModel.of(load_anatomy(path))


def _with_bos_by_itself(model: Transformer, bos_id: int) -> Transformer:
    """A transformer that computes the same behind a BOS, with a mask that lets everything see everything."""
    bos = np.flatnonzero(model.W_E[bos_id])
    weights, head = dict(model.weights), (model.config.n_heads, model.config.d_model, 1)
    for layer in range(model.config.n_layers):
        q, k, v, o = (param_name(f"W_{letter}", layer) for letter in "QKVO")
        reads_bos = np.zeros(head, dtype=model.dtype)
        reads_bos[:, bos] = 1
        scores = model.config.attn_scale * math.log(model.config.n_ctx / LEAK)
        weights[q] = np.concatenate([weights[q], scores * reads_bos], axis=2, dtype=model.dtype)
        weights[k] = np.concatenate([weights[k], reads_bos], axis=2)
        weights[v] = np.concatenate([weights[v], np.zeros_like(reads_bos)], axis=2)
        no_output = np.zeros_like(weights[o][:, :1])
        weights[o] = np.concatenate([weights[o], no_output], axis=1)
    config = replace(model.config, d_head=model.config.d_head + 1)
    return Transformer(config, weights, np.ones_like(model.mask))
