"""The suite of RFC 7928: quotations, scenarios, metrics, verdicts, reports and messages."""

import gzip
import json
import os
import re
from pathlib import Path

import polars as pl
import pytest

import sojourn as sj
from sojourn import _core
from sojourn.rfc7928_suite import api
from sojourn.rfc7928_suite.definitions import DEFINITIONS, DISCUSSIONS, QUOTATIONS
from sojourn.rfc7928_suite.discussion import discuss, drop_times
from sojourn.rfc7928_suite.scenarios import HEAVY, MEDIUM, MILD, SCENARIOS
from sojourn.rfc7928_suite.suite import NUMBERS, characterise
from sojourn.rfc7928_suite.topology import (
    DROP_TAIL,
    FULL,
    QUICK,
    RATE_MBIT,
    Form,
    QueueUnderTest,
    bdp_packets,
    bulk,
    dumbbell,
    flows,
)
from sojourn.suites.case import Case, cases
from sojourn.suites.measuring import measure
from sojourn.suites.page import results
from sojourn.suites.selection import selected
from support.shell import Command

DATA = Path(__file__).parents[1] / "data"
QUEUES = [entry["name"] for entry in json.loads(_core.qdisc_catalogue())]
SHORT = Form(
    name="short",
    replications=1,
    warmup_s=0.5,
    steady_s=1.5,
    fairness_s=1.5,
    phase_s=0.5,
    cycles=1,
    alternating_s=1.0,
    rtts_ms=(5, 560),
    ecn_rtts_ms=(100,),
)
# With enough time and runs for verdicts.
JUDGED = Form(
    name="judged",
    replications=3,
    warmup_s=2.0,
    steady_s=6.0,
    fairness_s=6.0,
    phase_s=1.0,
    cycles=1,
    alternating_s=1.0,
    rtts_ms=(20, 200),
    ecn_rtts_ms=(100,),
)


def sections() -> dict[str, str]:
    """Split the text of RFC 7928 by section, with single spaces."""
    text = gzip.decompress((DATA / "rfc7928.txt.gz").read_bytes()).decode("ascii")
    lines = [
        line
        for line in text.replace("\f", "").splitlines()
        if not re.match(r"Kuhn, et al\.|RFC 7928 ", line)
    ]
    found: dict[str, list[str]] = {}
    current: list[str] = []
    for line in lines:
        # Not the lines of the table of contents, which are indented.
        if match := re.match(r"(\d+(?:\.\d+)*)\.  \S", line):
            current = found.setdefault(match[1], [])
        else:
            current.append(line)
    # A compound that is broken at its hyphen.
    return {
        number: re.sub(r"(\w)- (\w)", r"\1-\2", re.sub(r"\s+", " ", " ".join(part)))
        for number, part in found.items()
    }


def test_quotations_are_in_the_sections_that_they_name() -> None:
    text = sections()
    assert len(QUOTATIONS) > 25
    for one in QUOTATIONS.values():
        assert one.text in text[one.section], one


def test_every_testable_section_has_a_scenario() -> None:
    assert list(NUMBERS) == [
        *("4.4", "4.5", "4.6", "5.1.1", "5.1.2", "5.2", "5.3.1", "5.3.2", "5.4", "6.2", "7.2"),
        *("8.2.2", "8.2.3", "8.2.4", "8.2.5", "8.2.6.1", "8.2.6.2", "8.3", "9.1", "9.2", "10.2"),
        *("11", "12"),
    ]
    assert set(NUMBERS) == {*DEFINITIONS, *DISCUSSIONS}
    assert DEFINITIONS.keys() == SCENARIOS.keys()


def test_the_number_of_flows_follows_the_formulae() -> None:
    # S = 83 + 83 packets.
    assert [flows(factor) for factor in (MILD, MEDIUM, HEAVY)] == [6, 13, 19]
    for number, factor in {"8.2.2": MILD, "8.2.3": MEDIUM, "8.2.4": HEAVY}.items():
        stated = DEFINITIONS[number]
        assert f"ROUND({factor} S)" in stated.rfc
        assert f" {flows(factor)} flows" in stated.ours
    both_ways = DEFINITIONS["9.2"].ours
    assert f"{flows(MILD)} flows per direction of 10 Mbit/s" in both_ways
    assert f"{flows(MILD, bdp_packets(RATE_MBIT / 5))} at 2 Mbit/s" in both_ways


@pytest.mark.parametrize("queue", QUEUES)
def test_every_scenario_builds_for_every_queue(queue: str) -> None:
    tested = QueueUnderTest(queue)
    built = cases(SCENARIOS, tested, SHORT, NUMBERS, seed=1)
    assert set(built) == set(DEFINITIONS)
    for number, several in built.items():
        for case in several:
            assert case.scenario.checked.arms[:2] == [DROP_TAIL, queue], number


@pytest.mark.parametrize("queue", QUEUES if os.environ.get("SOJOURN_ALL_QUEUES") else ["fq_codel"])
def test_every_scenario_runs(queue: str) -> None:
    found = characterise(
        QueueUnderTest(queue),
        SHORT,
        cases(SCENARIOS, QueueUnderTest(queue), SHORT, NUMBERS, seed=1),
    )
    assert set(found.measurements) == set(DEFINITIONS)
    for number, several in found.measurements.items():
        for one in several:
            classes = set(one.case.classes.values())
            assert classes < set(one.groups), number
            of_all = one.runs.filter(pl.col("group") == "all")
            assert of_all["goodput_mbit_per_s"].min() > 0.0, number
            assert of_all["queueing_ms"].null_count() == 0, number


@pytest.mark.parametrize("queue", QUEUES)
def test_a_scenario_runs_for_every_queue(queue: str) -> None:
    tested = QueueUnderTest(queue)
    found = characterise(tested, SHORT, cases(SCENARIOS, tested, SHORT, ["5.3.2"], seed=1))
    (one,) = found.measurements["5.3.2"]
    # ared is a form of red.
    assert one.specs[queue].split()[0] == sj.qdisc(queue).spec.split()[0]
    assert one.runs["goodput_mbit_per_s"].min() > 0.0


def test_all_queues_have_the_same_buffer_unless_they_set_it() -> None:
    assert QueueUnderTest("codel").spec(83) == "codel limit 83"
    assert QueueUnderTest("codel limit 20").spec(83) == "codel limit 20"
    assert QueueUnderTest("red").spec(83) == f"red limit {83 * 1514}b"
    assert QueueUnderTest("cake").spec(83) == "cake"
    assert QueueUnderTest("codel").marking(83) == "codel limit 83 ecn"
    assert QueueUnderTest("codel noecn").marking(83) == "codel noecn limit 83"
    assert QueueUnderTest("codel").other_parameters(83)[0] == "codel limit 83 target 10000us"
    assert QueueUnderTest("pfifo").other_parameters(83)[0] == "pfifo limit 166"
    assert "identical" in QueueUnderTest("drr").other_parameters(83)[1]


def test_metrics_of_a_case_follow_from_its_tables() -> None:
    scenario = dumbbell(QueueUnderTest("codel"), JUDGED, [bulk("I"), bulk("II")], measured_s=6.0)
    case = Case(scenario=scenario, classes={"I": "I", "II": "II"}, categories=("I", "II"))
    result = sj.run(case.scenario)
    runs = measure(result, case).filter(arm="codel", replication=0)
    flow = result.flows.filter(arm="codel", replication=0)
    rates = {group: runs.filter(group=group)["goodput_mbit_per_s"].item() for group in ("I", "II")}
    for group, rate in rates.items():
        delivered = flow.filter(group=group)["delivered_bytes"].item()
        assert rate == pytest.approx(delivered * 8e-6 / 6.0)
    whole = runs.filter(group="all")
    assert whole["ratio"].item() == pytest.approx(rates["II"] / rates["I"])
    # One of two flows, or both, have a drop in a loss event.
    assert 0.5 <= whole["synchronisation"].item() <= 1.0
    drops = result.events.filter(arm="codel", replication=0, action="drop", flow="I")
    lost = drops.filter(pl.col("t_s") >= 2.0).height
    sent = flow.filter(group="I")["sent_packets"].item()
    assert runs.filter(group="I")["loss_percent"].item() == pytest.approx(lost / sent * 100)


def test_phases_differ_in_goodput() -> None:
    tested = QueueUnderTest("codel")
    found = characterise(tested, JUDGED, cases(SCENARIOS, tested, JUDGED, ["8.2.6.1"], seed=1))
    (one,) = found.measurements["8.2.6.1"]
    means = one.runs.group_by("group").agg(pl.col("goodput_mbit_per_s").mean())
    high, low = (
        means.filter(group=group)["goodput_mbit_per_s"].item()
        for group in ("phase I 100 Mbit/s", "phase II 10 Mbit/s")
    )
    assert high > 1.5 * low


def test_verdicts_follow_the_intervals_and_the_acts_of_the_queue() -> None:
    verdicts = {}
    for queue in ("codel", "pfifo"):
        tested = QueueUnderTest(queue)
        found = characterise(
            tested, JUDGED, cases(SCENARIOS, tested, JUDGED, ["4.5", "5.1.1"], seed=1)
        )
        verdicts[queue] = [(number, one.verdict) for number, one in found.checked]
    assert [number for number, _ in verdicts["codel"]] == ["4.5", "4.5", "5.1.1"]
    assert verdicts["codel"][0][1] in {"pass", "undecided"}
    assert verdicts["codel"][-1] == ("5.1.1", "pass")
    assert {verdict for _, verdict in verdicts["pfifo"]} == {"not applicable"}


def test_directions_are_stated_by_the_rfc() -> None:
    stated = {
        number: {one.quotation.section for one in definition.directions}
        for number, definition in DEFINITIONS.items()
        if definition.directions
    }
    assert stated == {
        "4.4": {"4.4"},
        "4.5": {"2.5"},
        "5.1.1": {"1"},
        "5.2": {"5"},
        "5.3.1": {"5"},
        "5.3.2": {"5"},
        "5.4": {"5.4"},
        "8.2.2": {"1", "2.4"},
        "8.2.3": {"1", "2.4"},
        "8.2.4": {"1", "2.4"},
    }


def test_the_time_of_drops_is_observed() -> None:
    assert drop_times(QueueUnderTest("pie")).startswith("AQM: 100 % at arrivals")
    assert drop_times(QueueUnderTest("codel")).startswith("AQM: 100 % at departures")
    assert drop_times(QueueUnderTest("pfifo")) == "full buffer: 100 % at arrivals"


def test_discussions_list_every_parameter() -> None:
    parameters = [row[0] for row in discuss(QueueUnderTest("codel"), "12").rows]
    assert parameters == ["limit", "target", "interval", "ce_threshold", "ecn", "profile"]
    assert discuss(QueueUnderTest("codel target 9ms"), "12").rows[1][1] == "set by the tester"


def test_a_report_shows_setup_quotation_verdict_and_figures(tmp_path: Path) -> None:
    planned = api.prepared(["codel"], ["5.1.1", "6.2", "8.2.5", "11"], JUDGED)
    (report,) = planned.reports(sj.run)
    file = report.save(tmp_path)
    text = file.read_text(encoding="utf-8")
    assert file.name == "codel.html"
    assert "not application" not in text
    for part in (
        "Directions that the RFC states",
        QUOTATIONS["same_window"].text,
        "of ns-3&#x27;s suite",
        "Goodput of reno against its queueing delay",
        "Goodput of category II relative to category I",
        "phase II medium",
        "11 Implementation cost",
    ):
        assert part in text, part
    assert text.count("<h2>") == 6
    # Its own report is replaced, another file is not.
    report.save(tmp_path)
    file.write_text("mine", encoding="utf-8")
    with pytest.raises(sj.ResultError, match=r"codel\.html"):
        report.save(tmp_path)
    assert set(report.verdicts["number"]) == {"5.1.1"}
    assert set(report.runs["number"]) == {"5.1.1", "6.2", "8.2.5"}


def test_results_have_a_row_per_group_and_arm() -> None:
    tested = QueueUnderTest("codel")
    found = characterise(tested, SHORT, cases(SCENARIOS, tested, SHORT, ["9.1"], seed=1))
    table = results(found.measurements["9.1"])
    assert list(map(str, table.columns))[:3] == ["traffic", "arm", "goodput [Mbit/s]"]
    groups = ["all", "voip down", "voip up", "web", "cbr", "video", "bulk"]
    assert [row[:2] for row in table.rows] == [
        [g, arm] for g in groups for arm in (DROP_TAIL, "codel")
    ]


def test_a_section_stands_for_its_scenarios() -> None:
    assert selected(["5.3", "12"], NUMBERS) == ["5.3.1", "5.3.2", "12"]
    # Section 1 is not section 11.
    with pytest.raises(sj.ScenarioError, match=r"section='1': unknown; expected one of 4"):
        selected(["1"], NUMBERS)


@pytest.mark.parametrize(
    ("queues", "numbers", "message"),
    [
        (["codel"], ["8.9"], "section='8.9': unknown; expected one of 4.4, "),
        (["cudel"], None, "queues='cudel': unknown queue; did you mean \"codel\"?"),
        (["codel colour 5ms"], None, "colour"),
        ([], None, "expected at least one queue, such as codel"),
        (["codel", " codel"], None, "queues='codel': given twice; expected each queue once"),
    ],
)
def test_a_mistake_is_refused(queues: list[str], numbers: list[str] | None, message: str) -> None:
    with pytest.raises(sj.ScenarioError) as refused:
        api.prepared(queues, numbers, SHORT)
    assert message in str(refused.value)


def test_a_mistake_gives_one_line_and_no_directory(sojourn: Command, tmp_path: Path) -> None:
    run = sojourn("rfc7928", "codel", "--section", "8.9", "--out", str(tmp_path / "out"))
    assert run.returncode == 2
    assert run.stderr.startswith("sojourn: --section 8.9: unknown; expected one of")
    assert run.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_the_command_prints_tables_and_lists_scenarios(sojourn: Command, tmp_path: Path) -> None:
    listed = sojourn("rfc7928", "--list")
    assert listed.returncode == 0
    assert "8.2.6.2" in listed.stdout
    run = sojourn("rfc7928", "codel", "--section", "5.1.1", "--out", str(tmp_path), "--check")
    assert run.returncode == 0, run.stderr
    answer = "codel: RFC 7928 states 1 direction: 1 confirmed, 0 not confirmed, 0 undecided."
    assert run.stdout.splitlines()[0] == answer
    table = "codel: 5.1.1 TCP-friendly sender, same initial window"
    assert table not in run.stdout
    whole = sojourn("rfc7928", "codel", "--section", "5.1.1", "--out", str(tmp_path), "--all")
    assert table in whole.stdout
    assert f"wrote report to {tmp_path / 'codel.html'}" in run.stderr
    # The finished runs are removed from the store, since the report is written.
    again = sojourn("rfc7928", "codel", "--section", "5.1.1", "--out", str(tmp_path), "--json")
    (document,) = json.loads(again.stdout)
    assert document["verdicts"][0]["verdict"] == "pass"


def test_values_of_the_scenarios_can_be_changed(sojourn: Command) -> None:
    words = ("rfc7928", "codel", "--section", "5.1.1", "--json", "-s")
    (document,) = json.loads(sojourn(*words, "replications=2").stdout)
    assert {run["replication"] for run in document["runs"]} == {0, 1}
    done = sojourn(*words, "links.nowhere.rate=1mbit")
    assert done.returncode == 2
    assert "scenario 5.1.1: links.nowhere" in done.stderr


def test_all_stands_for_every_queue(sojourn: Command) -> None:
    done = sojourn("rfc7928", "all", "codel")
    assert done.returncode == 2
    assert "all stands for every queue; expected no other queue" in done.stderr


def test_the_guide_states_the_durations() -> None:
    guide = Path(__file__).parents[3] / "docs" / "howto" / "rfc7928.md"
    text = " ".join(guide.read_text(encoding="utf-8").split())

    def durations(form: Form) -> dict[str, set[float]]:
        built = api.prepared(["codel"], None, form, seed=1).cases["codel"]
        return {
            number: {case.scenario.checked.duration_s for case in of_number}
            for number, of_number in built.items()
        }

    full = durations(FULL)
    assert "10 runs of 300 s; of 600 s in 4.5 and 6.2, 320 s in 8.2.5, 220 s in 8.2.6.1" in text
    assert "and 80 s in 8.2.6.2" in text
    others = {"4.5": 600.0, "6.2": 600.0, "8.2.5": 320.0, "8.2.6.1": 220.0, "8.2.6.2": 80.0}
    assert full == {number: {others.get(number, 300.0)} for number in full}
    quick = durations(QUICK)
    assert "5 runs of 30 to 65 s (15 s in 8.2.6.2)" in text
    assert quick.pop("8.2.6.2") == {15.0}
    assert (min(map(min, quick.values())), max(map(max, quick.values()))) == (30.0, 65.0)
