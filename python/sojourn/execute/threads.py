"""Execute runs on the threads of the core."""

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass

from sojourn import _core
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
