"""The notebooks run from top to bottom and end in a picture."""

from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")

NOTEBOOKS = sorted((Path(__file__).parents[2] / "examples" / "notebooks").glob("*.ipynb"))
PICTURES = {"application/vnd.plotly.v1+json", "image/png", "image/svg+xml"}


def test_there_are_six():
    assert len(NOTEBOOKS) == 6


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_stored_without_what_it_printed(path):
    for cell in nbformat.read(path, 4).cells:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning", "ignore::RuntimeWarning")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_ends_in_a_picture(path):
    notebook = nbformat.read(path, 4)
    nbclient.NotebookClient(notebook, timeout=1_200, kernel_name="python3").execute()
    shown = {kind for output in notebook.cells[-1].outputs for kind in output.get("data", {})}
    assert shown & PICTURES
