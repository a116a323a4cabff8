"""Expectations: verdicts by intervals, tables of scenario files, and `sojourn test`."""

import ast
import contextlib
import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import polars as pl
import pytest

import sojourn as sj
from sojourn.cli.app import app
from sojourn.expectations.expectation import capacities, expectation, expectations
from sojourn.expectations.judging import (
    VERDICTS,
    Judgement,
    Measured,
    Suite,
    _least,
    described,
    difference,
    failed,
    judge,
    junit,
)
from sojourn.expressions import parse
from sojourn.result.derived_files import check_replaced
from sojourn.search.objectives import expression
from support.shell import Command
from support.swept import ARMS, TEXT

CAPACITIES = {arm: {"down": 10.0, "up": None} for arm in ("a", "b")}


def measured(a: list[float], b: list[float] | None = None, **rest: object) -> Measured:
    rows = [("a", n, value) for n, value in enumerate(a)]
    rows += [("b", n, value) for n, value in enumerate(b or [])]
    frame = pl.DataFrame(
        rows, schema=["arm", "replication", "goodput_down_mbit_per_s"], orient="row"
    )
    frame = frame.with_columns(drops=pl.lit(None, dtype=pl.Float64))
    return Measured(runs=frame, capacities=CAPACITIES, **rest)  # type: ignore[arg-type]


def verdicts(text: str, of: Measured) -> list[str]:
    return [one.verdict for one in judge([expectation(text)], of)]


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("goodput_down > 8.5", "pass"),
        ("goodput_down < 9.6", "pass"),
        ("goodput_down > 9.6", "fail"),
        ("goodput_down < 8.5", "fail"),
        ("goodput_down > 9.01", "undecided"),
        ("goodput_down > 0.8 * capacity", "pass"),
        ("goodput_down / capacity_down > 0.95", "fail"),
        ("drops < 3", "undecided"),
        ("10 - goodput_down < 1.5", "pass"),
        ("abs(goodput_down - 9) < 0.5", "pass"),
        ("median(goodput_down) > 8.5", "pass"),
        ("p99(goodput_down) < 20", "undecided"),
        ("goodput_down / 0 < 1", "undecided"),
    ],
)
def test_verdicts_follow_the_interval(text: str, verdict: str) -> None:
    assert verdicts(text, measured([9.0, 9.1, 8.9, 9.05, 8.95, 9.0])) == [verdict]


def test_one_run_decides_nothing_and_equal_runs_do() -> None:
    assert verdicts("goodput_down > 1", measured([9.0])) == ["undecided"]
    assert verdicts("goodput_down >= 9", measured([9.0, 9.0])) == ["pass"]
    assert verdicts("goodput_down > 9", measured([9.0, 9.0])) == ["fail"]


def test_arms_are_compared_in_runs_with_the_same_seed() -> None:
    # The spread between runs is larger than the difference, which is the same in each.
    of = measured([1.0, 5.0, 9.0], [1.5, 5.6, 9.5])
    text = 'goodput_down["a"] < goodput_down["b"]'
    (one,) = judge([expectation(text)], of)
    assert (one.verdict, one.arm, one.runs) == ("pass", "a, b", 3)
    assert judge([expectation('goodput_down > goodput_down["a"]')], of)[0].arm == "b"
    assert verdicts("goodput_down > 0", of) == ["undecided", "undecided"]


def test_the_interval_shown_is_that_of_the_difference() -> None:
    (one,) = judge(
        [expectation('goodput_down["a"] < goodput_down["b"]')],
        measured([1.0, 5.0, 9.0], [1.5, 5.6, 9.5]),
    )
    # By hand: -0.5333 ± 4.303 * 0.0577 / sqrt(3).
    assert difference(one) == "-0.5333 [-0.6768, -0.3899]"
    assert described(one) == (
        "pass: 5, expected < 5.533, difference -0.5333 [-0.6768, -0.3899] (3 runs)"
    )


def test_an_expectation_may_be_about_some_arms() -> None:
    (only,) = expectations([{"that": "goodput_down > 0", "arm": "b", "name": "some"}])
    (one,) = judge([only], measured([1.0, 1.0], [2.0, 2.0]))
    assert (one.arm, one.expectation.title, one.measured) == ("b", "some", 2.0)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("ping_ms_p99", "expected one comparison"),
        ("1 < drops < 3", "expected one comparison"),
        ("drops == 3", "expected one comparison"),
        ("drops < 3 and marks < 3", "expected one comparison"),
        ("(drops < 3) < 1", "expected one comparison"),
        ("drops < 'x'", "expected one comparison"),
        ("1 < 2", "no metric"),
        ("max(drops) < 2", "unknown function max"),
        ("drops.__class__() < 2", "not accepted"),
        ("drops < ", "invalid expression; expected one such as ping_ms_p99 < 40"),
    ],
)
def test_a_wrong_expectation_is_refused_in_one_line(text: str, part: str) -> None:
    with pytest.raises(sj.ScenarioError) as error:
        expectation(text)
    assert part in f"{error.value}"
    assert "\n" not in f"{error.value}"


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("marks < 3", 'unknown metric "marks"'),
        ('drops["c"] < 3', 'unknown arm "c"; expected one of a'),
        ('drops < drops["a"]', "no other arm"),
        ("goodput_down < capacity_up", "no constant rate"),
        ("goodput_down < capacity_lan", 'unknown link "lan"'),
        ("drops < capacity", "of which link"),
        ("bulk.drops < 3", 'unknown group "bulk"'),
    ],
)
def test_unknown_names_are_refused(text: str, part: str) -> None:
    with pytest.raises(sj.ScenarioError) as error:
        verdicts(text, measured([1.0, 2.0]))
    assert part in f"{error.value}"


def test_tables_are_checked() -> None:
    for table, part in (
        ({}, "expect[0].that: missing"),
        (
            {"that": "drops < 1", "x": 1},
            "expect[0].x: unknown key; expected one of that, name",
        ),
        ({"that": "drops < 1", "arms": "a"}, 'expect[0].arms: unknown key; did you mean "arm"?'),
        ({"that": "drops"}, "expect[0].that"),
        ({"that": "drops < 1", "arm": 3}, "expect[0].arm"),
    ):
        with pytest.raises(sj.ScenarioError) as error:
            expectations([table])
        assert part in f"{error.value}"


def test_a_capacity_is_the_rate_of_the_arm_and_the_point() -> None:
    scenario = sj.Scenario.from_toml(
        TEXT + 'arms = [{ name = "a" }, { name = "b", set = { "links.up.rate" = "7mbit" } }]\n'
    )
    assert capacities(scenario) == {"a": {"down": 5.0, "up": 5.0}, "b": {"down": 5.0, "up": 7.0}}
    at_point = capacities(scenario, {"links.up.rate": "9mbit"})
    assert at_point["b"]["up"] == 9.0
    # A table keeps the rate that it does not name.
    of_table = capacities(scenario, {"links.up": {"qdisc": "pie"}})
    assert of_table["a"] == {"down": 5.0, "up": 5.0}
    assert capacities(scenario, {"links.down": "unlimited"})["a"] == {"down": None, "up": 5.0}


def test_a_verdict_that_is_not_pass_is_a_failure() -> None:
    one = expectation("drops < 1")
    for verdict, is_failure in (("pass", False), ("fail", True), ("undecided", True)):
        judgement = Judgement(expectation=one, verdict=verdict, arm="a")  # type: ignore[arg-type]
        assert failed([judgement]) == is_failure


EXPECT = """
[[expect]]
that = "goodput_up > 0.8 * capacity"
name = "the link is used"

[[expect]]
that = "bulk.goodput_mbit_per_s_mean > 1"
"""


@pytest.fixture
def good(tmp_path: Path) -> Path:
    path = tmp_path / "good.toml"
    path.write_text(TEXT + EXPECT, encoding="utf-8")
    return path


def test_the_command_tests_files(sojourn: Command, good: Path, store: Path) -> None:
    bad = good.parent / "bad.toml"
    table = '[[expect]]\nthat = "ping_ms_p99 < 1"\n[[expect]]\nthat = "drops < drops + 0"\n'
    sweep = '[sweep.parameters]\n"links.up.rate" = ["2mbit", "4mbit"]\n'
    bad.write_text(TEXT + table + sweep, encoding="utf-8")
    passed = sojourn("test", f"{good}")
    assert passed.returncode == 0, passed.stderr
    assert "2 passed, 0 failed, 0 undecided" in passed.stdout
    # What passed is counted; --all lists it.
    assert "the link is used" not in passed.stdout
    assert "the link is used" in sojourn("test", f"{good}", "--all").stdout
    both = sojourn("test", f"{good}", f"{bad}", "--junit", "out/junit.xml")
    assert both.returncode == 1, both.stderr
    assert "links.up.rate=2mbit" in both.stdout
    suites = ET.parse(good.parent / "out" / "junit.xml").getroot()  # noqa: S314 - our own file
    assert [(suite.get("tests"), suite.get("failures")) for suite in suites] == [
        ("2", "0"),
        ("4", "4"),
    ]
    kinds = [failure.get("type") for failure in suites.iter("failure")]
    assert kinds == ["fail", "fail"] * 2
    for suite in suites:
        assert float(suite.get("time", "")) > 0
        (seed,) = (one.get("value") for one in suite.findall("properties/property"))
        assert seed == "1"
    case = next(suites.iter("testcase"))
    values = {one.get("name"): float(one.get("value", "")) for one in case.iter("property")}
    assert values["low"] <= values["measured"] <= values["high"]
    assert values["runs"] >= 2
    assert not list(store.glob("nothing"))


@pytest.mark.usefixtures("store")
def test_tests_save_and_share_their_runs_as_sweeps_do(sojourn: Command, good: Path) -> None:
    sweep = '[sweep.parameters]\n"links.up.rate" = ["2mbit", "4mbit"]\n'
    swept = good.parent / "swept.sojourn.toml"
    swept.write_text(TEXT + sweep, encoding="utf-8")
    expect = ("--expect", "goodput_up > 0.5 * capacity", "--replications", "2")
    done = sojourn("test", f"{good}", f"{swept}", *expect, "--out", "kept")
    assert done.returncode == 0, done.stderr
    assert "saved results to kept" in done.stderr
    assert sj.Result.load(good.parent / "kept" / "good").complete
    assert sj.SweepResult.load(good.parent / "kept" / "swept").complete
    again = sojourn("test", f"{swept}", *expect, "--set", "rtt=30ms", "--out", "kept")
    assert again.returncode == 3
    assert "kept/swept: contains another sweep; expected --force" in again.stderr
    shared = sojourn("test", f"{swept}", *expect, "--shared", "runs")
    assert shared.returncode == 0, shared.stderr
    assert f"created store {good.parent / 'runs'}" in shared.stderr
    for words, said in (
        (("--shared", "runs"), f"--shared runs: {good} has no table [sweep]; only the runs"),
        (("--on", "dask"), f"--on dask: {good} has no table [sweep]; only the runs of sweeps"),
        (("--on", "dask://a:1"), "--on dask://a:1: requires --shared"),
        ((f"{good}", "--out", "kept"), "--out kept: expected files with different names"),
    ):
        refused = sojourn("test", f"{good}", *words)
        assert refused.returncode == 2
        assert said in refused.stderr


def test_run_and_sweep_judge_expectations(sojourn: Command, good: Path) -> None:
    passed = sojourn("run", f"{good}")
    assert passed.returncode == 0, passed.stderr
    assert "expectations: 2 passed" in passed.stdout
    broken = sojourn("run", f"{good}", "--expect", "ping_ms_p99 < 1", "--json")
    assert broken.returncode == 1
    found = [one["verdict"] for one in json.loads(broken.stdout)["expectations"]]
    assert found == ["pass", "pass", "fail"]
    single = sojourn("run", f"{good}", "--replications", "1")
    assert single.returncode == 1
    assert "one run; at least two are needed" in single.stdout
    plain = good.parent / "plain.toml"
    plain.write_text(TEXT, encoding="utf-8")
    words = ("sweep", f"{plain}", "-p", "rtt=10ms,60ms", "--expect", "ping_ms_p99 > 50")
    swept = sojourn(*words, "--replications", "4")
    assert swept.returncode == 1
    assert "1 passed, 1 failed" in swept.stdout
    assert "rtt=10ms" in swept.stdout.split("expectations: ")[1]
    assert "rtt=60ms" not in swept.stdout.split("expectations: ")[1]
    sojourn(*words, "--replications", "4", "--junit", "verdicts.xml")
    (suite,) = ET.parse(good.parent / "verdicts.xml").getroot()  # noqa: S314 - our own file
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    # The same expectation twice is judged once.
    twice = sojourn(*words, "--expect", "ping_ms_p99 > 50", "--replications", "4")
    assert "1 passed, 1 failed" in twice.stdout
    wrong = sojourn("run", f"{good}", "--expect", "goodptu_up > 1")
    assert wrong.returncode == 2
    assert "unknown metric" in wrong.stderr
    none = sojourn("test", f"{plain}")
    assert none.returncode == 2
    assert "no expectations" in none.stderr


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("ping_ms_p99 < 40ms", [40.0]),
        ("ping_ms_p99 < 0.04s", [40.0]),
        ("median(ping_ms_p99) - 5ms < 2 * 20000us", [5.0, 2, 20.0]),
        ("ping_ms_p99 / 5ms < 8", [5.0, 8]),
        ("goodput_down >= 1500kbit", [1.5]),
        ("goodput_down > 90% * capacity", [0.9]),
        ("jain_down > 95%", [0.95]),
        ("web.fct_s_p95 < 800ms", [0.8]),
        ("web.retransmit_percent < 5%", [5.0]),
        ("drops < 1e5", [1e5]),
        ("ping_ms_p99 < 40", [40]),
    ],
)
def test_numbers_are_converted_to_the_unit_of_the_metric(text: str, numbers: list[float]) -> None:
    read = expectation(text)
    constants = [
        one.value for one in ast.walk(read.expression.tree) if isinstance(one, ast.Constant)
    ]
    assert sorted(constants) == sorted(numbers)
    assert read.text == text


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("goodput_down < 40ms", "40ms does not fit a metric in Mbit/s; expected a number alone"),
        (
            "drops < 40ms",
            "does not fit a metric without a unit; expected a number alone, such as 4",
        ),
        ("ping_ms_p99 < 40foo", "40foo does not fit a metric in ms"),
        ("goodput_down * 5ms < 3", "5ms is not compared with metrics of one unit"),
        ("ping_ms_p99 + web.fct_s_mean < 3s", "3s is not compared with metrics of one unit"),
        ("ping_ms_p99 ** 2 < 3s", "3s is not compared with metrics of one unit"),
        ("pingms_p99 < 40ms", 'unknown metric "pingms_p99"; did you mean "ping_ms_p99"'),
    ],
)
def test_a_unit_that_does_not_fit_is_refused(text: str, problem: str) -> None:
    with pytest.raises(sj.ScenarioError, match=re.escape(problem)):
        expectation(text)


@pytest.mark.parametrize(("name", "least"), [("median", 6), ("p75", 13), ("p90", 36), ("p99", 368)])
def test_a_quantile_needs_runs_on_both_sides_of_it(name: str, least: int) -> None:
    assert _least(name) == least


def test_an_empty_list_of_arms_is_refused() -> None:
    with pytest.raises(sj.ScenarioError, match="none given; expected at least one, such as"):
        expectations([{"that": "drops < 1", "arm": []}])


def test_the_help_shows_the_brackets_of_the_tables(sojourn: Command) -> None:
    assert "Scenario files with [[expect]]." in sojourn("test", "--help").stdout


@pytest.mark.parametrize("more", [(), ("--dry-run",)])
def test_unknown_arms_are_refused_before_the_runs(
    sojourn: Command, store: Path, tmp_path: Path, more: tuple[str, ...]
) -> None:
    words = ("compare", "pfifo", "codel", "--out", "saved", *more)
    run = sojourn(*words, "--expect", 'drops < drops["pifo"]')
    assert run.returncode == 2
    assert 'unknown arm "pifo"; expected one of pfifo, codel' in run.stderr
    assert run.stdout == ""
    assert not (tmp_path / "saved").exists()
    assert not list(store.glob("*"))


WRONG_NAMES = (
    ('ping_ms_p99["nosuch"] < 40', 'unknown arm "nosuch"; expected one of codel, pie'),
    ("goodput_up < capacity_lan", 'unknown link "lan"; expected one of'),
    ("drops < capacity", "capacity of which link? expected capacity_"),
)


@pytest.mark.parametrize("command", ["run", "sweep", "test"])
@pytest.mark.parametrize(("that", "said"), WRONG_NAMES)
def test_names_in_tables_are_checked_before_the_runs(
    tmp_path: Path, store: Path, command: str, that: str, said: str
) -> None:
    file = tmp_path / "wrong.toml"
    tables = f"[[expect]]\nthat = '{that}'\n"
    if command != "run":
        tables += '[sweep.parameters]\n"rtt" = ["10ms", "60ms"]\n'
    file.write_text(TEXT + ARMS + tables, encoding="utf-8")
    with pytest.raises(sj.ScenarioError, match=re.escape(f'expect[0].that "{that}": {said}')):
        app([command, f"{file}"], standalone_mode=False)
    assert not list(store.glob("*"))


@pytest.mark.parametrize("more", [(), ("--dry-run",)])
@pytest.mark.parametrize(("that", "said"), WRONG_NAMES)
def test_a_sweep_checks_the_names_of_its_options_before_the_runs(
    tmp_path: Path, store: Path, more: tuple[str, ...], that: str, said: str
) -> None:
    file = tmp_path / "swept.toml"
    file.write_text(TEXT + ARMS, encoding="utf-8")
    words = ["sweep", f"{file}", "-p", "rtt=10ms,60ms", "--expect", that, *more]
    with pytest.raises(sj.ScenarioError, match=re.escape(f'--expect "{that}": {said}')):
        app(words, standalone_mode=False)
    assert not list(store.glob("*"))


def test_each_point_needs_the_rate_of_a_link_that_an_expectation_names(
    tmp_path: Path, store: Path
) -> None:
    file = tmp_path / "swept.toml"
    file.write_text(TEXT, encoding="utf-8")
    links = '{qdisc = "pie"},{qdisc = "pie", changes = [{at = "2s", rate = "3mbit"}]}'
    words = ["sweep", f"{file}", "-p", f"links.up={links}"]
    with pytest.raises(sj.ScenarioError, match='link "up" has no constant rate'):
        app([*words, "--expect", "goodput_up > 0.5 * capacity"], standalone_mode=False)
    assert not list(store.glob("*"))


def test_an_unknown_metric_is_refused_with_its_file_place_and_the_nearest_name(
    sojourn: Command, good: Path
) -> None:
    wrong = good.parent / "te.toml"
    for that, problem in (
        ("pingms_p99 < 40", 'unknown metric "pingms_p99"; did you mean "ping_ms_p99"?'),
        ("colour < 4", 'unknown metric "colour"; expected one such as ping_ms_p99, goodput_down,'),
        ('drops["pfifo"] < 40', 'unknown arm "pfifo"; expected one of'),
    ):
        wrong.write_text(f"{TEXT}[[expect]]\nthat = '{that}'\n", encoding="utf-8")
        run = sojourn("test", f"{good}", "te.toml")
        assert run.returncode == 2
        assert run.stderr.startswith(f'sojourn: te.toml: expect[0].that "{that}": {problem}')
        line = TEXT.count("\n") + 2
        assert run.stderr.endswith(f" (line {line})\n")
        assert run.stdout == ""


def test_a_metric_that_a_result_lacks_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(sj.ScenarioError, match='did you mean "goodput_down_mbit_per_s"'):
        verdicts("goodput_dwn < 3", measured([1.0, 2.0]))


def test_the_file_of_verdicts_is_checked_before_the_runs(
    sojourn: Command, good: Path, store: Path
) -> None:
    (good.parent / "folder").mkdir()
    for name, problem in (
        ("folder", "not a regular file"),
        ("good.toml", "verdicts are XML; expected a name such as results.xml"),
        ("good.toml/x.xml", "good.toml is not a directory"),
    ):
        run = sojourn("test", f"{good}", "--junit", name)
        assert (run.returncode, run.stdout) == (3, "")
        assert run.stderr.startswith(f"sojourn: cannot write {name}: ")
        assert problem in run.stderr
    for text, is_replaced in (("<testsuite/>", True), ("notes", False), ("", True)):
        file = good.parent / "junit.xml"
        file.write_text(text, encoding="utf-8")
        refused = pytest.raises(sj.ResultError, match="it exists and is not a Sojourn")
        with contextlib.nullcontext() if is_replaced else refused:
            check_replaced(file, VERDICTS)
    assert not list(store.glob("*"))
    assert good.read_text(encoding="utf-8") == TEXT + EXPECT


def test_the_example_in_an_error_fits_the_option() -> None:
    for read, example in (
        (parse, "links.down.rate >= 2 * 10mbit"),
        (expression, "ping_ms_p99 / 2"),
        (expectation, "ping_ms_p99 < 40"),
    ):
        with pytest.raises(sj.ScenarioError, match=re.escape(f"expected one such as {example}")):
            read("drops < ")
        read(example)


def test_names_in_a_file_of_verdicts_are_xml() -> None:
    empty = Suite(judgements=[], seed=1, elapsed_s=0.0)
    suites = ET.fromstring(junit({"a\uffff\x1b\U0001f600": empty}))  # noqa: S314 - our own file
    assert suites[0].get("name") == "a\ufffd\\u001b\U0001f600"
