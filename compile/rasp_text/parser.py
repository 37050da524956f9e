"""From text to a syntax tree. Nothing is run."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rasplens.compile.errors import RaspTextError
from rasplens.compile.rasp_text.bounds import LONGEST_TEXT
from rasplens.errors import meant

if TYPE_CHECKING:
    from lark import Lark, Tree

GRAMMAR = Path(__file__).with_name("grammar.lark")

SPELLED = {
    "NAME": "a name",
    "INT": "a number",
    "FLOAT": "a number",
    "STRING": "a string",
    "COMPARISON": "a comparison",
    "SIGN": "'+', '-'",
    "TIMES": "'*', '/'",
    "POWER": "'^'",
    "REMAINDER": "'%'",
    "_EXIT": "'exit'",
    "_S_OP": "'s-op'",
    "_SELECTOR": "'selector'",
    "_FULL_SEQ_DISPLAY": "'full seq display'",
    "$END": "the end",
}
"""How kinds of tokens are called in messages; others are spelled as they are written."""


WIDEST = 200
"""Characters of a line that an error shows."""


LONGEST_MESSAGE = 600
"""The longest error message, in characters: it quotes the text, which may be long."""


@dataclass(frozen=True)
class Source:
    """A text and where it comes from, to point into.

    Attributes:
        name: The file, or what stands for it.
        text: The text.
    """

    name: str
    text: str

    def error(self, message: str, at: Any) -> RaspTextError:
        """An error that points to a place: whatever has `line` and `column`, both from 1."""
        line, column = max(1, getattr(at, "line", 1)), max(1, getattr(at, "column", 1))
        lines = self.text.split("\n")
        first = max(0, column - WIDEST // 2)
        shown = lines[min(line, len(lines)) - 1].expandtabs(1)[first : first + WIDEST].rstrip()
        message = message if len(message) <= LONGEST_MESSAGE else f"{message[:LONGEST_MESSAGE]}…"
        return RaspTextError(f"{self.name}:{line}:{column}: {message}\n  {shown}\n  {' ' * (column - 1 - first)}^")


def parse(source: Source) -> Tree[Any]:
    """The syntax tree of a program.

    Raises:
        RaspTextError: If it is none, with file, line, column, and what was expected; or if it is too long.
    """
    if len(source.text) > LONGEST_TEXT:
        raise source.error(f"the text has {len(source.text):,} characters; the limit is {LONGEST_TEXT:,}.", None)
    from lark import UnexpectedCharacters, UnexpectedEOF, UnexpectedToken

    try:
        return _lark().parse(source.text)
    except UnexpectedToken as error:
        found = "the end of the file" if error.token.type == "$END" else f"{str(error.token)!r}"
        expected = _spelled(error.accepts or error.expected)
        raise source.error(
            f"{found} is not expected here; expected {expected}.{_hint(error.token, source)}", error
        ) from None
    except UnexpectedCharacters as error:
        match = re.compile(r"\w+|.", re.DOTALL).match(source.text, error.pos_in_stream or 0)
        word = "the end" if match is None else repr(match.group())
        unclosed = " A string must end with a quotation mark on the same line." if word == repr('"') else ""
        raise source.error(f"{word} is not expected here.{unclosed}", error) from None
    except UnexpectedEOF as error:
        raise source.error(f"the file ends too early; expected {_spelled(error.expected)}.", error) from None


def _called(before: str) -> str:
    """The name in front of the parenthesis that a text leaves open last; empty if there is none."""
    depth = 0
    for i in range(len(before) - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(before[i], 0)
        if depth < 0:
            match = re.search(r"\w+$", before[:i].rstrip())
            return "" if match is None else match.group()
    return ""


@cache
def _lark() -> Lark:
    from lark import Lark

    grammar = GRAMMAR.read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", propagate_positions=True, maybe_placeholders=True)


def _spelled(expected: Any) -> str:
    terminals = {terminal.name: terminal.pattern.value for terminal in _lark().terminals}
    words = {SPELLED.get(name) or f"'{terminals.get(name, name)}'" for name in expected}
    return ", ".join(sorted(words, key=lambda word: (word != "';'", len(word) > len("'x'"), word)))


def _hint(token: Any, source: Source) -> str:
    called = _called(source.text[: token.start_pos or 0])
    if token.type == "COMPARISON" and called != "select" and (near := meant(called, ["select"])):
        return f" There is no function {called!r}.{near}"
    if token == "if":
        return " A choice inside a choice needs parentheses: its meaning depends on their place."
    if token == "=":
        return " Use == to compare two values."
    return ""
