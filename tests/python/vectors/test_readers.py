"""The reader of test vectors in Python, and the files that it reads."""

import importlib.util
import json
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import jsonschema
import pytest

import sojourn as sj

ROOT = Path(__file__).parents[3]
VECTORS = ROOT / "tests" / "vectors"


def load(path: Path) -> ModuleType:
    """Import a file that is in no package."""
    specification = importlib.util.spec_from_file_location(path.stem, path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    # Dataclasses look their module up.
    sys.modules[path.stem] = module
    specification.loader.exec_module(module)
    return module


reader = load(VECTORS / "readers" / "vectors.py")
windows = load(VECTORS / "readers" / "windows.py")


@cache
def vector(name: str) -> dict[str, Any]:
    vector: dict[str, Any] = json.loads((VECTORS / f"{name}.json").read_text())
    return vector


NAMES = [path.stem for path in sorted(VECTORS.glob("*.json"))]
# The instances of cake_mq must be asked after each arrival, too: kernel_vectors.rs does.
EXACT = [name for name in NAMES if "events" in vector(name) and name != "cake_mq"]


class Ours:
    """A queue of Sojourn."""

    def __init__(self, vector: dict[str, Any]) -> None:
        rate = vector["rate_bps"]
        self.queue = sj.testing.DrivenQueue(
            f"{vector['qdisc']} profile linux", rate=rate and f"{rate}bit", mtu=vector["mtu"]
        )

    def enqueue(self, now: int, packet: Any) -> None:
        self.queue.enqueue(now, packet.number, size=packet.size, flow=packet.flow, tos=packet.tos)

    def dequeue(self, now: int) -> Any:
        left = self.queue.dequeue(now)
        return left and reader.Packet(left[0], 0, 0, left[1])


class Wrong(Ours):
    """Sends the packets that it should drop."""

    ahead = None

    def dequeue(self, now: int) -> Any:
        dropped = len(self.queue.drops)
        packet, self.ahead = self.ahead or super().dequeue(now), None
        drops = self.queue.drops[dropped:]
        if not drops:
            return packet
        self.ahead = packet
        return reader.Packet(drops[0], 0, 0, 0)


@pytest.mark.parametrize("name", EXACT)
def test_our_queues_do_what_the_kernel_did(name: str) -> None:
    assert reader.check(vector(name), Ours(vector(name))) is None


def test_a_codel_that_sends_what_it_should_drop_is_found_at_the_first_drop() -> None:
    codel = vector("codel")
    first = codel["drops"][0]
    at, expected = next(row for row in codel["events"] if len(row) == 2 and row[1] > first)
    difference = reader.check(codel, Wrong(codel))
    assert difference == f"at {at} ns: expected packet {expected}, got packet {first}"


def test_a_missing_mark_and_a_packet_too_many_are_differences() -> None:
    ecn = vector("codel_ecn")
    marked, *marks = ecn["marks"]
    difference = reader.check(ecn | {"marks": marks}, Ours(ecn))
    assert difference.endswith(f"expected packet {marked}, got packet {marked} with CE")
    codel = vector("codel")
    *events, (_, last) = codel["events"]
    difference = reader.check(codel | {"events": events}, Ours(codel))
    assert difference == f"at the end: expected no packet, got packet {last}"


@pytest.mark.parametrize(
    ("folder", "schema", "files"),
    [(".", "queue", 52), ("modules", "queue", 15), ("windows", "windows", 18)],
)
def test_the_files_have_the_format(folder: str, schema: str, files: int) -> None:
    text = (VECTORS / "schema" / f"{schema}.json").read_text()
    check = jsonschema.Draft202012Validator(json.loads(text))
    paths = sorted((VECTORS / folder).glob("*.json"))
    assert len(paths) == files
    for path in paths:
        check.validate(json.loads(path.read_text()))


def test_the_windows_are_those_of_the_logs() -> None:
    writer = load(VECTORS / "tools" / "windows.py")
    for name, arguments in writer.runs().items():
        text = (VECTORS / "windows" / f"{name}.json").read_text()
        assert text == writer.vector(name, arguments), name


CONNECTIONS = sorted(f"windows/{path.stem}" for path in (VECTORS / "windows").glob("*.json"))


@pytest.mark.parametrize("name", CONNECTIONS)
def test_windows_that_are_played_back_are_those_of_the_kernel(name: str) -> None:
    kernel = windows.windows(vector(name))
    assert len(kernel) > 1
    assert windows.check(vector(name), kernel) is None


def test_windows_that_are_one_segment_larger_are_found_at_the_first() -> None:
    one = vector("windows/one20")
    kernel = windows.windows(one)
    at, cwnd, ssthresh = kernel[20]
    wrong = [*kernel[:20], *(row._replace(cwnd=row.cwnd + 1) for row in kernel[20:])]
    with_threshold = f"with threshold {ssthresh or 0}"
    assert windows.check(one, wrong) == (
        f"at {at} us: expected window {cwnd} {with_threshold}, "
        f"got window {cwnd + 1} {with_threshold}"
    )
    assert windows.check(one, wrong, until=at - 1) is None
    assert windows.check(one, []).endswith("got window 0 with threshold 0")
