"""What processes of a live run leave behind: found by a variable of their environment."""

import contextlib
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

_VARIABLE = "SOJOURN_TEST_RUN"
_PROC = Path("/proc")
# The kernel removes namespaces some time after their last process.
PATIENCE_S = 10.0


class Traces:
    """The processes that were started with :attr:`environment`, and their network namespaces.

    Other live runs on the machine, and what is there before, are not counted.
    """

    def __init__(self) -> None:
        self._tag = f"{_VARIABLE}={uuid.uuid4()}"
        self.environment = dict([self._tag.split("=")])
        self._own = _links(_PROC / "self")
        self._seen: set[str] = set()
        self._devices = _devices()
        self._mounts = _mounts()

    def processes(self) -> list[int]:
        """The processes that exist now, without those that only wait to be reaped."""
        found = []
        for pid in _pids():
            with contextlib.suppress(OSError):
                text = (_PROC / str(pid) / "environ").read_bytes()
                if self._tag.encode() in text.split(b"\0"):
                    found.append(pid)
        return found

    def look(self) -> list[int]:
        """Note the network namespaces that exist now; return the processes."""
        processes = self.processes()
        for pid in processes:
            self._seen |= _links(_PROC / str(pid)) - self._own
        return processes

    @property
    def namespaces(self) -> int:
        """Network namespaces that were noted."""
        return len(self._seen)

    def left(self, *expected: int) -> list[str]:
        """What is left after :data:`PATIENCE_S`, without the processes that are expected."""
        deadline = time.monotonic() + PATIENCE_S
        while (found := self._found(set(expected))) and time.monotonic() < deadline:
            time.sleep(0.02)
        return found

    def _found(self, expected: set[int]) -> list[str]:
        found = [f"process {pid}: {_name(pid)}" for pid in set(self.processes()) - expected]
        for pid in _pids():
            found += [f"{link} of process {pid}" for link in _links(_PROC / str(pid)) & self._seen]
        found += [f"device {name}" for name in _devices() - self._devices]
        return found + [f"mount {line}" for line in _mounts() - self._mounts]


def _pids() -> Iterator[int]:
    return (int(entry.name) for entry in _PROC.iterdir() if entry.name.isdecimal())


def _links(process: Path) -> set[str]:
    """The network namespaces that a process is in, or has open."""
    found = set()
    places: list[Path] = []
    for pattern in ("task/*/ns/net", "fd/*"):
        # The process may end meanwhile.
        with contextlib.suppress(OSError):
            places += process.glob(pattern)
    for place in places:
        with contextlib.suppress(OSError):
            link = str(place.readlink())
            if link.startswith("net:["):
                found.add(link)
    return found


def _name(pid: int) -> str:
    try:
        words = (_PROC / str(pid) / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return "ended"
    return b" ".join(words).decode(errors="replace")[:80]


def _devices() -> set[str]:
    return {path.name for path in Path("/sys/class/net").iterdir()}


def _mounts() -> set[str]:
    lines = (_PROC / "self" / "mountinfo").read_text(encoding="utf-8").splitlines()
    # Runs name no namespaces; the machines of other tests are named ones.
    return {line for line in lines if " /run/netns" not in line}


def children(pid: int) -> list[int]:
    """The children of all threads of a process."""
    found: list[int] = []
    for file in (_PROC / str(pid)).glob("task/*/children"):
        with contextlib.suppress(OSError):
            found += map(int, file.read_text(encoding="ascii").split())
    return found
