"""Pictures of pages with figures, by a headless browser."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@contextmanager
def browser_page(width: int, height: int) -> Iterator[Page]:
    """A page of a headless browser, of a size in pixels."""
    browser = next((path for path in map(shutil.which, BROWSERS) if path), None)
    if browser is None:
        raise SystemExit(f"Pictures need a browser: one of {', '.join(BROWSERS)}.")
    with sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        yield opened.new_page(viewport={"width": width, "height": height})
        opened.close()


def photograph(page: Page, html: Path, picture: Path) -> None:
    """Writes a picture of what a reader sees first."""
    page.goto(html.resolve().as_uri())
    page.wait_for_selector(".js-plotly-plot .main-svg")
    page.wait_for_timeout(1000)  # figures settle into their width
    page.screenshot(path=picture)
