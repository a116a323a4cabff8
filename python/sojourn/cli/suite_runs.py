"""The runs of a test suite: stored until all reports are written, so that they can continue."""

from pathlib import Path

from sojourn import _core
from sojourn.cli import continued, process
from sojourn.cli.process import say
from sojourn.result import Result
from sojourn.scenario import Scenario


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
