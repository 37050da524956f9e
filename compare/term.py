"""A term of comparisons and its meaning: each module says its own, and the glossary has all of them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Term:
    """A term and its meaning.

    Attributes:
        name: The term.
        meaning: One sentence.
        module: Where it is made, below `rasplens.compare`.
        columns: The columns of tables, axes and answers that it explains.
    """

    name: str
    meaning: str
    module: str
    columns: tuple[str, ...] = ()

    @property
    def where(self) -> str:
        """The module, and the columns in parentheses."""
        columns = ", ".join(f"`{column}`" for column in self.columns)
        return f"`{self.module}`" + (f" ({columns})" if columns else "")
