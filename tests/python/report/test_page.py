"""Reports: whole in one file, and true to the result."""

import math
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

import sojourn as sj
from sojourn import report
from support import decided
from support.manifests import edit
from support.outline import Outline
from support.shell import ROOT


@pytest.fixture(scope="module")
def page(result: sj.Result) -> str:
    """The report on the small result."""
    return report.html(result)


def test_the_guide_lists_the_sections_of_a_report_in_their_order(result: sj.Result) -> None:
    text = (ROOT / "docs" / "howto" / "report.md").read_text(encoding="utf-8")
    guide = re.findall(r"^\d+\. \*\*(.+)\.\*\*", text, re.MULTILINE)
    changed = [replace(block, bytes="10kb", start="3s") for block in result.scenario.traffic[:2]]
    users = sj.Web(direction="down", page="small")
    traffic = [*changed, *result.scenario.traffic[2:], users]
    bands = sj.Arm(name="bands", set={"links.up.qdisc": "prio"})
    transfers = sj.run(result.scenario.replace(traffic=traffic, arms=[bands]))
    headings = re.findall(r"<h2>(.+?)</h2>", report.html(transfers))
    found = [heading.partition(":")[0] for heading in headings]
    # A result with one arm has no findings.
    assert [heading for heading in guide if heading != "Findings"] == found


def test_a_report_loads_nothing_and_runs_nothing(page: str) -> None:
    outline = Outline()
    outline.feed(page)
    assert outline.open == []
    assert outline.loads == []
    assert not outline.tags & {"script", "link", "img", "iframe", "object"}
    assert not re.search(r"https?://|@import|url\(", page)


def test_every_figure_has_its_data_as_a_table(page: str) -> None:
    figures = re.findall(r"<figure>.*?</figure>", page, flags=re.DOTALL)
    assert len(figures) >= 10
    for figure in figures:
        assert "<table>" in figure
        svg = re.search(r"<svg.*?</svg>", figure, flags=re.DOTALL)
        assert svg is not None
        ET.fromstring(svg[0])  # noqa: S314 - our own text
        assert "nan" not in svg[0]


def test_figures_of_a_report_are_those_of_plots(page: str, result: sj.Result) -> None:
    (drawn,) = re.findall("<figcaption>Backlog, up</figcaption>(.*?)</figure>", page)
    (axes,) = result.plot("backlog_up").axes
    assert f">{axes.get_ylabel()}</text>" in drawn
    (level,) = (text.get_text() for text in axes.texts)
    assert f">{level}</text>" in drawn
    # The bands of both arms, and the warm-up.
    assert len(re.findall('class="d[01]" fill-opacity="0.15"', drawn)) == 2
    assert re.search('class="d-text" fill-opacity="0.07"', drawn)


def test_a_report_says_what_it_takes_to_run_it_again(page: str, result: sj.Result) -> None:
    assert result.scenario.hash in page
    assert result.build in page
    assert "[[traffic]]" in page


def test_a_report_has_the_command_that_explains_a_drop(scenario: sj.Scenario) -> None:
    """The first of those in the interval with the most of them."""
    result = sj.run(decided.scenario("codel", sample="100ms"))
    found = re.search(
        r"<code>sojourn why DIR --arm default --drop (\d+)</code>", report.html(result)
    )
    assert found is not None
    t_s = result.events["t_s"].to_list()
    intervals = [math.ceil(round(t * 10, 6)) for t in t_s]
    most = max(intervals, key=intervals.count)
    assert int(found[1]) == intervals.index(most)
    assert result.why(drop=int(found[1]))["action_s"] == pytest.approx(t_s[int(found[1])])
    idle = scenario.replace(arms=[], replications=1, traffic=[sj.Ping(direction="up")])
    assert "sojourn why" not in report.html(sj.run(idle))


def test_dark_mode_and_every_arm_have_their_colours(page: str) -> None:
    assert "prefers-color-scheme: dark" in page
    for arm in ("fifo", "fq"):
        assert f"</i>{arm}</label>" in page


def test_names_cannot_break_the_page(scenario: sj.Scenario) -> None:
    arms = [sj.Arm(name="<script>&", set={"links.up.qdisc": "pfifo"})]
    hostile = scenario.replace(name="a <b> & c", arms=arms, replications=1, duration="4s")
    page = report.html(sj.run(hostile))
    outline = Outline()
    outline.feed(page)
    assert outline.open == []
    assert "<script" not in page
    assert "n = 1" in page


def test_a_link_that_was_no_bottleneck_raises_the_alarm(scenario: sj.Scenario) -> None:
    idle = scenario.replace(
        traffic=[
            sj.Udp(direction="up", rate="100kbit"),
            sj.Ping(direction="up", interval="100ms"),
        ]
    )
    page = report.html(sj.run(idle))
    assert 'class="validity invalid" role="alert"' in page
    assert "no link was a bottleneck" in page


def test_a_result_without_pings_or_without_tcp_has_a_report(scenario: sj.Scenario) -> None:
    only_udp = scenario.replace(traffic=[sj.Udp(direction="up", rate="2mbit")], replications=2)
    assert "Goodput up" in report.html(sj.run(only_udp))
    only_pings = scenario.replace(
        traffic=[sj.Ping(direction="up", interval="100ms")], replications=2
    )
    assert "Ping" in report.html(sj.run(only_pings))


def test_a_trace_and_a_single_arm_are_named_as_such(scenario: sj.Scenario, tmp_path: Path) -> None:
    (tmp_path / "cell.trace").write_text("6\n12\n", encoding="utf-8")
    links = {**scenario.links, "up": sj.Link(trace=str(tmp_path / "cell.trace"), qdisc="codel")}
    page = report.html(sj.run(scenario.replace(links=links, arms=[], replications=2)))
    # 1504 B every 6 ms.
    assert "up trace cell.trace (mean 2.01 Mbit/s)" in page
    assert "None" not in page
    assert "<h2>Findings</h2>" not in page
    assert "<h2>Summary</h2>" in page


def test_a_report_tells_how_long_users_waited() -> None:
    result = sj.run(
        sj.Scenario(
            links={"down": sj.Link(rate="10mbit", qdisc="fq_codel"), "up": "unlimited"},
            traffic=[
                sj.Web(direction="down", name="<readers>", page="small", think="1s"),
                sj.Voip(direction="down", name="callers"),
            ],
            rtt="20ms",
            duration="6s",
            replications=2,
        )
    )
    page = report.html(result)
    outline = Outline()
    outline.feed(page)
    assert outline.open == []
    assert "<h3>&lt;readers&gt;</h3>" in page
    assert "duration [s]" in page
    load = result.summary("application").filter(group="<readers>", metric="duration_s_mean")
    assert f"<td>{load['mean'].item():.3f}<small>" in page
    voice = page[page.index("<h3>callers</h3>") :]
    assert "MOS" in voice
    assert "transactions" not in voice[: voice.index("</table>")]


def test_differences_of_applications_and_transfers_stand_below_their_tables() -> None:
    down = {"fq": "fq_codel", "fifo": "pfifo limit 200"}
    result = sj.run(
        sj.Scenario(
            links={"down": sj.Link(rate="10mbit", qdisc="pfifo"), "up": "unlimited"},
            traffic=[
                sj.Tcp(direction="down", name="bulk"),
                sj.Tcp(direction="down", name="files", bytes="100kb", count=2, start="1s"),
                sj.Web(direction="down", name="readers", page="small", think="500ms"),
            ],
            arms=[sj.Arm(name=arm, set={"links.down.qdisc": q}) for arm, q in down.items()],
            rtt="20ms",
            duration="6s",
            replications=2,
        )
    )
    page = report.html(result)
    outline = Outline()
    outline.feed(page)
    assert outline.open == []
    groups = page[page.index("Traffic groups") : page.index("<h2>Applications")]
    for name in ("bulk", "files"):
        assert groups.count(f'<th scope="row">{name}</th>') == 3
    assert groups.count("<h3>Difference from fq</h3>") == 1
    section = page[page.index("<h2>Applications") :]
    assert section.count("<h4>Difference from fq</h4>") == 1
    compared = result.difference("fq", "fifo", "application")
    load = compared.filter(group="readers", metric="duration_s_mean").row(0, named=True)
    assert load["mean"] > 0
    assert f"+{load['mean']:.1f}" in section[section.index("<h3>readers</h3>") :]
    # The findings say so in words.
    said = page[page.index("<h2>Findings") : page.index("<h2>Summary")]
    assert f"readers: duration +{load['mean']:.1f}" in said
    assert "files: completion +" in said


def test_the_provenance_of_live_runs_does_not_promise_the_same_numbers(
    result: sj.Result, tmp_path: Path
) -> None:
    assert "depends only on the scenario" in report.html(result)
    result.save(tmp_path / "live")
    backend = {"name": "live", "version": "0.1.0", "commit": "0", "deterministic": False}
    edit(tmp_path / "live", {"backend": backend | {"kernel": "6.1.0"}})
    page = report.html(sj.Result.load(tmp_path / "live"))
    assert "a repetition gives other numbers" in page
    assert "Linux 6.1.0" in page
    assert "depends only on the scenario" not in page
