"""Execute runs of carriers, and compute their metrics on the same threads or workers."""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from sojourn import _core
from sojourn.result import processes, runs
from sojourn.sweeps.carriers import Carrier

# The number of a run, counted arm by arm, and its metrics: what `Meter.measure` returns.
Row = tuple[int, bytes]


class Executor(Protocol):
    """Executes runs."""

    def prepare(self, work: Iterable[tuple[Carrier, Sequence[int]]]) -> None:
        """Receive the runs that will be requested, so that they can start early.

        Parameters
        ----------
        work
            The carriers with the numbers of their first runs that are not stored; computed during
            iteration.
        """
        ...

    def execute(self, carrier: Carrier, numbers: Sequence[int]) -> Iterator[Sequence[Row]]:
        """Execute runs of a carrier.

        Parameters
        ----------
        carrier
            The carrier.
        numbers
            The numbers of the runs, which start in this order.

        Yields
        ------
        sequence of Row
            The rows of the runs that have finished since the last yield, at most about ten times
            per second, in any order; may be empty. Closing the iterator ends the runs.

        Raises
        ------
        QueueError
            A queue written in Python failed; the rows of finished runs are yielded first.
        KeyboardInterrupt
            Ctrl-C; the rows of finished runs are yielded first.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalExecutor:
    """Executes runs on threads, or on processes if queues are written in Python.

    Parameters
    ----------
    jobs
        Number of threads or processes; by default one per processor.
    backend
        Name of the backend; by default the first.
    """

    jobs: int | None = None
    backend: str | None = None

    def prepare(self, work: Iterable[tuple[Carrier, Sequence[int]]]) -> None:
        """Do nothing: the runs of a carrier keep all threads busy."""

    def execute(self, carrier: Carrier, numbers: Sequence[int]) -> Iterator[Sequence[Row]]:
        """Execute runs of a carrier; see :meth:`Executor.execute`."""
        if not numbers:
            return
        queues = processes.checked_queues(carrier.scenario)
        if queues and self.jobs != 1 and len(numbers) > 1:
            for row in processes.executed(
                carrier.scenario,
                numbers,
                queues=queues,
                jobs=self.jobs,
                backend=self.backend,
                metrics=True,
            ):
                yield [row]
            return
        running = runs.meter(carrier.scenario, self.backend).start(numbers, jobs=self.jobs)
        try:
            yield from running
        except (KeyboardInterrupt, _core.SojournError):
            yield running.stop()
            raise
        finally:
            running.stop()


def jobs_at_once(jobs: int | None, backend: str | None) -> int:
    """Return how many runs are executed at once."""
    if jobs is not None:
        _core.check_jobs(jobs)
    allowed = _core.backend_concurrency(backend)
    affinity = getattr(os, "sched_getaffinity", None)
    wanted = jobs or (os.cpu_count() or 1 if affinity is None else len(affinity(0)))
    return wanted if allowed is None else min(wanted, allowed)
