"""Models with a second mechanism beside a program's: what decides is known by construction.

Two programs with the same answers stand in one residual stream, rotated. Either both run and the logits are a
weighted sum of theirs: then the one with the larger share decides. Or a gate chooses between them by the input. Or
the one is a backup, which answers only where nothing of the other's answer is there. Or it is the same program
again, which nothing reads. The first are the failure modes of the Causal Abstraction Evaluation study (arXiv
2607.00267): dead copy, faint copy, tie, leading copy, gate, backup.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from lab.labelled.circuits import Circuit
from lab.labelled.labelled_pairs import LabelledPair
from lab.programs.moving import moved
from lab.programs.selectors import always
from rasplens.compare.subject.vocabulary import Vocabulary, vocabulary_of
from rasplens.compile import CompiledModel, compile_program
from rasplens.compile.compiler import Bos
from rasplens.compile.rasp import Encoding, SOp, Where, tokens
from rasplens.errors import RaspLensError
from rasplens.model import Transformer, disguise, random_streams
from rasplens.model.config import bias_shapes, weight_shapes
from rasplens.model.hook_points import param_name
from rasplens.model.twins.side_by_side import side_by_side
from rasplens.tasks import Task
from rasplens.tasks.out_of_distribution import out_of_distribution_inputs

HIDDEN = "hidden, "
"""Begins the kind of such a model."""

SHARES = (0.0, 0.001, 0.01, 0.1, 0.5, 0.9)
"""Of the logits, those of the reference's program; the other program has the rest."""

DECIDES = 0.5
"""The program with more than this share of the logits decides."""

LEAST_GATED = 0.05
"""A program that decides on all inputs but fewer than these is the model's."""


@dataclass(frozen=True)
class Gate:
    """Inputs on which another program decides: those with some tokens at some positions.

    Attributes:
        tokens: By position, the token's id.
    """

    tokens: tuple[tuple[int, int], ...]

    def words(self, task: Task) -> str:
        """The inputs in words, as `compare` names a class."""
        place = (f"position {i} is {task.vocab[token]!r}" for i, token in self.tokens)
        return " and ".join(place)

    def sop(self, task: Task) -> SOp:
        """Whether an input is one of them, at every position."""
        each = [moved(tokens, always(place), f"gate_{place}") == task.vocab[token] for place, token in self.tokens]
        found = each[0]
        for other in each[1:]:
            found = found & other
        return found.named("gate")

    def share(self, task: Task) -> float:
        """The share of the task's held-out inputs."""
        met = [task.held_out[:, place] == token for place, token in self.tokens]
        return float(np.logical_and.reduce(met).mean())


def hidden_pairs(circuit: Circuit, seed: int = 0) -> Iterator[LabelledPair]:
    """The models in which a circuit's two programs stand beside each other, each program once as the reference.

    Args:
        circuit: Two programs for one task.
        seed: Of the rotation, and of the gates.

    Raises:
        RaspLensError: If the programs answer with numbers, or not alike everywhere.
    """
    task = circuit.task()
    programs = [circuit.program(), circuit.alternative()]
    sides = [_compiled(program, task) for program in programs]
    if any(one.has_bos for one in sides):  # both read the same tokens
        sides = [one if one.has_bos else _compiled(one.program, task, bos=True) for one in sides]
    if any(one.variables[one.output].encoding is not Encoding.CATEGORICAL for one in sides):
        raise RaspLensError("The programs answer with numbers, whose shares are no votes.")
    others = out_of_distribution_inputs(task, random_streams.rng(seed, "out-of-distribution inputs"), 1_000)
    first, second = (task.answers(program, others) for program in programs)
    if not np.array_equal(first, second):
        raise RaspLensError("The programs answer differently on some inputs: shares and backups change answers.")
    for own, other in (sides, sides[::-1]):
        for kind, same, model, vocabulary in _models(own, other, task, seed):
            names = circuit.name, own.output, f"{HIDDEN}{kind}"
            yield LabelledPair(*names, same, own, other, disguise(model, seed), task, vocabulary)


Model = tuple[str, bool | None, Transformer, Vocabulary]
"""A kind, whether the reference's program decides, the model and its vocabulary."""


def _models(own: CompiledModel, other: CompiledModel, task: Task, seed: int) -> Iterator[Model]:
    ours, theirs, vocabulary = with_task_logits(own, task), with_task_logits(other, task), _vocabulary(own, task)
    for share in SHARES:
        both = side_by_side(ours, theirs, (share, 1 - share))
        yield f"{share:.1%} of the logits", share > DECIDES, both, vocabulary
    yield "a dead mirror beside it", True, side_by_side(ours, ours, (1.0, 0.0)), vocabulary
    yield "a backup beside it", True, with_backup(ours, theirs), vocabulary
    yield "only a backup", False, with_backup(theirs, ours), vocabulary
    for gate in gates(task, seed):
        share = gate.share(task)
        mixed = Where(gate.sop(task), other.program, own.program).named("gated")
        compiled = _compiled(mixed, task)
        same = False if share >= LEAST_GATED else None
        kind = f"gate, on {share:.0%} where {gate.words(task)}"
        yield kind, same, compiled.transformer, vocabulary_of(compiled, task)


def other_decides(kind: str) -> bool:
    """Whether in a pair of a kind the other program's answers are the model's; in a tie, neither's are."""
    shares = [f"{share:.1%} of the logits" for share in SHARES if share < DECIDES]
    return kind.removeprefix(HIDDEN) in (*shares, "only a backup")


def _compiled(program: SOp, task: Task, bos: Bos = "auto") -> CompiledModel:
    return compile_program(program, task.vocab, task.n_ctx, mask=task.visible, bos=bos)


def gates(task: Task, seed: int) -> list[Gate]:
    """One gate by a token that every position sees, and one by two tokens."""
    rng = random_streams.rng(seed, "labelled pairs")
    seen = np.flatnonzero(task.visible[list(task.loss_positions)].all(axis=0))
    varied = [int(place) for place in seen if len(np.unique(task.held_out[:, place])) > 1]
    found = []
    for n in (1, 2):
        if len(varied) >= n:
            places = sorted(rng.choice(varied, n, replace=False).tolist())
            row = task.held_out[rng.integers(len(task.held_out))]
            found.append(Gate(tuple((place, int(row[place])) for place in places)))
    return found


def with_task_logits(compiled: CompiledModel, task: Task) -> Transformer:
    """A compiled model's weights, with the logits in the order of the task's answers."""
    weights = compiled.transformer
    codes = task.codes_of(compiled)[:-1]
    unembedding = np.zeros((weights.config.d_model, len(task.outputs)), dtype=weights.dtype)
    unembedding[:, codes[codes >= 0]] = weights.W_U[:, codes >= 0]
    config = replace(weights.config, d_vocab_out=len(task.outputs))
    kept = {name: array for name, array in weights.weights.items() if name != "unembed.b_U"}
    return Transformer(config, {**kept, "unembed.W_U": unembedding}, weights.mask)


def _vocabulary(compiled: CompiledModel, task: Task) -> Vocabulary:
    own = vocabulary_of(compiled, task)
    return Vocabulary(own.tokens, own.positions, np.arange(len(task.outputs)))


def with_backup(first: Transformer, backup: Transformer) -> Transformer:
    """A model that answers as the first does, and as the backup where nothing of the first's answer is there.

    One more layer has a neuron for each answer: the backup's logit for it, less all of the first's.
    """
    both = side_by_side(first, backup, (1.0, 1.0))
    width, n = first.config.d_model, both.config.d_vocab_out
    config = replace(
        both.config,
        n_layers=both.config.n_layers + 1,
        d_model=both.config.d_model + n,
        d_mlp=max(both.config.d_mlp, n),
    )
    weights = {name: np.zeros(shape) for name, shape in (weight_shapes(config) | bias_shapes(config)).items()}
    for name, array in both.weights.items():
        weights[name][tuple(map(slice, array.shape))] = array
    last, read = both.config.n_layers, both.weights["unembed.W_U"]
    total = read[:width].sum(axis=1, keepdims=True)
    weights[param_name("W_in", last)][:width, :n] = -total
    weights[param_name("W_in", last)][width : both.config.d_model, :n] = read[width:]
    weights[param_name("W_out", last)][:n, both.config.d_model :] = np.eye(n)
    weights["unembed.W_U"][width : both.config.d_model] = 0
    weights["unembed.W_U"][both.config.d_model :] = np.eye(n)
    mask = np.concatenate([both.mask, both.mask[-1:]])
    return Transformer(config, {name: array.astype(first.dtype) for name, array in weights.items()}, mask)
