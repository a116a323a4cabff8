"""The progress bar: finished runs, time elapsed and time remaining."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

# Earlier, an estimate would be unreliable: elapsed seconds, and finished share.
FIRST_S = 1.0
FIRST_SHARE = 0.001
# Interval of the lines that are printed where there is no terminal.
LINE_S = 5.0


class RunProgress:
    """Progress of a number of runs.

    Parameters
    ----------
    total
        Number of runs.
    show
        Called with the finished share, a count such as ``"3/40"`` and the remaining time.
    clock
        Returns the time in seconds.
    """

    def __init__(
        self,
        total: int,
        show: Callable[[float, str, str], object],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._total = total
        self._show = show
        self._clock = clock
        self._started = clock()
        self._finished = 0
        self._simulated = 0.0

    def __call__(self, finished: int, total: int) -> None:
        """Record that `finished` of `total` runs have finished."""
        self._finished, self._total = finished, total
        self._update()

    def reached(self, share: float) -> None:
        """Record the share of the simulated time that is done, including unfinished runs."""
        self._simulated = share
        self._update()

    def _update(self) -> None:
        # Worker processes report a run only when it has finished.
        done = max(self._simulated, self._finished / max(self._total, 1))
        elapsed_s = self._clock() - self._started
        self._show(done, f"{self._finished}/{self._total}", remaining(done, elapsed_s))


def remaining(done: float, elapsed_s: float) -> str:
    """Estimate the remaining time from the elapsed time and the finished share.

    Examples
    --------
    >>> remaining(0.25, 60.0)
    'about 3 min left'
    >>> remaining(0.9, 90.0)
    'about 10 s left'
    >>> remaining(0.0, 5.0)
    ''
    """
    if elapsed_s < FIRST_S or done < FIRST_SHARE:
        return ""
    seconds = elapsed_s * (1.0 - done) / done
    for unit, length in (("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * length:
            return f"about {seconds / length:.0f} {unit} left"
    return f"about {seconds:.0f} s left"


@contextmanager
def progress_lines(total: int, what: str = "runs") -> Iterator[RunProgress]:
    """Show a progress bar on stderr if it is a terminal, else a line every few seconds.

    Parameters
    ----------
    total
        Number of runs.
    what
        What is run.
    """
    with progress_bar(total, what) as bar:
        if bar is not None:
            yield bar
            return
        last = time.monotonic()

        def show(_done: float, count: str, left: str) -> None:
            nonlocal last
            if time.monotonic() - last >= LINE_S:
                last = time.monotonic()
                print(f"{what}: {count}{f', {left}' if left else ''}", file=sys.stderr, flush=True)

        yield RunProgress(total, show)


@contextmanager
def progress_bar(total: int, what: str = "runs") -> Iterator[RunProgress | None]:
    """Show a progress bar on stderr if it is a terminal.

    Parameters
    ----------
    total
        Number of runs.
    what
        What is run.
    """
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[count]}"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(what, total=1.0, count=f"0/{total}", left="")

        def show(done: float, count: str, left: str) -> None:
            bar.update(task, completed=done, count=count, left=left)

        yield RunProgress(total, show)
