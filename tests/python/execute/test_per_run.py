"""Metrics of runs: equal to those of earlier versions, from tables and from rows."""

import itertools
import json
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import sojourn as sj
from sojourn import _core
from sojourn.execute.executor import Executor
from sojourn.execute.local import LocalExecutor
from sojourn.execute.runs import LocalRowStore, Row, Run
from sojourn.result import metrics
from sojourn.sweeps.execution import Execution
from sojourn.sweeps.run import SweepPlan, execute, prepared
from support.random_scenarios import scenario

RECORDED = Path(__file__).parents[1] / "data" / "per_run"
DURATION_S = 3.0
TEXT = """
duration = "2s"
warmup = "500ms"
rtt = "20ms"
links.up = { rate = "4mbit", qdisc = "codel" }
links.down = { rate = "4mbit", qdisc = "pfifo" }
traffic = [
    { type = "tcp", direction = "up", count = 2 },
    { type = "ping", direction = "up", interval = "50ms" },
]
arms = [
    { name = "two" },
    { name = "one", set = { "traffic.0.count" = 1 } },
    { name = "quiet", set = { "traffic.1.start" = "1900ms", "traffic.1.interval" = "500ms" } },
]
"""
BASE = TEXT[: TEXT.index("arms")]


def recorded(name: str) -> pl.DataFrame:
    table = pl.read_parquet(RECORDED / f"{name}.parquet")
    if name != "links":
        return table
    # Later columns, which are null in earlier results.
    return table.with_columns(
        drops_ack_filter=pl.lit(None, pl.Int64), drops_replaced=pl.lit(None, pl.Int64)
    )


def assert_same(found: pl.DataFrame, expected: pl.DataFrame) -> None:
    assert found.columns == expected.columns
    assert_frame_equal(found, expected, rel_tol=1e-12, abs_tol=1e-13)


def test_the_metrics_of_tables_are_those_that_were_recorded() -> None:
    flows, links, pings = (recorded(name) for name in ("flows", "links", "pings"))
    tables = {"flows": flows, "links": links, "pings": pings}
    found = metrics.of_tables("run", tables, warmup_s=0.5, measured_s=2.5)
    assert_same(found, recorded("together"))
    each = recorded("each")
    for (arm,), rows in each.group_by("arm", maintain_order=True):
        warmup_s = rows["warmup_s"][0]
        alone = metrics.of_tables(
            "run",
            {name: table.filter(arm=arm) for name, table in tables.items()},
            warmup_s=warmup_s,
            measured_s=DURATION_S - warmup_s,
        )
        assert_same(alone, rows.select(alone.columns))
        others = rows.drop("warmup_s", *alone.columns)
        assert others.null_count().sum_horizontal().sum() == others.width * others.height


@pytest.mark.parametrize("seed", range(8))
def test_rows_have_the_metrics_of_the_tables(seed: int) -> None:
    tree = scenario(seed)
    checked = _core.Scenario.from_json(json.dumps(tree))
    expected = pl.DataFrame(_core.run(checked).metrics("run"))
    meter = _core.Meter(checked)
    rows = [(number, meter.measure(number)) for number in reversed(range(meter.runs))]
    assert pl.DataFrame(meter.table(rows)).equals(expected)
    assert all(meter.accepts(number, row) for number, row in rows)
    assert max(len(row) for _, row in rows) < 250


def test_arms_with_other_traffic_share_columns() -> None:
    checked = _core.Scenario.from_toml(TEXT)
    expected = pl.DataFrame(_core.run(checked).metrics("run"))
    meter = _core.Meter(checked)
    rows = list(itertools.chain.from_iterable(meter.start([2, 0, 1], jobs=2)))
    found = pl.DataFrame(meter.table(rows))
    assert found.equals(expected)
    assert found["jain_up"].to_list()[1] == 1.0
    # The ping of the last arm begins after the end of the run.
    assert found["ping_ms_p95"].is_null().to_list() == [False, False, True]
    only = pl.DataFrame(meter.table([row for row in rows if row[0] == 2]))
    assert set(found.columns) - set(only.columns) == {
        "induced_latency_ms",
        "latency_above_base_ms",
        "ping_ms_p95",
        "ping_ms_p99",
    }


def test_a_row_belongs_to_its_run_and_scenario() -> None:
    checked = _core.Scenario.from_toml(TEXT)
    meter = _core.Meter(checked)
    row = meter.measure(0)
    assert not meter.accepts(1, row)
    assert not meter.accepts(0, row[:-1])
    assert not meter.accepts(99, row)
    with pytest.raises(sj.SojournError, match="invalid row"):
        meter.table([(1, row)])
    with pytest.raises(sj.SojournError, match="no run 3; expected a number below 3"):
        meter.measure(3)
    with pytest.raises(sj.SojournError, match="no run 3"):
        meter.start([0, 3])
    # The metrics of a run depend on the flows of all arms, so that its key does too.
    one = 'arms = [{ name = "one", set = { "traffic.0.count" = 1 } }]'
    alone = _core.Meter(_core.Scenario.from_toml(BASE + one))
    assert "jain_up" not in alone.metrics
    assert alone.key(0) != meter.key(1)
    same = _core.Meter(_core.Scenario.from_toml(TEXT + "replications = 2\n"))
    assert same.key(0) == meter.key(0)


def test_runs_that_are_ended_early_return_what_has_finished() -> None:
    checked = _core.Scenario.from_toml(BASE.replace('"2s"', '"60s"') + "replications = 400\n")
    running = _core.Meter(checked).start(range(400), jobs=1)
    first = next(rows for rows in running if rows)
    rest = running.stop()
    assert 0 < len(first) + len(rest) < 400
    assert running.stop() == []
    assert list(running) == []


@dataclass
class Shuffled(Executor):
    """An executor that completes runs in another order."""

    order: Callable[[Sequence[int]], Sequence[int]]
    executed: list[int] = field(default_factory=list)

    def execute(self, parts: Iterable[Sequence[Run]]) -> Generator[Sequence[Row], None, None]:
        for part in parts:
            runs = {run.number: run for run in part}
            self.executed += runs
            for number in self.order(list(runs)):
                yield from LocalExecutor(jobs=1).execute([[runs[number]]])


def test_until_does_not_depend_on_the_order_of_completion() -> None:
    of = SweepPlan(
        sj.Scenario.from_toml(BASE),
        {"rtt": "10ms,40ms"},
        until="ping_ms_p95 ±4 %",
        max_replications=12,
    )
    planned = prepared(of)
    found = []
    for order in (list, lambda numbers: numbers[::-1], lambda numbers: sorted(numbers, key=hash)):
        executor = Shuffled(order)
        execution = Execution(
            replications=planned.replications, until=planned.until, executor=executor
        )
        found.append((execute(planned, execution).runs, sorted(executor.executed)))
    assert all(runs.equals(found[0][0]) for runs, _ in found)
    assert all(executed == found[0][1] for _, executed in found)


class OtherBuild(Shuffled):
    """An executor of another build."""

    def execute(self, parts: Iterable[Sequence[Run]]) -> Generator[Sequence[Row], None, None]:
        for rows in super().execute(parts):
            yield [(run, bytes([row[0], row[1] ^ 1]) + row[2:]) for run, row in rows]


def test_rows_of_another_build_are_refused_and_damaged_ones_are_executed_again(
    tmp_path: Path,
) -> None:
    planned = prepared(SweepPlan(sj.Scenario.from_toml(BASE), {"rtt": "10ms"}, replications=2))
    with pytest.raises(sj.SojournError, match="a run of another build or scenario"):
        execute(planned, Execution(replications=2, executor=OtherBuild(list)))
    store = LocalRowStore(store=_core.RunStore(tmp_path))
    (group,) = planned.groups
    store.append([(Run(group.scenario, 0), b"damaged")])
    store.close(group.scenario)
    execution = Execution(replications=2, executor=(executor := Shuffled(list)), store=store)
    assert execute(planned, execution).complete
    assert executor.executed == [0, 1]


class FailingStore(LocalRowStore):
    """A store that fails at some call of a method."""

    def __init__(self, store: _core.RunStore, method: str) -> None:
        super().__init__(store=store)
        self.method = method
        self.calls = 0

    def _call(self, method: str) -> None:
        if method == self.method:
            self.calls += 1
            if self.calls > (method == "append"):
                message = "run store: no space left"
                raise _core.ResultError(message)

    def read(self, runs: Sequence[Run]) -> Iterator[Row]:
        self._call("read")
        return super().read(runs)

    def append(self, rows: Sequence[Row]) -> None:
        self._call("append")
        super().append(rows)

    def close(self, scenario: _core.Scenario) -> None:
        super().close(scenario)
        self._call("close")


@pytest.mark.parametrize("method", ["read", "append", "close"])
def test_a_store_that_fails_loses_no_run(method: str, tmp_path: Path) -> None:
    planned = prepared(SweepPlan(sj.Scenario.from_toml(BASE), {"rtt": "10ms,40ms"}, replications=3))
    store = FailingStore(_core.RunStore(tmp_path), method)
    execution = Execution(replications=planned.replications, executor=Shuffled(list), store=store)
    result = execute(planned, execution)
    assert result.complete
    assert result.runs.height == 6
    assert execution.failure == "run store: no space left"
    # After a failure the store is closed and not used again.
    assert store.calls == {"read": 1, "append": 2, "close": 1}[method]
    again = Execution(
        replications=planned.replications,
        executor=Shuffled(list),
        store=LocalRowStore(store=_core.RunStore(tmp_path)),
    )
    assert execute(planned, again).runs.equals(result.runs)
    assert again.reused == {"read": 0, "append": 1, "close": 6}[method]
