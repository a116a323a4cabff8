"""The page of the lab in headless Chromium, opened from a file."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from support import lab_page
from support.chromium import NARROW, WIDE, opened, overflow, started, violations
from support.shell import ROOT

SITE = ROOT / "target" / "site" / "docs" / "lab.html"
STUDIES = ("residential", "afcd", "cocoa", "floq", "predict")
METRICS = """() => lab.page.series.map((series, n) => lab.answer.metrics(series,
    Math.max(series.plan.links.findIndex(({ name }) => name === lab.page.state.link), 0)))"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    yield from started()


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return lab_page.written(tmp_path_factory.mktemp("site"))


def ready(page: Page) -> None:
    page.wait_for_selector("#lab[data-state=ready]", timeout=20_000)


def to_the_end(page: Page) -> list[dict[str, Any]]:
    """Run to the end; return the numbers of both queues."""
    page.get_by_role("button", name="Run to the end").click()
    page.wait_for_function("lab.page.series.every(({ finished }) => finished)", timeout=60_000)
    assert page.locator("#lab-error").is_hidden(), page.locator("#lab-error").text_content()
    found: list[dict[str, Any]] = page.evaluate(METRICS)
    return found


def choose(page: Page, value: str) -> None:
    """Choose a lesson or a study, and wait for its run."""
    before = page.evaluate("lab.page.load")
    page.locator("#lab-begin").select_option(value)
    page.wait_for_function(f"lab.page.load > {before} && lab.page.series[0].now >= 0")
    page.wait_for_function("lab.page.series.length === 2 && lab.page.state.kind !== undefined")


def test_it_answers_from_a_file_without_a_request(browser: Browser, file: Path) -> None:
    with opened(browser, file, WIDE) as page:
        requests: list[str] = []
        page.on("request", lambda request: requests.append(request.url))
        page.reload()
        ready(page)
        page.wait_for_function("lab.page.series[0].now > 2500", timeout=10_000)
        answer = page.locator("#lab-answer").text_content() or ""
        assert answer.startswith("With fq_codel, a ping takes "), answer
        schemes = {url.partition(":")[0] for url in requests}
        assert schemes == {"file", "blob"}, requests
        pfifo, fq_codel = to_the_end(page)
        assert pfifo["ping"] > 50 * fq_codel["ping"]
        # Within a second on an idle machine.
        (shown,) = page.evaluate("performance.getEntriesByName('lab-shown').slice(0, 1)")
        assert shown["startTime"] < 8000


@pytest.mark.parametrize(
    ("width", "theme"),
    [
        (NARROW, "light"),
        pytest.param(NARROW, "dark", marks=pytest.mark.slow),
        pytest.param(WIDE, "light", marks=pytest.mark.slow),
        pytest.param(WIDE, "dark", marks=pytest.mark.slow),
    ],
)
def test_it_is_accessible_and_fits(browser: Browser, file: Path, width: int, theme: str) -> None:
    with opened(browser, file, width) as page:
        page.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
        ready(page)
        to_the_end(page)
        page.get_by_role("button", name="Why this").first.click()
        page.get_by_role("button", name="Scenario file").click()
        page.wait_for_selector("#lab-export:not([hidden])")
        assert overflow(page) <= 0
        assert not violations(page)


@pytest.mark.slow
def test_a_slider_acts_during_the_run_and_the_address_repeats_it(
    browser: Browser, file: Path
) -> None:
    with opened(browser, file, WIDE) as page:
        ready(page)
        page.wait_for_function("lab.page.series[0].now > 3000")
        page.get_by_role("button", name="Pause").click()
        slider = page.get_by_label("Downlink")
        slider.focus()
        for _ in range(3):
            slider.press("ArrowLeft")
        page.wait_for_function("location.hash.length > 0 && lab.page.state.changes.length === 1")
        page.wait_for_timeout(500)
        changes = page.evaluate("lab.page.state.changes")
        assert [change["key"] for change in changes] == ["down"]
        assert changes[0]["at"] > 3000
        first = to_the_end(page)
        with opened(browser, file, WIDE) as other:
            other.goto(page.url)
            other.reload()
            ready(other)
            assert to_the_end(other) == first


@pytest.mark.slow
def test_a_replay_moves_the_sliders_and_a_link_names_its_lesson(
    browser: Browser, file: Path
) -> None:
    with opened(browser, file, WIDE) as page:
        ready(page)
        choose(page, "lesson bufferbloat")
        page.wait_for_function("lab.page.series[0].now > 2000")
        page.get_by_role("button", name="Halve the downlink").click()
        downlink = page.locator("#lab-sliders output").first
        page.wait_for_function("lab.page.state.changes.length === 1")
        to_the_end(page)
        assert downlink.text_content() == "10 Mbit/s"
        page.get_by_role("button", name="Play again").click()
        page.wait_for_function("lab.page.series[0].now < 1500 && !lab.page.series[0].finished")
        assert downlink.text_content() == "20 Mbit/s"
        to_the_end(page)
        assert downlink.text_content() == "10 Mbit/s"
        with opened(browser, file, WIDE) as other:
            other.goto(page.url)
            other.reload()
            ready(other)
            assert other.locator("#lab-begin").input_value() == "lesson bufferbloat"
            assert other.locator("#lab-lesson-steps button").count() == 2


def test_it_stops_at_a_drop_and_explains_it(browser: Browser, file: Path) -> None:
    with opened(browser, file, WIDE) as page:
        ready(page)
        page.get_by_role("button", name="Next drop").click()
        page.wait_for_function("lab.page.series.some(({ count }) => count > 0)")
        page.get_by_role("button", name="Why this drop").first.click()
        page.wait_for_selector("#lab-why:not([hidden])")
        text = page.locator("#lab-why").text_content() or ""
        assert "was dropped" in text, text
        assert "decision" in text, text


@pytest.mark.slow
def test_an_invalid_queue_is_explained(browser: Browser, file: Path) -> None:
    with opened(browser, file, WIDE) as page:
        ready(page)
        page.locator("#lab-a").fill("cobel")
        page.locator("#lab-a").press("Enter")
        page.wait_for_selector("#lab-error:not([hidden])")
        assert 'did you mean "codel"?' in (page.locator("#lab-error").text_content() or "")
        page.locator("#lab-a").fill("codel")
        page.locator("#lab-a").press("Enter")
        page.wait_for_selector("#lab-error", state="hidden")


def steps(page: Page, lesson: str) -> Iterator[list[dict[str, Any]]]:
    """Follow a lesson: the numbers at its beginning, and after each step that has a button."""
    choose(page, f"lesson {lesson}")
    yield to_the_end(page)
    buttons = page.locator("#lab-lesson-steps button")
    for n in range(buttons.count()):
        before = page.evaluate("lab.page.load")
        buttons.nth(n).click()
        page.wait_for_function(f"lab.page.load > {before} || !lab.page.playing", timeout=20_000)
        page.wait_for_timeout(300)
        yield to_the_end(page)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_lessons_show_what_they_say(browser: Browser, file: Path) -> None:
    with opened(browser, file, WIDE) as page:
        ready(page)
        found = {
            name: list(steps(page, name))
            for name in page.evaluate("lab.lessons.map(({ name }) => name)")
        }
    bufferbloat, slower, _short = found["bufferbloat"]
    assert bufferbloat[0]["ping"] > 50 * bufferbloat[1]["ping"]
    assert slower[0]["ping"] > 1.2 * bufferbloat[0]["ping"]
    red, slow, _ = found["red"]
    assert red[0]["ping"] < 60
    assert slow[0]["ping"] > 2.5 * slow[1]["ping"]
    unfair, more, _ = found["fairness"]
    assert unfair[1]["fairness"] > 0.98
    assert unfair[0]["fairness"] < 0.9
    assert more[1]["fairness"] > more[0]["fairness"]
    l4s, _, _ = found["l4s"]
    waits = [one["groups"]["prague downloads"] for one in l4s]
    assert waits[1] < 0.2 * waits[0]
    start, hystart, _ = found["predict"]
    assert start[1]["longest"] < 0.5 * start[0]["longest"]
    assert hystart[0]["longest"] < 0.8 * start[0]["longest"]
    home, too_slow, shaped = found["home"]
    assert home[1]["ping"] < 0.05 * home[0]["ping"]
    assert too_slow[1]["ping"] > 10 * home[1]["ping"]
    assert shaped[1]["ping"] < 0.05 * shaped[0]["ping"]


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", STUDIES)
def test_figures_of_studies_run(browser: Browser, file: Path, name: str) -> None:
    with opened(browser, file, WIDE) as page:
        ready(page)
        choose(page, f"study {name}")
        page.wait_for_function(
            f"lab.page.state.study === '{name}' && lab.page.series[0].now > 1000", timeout=120_000
        )
        assert page.locator("#lab-error").is_hidden()
        assert overflow(page) <= 0


@pytest.mark.slow
def test_the_lab_of_the_site_is_accessible(browser: Browser) -> None:
    if not SITE.exists():
        pytest.skip("target/site is absent: run make docs")
    for width in (WIDE, NARROW):
        for scheme in ("light", "dark"):
            with opened(browser, SITE, width, scheme) as page:
                ready(page)
                to_the_end(page)
                assert overflow(page) <= 0, (width, scheme)
                assert not violations(page), (width, scheme)
