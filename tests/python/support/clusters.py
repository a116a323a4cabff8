"""A scheduler of Dask Distributed and its workers, each a process."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.shell import environment

_STARTED_S = 60.0


class Workers:
    """A scheduler with workers of one thread.

    Attributes
    ----------
    address
        The scheduler, as in ``--on``.
    scheduler, workers
        The processes.
    """

    def __init__(self, folder: Path, count: int, variables: dict[str, str]) -> None:
        self._place = folder / "scheduler.json"
        self._environment = {**environment(), **variables, "PYTHONWARNINGS": "default"}
        self._log = (folder / "log").open("w")
        self.scheduler = self._start("scheduler", "--host", "127.0.0.1", "--port", "0")
        # Workers wait for the file.
        self.workers = [
            self._start("worker", "--nthreads", "1", "--no-nanny", "--memory-limit", "0")
            for _ in range(count)
        ]
        deadline = time.monotonic() + _STARTED_S
        while not self._place.exists():
            assert time.monotonic() < deadline, (folder / "log").read_text()
            time.sleep(0.05)
        address = json.loads(self._place.read_text(encoding="utf-8"))["address"]
        self.address = address.replace("tcp", "dask")

    def close(self) -> None:
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()
        self._log.close()

    def _start(self, kind: str, *options: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [
                *(sys.executable, "-m", "distributed.cli.dask_" + kind),
                *("--scheduler-file", self._place, "--no-dashboard", *options),
            ],
            cwd=self._place.parent,
            env=self._environment,
            stdout=self._log,
            stderr=self._log,
        )


@contextmanager
def workers(folder: Path, count: int, variables: dict[str, str]) -> Iterator[Workers]:
    """Start a scheduler and workers with these variables in their environment."""
    started = Workers(folder, count, {**variables, "PYTHONPATH": os.environ.get("PYTHONPATH", "")})
    try:
        yield started
    finally:
        started.close()
