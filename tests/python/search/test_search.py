"""What all searches share: seeds, ranges, objectives, and wrong arguments."""

import math
from pathlib import Path

import polars as pl
import pytest

import sojourn as sj
from sojourn import cli
from sojourn.cli import process
from sojourn.search.dimensions import dimensions
from sojourn.search.objectives import objective
from sojourn.search.runner import fresh_seed
from sojourn.sweeps.parameters import parameters
from support.searched import ARMS, TEXT


@pytest.fixture
def searched_file(tmp_path: Path) -> Path:
    path = tmp_path / "searched.toml"
    path.write_text(TEXT, encoding="utf-8")
    return path


def test_a_search_has_few_digits_and_stays_within_its_range() -> None:
    (one,) = dimensions(parameters({"rtt": "uniform(1.2345ms,9.8765ms)"}))
    assert one.at(0.0)["rtt"] == "1.2345ms"
    assert one.at(0.5)["rtt"] == "5.56ms"
    assert one.at(1.0)["rtt"] == "9.8765ms"


def test_fresh_seeds_differ_by_purpose_and_seed() -> None:
    seeds = {fresh_seed(seed, what) for seed in (1, 2) for what in ("intervals", "minimiser")}
    assert len(seeds) == 4
    assert max(seeds) < 2**31


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("ping_ms_p99", "expected min or max and a metric"),
        ("min", "expected min or max and a metric"),
        ("least ping_ms_p99", "expected min or max"),
        ("min ping_ms_p98", 'unknown metric "ping_ms_p98"; did you mean "ping_ms_p99"?'),
        ("min 3", "no metric"),
        ('min drops["a"]', "expected metrics without arms"),
        ("min ping_ms_p99 - 5mbit", "5mbit does not fit a metric in ms; expected a number alone"),
        ("min sin(drops)", "unknown function sin"),
        (
            "min ping_ms_p99 < 3",
            "a comparison; expected a metric or an expression of metrics",
        ),
        ("min 2 * (drops < 3 and marks < 2)", "a comparison; expected a metric or"),
        ("min not drops", "a comparison; expected a metric or"),
        ('min drops + "a"', "a text; expected a metric or"),
    ],
)
def test_a_wrong_objective_is_refused_in_one_line(text: str, part: str) -> None:
    with pytest.raises(sj.ScenarioError) as error:
        objective(text)
    assert part in f"{error.value}"
    assert f"{error.value}".startswith("objectives=")
    assert "\n" not in f"{error.value}"


def test_an_objective_is_an_expression_of_the_metrics_of_a_run() -> None:
    runs = pl.DataFrame(
        {"replication": [0, 1, 2], "ping_ms_p99": [math.e, 1.0, 0.0], "drops": [1.0, 2.0, 3.0]}
    )
    found = objective("min log(ping_ms_p99) + drops").values(runs)
    assert found == {0: 2.0, 1: 2.0, 2: -math.inf}
    # A number with a unit is converted to that of the metric.
    found = objective("min log((ping_ms_p99 + 1s) / 1ms) + abs(ping_ms_p99 - 2000us)").values(runs)
    assert found[1] == pytest.approx(math.log(1001) + 1)


@pytest.mark.parametrize("command", ["tune", "sensitivity", "adversary"])
def test_outputs_and_paths_are_checked_before_the_first_run(
    command: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(process, "install", lambda: None)
    file = tmp_path / "searched.toml"
    file.write_text(TEXT + ARMS.replace('"links.up.qdisc" = "pfifo"', '"rtt" = "30ms"'))
    options = {
        "tune": ["--arm", "a", "--objective", "min drops"],
        "sensitivity": ["--arm", "a", "--metric", "drops"],
        "adversary": ["--loser", "a", "--against", "b", "--score", "min drops"],
    }[command]

    def run(*words: str) -> tuple[int, str]:
        monkeypatch.setattr("sys.argv", ["sojourn", command, f"{file}", *options, *words])
        code = cli.main()
        error = capsys.readouterr().err
        assert error.count("\n") == (1 if code else 0)
        return code, error

    target = ("-p", "links.up.qdisc.target=uniform(1ms,2ms)", "--dry-run")
    assert run(*target) == (0, "")
    unwritable = file / "out"
    code, error = run(*target, "--out", f"{unwritable}")
    assert code == 3
    assert f"cannot write {unwritable}: " in error
    if command == "adversary":
        for path in (unwritable, tmp_path, tmp_path / "none" / "worst.toml"):
            code, error = run(*target, "--force", "--worst", f"{path}")
            assert code == 3
            assert f"cannot write {path}: " in error
    for path in ("links.up.qdisc.goal", "links.upp.rate"):
        code, error = run("-p", f"{path}=uniform(1ms,2ms)", "--dry-run")
        assert code == 2
        assert error.startswith(f"sojourn: -p {path}: ")
    # One of the queues has this parameter.
    queues = ("-p", "links.up.qdisc=codel,pfifo")
    assert run(*queues, *target) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["tune", "F", "--objective", "min drops"], "-p: none given; expected ranges or values"),
        (["tune", "F", "-p", "rtt=uniform(1ms,9ms)"], "--objective: none given"),
        (["tune", "F", "-p", "rtt=1ms,9ms", "--objective", "drops"], "expected min or max"),
        (
            ["tune", "F", "-p", "rtt=1ms,9ms", "--objective", "min drops", "--trials", "0"],
            "--trials 0: expected 1 to",
        ),
        (
            ["tune", "F", "-p", "rtt=1ms,9ms", "--objective", "min drops", "--arm", "x"],
            "--arm x: the scenario has no arms",
        ),
        (
            ["sensitivity", "F", "-p", "rtt=1ms,9ms", "--metric", "drops", "--samples", "6"],
            "--samples 6: expected a power of two",
        ),
        (
            ["sensitivity", "F", "-p", "rtt=1ms,9ms", "--metric", "drops", "--method", "x"],
            "--method x: unknown; expected sobol or morris",
        ),
        (["sensitivity", "F", "-p", "rtt=1ms,9ms"], "--metric: none given"),
        (["adversary", "--loser", "codell", "--against", "pie"], "--loser codell: "),
        (["adversary", "--loser", "pie", "--against", "pie"], "the same arm as --loser"),
        (["adversary", "--loser", "pie", "--against", "red", "--score", "drops"], "--score"),
        (["adversary", "--loser", "pie", "--against", "codel", "--keep", "2"], "--keep 2.0"),
        (
            ["adversary", "F", "--loser", "a", "--against", "b"],
            "--loser a: the scenario has no arms",
        ),
    ],
)
def test_wrong_arguments_are_refused_in_one_line(
    arguments: list[str],
    part: str,
    searched_file: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(process, "install", lambda: None)
    words = [f"{searched_file}" if word == "F" else word for word in arguments]
    monkeypatch.setattr("sys.argv", ["sojourn", *words])
    assert cli.main() == 2
    error = capsys.readouterr().err
    assert part in error
    assert error.count("\n") == 1
