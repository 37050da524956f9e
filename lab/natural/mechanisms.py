"""The mechanisms: for each a small task, and the RASP programs that its trained models may implement.

The first program is the one believed before anything was measured. Every program gives the task's answers; a test
holds this against the interpreter. Which of them a trained model implements is for `truth.py` to say.

    from lab.natural.mechanisms import MECHANISMS, get_mechanism
    mechanism = get_mechanism("induction")
    mechanism.task, mechanism.programs, mechanism.compile("induction")
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from lab.programs import averaging, ordering, recalling
from lab.programs.counting import count, depth_by_looking
from lab.programs.looking import (
    counted,
    opposite_by_gathering,
    opposite_by_looking,
    palindrome,
    palindrome_so_far,
    previous_equal_by_gathering,
)
from lab.programs.moving import fetched, relayed
from lab.programs.selectors import EARLIER, ONE_BACK, SAME, always, backwards, before, holds
from rasplens.compile import CompiledModel, compile_program
from rasplens.compile.rasp import SOp, Value, programs, tokens
from rasplens.model import bidirectional_mask, causal_mask
from rasplens.tasks import Task
from rasplens.tasks.splits import held_out_by_hash, held_out_inputs

N_HELD_OUT = 500

Rng = np.random.Generator
Draw = Callable[[Rng, int], np.ndarray]
Target = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True, eq=False)
class Mechanism:
    """A task whose solution is a mechanism.

    Attributes:
        name: The mechanism's.
        task: What models are trained on; its programs are all that may be implemented, the believed one first.
        n_layers: How many layers it is trained with.
        causal: Whether positions see only the past.
        attention_only: Whether it is worth training without MLPs.
    """

    name: str
    task: Task
    n_layers: int
    causal: bool
    attention_only: bool

    @property
    def programs(self) -> Mapping[str, SOp]:
        """The programs, the believed one first."""
        return self.task.programs

    def compile(self, program: str) -> CompiledModel:
        """One of the programs as a transformer for this task."""
        return compile_program(
            self.programs[program],
            self.task.vocab,
            self.task.n_ctx,
            mask=self.task.visible,
            partial="allow",
        )


def _mechanism(
    name: str,
    vocab: Sequence[Value],
    outputs: Sequence[Value],
    length: int,
    draw: Draw,
    target: Target,
    read_at: Sequence[int],
    programs: Sequence[SOp],
    *,
    n_layers: int = 1,
    causal: bool = False,
    attention_only: bool = True,
) -> Mechanism:
    """A mechanism from its inputs and answers; `target` gives answers at every position, read at some."""
    positions = tuple(read_at)
    task = Task(
        name=name,
        vocab=tuple(vocab),
        outputs=tuple(outputs),
        positions=tuple(str(i) for i in range(length)),
        mask=lambda n: (causal_mask if causal else bidirectional_mask)(n, length),
        draw=draw,
        is_held_out=held_out_by_hash,
        target=lambda ids: target(np.asarray(ids))[:, list(positions)],
        loss_positions=positions,
        held_out=held_out_inputs(draw, held_out_by_hash, N_HELD_OUT),
        programs={program.name: program for program in programs},
    )
    return Mechanism(name, task, n_layers, causal, attention_only)


def _uniform(n_tokens: int, length: int) -> Draw:
    return lambda rng, n: rng.integers(0, n_tokens, (n, length))


def _letters(n_tokens: int, length: int, with_start: bool) -> Draw:
    """Uniform letters, behind a start token if there is one: the token after the letters."""

    def draw(rng: Rng, n: int) -> np.ndarray:
        start = np.full((n, int(with_start)), n_tokens)
        return np.concatenate([start, rng.integers(0, n_tokens, (n, length))], axis=1)

    return draw


def _reverse() -> Mechanism:
    length, vocab = 6, "abcdef"
    return _mechanism(
        "reverse", vocab, vocab, length, _uniform(len(vocab), length), lambda ids: ids[:, ::-1],
        range(length),
        [
            fetched(tokens, backwards(length), "reverse"),
            relayed(before(-1, length), backwards(length, -1), "following", "reverse_by_relay", fetched),
        ],
    )  # fmt: skip


def _previous() -> Mechanism:
    length, vocab = 8, "abcdef"
    return _mechanism(
        "previous", vocab, vocab, length, _uniform(len(vocab), length), lambda ids: np.roll(ids, 1, axis=1),
        range(1, length),
        [
            fetched(tokens, before(1, length), "previous"),
            relayed(before(-1, length), before(2, length), "following", "previous_by_relay", fetched),
        ],
    )  # fmt: skip


def _first() -> Mechanism:
    length, vocab = 8, "abcdef"
    return _mechanism(
        "first", vocab, vocab, length, _uniform(len(vocab), length),
        lambda ids: np.repeat(ids[:, :1], length, axis=1),
        range(1, length),
        [
            fetched(tokens, always(0), "first"),
            relayed(before(1, length), always(1), "before", "first_by_relay", fetched),
        ],
    )  # fmt: skip


def _ends() -> Mechanism:
    """First and last token are equal: a model may read either, or both."""
    length, vocab = 7, "abcdef"

    def draw(rng: Rng, n: int) -> np.ndarray:
        ids = rng.integers(0, len(vocab), (n, length))
        ids[:, -1] = ids[:, 0]
        return ids

    return _mechanism(
        "ends", vocab, vocab, length, draw, lambda ids: np.repeat(ids[:, :1], length, axis=1),
        range(1, length - 1), [fetched(tokens, always(0), "first"), fetched(tokens, always(length - 1), "last")],
    )  # fmt: skip


def _previous_equal(with_start: bool) -> Mechanism:
    """Half of the tokens repeat the one before; a start token gives attention somewhere to go."""
    n_letters, letters = 8, "abcd"
    vocab = (*letters, "START") if with_start else tuple(letters)
    length = n_letters + with_start

    def draw(rng: Rng, n: int) -> np.ndarray:
        ids = rng.integers(0, len(letters), (n, n_letters))
        for i in range(1, n_letters):
            other = (ids[:, i - 1] + rng.integers(1, len(letters), n)) % len(letters)
            ids[:, i] = np.where(rng.random(n) < 0.5, ids[:, i - 1], other)
        return np.concatenate([np.full((n, int(with_start)), len(letters)), ids], axis=1)

    def target(ids: np.ndarray) -> np.ndarray:
        return (ids == np.roll(ids, 1, axis=1)).astype(int)

    return _mechanism(
        "previous_equal_start" if with_start else "previous_equal", vocab, (False, True), length, draw, target,
        range(1 + with_start, length),
        [
            previous_equal_by_gathering(),
            counted(SAME & ONE_BACK, "previous_equal_by_looking", "hits"),
        ],
        causal=True,
    )  # fmt: skip


def _duplicate(with_start: bool) -> Mechanism:
    """Whether a token has occurred before; a start token gives attention somewhere to go if it has not."""
    letters, n_letters = "abcdefgh", 8
    vocab = (*letters, "START") if with_start else tuple(letters)
    length = n_letters + with_start

    def target(ids: np.ndarray) -> np.ndarray:
        equal = ids[:, :, None] == ids[:, None, :]
        return (equal & np.tri(length, k=-1, dtype=bool)).any(axis=2).astype(int)

    return _mechanism(
        "duplicate_start" if with_start else "duplicate", vocab, (False, True), length,
        _letters(len(letters), n_letters, with_start), target, range(1 + with_start, length),
        [counted(SAME & EARLIER, "duplicate_by_looking", "hits"), averaging.duplicate_by_averaging(vocab)],
        causal=True,
    )  # fmt: skip


def _induction() -> Mechanism:
    """Six different tokens, then three of the first five in any order: each at an offset of its own."""
    block, asked, vocab = 6, 3, "abcdefgh"
    length = block + asked

    def draw(rng: Rng, n: int) -> np.ndarray:
        ids = rng.permuted(np.tile(np.arange(len(vocab)), (n, 1)), axis=1)[:, :block]
        places = rng.permuted(np.tile(np.arange(block - 1), (n, 1)), axis=1)[:, :asked]
        return np.concatenate([ids, np.take_along_axis(ids, places, axis=1)], axis=1)

    def target(ids: np.ndarray) -> np.ndarray:
        place = (ids[:, None, :block] == ids[:, :, None]).argmax(axis=2)
        return np.take_along_axis(ids, np.minimum(place + 1, block - 1), axis=1)

    return _mechanism(
        "induction", vocab, vocab, length, draw, target, range(block, length),
        [recalling.induction(), recalling.induction_by_pointer()], n_layers=2, causal=True,
    )  # fmt: skip


def _histogram(with_start: bool) -> Mechanism:
    """Counts of tokens; with a start token, softmax attention can count what it looks at."""
    letters, n_letters = "abcde", 6
    vocab = (*letters, "START") if with_start else tuple(letters)
    length = n_letters + with_start

    def target(ids: np.ndarray) -> np.ndarray:
        return (ids[:, :, None] == ids[:, None, :]).sum(axis=2) - 1

    return _mechanism(
        "histogram_start" if with_start else "histogram", vocab, tuple(range(1, n_letters + 1)), length,
        _letters(len(letters), n_letters, with_start),
        target, range(int(with_start), length),
        [count(SAME, "histogram_by_looking"), averaging.histogram_by_averaging(vocab, length)],
        attention_only=with_start,
    )  # fmt: skip


def _lookup() -> Mechanism:
    """Three pairs of a key and a value in any order, then a key."""
    keys, values = "abc", "012"
    pairs, queries = tuple(k + v for k in keys for v in values), tuple(keys)
    vocab = (*pairs, *queries)

    def draw(rng: Rng, n: int) -> np.ndarray:
        order = rng.permuted(np.tile(np.arange(len(keys)), (n, 1)), axis=1)
        carried = rng.integers(0, len(values), (n, len(keys)))
        asked = rng.integers(0, len(keys), (n, 1))
        return np.concatenate([order * len(values) + carried, len(pairs) + asked], axis=1)

    def target(ids: np.ndarray) -> np.ndarray:
        found = (ids[:, :-1] // len(values) == ids[:, -1:] - len(pairs)).argmax(axis=1)
        answer = np.take_along_axis(ids, found[:, None], axis=1) % len(values)
        return np.repeat(answer, ids.shape[1], axis=1)

    length = len(keys) + 1
    return _mechanism(
        "lookup", vocab, tuple(values), length, draw, target, [length - 1],
        [
            recalling.lookup_by_matching(lambda token: token[0], lambda token: token[1:]),
            averaging.lookup_by_averaging(pairs, queries),
        ],
    )  # fmt: skip


def _different(rng: Rng, n: int, n_tokens: int, length: int) -> np.ndarray:
    return rng.permuted(np.tile(np.arange(n_tokens), (n, 1)), axis=1)[:, :length]


def _sort() -> Mechanism:
    length, vocab = 5, tuple(range(8))
    return _mechanism(
        "sort", vocab, vocab, length, lambda rng, n: _different(rng, n, len(vocab), length),
        lambda ids: np.sort(ids, axis=1), range(length),
        [ordering.sort_by_ranking(), averaging.sort_by_averaging(vocab)], n_layers=2, attention_only=False,
    )  # fmt: skip


def _sort_listed() -> Mechanism:
    """Different numbers, a marker, and the numbers in order, written one by one."""
    size, numbers = 4, tuple(range(8))
    vocab, length = (*numbers, "THEN"), 2 * size

    def draw(rng: Rng, n: int) -> np.ndarray:
        listed = _different(rng, n, len(numbers), size)
        marker = np.full((n, 1), len(numbers))
        return np.concatenate([listed, marker, np.sort(listed, axis=1)[:, :-1]], axis=1)

    def target(ids: np.ndarray) -> np.ndarray:
        return np.concatenate([ids[:, :size], np.sort(ids[:, :size], axis=1)], axis=1)

    return _mechanism(
        "sort_listed", vocab, numbers, length, draw, target, range(size, length),
        [programs.next_larger(), averaging.next_larger_by_averaging(numbers, "THEN")], causal=True,
    )  # fmt: skip


def _majority() -> Mechanism:
    length = 9

    def target(ids: np.ndarray) -> np.ndarray:
        return np.repeat((ids == 0).sum(axis=1, keepdims=True) > length // 2, length, axis=1).astype(int)

    return _mechanism(
        "majority", "ab", (False, True), length, _uniform(2, length), target, range(length),
        [
            averaging.majority_by_averaging(),
            counted(holds("a"), "majority_by_looking", "hits", more_than=length // 2),
        ],
    )  # fmt: skip


def _depth() -> Mechanism:
    """Brackets that are never closed more often than opened."""
    length = 12

    def draw(rng: Rng, n: int) -> np.ndarray:
        ids, depth = np.zeros((n, length), dtype=int), np.zeros(n, dtype=int)
        for i in range(length):
            ids[:, i] = (rng.random(n) < 0.5) & (depth > 0)
            depth += 1 - 2 * ids[:, i]
        return ids

    return _mechanism(
        "depth", "()", tuple(range(length + 1)), length, draw, lambda ids: (1 - 2 * ids).cumsum(axis=1),
        range(length),
        [averaging.total_so_far(averaging.sign("(", ")"), "mean_sign", "depth_by_averaging"), depth_by_looking()],
        causal=True, attention_only=False,
    )  # fmt: skip


def _palindrome() -> Mechanism:
    """Half are palindromes, the others differ from one in a pair or two."""
    length, vocab = 6, "abcd"

    def draw(rng: Rng, n: int) -> np.ndarray:
        ids = rng.integers(0, len(vocab), (n, length))
        ids[:, length // 2 :] = ids[:, : length // 2][:, ::-1]
        for _ in range(2):
            place, change = rng.integers(0, length, n), rng.integers(0, len(vocab), n)
            rows = np.flatnonzero(rng.random(n) < 0.45)
            ids[rows, place[rows]] = change[rows]
        return ids

    def target(ids: np.ndarray) -> np.ndarray:
        return np.repeat((ids == ids[:, ::-1]).all(axis=1)[:, None], length, axis=1).astype(int)

    return _mechanism(
        "palindrome", vocab, (False, True), length, draw, target, range(length),
        [
            palindrome(opposite_by_gathering(length), "palindrome_by_gathering"),
            palindrome(opposite_by_looking(length), "palindrome_by_looking"),
        ], n_layers=2, attention_only=False,
    )  # fmt: skip


def _palindrome_so_far() -> Mechanism:
    """A palindrome or not as above, then a question mark that is asked about it: each pair is seen once."""
    length, letters = 6, "abcd"
    vocab = (*letters, "?")
    whole = _palindrome().task

    def draw(rng: Rng, n: int) -> np.ndarray:
        return np.concatenate([whole.draw(rng, n), np.full((n, 1), len(letters))], axis=1)

    def target(ids: np.ndarray) -> np.ndarray:
        answer = (ids[:, :length] == ids[:, :length][:, ::-1]).all(axis=1)
        return np.repeat(answer[:, None], length + 1, axis=1).astype(int)

    return _mechanism(
        "palindrome_so_far", vocab, (False, True), length + 1, draw, target, [length],
        [
            palindrome_so_far(opposite_by_gathering(length), length, "palindrome_so_far_by_gathering"),
            palindrome_so_far(opposite_by_looking(length), length, "palindrome_so_far_by_looking"),
        ],
        n_layers=2, causal=True, attention_only=False,
    )  # fmt: skip


def _next_larger() -> Mechanism:
    """Different numbers, then others: for each of these, the smallest listed one that is larger."""
    size, asked, numbers = 4, 3, tuple(range(8))

    def draw(rng: Rng, n: int) -> np.ndarray:
        listed = _different(rng, n, len(numbers), size)
        below = rng.integers(0, listed.max(axis=1, keepdims=True), (n, asked))
        return np.concatenate([listed, below], axis=1)

    def target(ids: np.ndarray) -> np.ndarray:
        listed = np.broadcast_to(ids[:, None, :size], (len(ids), ids.shape[1], size))
        larger = np.where(listed > ids[:, :, None], listed, len(numbers))
        return np.minimum(larger.min(axis=2), len(numbers) - 1)

    return _mechanism(
        "next_larger", numbers, numbers, size + asked, draw, target, range(size, size + asked),
        [ordering.next_larger_listed(size), averaging.next_larger_listed_by_averaging(numbers, size)],
    )  # fmt: skip


MECHANISMS: Mapping[str, Callable[[], Mechanism]] = {
    "reverse": _reverse,
    "previous": _previous,
    "first": _first,
    "ends": _ends,
    "previous_equal": lambda: _previous_equal(with_start=False),
    "previous_equal_start": lambda: _previous_equal(with_start=True),
    "duplicate": lambda: _duplicate(with_start=False),
    "duplicate_start": lambda: _duplicate(with_start=True),
    "induction": _induction,
    "histogram": lambda: _histogram(with_start=False),
    "histogram_start": lambda: _histogram(with_start=True),
    "lookup": _lookup,
    "sort": _sort,
    "sort_listed": _sort_listed,
    "next_larger": _next_larger,
    "majority": _majority,
    "depth": _depth,
    "palindrome": _palindrome,
    "palindrome_so_far": _palindrome_so_far,
}
"""How each mechanism is built."""


@cache
def get_mechanism(name: str) -> Mechanism:
    """A mechanism by name.

    Raises:
        ValueError: If there is none of that name.
    """
    if name not in MECHANISMS:
        raise ValueError(f"There is no mechanism {name!r}; there are {', '.join(MECHANISMS)}.")
    return MECHANISMS[name]()
