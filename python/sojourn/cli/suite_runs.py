"""The runs of a test suite: stored until all reports are written, so that they can continue."""

import json as js
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol, TypeVar

import polars as pl

from sojourn import _core
from sojourn.cli import continued, process
from sojourn.cli.expecting import FAILED
from sojourn.cli.process import say, tolerated
from sojourn.cli.progress import Work, progress_bar
from sojourn.result import Result
from sojourn.scenario import Scenario


class Reported(Protocol):
    """The report of a suite."""

    @property
    def verdicts(self) -> pl.DataFrame:
        """Its verdicts, in the column of this name."""

    def save(self, folder: Path) -> Path:
        """Write it into a directory."""


Report = TypeVar("Report", bound=Reported)


class RunsInterruptedError(Exception):
    """The user interrupted the runs; finished runs are stored."""


class SuiteRuns:
    """Runs scenarios, and keeps finished runs in the run store until all reports are written."""

    def __init__(self, total: int, *, jobs: int | None, fresh: bool) -> None:
        self.progress: object | None = None
        self.done = 0
        self._total = total
        self._jobs = jobs
        self._fresh = fresh
        self._invocations: list[_core.Invocation] = []

    def __call__(self, scenario: Scenario) -> Result:
        """Run a scenario, or read its stored runs."""

        def advanced(finished: int, _total: int) -> None:
            if callable(self.progress):
                self.progress(self.done + finished, self._total)

        execution = continued.run(
            scenario,
            jobs=self._jobs,
            progress=advanced,
            fresh=self._fresh,
            max_memory=None,
            announce=lambda _finished, _scenario: None,
        )
        self.done += execution.result.finished
        if execution.invocation is not None:
            execution.invocation.close()
            self._invocations.append(execution.invocation)
        if not execution.result.complete:
            raise RunsInterruptedError
        return execution.result

    def discard(self) -> None:
        """Remove the stored runs: all reports are written."""
        for invocation in self._invocations:
            invocation.discard()

    def interrupted(self, reports: int, out: Path) -> int:
        """Say what is stored and how to continue; return the exit code."""
        written = f"; {reports} reports are in {out}" if reports else ""
        again = continued.continuation()
        say(f"interrupted: {self.done} runs are stored{written}; to continue: {again}")
        return process.exit_code()

    def execute(
        self,
        reports: Iterator[Report],
        show: Callable[..., None],
        document: Callable[[Report], object],
        out: Path,
        *,
        json: bool,
        everything: bool,
        check: bool,
    ) -> int:
        """Run everything, write the reports and print the answer; return the exit code."""
        written: list[tuple[Report, Path]] = []
        interrupted = False
        with progress_bar(Work(runs=self._total)) as self.progress:
            try:
                for report in reports:
                    written.append((report, report.save(out)))  # noqa: PERF401 - kept if interrupted
            except RunsInterruptedError:
                interrupted = True
        # After the progress bar, which would share a line with the first text.
        for report, file in written:
            with tolerated():
                if not json:
                    show(report, everything=everything)
            say(f"wrote report to {file}")
        if interrupted:
            return self.interrupted(len(written), out)
        self.discard()
        with tolerated():
            if json:
                print(js.dumps([document(report) for report, _ in written], indent=2))
        verdicts = {verdict for report, _ in written for verdict in report.verdicts["verdict"]}
        return FAILED if check and verdicts & {"fail", "undecided"} else 0
