"""Queues written in Python."""
# ruff: noqa: ARG002 - the time is part of the interface

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import loky
import pytest

import sojourn as sj
from sojourn import _core
from sojourn.execute.run import execute


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


class MarkLate(TailDrop):
    """Marks, or else drops, every packet that waited longer than 10 ms; draws and counts."""

    limit = 1000

    def dequeue(self, now: float) -> sj.Packet | None:
        while self.packets:
            packet = self.packets.popleft()
            late = now - packet.arrival > 0.010 and self.random.random() < 0.05
            if not late or packet.mark() or not self.packets:
                return packet
            packet.drop()
        return None


class Paced(TailDrop):
    """Sends one packet per 5 ms."""

    def __init__(self) -> None:
        super().__init__()
        self.next_at = 0.0
        self.wake_at: float | None = None

    def dequeue(self, now: float) -> sj.Packet | None:
        if now < self.next_at:
            self.wake_at = self.next_at
            return None
        self.next_at = now + 0.005
        return super().dequeue(now)

    def next_timer(self) -> float | None:
        return self.wake_at

    def on_timer(self, now: float) -> None:
        self.wake_at = None


def scenario(qdisc: str | type[sj.PythonQueue], **fields: Any) -> sj.Scenario:
    base: dict[str, Any] = {
        "links": {
            "up": sj.Link(rate="10mbit", qdisc=qdisc),
            "down": sj.Link(rate="10mbit", qdisc="pfifo"),
        },
        "traffic": [
            sj.Tcp(direction="up", count=2, ecn=True),
            sj.Ping(direction="up", interval="100ms"),
        ],
        "rtt": "20ms",
        "duration": "4s",
        "warmup": "1s",
    }
    return sj.Scenario(**base | fields)


TABLES = ["flows", "links", "flow_series", "link_series", "pings", "sojourn"]


def test_a_fifo_in_python_leaves_the_records_of_pfifo() -> None:
    ours = sj.run(scenario(TailDrop))
    theirs = sj.run(scenario("pfifo limit 50"))
    assert ours.links.filter(link="up")["drops_overlimit"].sum() > 0
    for table in TABLES:
        mine, other = getattr(ours, table), getattr(theirs, table)
        unnamed = [name for name in mine.columns if name != "qdisc"]
        assert mine.select(unnamed).equals(other.select(unnamed)), table


def test_a_capture_does_not_change_the_records_of_a_queue_with_a_timer(tmp_path: Path) -> None:
    # With a capture the timer is read after each packet, else once after those of one instant.
    plain = sj.run(scenario(Paced))
    captured = sj.run(scenario(Paced), pcap=tmp_path / "run.pcapng")
    assert plain.links.filter(link="up")["sent_packets"].sum() > 500
    for table in TABLES:
        assert getattr(plain, table).equals(getattr(captured, table)), table


def test_marks_drops_and_random_numbers_are_those_of_the_seed() -> None:
    first, again = sj.run(scenario(MarkLate), seed=3), sj.run(scenario(MarkLate), seed=3)
    other = sj.run(scenario(MarkLate), seed=4)
    up = first.links.filter(link="up")
    assert up["marks_aqm"].sum() > 0
    assert first.flow_series.equals(again.flow_series)
    assert not first.flow_series.equals(other.flow_series)


def test_processes_leave_the_records_of_one_process() -> None:
    arms = [
        sj.Arm(name="fq_codel", set={"links.up.qdisc": "fq_codel"}),
        sj.Arm(name="mine", set={"links.up.qdisc": MarkLate}),
    ]
    compared = scenario("pfifo", arms=arms, replications=2)
    reported = []
    alone = sj.run(compared, jobs=1)
    together = sj.run(compared, jobs=2, progress=lambda done, total: reported.append((done, total)))
    assert reported[-1] == (4, 4)
    assert together.complete
    for table in TABLES:
        assert getattr(alone, table).equals(getattr(together, table)), table


def test_processes_use_the_chosen_backend_and_keep_to_its_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    twice = scenario(TailDrop, replications=2)
    with pytest.raises(sj.ScenarioError, match="on='x': unknown; expected"):
        sj.run(twice, jobs=2, on="x")
    asked: list[int] = []
    original = loky.get_reusable_executor

    def record(max_workers: int, **options: Any) -> Any:
        asked.append(max_workers)
        return original(max_workers=max_workers, **options)

    monkeypatch.setattr(loky, "get_reusable_executor", record)
    for limit in (None, 1):
        monkeypatch.setattr(_core, "backend_concurrency", lambda _name, limit=limit: limit)
        # The processes have the real registry: they refuse a name that this one accepts.
        with pytest.raises(sj.ScenarioError, match='unknown backend "x"'):
            execute(
                twice.checked,
                jobs=2,
                progress=None,
                backend="x",
                invocation=None,
                max_memory=None,
            )
        backend = _core.backend_names()[0]
        result = sj.run(twice, jobs=2, on=backend)
        assert result.provenance["backend"]["name"] == backend
    assert asked == [2, 2, 1, 1]


def test_a_timer_lets_a_queue_hold_packets_back() -> None:
    result = sj.run(scenario(Paced))
    sent = result.links.filter(link="up")["sent_packets"].sum()
    assert 550 <= sent <= 601  # 3 s at one per 5 ms


def test_the_queue_knows_its_link() -> None:
    class Link(TailDrop):
        def enqueue(self, now: float, packet: sj.Packet) -> None:
            assert (self.rate, self.mtu) == (10_000_000, 1514)
            assert packet.ecn in {"not-ect", "ect0", "ce"}
            assert 0 < packet.size <= self.mtu
            assert packet.dscp == 0
            assert packet.arrival == now
            super().enqueue(now, packet)

    sj.run(scenario(Link))


def test_a_classful_queue_takes_python_queues_as_leaves() -> None:
    inside = sj.Prio(leaf=[TailDrop, sj.CoDel(), sj.Pfifo(limit=10)])
    assert f"leaf {TailDrop.spec} / codel" in inside.spec
    alone = sj.Drr(classes=1, leaf=TailDrop)
    result = sj.run(scenario(alone))
    assert result.links.filter(link="up")["sent_packets"].sum() > 0


def test_an_exception_ends_the_run_with_the_traceback_of_the_queue() -> None:
    class Divides(TailDrop):
        def dequeue(self, now: float) -> sj.Packet | None:
            if now > 1:
                return 1 / 0
            return super().dequeue(now)

    with pytest.raises(sj.QueueError, match=r"Divides\.dequeue failed at 1\.\d+ s") as caught:
        sj.run(scenario(Divides))
    cause = caught.value.__cause__
    assert isinstance(cause, ZeroDivisionError)
    assert cause.__traceback__.tb_frame.f_code.co_name == "dequeue"


def test_an_exception_in_a_process_has_its_traceback_as_a_note() -> None:
    class Refuses(TailDrop):
        def enqueue(self, now: float, packet: sj.Packet) -> None:
            message = f"no packet of {packet.size} B"
            raise RuntimeError(message)

    with pytest.raises(sj.QueueError, match=r"Refuses\.enqueue failed") as caught:
        sj.run(scenario(Refuses, replications=2), jobs=2)
    assert re.search(r'\(link "up", arm "default", replication [01]\)', str(caught.value))
    cause = caught.value.__cause__
    assert isinstance(cause, RuntimeError)
    assert str(cause).startswith("RuntimeError: no packet of")
    assert "in enqueue" in cause.__notes__[0]


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_failure_names_link_arm_and_replication(jobs: int) -> None:
    class Stops(TailDrop):
        def enqueue(self, now: float, packet: sj.Packet) -> None:
            message = "no"
            raise RuntimeError(message)

    arms = [
        sj.Arm(name="good", set={"links.down.qdisc": TailDrop}),
        sj.Arm(name="bad", set={"links.down.qdisc": Stops}),
    ]
    place = r'\(link "down", arm "bad", replication 0\): RuntimeError: no$'
    with pytest.raises(sj.QueueError, match=place) as caught:
        sj.run(scenario("pfifo", arms=arms), jobs=jobs)
    assert caught.value.__cause__ is not None


class Unlucky(Paced):
    """Fails in the first call of `next_timer` after 1 s, which is not given the time."""

    late = False

    def enqueue(self, now: float, packet: sj.Packet) -> None:
        self.late = now > 1
        super().enqueue(now, packet)

    def next_timer(self) -> float | None:
        if self.late:
            message = "no timer"
            raise RuntimeError(message)
        return super().next_timer()


def test_a_failure_of_next_timer_has_the_simulated_time() -> None:
    with pytest.raises(sj.QueueError, match=r"Unlucky\.next_timer failed at 1\.\d+ s"):
        sj.run(scenario(Unlucky))


class Locked(TailDrop):
    lock = threading.Lock()


class Exits(TailDrop):
    def enqueue(self, now: float, packet: sj.Packet) -> None:
        os._exit(3)


def test_a_class_that_cannot_be_sent_to_a_process_is_named_with_its_attribute() -> None:
    twice = scenario(Locked, replications=2)
    sj.run(twice, jobs=1)
    message = (
        r"^Locked\.lock: cannot be sent to a worker process: cannot pickle .*lock.*; "
        r"create such objects in __init__, or run with jobs=1$"
    )
    with pytest.raises(sj.QueueError, match=message):
        sj.run(twice, jobs=2)


def test_a_process_that_ends_is_a_queue_error() -> None:
    with pytest.raises(sj.QueueError, match=r"^Exits: a worker process ended.*jobs=1"):
        sj.run(scenario(Exits, replications=2), jobs=2)
    assert sj.run(scenario(TailDrop, replications=2), jobs=2).complete


@pytest.mark.parametrize("queue", ["pfifo", TailDrop])
@pytest.mark.parametrize("jobs", [0, -1])
def test_jobs_are_checked_as_for_every_queue(queue: Any, jobs: int) -> None:
    with pytest.raises(sj.ScenarioError, match=f"^jobs={jobs}: expected 1 to 4096$"):
        sj.run(scenario(queue, replications=2), jobs=jobs)


@pytest.mark.parametrize(
    ("build", "hint"),
    [
        (lambda: scenario(TailDrop()), "pass the class itself: TailDrop"),  # type: ignore[arg-type]
        (lambda: scenario(sj.Cubic), r"the class Cubic; pass an object: Cubic\(\)"),  # type: ignore[arg-type]
        (lambda: sj.Drr(leaf=TailDrop()), "pass the class itself: TailDrop"),  # type: ignore[arg-type]
        (lambda: sj.testing.check_qdisc(TailDrop()), "^queue: .*pass the class itself: TailDrop"),  # type: ignore[arg-type]
        (lambda: sj.testing.check_qdisc(sj.Cubic), r"^queue: .*pass an object: Cubic\(\)"),  # type: ignore[arg-type]
        (lambda: sj.testing.check_qdisc(3), "^queue: expected a PythonQueue class, a queue object"),  # type: ignore[arg-type]
        (lambda: sj.testing.check_qdisc("pfifo", cases=-3), "^cases: -3 is out of range"),
        (lambda: sj.testing.check_qdisc("pfifo", seed=-1), "^seed: -1 is out of range"),
        (lambda: sj.testing.check_qdisc("pfifo", cases=1.5), "^cases: expected a whole number"),  # type: ignore[arg-type]
    ],
)
def test_a_class_and_an_object_are_not_confused_silently(
    build: Callable[[], object], hint: str
) -> None:
    with pytest.raises(sj.ScenarioError, match=hint):
        build()


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ("def enqueue(self, now, packet): pass", "not kept, returned or dropped"),
        ("def dequeue(self, now): return 7", "expected a packet or None, not int"),
        (
            "def enqueue(self, now, packet): packet.drop(); packet.drop()",
            "the packet has left the queue",
        ),
        (
            "def enqueue(self, now, packet): packet.drop('bored')",
            'unknown drop reason "bored"; expected aqm or overlimit',
        ),
        ("def __init__(self): self.missing", "has no attribute 'missing'"),
        (
            "next_timer = lambda self: 0.1\n    on_timer = lambda self, now: None",
            "next_timer returned a time that is not after now",
        ),
    ],
)
def test_misuse_is_named(
    tmp_path: Path, method: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"misuse_{abs(hash(method))}"
    (tmp_path / f"{name}.py").write_text(
        f"from queues.test_python_queue import TailDrop\n\n\nclass Wrong(TailDrop):\n    {method}\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    wrong = __import__(name).Wrong
    with pytest.raises(sj.QueueError, match=message):
        sj.run(scenario(wrong))


def test_a_class_without_a_method_is_refused_at_once() -> None:
    class Empty(sj.PythonQueue):
        pass

    with pytest.raises(sj.ScenarioError, match="Empty: missing method enqueue; a Python queue"):
        sj.Link(rate="1mbit", qdisc=Empty)


def test_the_contract_suite_accepts_queues_and_names_what_is_broken() -> None:
    class LastFirst(TailDrop):
        def dequeue(self, now: float) -> sj.Packet | None:
            return self.packets.pop()

    class Sleeps(TailDrop):
        def dequeue(self, now: float) -> sj.Packet | None:
            return None

    for queue in (TailDrop, MarkLate, Paced, sj.CoDel(), "fq_codel limit 20"):
        sj.testing.check_qdisc(queue, cases=20)
    with pytest.raises(AssertionError, match="a flow was reordered"):
        sj.testing.check_qdisc(LastFirst)
    with pytest.raises(AssertionError, match="packets wait, none was given"):
        sj.testing.check_qdisc(Sleeps)


def test_an_edited_class_is_another_queue_and_a_result_keeps_the_source(tmp_path: Path) -> None:
    class Shorter(TailDrop):
        limit = 10

    assert Shorter.spec != TailDrop.spec
    result = sj.run(scenario(Shorter))
    result.save(tmp_path / "result")
    kept = sj.Result.load(tmp_path / "result").provenance["external_queues"]
    assert [queue["name"] for queue in kept] == [Shorter.spec]
    assert "limit = 10" in kept[0]["source"]
    assert "class TailDrop" in kept[0]["source"]


def test_embedded_source_is_never_executed(tmp_path: Path) -> None:
    script = tmp_path / "write.py"
    script.write_text(
        "import sojourn as sj\n"
        "from collections import deque\n"
        "class Loud(sj.PythonQueue):\n"
        "    print('executed')\n"
        "    def __init__(self): self.packets = deque()\n"
        "    def enqueue(self, now, packet): self.packets.append(packet)\n"
        "    def dequeue(self, now): return self.packets.popleft()\n"
        "link = sj.Link(rate='10mbit', qdisc=Loud)\n"
        "scenario = sj.Scenario(links={'up': link,\n"
        "    'down': sj.Link(rate='10mbit', qdisc='pfifo')},\n"
        "    traffic=[sj.Ping(direction='up', interval='100ms')], rtt='10ms', duration='1s',\n"
        "    warmup='100ms')\n"
        "sj.run(scenario).save('result')\n"
    )
    written = _python(script, tmp_path)
    assert written.stdout == "executed\n"
    read = tmp_path / "read.py"
    read.write_text(
        "import sojourn as sj\n"
        "result = sj.Result.load('result')\n"
        "print(result.flows.height)\n"
        "try:\n"
        "    sj.run(result.scenario)\n"
        "except sj.SojournError as error:\n"
        "    print(error)\n"
    )
    lines = _python(read, tmp_path).stdout.splitlines()
    assert lines[0] == "1"
    assert "Loud" in lines[1]
    assert "is not loaded" in lines[1]


def _python(script: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, script], cwd=folder, capture_output=True, text=True, check=True
    )


ENDLESS = """
import os
import sys
import sojourn as sj

class Endless(sj.PythonQueue):
    def __init__(self):
        self.packets = []
    def enqueue(self, now, packet):
        self.packets.append(packet)
    def dequeue(self, now):
        # In one call: another worker does the same.
        os.write(1, b"in the loop\\n")
        while True:
            pass

link = sj.Link(rate="10mbit", qdisc="pfifo")
scenario = sj.Scenario(
    links={"up": link, "down": link}, traffic=[sj.Tcp(direction="up")],
    duration="3s", warmup="1s", rtt="20ms",
    arms=[
        sj.Arm(name="ends", set={}), sj.Arm(name="endless", set={"links.up.qdisc": Endless}),
    ],
)
if __name__ == "__main__":
    try:
        sj.run(
            scenario, jobs=int(sys.argv[1]),
            progress=lambda finished, total: os.write(1, b"one has finished\\n"),
        )
    except sj.Interrupted as interrupted:
        result = interrupted.result
        print(*result.flows["arm"].unique(), "complete:", result.complete)
"""


@contextmanager
def endless(tmp_path: Path, jobs: int) -> Iterator[subprocess.Popen[str]]:
    """Start two runs, and wait until one has finished and the queue of the other loops."""
    (tmp_path / "endless.py").write_text(ENDLESS, encoding="utf-8")
    process = subprocess.Popen(
        [sys.executable, "endless.py", str(jobs)],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        # A process group of its own, and SIGINT as in a terminal.
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    )
    try:
        assert process.stdout is not None
        lines = {process.stdout.readline() for _ in range(2)}
        assert lines == {"in the loop\n", "one has finished\n"}
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def alive(group: int) -> bool:
    """Whether a process of a group is alive."""
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, of, *_ = status.read_text().rpartition(")")[2].split()
            if int(of) == group and state != "Z":
                return True
    return False


@pytest.mark.parametrize("jobs", [1, 2])
def test_ctrl_c_ends_an_endless_queue_and_keeps_finished_runs(tmp_path: Path, jobs: int) -> None:
    with endless(tmp_path, jobs) as process:
        # As a terminal does: to all processes.
        os.killpg(process.pid, signal.SIGINT)
        output, _ = process.communicate(timeout=30)
        assert output.endswith("ends complete: False\n"), output
        deadline = time.monotonic() + 10
        while alive(process.pid):
            assert time.monotonic() < deadline
            time.sleep(0.1)


def test_workers_end_with_a_process_that_is_killed(tmp_path: Path) -> None:
    with endless(tmp_path, 2) as process:
        process.kill()
        process.wait()
        deadline = time.monotonic() + 20
        while alive(process.pid):
            assert time.monotonic() < deadline
            time.sleep(0.1)
