"""Tuning: the front, importance, failed trials, resuming, files, and the command."""

import json
import math
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import sojourn as sj
from sojourn.execute.runs import local_store
from sojourn.scenario.paths import assignment
from sojourn.scenario.quantities import in_base_units
from sojourn.search import tune
from sojourn.search.runner import Runner
from sojourn.search.settings import Settings
from support.searched import TARGET, TEXT, XYZ, Known
from support.shell import Command

BOTH = ["min ping_ms_p99", "max goodput_up"]


@pytest.fixture(scope="module")
def base() -> sj.Scenario:
    return sj.Scenario.from_toml(TEXT)


@pytest.fixture
def searched_file(tmp_path: Path) -> Path:
    path = tmp_path / "searched.toml"
    path.write_text(TEXT, encoding="utf-8")
    return path


def test_tuning_finds_the_known_front_and_the_parameter_that_matters(base: sj.Scenario) -> None:
    # Both objectives depend on the first parameter alone, the best lie between 0.2 and 0.6.
    def known(x: Sequence[float], n: int) -> dict[str, float]:
        return {
            "ping_ms_p99": (x[0] - 0.2) ** 2 + 0.001 * n,
            "goodput_up_mbit_per_s": 1 - (x[0] - 0.6) ** 2,
        }

    runner = Known(known)
    result = tune.execute(tune.prepared(tune.TunePlan(base, XYZ, BOTH, trials=64)), runner)
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
    seeds = [seed for _, seed in runner.calls]
    assert set(seeds[:8]) == {1}
    assert set(seeds[8:]) == {result.manifest["seed_of_intervals"]} != {1}
    assert [count for count, _ in runner.calls[:8]] == [8] * 8


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
            final_replications=2,
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
    planned = tune.prepared(
        tune.TunePlan(base, TARGET, BOTH, trials=10, replications=2, final_replications=2)
    )
    runner = Runner(store=local_store(tmp_path / "store", None))
    resumed = tune.execute(planned, runner)
    assert runner.reused >= 12
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
    ranges = {"links.up.qdisc": ["codel", "pfifo limit 0"], "rtt": "uniform(5ms,50ms)"}
    result = sj.tune(
        base, ranges, "min ping_ms_p99", trials=8, replications=1, final_replications=2
    )
    failed = result.trials.filter(pl.col("state") == "failed")
    assert failed["links.up.qdisc"].unique().to_list() == ["pfifo limit 0"]
    assert 0 < failed.height < 8
    assert "limit" in result.manifest["invalid"][0]
    ranges["links.up.qdisc.target"] = "uniform(1ms,5ms)"
    planned = tune.prepared(tune.TunePlan(base, ranges, ["min drops"], trials=1))
    # The only trial is one of those that are wrong.
    planned = replace(planned, dimensions=(replace(planned.dimensions[0], steps=(("x",),)),))
    with pytest.raises(sj.ScenarioError, match=r"\['links\.up\.qdisc'\]: unknown queue \"x\";"):
        tune.execute(planned, Runner())
    with pytest.raises(sj.ScenarioError, match="limit"):
        sj.tune(
            base, {"links.up.qdisc": ["pfifo limit 0", "codel limit -1"]}, "min drops", trials=2
        )


def test_a_trial_without_the_metric_fails_and_the_search_continues(base: sj.Scenario) -> None:
    # With this loss, no ping is answered.
    values = {"links.down.loss": ["100%", "0%"]}
    found = sj.tune(base, values, "min ping_ms_p99", trials=8, replications=1, final_replications=2)
    states = dict(found.trials.select("links.down.loss", "state").iter_rows())
    assert states == {"100%": "failed", "0%": "complete"}
    assert found.values() == {"links.down.loss": "0%"}


def test_a_trial_fails_if_one_run_lacks_the_objective(base: sj.Scenario) -> None:
    def known(x: Sequence[float], n: int) -> dict[str, float]:
        # The smallest mean of the runs that have a value is that of the trials that fail.
        return {"ping_ms_p99": math.nan if n == 1 and x[0] < 0.5 else x[0]}

    planned = tune.prepared(tune.TunePlan(base, XYZ, ["min ping_ms_p99"], trials=32))
    found = tune.execute(planned, Known(known)).trials
    assert (found["state"] == "failed").any()
    for row in found.iter_rows(named=True):
        failed = in_base_units(row["links.up.rate"]) < 0.5e6
        assert (row["state"] == "failed") == failed


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
    planned = tune.prepared(tune.TunePlan(base, XYZ, objectives, trials=32))
    one, other = (tune.execute(planned, kind(known)) for kind in (Known, Reversed))
    assert one.front.height > 3
    assert one.trials.equals(other.trials)
    assert one.best == other.best


def test_a_result_without_a_proposed_trial_has_no_scenario(
    base: sj.Scenario, tmp_path: Path
) -> None:
    found = sj.tune(base, TARGET, "min drops", trials=1, replications=1, final_replications=2)
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


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("links.up", {"rate": "5mbit", "qdisc": "codel"}),
        ("links.up.changes", [{"at": "1s", "rate": "2mbit"}, {"at": "2s", "rate": "4mbit"}]),
        ("traffic.bulk.ecn", True),
        ("traffic.bulk.count", 3),
        ("links.up.qdisc", "codel target 5ms"),
    ],
)
def test_a_proposed_option_is_read_back_as_the_same_value(path: str, value: Any) -> None:
    words = shlex.split(Settings({path: value}, {path: value}, {}, {}, []).options)
    assert words[0] == "-s"
    assert assignment(words[1]) == (path, value)


def test_the_command_prints_settings(sojourn: Command, searched_file: Path, tmp_path: Path) -> None:
    target = "links.up.qdisc.target=loguniform(1ms,100ms)"
    tuned = sojourn(
        *("tune", searched_file, "-p", target, "--objective", "min ping_ms_p99"),
        *(
            "--trials",
            "8",
            "--replications",
            "1",
            "--final-replications",
            "2",
            "--out",
            tmp_path / "t",
        ),
    )
    assert "tc qdisc replace dev $UP root codel limit 1000 target " in tuned.stdout
    assert "original" in tuned.stdout
    assert f"sojourn run {searched_file} -s links.up.qdisc.target=" in tuned.stdout
    planned = sojourn(
        *("tune", searched_file, "-p", target, "--objective", "min drops"),
        *("--trials", "1", "--dry-run"),
    )
    # 3 runs of the trial, then 10 of the best trial and 10 of the original scenario.
    assert planned.stdout == "tune: 1 trial, at most 23 runs\n"
    assert (tmp_path / "t" / "best.toml").exists()
