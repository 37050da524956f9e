"""Files that are damaged at random, and values in them that are forged."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import safetensors.numpy

from rasplens.model.storage import checksum, read_safetensors

JUNK = (
    None,
    True,
    False,
    -1,
    0,
    3,
    10**30,
    1e308,
    0.5,
    "",
    "x",
    "Map",
    [],
    {},
    [[0]],
    {"tuple": [1]},
    ["x"],
    {"x": 1},
)
"""What stands where something else should."""


def damaged(content: bytes, rng: np.random.Generator) -> bytes:
    """The bytes of a file with one thing changed."""
    at, to = sorted(int(place) for place in rng.integers(len(content) + 1, size=2))
    near = min(at + int(rng.integers(1, 20)), len(content))
    noise = rng.bytes(near - at)
    flipped = bytes([content[at % len(content)] ^ (1 << int(rng.integers(8)))])
    return [
        content[:at] + flipped + content[at + 1 :],
        content[:at],
        content[:at] + content[near:],
        content[:at] + noise + content[near:],
        content[:at] + noise + content[at:],
        content[:at] + bytes(near - at) + content[near:],
        content[:to] + content[at:near] + content[to:],
    ][rng.integers(7)]


def forged(values: object, rng: np.random.Generator) -> object:
    """JSON values with one of them changed; the same chance for each level of nesting."""
    values = copy.deepcopy(values)
    holders = list(_places(values, 0))
    depth = rng.choice(sorted({depth for depth, *_ in holders}))
    _, holder, key = [place for place in holders if place[0] == depth][
        rng.integers(sum(h[0] == depth for h in holders))
    ]
    change = rng.integers(4)
    if change == 0:
        del holder[key]
    elif change == 1 and isinstance(holder[key], bool | int | float):
        holder[key] = [-holder[key], holder[key] + 1, holder[key] * 10**6, str(holder[key])][rng.integers(4)]
    elif change == 2 and isinstance(holder, list):
        holder.append(copy.deepcopy(holder[key]))
    else:
        holder[key] = copy.deepcopy(JUNK[rng.integers(len(JUNK))])
    return values


def _places(values: object, depth: int) -> Iterator[tuple[int, object, object]]:
    keys = values if isinstance(values, dict) else range(len(values)) if isinstance(values, list) else ()
    for key in list(keys):
        yield depth, values, key
        yield from _places(values[key], depth + 1)


def write_forged(path: Path, key: str, rng: np.random.Generator) -> None:
    """Changes a value in the header of a safetensors file, and makes the checksum right."""
    metadata, tensors = read_safetensors(path)
    header = json.loads(metadata[key])
    del header["checksum"]
    header = forged(header, rng)
    header["checksum"] = checksum(header, tensors)
    path.write_bytes(safetensors.numpy.save(tensors, metadata={key: json.dumps(header)}))
