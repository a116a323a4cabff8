"""The criteria of RFC 9743: scenarios, metrics, verdicts, reports and messages."""

import json
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import sojourn as sj
from sojourn import _core
from sojourn.control_suite import api, page
from sojourn.control_suite.definitions import RFC9743
from sojourn.control_suite.evaluation import Evaluation, evaluate, together
from sojourn.control_suite.measuring import measured
from sojourn.control_suite.scenarios import SCENARIOS
from sojourn.control_suite.topology import (
    QUICK,
    ControlCase,
    ControlUnderTest,
    Form,
    bdp_packets,
    bulk,
    dumbbell,
)
from sojourn.control_suite.topology import (
    Path as Line,
)
from sojourn.suites.case import cases
from support.shell import Command

CONTROLS = [entry["name"] for entry in json.loads(_core.cc_catalogue())]
SHORT = Form(name="short", replications=2, warmup_s=1.0, measured_s=3.0)
# With enough time and runs for verdicts.
JUDGED = Form(name="judged", replications=3, warmup_s=4.0, measured_s=10.0)
# Grows by 1000 segments per round trip, and reduces its window by a thousandth.
BAD = "reno alpha 1000 beta 1023/1024"


def found(control: str, numbers: list[str], form: Form = JUDGED, **others: Any) -> Evaluation:
    tested = ControlUnderTest(control, **others)
    built = cases(SCENARIOS, tested, form, numbers, seed=1)
    return evaluate(RFC9743, tested, form, numbers, built, runner=sj.run, drawn=page.drawn)


def verdicts(one: Evaluation) -> dict[str, str]:
    return {outcome.number: outcome.verdict for outcome in one.outcomes}


def test_every_criterion_has_runs_or_a_reason() -> None:
    assert list(RFC9743.criteria) == [
        *("5.1.1", "5.1.2", "5.1.3", "5.1.4", "5.1.5", "5.2", "5.2.1", "5.2.2", "5.2.3"),
        *("5.3.1", "5.3.2", "6.1", "6.2", "6.3", "6.4", "7.1", "7.1.1", "7.2", "7.3", "7.4"),
        *("7.5", "7.6", "7.7", "7.7.1", "7.8", "7.9"),
    ]
    for number, one in RFC9743.criteria.items():
        assert (number in SCENARIOS) == bool(one.checks), number
        assert bool(one.checks) != bool(one.not_testable or one.not_applicable), number
        assert bool(one.how) == bool(one.checks), number


@pytest.mark.parametrize("control", CONTROLS)
def test_every_case_builds_for_every_control_and_has_a_comparison(control: str) -> None:
    tested = ControlUnderTest(control)
    built = cases(SCENARIOS, tested, SHORT, list(RFC9743.criteria), seed=1)
    for number, several in built.items():
        checks = RFC9743.criteria[number].checks
        for case in several:
            assert case.scenario.checked.arms == list(tested.arms), number
            assert any(one.cases in case.name for one in checks), (number, case.name)
        for one in checks:
            assert any(one.cases in case.name for case in several), (number, one)


@pytest.mark.slow
def test_every_criterion_is_decided_in_a_short_form() -> None:
    one = found("cubic", list(RFC9743.criteria), SHORT)
    assert set(verdicts(one)) == set(RFC9743.criteria)
    for outcome in one.outcomes:
        for judged in outcome.judged:
            # Every comparison is measured.
            assert judged.judgement.measured is not None, (outcome.number, judged.check.that)
            assert judged.numbers
    assert one.runs()["control"].unique().to_list() == ["cubic"]
    assert page.summary(one).startswith("cubic: of 21 criteria of RFC 9743 that runs can test, ")


def test_a_bad_control_fails_and_a_standard_one_passes() -> None:
    numbers = ["5.1.3", "5.2.1"]
    assert verdicts(found("cubic", numbers)) == {"5.1.3": "pass", "5.2.1": "pass"}
    bad = found(BAD, numbers)
    assert verdicts(bad) == {"5.1.3": "fail", "5.2.1": "fail"}
    failed = {one.check.why for _, one in bad.checked if one.verdict == "fail"}
    assert "at most 5 % of the packets are dropped" in failed
    assert "the victim keeps half of what it has beside a standard control" in failed


def test_a_control_that_never_gives_way_to_loss_fails() -> None:
    # Version 1 of BBR: RFC 9743 section 5.1.3 says that it failed this criterion.
    one = found("bbr", ["5.1.3"])
    assert verdicts(one) == {"5.1.3": "fail"}


def test_tunnels_concern_controls_that_need_signals() -> None:
    reasons = {
        control: [(one.verdict, one.reason) for one in found(control, ["6.2"]).outcomes]
        for control in ("cubic", "prague")
    }
    ((verdict, reason),) = reasons["cubic"]
    assert verdict == "not applicable"
    assert "no explicit signal" in reason
    assert reasons["prague"][0][0] == "not testable here"


def test_metrics_follow_from_the_tables() -> None:
    tested = ControlUnderTest("cubic")
    scenario = dumbbell(tested, SHORT, Line(), [bulk("a"), bulk("b")], varied=["a", "b"])
    case = ControlCase(scenario=scenario, classes={"a": "a", "b": "b"})
    result = sj.run(scenario)
    runs = measured(result, case).filter(arm="cubic", replication=0)
    flows = result.flows.filter(pl.col("group") != "probe", arm="cubic", replication=0)
    rates = flows["goodput_mbit_per_s"].to_list()
    whole = runs.filter(group="all")
    assert whole["jain"].item() == pytest.approx(
        sum(rates) ** 2 / (2 * sum(rate**2 for rate in rates))
    )
    shares = [rate / (sum(rates) / 2) for rate in rates]
    assert whole["smallest_share"].item() == pytest.approx(min(shares))
    of_a = flows.filter(group="a")
    share = of_a["goodput_mbit_per_s"].item() / (sum(rates) / 2)
    assert runs.filter(group="a")["fair_share"].item() == pytest.approx(share)
    # 3 s are 75 round trips of 40 ms.
    per_rtt = flows["sent_packets"].sum() / 2 / 75
    assert whole["packets_per_rtt"].item() == pytest.approx(per_rtt)
    used = sum(flows["delivered_bytes"].to_list()) * 8e-6 / 3.0 / 20.0 * 100
    assert whole["used_percent"].item() == pytest.approx(used)
    link = result.links.filter(arm="cubic", replication=0, link="down")
    expected = link["sojourn_ms_mean"].item() / 40.0
    assert whole["queueing_rtts"].item() == pytest.approx(expected)


def test_the_most_favourable_standard_control_decides() -> None:
    one = found("highspeed", ["5.1.2"])
    relative = [judged for _, judged in one.checked if judged.check.is_relative]
    assert {judged.standard for judged in relative} <= {"cubic", "reno"}
    alone = found("highspeed", ["5.1.2"], standards=("reno",))
    assert alone.tested.arms == ("highspeed", "reno")
    assert {j.standard for _, j in alone.checked if j.check.is_relative} == {"reno"}


def test_a_summary_says_that_no_selected_criterion_can_be_tested() -> None:
    none = page.summary(found("cubic", ["5.3.1", "5.3.2"]))
    assert none == (
        "cubic: of 2 selected criteria of RFC 9743, runs can test none; 2 not testable here."
    )


def test_numbers_have_units_in_the_singular_and_differences_of_percentages_in_points() -> None:
    one = found("cubic", ["5.1.1", "5.1.2"])
    numbers = [judged.numbers for _, judged in one.checked]
    assert any("%, bound ≥ 60 %, difference " in text for text in numbers)
    assert all(text.endswith("percentage points") for text in numbers if "%" in text)
    assert any(", bound ≤ 1 RTT, " in text for text in numbers)
    assert any(", bound ≤ 1 packet per RTT, " in text for text in numbers)


def test_verdicts_combine() -> None:
    assert together(["pass", "pass"]) == "pass"
    assert together(["pass", "undecided"]) == "undecided"
    assert together(["undecided", "fail"]) == "fail"


def test_a_report_has_verdicts_comparisons_and_figures(tmp_path: Path) -> None:
    numbers = ["5.1.3", "5.3.1", "7.7.1"]
    planned = api.prepared(RFC9743, SCENARIOS, ["cubic"], numbers, SHORT)
    (report,) = planned.reports(sj.run)
    text = report.save(tmp_path).read_text(encoding="utf-8")
    for part in (
        "RFC 9743: cubic",
        "of 2 selected criteria of RFC 9743 (runs can test 21), ",
        "reduce its sending rate if experiencing high packet loss",
        "at most 5 % of the packets are dropped",
        "a statement of the specification, which no run measures",
        "Margins of all comparisons",
        "Used capacity against queueing delay",
        "another path for a while",
        "Goodput down",
    ):
        assert part in text, part
    assert set(report.verdicts["number"]) == {"5.1.3", "5.3.1", "7.7.1"}
    assert report.comparisons.height == 4 + 3 * 4
    assert report.comparisons["bound"].null_count() == 0


@pytest.mark.parametrize(
    ("controls", "others", "message"),
    [
        (["cubci"], {}, "controls='cubci': unknown congestion control; did you mean"),
        (["./mycc.py:Cc"], {}, "a control cannot be a class in Python; `make new-cc NAME=foo`"),
        (["cubic", " cubic"], {}, "controls='cubic': given twice; expected each control once"),
        ([], {}, "expected at least one control, such as cubic"),
        (["cubic"], {"section": "8"}, "section='8': unknown; expected one of 5.1.1, "),
        (["cubic"], {"against": "rneo"}, "against='rneo'"),
        (["cubic"], {"against": ["reno", "reno"]}, "expected each control once"),
    ],
)
def test_a_mistake_is_refused(controls: list[str], others: dict[str, Any], message: str) -> None:
    with pytest.raises(sj.ScenarioError) as refused:
        sj.rfc9743(controls, **others)
    assert message in str(refused.value)


def test_the_command_answers_first(sojourn: Command, tmp_path: Path) -> None:
    listed = sojourn("rfc9743", "--list")
    assert listed.returncode == 0
    assert "7.7.1" in listed.stdout
    words = (
        "rfc9743",
        "reno",
        "--section",
        "5.1.2",
        "--out",
        str(tmp_path),
        "-s",
        "replications=2",
    )
    run = sojourn(*words, "--check")
    # Reno fills deep buffers.
    assert run.returncode == 1, run.stderr
    first = run.stdout.splitlines()[0]
    assert first == "reno: of 1 selected criterion of RFC 9743 (runs can test 21), 1 is not met."
    assert "the standing queue is at most one base RTT" in " ".join(run.stdout.split())
    assert f"wrote report to {tmp_path / 'reno.html'}" in run.stderr
    (document,) = json.loads(sojourn(*words, "--json").stdout)
    assert document["verdicts"][0]["verdict"] == "fail"
    refused = sojourn("rfc9743", "reno", "--section", "9")
    assert refused.returncode == 2
    assert refused.stderr.startswith("sojourn: --section 9: unknown; expected one of")
    assert refused.stderr.endswith(", 7.9, or 5, 6 or 7 for all below\n")
    assert refused.stderr.count("\n") == 1


def test_the_guide_states_the_setup() -> None:
    guide = Path(__file__).parents[3] / "docs" / "howto" / "rfc9743.md"
    text = " ".join(guide.read_text(encoding="utf-8").split())
    total = QUICK.warmup_s + QUICK.measured_s
    assert f"{QUICK.replications} runs of {total:g} s per control" in text
    assert "20 Mbit/s, RTT 40 ms" in text
    assert bdp_packets() == 67


def test_the_records_have_every_control_and_every_criterion() -> None:
    root = Path(__file__).parents[3]
    makefile = (root / "Makefile").read_text(encoding="utf-8")
    (controls,) = re.findall(r"^RFC_CONTROLS := (.*)$", makefile, re.MULTILINE)
    pages = root / "docs" / "validation"
    overview = (pages / "rfc9743.md").read_text(encoding="utf-8")
    assert f"| level | {' | '.join(f'`{one}`' for one in controls.split())} |" in overview
    for name in ("rfc9743", *(f"rfc9743_{one}" for one in controls.split())):
        record = (pages / f"{name}.md").read_text(encoding="utf-8")
        numbers = re.findall(r"^\| (\d[\d.]*) ", record, re.MULTILINE)
        assert numbers == list(RFC9743.criteria), name
        assert name == "rfc9743" or f"({name}.md)" in overview
