"""Interventions: activations as they are elsewhere, wholly, along directions, or along attention edges.

An intervention is data. It does the same in numpy, torch and JAX: as hooks of a torch module (`torch_hooks`), and
in the forward pass on arrays (`array_hook`).

Sources: Geiger et al. 2021, "Causal Abstractions of Neural Networks" (interchange); Geiger et al. 2024, "Finding
Alignments Between Interpretable Causal Variables and Distributed Neural Representations" (along directions);
Wang et al. 2022, "Interpretability in the Wild", section 3.1 (along edges).
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Final, Literal, Protocol, runtime_checkable

import numpy as np
from array_api_compat import device, is_jax_namespace
from jaxtyping import Float

from rasplens.errors import RaspLensError
from rasplens.model.forward import Array, Hook
from rasplens.model.hook_points import act_name

EdgePart = Literal["values", "keys", "queries", "attention"]
"""The part of an edge that is patched; "attention" removes it, and the rest of its row keeps its proportions."""

LETTERS: Final[Mapping[EdgePart, str]] = {"values": "v", "keys": "k", "queries": "q"}
"""Whose hook points a part of an edge is read at."""


@runtime_checkable
class Intervention(Protocol):
    """A change of one forward pass."""

    @property
    def points(self) -> tuple[str, ...]:
        """The hook points that it sees or edits."""
        ...

    def edit(self, point: str, own: Array, seen: Mapping[str, Array], xp: ModuleType) -> Array:
        """Return an activation as the forward pass goes on with it.

        Args:
            point: Its hook point.
            own: The activation: `[batch, pos, ...]`, or `[batch, head, query, key]`.
            seen: What has passed the intervention's hook points before in this pass, by hook point.
            xp: The array namespace.
        """
        ...


@dataclass(frozen=True, eq=False)
class Subspace:
    """A subspace of an activation, with the coordinates in it.

    Attributes:
        read: From an activation to the coordinates: `[width, rank]`.
        write: What each coordinate is worth: `[width, rank]`. `write.T @ read` is the identity.
    """

    read: Float[np.ndarray, "width rank"]
    write: Float[np.ndarray, "width rank"]

    @property
    def rank(self) -> int:
        """Its dimension."""
        return int(self.read.shape[1])

    def first(self, rank: int) -> "Subspace":
        """That of its first coordinates."""
        return Subspace(self.read[:, :rank], self.write[:, :rank])


def whole(width: int, part: Any = slice(None)) -> Subspace:
    """Return all of an activation as a subspace, or those of its dimensions that an index picks."""
    basis = np.eye(width)[:, part]
    return Subspace(basis, basis)


def exchanged(own: Array, other: Array, read: Array, write: Array | None = None) -> Array:
    """Return an activation with another one's part in a subspace: `x + (y − x) P`.

    Args:
        own: The activation x: `[..., width]`.
        other: The other one y.
        read: The projection P, `[width, width]`; or coordinates in the subspace, `[width, rank]`.
        write: What each coordinate is worth, `[width, rank]`: P is `read @ write.T`.
    """
    change = (other - own) @ read
    return own + (change if write is None else change @ write.mT)


@dataclass(frozen=True, eq=False)
class Replace:
    """An activation as it is elsewhere.

    Attributes:
        point: Its hook point.
        value: What takes its place, of its shape.
        where: Which of it: booleans along its first axes, such as `[batch, pos]` or `[batch, pos, head]`.
    """

    point: str
    value: Array
    where: Array

    @property
    def points(self) -> tuple[str, ...]:
        """Its hook point."""
        return (self.point,)

    def edit(self, point: str, own: Array, seen: Mapping[str, Array], xp: ModuleType) -> Array:
        """Return the activation with the value where it is to be; see `Intervention`."""
        where = _beside(own, self.where, xp)
        where = xp.reshape(where, (*where.shape, *(1,) * (own.ndim - where.ndim)))
        return xp.where(where, _like(self.value, own, xp), own)


@dataclass(frozen=True, eq=False)
class Project:
    """Subspaces of an activation as they are elsewhere, at some positions; heads stand side by side in it.

    Attributes:
        point: The activation's hook point.
        subspaces: By the model's position.
        value: The other activation there, in the order of `subspaces`: `[batch, position, width]`, or one row for
            all of the batch.
        where: On which inputs: `[batch, position]`, or one row for all.
    """

    point: str
    subspaces: Mapping[int, Subspace]
    value: Array
    where: Array

    @property
    def points(self) -> tuple[str, ...]:
        """Its hook point."""
        return (self.point,)

    def edit(self, point: str, own: Array, seen: Mapping[str, Array], xp: ModuleType) -> Array:
        """Return the activation with the value's part in the subspaces; see `Intervention`."""
        if not self.subspaces:
            return own
        flat, value = xp.reshape(own, (*own.shape[:2], -1)), _like(self.value, own, xp)
        where, edited = _beside(own, self.where, xp), []
        for i, (place, subspace) in enumerate(self.subspaces.items()):
            read, write = (_like(part, own, xp) for part in (subspace.read, subspace.write))
            there = exchanged(flat[:, place], value[:, i], read, write)
            edited.append(xp.where(where[:, i, None], there, flat[:, place]))
        index = (slice(None), list(self.subspaces))
        return xp.reshape(_with(flat, index, xp.stack(edited, axis=1), xp), own.shape)


@dataclass(frozen=True, eq=False)
class Edges:
    """A part of a layer's attention edges as it is elsewhere, in all heads or in some.

    What is not seen stays unseen. Heads that share keys and values (grouped-query attention) are patched one by
    one: each has its own copy of them.

    Attributes:
        layer: The layer.
        part: What of the edges.
        value: Values, keys or queries elsewhere: `[batch, pos, head, d_head]`, of shared ones a head a group; None
            for "attention".
        where: Which edges: `[batch, head, query, key]`, or one for all heads, `[batch, 1, query, key]`.
        scale: The factor from queries times keys to attention scores.
        read_at: The hook points of queries, keys and values, by letter, where they are others than `act_name`'s:
            rotary positions turn queries and keys before they meet.
    """

    layer: int
    part: EdgePart
    value: Array | None
    where: Array
    scale: float = 1.0
    read_at: Mapping[str, str] = field(default_factory=dict)

    @property
    def points(self) -> tuple[str, ...]:
        """Those of what the edges carry, and then of what is edited."""
        if self.part == "attention":
            return (self.edited,)
        if self.part == "values":
            return (self.point("v"), act_name("pattern", self.layer), self.edited)
        return (self.point("q"), self.point("k"), self.edited)

    @property
    def edited(self) -> str:
        """The hook point of what it edits: what heads gather, or attention scores."""
        return act_name("z" if self.part == "values" else "attn_scores", self.layer)

    def point(self, letter: str) -> str:
        """The hook point of queries, keys or values."""
        return self.read_at.get(letter, act_name(letter, self.layer))

    def edit(self, point: str, own: Array, seen: Mapping[str, Array], xp: ModuleType) -> Array:
        """Return scores, or what heads gather, with the edges as they are to be; see `Intervention`."""
        if point != self.edited:
            return own
        where = _beside(own, self.where, xp)
        if self.part == "values":
            along = seen[act_name("pattern", self.layer)] * where
            n_heads = along.shape[1]
            there, here = _like(self.value, own, xp), seen[self.point("v")]
            change = of_each_head(there, n_heads, xp) - of_each_head(here, n_heads, xp)
            moved = along @ xp.permute_dims(change, (0, 2, 1, 3))
            return own + xp.permute_dims(moved, (0, 2, 1, 3))
        if self.value is None:
            return xp.where(where, -xp.inf, own)
        query, key = (seen[self.point(letter)] for letter in "qk")
        value = _like(self.value, query, xp)
        query, key, value = (of_each_head(one, own.shape[1], xp) for one in (query, key, value))
        there = _products(value, key, xp) if self.part == "queries" else _products(query, value, xp)
        # What a position does not see stays unseen: a finite change of minus infinity is none.
        change = self.scale * (there - _products(query, key, xp))
        return own + xp.where(where, change, xp.zeros_like(change))


@dataclass(frozen=True, eq=False, repr=False)
class TorchHook:
    """An intervention at one hook point of a torch module, in one forward pass. It edits where the module is.

    Attributes:
        intervention: The intervention.
        point: The hook point. A bridge calls it otherwise (`hook_z` is its `o.hook_in`), so the hook point is not
            asked for its name.
        seen: What has passed the intervention's hook points in this pass.
    """

    intervention: Intervention
    point: str
    seen: dict[str, Array]

    def __repr__(self) -> str:
        """Short: TransformerLens asks for it whenever it adds a hook, and printing arrays is slow."""
        return f"{type(self.intervention).__name__} at {self.point}"

    def __call__(self, own: Array, hook: object) -> Array:
        """Return the activation as the forward pass goes on with it."""
        import array_api_compat.torch as xp

        self.seen[self.point] = edited = self.intervention.edit(self.point, own, self.seen, xp)
        return edited


def torch_hooks(interventions: Sequence[Intervention]) -> list[tuple[str, TorchHook]]:
    """Return interventions as `fwd_hooks` of a `HookedRootModule`'s `run_with_hooks`, for one forward pass."""
    passed: list[tuple[Intervention, dict[str, Array]]] = [(one, {}) for one in interventions]
    return [(point, TorchHook(one, point, seen)) for one, seen in passed for point in one.points]


@contextmanager
def array_hook(interventions: Sequence[Intervention], xp: ModuleType, then: Hook | None = None) -> Iterator[Hook]:
    """Interventions as the hook of `forward`, for one forward pass.

    Args:
        interventions: The interventions.
        xp: The array namespace.
        then: Sees the activations afterwards, as they are edited.

    Raises:
        RaspLensError: At the end, if a hook point of an intervention was never passed: it would change nothing.
    """
    seen: list[dict[str, Array]] = [{} for _ in interventions]

    def hook(point: str, value: Array) -> Array:
        for one, passed in zip(interventions, seen, strict=True):
            if point in one.points:
                value = passed[point] = one.edit(point, value, passed, xp)
        return value if then is None else then(point, value)

    yield hook
    for one, passed in zip(interventions, seen, strict=True):
        if missed := [point for point in one.points if point not in passed]:
            raise RaspLensError(f"Nothing passed the hook point {missed[0]!r}: the intervention changed nothing.")


def of_each_head(values: Array, n_heads: int, xp: ModuleType) -> Array:
    """Values or keys `[batch, pos, head, d_head]`, of heads that share them a copy for each.

    Raises:
        RaspLensError: If they cannot be shared equally.
    """
    n_shared = values.shape[2]
    if n_heads % n_shared:
        raise RaspLensError(f"{n_heads} heads cannot share {n_shared} keys or values: it must be a multiple.")
    return values if n_shared == n_heads else xp.repeat(values, n_heads // n_shared, axis=2)


def _like(value: Array, own: Array, xp: ModuleType) -> Array:
    """A value as an array of an activation's kind; one that is such an array stays as it is, with its gradient."""
    is_alike = type(value) is type(own) and value.dtype == own.dtype and device(value) == device(own)
    return value if is_alike else xp.asarray(value, dtype=own.dtype, device=device(own))


def _beside(own: Array, value: Array, xp: ModuleType) -> Array:
    """A value of any type as an array where an activation is."""
    return xp.asarray(value, device=device(own))


def _products(query: Array, key: Array, xp: ModuleType) -> Array:
    return xp.permute_dims(query, (0, 2, 1, 3)) @ xp.permute_dims(key, (0, 2, 3, 1))


def _with(array: Array, index: Any, value: Array, xp: ModuleType) -> Array:
    """The array with another value at an index, as a new one."""
    if is_jax_namespace(xp):
        return array.at[index].set(value)
    array = xp.asarray(array, copy=True)
    array[index] = value
    return array
