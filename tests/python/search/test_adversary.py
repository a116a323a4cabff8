"""Worst cases: the regret, the search, the minimiser, their files and their page."""

import json
import math
import resource
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import worst_cases

import sojourn as sj
from sojourn.scenario.quantities import in_base_units
from sojourn.search import adversary
from sojourn.search.adversary import NeverLosesError, read
from sojourn.search.dimensions import dimensions
from sojourn.search.minimising import Candidate, minimised
from sojourn.search.objectives import contest
from sojourn.search.runner import fresh_seed
from sojourn.sweeps.parameters import parameters
from support.searched import ARMS, TEXT, XYZ, Known


@pytest.fixture(scope="module")
def base() -> sj.Scenario:
    return sj.Scenario.from_toml(TEXT)


@pytest.fixture(scope="module")
def worst() -> sj.AdversaryResult:
    return sj.adversary(loser="pfifo", against="fq_codel", trials=8, final_replications=3, seed=3)


def test_a_run_in_which_only_one_arm_has_a_score_is_the_worst() -> None:
    def regret(score: str, **metrics: Any) -> float | None:
        runs = pl.DataFrame({"arm": ["a", "b"], "replication": [0, 0], **metrics})
        return contest(sj.Scenario.from_toml(TEXT + ARMS), "a", "b", score).regret(runs).mean

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
        loser="a",
        against="b",
        score="min ping_ms_p99",
        trials=2,
        replications=1,
        final_replications=2,
    )
    assert 50_000 < found.regret[0] <= 60_000


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
    frame = sj.run(again.scenario).table()
    of = contest(again.scenario, case.arm, case.against, case.score)
    assert of.regret(frame).mean == case.regret
    worst.save(tmp_path / "out")
    assert sj.AdversaryResult.load(tmp_path / "out").worst == case


@pytest.mark.parametrize("queue", ["codel", "cake"])
def test_a_stored_worst_case_still_has_its_regret(queue: str) -> None:
    case = read(worst_cases.FOLDER / f"{queue}.toml")
    runs = sj.run(case.scenario).table()
    found = contest(case.scenario, case.arm, case.against, case.score).regret(runs)
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
    page.unlink()
    assert worst_cases.main() == 1


@pytest.mark.parametrize("words", [(), ("--check",)])
def test_a_page_without_worst_cases_is_refused_in_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
) -> None:
    monkeypatch.setattr(worst_cases, "FOLDER", tmp_path / "none")
    monkeypatch.setattr(worst_cases, "PAGE", tmp_path / "worst-cases.md")
    monkeypatch.setattr("sys.argv", ["worst_cases.py", *words])
    assert worst_cases.main() == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("docs/qdiscs/worst_cases: no worst cases; expected files such as ")
    assert not list(tmp_path.iterdir())


def test_a_saved_result_is_replaced_as_a_whole(worst: sj.AdversaryResult, tmp_path: Path) -> None:
    out = tmp_path / "out"
    worst.save(out)
    before = {file.name: file.read_bytes() for file in out.iterdir()}
    manifest = {**worst.manifest, "keep": 0.5}
    other = sj.AdversaryResult(manifest, worst.trials.head(3), worst.worst)
    with pytest.raises(sj.ResultError, match="contains another result"):
        other.save(out)
    before_limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, before_limit[1]))
    try:
        with pytest.raises(sj.ResultError, match=r"cannot write .*: File too large"):
            other.save(out, force=True)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before_limit)
    assert {file.name: file.read_bytes() for file in out.iterdir()} == before
    # A process that was killed after the commit, before it moved the files.
    other.save(tmp_path / "new")
    (tmp_path / "new").rename(out / ".sojourn-commit")
    assert sj.AdversaryResult.load(out).trials.height == 3
    for other_commit in ({"version": "0", "commit": "a"}, {"version": "0", "commit": "b"}):
        third = sj.AdversaryResult({**manifest, "sojourn": other_commit}, worst.trials, worst.worst)
        with pytest.raises(sj.ResultError, match="contains another result"):
            third.save(out)
    other.save(out)
    (out / "worst.toml").write_text(f"{worst.worst.to_toml()}\n", encoding="utf-8")
    with pytest.raises(sj.DamagedResultError, match=r"worst\.toml: damaged: its digest"):
        sj.AdversaryResult.load(out)


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

    planned = adversary.prepared(
        adversary.AdversaryPlan(
            scenario, XYZ, loser="a", against="b", score="min drops", trials=2, final_replications=2
        )
    )
    with pytest.raises(sj.ScenarioError, match="fewer than two pairs of runs"):
        adversary.execute(planned, Failing(lambda _x, _n: {}))


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
    again = sj.adversary(
        loser="pfifo", against="fq_codel", trials=8, final_replications=3, seed=3, jobs=1
    )
    assert again.worst == worst.worst
    assert again.trials.equals(worst.trials)


def test_the_minimiser_keeps_only_what_the_finding_needs() -> None:
    scenario = adversary.built_in("pfifo", "codel")
    of = dimensions(parameters(adversary.SPACE), varying=False)
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
        return [found] * (1 + adversary.MAX_STEPS)

    monkeypatch.setattr(adversary, "minimised", simplified)
    planned = adversary.prepared(
        adversary.AdversaryPlan(
            sj.Scenario.from_toml(TEXT + ARMS),
            XYZ,
            loser="a",
            against="b",
            score="min drops",
            trials=2,
            replications=1,
        )
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

    runner = Counted(lambda _x, _n: {})
    adversary.execute(planned, runner)
    assert runner.checks == 8
    # The steps of the minimiser were not run.
    assert runner.runs == planned.runs - 2 * adversary.MAX_STEPS * adversary.STEP_RUNS


def test_an_arm_that_never_loses_has_no_worst_case(base: sj.Scenario) -> None:
    scenario = sj.Scenario.from_toml(TEXT + ARMS)
    assert not base.arms
    with pytest.raises(sj.ScenarioError, match=r"loser=.a.: loses in no scenario"):
        sj.adversary(
            scenario, {"rtt": ["20ms"]}, loser="a", against="b", score="min ping_ms_p99", trials=2
        )
