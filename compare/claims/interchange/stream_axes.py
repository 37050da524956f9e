"""The whitened coordinates of a model's residual stream, and what the rest of the model reads there."""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from weakref import WeakKeyDictionary

import numpy as np
import torch
from jaxtyping import Float

from rasplens.compare.claims.interchange.coordinates import Whitened, n_axes, whitened
from rasplens.compare.evidence.parallel import in_parallel
from rasplens.compare.subject.studied_model import FwdHook, StudiedModel
from rasplens.model.hook_points import act_name

N_INPUTS = 32
"""Inputs on which it is asked what is read: layer norms read other directions on each."""

TIMES = 2
"""Random readings for every direction along which the stream varies: as many span what is read, with room to
spare."""

SEED = 0
"""Of the random readings: the same of every model, so that they go with any change of its basis."""

KEPT = 2**27
"""Numbers, a gibibyte of them, that the coordinates of a model at all its points take; others are found anew."""

Readings = Float[np.ndarray, "pos reading d_model"]


class StreamAxes(Mapping[int, Whitened]):
    """The whitened coordinates of a stream at a hook point, by the task's position, found when they are asked for.

    Args:
        stream: On several inputs.
        read: What is read of it, see `readings`.
        kept: Of how many positions the coordinates are kept at a time.
    """

    def __init__(self, stream: Float[np.ndarray, "input pos d_model"], read: Readings, kept: int):
        self._stream, self._read = stream, read
        self._found = lru_cache(kept)(self._find)

    def __getitem__(self, position: int) -> Whitened:
        return self._found(position)

    def _find(self, position: int) -> Whitened:
        return whitened(self._stream[:, position], self._read[position].T)

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self._read)))

    def __len__(self) -> int:
        return len(self._read)


_KNOWN: WeakKeyDictionary[StudiedModel, Mapping[str, StreamAxes]] = WeakKeyDictionary()


def stream_axes(studied: StudiedModel, point: str) -> StreamAxes:
    """The whitened coordinates of a model's stream at a hook point, by the task's position.

    They are found once for each model.
    """
    if studied not in _KNOWN:
        read = readings(studied)
        n_readings, width = next(iter(read.values())).shape[1:]
        kept = max(1, KEPT // (len(read) * 3 * width * n_readings // TIMES))
        _KNOWN[studied] = {name: StreamAxes(studied.residual(name), rows, kept) for name, rows in read.items()}
    return _KNOWN[studied][point]


def readings(studied: StudiedModel) -> dict[str, Readings]:
    """Return the directions that are read behind each hook point of the stream, by the task's position.

    Read is what changes a query, a key, a value, a neuron or an answer when the stream changes by ever so little:
    the row space of the weights that read, and of what norms make of it. Whether an attention pattern is too
    saturated to move with its queries makes no difference. Nor does what is made of what is read: layers that the
    change would go through are cut off, for they have to read it first.
    """
    changed, stages = _stages(studied.first(N_INPUTS))
    places = [studied.at(position) for position in range(studied.n_pos)]
    rounds = -(-TIMES * _most_axes(studied) // len(changed))
    generator = torch.Generator().manual_seed(SEED)

    def back(values: Sequence[torch.Tensor], sizes: Sequence[float]) -> torch.Tensor:
        """Return the gradient of a random sum of values with respect to the stream: `[input, ctx, d_model]`."""
        drawn = [torch.randn(value.shape, generator=generator, dtype=value.dtype) for value in values]
        weights = [weight / size for weight, size in zip(drawn, sizes, strict=True)]
        (seen,) = torch.autograd.grad(values, [changed], weights, retain_graph=True, allow_unused=True)
        return torch.zeros_like(changed) if seen is None else seen

    def rows(values: Sequence[torch.Tensor]) -> Readings:
        # Weights that read differ in size by orders of magnitude; what each of them reads counts alike.
        sizes = [float(back([value], [1.0]).norm(dim=-1).max()) for value in values]
        read = [(value, size) for value, size in zip(values, sizes, strict=True) if size > 0]
        found = [back(*zip(*read, strict=True))[:, places] for _ in range(rounds if read else 0)]
        none = torch.zeros_like(changed).repeat(rounds, 1, 1)[:, places]
        return (torch.cat(found) if found else none).transpose(0, 1).numpy()

    # Random readings of all that comes behind a point: the sums of those of each.
    behind = itertools.accumulate((rows(values) for _, values in reversed(stages)), np.add)
    found = {point: read for (point, _), read in zip(reversed(stages), behind, strict=True)}
    return {point: found[point] for point, _ in stages}


def _most_axes(studied: StudiedModel) -> int:
    """Along how many directions the stream varies at most, at any of its hook points and positions."""
    streams = (studied.residual(point) for point in studied.residual_points)
    counts = in_parallel(n_axes, (stream[:, i] for stream in streams for i in range(stream.shape[1])))
    return max(1, *counts)


def _stages(studied: StudiedModel) -> tuple[torch.Tensor, list[tuple[str, list[torch.Tensor]]]]:
    """The hook points of the stream, each with what reads it before the next, as functions of one change of it.

    What layers write does not go with the change, so that it is read directly.
    """
    stages: list[tuple[str, list[torch.Tensor]]] = []
    changes: list[torch.Tensor] = []

    def change(stream: torch.Tensor, hook: object) -> torch.Tensor:
        changes.append(torch.zeros_like(stream, requires_grad=True))
        return stream + changes[-1]

    def begin(point: str) -> Callable[..., torch.Tensor]:
        def hook_function(stream: torch.Tensor, hook: object) -> torch.Tensor:
            stages.append((point, []))
            return stream

        return hook_function

    def keep(value: torch.Tensor, hook: object) -> torch.Tensor:
        stages[-1][1].append(value)
        return value

    def cut(value: torch.Tensor, hook: object) -> torch.Tensor:
        return value.detach()

    first, *others = studied.residual_points
    written = [name for name in _written(studied) if name in studied.model.hook_dict]
    hooks: list[FwdHook] = [(first, change), (first, begin(first)), *((name, begin(name)) for name in others)]
    hooks += [(name, keep) for name in _reading_points(studied)]
    answers = studied.run([*hooks, *((name, cut) for name in written)])
    stages[-1][1].append(answers)
    return changes[0], stages


def _written(studied: StudiedModel) -> Iterator[str]:
    """The hook points of what heads gather and MLPs write."""
    for layer in range(studied.n_layers):
        yield act_name("z", layer)
        yield act_name("mlp_out", layer)


def _reading_points(studied: StudiedModel) -> list[str]:
    """The hook points of what a model reads: queries, keys, values, and neurons, or what these come to."""
    points = studied.model.hook_dict
    read = [act_name(name, layer) for layer, name in itertools.product(range(studied.n_layers), "qkv")]
    for layer in range(studied.n_layers):
        pre = act_name("pre", layer)
        read.append(pre if pre in points else act_name("mlp_out", layer))
    return [name for name in read if name in points]
