"""Execute runs on this machine: on threads, or on processes for queues written in Python."""

import itertools
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass

from sojourn import _core
from sojourn.execute import processes
from sojourn.execute.processes import ProcessExecutor
from sojourn.execute.runs import Row, Run, meter


@dataclass(slots=True, kw_only=True)
class ThreadExecutor:
    """Executes runs on threads.

    When the last run of a part has finished, the threads start the next part while the caller
    stores the rows.
    """

    jobs: int | None = None
    backend: str | None = None

    def execute(self, parts: Iterable[Sequence[Run]]) -> Generator[Sequence[Row], None, None]:
        """Execute runs; see :meth:`Executor.execute`."""
        # The runs of other backends take place in real time and must not be disturbed.
        overlaps = _core.backend_concurrency(self.backend) is None
        waiting = iter(parts)
        part = next(waiting, None)
        running = None
        try:
            while part is not None:
                started, running = running or self._start(part), None
                left = len(part)
                following = None
                try:
                    # While the threads are busy: this looks up which runs are stored.
                    following = next(waiting, None) if overlaps else None
                    runs = {run.number: run for run in part}
                    for rows in started:
                        left -= len(rows)
                        try:
                            if left == 0 and following is not None:
                                running = self._start(following)
                        finally:
                            yield [(runs[number], row) for number, row in rows]
                except (KeyboardInterrupt, _core.SojournError):
                    yield [(runs[number], row) for number, row in started.stop()]
                    raise
                finally:
                    started.stop()
                part = following if overlaps else next(waiting, None)
        finally:
            if running is not None:
                running.stop()

    def _start(self, part: Sequence[Run]) -> _core.Measurements:
        of = meter(part[0].scenario, self.backend)
        return of.start([run.number for run in part], jobs=self.jobs)


@dataclass(slots=True, kw_only=True)
class LocalExecutor:
    """Executes runs on threads, or on processes if queues are written in Python."""

    jobs: int | None = None
    backend: str | None = None

    def execute(self, parts: Iterable[Sequence[Run]]) -> Generator[Sequence[Row], None, None]:
        """Execute runs; see :meth:`Executor.execute`."""
        for on_processes, group in itertools.groupby(parts, self._needs_processes):
            kind = ProcessExecutor if on_processes else ThreadExecutor
            yield from kind(jobs=self.jobs, backend=self.backend).execute(group)

    def _needs_processes(self, part: Sequence[Run]) -> bool:
        several = self.jobs != 1 and len(part) > 1
        return several and bool(processes.checked_queues(part[0].scenario))
