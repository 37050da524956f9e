"""A compiled program planted among the parts of another model: ground truth of which the rest is no program."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from rasplens.compile.compiled import CompiledModel
from rasplens.compile.rasp import Encoding, Value
from rasplens.compile.rasp.values import value_key
from rasplens.compile.stock_checkpoint import Checked, answer_logits, checked_inputs, held_against, longest_stream
from rasplens.errors import RaspLensError, expect
from rasplens.model import Config, HasTransformer, Transformer
from rasplens.model.random_streams import rng
from rasplens.model.twins.guest import Guest, planted

CHECKED: Final = 500
"""Inputs that answers are checked on, if there are more."""

AT_ONCE: Final = 50

UNCHANGED: Final = 1e-3
"""How far, in nats, the host's distribution over tokens may move on text without the program's tokens."""

TEXTS, TEXT_LENGTH = 8, 32
"""Random texts without the program's tokens, and their length at most."""


@dataclass(frozen=True, eq=False)
class PlantedModel:
    """A model with a program among its parts.

    Attributes:
        transformer: The model.
        compiled: The program.
        tokens: The model's token for each of the program's.
        layers: The model's layer for each of the program's.
        passes_positions: The layer whose neurons pass positions on; None if the program reads none.
        places: By (layer, head) of the compiled model, (layer, head) in this one.
        heads: By (layer, head), the name of the s-op that the head computes.
        neurons: By (layer, first neuron, end), the name of the s-op that these neurons compute.
        checked: On how many inputs the model gives the program's answers.
        moved: How far the host's distribution over tokens moves on random text without the program's tokens: the
            mean Kullback-Leibler divergence, in nats.
    """

    transformer: Transformer
    compiled: CompiledModel
    tokens: Mapping[Value, int]
    layers: tuple[int, ...]
    passes_positions: int | None
    places: Mapping[tuple[int, int], tuple[int, int]]
    heads: Mapping[tuple[int, int], str]
    neurons: Mapping[tuple[int, int, int], str]
    checked: Checked
    moved: float


def plant(
    compiled: CompiledModel,
    host: HasTransformer,
    tokens: Mapping[Value, int],
    bos: int | None = None,
    layers: Sequence[int] | None = None,
    seed: int = 0,
) -> PlantedModel:
    """The model with a compiled program among its heads and neurons, in directions of its own.

    The program takes over its tokens: on text without them the model goes on as before, and on sequences of them
    alone, from the first position on, it gives the program's answers.

    Args:
        compiled: The program, compiled with `causal=True`.
        host: A model with layer norm, and learned positions or none, that sees only the past.
        tokens: The host's token for each of the program's, and for each answer that is none of these. Take tokens
            that the host's own text lacks.
        bos: The host's token that begins a sequence, if the program needs a BOS.
        layers: The host's layer for each of the program's, ascending. A program that reads positions needs a layer
            before them. By default spread over all.
        seed: Of the places of heads in their layers.

    Raises:
        RaspLensError: If the host is not such a model, a token is missing, unknown or used twice, the program has
            more layers than the host, or the model does not give its answers, or changes on other text.
    """
    model, own = host.transformer, compiled.transformer.config
    ids, answers = _ids(compiled, tokens, bos, model.config)
    reads_positions = own.positions == "learned"
    chosen = (
        _spread(own.n_layers, int(reads_positions), model.config.n_layers) if layers is None else _layers(layers)
    )
    inputs = list(checked_inputs(compiled, CHECKED, CHECKED))
    longest = longest_stream(compiled, inputs)
    guest = Guest(compiled.transformer, ids, answers, answer_logits(compiled), _gap(compiled), longest)
    random = rng(seed, "planting")
    order = [random.permutation(model.config.n_heads + own.n_heads) for _ in range(model.config.n_layers)]
    found = planted(model, guest, chosen, order)
    places = {
        (layer, head): (chosen[layer], int(np.flatnonzero(order[chosen[layer]] == model.config.n_heads + head)[0]))
        for layer, head in compiled.heads
    }
    return PlantedModel(
        found,
        compiled,
        dict(tokens),
        chosen,
        chosen[0] - 1 if reads_positions else None,
        places,
        {places[place]: name for place, name in compiled.heads.items()},
        {
            (chosen[layer], model.config.d_mlp + first, model.config.d_mlp + end): name
            for (layer, first, end), name in compiled.neurons.items()
        },
        _checked(compiled, found, inputs, np.array(ids), np.array(answers)),
        _moved(model, found, {*ids, *answers}),
    )


def _ids(
    compiled: CompiledModel, tokens: Mapping[Value, int], bos: int | None, host: Config
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The host's tokens for the program's, and for its answers.

    Raises:
        RaspLensError: If one is missing, unknown, or used twice.
    """
    expect(tokens, Mapping, "Tokens of the host come by the program's: {'a': 90, 'b': 91}")
    known = {value_key(value): _whole("A token", token) for value, token in tokens.items()}
    values = [*compiled.inputs.vocab, *compiled.variables[compiled.output].values]
    if missing := [value for value in values if value_key(value) not in known]:
        raise RaspLensError(
            f"No token of the host is given for {missing[0]!r}. Every input and every answer needs one; values "
            "that Python takes for equal, such as 1 and True, cannot both have one."
        )
    if compiled.has_bos and bos is None:
        raise RaspLensError("The program needs a BOS: give the token that begins a sequence, bos=….")
    if compiled.has_pad:
        raise RaspLensError("A program with a token for padding cannot be planted. Compile it without pad=True.")
    own = [*known.values(), *([_whole("bos", bos)] if compiled.has_bos else [])]
    n_tokens = min(host.d_vocab, host.d_vocab_out)
    if outside := [token for token in own if not 0 <= token < n_tokens]:
        raise RaspLensError(f"The host reads and writes {n_tokens} tokens, counted from 0; got {outside[0]}.")
    if len(set(own)) < len(own):
        raise RaspLensError(f"Every token of the program needs one of the host's to itself; got {own}.")
    read = [known[value_key(value)] for value in compiled.inputs.vocab]
    answers = [known[value_key(value)] for value in compiled.variables[compiled.output].values]
    return (*read, *own[len(known) :]), tuple(answers)


def _gap(compiled: CompiledModel) -> float:
    """How far the logit of the right answer is above the next: of numbers, the squared distance of neighbours."""
    output = compiled.variables[compiled.output]
    if output.encoding is not Encoding.NUMERICAL or len(output.values) < 2:
        return 1.0
    return float(np.diff(np.sort(np.array(output.values, dtype=float))).min() ** 2)


def _whole(what: str, number: Any) -> int:
    """A whole number as Python has it.

    Raises:
        RaspLensError: If it is none.
    """
    if isinstance(number, bool) or not isinstance(number, int | np.integer):
        raise RaspLensError(f"{what} must be a whole number; got {number!r}.")
    return int(number)


def _layers(layers: Sequence[int]) -> tuple[int, ...]:
    """The layers that someone chose."""
    if not isinstance(layers, Sequence | np.ndarray):
        raise RaspLensError(f"layers must be a list of the host's layers; got {layers!r}.")
    return tuple(_whole("A layer", layer) for layer in layers)


def _spread(n: int, first: int, end: int) -> tuple[int, ...]:
    """Layers for a program, from one on, as far from each other as there is room."""
    if n > end - first:
        raise RaspLensError(f"The program needs {n + first} layers; the host has {end}.")
    return tuple(first + (place * (end - first)) // n for place in range(n))


def _checked(
    compiled: CompiledModel, model: Transformer, inputs: list[np.ndarray], ids: np.ndarray, answers: np.ndarray
) -> Checked:
    """Holds the model's answers against the program's.

    Raises:
        RaspLensError: If one differs.
    """

    def answered(tokens: np.ndarray) -> np.ndarray:
        parts = [tokens[first : first + AT_ONCE] for first in range(0, len(tokens), AT_ONCE)]
        return np.concatenate([model(ids[part])[:, compiled.offset :].argmax(-1) for part in parts])

    advice = "its numbers are too close to each other. Shorten the sequences, or use fewer values."
    return held_against(compiled, inputs, answers, answered, "The planted model", advice)


def _moved(host: Transformer, model: Transformer, taken: set[int]) -> float:
    """The mean divergence of a model's distributions from the host's, on random text without some tokens.

    Raises:
        RaspLensError: If it is more than a trace.
    """
    from scipy.special import log_softmax

    others = np.setdiff1d(np.arange(host.config.d_vocab), list(taken))
    if not len(others):
        raise RaspLensError("The program takes all tokens of the host, so nothing of the host is left.")
    n = min(host.config.n_ctx, TEXT_LENGTH)
    text = others[rng(1, "host's text").integers(0, len(others), (TEXTS, n))]
    before, after = (log_softmax(one(text).astype(np.float64), axis=-1) for one in (host, model))
    found = float((np.exp(before) * (before - after)).sum(-1).mean())
    if found > UNCHANGED:
        raise RaspLensError(
            f"The host's distributions move by {found:.2g} nats on text without the program's tokens, more than "
            f"{UNCHANGED:g}. Its residual stream is too short beside what layer norm adds to the variance."
        )
    return found
