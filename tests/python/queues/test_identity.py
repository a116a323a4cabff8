"""Which classes of Python are the same queue, here and in the processes of a run."""
# ruff: noqa: ARG002 - the time is part of the interface

import importlib
import linecache
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any

import pytest

import sojourn as sj

Queue = type[sj.PythonQueue]


class TailDrop(sj.PythonQueue):
    limit = 50

    def __init__(self) -> None:
        self.packets: deque[sj.Packet] = deque()

    def enqueue(self, now: float, packet: sj.Packet) -> None:
        if len(self.packets) < self.limit:
            self.packets.append(packet)
        else:
            packet.drop("overlimit")

    def dequeue(self, now: float) -> sj.Packet | None:
        return self.packets.popleft() if self.packets else None


def by_closure(limit: Any) -> Queue:
    class Q(TailDrop):
        def enqueue(self, now: float, packet: sj.Packet) -> None:
            self.limit = limit
            super().enqueue(now, packet)

    return Q


def by_default(limit: int) -> Queue:
    class Q(TailDrop):
        def enqueue(self, now: float, packet: sj.Packet, limit: int = limit) -> None:
            self.limit = limit
            super().enqueue(now, packet)

    return Q


def by_attribute(limit: int) -> Queue:
    found: list[Queue] = []
    for value in (limit,):

        class Q(TailDrop):
            limit = value

        found.append(Q)
    return found[0]


def by_object(limit: int) -> Queue:
    @dataclass
    class Options:
        limits: list[int]

    options = Options([limit])

    class Q(TailDrop):
        def enqueue(self, now: float, packet: sj.Packet) -> None:
            self.limit = options.limits[0]
            super().enqueue(now, packet)

    return Q


def by_helper(limit: int) -> Queue:
    def room() -> int:
        return limit

    class Q(TailDrop):
        limit = property(lambda _: room())  # type: ignore[assignment]

    return Q


def by_decorator(limit: int) -> Queue:
    def limited(method: Callable[..., None]) -> Callable[..., None]:
        @wraps(method)
        def wrapper(self: TailDrop, now: float, packet: sj.Packet) -> None:
            self.limit = limit
            method(self, now, packet)

        return wrapper

    class Q(TailDrop):
        @limited
        def enqueue(self, now: float, packet: sj.Packet) -> None:
            super().enqueue(now, packet)

    return Q


def by_method(limit: int) -> Queue:
    class Q(TailDrop):
        pass

    def few(self: TailDrop, now: float, packet: sj.Packet) -> None:
        self.limit = 5
        TailDrop.enqueue(self, now, packet)

    def many(self: TailDrop, now: float, packet: sj.Packet) -> None:
        self.limit = 500
        TailDrop.enqueue(self, now, packet)

    Q.enqueue = few if limit == 5 else many  # type: ignore[method-assign]
    return Q


def scenario(**queues: Queue) -> sj.Scenario:
    return sj.Scenario(
        links={
            "up": sj.Link(rate="10mbit", qdisc="pfifo"),
            "down": sj.Link(rate="10mbit", qdisc="pfifo"),
        },
        traffic=[sj.Tcp(direction="up", count=2)],
        arms=[sj.Arm(name=name, set={"links.up.qdisc": q}) for name, q in queues.items()],
        rtt="20ms",
        duration="3s",
        warmup="1s",
    )


def longest_ms(result: sj.Result) -> dict[str, float]:
    """Return the longest time in the queue in each arm."""
    up = result.links.filter(link="up")
    return dict(up.select("arm", "sojourn_ms_max").iter_rows())


FACTORIES = [
    by_closure,
    by_default,
    by_attribute,
    by_object,
    by_helper,
    by_decorator,
    by_method,
]


@pytest.mark.parametrize("make", FACTORIES)
def test_variants_of_one_source_are_two_queues(make: Callable[[int], Queue]) -> None:
    assert make(5).spec != make(500).spec
    assert make(5).spec == make(5).spec


@pytest.mark.parametrize("jobs", [1, 2])
def test_each_arm_runs_its_own_variant(jobs: int) -> None:
    arms = {make.__name__: make(5) for make in FACTORIES}
    arms |= {f"{make.__name__}_long": make(500) for make in FACTORIES}
    longest = longest_ms(sj.run(scenario(**arms), jobs=jobs))
    for make in FACTORIES:
        assert longest[make.__name__] < 10, make
        assert longest[f"{make.__name__}_long"] > 60, make


class Unreadable:
    """An object that cannot be pickled, and so not be read."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.lock = threading.Lock()

    def __int__(self) -> int:
        return self.limit


def by_unreadable(limit: Unreadable) -> Queue:
    class Q(TailDrop):
        def enqueue(self, now: float, packet: sj.Packet) -> None:
            self.limit = int(limit)
            super().enqueue(now, packet)

    return Q


def test_classes_that_cannot_be_distinguished_are_refused() -> None:
    few, locked = Unreadable(5), Unreadable(5)
    assert by_unreadable(few).spec == by_unreadable(few).spec
    with pytest.raises(sj.ScenarioError, match="Q: two different classes have this name"):
        sj.Link(rate="1mbit", qdisc=by_unreadable(locked))


CELL = """
from collections import deque
from dataclasses import dataclass
from functools import cached_property
import sojourn as sj

def room(queue):
    return queue.limit - len(queue.packets)

TRACE = []

@dataclass
class Cell(sj.PythonQueue):
    limit: int = 50

    @cached_property
    def packets(self):
        return deque()

    def enqueue(self, now, packet):
        TRACE.append(now)
        self.packets.append(packet) if room(self) else packet.drop("overlimit")

    def dequeue(self, now):
        return self.packets.popleft() if self.packets else None
"""


def execute(text: str, number: int, names: dict[str, Any]) -> Queue:
    """Run a cell of a notebook; return the class that it defines."""
    file = f"<cell {number}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    exec(compile(text, file, "exec"), names)  # noqa: S102
    defined: Queue = names["Cell"]
    return defined


def test_a_cell_that_is_run_again_defines_the_same_queue() -> None:
    names: dict[str, Any] = {"__name__": "__main__"}
    first = execute(CELL, 1, names)
    spec = first.spec
    sj.run(scenario(cell=first), jobs=1)
    again = execute(CELL, 2, names)
    assert again is not first
    assert again.spec == spec
    sj.run(scenario(cell=again), jobs=1)
    assert again.spec == spec
    assert execute(CELL.replace("len(queue", "2 * len(queue"), 3, names).spec != spec


def test_a_class_that_changes_after_it_was_given_is_refused() -> None:
    class Changing(TailDrop):
        limit = 5

    few = scenario(few=Changing)
    Changing.limit = 500
    many = scenario(many=Changing)
    assert longest_ms(sj.run(many))["many"] > 60
    with pytest.raises(sj.ScenarioError, match="has changed since the class was passed"):
        sj.run(few)


def test_processes_use_the_values_of_this_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = Path(__file__).read_text()
    body = text[text.index("class TailDrop") : text.index("def by_closure")]
    (tmp_path / "imported_queue.py").write_text(
        f"from collections import deque\nimport sojourn as sj\n\n\n{body}"
    )
    monkeypatch.syspath_prepend(tmp_path)
    imported = importlib.import_module("imported_queue").TailDrop
    before = imported.spec
    imported.limit = 500
    assert imported.spec != before
    compared = scenario(imported=imported, local=TailDrop)
    longest = longest_ms(sj.run(compared, jobs=2))
    assert longest["imported"] > 60
    assert longest == longest_ms(sj.run(compared, jobs=1))


def test_only_queues_count_as_queues() -> None:
    pfifo = scenario().replace(name="compare python:fifo")
    assert sj.run(pfifo, jobs=2).complete
    assert pfifo.checked.external_queues == []
    inside = sj.Prio(leaf=[TailDrop, sj.Drr(classes=1, leaf=TailDrop), sj.Pfifo()])
    nested = scenario(q=inside)  # type: ignore[arg-type]
    assert nested.checked.external_queues == [TailDrop.spec]


def test_a_result_says_what_depends_on_the_code_of_a_queue() -> None:
    notice = f"{TailDrop.spec}: queue from outside Sojourn; its code determines whether runs"
    alone = sj.run(scenario(q=TailDrop)).provenance["notices"]
    assert [text.startswith(notice) for text in alone] == [True]
    together = sj.run(scenario(q=TailDrop, r=TailDrop), jobs=2).provenance["notices"]
    assert together == alone
    assert sj.run(scenario()).provenance["notices"] == []
