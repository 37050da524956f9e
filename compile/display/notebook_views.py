"""The notebook view of a compiled model: its size, its variables, and its program."""

from collections.abc import Iterable

from markupsafe import Markup

from rasplens.compile.anatomy import Anatomy
from rasplens.compile.display.anatomy_table import anatomy_rows
from rasplens.compile.rasp.program_view import program_view


def anatomy_view(compiled: Anatomy) -> str:
    """A compiled model: its size, a row for each variable, and the program."""
    config = compiled.transformer.config
    head = Markup("<p><b>{}</b>: {} layers of {} heads, d_model {}, {:,} parameters, {} BOS</p>").format(
        compiled.output,
        config.n_layers,
        config.n_heads,
        config.d_model,
        compiled.transformer.n_params,
        "with" if compiled.has_bos else "without",
    )
    found = anatomy_rows(compiled)
    rows = _cells("td", (row.values() for row in found))
    headings = _cells("th", [found[0]])
    table = Markup("<table><thead>{}</thead><tbody>{}</tbody></table>").format(headings, rows)
    return str(head + table + Markup(program_view(compiled.program)))


def _cells(tag: str, rows: Iterable[Iterable[object]]) -> Markup:
    """Rows of a table."""
    cell = Markup(f"<{tag}>{{}}</{tag}>")
    return Markup("").join(
        Markup("<tr>{}</tr>").format(Markup("").join(cell.format(value) for value in row)) for row in rows
    )
