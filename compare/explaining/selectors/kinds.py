"""What a head tells apart: kinds of keys and of queries, read off its scores beside a start token's.

Queries meet keys, also those of other inputs. Keys that the same queries select are of one kind, and queries that
select the same keys. A kind is a function of variables that are known: of two or three, if an MLP made something
of them. It has to tell the kind also where heads leave what they leave on other inputs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from jaxtyping import Bool, Float, Int

from rasplens.compare.claims.edges.attention_scores import of_heads, scale_of_scores, why_not_patchable
from rasplens.compare.explaining.crossed import Crossed
from rasplens.compare.explaining.known import Inputs, Known, table_text
from rasplens.compare.explaining.sample import NEAR_START
from rasplens.compile.rasp import Value
from rasplens.compile.rasp.batch_interpreter import UNDEFINED

MOST_KINDS = 12
"""A head that tells more apart has no kinds."""

MOST_READ = 3
"""Variables that tell a kind, at most."""

MOST_ENTRIES = 200
"""Combinations of their values that are met, at most."""

TOLD, TOLD_CROSSED = 0.999, 0.97
"""Share of the keys, or queries, whose kind variables must tell: on the sample, and where it is crossed."""

FIRST, SECOND = 10**8, 10**4
"""What the sample itself tells counts so much, and the sample crossed within a position; across positions one."""

MOST_MET = 600
"""Queries that keys meet, and keys that queries meet, at most."""

Codes = Int[np.ndarray, "run input pos"]


@dataclass(frozen=True, eq=False)
class Kinds:
    """The keys and the queries that a head tells apart: on the sample, and on the sample crossed.

    Attributes:
        crossed: What earlier heads leave comes from other inputs.
        keys: The kind of each key; -1 where none is seen.
        queries: The kind of each query; -1 where none matters.
        selected: Which kinds of keys each kind of queries selects.
    """

    crossed: Crossed
    keys: Codes
    queries: Codes
    selected: Bool[np.ndarray, "query key"]


def kinds(crossed: Crossed, layer: int, head: int, rows: Sequence[int]) -> Kinds | None:
    """The kinds of keys and queries of a head; None without a start token, or if they are many.

    Args:
        crossed: The sample, where what earlier heads leave comes from other inputs.
        layer: The head's.
        head: Its place there.
        rows: The queries that matter.
    """
    studied = crossed.sample.studied
    places = list(studied.vocabulary.positions)
    if not places[0] or why_not_patchable(studied):
        return None
    seen = np.flatnonzero(studied.task.visible[rows].any(axis=0))
    query, key = (_of_both(crossed, layer, letter, head) for letter in "qk")
    query = query * scale_of_scores(studied, layer)
    start = np.einsum("rikd,risd->riks", query, key[:, :, : places[0]]).max(axis=3)
    own = np.einsum("iqd,ikd->iqk", query[0][:, places], key[0][:, places]) - start[0][:, places, None]
    least = min(NEAR_START * float(own[:, studied.task.visible].min()), -1.0)
    query, start, key = (
        query[:, :, places][:, :, rows],
        start[:, :, places][:, :, rows],
        key[:, :, places][:, :, seen],
    )
    flat_query, flat_key = (one.reshape(-1, one.shape[-1]) for one in (query, key))
    threshold = start.reshape(-1, 1) + least
    rng = np.random.default_rng(0)
    some_queries, some_keys = (rng.permutation(len(one))[:MOST_MET] for one in (flat_query, flat_key))
    of_queries = _alike(flat_query @ flat_key[some_keys].T > threshold)
    of_keys = _alike((flat_query[some_queries] @ flat_key.T > threshold[some_queries]).T)
    if max(of_queries.max(), of_keys.max()) >= MOST_KINDS:
        return None
    first_query, first_key = (np.unique(one, return_index=True)[1] for one in (of_queries, of_keys))
    selected = flat_query[first_query] @ flat_key[first_key].T > threshold[first_query]
    keys, queries = np.full((2, *key.shape[:2], len(places)), -1)
    keys[:, :, seen], queries[:, :, rows] = of_keys.reshape(key.shape[:3]), of_queries.reshape(query.shape[:3])
    return Kinds(crossed, keys, queries, selected)


def _of_both(crossed: Crossed, layer: int, letter: str, head: int) -> Float[np.ndarray, "run input ctx d_head"]:
    """A head's queries or keys on the sample, and on the sample crossed."""
    own = of_heads(crossed.sample.studied, layer, letter)
    return np.stack([own, crossed.of_heads(layer, letter) if crossed.made else own])[:, :, :, head]


def _alike(rows: Bool[np.ndarray, "row column"]) -> Int[np.ndarray, " row"]:
    """A number for each row, the same for rows that are equal."""
    packed = np.ascontiguousarray(np.packbits(rows, axis=1))
    whole = packed.view(np.dtype((np.void, packed.shape[1]))).ravel()
    return np.unique(whole, return_inverse=True)[1]


@dataclass(frozen=True, eq=False)
class Told:
    """Variables that tell a kind.

    Attributes:
        known: The kind as a variable.
        read: The variables that tell it.
        kinds: The kind of each combination of their values that occurs.
    """

    known: Known
    read: tuple[Known, ...]
    kinds: Mapping[tuple[Value, ...], int]


def told_by(inputs: Inputs, known: Sequence[Known], crossed: Crossed, kind: Codes, name: str) -> Told | None:
    """A kind as a function of the fewest variables that tell it; None if no three of them do.

    Args:
        inputs: The sample, as programs see it.
        known: The variables.
        crossed: The sample crossed.
        kind: The kinds on both; -1 where they do not matter.
        name: Of the variable.
    """
    readable = {one: codes for one in known if (codes := crossed.codes(one)) is not None}
    weights, within = np.ones_like(kind), ~crossed.moved
    weights[0], weights[1, within] = FIRST, SECOND
    for size in range(1, MOST_READ + 1):
        for read in combinations(readable, size):
            sizes = [len(one.values) for one in read]
            codes = np.stack([(one.codes, readable[one]) for one in read])  # [variable, run, input, pos]
            asked = (kind >= 0) & (codes > UNDEFINED).all(axis=0)
            if (asked[0] != (kind[0] >= 0)).any():
                continue
            met, place = np.unique(np.ravel_multi_index(codes[:, asked], sizes), return_inverse=True)
            counts = np.zeros((len(met), kind.max() + 1), dtype=np.int64)
            np.add.at(counts, (place, kind[asked]), weights[asked])
            told = np.zeros(kind.shape, dtype=bool)
            told[asked] = counts.argmax(axis=1)[place] == kind[asked]
            shares = told[0][asked[0]].mean(), told[1, within][asked[1, within]].mean()
            if len(met) > MOST_ENTRIES or shares[0] < TOLD or shares[1] < TOLD_CROSSED:
                continue
            common = int(np.bincount(kind[asked]).argmax())
            of = np.array(np.unravel_index(met, sizes)).T
            each = [tuple(one.values[code] for one, code in zip(read, row, strict=True)) for row in of]
            entries = dict(zip(each, counts.argmax(axis=1).tolist(), strict=True))
            kept = {values: code for values, code in entries.items() if code != common}
            found = inputs.define(name, table_text(kept, common, read), read, size + 0.02 * len(kept))
            return None if found is None else Told(found, read, entries)
    return None
