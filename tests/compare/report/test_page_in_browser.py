"""The page as a browser shows it: drawn, quiet, readable on a phone, and with tokens that stay text."""

import shutil
from pathlib import Path

import pytest

from rasplens.compare import write_report

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

EVIL = "<script>alert(1)</script>"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = ["--no-sandbox", "--headless", "--disable-gpu", "--disable-background-networking"]
PHONE, DESKTOP = {"width": 390, "height": 800}, {"width": 1200, "height": 900}


@pytest.fixture(scope="module")
def report(tmp_path_factory, markup) -> Path:
    """The report on a task whose tokens are markup."""
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(markup, path)
    return path


@pytest.fixture(scope="module")
def browser():
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.skip("no Chromium is installed")
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=path, args=FLAGS)
        yield opened
        opened.close()


class Opened:
    """A page, and what it said, asked and fetched while it was open."""

    def __init__(self, browser, report: Path, size: dict[str, int]):
        self.said: list[str] = []
        self.asked: list[str] = []
        self.fetched: list[str] = []
        self.page = browser.new_page(viewport=size, accept_downloads=True)
        self.page.on("console", lambda message: self.said.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", self._dismiss)
        self.page.on("request", lambda request: self.fetched.append(request.url))
        self.page.goto(report.as_uri(), wait_until="load")
        self.page.wait_for_function(
            "document.querySelectorAll('.plotly-graph-div:not(:has(.main-svg))').length === 0"
        )

    def _dismiss(self, dialog) -> None:
        self.asked.append(dialog.message)
        dialog.dismiss()

    def widths(self) -> tuple[int, int]:
        """Of what the page holds, and of the window."""
        return tuple(self.page.evaluate("[document.documentElement.scrollWidth, innerWidth]"))


@pytest.fixture(scope="module")
def desktop(browser, report):
    opened = Opened(browser, report, DESKTOP)
    yield opened
    opened.page.close()


@pytest.fixture(scope="module")
def phone(browser, report):
    opened = Opened(browser, report, PHONE)
    yield opened
    opened.page.close()


def test_every_figure_is_drawn_without_an_error(desktop):
    figures = desktop.page.locator(".plotly-graph-div")
    assert figures.count() >= 15
    for i in range(figures.count()):
        assert figures.nth(i).locator(".main-svg").count() >= 1
    assert desktop.said == []


def test_nothing_but_the_file_is_opened(desktop):
    assert [url for url in desktop.fetched if not url.startswith(("file:", "data:", "blob:"))] == []


def test_tabs_show_one_way_of_ablation_at_a_time(desktop):
    page = desktop.page
    tabs, panels = page.locator("[role=tab]"), page.locator("[role=tabpanel]")
    assert tabs.all_inner_texts() == ["zero", "mean", "resample"]
    for chosen in (1, 2, 0):
        tabs.nth(chosen).click()
        assert [panels.nth(i).is_visible() for i in range(3)] == [i == chosen for i in range(3)]
        assert [tabs.nth(i).get_attribute("aria-selected") for i in range(3)] == [
            str(i == chosen).lower() for i in range(3)
        ]
        box = panels.nth(chosen).bounding_box()
        drawn = panels.nth(chosen).locator(".main-svg").first.bounding_box()
        assert drawn["width"] == pytest.approx(box["width"], abs=2)
        assert panels.nth(chosen).locator(".heatmaplayer image").count() >= 2
    tabs.nth(0).press("ArrowLeft")
    assert panels.nth(2).is_visible()
    page.keyboard.press("ArrowRight")
    assert panels.nth(0).is_visible()
    assert desktop.said == []


def test_a_hostile_token_stays_text(desktop):
    assert desktop.asked == []
    labels = desktop.page.locator("#figure-ov").locator("text")
    texts = labels.all_text_contents()
    assert EVIL in texts
    assert "<b>bold</b>" in texts
    streams = desktop.page.locator("#figure-residual_stream text").all_text_contents()
    assert any("<b>bold</b>" in text for text in streams)
    assert desktop.page.evaluate("[...document.scripts].filter(s => s.text === 'alert(1)').length") == 0


def test_a_finding_leads_to_its_section(desktop):
    desktop.page.locator(".verdict a", has_text="answers").click()
    assert desktop.page.locator("#behaviour").bounding_box()["y"] == pytest.approx(0, abs=2)


def test_a_table_is_saved_from_the_page(desktop):
    with desktop.page.expect_download() as saving:
        desktop.page.locator("a[download='attention.csv']").click()
    assert saving.value.suggested_filename == "attention.csv"
    assert saving.value.path().read_text().startswith("compiled_layer,compiled_head,variable,layer,head")


def test_on_a_phone_nothing_is_wider_than_the_screen(phone):
    held, shown = phone.widths()
    assert shown == PHONE["width"]
    assert held <= shown
    for details in phone.page.locator("details").all():
        details.evaluate("it => { it.open = true }")
    for tab in phone.page.locator("[role=tab]").all():
        tab.click()
        assert phone.widths()[0] <= shown


def test_on_a_phone_wide_figures_scroll_in_their_box(phone):
    inside, box = phone.page.locator(".scroll:has(> div > #figure-attention)").evaluate(
        "it => [it.scrollWidth, it.clientWidth]"
    )
    assert inside > box
    inside, box = phone.page.locator(".scroll:has(> div > #figure-evidence)").evaluate(
        "it => [it.scrollWidth, it.clientWidth]"
    )
    assert inside == box
    assert phone.said == []
