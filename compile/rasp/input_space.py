"""The inputs of a program: which tokens, how many of them, and which positions see which."""

import itertools
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from rasplens.compile.rasp.interpreter import visibility
from rasplens.compile.rasp.language import Value
from rasplens.compile.rasp.values import is_value, plain, value_key
from rasplens.errors import RaspLensError, expect

BATCH = 2_048
"""Sequences that are worked on at once."""


@dataclass(frozen=True, eq=False)
class InputSpace:
    """All sequences of 1 to `max_len` tokens of a vocabulary.

    Attributes:
        vocab: The tokens; a token's place is its id. A set is put in order, so that it gives the same
            model under any hash seed.
        max_len: The longest sequence.
        visible: Boolean `[query, key]` over `max_len` positions: what selectors may see.

    Raises:
        RaspLensError: If the vocabulary is empty, has duplicates or holds None, or max_len is below 1.
    """

    vocab: tuple[Value, ...]
    max_len: int
    visible: np.ndarray

    def __post_init__(self) -> None:
        if not self.vocab:
            raise RaspLensError("vocab must have at least one token.")
        if None in self.vocab:
            raise RaspLensError("None cannot be a token: it is RASP's undefined value.")
        if unknown := [token for token in self.vocab if not is_value(token)]:
            raise RaspLensError(
                f"A token is a bool, int, float, str or a tuple of those; got {unknown[0]!r}. Neither nan nor "
                "half of a surrogate pair is one."
            )
        if len({value_key(token) for token in self.vocab}) < len(self.vocab):
            twice = next(t for i, t in enumerate(self.vocab) if t in self.vocab[:i])
            raise RaspLensError(f"vocab must not repeat a token; {twice!r} stands there twice.")

    @property
    def size(self) -> int:
        """The number of sequences."""
        return sum(len(self.vocab) ** length for length in range(1, self.max_len + 1))

    def __iter__(self) -> Iterator[tuple[Value, ...]]:
        """Every sequence, the shortest first."""
        for length in range(1, self.max_len + 1):
            yield from itertools.product(self.vocab, repeat=length)

    def all_ids(self) -> Iterator[np.ndarray]:
        """Every sequence as token ids `[batch, pos]`, in the same order, batches of one length each."""
        for length in range(1, self.max_len + 1):
            total = len(self.vocab) ** length
            for start in range(0, total, BATCH):
                numbers = np.arange(start, min(start + BATCH, total))
                yield np.stack(np.unravel_index(numbers, [len(self.vocab)] * length), axis=1)

    def sampled_ids(self, samples: int, seed: int) -> Iterator[np.ndarray]:
        """Random sequences as token ids `[batch, pos]`, of uniform length and uniform tokens, the short first."""
        rng = np.random.default_rng(seed)
        lengths, counts = np.unique(rng.integers(1, self.max_len + 1, samples), return_counts=True)
        for length, count in zip(lengths.tolist(), counts.tolist(), strict=True):
            yield from np.split(rng.integers(len(self.vocab), size=(count, length)), range(BATCH, count, BATCH))

    @cached_property
    def _id_of(self) -> dict[tuple[Any, ...], int]:
        return {value_key(token): i for i, token in enumerate(self.vocab)}

    def ids(self, tokens: Sequence[Value]) -> list[int]:
        """The ids of a sequence.

        Raises:
            RaspLensError: If it is empty, too long, or holds a token outside the vocabulary.
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
        return [known[value_key(plain(token))] for token in tokens]


def input_space(
    vocab: Sequence[Value] | set[Value] | frozenset[Value],
    max_len: int,
    causal: bool = False,
    mask: np.ndarray | None = None,
) -> InputSpace:
    """The input space over a vocabulary; see `InputSpace`."""
    expect(vocab, Iterable, "vocab is a sequence or a set of tokens, such as ['a', 'b']")
    expect(max_len, int | np.integer, "max_len is a whole number, that of the longest sequence")
    if max_len < 1:
        raise RaspLensError(f"max_len must be at least 1; got {max_len}.")
    if mask is not None:
        mask = np.asarray(mask)
        if mask.dtype != bool:
            raise RaspLensError(f"mask must be boolean; got {mask.dtype}.")
    if isinstance(vocab, set | frozenset):
        vocab = sorted(vocab, key=lambda token: (type(token).__name__, token))
    visible = visibility(max_len, causal, mask)
    visible.flags.writeable = False
    return InputSpace(tuple(plain(token) for token in vocab), max_len, visible)


def batches(sequences: Iterable[Sequence[Value]]) -> Iterator[list[Sequence[Value]]]:
    """The sequences in batches of one length each, in their order; those of one length must follow each other."""
    for _, same_length in itertools.groupby(sequences, key=len):
        while batch := list(itertools.islice(same_length, BATCH)):
            yield batch
