"""Layouts of inputs, written as templates: `"BOS {x:6} SEP {y:6}"` is BOS, six tokens x1 to x6, SEP, y1 to y6."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rasplens.compile.rasp import Value
from rasplens.errors import RaspLensError

FIELD = re.compile(r"\{(?P<name>[A-Za-z_]\w*)(?::(?P<length>\d+))?\}")
"""A field of a template: `{x:6}`, or `{x}` for one token."""


@dataclass(frozen=True)
class Layout:
    """What stands where in an input.

    Attributes:
        template: As it was written.
        fixed: By position, the token that always stands there.
        fields: By name, the positions of a field, in its order.
        positions: A printable name for each position.
    """

    template: str
    fixed: Mapping[int, str]
    fields: Mapping[str, range]
    positions: tuple[str, ...]

    def filled(self, values: Mapping[str, Sequence[Value]]) -> list[Value]:
        """An input, from what stands in its fields.

        Raises:
            RaspLensError: If a field is missing, or has another length.
        """
        tokens: list[Value] = [self.fixed.get(position) for position in range(len(self.positions))]
        for name, places in self.fields.items():
            if name not in values:
                raise RaspLensError(
                    f"The layout {self.template!r} needs {name!r}; got {', '.join(values) or 'none'}."
                )
            if len(values[name]) != len(places):
                raise RaspLensError(
                    f"{name!r} takes {len(places)} tokens in {self.template!r}; got {len(values[name])}."
                )
            for place, value in zip(places, values[name], strict=True):
                tokens[place] = value
        return tokens

    def read(self, tokens: Sequence[Value]) -> dict[str, tuple[Value, ...]]:
        """What stands in the fields of an input."""
        return {name: tuple(tokens[place] for place in places) for name, places in self.fields.items()}


def parse_layout(template: str) -> Layout:
    """The layout of a template: fixed tokens and fields, with spaces between them.

    Raises:
        RaspLensError: If it is empty, a part is neither a token nor a field, or a field stands there twice.
    """
    fixed: dict[int, str] = {}
    fields: dict[str, range] = {}
    names: list[str] = []
    for part in template.split():
        found = FIELD.fullmatch(part)
        if found is None and ("{" in part or "}" in part):
            raise RaspLensError(
                f"{part!r} in the layout {template!r} is no field. Write {{x:6}}, with spaces around."
            )
        if found is None:
            fixed[len(names)] = part
            names.append(part if part not in names else f"{part}{len(names)}")
            continue
        name, length = found["name"], int(found["length"] or 1)
        if name in fields or not length:
            what = "stands there twice" if name in fields else "takes no token"
            raise RaspLensError(f"The field {name!r} of the layout {template!r} {what}.")
        fields[name] = range(len(names), len(names) + length)
        names += [name] if length == 1 else [f"{name}{i + 1}" for i in range(length)]
    if not fields:
        raise RaspLensError(f"The layout {template!r} has no field, such as {{x:6}}.")
    return Layout(template, fixed, fields, tuple(names))


def read_positions(layout: Layout, read: str | Sequence[str]) -> tuple[int, ...]:
    """The positions at which answers are read; see `build_task`.

    Raises:
        RaspLensError: If it names no position.
    """
    n = len(layout.positions)
    if isinstance(read, str):
        kind, _, name = read.partition(" ")
        if read in ("every", "last"):
            return tuple(range(n)) if read == "every" else (n - 1,)
        if kind == "after" and name in layout.positions:
            return tuple(range(layout.positions.index(name), n))
        if kind == "before" and name in layout.fields and layout.fields[name].start:
            return tuple(place - 1 for place in layout.fields[name])
        read = (read,)
    unknown = [name for name in read if name not in layout.positions]
    if unknown or not read:
        wrong = f"at {unknown[0]!r}" if unknown else "nowhere"
        raise RaspLensError(
            f"Answers cannot be read {wrong}. Say every, last, after TOKEN, before FIELD, or names of positions: "
            f"{', '.join(layout.positions)}."
        )
    return tuple(sorted(layout.positions.index(name) for name in read))
