"""Vocabularies and lengths as they are written on the command line."""

from dataclasses import dataclass

from rasplens.compile.frontend.undefined_inputs import Partial
from rasplens.compile.rasp import Value
from rasplens.errors import RaspLensError

GIVEN = "--vocab, --max-len, --causal, --partial and --output"
"""The options that a task or a data file decides by itself."""


MOST_TOKENS = 1_000_000
"""The most tokens of a range, which is listed before anything is compiled."""

MOST_DIGITS = 4_300
"""The most digits that Python reads as a number."""


@dataclass(frozen=True)
class Sizes:
    """The settings that a program from a file needs beside itself; a task's programs bring theirs.

    Attributes:
        vocab: Its tokens, as `parse_vocab` reads them.
        max_len: The longest sequence.
        causal: Whether positions see only the past.
        partial: "forbid" or "allow" inputs on which it is undefined.
        output: Which s-op of a file in the RASP language; the last one by default.
    """

    vocab: str | None = None
    max_len: int | None = None
    causal: bool = False
    partial: Partial = "forbid"
    output: str | None = None

    @property
    def are_given(self) -> bool:
        """Whether any option was given."""
        return self != Sizes()

    def take_no_output(self) -> None:
        """Raises if --output names an s-op, and there is no RASP file.

        Raises:
            RaspLensError: If so.
        """
        if self.output is not None:
            raise RaspLensError("--output is for files in the RASP language; omit it.")

    def tokens(self, source: str, are_words: bool) -> list[Value]:
        """The vocabulary; strings throughout where tokens are words, as in the RASP language.

        Raises:
            RaspLensError: If it is not given, or holds nothing.
        """
        if self.vocab is None:
            raise RaspLensError(f"To compile {source}, give --vocab (such as a,b,c or 0..9) and --max-len.")
        tokens = parse_vocab(self.vocab)
        return [str(token) for token in tokens] if are_words else tokens

    def length(self, source: str) -> int:
        """The longest sequence.

        Raises:
            RaspLensError: If it is not given.
        """
        if self.max_len is None:
            raise RaspLensError(f"To compile {source}, give --vocab (such as a,b,c or 0..9) and --max-len.")
        return self.max_len


def parse_vocab(text: str) -> list[Value]:
    """Tokens from `a,b,c`, `0..9` or `a..e`; what looks like an integer is one.

    Raises:
        RaspLensError: If there is none, one is empty, or a range is; if commas are missing.
    """
    tokens: list[Value] = []
    for part in text.split(","):
        if not part:
            where = "is empty" if not text else f"has an empty token: {text!r}"
            raise RaspLensError(
                f"--vocab {where}. Separate tokens by commas, such as a,b,c, or write a range, such as 0..9."
            )
        first, dots, last = part.partition("..")
        if dots and _is_integer(first) and _is_integer(last):
            tokens += _range(int(first), int(last), part, f"{last}..{first}")
        elif dots and len(first) == len(last) == 1 and first.isalpha() and last.isalpha():
            tokens += map(chr, _range(ord(first), ord(last), part, f"{last}..{first}"))
        else:
            tokens.append(int(part) if _is_integer(part) else part)
    if len(tokens) == 1 and len(text) > 1 and text.isalpha():
        raise RaspLensError(
            f"--vocab {text} is one token. Put commas between several: --vocab {','.join(dict.fromkeys(text))}."
        )
    return tokens


def shown(tokens: list[Value] | tuple[Value, ...]) -> str:
    """A vocabulary as it was understood: "3 tokens: a, b, c"."""
    listed = ", ".join(map(str, tokens[:8])) + (", …" if len(tokens) > 8 else "")
    return f"{len(tokens)} token{'s' if len(tokens) > 1 else ''}: {listed}"


def _range(first: int, last: int, part: str, turned: str) -> range:
    if first > last:
        raise RaspLensError(f"The range {part} of --vocab is empty; write {turned}.")
    if last - first >= MOST_TOKENS:
        raise RaspLensError(
            f"The range {part} of --vocab has more than {MOST_TOKENS:,} tokens. Write a shorter one."
        )
    return range(first, last + 1)


def _is_integer(text: str) -> bool:
    """Whether a token is a whole number; one of more digits than Python reads is a word."""
    digits = text.removeprefix("-")
    return digits.isdecimal() and len(digits) <= MOST_DIGITS
