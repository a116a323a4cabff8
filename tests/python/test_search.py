"""Searches: tuning, sensitivity, worst cases, their files, and the commands."""

import errno
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import worst_cases

import sojourn as sj
from shell import Command
from sojourn import cli
from sojourn.cli import signals
from sojourn.scenario.quantities import in_base_units
from sojourn.search import analysing, hunting, tuning
from sojourn.search.dimensions import dimensions
from sojourn.search.hunting import NeverLosesError
from sojourn.search.laboratory import Laboratory, fresh_seed
from sojourn.search.minimising import Candidate, minimised
from sojourn.search.objectives import objective
from sojourn.search.regret import contest
from sojourn.search.worst_case import read
from sojourn.sweeps.caches import local_cache
from sojourn.sweeps.parameters import parameter, parameters

TEXT = """
name = "searched"
duration = "3s"
warmup = "1s"
rtt = "20ms"
links.up = { rate = "5mbit", qdisc = "codel" }
links.down = { rate = "5mbit", qdisc = "pfifo" }
traffic = [
    { name = "bulk", type = "tcp", direction = "up" },
    { name = "ping", type = "ping", direction = "up", interval = "50ms" },
]
"""
ARMS = 'arms = [{ name = "a" }, { name = "b", set = { "links.up.qdisc" = "pfifo" } }]\n'
TARGET = {"links.up.qdisc.target": "loguniform(1ms,100ms)"}
XYZ = {
    "links.up.rate": "uniform(0mbit,1mbit)",
    "links.down.rate": "uniform(0mbit,1mbit)",
    "rtt": "uniform(0s,1s)",
}
BOTH = ["min ping_ms_p99", "max goodput_up"]


@pytest.fixture(scope="module")
def base() -> sj.Scenario:
    return sj.Scenario.from_toml(TEXT)


@pytest.fixture
def searched_file(tmp_path: Path) -> Path:
    path = tmp_path / "searched.toml"
    path.write_text(TEXT, encoding="utf-8")
    return path


class Known(Laboratory):
    """A laboratory whose metrics are known functions of the parameters instead of runs."""

    __slots__ = ("calls", "function")

    def __init__(self, function: Callable[[Sequence[float], int], Mapping[str, float]]) -> None:
        super().__init__()
        self.function = function
        self.calls: list[tuple[int, int]] = []

    def measure(
        self,
        scenario: sj.Scenario,
        changes: Sequence[Mapping[str, Any]],
        *,
        replications: int,
        seed: int,
    ) -> list[pl.DataFrame]:
        self.calls.append((len(changes), seed))
        return [
            pl.DataFrame(
                [
                    {"arm": arm, "replication": n, **self.function(_numbers(values), n)}
                    for arm in scenario.checked.arms
                    for n in range(replications)
                ]
            )
            for values in changes
        ]

    def invalid(self, scenario: sj.Scenario, values: Mapping[str, Any]) -> str | None:
        del scenario, values
        return None


def _numbers(values: Mapping[str, Any]) -> list[float]:
    """Return the parameters, each from 0 to 1."""
    return [
        in_base_units(value) / (1e6 if "rate" in path else 1.0) for path, value in values.items()
    ] or [0.5] * 3


def test_a_search_has_few_digits_and_stays_within_its_range() -> None:
    (one,) = dimensions([parameter("rtt=uniform(1.2345ms,9.8765ms)")], "tune")
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
        ("min ping_ms_p98", 'unknown metric "ping_ms_p98"'),
        ("min 3", "no metric"),
        ('min drops["a"]', "expected metrics without arms"),
        ("min sin(drops)", "unknown function sin"),
        (
            "min ping_ms_p99 < 3",
            '"ping_ms_p99 < 3": a comparison; expected a metric or an expression of metrics',
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
    assert f"{error.value}".startswith("--objective")
    assert "\n" not in f"{error.value}"


def test_an_objective_is_an_expression_of_the_metrics_of_a_run() -> None:
    runs = pl.DataFrame(
        {"replication": [0, 1, 2], "ping_ms_p99": [math.e, 1.0, 0.0], "drops": [1.0, 2.0, 3.0]}
    )
    found = objective("min log(ping_ms_p99) + drops").values(runs, "--objective")
    assert found == {0: 2.0, 1: 2.0, 2: -math.inf}


def test_tuning_finds_the_known_front_and_the_parameter_that_matters(base: sj.Scenario) -> None:
    # Both objectives depend on the first parameter alone, the best lie between 0.2 and 0.6.
    def known(x: Sequence[float], n: int) -> dict[str, float]:
        return {
            "ping_ms_p99": (x[0] - 0.2) ** 2 + 0.001 * n,
            "goodput_up_mbit_per_s": 1 - (x[0] - 0.6) ** 2,
        }

    laboratory = Known(known)
    result = tuning.execute(tuning.tuning(base, parameters(XYZ), BOTH, trials=64), laboratory)
    front = result.front.drop_nulls("trial")
    found = [in_base_units(rate) / 1e6 for rate in front["links.up.rate"]]
    assert all(0.15 < x < 0.65 for x in found)
    assert len(found) > 3
    assert not any(front["dominated"])
    assert result.best in front["trial"].to_list()
    for (_,), of_objective in result.importance.group_by("objective"):
        shares = dict(of_objective.select("parameter", "importance").iter_rows())
        assert max(shares, key=shares.__getitem__) == "links.up.rate"
        assert sum(shares.values()) == pytest.approx(1.0)
    # The search has one seed, the intervals another.
    seeds = [seed for _, seed in laboratory.calls]
    assert set(seeds[:8]) == {1}
    assert set(seeds[8:]) == {result.manifest["seed_of_intervals"]} != {1}
    assert [count for count, _ in laboratory.calls[:8]] == [8] * 8


def test_tuning_is_the_same_for_any_number_of_jobs_and_resumes(
    base: sj.Scenario, tmp_path: Path
) -> None:
    def tuned(**options: Any) -> tuple[sj.TuneResult, int]:
        counts: list[int] = []
        result = sj.tune(
            base,
            TARGET,
            BOTH,
            trials=10,
            replications=2,
            intervals=2,
            progress=lambda finished, _total: counts.append(finished),
            **options,
        )
        return result, counts[-1]

    class Stop(Exception):  # noqa: N818 - it ends the search
        pass

    def stop(finished: int, _total: int) -> None:
        if finished >= 12:
            raise Stop

    with pytest.raises(Stop):
        sj.tune(
            base, TARGET, BOTH, trials=10, replications=2, store=tmp_path / "store", progress=stop
        )
    planned = tuning.tuning(base, parameters(TARGET), BOTH, trials=10, replications=2, intervals=2)
    laboratory = Laboratory(cache=local_cache(tmp_path / "store", None))
    resumed = tuning.execute(planned, laboratory)
    assert laboratory.reused >= 12
    alone, _ = tuned(jobs=1)
    both, count = tuned(jobs=2)
    assert count == 10 * 2 + alone.front.height * 2
    for other in (both, resumed):
        assert other.manifest == alone.manifest
        for table in ("trials", "front", "importance"):
            assert getattr(other, table).equals(getattr(alone, table))
    other, _ = tuned(seed=9)
    assert not other.trials.equals(alone.trials)

    alone.save(tmp_path / "out")
    both.save(tmp_path / "again")
    for file in (tmp_path / "out").iterdir():
        assert file.read_bytes() == (tmp_path / "again" / file.name).read_bytes()
    loaded = sj.TuneResult.load(tmp_path / "out")
    assert loaded.front.equals(alone.front)
    assert loaded.manifest == json.loads(json.dumps(alone.manifest))
    with pytest.raises(sj.ResultError, match="contains another result"):
        other.save(tmp_path / "out")
    target = loaded.values()["links.up.qdisc.target"]
    (line,) = loaded.settings().tc
    assert line.startswith("tc qdisc replace dev $UP root codel limit 1000 target ")
    assert loaded.settings().options == f"-s links.up.qdisc.target={target}"
    written = sj.Scenario.from_toml((tmp_path / "out" / "best.toml").read_text(encoding="utf-8"))
    assert written == loaded.tuned()
    assert loaded.pareto().axes
    assert loaded.importances().axes


def test_trials_that_are_no_scenario_fail_and_the_others_count(base: sj.Scenario) -> None:
    ranges = {"links.up.qdisc": ["codel", "codel limit 0"], "rtt": "uniform(5ms,50ms)"}
    result = sj.tune(base, ranges, "min ping_ms_p99", trials=8, replications=1, intervals=2)
    failed = result.trials.filter(pl.col("state") == "failed")
    assert failed["links.up.qdisc"].unique().to_list() == ["codel limit 0"]
    assert 0 < failed.height < 8
    assert "limit" in result.manifest["invalid"][0]
    ranges["links.up.qdisc.target"] = "uniform(1ms,5ms)"
    planned = tuning.tuning(base, parameters(ranges), ["min drops"], trials=1)
    # The only trial is one of those that are wrong.
    planned = replace(planned, dimensions=(replace(planned.dimensions[0], steps=(("x",),)),))
    with pytest.raises(sj.ScenarioError, match=r"no trial succeeded: links\.up\.qdisc: "):
        tuning.execute(planned, Laboratory())
    with pytest.raises(sj.ScenarioError, match="limit"):
        sj.tune(base, {"links.up.qdisc": ["codel limit 0"]}, "min drops", trials=2)


@pytest.mark.parametrize("command", ["tune", "sensitivity", "adversary"])
def test_outputs_and_paths_are_checked_before_the_first_run(
    command: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(signals, "install", lambda: None)
    file = tmp_path / "searched.toml"
    file.write_text(TEXT + ARMS.replace('"links.up.qdisc" = "pfifo"', '"rtt" = "30ms"'))
    options = {
        "tune": ["--arm", "a", "--objective", "min drops"],
        "sensitivity": ["--arm", "a", "--metric", "drops"],
        "adversary": ["--arm", "a", "--against", "b", "--score", "min drops"],
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
            code, error = run(*target, "--force", "--save", f"{path}")
            assert code == 3
            assert f"cannot write {path}: " in error
    for path in ("links.up.qdisc.goal", "links.upp.rate"):
        code, error = run("-p", f"{path}=uniform(1ms,2ms)", "--dry-run")
        assert code == 2
        assert error.startswith(f"sojourn: {path}: ")
    # One of the queues has this parameter.
    queues = ("-p", "links.up.qdisc=codel,pfifo")
    assert run(*queues, *target) == (0, "")


def test_a_trial_without_the_metric_fails_and_the_search_continues(base: sj.Scenario) -> None:
    # With this loss, no ping is answered.
    values = {"links.down.loss": ["100%", "0%"]}
    found = sj.tune(base, values, "min ping_ms_p99", trials=8, replications=1, intervals=2)
    states = dict(found.trials.select("links.down.loss", "state").iter_rows())
    assert states == {"100%": "failed", "0%": "complete"}
    assert found.values() == {"links.down.loss": "0%"}


def test_a_trial_fails_if_one_run_lacks_the_objective(base: sj.Scenario) -> None:
    def known(x: Sequence[float], n: int) -> dict[str, float]:
        # The smallest mean of the runs that have a value is that of the trials that fail.
        return {"ping_ms_p99": math.nan if n == 1 and x[0] < 0.5 else x[0]}

    planned = tuning.tuning(base, parameters(XYZ), ["min ping_ms_p99"], trials=32)
    found = tuning.execute(planned, Known(known)).trials
    assert (found["state"] == "failed").any()
    for row in found.iter_rows(named=True):
        failed = in_base_units(row["links.up.rate"]) < 0.5e6
        assert (row["state"] == "failed") == failed


def test_a_run_in_which_only_one_arm_has_a_score_is_the_worst() -> None:
    def regret(score: str, **metrics: Any) -> float | None:
        runs = pl.DataFrame({"arm": ["a", "b"], "replication": [0, 0], **metrics})
        return contest(["a", "b"], "a", "b", score).regret(runs).mean

    power = "min log(ping_ms_p99) - log(goodput_down)"
    goodput, ping = "goodput_down_mbit_per_s", "ping_ms_p99"
    assert regret(power, **{ping: [60.0, 60.0], goodput: [0.0, 1.0]}) == pytest.approx(
        math.log(1e3)
    )
    assert regret(power, **{ping: [None, 60.0], goodput: [1.0, 1.0]}) == pytest.approx(
        math.log(1e3)
    )
    assert regret(power, **{ping: [60.0, None], goodput: [1.0, 1.0]}) == pytest.approx(
        -math.log(1e3)
    )
    assert regret("max drops", drops=[None, 5.0]) == 1e6
    assert regret("max drops", drops=[5.0, None]) == -1e6
    assert regret("max drops", drops=[None, None]) is None


def test_an_arm_without_answered_pings_loses_most() -> None:
    arms = 'arms = [{ name = "a", set = { "links.down.loss" = "100%" } }, { name = "b" }]'
    found = sj.adversary(
        sj.Scenario.from_toml(f"{TEXT}{arms}"),
        {"rtt": ["20ms", "30ms"]},
        arm="a",
        against="b",
        score="min ping_ms_p99",
        trials=2,
        replications=1,
        intervals=2,
    )
    assert 50_000 < found.regret[0] <= 60_000


def test_new_seeds_do_not_choose_the_proposed_trial(base: sj.Scenario) -> None:
    class Reversed(Known):
        def measure(self, *arguments: Any, **options: Any) -> list[pl.DataFrame]:
            frames = super().measure(*arguments, **options)
            # With the new seeds, a trial at one end of the front is the best in both objectives.
            sign = 1 if options["seed"] == 1 else -1
            return [frame.with_columns(pl.col("ping_ms_p99") * sign) for frame in frames]

    def known(x: Sequence[float], n: int) -> dict[str, float]:
        return {"ping_ms_p99": x[0] + 0 * n, "drops": (x[0] - 0.2) ** 2}

    objectives = ["min ping_ms_p99", "min drops"]
    planned = tuning.tuning(base, parameters(XYZ), objectives, trials=32)
    one, other = (tuning.execute(planned, kind(known)) for kind in (Known, Reversed))
    assert one.front.height > 3
    assert one.trials.equals(other.trials)
    assert one.best == other.best


def ishigami(x: Sequence[float], n: int) -> dict[str, float]:
    """Compute the function of Ishigami and Homma (1990), for which the Sobol indices are known."""
    a, b, c = (math.pi * (2 * share - 1) for share in x)
    value = math.sin(a) + 7 * math.sin(b) ** 2 + 0.1 * c**4 * math.sin(a)
    # The second seed adds 5 at all points, and noise of ±0.1, whose sign differs between points.
    noise = 0.1 if round(1e3 * sum(x)) % 2 == n else -0.1
    return {"ping_ms_p99": value + 5 * n + noise}


def test_sobol_indices_of_a_known_function(base: sj.Scenario) -> None:
    planned = analysing.analysis(base, parameters(XYZ), ["ping_ms_p99"], samples=256)
    assert planned.points == 256 * 5
    assert planned.runs == 2 * planned.points
    result = analysing.execute(planned, Known(ishigami))
    found = {row["parameter"]: row for row in result.indices.iter_rows(named=True)}
    known = {
        "links.up.rate": (0.3139, 0.5576),
        "links.down.rate": (0.4424, 0.4424),
        "rtt": (0.0, 0.2437),
    }
    for name, (first, total) in known.items():
        assert found[name]["first"] == pytest.approx(first, abs=0.12)
        assert found[name]["total"] == pytest.approx(total, abs=0.12)
        assert found[name]["total_low"] < total < found[name]["total_high"]
    # The variance of ±0.1 is 0.02 per run, that of the mean of two 0.01; the function has 13.8.
    assert result.noise["noise"][0] == pytest.approx(0.01 / 13.84, rel=0.1)
    again = analysing.execute(planned, Known(ishigami))
    assert again.indices.equals(result.indices)


def test_morris_finds_the_parameters_without_effect(base: sj.Scenario, tmp_path: Path) -> None:
    def linear(x: Sequence[float], n: int) -> dict[str, float]:
        return {"drops": 5 * x[0] - 2 * x[1] + 0 * n}

    planned = analysing.analysis(base, parameters(XYZ), ["drops"], method="morris", samples=8)
    result = analysing.execute(planned, Known(linear))
    found = {row["parameter"]: row for row in result.indices.iter_rows(named=True)}
    assert list(found) == ["links.up.rate", "links.down.rate", "rtt"]
    assert found["links.up.rate"]["mu"] == pytest.approx(5.0, abs=0.02)
    assert found["links.down.rate"]["mu"] == pytest.approx(-2.0, abs=0.02)
    assert found["links.down.rate"]["mu_star"] == pytest.approx(2.0, abs=0.02)
    assert found["rtt"]["mu_star"] == 0.0
    assert result.noise["noise"][0] == 0.0
    result.save(tmp_path / "out")
    loaded = sj.SensitivityResult.load(tmp_path / "out")
    assert loaded.indices.equals(result.indices)
    assert loaded.bars().axes


def test_sensitivity_measures_runs(base: sj.Scenario) -> None:
    result = sj.sensitivity(base, TARGET, "ping_ms_p99", method="morris", samples=2, replications=1)
    assert result.indices["mu_star"][0] > 1.0
    assert result.noise["noise"][0] is None


@pytest.fixture(scope="module")
def worst() -> sj.AdversaryResult:
    return sj.adversary(arm="pfifo", against="fq_codel", trials=8, intervals=3, seed=3)


def test_a_worst_case_is_simpler_keeps_its_regret_and_is_written(
    worst: sj.AdversaryResult, tmp_path: Path
) -> None:
    case = worst.worst
    assert case.regret_low > 0.0
    assert case.regret > 0.8 * case.found
    groups = [group.name for group in worst.scenario.traffic]
    assert len(groups) < 4
    assert "ping" in groups
    worst.write(tmp_path / "worst.toml")
    again = read(tmp_path / "worst.toml")
    assert again == case
    # The file has the seed and the number of runs of its regret.
    frame = sj.run(again.scenario).per_run
    of = contest(again.scenario.checked.arms, case.arm, case.against, case.score)
    assert of.regret(frame).mean == case.regret
    worst.save(tmp_path / "out")
    assert sj.AdversaryResult.load(tmp_path / "out").worst == case


@pytest.mark.parametrize("queue", ["codel", "cake"])
def test_a_stored_worst_case_still_has_its_regret(queue: str) -> None:
    case = read(worst_cases.FOLDER / f"{queue}.toml")
    runs = sj.run(case.scenario).per_run
    found = contest(case.scenario.checked.arms, case.arm, case.against, case.score).regret(runs)
    # Changes of results may move it a little.
    assert found.mean == pytest.approx(case.regret, rel=0.1)


def test_the_page_of_worst_cases_follows_from_their_files(
    worst: sj.AdversaryResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "worst-cases.md"
    monkeypatch.setattr(worst_cases, "FOLDER", tmp_path)
    monkeypatch.setattr(worst_cases, "PAGE", page)
    worst.write(tmp_path / "pfifo.toml")
    monkeypatch.setattr("sys.argv", ["worst_cases.py"])
    assert worst_cases.main() == 0
    text = page.read_text(encoding="utf-8")
    row, *others = [line for line in text.splitlines() if line.startswith("| `pfifo`")]
    assert not others
    rate = json.loads(worst.scenario.checked.to_json())["links"]["down"]["rate"]
    assert row.startswith("| `pfifo` | `fq_codel` | ")
    assert f"[{rate}, RTT " in row
    assert row.endswith("(worst_cases/pfifo.toml) |")
    monkeypatch.setattr("sys.argv", ["worst_cases.py", "--check"])
    assert worst_cases.main() == 0
    page.write_text(text.replace(rate, "1bit"), encoding="utf-8")
    assert worst_cases.main() == 1


def test_a_saved_result_is_replaced_as_a_whole(
    worst: sj.AdversaryResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    worst.save(out)
    before = {file.name: file.read_bytes() for file in out.iterdir()}
    manifest = {**worst.manifest, "keep": 0.5}
    other = sj.AdversaryResult(manifest, worst.trials.head(3), worst.worst)
    with pytest.raises(sj.ResultError, match="contains another result"):
        other.save(out)
    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", _full)
        with pytest.raises(sj.ResultError, match="cannot write"):
            other.save(out, force=True)
    assert {file.name: file.read_bytes() for file in out.iterdir()} == before
    # A process that was killed after the commit, before it moved the files.
    with monkeypatch.context() as patch:
        patch.setattr("sojourn.folder._finish", _killed)
        with pytest.raises(KeyboardInterrupt):
            other.save(out, force=True)
    assert sj.AdversaryResult.load(out).trials.height == 3
    for other_commit in ({"version": "0", "commit": "a"}, {"version": "0", "commit": "b"}):
        third = sj.AdversaryResult({**manifest, "sojourn": other_commit}, worst.trials, worst.worst)
        with pytest.raises(sj.ResultError, match="contains another result"):
            third.save(out)
    other.save(out)
    (out / "worst.toml").write_text(f"{worst.worst.to_toml()}\n", encoding="utf-8")
    with pytest.raises(sj.DamagedResultError, match=r"worst\.toml: damaged: its digest"):
        sj.AdversaryResult.load(out)


def _full(_: int) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def _killed(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_result_without_a_proposed_trial_has_no_scenario(
    base: sj.Scenario, tmp_path: Path
) -> None:
    found = sj.tune(base, TARGET, "min drops", trials=1, replications=1, intervals=2)
    found.save(tmp_path)
    best = tmp_path / "best.toml"
    text = best.read_text(encoding="utf-8")
    best.write_text(f"{text}\n", encoding="utf-8")
    with pytest.raises(sj.DamagedResultError, match=r"best\.toml: damaged: its digest"):
        sj.TuneResult.load(tmp_path)
    manifest = {**found.manifest, "best": None}
    sj.TuneResult(manifest, found.trials, found.front, found.importance).save(tmp_path)
    assert not best.exists()
    assert sj.TuneResult.load(tmp_path).best is None


@pytest.mark.parametrize("purpose", ["check", "intervals"])
def test_a_regret_needs_two_pairs_of_runs_with_new_seeds(purpose: str) -> None:
    scenario = sj.Scenario.from_toml(TEXT + ARMS)
    new = fresh_seed(1, purpose)

    class Failing(Known):
        def measure(self, *arguments: Any, **options: Any) -> list[pl.DataFrame]:
            kept = {"check": 0, "intervals": 1}[purpose] if options["seed"] == new else 99
            value = pl.when(pl.col("replication") < kept).then(pl.col("arm") == "a")
            frames = super().measure(*arguments, **options)
            return [frame.with_columns(value.cast(pl.Float64).alias("drops")) for frame in frames]

    planned = hunting.hunt(
        scenario, parameters(XYZ), arm="a", against="b", score="min drops", trials=2, intervals=2
    )
    with pytest.raises(sj.ScenarioError, match="fewer than two pairs of runs"):
        hunting.execute(planned, Failing(lambda _x, _n: {}))


@pytest.mark.parametrize("error", [NeverLosesError("loses nowhere"), sj.ScenarioError("wrong")])
def test_only_a_queue_that_never_loses_has_no_file(
    error: sj.ScenarioError, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def search(**_: object) -> None:
        raise error

    monkeypatch.setattr(worst_cases, "FOLDER", tmp_path)
    monkeypatch.setattr(worst_cases, "adversary", search)
    monkeypatch.setattr(worst_cases, "page", lambda: "")
    monkeypatch.setattr(worst_cases, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr("sys.argv", ["worst_cases.py", "--search"])
    for queue, _ in worst_cases.PAIRS:
        (tmp_path / f"{queue}.toml").touch()
    if isinstance(error, NeverLosesError):
        assert worst_cases.main() == 0
        assert not list(tmp_path.glob("*.toml"))
    else:
        with pytest.raises(sj.ScenarioError, match="wrong"):
            worst_cases.main()
        assert len(list(tmp_path.glob("*.toml"))) == len(worst_cases.PAIRS)


def test_the_same_seed_finds_the_same_worst_case(worst: sj.AdversaryResult) -> None:
    again = sj.adversary(arm="pfifo", against="fq_codel", trials=8, intervals=3, seed=3, jobs=1)
    assert again.worst == worst.worst
    assert again.trials.equals(worst.trials)


def test_the_minimiser_keeps_only_what_the_finding_needs() -> None:
    scenario = hunting.built_in("pfifo", "codel")
    of = dimensions(parameters(hunting.SPACE), "adversary")
    found = Candidate(
        {
            "links.down.rate": "23.7mbit",
            "rtt": "77.7ms",
            "traffic.bulk.count": 17,
            "traffic.udp.rate": "1.23mbit",
        }
    )

    def keeps(candidate: sj.Scenario) -> bool:
        groups = {group.name: group for group in candidate.traffic}
        count = groups["bulk"].count if "bulk" in groups else 0  # type: ignore[attr-defined]
        return count >= 5 and in_base_units(f"{candidate.rtt}") > 0.07

    accepted = minimised(scenario, found, of, keeps)
    simplest = accepted[-1]
    assert simplest.changes == {
        "rtt": "80ms",
        "traffic.bulk.count": 5,
        "duration": "5s",
        "warmup": "1.25s",
        **{key: value for key, value in simplest.changes.items() if key.startswith("traffic.udp")},
    }
    assert simplest.dropped == {"other", "udp"}
    assert keeps(simplest.scenario(scenario))
    assert accepted[0] == found
    assert all(keeps(one.scenario(scenario)) for one in accepted[1:])


def test_a_search_for_a_worst_case_needs_at_most_the_announced_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def simplified(_: object, found: Candidate, *__: object) -> list[Candidate]:
        return [found] * (1 + hunting.MAX_STEPS)

    monkeypatch.setattr(hunting, "minimised", simplified)
    planned = hunting.hunt(
        sj.Scenario.from_toml(TEXT + ARMS),
        parameters(XYZ),
        arm="a",
        against="b",
        score="min drops",
        trials=2,
        replications=1,
    )

    class Counted(Known):
        runs = 0
        checks = 0

        def measure(self, *arguments: Any, **options: Any) -> list[pl.DataFrame]:
            found = super().measure(*arguments, **options)
            self.runs += sum(frame.height for frame in found)
            lost = pl.col("arm") == "a"
            if options["seed"] == fresh_seed(1, "check"):
                self.checks += 1
                # No step keeps the regret of the first scenario.
                lost &= pl.lit(self.checks == 1)
            return [frame.with_columns(lost.cast(pl.Float64).alias("drops")) for frame in found]

    laboratory = Counted(lambda _x, _n: {})
    hunting.execute(planned, laboratory)
    assert laboratory.checks == 8
    # The steps of the minimiser were not run.
    assert laboratory.runs == planned.runs - 2 * hunting.MAX_STEPS * hunting.STEP_RUNS


def test_an_arm_that_never_loses_has_no_worst_case(base: sj.Scenario) -> None:
    scenario = sj.Scenario.from_toml(TEXT + ARMS)
    assert not base.arms
    with pytest.raises(sj.ScenarioError, match="a loses in no scenario"):
        sj.adversary(
            scenario, {"rtt": ["20ms"]}, arm="a", against="b", score="min ping_ms_p99", trials=2
        )


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["tune", "F", "--objective", "min drops"], "tune: no parameters; expected at least one"),
        (["tune", "F", "-p", "rtt=uniform(1ms,9ms)"], "--objective: none given"),
        (["tune", "F", "-p", "rtt=1ms,9ms", "--objective", "drops"], "expected min or max"),
        (
            ["tune", "F", "-p", "rtt=1ms,9ms", "--objective", "min drops", "--trials", "0"],
            "--trials 0: expected 1 to",
        ),
        (
            ["tune", "F", "-p", "rtt=1ms,9ms", "--objective", "min drops", "--arm", "x"],
            "--arm x: unknown; expected one of default",
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
        (["adversary", "--arm", "codell", "--against", "pie"], "--arm codell: "),
        (["adversary", "--arm", "pie", "--against", "pie"], "the same arm as --arm"),
        (["adversary", "--arm", "pie", "--against", "red", "--score", "drops"], "--score"),
        (["adversary", "--arm", "pie", "--against", "codel", "--keep", "2"], "--keep 2.0"),
        (["adversary", "F", "--arm", "a", "--against", "b"], "--arm a: unknown arm"),
    ],
)
def test_wrong_arguments_are_refused_in_one_line(
    arguments: list[str],
    part: str,
    searched_file: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(signals, "install", lambda: None)
    words = [f"{searched_file}" if word == "F" else word for word in arguments]
    monkeypatch.setattr("sys.argv", ["sojourn", *words])
    assert cli.main() == 2
    error = capsys.readouterr().err
    assert part in error
    assert error.count("\n") == 1


def test_the_command_prints_settings(sojourn: Command, searched_file: Path, tmp_path: Path) -> None:
    target = "links.up.qdisc.target=loguniform(1ms,100ms)"
    tuned = sojourn(
        *("tune", searched_file, "-p", target, "--objective", "min ping_ms_p99"),
        *("--trials", "8", "--replications", "1", "--intervals", "2", "--out", tmp_path / "t"),
    )
    assert "tc qdisc replace dev $UP root codel limit 1000 target " in tuned.stdout
    assert "original" in tuned.stdout
    assert f"sojourn run {searched_file} -s links.up.qdisc.target=" in tuned.stdout
    planned = sojourn(
        *("tune", searched_file, "-p", target, "--objective", "min drops"),
        *("--trials", "1", "--dry-run"),
    )
    assert planned.stdout == "tune: 1 trial, at most 173 runs\n"
    assert (tmp_path / "t" / "best.toml").exists()


def test_the_command_prints_indices_and_noise(
    searched_file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signals, "install", lambda: None)
    target = "links.up.qdisc.target=loguniform(1ms,100ms)"
    words = ["sensitivity", f"{searched_file}", "-p", target, "--metric", "ping_ms_p99"]
    monkeypatch.setattr("sys.argv", ["sojourn", *words, "--method", "morris", "--samples", "2"])
    assert cli.main() == 0
    out, err = capsys.readouterr()
    assert "sensitivity: 4 points: at most 8 runs of 3 s" in err
    assert "of their variance is noise" in out
