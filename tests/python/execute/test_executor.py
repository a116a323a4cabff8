"""Executors: the example of the documentation, and the choice between threads and processes."""

import dataclasses
import importlib.util
import re
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from pathlib import Path
from types import ModuleType

import pytest

import sojourn as sj
from sojourn.execute import Executor, Row, Run
from sojourn.execute.local import LocalExecutor, ThreadExecutor
from sojourn.execute.processes import ProcessExecutor
from sojourn.execute.runs import LocalRowStore, local_store
from sojourn.execute.targets import Target, target

GUIDE = Path(__file__).parents[3] / "docs" / "howto" / "executor.md"
BASE = sj.Scenario.from_toml("""
name = "executed"
duration = "2s"
warmup = "1s"
rtt = "20ms"
replications = 3
links.up = { rate = "5mbit", qdisc = "codel" }
links.down = { rate = "5mbit", qdisc = "pfifo" }
traffic = [{ type = "tcp", direction = "up" }, { type = "ping", direction = "up" }]
""")
GIVEN = {"links.up.rate": ["2mbit", "4mbit"], "duration": ["1.5s", "2s"]}


class Last(sj.PythonQueue):
    """Serves the packet that came last."""

    def __init__(self) -> None:
        self.packets: deque[sj.Packet] = deque(maxlen=50)

    def enqueue(self, _now: float, packet: sj.Packet) -> None:
        self.packets.append(packet)

    def dequeue(self, _now: float) -> sj.Packet | None:
        return self.packets.pop() if self.packets else None


@pytest.fixture
def slurm(tmp_path: Path) -> ModuleType:
    """The program of the guide."""
    (program,) = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    path = tmp_path / "slurm.py"
    path.write_text(program, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("slurm", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_executor_of_the_guide_gives_the_same_sweep(slurm: ModuleType, tmp_path: Path) -> None:
    # Without srun, the steps are processes of this machine.
    executor = slurm.Slurm(steps=2, runs=4, command=())
    assert isinstance(executor, Executor)
    found = sj.sweep(BASE, GIVEN, on=executor, store=tmp_path / "runs")
    assert found.runs.equals(sj.sweep(BASE, GIVEN).runs)
    # What is stored is not requested.
    never = slurm.Slurm(command=("false",))
    assert sj.sweep(BASE, GIVEN, on=never, store=tmp_path / "runs").runs.equals(found.runs)


def test_a_search_takes_an_executor() -> None:
    values = {"links.up.qdisc.target": "uniform(1ms,20ms)"}

    def tuned(on: Executor | None) -> sj.TuneResult:
        return sj.tune(BASE, values, "min drops", trials=2, replications=2, on=on)

    class Reversed:
        def execute(self, parts: Iterable[Sequence[Run]]) -> Generator[Sequence[Row], None, None]:
            for part in parts:
                rows.extend((run, run.measure()) for run in reversed(part))
                yield rows[-len(part) :]

    rows: list[Row] = []
    found = tuned(Reversed())
    assert rows
    assert found.trials.equals(tuned(None).trials)


def test_an_error_of_an_executor_keeps_the_finished_runs(tmp_path: Path) -> None:
    class Failing:
        def execute(self, parts: Iterable[Sequence[Run]]) -> Generator[Sequence[Row], None, None]:
            for part in parts:
                yield [(part[0], part[0].measure())]
                message = "no node is left"
                raise OSError(message)

    with pytest.raises(OSError, match="no node is left"):
        sj.sweep(BASE, GIVEN, on=Failing(), store=tmp_path)
    counts: list[int] = []
    sj.sweep(BASE, GIVEN, store=tmp_path, progress=lambda done, _: counts.append(done))
    assert counts[:2] == [0, 1]


def test_an_executor_is_a_target() -> None:
    executor = LocalExecutor(jobs=1)
    assert target(executor) == Target(executor=executor)


def test_only_runs_of_queues_in_python_need_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[tuple[str, int]] = []

    def noted(kind: type[ThreadExecutor] | type[ProcessExecutor]) -> None:
        execute = kind.execute

        def wrapper(
            self: ThreadExecutor, parts: Iterable[Sequence[Run]]
        ) -> Generator[Sequence[Row], None, None]:
            for rows in execute(self, parts):  # type: ignore[arg-type]
                used.append((kind.__name__, len(rows)))
                yield rows

        monkeypatch.setattr(kind, "execute", wrapper)

    noted(ThreadExecutor)
    noted(ProcessExecutor)
    links = {**BASE.links, "up": sj.Link(rate="1mbit", qdisc=Last)}
    python, core = BASE.replace(links=links).checked, BASE.checked
    parts = [[Run(of, n) for n in range(3)] for of in (core, python, core)]
    alone = [Run(python, 0)]
    rows = dict(row for some in LocalExecutor(jobs=2).execute([*parts, alone]) for row in some)
    counts = {name: sum(n for of, n in used if of == name) for name, _ in used}
    # A single run needs no other process.
    assert counts == {"ThreadExecutor": 7, "ProcessExecutor": 3}
    assert rows == {run: run.measure() for part in parts for run in part}


def test_the_run_store_has_few_scenarios_open_and_keeps_the_rows_of_all(tmp_path: Path) -> None:
    scenarios = [BASE.replace(seed=seed).checked for seed in range(6)]
    rows = [(run := Run(of, number), run.measure()) for number in (0, 2) for of in scenarios]
    store = local_store(tmp_path, None)
    assert isinstance(store, LocalRowStore)
    # Their scenarios alternate, as those of a cluster do.
    store.append(rows)
    for of in scenarios:
        store.close(of)
    again = local_store(tmp_path, None)
    assert again is not None
    found = [row for of in scenarios for row in again.read([Run(of, n) for n in range(3)])]
    assert sorted(found, key=rows.index) == rows


def test_a_run_is_named_by_its_arm_and_replication() -> None:
    arms = [sj.Arm(name="a", set={}), sj.Arm(name="b", set={"links.up.qdisc": "pie"})]
    scenario = BASE.replace(arms=arms).checked
    assert Run(scenario, 4).name == 'arm "b", replication 1'
    assert "slurm" not in sys.modules


class Faulty:
    """Executes all runs; the rows of each part pass through a function."""

    name = "faulty"

    def __init__(self, change: Callable[[list[Row]], list[Row]]) -> None:
        self.change = change

    def execute(self, parts: Iterable[Sequence[Run]]) -> Generator[Sequence[Row]]:
        for part in parts:
            rows = [row for some in ThreadExecutor(jobs=1).execute([part]) for row in some]
            yield self.change(rows)


def renamed(rows: list[Row]) -> list[Row]:
    """The first row as one of another scenario."""
    run, row = rows[0]
    other = BASE.replace(name="other").checked
    return [(dataclasses.replace(run, scenario=other), row), *rows[1:]]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda rows: rows[:-1],
            r"^the executor did not return \d+ runs?; expected a row for each",
        ),
        (lambda rows: [*rows, rows[0]], "a run that it was not given, or one twice"),
        (renamed, "a run that it was not given, or one twice"),
    ],
    ids=["lost", "twice", "another"],
)
@pytest.mark.parametrize("until", [None, "goodput_up ±50 %"])
def test_an_executor_that_loses_or_adds_runs_is_refused(
    change: Callable[[list[Row]], list[Row]], said: str, until: str | None
) -> None:
    most = None if until is None else 8
    with pytest.raises(sj.SojournError, match=said):
        sj.sweep(BASE, GIVEN, on=Faulty(change), until=until, max_replications=most)
