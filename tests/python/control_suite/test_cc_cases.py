"""The test cases of BBR's draft: scenarios, observations, verdicts and the command."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import sojourn as sj
from sojourn.control_suite.bbr_cases import BUILDERS, Trace
from sojourn.control_suite.definitions import BBR_CASES
from sojourn.control_suite.evaluation import Evaluation, evaluate
from sojourn.control_suite.topology import CASES, ControlUnderTest
from sojourn.suites.case import cases
from support.shell import Command

ROOT = Path(__file__).parents[3]


def found(control: str, numbers: list[str]) -> Evaluation:
    tested = ControlUnderTest(control, ())
    built = cases(BUILDERS, tested, CASES, numbers, seed=1)
    return evaluate(BBR_CASES, tested, CASES, numbers, built, runner=sj.run)


def test_the_22_cases_have_runs_or_a_reason() -> None:
    assert list(BBR_CASES.criteria) == [f"A.{number}" for number in range(1, 23)]
    for number, one in BBR_CASES.criteria.items():
        assert (number in BUILDERS) == bool(one.checks) == (not one.not_testable), number


def test_unit_tests_that_reasons_name_exist() -> None:
    folder = ROOT / "crates" / "transport" / "src" / "cc" / "bbr3"
    sources = "".join(file.read_text(encoding="utf-8") for file in folder.rglob("*.rs"))
    named = [
        name
        for one in BBR_CASES.criteria.values()
        for name in re.findall(r"\b[a-z]+(?:_[a-z]+){4,}\b", one.not_testable)
    ]
    assert len(named) == 2
    for name in named:
        assert f"fn {name}()" in sources, name


@pytest.mark.slow
def test_bbr3_passes_every_case_that_runs_can_test() -> None:
    one = found("bbr3", list(BUILDERS))
    failed = [
        (number, judged.check.why, judged.numbers)
        for number, judged in one.checked
        if judged.verdict != "pass"
    ]
    assert failed == []


def test_other_controls_and_other_parameters_fail() -> None:
    verdicts = {
        control: {one.number: one.verdict for one in found(control, ["A.3", "A.10"]).outcomes}
        for control in ("cubic", "bbr3 drain_pacing_gain 0.8 probe_rtt_cwnd_gain 1")
    }
    assert all(set(of.values()) == {"fail"} for of in verdicts.values()), verdicts


def test_spells_and_times_of_a_trace() -> None:
    zeros = np.zeros(5)
    trace = Trace(
        t_s=np.array([1.0, 2.0, 3.0, 4.0, 5.0]),
        sent=np.array([0.0, 2.0, 2.0, 0.0, 2.0]),
        delivered=zeros,
        in_flight=zeros,
        cwnd=zeros,
        cwnd_packets=zeros,
        dropped=zeros,
        rtt_s=0.04,
        sample_s=1.0,
    )
    assert list(trace.spells(trace.sent > 1.0)) == [(1, 3), (4, 5)]
    assert trace.first(trace.sent > 1.0) == 2.0
    assert trace.first(trace.sent > 1.0, after_s=3.0) == 5.0
    assert trace.first(trace.sent > 3.0) is None
    assert trace.during(1.0, 3.0).tolist() == [False, True, True, False, False]


def test_the_command_answers_first(sojourn: Command, tmp_path: Path) -> None:
    words = ("cc-cases", "bbr3", "--case", "A.1", "--case", "A.2", "--out", str(tmp_path))
    run = sojourn(*words, "--check")
    assert run.returncode == 0, run.stderr
    answer = (
        "bbr3: of 1 selected test case of draft-ietf-ccwg-bbr-06 (runs can test 16), 1 is met; "
        "1 not testable here."
    )
    assert run.stdout.splitlines()[0] == answer
    text = (tmp_path / "bbr3.html").read_text(encoding="utf-8")
    assert "Exiting STARTUP on bandwidth plateau" in text
    assert "section A.1" in text
    # There is only one form.
    assert "form:" not in text
    assert "5 runs per arm" in text
    (document,) = json.loads(sojourn(*words, "--json").stdout)
    assert [one["verdict"] for one in document["verdicts"]] == ["pass", "not testable here"]
    assert "A.22" in sojourn("cc-cases", "--list").stdout
    refused = sojourn("cc-cases", "bbr3", "--case", "A.23")
    assert refused.returncode == 2
    assert refused.stderr.startswith("sojourn: --case A.23: unknown; expected one of A.1, ")


@pytest.mark.parametrize("control", ["reno", "prague", "ledbat"])
def test_every_case_can_be_tried_with_any_control(control: str) -> None:
    one = found(control, ["A.1", "A.14", "A.21"])
    assert {outcome.verdict for outcome in one.outcomes} <= {"pass", "fail", "undecided"}
