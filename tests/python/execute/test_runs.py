"""Stored runs are not repeated, unless `fresh` is set: in functions, in commands and on workers."""

from collections.abc import Callable, Generator, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

import sojourn as sj
from sojourn.cli.app import app
from sojourn.execute import Row, Run, shared, worker
from sojourn.execute.local import LocalExecutor
from sojourn.storage import batch
from sojourn.storage.store import Store

TEXT = """
name = "stored"
duration = "1.5s"
warmup = "1s"
rtt = "20ms"
replications = 2
links.up = { rate = "5mbit", qdisc = "codel" }
links.down = { rate = "5mbit", qdisc = "pfifo" }
traffic = [{ type = "tcp", direction = "up" }, { type = "ping", direction = "up" }]
[[arms]]
name = "codel"
[[arms]]
name = "pfifo"
set = { "links.up.qdisc" = "pfifo" }
"""
RATES = {"links.up.rate": "uniform(2mbit,4mbit)"}
BASE = sj.Scenario.from_toml(TEXT)
ONE = BASE.replace(arms=[])


class Counting:
    """Executes runs and counts them."""

    def __init__(self) -> None:
        self.runs = 0

    def execute(self, parts: Iterable[Sequence[Run]]) -> Generator[Sequence[Row], None, None]:
        for part in parts:
            self.runs += len(part)
            yield [(run, run.measure()) for run in part]


FUNCTIONS: dict[str, Callable[..., object]] = {
    "sweep": lambda **more: sj.sweep(BASE, {"links.up.rate": ["2mbit", "4mbit"]}, **more),
    "tune": lambda **more: sj.tune(ONE, RATES, "min drops", trials=2, **more),
    "sensitivity": lambda **more: sj.sensitivity(
        ONE, RATES, "drops", method="morris", samples=2, **more
    ),
    "adversary": lambda **more: sj.adversary(
        BASE, RATES, loser="pfifo", against="codel", score="min ping_ms_p99", trials=2, **more
    ),
}


@pytest.mark.parametrize(
    ("function", "kind"),
    [*((name, "store") for name in FUNCTIONS), ("sweep", "shared"), ("tune", "shared")],
)
def test_fresh_executes_stored_runs_again(function: str, kind: str, tmp_path: Path) -> None:
    def executed(**more: Any) -> int:
        executor = Counting()
        FUNCTIONS[function](on=executor, **{kind: tmp_path / "runs"}, **more)
        return executor.runs

    first = executed()
    assert first > 0
    assert executed() == 0
    assert executed(fresh=True) == first
    # These runs are stored, too.
    assert executed() == 0


SEARCHED = ("-p", "links.up.rate=uniform(2mbit,4mbit)", "--trials", "2")
COMMANDS: dict[str, tuple[str, ...]] = {
    "sweep": ("-p", "links.up.rate=2mbit,4mbit"),
    "test": (),
    "tune": (*SEARCHED, "--objective", "min drops", "--arm", "codel"),
    "sensitivity": (
        *SEARCHED[:2],
        "--metric",
        "drops",
        "--arm",
        "codel",
        "--method",
        "morris",
        "--samples",
        "2",
    ),
    "adversary": (
        *SEARCHED,
        "--loser",
        "pfifo",
        "--against",
        "codel",
        "--score",
        "min ping_ms_p99",
    ),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_the_option_fresh_executes_stored_runs_again(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOJOURN_STORE", str(tmp_path / "runs"))
    swept = '[[expect]]\nthat = "ping_ms_p99 > 1us"\n[sweep.parameters]\nrtt = "10ms,20ms"\n'
    file = tmp_path / "stored.toml"
    file.write_text(f"{TEXT}{swept if command == 'test' else ''}", encoding="utf-8")
    counting = Counting()
    monkeypatch.setattr(LocalExecutor, "execute", lambda _, parts: counting.execute(parts))

    def executed(*more: str) -> int:
        before = counting.runs
        app([command, str(file), *COMMANDS[command], *more], standalone_mode=False)
        return counting.runs - before

    first = executed()
    assert first > 0
    assert executed() == 0
    assert executed("--fresh") == first


def test_a_fresh_task_of_a_worker_executes_stored_runs(tmp_path: Path) -> None:
    scenario = BASE.checked
    names = shared.keys(scenario, None)[1:3]

    def executed(*, fresh: bool) -> int:
        task = worker.Task(
            parts=(worker.Part(worker.scenario_of(scenario), (1, 2)),),
            store=f"{tmp_path}",
            batch=batch.name_of(names),
            backend=None,
            build=worker.build(),
            fresh=fresh,
        )
        return worker.run(task).executed

    assert executed(fresh=False) == 2
    # As after its first worker was lost.
    assert executed(fresh=False) == 0
    assert executed(fresh=True) == 2
    # The batch was replaced.
    assert Store.at(f"{tmp_path}").verify() == (2, [])
