"""The page as a browser shows it: drawn, quiet, readable on a phone, and with tokens that stay text."""

import re
from itertools import combinations
from pathlib import Path

import pytest

from rasplens.compare import write_report

pytestmark = pytest.mark.slow

EVIL = "<script>alert(1)</script>"
PHONE, DESKTOP = {"width": 390, "height": 800}, {"width": 1200, "height": 900}


@pytest.fixture(scope="module")
def report(tmp_path_factory, markup) -> Path:
    """The report on a task whose tokens are markup."""
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(markup, path)
    return path


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
        self.page.wait_for_function("document.querySelector('#figure-claims .main-svg')")

    def _dismiss(self, dialog) -> None:
        self.asked.append(dialog.message)
        dialog.dismiss()

    def draw_all(self) -> None:
        """Scrolls through the page: figures are drawn when they come near the window."""
        for figure in self.page.locator(".figure").all():
            if figure.is_visible():
                figure.scroll_into_view_if_needed()
                figure.locator(".main-svg").first.wait_for()

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
    assert desktop.page.locator(".figure:not(:has(.main-svg))").count() > 0  # what is far away waits
    desktop.draw_all()
    drawn = desktop.page.locator(".figure:has(.main-svg)").count()
    hidden = desktop.page.locator("[role=tabpanel][hidden] .figure").count()
    assert drawn + hidden == desktop.page.locator(".figure").count() >= 15
    assert hidden == 4
    assert desktop.said == []


def test_pointing_at_a_token_shows_where_both_heads_attend(desktop):
    view = desktop.page.locator(".attention-view")
    tokens = view.locator(".tokens").nth(1).locator("button")
    assert tokens.count() == view.locator(".tokens").nth(0).locator("button").count() == 9
    tokens.nth(8).hover()
    said = view.locator(".attention-said")
    assert said.inner_text().startswith("From 8: ")
    assert "compiled attends to 6: " in said.inner_text()  # the letter that followed, by offset
    assert view.locator("button.query").count() == 2
    tokens.nth(4).focus()
    assert said.inner_text().startswith("From 4: ")
    view.locator("select").first.select_option(index=1)
    assert said.inner_text().startswith("From 8: ")
    painted = "it => it.getContext('2d').getImageData(0, 0, it.width, it.height).data.some(value => value > 0)"
    for canvas in view.locator("canvas").all():
        assert canvas.evaluate(painted)
    assert desktop.said == []


@pytest.mark.slow
def test_figures_take_the_colours_of_the_readers_scheme(browser, report):
    opened = Opened(browser, report, DESKTOP)
    for scheme in ("dark", "light"):
        opened.page.emulate_media(color_scheme=scheme)
        opened.page.wait_for_function(f"document.getElementById('figure-claims').dataset.drawn === '{scheme}'")
        ground = opened.page.evaluate("getComputedStyle(document.body).backgroundColor")
        text = opened.page.evaluate("getComputedStyle(document.querySelector('#figure-claims text')).fill")
        assert (sum(colour(ground)) > sum(colour(text))) == (scheme == "light")
    assert opened.said == []
    opened.page.close()


def colour(text: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", text)[:3]]


@pytest.mark.slow
def test_on_paper_every_figure_is_there_and_the_contents_are_not(browser, report):
    opened = Opened(browser, report, DESKTOP)
    opened.page.emulate_media(media="print")
    opened.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    shown = ".figure:not([hidden] .figure)"
    opened.page.wait_for_function(f"[...document.querySelectorAll('{shown}')].every(it => it.dataset.drawn)")
    assert not opened.page.locator("nav").is_visible()
    assert opened.page.pdf()[:4] == b"%PDF"
    assert opened.said == []
    opened.page.close()


def test_no_title_lies_over_another(desktop):
    """The headings of the panels and the buttons of a figure have room of their own."""
    desktop.draw_all()
    titles = "[...figure.querySelectorAll('.annotation-text, .gtitle')]"
    boxes = desktop.page.evaluate(
        f"[...document.querySelectorAll('.figure')].map(figure => {titles}"
        ".map(text => text.getBoundingClientRect()).filter(box => box.width)"
        ".map(box => [box.left, box.right, box.top, box.bottom]))"
    )
    assert sum(map(len, boxes)) >= 10
    for figure in boxes:
        for one, other in combinations(figure, 2):
            apart = one[1] <= other[0] or other[1] <= one[0] or one[3] <= other[2] or other[3] <= one[2]
            assert apart, (one, other)


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
        panels.nth(chosen).locator(".main-svg").first.wait_for()
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
    desktop.draw_all()
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
    assert desktop.page.locator("#behaviour").bounding_box()["y"] == pytest.approx(8, abs=2)


def test_a_table_is_saved_from_the_page(desktop):
    with desktop.page.expect_download() as saving:
        desktop.page.locator("a[download='attention.csv']").click()
    assert saving.value.suggested_filename == "attention.csv"
    assert saving.value.path().read_text().startswith("compiled_layer,compiled_head,variable,layer,head")


@pytest.mark.slow
def test_on_a_phone_nothing_is_wider_than_the_screen(phone):
    held, shown = phone.widths()
    assert shown == PHONE["width"]
    assert held <= shown
    for details in phone.page.locator("details").all():
        details.evaluate("it => { it.open = true }")
    for tab in phone.page.locator("[role=tab]").all():
        tab.click()
        assert phone.widths()[0] <= shown


@pytest.mark.slow
def test_on_a_phone_wide_figures_scroll_in_their_box(phone):
    phone.draw_all()
    widths = "it => [it.scrollWidth, it.clientWidth]"
    inside, box = phone.page.locator(".scroll:has(> #figure-ov)").evaluate(widths)
    assert inside > box
    inside, box = phone.page.locator(".scroll:has(> #figure-evidence)").evaluate(widths)
    assert inside == box
    assert phone.said == []


def test_on_a_phone_both_heads_of_a_pair_are_seen_one_below_the_other(phone):
    first, second = (phone.page.locator(".attention-pair figure").nth(i).bounding_box() for i in range(2))
    assert second["y"] >= first["y"] + first["height"]
    for box in (first, second):
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= PHONE["width"]
