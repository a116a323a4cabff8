"""Headless Chromium: its start, pages of a width, rules of axe-core, horizontal overflow."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import axe_playwright_python
import pytest
from playwright.sync_api import Browser, Page, sync_playwright

# Set where Chromium must be present, such as in the gate of changes.
REQUIRED = "SOJOURN_REQUIRE_BROWSER"
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
AXE = Path(axe_playwright_python.__file__).parent / "axe.min.js"
# Widths of a desk and of a phone.
WIDE, NARROW = 1280, 390


def started() -> Iterator[Browser]:
    """Start Chromium for a fixture; skip if it is not installed."""
    program = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if program is None:
        if os.environ.get(REQUIRED) == "1":
            pytest.fail(f"{REQUIRED} is set, but Chromium is not installed")
        pytest.skip("Chromium is not installed")
    with sync_playwright() as playwright:
        # Root has no sandbox, as in containers.
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def opened(browser: Browser, file: Path, width: int, scheme: Any = "light") -> Iterator[Page]:
    """Open a file; its policy would keep axe-core from running."""
    viewport: Any = {"width": width, "height": 900}
    context = browser.new_context(viewport=viewport, color_scheme=scheme, bypass_csp=True)
    page = context.new_page()
    page.goto(file.resolve().as_uri())
    yield page
    context.close()


def violations(page: Page) -> list[str]:
    """Name the rules of axe-core that a page violates, each with its first place."""
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("axe.run()")["violations"]
    return [f"{one['id']}: {one['nodes'][0]['target']}" for one in found]


def overflow(page: Page) -> int:
    """Return by how many pixels a page is wider than the window."""
    width: int = page.evaluate(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )
    return width
