"""Reports on sweeps: complete without the script, and no other script runs."""

import base64
import hashlib
import re
import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree as ET

import polars as pl
import pytest

import sojourn as sj
from sojourn import report
from sojourn.sweeps import page, panels
from sojourn.sweeps.scales import scale
from support.outline import Outline
from support.shell import Command

TEXT = """
name = "a <b> & c"
duration = "3s"
warmup = "1s"
rtt = "20ms"
replications = 3
links.up = { rate = "5mbit", qdisc = "codel" }
links.down = "unlimited"
traffic = [
    { name = "bulk", type = "tcp", direction = "up" },
    { name = "ping", type = "ping", direction = "up", interval = "50ms" },
]
arms = [{ name = "<script>" }, { name = "pie", set = { "links.up.qdisc" = "pie" } }]
"""
GRID = {"links.up.rate": "logspace(1mbit,9mbit,3)", "rtt": "10ms,80ms"}
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.fixture(scope="module")
def swept() -> sj.SweepResult:
    return sj.sweep(sj.Scenario.from_toml(TEXT), GRID)


@pytest.fixture(scope="module")
def text(swept: sj.SweepResult) -> str:
    return page.html(swept)


def test_the_policy_permits_the_script_of_the_page_and_no_other(text: str) -> None:
    (script,) = re.findall(r"<script>(.*?)</script>", text, flags=re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = re.search(r'http-equiv="Content-Security-Policy" content="(.*?)"', text)
    assert policy is not None
    assert policy[1] == (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    )
    assert len(script) < 2000, "small enough to be read"


def test_a_report_loads_nothing_and_is_complete_without_its_script(
    swept: sj.SweepResult, text: str
) -> None:
    outline = Outline()
    outline.feed(text)
    assert outline.open == []
    assert outline.loads == []
    assert not re.search(r"https?://|@import|url\(| on\w+=", text)
    without = re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL)
    assert "<button" not in without, "only the script makes buttons"
    for heading in ("Best points", "Goodput up", "Difference from", "All points", "Provenance"):
        assert f"<h2>{heading}" in without
    assert "prefers-color-scheme: dark" in without
    assert without.count("<tr>") > swept.points.height
    # Names cannot become elements.
    assert "&lt;script&gt;" in without
    assert "a <b>" not in without


def test_heat_maps_with_too_many_cells_are_named(
    swept: sj.SweepResult, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "Not shown: 2 heat maps" not in text
    monkeypatch.setattr(panels, "_MOST_CELLS", 2)
    # One for each arm.
    assert "Not shown: 2 heat maps; SweepResult.lines and heatmap draw any" in page.html(swept)


def test_figures_have_values_on_hover_and_their_data_as_tables(text: str) -> None:
    figures = re.findall(r"<figure>.*?</figure>", text, flags=re.DOTALL)
    # Per metric: a panel for each rtt, and a heat map for each arm.
    assert len(figures) == 3 * (2 + 2)
    for drawn in figures:
        assert "<table>" in drawn
        svg = re.search(r"<svg.*?</svg>", drawn, flags=re.DOTALL)
        assert svg is not None
        ET.fromstring(svg[0])  # noqa: S314 - our own text
        assert "nan" not in svg[0]
    assert "<title>links.up.rate=3mbit, rtt=80ms, pie: goodput up " in text
    assert "links.up.rate [Mbit/s], log scale" in text


def test_cells_have_the_numbers_by_which_they_are_sorted(swept: sj.SweepResult, text: str) -> None:
    points = text.partition("<h2>All points</h2>")[2]
    keys = [float(key) for key in re.findall(r'<th scope="row" data-value="(.+?)">', points)]
    assert keys == [1e6, 1e6, 1e6, 1e6, 3e6, 3e6, 3e6, 3e6, 9e6, 9e6, 9e6, 9e6]
    mean = swept.points["goodput_up_mbit_per_s"][0]
    assert f'<td data-value="{mean}">' in points


def test_differences_say_how_many_of_them_may_be_wrong(text: str) -> None:
    section = text.partition("<h2>Difference from")[2].partition("</section>")[0]
    marked = len(re.findall(r">[+−][\d.]+\*<", section))
    found = re.search(r"\* marks (\d+) of 18 differences", section)
    assert found is not None
    # A star is left out where the difference rounds to 0.
    assert 0 < marked <= int(found[1])


def test_parameters_are_shown_where_they_can_be_read(swept: sj.SweepResult) -> None:
    of = panels.layout(swept)
    assert (of.x, of.line, of.panels, of.maps) == (
        ("links.up.rate",),
        "arm",
        ("rtt",),
        ("arm",),
    )
    sampled = {**swept.manifest["space"], "parameters": {"rtt": ["uniform(10ms,80ms)"]}}
    drawn = sj.SweepResult({**swept.manifest, "space": sampled}, swept.runs)
    assert (panels.layout(drawn).x, panels.layout(drawn).panels) == (("rtt",), ())
    assert "Each dot is the mean of a sample" in page.html(drawn)
    names = scale("qdisc", pl.Series(["codel", "pie"]))
    assert (names.position("pie"), names.label) == (1.0, "qdisc")
    assert not scale("rtt", pl.Series(["10ms", "20ms", "30ms"])).logarithmic
    assert scale("rtt", pl.Series(["1s", "10ms", "100ms"])).label == "rtt [ms]"


def test_the_command_writes_reports_of_sweeps(sojourn: Command, tmp_path: Path) -> None:
    file = tmp_path / "swept.toml"
    file.write_text(TEXT, encoding="utf-8")
    words = ["sweep", f"{file}", "-p", "links.up.rate=2mbit,4mbit", "--replications", "2"]
    out = tmp_path / "out"
    done = sojourn(*words, "--out", f"{out}", "--report", f"{out / 'report.html'}")
    assert done.returncode == 0, done.stderr
    assert "wrote report to" in done.stderr
    assert sojourn("report", f"{out}").returncode == 0
    assert "2 points, 2 arms, 8 runs of 3 s" in (out / "report.html").read_text(encoding="utf-8")
    # Another sweep makes the report obsolete, and does not replace the first one silently.
    other = [*words[:3], "links.up.rate=3mbit", *words[4:], "--out", f"{out}"]
    refused = sojourn(*other)
    assert refused.returncode == 3
    assert "contains another sweep; expected --force" in refused.stderr
    assert (out / "report.html").exists()
    assert sojourn(*other, "--force").returncode == 0
    assert sorted(path.name for path in out.iterdir()) == [
        "points.parquet",
        "runs.parquet",
        "sweep.json",
    ]
    table = sojourn("report", f"{out}", "--latex", "-")
    assert table.returncode == 2
    assert "contains a sweep" in table.stderr


@pytest.mark.skipif(BROWSER is None, reason="chromium is not installed")
def test_a_browser_sorts_and_runs_no_other_script(text: str, tmp_path: Path) -> None:
    evil = "<script>document.title = 'evil'</script><img src=x onerror=\"document.title='evil'\">"
    attacked = _dom(text.replace("</body>", f"{evil}</body>"), tmp_path)
    assert "<title>evil" not in attacked
    assert '<th scope="col"><button type="button">n</button></th>' in attacked
    # A press of a button, which the policy would prevent as well.
    click = "document.querySelectorAll('.sortable').forEach(t => {b = t.querySelectorAll('button');"
    presses = f"<script>{click} const k = b[b.length - 1]; k.click(); k.click()}})</script>"
    free = re.sub(r"<meta http-equiv.*?>", "", text).replace("</body>", f"{presses}</body>")
    pressed = _dom(free, tmp_path)
    table = pressed.partition("<h2>All points</h2>")[2]
    assert table.count('aria-sort="descending"') == 1
    last = re.findall(r'data-value="([\d.e+-]+)">[\d.]+<small>[^<]*</small></td></tr>', table)
    assert len(last) == 12
    assert [float(key) for key in last] == sorted(map(float, last), reverse=True)


def _dom(text: str, folder: Path) -> str:
    """Return a page as a browser sees it after its scripts."""
    file = folder / "page.html"
    file.write_text(text, encoding="utf-8")
    words = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}"]
    done = subprocess.run(
        [f"{BROWSER}", *words, "--dump-dom", file.as_uri()],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout


def test_python_writes_the_reports_of_the_command(
    swept: sj.SweepResult, result: sj.Result, text: str, tmp_path: Path
) -> None:
    for of, content in ((swept, text), (result, report.html(result))):
        file = tmp_path / "new" / "report.html"
        # The second one replaces the first.
        sj.write_report(of, file)
        assert file.read_text(encoding="utf-8") == content
    swept.save(tmp_path / "saved")
    saved = tmp_path / "saved" / "report.html"
    sj.write_report(swept, f"{saved}")
    other = sj.sweep(sj.Scenario.from_toml(TEXT), {"rtt": ["5ms"]})
    other.save(tmp_path / "saved", force=True)
    assert not saved.exists(), "it shows the replaced sweep"


class _Stop:
    """Progress that interrupts the first run."""

    def __call__(self, finished: int, total: int) -> None:
        """Nothing finishes in time."""

    def reached(self, share: float) -> None:
        if share > 0:
            raise KeyboardInterrupt


def test_what_has_no_report_is_refused_before_anything_is_created(
    swept: sj.SweepResult, tmp_path: Path
) -> None:
    file = tmp_path / "new" / "report.html"
    empty = sj.SweepResult(swept.manifest, swept.runs.clear())
    with pytest.raises(sj.ResultError, match="no run of the sweep has finished"):
        sj.write_report(empty, file)
    with pytest.raises(sj.Interrupted) as interrupted:
        sj.run(sj.Scenario.from_toml(TEXT).replace(duration="100000s"), progress=_Stop(), jobs=1)
    assert not interrupted.value.result.finished
    with pytest.raises(sj.ResultError, match="no run of the result has finished"):
        sj.write_report(interrupted.value.result, file)
    with pytest.raises(sj.ScenarioError, match=r"^result: expected a Result or a SweepResult, not"):
        sj.write_report("saved", file)  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())
    file = tmp_path / "notes.html"
    file.write_text("notes", encoding="utf-8")
    with pytest.raises(sj.ResultError, match="it exists and is not a Sojourn report"):
        sj.write_report(swept, file)
    assert file.read_text(encoding="utf-8") == "notes"


def test_the_digits_of_a_column_are_equal(text: str) -> None:
    (table,) = re.findall(r"<h2>All points</h2>.*?<tbody>(.*?)</tbody>", text, flags=re.DOTALL)
    rows = re.findall(r"<tr>(.*?)</tr>", table, flags=re.DOTALL)
    assert len(rows) == 12
    digits: list[set[int]] = []
    for row in rows:
        cells = re.findall(r"<td.*?</td>", row, flags=re.DOTALL)
        for column, cell in enumerate(cells[4:]):
            found = {len(one) for one in re.findall(r"\d+\.?(\d*)", re.sub(r"<.*?>", " ", cell))}
            digits += [set()] * (column + 1 - len(digits))
            digits[column] = digits[column] | found
    assert digits
    assert all(len(found) == 1 for found in digits), digits


def test_the_legend_names_its_parameter() -> None:
    found = sj.sweep(sj.Scenario.from_toml(TEXT).replace(arms=[], replications=1), GRID)
    assert re.search(r'<nav class="legend"[^>]*><span>rtt</span>', page.html(found))
