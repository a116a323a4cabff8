"""Progress of long work: finished runs, rate, remaining time, and the current arm or point."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console

from sojourn import _core
from sojourn.deferred import Deferred
from sojourn.execute.executor import jobs_at_once
from sojourn.result import budget
from sojourn.scenario import Scenario

# Needed on terminals only.
_BARS = Deferred("rich.progress")
# Elapsed seconds and finished share from which the rate gives a reliable estimate.
FIRST_S = 1.0
FIRST_SHARE = 0.001
# Interval of the lines that are printed where there is no terminal, and of updates on a terminal
# while no run finishes.
LINE_S = 5.0
TICK_S = 1.0
_HOUR_S = 3600.0
_MINUTE_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Runs to execute, as far as they are known before they start."""

    runs: int
    expected_s: float | None = None
    share: Callable[[int], float] | None = None
    current: Callable[[int], str] | None = None


def work_of(scenario: Scenario, *, jobs: int | None, backend: str | None = None) -> Work:
    """Describe the runs of a scenario."""
    checked = scenario.checked
    arms = checked.arms
    found = budget.estimate(checked, jobs=jobs, max_memory=None, backend=backend)
    expected_s = found["real_s"]
    if expected_s is None:
        expected_s = found["cpu_s"] / min(jobs_at_once(jobs, backend), scenario.runs)

    def current(finished: int) -> str:
        # Runs are executed replication by replication.
        return "" if len(arms) == 1 else arms[finished % len(arms)]

    return Work(runs=scenario.runs, expected_s=expected_s, current=current)


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """The progress at one time."""

    share: float
    count: str
    left: str = ""
    rate: str = ""
    current: str = ""

    @property
    def line(self) -> str:
        """All of it on one line."""
        return ", ".join(filter(None, (self.count, self.left, self.rate, self.current)))


class RunProgress:
    """Progress of a number of runs."""

    def __init__(
        self,
        work: Work,
        show: Callable[[Status], object],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._work = work
        self._show = show
        self._clock = clock
        self._started = clock()
        self._total = work.runs
        self._finished = 0
        self._stored = 0
        self._simulated = 0.0

    def __call__(self, finished: int, total: int) -> None:
        """Record that `finished` of `total` runs have finished."""
        self._finished, self._total = finished, total
        self.tick()

    def reached(self, share: float) -> None:
        """Record the share of the simulated time that is done, including unfinished runs."""
        self._simulated = share
        self.tick()

    def stored(self, runs: int) -> None:
        """Record how many of the finished runs were stored, and therefore took no time."""
        self._stored = runs

    def tick(self) -> None:
        """Show the status at this time."""
        # Worker processes report a run only when it has finished.
        done = max(self._simulated, self._share(self._finished))
        elapsed_s = self._clock() - self._started
        status = Status(
            share=done,
            count=f"{self._finished}/{self._total}",
            left=self._left(done, elapsed_s),
            rate=speed(self._finished - self._stored, elapsed_s),
            current=self._current(),
        )
        self._show(status)

    def _left(self, done: float, elapsed_s: float) -> str:
        before = self._share(self._stored)
        share = (done - before) / (1.0 - before) if before < 1.0 else 1.0
        return remaining(share, elapsed_s, self._expected_s(before))

    def _expected_s(self, stored: float) -> float | None:
        expected_s = self._work.expected_s
        return None if expected_s is None else expected_s * (1.0 - stored)

    def _share(self, finished: int) -> float:
        if self._work.share is not None:
            return self._work.share(finished)
        return finished / max(self._total, 1)

    def _current(self) -> str:
        if self._work.current is None or self._finished >= self._total:
            return ""
        return self._work.current(self._finished)


def remaining(done: float, elapsed_s: float, expected_s: float | None = None) -> str:
    """Estimate the remaining time from the elapsed time and the finished share.

    Examples
    --------
    >>> remaining(0.25, 60.0)
    'about 3 min left'
    >>> remaining(0.9, 90.0)
    'about 10 s left'
    >>> remaining(0.0, 5.0, 65.0)
    'about 60 s left'
    >>> remaining(0.0, 5.0)
    ''
    """
    if done >= 1.0:
        return ""
    if elapsed_s >= FIRST_S and done >= FIRST_SHARE:
        seconds = elapsed_s * (1.0 - done) / done
    elif expected_s is not None and expected_s > elapsed_s:
        seconds = expected_s - elapsed_s
    else:
        return ""
    for unit, length in (("h", _HOUR_S), ("min", _MINUTE_S)):
        if seconds >= 2 * length:
            return f"about {seconds / length:.0f} {unit} left"
    return f"about {seconds:.0f} s left"


def speed(runs: int, elapsed_s: float) -> str:
    """Write how many runs finish per second, minute or hour.

    Examples
    --------
    >>> speed(30, 10.0), speed(3, 60.0), speed(0, 5.0)
    ('3 runs/s', '3 runs/min', '')
    """
    if runs <= 0 or elapsed_s < FIRST_S:
        return ""
    for unit, length in (("s", 1.0), ("min", _MINUTE_S), ("h", _HOUR_S)):
        rate = runs / elapsed_s * length
        if rate >= 1.0 or unit == "h":
            break
    return f"{rate:.2g} runs/{unit}" if rate < 10 else f"{rate:.0f} runs/{unit}"  # noqa: PLR2004


@contextmanager
def progress_bar(work: Work, what: str = "runs") -> Iterator[RunProgress]:
    """Show a progress bar on stderr if it is a terminal, else a line every few seconds."""
    console = Console(stderr=True)
    shown = _bar(console, work, what) if console.is_terminal else _lines(work, what)
    with shown as progress:
        ended = threading.Event()

        def tick() -> None:
            # A long run reports nothing until it ends.
            while not ended.wait(TICK_S):
                progress.tick()

        ticker = threading.Thread(target=tick, name="progress", daemon=True)
        ticker.start()
        try:
            yield progress
        finally:
            ended.set()
            ticker.join()


@contextmanager
def _lines(work: Work, what: str) -> Iterator[RunProgress]:
    last = time.monotonic()
    lock = threading.Lock()

    def show(status: Status) -> None:
        nonlocal last
        with lock:
            if time.monotonic() - last < LINE_S:
                return
            last = time.monotonic()
        print(_core.printable(f"{what}: {status.line}"), file=sys.stderr, flush=True)

    yield RunProgress(work, show)


@contextmanager
def _bar(console: Console, work: Work, what: str) -> Iterator[RunProgress]:
    columns = (
        _BARS.TextColumn("{task.description}"),
        _BARS.BarColumn(),
        _BARS.TextColumn("{task.fields[count]}"),
        _BARS.TimeElapsedColumn(),
        _BARS.TextColumn("{task.fields[left]}", markup=False),
        _BARS.TextColumn("{task.fields[rate]}", markup=False),
        _BARS.TextColumn("{task.fields[current]}", markup=False),
    )
    with _BARS.Progress(*columns, console=console, transient=True) as bar:
        first = Status(share=0.0, count=f"0/{work.runs}")
        fields = {name: getattr(first, name) for name in ("count", "left", "rate", "current")}
        task = bar.add_task(what, total=1.0, **fields)

        def show(status: Status) -> None:
            bar.update(
                task,
                completed=status.share,
                count=status.count,
                left=status.left,
                rate=status.rate,
                current=_core.printable(status.current),
            )

        progress = RunProgress(work, show)
        progress.tick()
        yield progress
