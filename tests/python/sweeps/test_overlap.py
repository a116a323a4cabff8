"""The time of a sweep beside its runs: what overlaps with them, and what is not done."""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pytest

import sojourn as sj
from sojourn import _core
from sojourn.execute.local import ThreadExecutor
from sojourn.execute.runs import Row, Run
from sojourn.result.estimates import Interval, intervals, mean_and_interval
from sojourn.sweeps.estimates import by_point
from sojourn.sweeps.execution import Execution
from sojourn.sweeps.run import PreparedSweep, SweepInterrupted, SweepPlan, execute, prepared
from support.shell import environment

SCENARIO = sj.Scenario.from_toml("""
name = "swept"
duration = "2s"
warmup = "1s"
rtt = "20ms"
replications = 3
links.up = { rate = "5mbit", qdisc = "codel" }
links.down = { rate = "5mbit", qdisc = "pfifo" }
traffic = [{ type = "tcp", direction = "up" }, { type = "ping", direction = "up" }]
""")
# Each duration has its own group.
DURATIONS = {"duration": ["1.5s", "1.6s", "1.7s"], "links.up.rate": ["2mbit", "4mbit"]}


@dataclass
class Log:
    """A store of rows that remembers in which order it was used."""

    rows: dict[str, dict[int, bytes]] = field(default_factory=dict)
    events: list[tuple[str, float]] = field(default_factory=list)

    def read(self, runs: Sequence[Run]) -> Iterator[Row]:
        self.events.append(("look up", runs[0].scenario.duration_s))
        stored = self.rows.get(runs[0].scenario.hash, {})
        return ((run, stored[run.number]) for run in runs if run.number in stored)

    def append(self, rows: Sequence[Row]) -> None:
        self.events.append(("append", rows[0][0].scenario.duration_s))
        for run, row in rows:
            self.rows.setdefault(run.scenario.hash, {})[run.number] = row

    def close(self, scenario: _core.Scenario) -> None:
        self.events.append(("close", scenario.duration_s))


@dataclass(slots=True, kw_only=True)
class Watched(ThreadExecutor):
    """An executor that remembers when it starts runs."""

    log: Log

    def _start(self, part: Sequence[Run]) -> _core.Measurements:
        self.log.events.append(("start", part[0].scenario.duration_s))
        return ThreadExecutor._start(self, part)  # noqa: SLF001


def planned(*, until: str | None = None) -> PreparedSweep:
    found = prepared(
        SweepPlan(SCENARIO, DURATIONS, until=until, max_replications=8 if until else None)
    )
    assert len(found.groups) == 3
    return found


def executed(of: PreparedSweep, log: Log, **given: object) -> tuple[sj.SweepResult, Execution]:
    execution = Execution(
        replications=of.replications,
        executor=Watched(jobs=2, log=log),
        until=of.until,
        store=log,
        **given,  # type: ignore[arg-type]
    )
    return execute(of, execution), execution


def test_runs_of_the_next_group_start_before_the_last_rows_are_stored() -> None:
    log, of = Log(), planned()
    result, execution = executed(of, log)
    for before, after in ((1.5, 1.6), (1.6, 1.7)):
        last = max(n for n, event in enumerate(log.events) if event == ("append", before))
        assert log.events.index(("look up", after)) < log.events.index(("start", after)) < last
    # Each group is looked up and started once.
    assert len([event for event in log.events if event[0] != "append"]) == 3 * 3
    assert result.runs.height == execution.finished == of.runs
    assert result.runs.equals(sj.sweep(SCENARIO, DURATIONS, jobs=1).runs)
    again, repeated = executed(of, log)
    assert repeated.reused == of.runs
    assert again.runs.equals(result.runs)


def test_with_until_rounds_do_not_overlap() -> None:
    log, of = Log(), planned(until="ping_ms_p95 ±0.1 %")
    executed(of, log)
    # The precision is known when all runs of a round have finished.
    starts = [number for number, event in enumerate(log.events) if event[0] == "start"]
    closed = [number for number, event in enumerate(log.events) if event == ("close", 1.7)]
    assert len(starts) > 3
    assert closed[0] < starts[3]


def test_damaged_rows_are_executed_in_addition_to_the_started_runs() -> None:
    log, of = Log(), planned()
    result, _ = executed(of, log)
    for group in of.groups:
        rows = log.rows[group.scenario.hash]
        del rows[1]
        rows[2] = bytes([rows[2][0] ^ 1]) + rows[2][1:]
    again, execution = executed(of, log)
    assert again.runs.equals(result.runs)
    assert execution.reused == of.runs - 2 * 3


def test_an_interrupt_between_groups_keeps_the_finished_runs_and_ends_the_others() -> None:
    log, of = Log(), planned()
    first = of.replications * len(of.groups[0].arms)

    def progress(finished: int, _: int) -> None:
        if finished == first:
            assert log.events[-2][0] == "start"
            raise KeyboardInterrupt

    with pytest.raises(SweepInterrupted) as interrupted:
        executed(of, log, progress=progress)
    assert interrupted.value.result.runs.height == first
    assert len(log.rows[of.groups[0].scenario.hash]) == first
    # The started group was closed, and the third one was not looked up.
    assert log.events[-1] == ("close", 1.6)
    assert 1.7 not in [duration for _, duration in log.events]


def test_intervals_of_equal_samples_are_computed_once() -> None:
    runs = sj.sweep(SCENARIO, {"links.up.rate": ["2mbit", "4mbit"]}).runs
    names = ["drops", "marks", "goodput_up_mbit_per_s"]
    samples: list[list[float]] = []

    def estimate(given: Sequence[Sequence[float]]) -> list[Interval]:
        samples.extend(list(values) for values in given)
        return intervals(given)

    found = by_point(runs, ["links.up.rate"], names, estimate)
    assert samples.count([0.0] * 3) == 1
    assert len(samples) < found.height * len(names)
    for row in found.iter_rows(named=True):
        of_point = runs.filter(point=row["point"])
        for name in names:
            expected = mean_and_interval(of_point[name].to_list())
            assert (row[name], row[f"{name}_low"], row[f"{name}_high"]) == expected


def test_the_first_points_are_those_of_all_points() -> None:
    found = sj.sweep(SCENARIO, {"links.up.rate": ["2mbit", "3mbit", "4mbit"]})
    names = ["ping_ms_p99", "drops"]
    first = found.first_points(2, names)
    assert "points" not in found.__dict__
    assert first.equals(found.points.head(2).select(first.columns))
    assert found.first_points(2, names).height == 2


def test_the_command_imports_only_what_it_needs() -> None:
    heavy = ["numpy", "scipy", "matplotlib", "distributed", "sojourn.report.page"]
    program = f"import sojourn.cli.sweep, sys; print(*(n for n in {heavy} if n in sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == ""
