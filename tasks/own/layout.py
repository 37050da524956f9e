"""Layouts of inputs, written as templates: `"BOS {x:6} SEP {y:6}"` is BOS, six tokens x1 to x6, SEP, y1 to y6."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from rasplens.compile.rasp import Value
from rasplens.errors import RaspLensError

FIELD = re.compile(r"\{(?P<name>[A-Za-z_]\w*)(?::(?P<least>\d+)(?:-(?P<most>\d+))?)?\}")
"""A field of a template: `{x:6}`, `{x:1-6}` for one to six tokens, or `{x}` for one."""

Spans = Mapping[str, range]
"""Where the parts of an input stand, by name."""


@dataclass(frozen=True)
class TemplatePart:
    """A fixed token or a field of a layout.

    Attributes:
        name: The field's, or what the token is called.
        token: What always stands there; None for a field.
        least: How many tokens a field has at least.
        most: And at most.
    """

    name: str
    token: str | None
    least: int = 1
    most: int = 1

    @property
    def is_variable(self) -> bool:
        """Whether inputs differ in its length."""
        return self.least < self.most


@dataclass(frozen=True)
class InputTemplate:
    """The places of tokens and fields in an input.

    Attributes:
        template: As it was written.
        parts: Tokens and fields in order, each by a name of its own.
    """

    template: str
    parts: tuple[TemplatePart, ...]

    @cached_property
    def fields(self) -> dict[str, TemplatePart]:
        """The fields, by name."""
        return {part.name: part for part in self.parts if part.token is None}

    @property
    def is_variable(self) -> bool:
        """Whether inputs differ in length."""
        return any(part.is_variable for part in self.parts)

    @cached_property
    def longest(self) -> Spans:
        """Where the parts of the longest input stand."""
        return self._spans([part.most for part in self.parts])

    def _spans(self, lengths: Sequence[int]) -> Spans:
        ends = [sum(lengths[: i + 1]) for i in range(len(lengths))]
        return {part.name: range(end - n, end) for part, n, end in zip(self.parts, lengths, ends, strict=True)}

    def names(self, spans: Spans) -> tuple[str, ...]:
        """A printable name for each position of an input."""
        of_parts = [
            [part.name] if part.most == 1 else [f"{part.name}{i + 1}" for i in range(len(spans[part.name]))]
            for part in self.parts
        ]
        return tuple(name for names in of_parts for name in names)

    def filled(self, values: Mapping[str, Sequence[Value]]) -> list[Value]:
        """An input, from what stands in its fields.

        Raises:
            RaspLensError: If a field is missing, has another length, or holds the token that ends it.
        """
        tokens: list[Value] = []
        for part in self.parts:
            if part.token is not None:
                tokens.append(part.token)
                continue
            if part.name not in values:
                given = ", ".join(values) or "none"
                raise RaspLensError(f"The layout {self.template!r} needs {part.name!r}; got {given}.")
            found = values[part.name]
            if not part.least <= len(found) <= part.most:
                wanted = f"{part.least} to {part.most}" if part.is_variable else f"{part.most}"
                raise RaspLensError(f"{part.name!r} takes {wanted} tokens in {self.template!r}; got {len(found)}.")
            if part.is_variable and self._end(part) in list(found):
                raise RaspLensError(
                    f"{part.name!r} must not contain {self._end(part)!r}, which ends it in {self.template!r}."
                )
            tokens += found
        return tokens

    def _end(self, part: TemplatePart) -> str | None:
        """The token behind a field, None at the end."""
        behind = self.parts[self.parts.index(part) + 1 :]
        return behind[0].token if behind else None

    def spans(self, tokens: Sequence[Value]) -> Spans | None:
        """Where the parts of an input stand; None if it is none of this layout."""
        lengths, at = [], 0
        for part in self.parts:
            n = part.most
            if part.is_variable:
                end, rest = self._end(part), list(tokens[at:])
                n = len(rest) if end is None or end not in rest else rest.index(end)
            is_other = part.token is not None and list(tokens[at : at + 1]) != [part.token]
            if is_other or not part.least <= n <= part.most:
                return None
            lengths.append(n)
            at += n
        return self._spans(lengths) if at == len(tokens) else None


def parse_layout(template: str) -> InputTemplate:
    """The layout of a template: fixed tokens and fields, with spaces between them.

    Raises:
        RaspLensError: If it is empty, a part is neither a token nor a field, a field occurs twice, or one of
            variable length is followed by another.
    """
    parts: list[TemplatePart] = []
    n = 0
    for text in template.split():
        found, names = FIELD.fullmatch(text), [part.name for part in parts]
        if found is None and ("{" in text or "}" in text):
            raise RaspLensError(
                f"{text!r} in the layout {template!r} is not a field. Write {{x:6}} or {{x:1-6}}, between spaces."
            )
        if found is None:
            part = TemplatePart(text if text not in names else f"{text}{n}", text)
        else:
            least = int(found["least"] or 1)
            part = TemplatePart(found["name"], None, least, int(found["most"] or least))
            if part.name in names or part.most < max(1, part.least):
                what = "occurs twice" if part.name in names else "takes no token"
                raise RaspLensError(f"The field {part.name!r} of the layout {template!r} {what}.")
            if parts and parts[-1].is_variable:
                raise RaspLensError(
                    f"In the layout {template!r} nothing marks the end of {parts[-1].name!r}: put a token there."
                )
        parts.append(part)
        n += part.most
    layout = InputTemplate(template, tuple(parts))
    if not layout.fields:
        raise RaspLensError(f"The layout {template!r} has no field, such as {{x:6}}.")
    return layout


def read_positions(
    layout: InputTemplate, read: str | Sequence[str], spans: Spans | None = None
) -> tuple[int, ...]:
    """The positions of an input at which answers are read; see `build_task`.

    Args:
        layout: Of the input.
        read: Where, in words.
        spans: Where its parts stand; by default those of the longest input.

    Raises:
        RaspLensError: If it names no position even of the longest input.
    """
    known, spans = layout.names(layout.longest), layout.longest if spans is None else spans
    names = layout.names(spans)
    n = len(names)
    if isinstance(read, str):
        kind, _, name = read.partition(" ")
        if read in ("every", "last"):
            return tuple(range(n)) if read == "every" else (n - 1,)
        if kind == "after" and name in known:
            return tuple(range(names.index(name), n)) if name in names else ()
        if kind == "before" and name in layout.fields and layout.longest[name].start:
            return tuple(place - 1 for place in spans[name])
        read = (read,)
    unknown = [name for name in read if name not in known]
    if unknown or not read:
        wrong = f"Answers cannot be read at {unknown[0]!r}" if unknown else "Answers must be read somewhere"
        raise RaspLensError(
            f"{wrong}. Use every, last, after TOKEN, before FIELD, or names of positions: {', '.join(known)}."
        )
    return tuple(sorted(names.index(name) for name in read if name in names))
