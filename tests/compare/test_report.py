"""The page: complete, self-contained, and safe with any token; in a browser, without errors."""

import re
import shutil
import subprocess
from dataclasses import replace

import pytest

from rasplens.compare import compare
from rasplens.compare.report import render
from rasplens.compile import compile_program
from rasplens.learned import Architecture, untrained
from rasplens.tasks import get_task

EVIL = "<script>alert(1)</script>"

SPY = """
window.faults = [];
window.onerror = message => { faults.push(message) };
window.alert = message => { faults.push(message) };
addEventListener("load", () => setTimeout(() => {
  const drawn = document.querySelectorAll(".js-plotly-plot .main-svg").length;
  document.title = "drawn " + drawn + " faults " + JSON.stringify(faults);
}, 500));
"""


@pytest.fixture(scope="module")
def page() -> str:
    """A report on a task whose tokens are markup."""
    task = get_task("copy", n_letters=3, block=3, length=9)
    task = replace(task, vocab=(EVIL, "<b>bold</b>", "a & b"), outputs=(EVIL, "<b>bold</b>", "a & b"))
    compiled = compile_program(task.programs["offset"], task.vocab, task.n_ctx, mask=task.visible)
    learned = untrained(Architecture(1, 2, 8, 4), task, 0)
    return render(compare(compiled, learned, task=task, n_inputs=60))


def without_plotly(page: str) -> str:
    """What RASPLens wrote: the page without plotly's own library, the first script."""
    return re.sub(r"<script>.*?</script>", "", page, count=1, flags=re.S)


def test_every_section_has_its_figure(page):
    for name in ("decodability", "attention", "heads", "edges_zero", "edges_mean", "ov", "qk"):
        assert f'id="figure-{name}"' in page
    assert "These are measurements, not a verdict" in page
    assert page.count("<h2>") == 9


def test_nothing_is_fetched_from_anywhere(page):
    assert not re.search(r"""(src|href)=["'](https?:)?//""", without_plotly(page))
    assert "cdn.plot.ly" not in without_plotly(page)


def test_tokens_are_text_whatever_they_contain(page):
    assert EVIL not in without_plotly(page)
    assert "<b>bold</b>" not in without_plotly(page)


def test_a_browser_draws_every_figure_and_runs_no_token(page, tmp_path):
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("no Chromium is installed")
    spy = f"<script>{SPY}</script>"
    path = tmp_path / "report.html"
    path.write_text(page.replace("<head>", f"<head>{spy}", 1), encoding="utf-8")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
    flags += ["--disable-component-update", "--disable-sync", "--disable-quic", "--virtual-time-budget=20000"]
    command = [chromium, *flags, f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", path.as_uri()]
    dom = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    title = re.search(r"<title>(.*?)</title>", dom, flags=re.S).group(1)
    drawn, faults = re.fullmatch(r"drawn (\d+) faults (.*)", title).groups()
    assert faults == "[]"
    assert int(drawn) >= 7
