"""Pages in headless Chromium: accessibility by axe-core, no horizontal overflow, size."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

import sojourn as sj
from support import studied
from support.chromium import NARROW, WIDE, opened, overflow, started, violations
from support.shell import ROOT, environment
from support.stored import COMMAND

MOST_BYTES = 1_000_000
SITE = ROOT / "target" / "site"
RATES = ",".join(f"{rate}mbit" for rate in range(1, 11))


def small(*more: str) -> list[str]:
    """Write options for short runs, and others."""
    return ["--replications", "2", "--duration", "8s", "--warmup", "2s", *more]


# Commands that write a page in a few seconds, with the page.
SMALL = {
    "compare": ["compare", "pfifo", "fq_codel", *small("--report", "page.html")],
    "advise": [
        *("advise", "cake", "--preset", "vdsl", "--shares", "90", "--replications", "2"),
        *("--report", "page.html"),
    ],
    "sweep": [
        *("sweep", "tcp_1up+voip", "-p", "rtt=10ms,50ms", "-p", "links.*.rate=1mbit,5mbit"),
        *("-s", "duration=8s", "-s", "warmup=2s", "--replications", "2", "--report", "page.html"),
    ],
    "study": ["reproduce", "small", "--papers", "papers", "--out", "."],
    "rfc7928": ["rfc7928", "pie", "--section", "5.1", "--out", "."],
    "rfc9743": ["rfc9743", "bbr3", "--section", "5.1.3", "--section", "6.2", "--out", "."],
}
# Commands with their defaults.
WHOLE = {
    "compare": ["compare", "--report", "page.html"],
    "advise": ["advise", "--preset", "vdsl", "--report", "page.html"],
    "sweep": [
        *("sweep", "rrul_be", "-p", "rtt=10ms,50ms,100ms", "-p", f"links.*.rate={RATES}"),
        *("--replications", "2", "--report", "page.html"),
    ],
    "rfc7928": ["rfc7928", "codel", "--out", "."],
    **{
        name: ["reproduce", name, "--out", "."]
        for name in ("afcd", "cocoa", "floq", "predict", "residential")
    },
}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    yield from started()


def made(folder: Path, words: list[str]) -> Path:
    """Have the command write a page."""
    if "papers" in words:
        studied.write(folder / "papers" / "small")
    done = subprocess.run(
        [*COMMAND, *words],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (page,) = folder.glob("*.html")
    return page


def check(browser: Browser, file: Path) -> None:
    """Check a page at both widths, light and dark."""
    for width in (WIDE, NARROW):
        for scheme in ("light", "dark"):
            with opened(browser, file, width, scheme) as page:
                assert overflow(page) <= 0, (width, scheme)
                assert not violations(page), (width, scheme)


def agreement(result: sj.Result, folder: Path) -> Path:
    """Write the page of a comparison of a result with itself."""
    file = folder / "page.html"
    file.write_text(sj.Agreement(result, result).to_html(), encoding="utf-8")
    return file


@pytest.mark.parametrize(
    "name",
    [
        # The whole pages of these are in make test-full.
        pytest.param(name, marks=pytest.mark.slow if name in {"advise", "sweep", "rfc7928"} else [])
        for name in SMALL
    ],
)
def test_pages_of_commands_are_accessible(name: str, browser: Browser, tmp_path: Path) -> None:
    with opened(browser, made(tmp_path, SMALL[name]), WIDE) as page:
        assert overflow(page) <= 0
        assert not violations(page)


def test_the_page_of_an_agreement_is_accessible(
    browser: Browser, result: sj.Result, tmp_path: Path
) -> None:
    with opened(browser, agreement(result, tmp_path), WIDE) as page:
        assert overflow(page) <= 0
        assert not violations(page)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", WHOLE)
def test_whole_pages_are_small_and_fit_phones(name: str, browser: Browser, tmp_path: Path) -> None:
    file = made(tmp_path, WHOLE[name])
    check(browser, file)
    assert file.stat().st_size < MOST_BYTES


@pytest.mark.slow
def test_the_page_of_an_agreement_is_small_and_fits_phones(
    browser: Browser, result: sj.Result, tmp_path: Path
) -> None:
    file = agreement(result, tmp_path)
    check(browser, file)
    assert file.stat().st_size < MOST_BYTES


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_site_is_accessible(browser: Browser) -> None:
    if not SITE.is_dir():
        pytest.skip("target/site is absent: run make docs")
    for path in ("docs/index.html", "docs/notebooks/fairness.html", "docs/gallery.html"):
        check(browser, SITE / path)


def test_faults_are_found(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    head = '<!doctype html><html lang="en"><title>a</title><main><h1>a</h1>'
    file.write_text(f'{head}<p style="width: 2000px; color: #ccc">wide and pale</p><img src="a">')
    with opened(browser, file, WIDE) as page:
        assert overflow(page) > 500
        assert {one.partition(":")[0] for one in violations(page)} == {
            "color-contrast",
            "image-alt",
        }
