"""What a notebook shows of a compiled model."""

from rasplens.compile import compile_program, programs
from rasplens.compile.display.anatomy_table import anatomy_rows


def test_a_compiled_model_is_its_size_its_variables_and_its_program():
    compiled = compile_program(programs.histogram(), "abc", 4)
    shown = compiled._repr_html_()
    assert f"{compiled.transformer.n_params:,} parameters" in shown
    for row in anatomy_rows(compiled):
        assert "<tr>" + "".join(f"<td>{value}</td>" for value in row.values()) + "</tr>" in shown
    assert "histogram = SelectorWidth" in shown
