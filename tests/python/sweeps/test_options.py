"""Options of sweeps: conditions, options without an effect, and new stores."""

import re
from pathlib import Path

import pytest

import sojourn as sj
from sojourn.cli.app import app
from sojourn.sweeps.space import points, space
from support.shell import Command
from support.swept import RATES, TEXT, parameter


@pytest.fixture(scope="module")
def base() -> sj.Scenario:
    return sj.Scenario.from_toml(TEXT)


@pytest.fixture
def swept_file(tmp_path: Path) -> Path:
    path = tmp_path / "swept.toml"
    path.write_text(TEXT, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("links.down.rate >= 1ms", "compares a rate with a time; expected two rates or two times$"),
        ("rtt < 1s and not rtt + 1mbit < 2mbit", "compares a time with a rate"),
        (
            "2 * links.up.rate > 5",
            "compares a rate with a plain number; expected a number with a unit, such as 1mb",
        ),
        (
            "1 < rtt",
            "compares a time with a plain number; expected a number with a unit, such",
        ),
        (
            "traffic[0].count > 1ms",
            "compares a time with a plain number; expected two times or two",
        ),
        ("links.up.rate / 2 == rtt / 2", "compares a rate with a time"),
        ("links.down.rate", "not true or false; expected a comparison, such as links.down.rate"),
        ("rtt > 1ms or 5", "not true or false"),
        ("rtt + 5ms", "not true or false"),
    ],
)
def test_conditions_compare_values_of_the_same_kind(
    base: sj.Scenario, text: str, said: str
) -> None:
    with pytest.raises(sj.ScenarioError, match=f"^where={re.escape(repr(text))}: {said}"):
        points(space([parameter(RATES)], [text]), base)


@pytest.mark.parametrize(
    "text",
    [
        "links.up.rate / links.down.rate < 20",
        "links.up.rate * rtt > 1kb",
        "links.up.rate > 0",
        "-rtt < 2 * rtt - 1ms",
        "traffic[0].count * 2 >= 1 and not traffic[0].ecn",
        "traffic[0].cc == 'cubic'",
        "rtt > 5ms and traffic[0].count<1or links.up.rate != 10mbit",
    ],
)
def test_conditions_with_arithmetic_are_accepted(base: sj.Scenario, text: str) -> None:
    assert points(space([parameter(RATES)], [text]), base)


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os')",
        "(1).real > 0",
        "[1][0] < 2",
        "f'{1}' == ''",
        "x if x else y",
        "9**9**9**9 > 0",
        "(" * 500 + ")" * 500,
    ],
)
def test_conditions_are_no_programs(base: sj.Scenario, text: str) -> None:
    with pytest.raises(sj.ScenarioError, match="where="):
        points(space([parameter(RATES)], [text]), base)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("--qdisc", "pie"),
            (
                "--qdisc: requires TRAFFIC instead of FILE; expected -s links.down.qdisc=pie "
                "-s links.up.qdisc=pie"
            ),
        ),
        (
            ("--qdisc", "codel target 5ms"),
            (
                "--qdisc: requires TRAFFIC instead of FILE; expected "
                "-s 'links.down.qdisc=codel target 5ms' -s 'links"
            ),
        ),
        (("--arm", "x"), "--arm x: the scenario has no arms"),
        (
            ("--link", "10x"),
            "--link 10x: not a rate: unknown unit; the units are bit, kbit",
        ),
        (
            ("-s", "links.*.qdisc=pie"),
            "links.*.qdisc: * is not possible here; expected links.down or links.up",
        ),
        (("--rtt", "9ms"), "--rtt: requires TRAFFIC instead of FILE; expected -s rtt=9ms"),
        (
            ("--link", "10/1mbit"),
            (
                "--link: requires TRAFFIC instead of FILE; expected -s links.down.rate=10mbit "
                "-s links.up.rate=1mbit"
            ),
        ),
        (
            ("-s", "rtt=5ms", "-p", "rtt=9ms"),
            "-s rtt=5ms: each point of the sweep sets rtt; expected",
        ),
        (
            ("-s", "links.up.qdisc.target=5ms", "-p", "links.*.qdisc=codel,pie"),
            "-s links.up.qdisc.target=5ms: each point of the sweep sets links.up.qdisc; expected",
        ),
        (
            ("--metric", "goodptu_up"),
            '--metric: unknown metric "goodptu_up"; did you mean "goodput_up_mbit_per_s"?',
        ),
        (
            ("--until", "pingms_p99 ±5 %"),
            '--until "pingms_p99 ±5 %": unknown metric "pingms_p99"; did you mean "ping_ms_p99"?',
        ),
        (
            ("--until", "colour ±5 %"),
            '--until "colour ±5 %": unknown metric "colour"; expected one such as ping_ms_p99, go',
        ),
        (
            ("--until", "goodput_dwon ±5 %"),
            '--until "goodput_dwon ±5 %": unknown metric "goodput_dwon"; did you mean "goodput_do',
        ),
        (
            ("--metric", "sojourn_dwn_ms_p95"),
            '--metric: unknown metric "sojourn_dwn_ms_p95"; did you mean "sojourn_down_ms_p95"?',
        ),
        (
            ("--expect", "goodput_dwon > 1"),
            '--expect "goodput_dwon > 1": unknown metric "goodput_dwon"; did you mean "goodput_do',
        ),
        (
            ("--until", "drops ±2", "--max-replications", "1"),
            "--max-replications 1: expected at least 6, the number of",
        ),
    ],
)
def test_options_without_an_effect_are_refused(
    swept_file: Path, words: tuple[str, ...], said: str
) -> None:
    # Longer than the test may take. The command ends with exit code 2 after a ScenarioError.
    base = ("-s", "duration=9000s", "--replications", "2")
    with pytest.raises(sj.ScenarioError, match=f"^{re.escape(said)}"):
        app(["sweep", f"{swept_file}", "-p", RATES, *base, *words], standalone_mode=False)


@pytest.mark.parametrize("table", ["", "[sweep]\nreplications = 2\n"])
def test_a_sweep_without_parameters_says_how_to_give_them(swept_file: Path, table: str) -> None:
    swept_file.write_text(TEXT + table, encoding="utf-8")
    expected = "-p: none given; expected values by path, such as links.up.rate=5mbit,9mbit"
    with pytest.raises(sj.ScenarioError, match=f"^{re.escape(expected)}$"):
        app(["sweep", f"{swept_file}"], standalone_mode=False)


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ('where = "rtt > 1"', 'sweep.where "rtt > 1": compares a time with a plain number'),
        ('where = "rtt >"', 'sweep.where "rtt >'),
        (
            'until = "dorps ±2"',
            'sweep.until "dorps ±2": unknown metric "dorps"; did you mean "drops"?',
        ),
        (
            'until = "drops"',
            'sweep.until "drops": expected a metric and the half-width of its interval',
        ),
        (
            "max_replications = 9",
            "sweep.max_replications: requires sweep.until, such as 'ping_ms_p99 ±5 %'",
        ),
        (
            'max_replications = 3\nuntil = "drops ±2"',
            "sweep.max_replications 3: expected at least 6, the number of runs",
        ),
    ],
)
def test_a_wrong_table_is_named_and_not_an_option(swept_file: Path, key: str, said: str) -> None:
    swept_file.write_text(f"{TEXT}[sweep]\n{key}\n", encoding="utf-8")
    words = ["sweep", f"{swept_file}", "-p", "rtt=5ms,9ms", "--dry-run"]
    line = len(TEXT.splitlines()) + 2
    place = re.escape(f"{swept_file}: {said}")
    with pytest.raises(sj.ScenarioError, match=rf"^{place}.* \(line {line}\)$"):
        app(words, standalone_mode=False)


@pytest.mark.parametrize(
    ("option", "said"),
    [
        (("--where", "rtt > 2"), '--where "rtt > 2": compares'),
        (("--until", "drops"), "--until drops: expected"),
        (("--max-replications", "3"), "--max-replications 3: expected at least 6"),
        (("--max-replications", "0"), "--max-replications 0: expected 1 to"),
    ],
)
def test_an_option_that_replaces_a_key_is_named(
    swept_file: Path, option: tuple[str, ...], said: str
) -> None:
    keys = 'where = "rtt > 1ms"\nuntil = "drops ±2"\nmax_replications = 9\n'
    swept_file.write_text(f"{TEXT}[sweep]\n{keys}", encoding="utf-8")
    words = ["sweep", f"{swept_file}", "-p", "rtt=5ms,9ms", "--dry-run", *option]
    with pytest.raises(sj.ScenarioError, match=f"^{re.escape(said)}"):
        app(words, standalone_mode=False)


def test_a_new_store_is_announced(sojourn: Command, swept_file: Path) -> None:
    words = ("sweep", f"{swept_file}", "-p", RATES, "--shared", "team")
    first, again = sojourn(*words), sojourn(*words)
    assert first.returncode == again.returncode == 0, first.stderr
    assert f"created store {swept_file.parent / 'team'}" in first.stderr
    assert "created store" not in again.stderr
