"""Execute runs of carriers, and compute their metrics on the same threads or workers."""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from sojourn import _core
from sojourn.result import processes, runs
from sojourn.sweeps.carriers import Carrier

# A carrier and numbers of its runs.
Work = tuple[Carrier, Sequence[int]]
# The number of a run, counted arm by arm, and its metrics: what `Meter.measure` returns.
Row = tuple[int, bytes]


class Executor(Protocol):
    """Executes runs."""

    def prepare(self, work: Iterable[Work], *, once: bool) -> None:
        """Receive the runs that will be requested, so that they can start early."""
        ...

    def end(self) -> None:
        """Stop the runs that were prepared and not requested, and release all carriers."""
        ...

    def execute(self, carrier: Carrier, numbers: Sequence[int]) -> Iterator[Sequence[Row]]:
        """Execute runs of a carrier."""
        ...


@dataclass(slots=True, kw_only=True)
class LocalExecutor:
    """Executes runs on threads, or on processes if queues are written in Python.

    When the last run of a carrier has finished, the threads start the next carrier while the
    caller stores the rows of the finished one.
    """

    jobs: int | None = None
    backend: str | None = None
    # The next carrier, and those after it.
    _next: Work | None = None
    _work: Iterator[Work] = field(default_factory=lambda: iter(()))
    # The started carrier, the numbers of its runs, and these runs.
    _started: tuple[Carrier, Sequence[int], _core.Measurements] | None = None

    def prepare(self, work: Iterable[Work], *, once: bool) -> None:
        """Start the runs of the first carrier; see :meth:`Executor.prepare`."""
        self.end()
        # Further runs of a carrier would run at the same time as the next one. The runs of other
        # backends take place in real time and must not be disturbed.
        if once and _core.backend_concurrency(self.backend) is None:
            self._work = iter(work)
            self._start_next()

    def end(self) -> None:
        """Stop the started runs; see :meth:`Executor.end`."""
        self._next, self._work = None, iter(())
        if self._started is not None:
            self._started[2].stop()
            self._started = None

    def execute(self, carrier: Carrier, numbers: Sequence[int]) -> Iterator[Sequence[Row]]:
        """Execute runs of a carrier; see :meth:`Executor.execute`."""
        started: set[int] = set()
        running = None
        if self._started is not None and self._started[0] is carrier:
            _, early, running = self._started
            self._started = None
            started = set(early)
        # Stored runs that turned out to be damaged were not started.
        rest = [number for number in numbers if number not in started]
        if running is not None:
            yield from self._rows(running, len(started), last=not rest)
        queues = processes.checked_queues(carrier.scenario) if rest else None
        if queues and self.jobs != 1 and len(rest) > 1:
            for row in processes.executed(
                carrier.scenario,
                rest,
                queues=queues,
                jobs=self.jobs,
                backend=self.backend,
                metrics=True,
            ):
                yield [row]
            self._start_next()
        elif rest:
            yield from self._rows(self._running(carrier, rest), len(rest), last=True)
        elif running is None:
            self._start_next()

    def _rows(
        self, running: _core.Measurements, count: int, *, last: bool
    ) -> Iterator[Sequence[Row]]:
        """Yield the rows of `count` started runs; if they are the last ones, start the next."""
        try:
            # While the threads are busy.
            self._fetch_next()
            for rows in running:
                count -= len(rows)
                if last and count == 0:
                    try:
                        self._start_next()
                    except BaseException:
                        yield rows
                        raise
                yield rows
        except (KeyboardInterrupt, _core.SojournError):
            yield running.stop()
            raise
        finally:
            running.stop()

    def _start_next(self) -> None:
        """Start the runs of the next carrier, unless they need processes."""
        self._fetch_next()
        if self._next is not None:
            (carrier, numbers), self._next = self._next, None
            if numbers and not processes.checked_queues(carrier.scenario):
                self._started = carrier, numbers, self._running(carrier, numbers)

    def _fetch_next(self) -> None:
        """Look up which runs of the next carrier are stored."""
        if self._next is None:
            self._next = next(self._work, None)

    def _running(self, carrier: Carrier, numbers: Sequence[int]) -> _core.Measurements:
        return runs.meter(carrier.scenario, self.backend).start(list(numbers), jobs=self.jobs)


def jobs_at_once(jobs: int | None, backend: str | None) -> int:
    """Return how many runs are executed at once."""
    if jobs is not None:
        _core.check_jobs(jobs)
    allowed = _core.backend_concurrency(backend)
    affinity = getattr(os, "sched_getaffinity", None)
    wanted = jobs or (os.cpu_count() or 1 if affinity is None else len(affinity(0)))
    return wanted if allowed is None else min(wanted, allowed)
