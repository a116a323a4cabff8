"""The cases of Accurate ECN: peers and paths, verdicts and the command."""

import json
import re
from pathlib import Path

import pytest

import sojourn as sj
from sojourn.control_suite.accecn_cases import BUILDERS
from sojourn.control_suite.definitions import ACCECN_CASES
from sojourn.control_suite.evaluation import Evaluation, evaluate
from sojourn.control_suite.topology import CASES, ControlUnderTest
from sojourn.suites.case import cases
from support.shell import Command

ROOT = Path(__file__).parents[3]


def found(control: str, numbers: list[str], standards: tuple[str, ...] = ()) -> Evaluation:
    tested = ControlUnderTest(control, standards)
    built = cases(BUILDERS, tested, CASES, numbers, seed=1)
    return evaluate(ACCECN_CASES, tested, CASES, numbers, built, runner=sj.run)


def test_each_case_has_runs_or_a_reason_and_each_check_a_case() -> None:
    tested = ControlUnderTest("cubic", ())
    for number, one in ACCECN_CASES.criteria.items():
        assert (number in BUILDERS) == bool(one.checks) == (not one.not_testable), number
        built = BUILDERS[number](tested, CASES) if number in BUILDERS else []
        for check in one.checks:
            assert any(check.cases in case.name for case in built), (number, check.why)


def test_tests_that_reasons_name_exist() -> None:
    source = (ROOT / "crates/transport/tests/accurate_ecn.rs").read_text(encoding="utf-8")
    reasons = [one.not_testable for one in ACCECN_CASES.criteria.values()]
    named = [name for text in reasons for name in re.findall(r"\b[a-z]+(?:_[a-z]+){4,}\b", text)]
    assert len(named) == 2
    for name in named:
        assert f"fn {name}()" in source, name


@pytest.mark.parametrize("control", ["cubic", "dctcp"])
def test_controls_that_respond_to_marks_pass(control: str) -> None:
    one = found(control, list(BUILDERS))
    failed = [
        (number, judged.check.why) for number, judged in one.checked if judged.verdict != "pass"
    ]
    assert failed == []


def test_prague_does_not_answer_a_mark_on_the_syn() -> None:
    one = found("prague", list(BUILDERS))
    failed = [number for number, judged in one.checked if judged.verdict != "pass"]
    assert failed == ["3.2.2.2"]


def test_a_control_that_ignores_marks_fails_where_a_response_is_asked_for() -> None:
    # Version 1 of BBR.
    one = found("bbr", ["3.1.3", "3.1.5", "3.2.2.2"])
    assert {outcome.number: outcome.verdict for outcome in one.outcomes} == {
        "3.1.3": "pass",
        "3.1.5": "fail",
        "3.2.2.2": "fail",
    }
    failed = next(judged for _, judged in one.checked if judged.verdict == "fail")
    assert failed.check.why == "the mean window is at most 4 packets in the second half"
    assert failed.check.unit == "packets"
    assert " packets, bound ≤ 4 packets, difference " in failed.numbers
    assert failed.reason == "the 95 % interval of the difference is above 0"


def test_the_command_runs_the_family(sojourn: Command, tmp_path: Path) -> None:
    words = ("cc-cases", "reno", "--family", "accecn", "--case", "3.1.3", "--out", str(tmp_path))
    run = sojourn(*words, "--check")
    assert run.returncode == 0, run.stderr
    answer = "reno: of 1 selected test case of RFC 9768 (runs can test 7), 1 is met."
    assert run.stdout.splitlines()[0] == answer
    # Beside the report on the other family.
    assert (tmp_path / "reno-accecn.html").exists()
    (document,) = json.loads(sojourn(*words, "--json").stdout)
    assert [one["verdict"] for one in document["verdicts"]] == ["pass"]
    assert {one["unit"] for one in document["comparisons"]} == {"%"}
    assert "3.2.2.5" in sojourn("cc-cases", "--list", "--family", "accecn").stdout
    refused = sojourn("cc-cases", "reno", "--family", "ecn")
    assert refused.returncode == 2
    assert "--family" in refused.stderr
