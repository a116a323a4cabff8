"""Conditions of searches: which trials are pruned, and what is refused."""

import json
import re
from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest

import sojourn as sj
from sojourn.cli import progress
from sojourn.cli.app import app
from sojourn.scenario.quantities import in_base_units
from sojourn.search import adversary, tune
from sojourn.search.runner import Runner
from support.searched import ARMS, TARGET, TEXT, XYZ, Known

# Half of the points.
SLOW = "links.up.rate < 0.5mbit"


@pytest.fixture(scope="module")
def base() -> sj.Scenario:
    return sj.Scenario.from_toml(TEXT)


def share_of_rate(x: Sequence[float], n: int) -> dict[str, float]:
    """A metric that is smallest where the condition is not met."""
    return {"ping_ms_p99": 1 - x[0] + 0 * n}


def test_a_trial_that_does_not_meet_the_condition_is_pruned_without_runs(base: sj.Scenario) -> None:
    planned = tune.prepared(
        tune.TunePlan(base, XYZ, ["min ping_ms_p99"], where=[SLOW], trials=64, final_replications=2)
    )
    runner = Known(share_of_rate)
    found = tune.execute(planned, runner)
    for row in found.trials.iter_rows(named=True):
        met = in_base_units(row["links.up.rate"]) < 0.5e6
        assert row["state"] == ("complete" if met else "pruned")
        assert (row["min ping_ms_p99"] is None) != met
    pruned = found.trials["state"] == "pruned"
    # The first 16 trials are random. Then, the sampler avoids points that were pruned, although
    # the metric is smaller towards them: 10 to 16 of 48 with seeds 1 to 4, and 27 to 30 if these
    # trials count as failed.
    assert 4 <= pruned[:16].sum() <= 12
    assert pruned[16:].sum() < 22
    of_search = [count for count, seed in runner.calls if seed == planned.seed]
    assert sum(of_search) == 64 - pruned.sum()
    assert runner.pruned == pruned.sum()
    best = in_base_units(f"{found.values()['links.up.rate']}")
    assert 0.3e6 < best < 0.5e6
    assert found.manifest["where"] == [SLOW]


def test_a_condition_changes_what_identifies_a_result(base: sj.Scenario, tmp_path: Path) -> None:
    def tuned(where: str) -> sj.TuneResult:
        return sj.tune(base, TARGET, "min drops", where=where, trials=2, final_replications=2)

    met = "links.up.qdisc.target > 0s"
    tuned(met).save(tmp_path)
    tuned(met).save(tmp_path)
    with pytest.raises(sj.ResultError, match="contains another result"):
        tuned("links.up.qdisc.target >= 0s").save(tmp_path)


def test_invalid_and_pruned_trials_need_no_runs(base: sj.Scenario) -> None:
    values = {"links.up.qdisc": ["codel", "pfifo limit 0", "pie"]}
    planned = tune.prepared(tune.TunePlan(
        base, values, ["min drops"], where=["links.up.qdisc != 'pie'"], trials=8,
        replications=1, final_replications=2,
    ))  # fmt: skip
    totals: list[tuple[int, int]] = []
    runner = Runner(progress=lambda *counts: totals.append(counts))
    found = tune.execute(planned, runner)
    states = dict(found.trials.select("links.up.qdisc", "state").iter_rows())
    assert states == {"codel": "complete", "pfifo limit 0": "failed", "pie": "pruned"}
    complete = (found.trials["state"] == "complete").sum()
    # The best trial and the original scenario, each with two new seeds.
    after_search = complete + 2 * 2
    assert after_search in [total for _, total in totals]
    assert totals[-1] == (complete + 4, complete + 4)


def test_a_search_without_a_point_that_meets_the_condition_has_no_result(
    base: sj.Scenario,
) -> None:
    counts: list[int] = []
    with pytest.raises(sj.ScenarioError, match=r"^where: no trial meets the conditions; expected "):
        sj.tune(
            base, TARGET, "min drops", where="links.up.qdisc.target > 1s", trials=3,
            progress=lambda finished, _total: counts.append(finished),
        )  # fmt: skip
    assert set(counts) <= {0}


def test_a_simplified_scenario_meets_the_condition() -> None:
    scenario = sj.Scenario.from_toml(TEXT + ARMS)
    ranges = {
        "links.up.rate": "uniform(1mbit,9mbit)",
        "rtt": "uniform(30ms,90ms)",
        "traffic.bulk.count": "integers(2,9)",
    }
    condition = ["rtt > 45ms and rtt < 85ms", "traffic.bulk.count >= 4"]

    class Lost(Known):
        def measure(self, *arguments: object, **options: object) -> list[pl.DataFrame]:
            # Arm b loses in every scenario: everything can be removed.
            frames = super().measure(*arguments, **options)  # type: ignore[arg-type]
            lost = (pl.col("arm") == "b").cast(pl.Float64).alias("drops")
            return [frame.with_columns(lost) for frame in frames]

    def simplest(where: Sequence[str]) -> tuple[sj.Scenario, pl.DataFrame]:
        planned = adversary.prepared(adversary.AdversaryPlan(
            scenario, ranges, loser="b", against="a", score="min drops", where=where,
            trials=24, final_replications=2,
        ))  # fmt: skip
        found = adversary.execute(planned, Lost(lambda _x, _n: {}))
        return found.scenario, found.trials

    free, trials = simplest([])
    document = json.loads(free.checked.to_json())
    # Its values in the scenario, which do not meet the conditions.
    assert (document["rtt"], document["traffic"][0]["count"]) == ("20ms", 1)
    assert trials["state"].unique().to_list() == ["complete"]
    bound, trials = simplest(condition)
    document = json.loads(bound.checked.to_json())
    assert 0.045 < in_base_units(document["rtt"]) < 0.085
    assert document["traffic"][0]["count"] == 4
    assert set(trials["state"]) == {"complete", "pruned"}


@pytest.mark.parametrize(
    ("command", "words", "said"),
    [
        ("tune", ("--where", "rtt > 1mbit"), '--where "rtt > 1mbit": compares a time with a rate'),
        ("tune", ("--where", "rttt > 1ms"), '--where "rttt > 1ms": unknown name rttt; expected a'),
        ("adversary", ("--where", "rtt"), "--where rtt: not true or false; expected a"),
    ],
)
def test_a_wrong_condition_is_refused(
    command: str, words: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    file = tmp_path / "s.toml"
    file.write_text(TEXT + (ARMS if command == "adversary" else ""), encoding="utf-8")
    options = {
        "tune": ("--objective", "min drops"),
        "adversary": ("--loser", "a", "--against", "b"),
    }[command]
    with pytest.raises(sj.ScenarioError, match=f"^{re.escape(said)}"):
        app(
            [command, f"{file}", *options, "-p", "rtt=1ms,9ms", *words, "--dry-run"],
            standalone_mode=False,
        )


def test_the_command_says_how_many_trials_were_pruned(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "LINE_S", 0.0)
    monkeypatch.setenv("SOJOURN_STORE", f"{tmp_path / 'store'}")
    file = tmp_path / "s.toml"
    file.write_text(TEXT, encoding="utf-8")
    words = ("--objective", "min drops", "--replications", "1", "--final-replications", "2")
    app(
        ["tune", f"{file}", "-p", "rtt=10ms,20ms", "--where", "rtt < 15ms", *words,
         "--trials", "8"],
        standalone_mode=False,
    )  # fmt: skip
    out, err = capsys.readouterr()
    found = re.search(
        r"^(\d) of 8 trials were pruned because they do not meet --where; they have no runs$",
        out,
        re.MULTILINE,
    )
    assert found is not None
    assert f"{found[1]} trials pruned" in err


@pytest.mark.parametrize(
    ("path", "values", "where", "named"),
    [
        ("links.up.rate", ["5mbit", "unlimited"], "links.up.rate >= 1mbit", "unlimited"),
        ("links.up.qdisc.target", ["5ms", "abc"], "links.up.qdisc.target < 9ms", "abc"),
    ],
)
def test_a_condition_is_checked_with_each_value_of_a_list(
    base: sj.Scenario, path: str, values: list[str], where: str, named: str
) -> None:
    runner = Known(share_of_rate)
    with pytest.raises(sj.ScenarioError) as caught:
        tune.prepared(tune.TunePlan(base, {path: values}, ["min drops"], where=[where], trials=9))
    assert f'compares a number with {path}, which is "{named}" at a point' in str(caught.value)
    assert not runner.calls
