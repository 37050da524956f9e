"""The inputs of a program: which tokens, how many of them, and which positions see which."""

import itertools
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from rasplens.compile.errors import UndefinedValue
from rasplens.compile.rasp.interpreter import visibility
from rasplens.compile.rasp.language import Value
from rasplens.compile.rasp.values import is_value, plain, value_key
from rasplens.errors import RaspLensError, expect

BATCH = 2_048
"""Sequences that are processed at once."""


@dataclass(frozen=True, eq=False)
class InputSpace:
    """The sequences of 1 to `max_len` tokens of a vocabulary: all of them, or those of a domain.

    Attributes:
        vocab: The tokens; a token's place is its id. A set is put in order, so that it gives the same
            model under any hash seed.
        max_len: The longest sequence.
        visible: Boolean `[query, key]` over `max_len` positions: what selectors may see.
        domain: Token ids of the sequences that there are, `[sequence, pos]` of one length each, the short first;
            None for all.

    Raises:
        RaspLensError: If the vocabulary is empty, has duplicates or holds None, or max_len is below 1.
    """

    vocab: tuple[Value, ...]
    max_len: int
    visible: np.ndarray
    domain: tuple[np.ndarray, ...] | None = None

    def __post_init__(self) -> None:
        if not self.vocab:
            raise RaspLensError("vocab must have at least one token.")
        if None in self.vocab:
            raise RaspLensError("None cannot be a token: it is RASP's undefined value.")
        if unknown := [token for token in self.vocab if not is_value(token)]:
            raise RaspLensError(
                "A token must be a bool, int, float, str or a tuple of those, without nan and lone surrogates; "
                f"got {unknown[0]!r}."
            )
        if len({value_key(token) for token in self.vocab}) < len(self.vocab):
            twice = next(t for i, t in enumerate(self.vocab) if t in self.vocab[:i])
            raise RaspLensError(f"vocab must not repeat a token; {twice!r} occurs twice.")

    @property
    def size(self) -> int:
        """The number of sequences."""
        if self.domain is not None:
            return sum(map(len, self.domain))
        return sum(len(self.vocab) ** length for length in range(1, self.max_len + 1))

    @property
    def lengths(self) -> set[int]:
        """How long sequences are."""
        return set(range(1, self.max_len + 1)) if self.domain is None else {ids.shape[1] for ids in self.domain}

    def __iter__(self) -> Iterator[tuple[Value, ...]]:
        """Every sequence, the shortest first."""
        if self.domain is not None:
            yield from (tuple(self.vocab[i] for i in row) for ids in self.domain for row in ids.tolist())
            return
        for length in range(1, self.max_len + 1):
            yield from itertools.product(self.vocab, repeat=length)

    def all_ids(self) -> Iterator[np.ndarray]:
        """Every sequence as token ids `[batch, pos]`, in the same order, batches of one length each."""
        if self.domain is not None:
            for ids in self.domain:
                yield from np.split(ids, range(BATCH, len(ids), BATCH))
            return
        for length in range(1, self.max_len + 1):
            total = len(self.vocab) ** length
            for start in range(0, total, BATCH):
                numbers = np.arange(start, min(start + BATCH, total))
                yield np.stack(np.unravel_index(numbers, [len(self.vocab)] * length), axis=1)

    def sampled_ids(self, samples: int, seed: int) -> Iterator[np.ndarray]:
        """Random sequences as token ids `[batch, pos]`, the short first.

        Length and tokens are uniform; of a domain every sequence is as likely as any other.
        """
        rng = np.random.default_rng(seed)
        if self.domain is not None:
            drawn = np.sort(rng.integers(self.size, size=samples))
            ends = np.cumsum([len(ids) for ids in self.domain])
            for ids, end in zip(self.domain, ends.tolist(), strict=True):
                rows = ids[drawn[(end - len(ids) <= drawn) & (drawn < end)] - (end - len(ids))]
                yield from np.split(rows, range(BATCH, len(rows), BATCH)) if len(rows) else ()
            return
        lengths, counts = np.unique(rng.integers(1, self.max_len + 1, samples), return_counts=True)
        for length, count in zip(lengths.tolist(), counts.tolist(), strict=True):
            yield from np.split(rng.integers(len(self.vocab), size=(count, length)), range(BATCH, count, BATCH))

    def holds(self, ids: Sequence[int]) -> bool:
        """Whether a sequence of token ids is one of the space."""
        return self._domain is None or tuple(ids) in self._domain

    @cached_property
    def _domain(self) -> frozenset[tuple[int, ...]] | None:
        return (
            None if self.domain is None else frozenset(tuple(row) for ids in self.domain for row in ids.tolist())
        )

    @cached_property
    def _id_of(self) -> dict[tuple[Any, ...], int]:
        return {value_key(token): i for i, token in enumerate(self.vocab)}

    def ids(self, tokens: Sequence[Value]) -> list[int]:
        """The ids of a sequence.

        Raises:
            RaspLensError: If it is empty, too long, or holds a token outside the vocabulary.
            UndefinedValue: If it lies outside the domain.
        """
        if not 1 <= len(tokens) <= self.max_len:
            raise RaspLensError(
                f"The sequence has {len(tokens)} tokens; the model takes 1 to max_len={self.max_len}."
            )
        known = self._id_of
        for position, token in enumerate(tokens):
            if not isinstance(token, Hashable) or value_key(plain(token)) not in known:
                raise RaspLensError(
                    f"Token {token!r} at position {position} is not in the vocabulary "
                    f"({', '.join(map(repr, self.vocab[:8]))}{', …' if len(self.vocab) > 8 else ''})."
                )
        ids = [known[value_key(plain(token))] for token in tokens]
        if not self.holds(ids):
            raise UndefinedValue(
                f"{list(tokens)} is not one of the {self.size:,} sequences of `domain`. Compile again with it."
            )
        return ids

    def within(self, domain: Iterable[Sequence[Value]]) -> "InputSpace":
        """The space of some of its sequences alone, each of them once.

        Raises:
            RaspLensError: If there is none, or one does not fit.
        """
        given = sorted({tuple(self.ids(tuple(tokens))) for tokens in domain}, key=lambda ids: (len(ids), ids))
        if not given:
            raise RaspLensError("`domain` must contain at least one sequence; omit it to allow all.")
        by_length = (np.array(list(same)) for _, same in itertools.groupby(given, key=len))
        return replace(self, domain=tuple(by_length))


def input_space(
    vocab: Sequence[Value] | set[Value] | frozenset[Value],
    max_len: int,
    causal: bool = False,
    mask: np.ndarray | None = None,
) -> InputSpace:
    """The input space over a vocabulary; see `InputSpace`."""
    expect(vocab, Iterable, "vocab must be a sequence or a set of tokens, such as ['a', 'b']")
    expect(max_len, int | np.integer, "max_len must be a whole number, the length of the longest sequence")
    if max_len < 1:
        raise RaspLensError(f"max_len must be at least 1; got {max_len}.")
    if mask is not None:
        mask = np.asarray(mask)
        if mask.dtype != bool:
            raise RaspLensError(f"mask must be boolean; got {mask.dtype}.")
    if isinstance(vocab, set | frozenset):
        vocab = sorted(vocab, key=lambda token: (type(token).__name__, _rank(token)))
    visible = visibility(max_len, causal, mask)
    visible.flags.writeable = False
    return InputSpace(tuple(plain(token) for token in vocab), max_len, visible)


def _rank(value: Value) -> tuple[Any, ...]:
    """Return a sort key for values, None and values of several types inside tuples too."""
    if isinstance(value, tuple):
        return (3, tuple(map(_rank, value)))
    if value is None or isinstance(value, str):
        return (0, "") if value is None else (2, value)
    return (1, value)


def batches(sequences: Iterable[Sequence[Value]]) -> Iterator[list[Sequence[Value]]]:
    """The sequences in batches of one length each, in their order; those of one length must follow each other."""
    for _, same_length in itertools.groupby(sequences, key=len):
        while batch := list(itertools.islice(same_length, BATCH)):
            yield batch
