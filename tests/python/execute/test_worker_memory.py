"""The memory of runs in processes of their own is within the estimate."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.shell import environment

QUEUE = """
from collections import deque
import sojourn as sj

class Tail(sj.PythonQueue):
    def __init__(self):
        self.packets = deque()

    def enqueue(self, now, packet):
        if len(self.packets) < 50:
            self.packets.append(packet)
        else:
            packet.drop("overlimit")

    def dequeue(self, now):
        return self.packets.popleft() if self.packets else None
"""
# Prints the estimate and the largest sum of what the processes had at one moment, each page that
# several of them share being counted once.
MEASURE = """
import glob, json, os, threading
import sojourn as sj
from queue_of_test import Tail
from sojourn import _core

def family(pid):
    for path in glob.glob(f"/proc/{pid}/task/*/children"):
        with open(path) as stream:
            for child in stream.read().split():
                yield from family(child)
    yield pid

def taken():
    total = 0
    for pid in family(os.getpid()):
        with open(f"/proc/{pid}/smaps_rollup") as stream:
            lines = [line.split() for line in stream if line.startswith("Pss:")]
        total += sum(int(line[1]) for line in lines) * 1024
    return total

peak, ended = 0, threading.Event()

def watch():
    global peak
    while not ended.wait(0.05):
        try:
            peak = max(peak, taken())
        except OSError:
            pass  # A process has ended.

link = sj.Link(rate="10mbit", qdisc=Tail)
scenario = sj.Scenario(
    links={"up": link, "down": sj.Link(rate="10mbit", qdisc="pfifo")},
    traffic=[sj.Tcp(direction="up")], duration="3s", replications=16,
)
watcher = threading.Thread(target=watch)
watcher.start()
result = sj.run(scenario, jobs=8)
result.summary(), result.validity
ended.set()
watcher.join()
estimate = json.loads(_core.estimate(scenario.checked, jobs=8))
print(json.dumps([peak, estimate["peak_memory_bytes"]]))
"""


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="no /proc")
def test_the_estimate_covers_the_processes_of_python_queues(tmp_path: Path) -> None:
    (tmp_path / "queue_of_test.py").write_text(QUEUE, encoding="utf-8")
    path = os.pathsep.join(filter(None, [str(tmp_path), environment().get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, "-c", MEASURE],
        env=environment() | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    taken, estimated = json.loads(done.stdout)
    # A page that processes outside share, such as other tests, counts in part.
    assert taken <= estimated <= 4 * taken
