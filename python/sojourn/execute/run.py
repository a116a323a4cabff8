"""Run scenarios on threads or processes; store finished runs and reuse those that are stored."""

import warnings
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

from sojourn import _core
from sojourn.arguments import Argument, Plan, takes
from sojourn.arguments.common import (
    Backend,
    Fresh,
    Jobs,
    MaxMemory,
    Pcap,
    Progress,
    Replications,
    Seed,
)
from sojourn.execute import processes, runs
from sojourn.result import budget, captures
from sojourn.result.result import Result
from sojourn.scenario import Scenario


class Interrupted(KeyboardInterrupt):
    """Ctrl-C ended :func:`sojourn.run` before all runs had finished.

    Parameters
    ----------
    result
        The finished runs: a result that is not complete.
    """

    def __init__(self, result: Result) -> None:
        super().__init__("interrupted before all runs had finished")
        self.result = result


class NotCapturedError(captures.NotWrittenError):
    """The packets of a run could not be written to their file; the run itself has finished."""

    def __init__(self, message: str, result: Result) -> None:
        super().__init__(message)
        self.result = result


@dataclass(frozen=True)
class RunPlan(Plan):
    """The arguments of an execution of a scenario."""

    scenario: Annotated[Scenario, Argument(help="The scenario.", option="FILE")]
    _: KW_ONLY
    replications: Replications = None
    seed: Seed = None
    jobs: Jobs = None
    progress: Progress = None
    on: Backend = None
    store: Annotated[
        str | Path | None,
        Argument(
            help="Directory in which each run is stored when it finishes. The runs that an "
            "interrupted execution of the same scenario and seed has stored are not repeated.",
            more="By default, runs are not stored. :meth:`Result.save` removes the stored runs.",
            option="",
        ),
    ] = None
    max_memory: MaxMemory = None
    fresh: Fresh = False
    pcap: Pcap = None
    force: Annotated[
        bool,
        Argument(
            help="Whether {pcap} may replace a capture.",
            more="Other files are never replaced.",
            option="",
        ),
    ] = False

    def __post_init__(self) -> None:
        """Check each argument; those of the scenario become part of it."""
        super().__post_init__()
        if self.replications is not None or self.seed is not None:
            changed = self.scenario.replace(replications=self.replications, seed=self.seed)
            object.__setattr__(self, "scenario", changed)


@takes(RunPlan)
def run(plan: RunPlan) -> Result:
    """Run every arm and replication of a scenario.

    A run depends only on the scenario, its seed and the version of Sojourn; `jobs` affects only the
    wall-clock time. The GIL is released during the runs. Scenarios with queues written in Python
    run on processes instead of threads if there is more than one run.

    Returns
    -------
    Result
        The result, with all runs.

    Raises
    ------
    Interrupted
        Ctrl-C ended the runs; the exception, a ``KeyboardInterrupt``, has the finished runs in its
        attribute ``result``.
    ResultError
        The store cannot be read or written, or `pcap` cannot be written; if the run has finished,
        the exception has its result in its attribute ``result``.
    ScenarioError
        There are several runs and `pcap` is set. The backend is unknown or does not support the
        scenario, an argument is out of range, or the runs may need more than `max_memory`; the
        message names the key that needs the most, or the run that was stopped.
    QueueError
        A queue written in Python failed (the cause has its traceback), or its class cannot be
        sent to another process.

    Examples
    --------
    >>> from sojourn import Link, Ping, Scenario, Tcp
    >>> result = run(Scenario(
    ...     links={
    ...         "up": Link(rate="10mbit", qdisc="codel"),
    ...         "down": Link(rate="10mbit", qdisc="pfifo"),
    ...     },
    ...     traffic=[Tcp(direction="up"), Ping(direction="up", interval="100ms")],
    ...     rtt="50ms",
    ...     duration="5s",
    ...     warmup="1s",
    ... ))
    >>> result.complete
    True
    """
    checked = plan.scenario.checked
    budget.check(checked, jobs=plan.jobs, max_memory=plan.max_memory)
    if plan.pcap is not None:
        captures.check(checked, plan.pcap, backend=plan.on, force=plan.force)
    run_all = partial(
        execute,
        checked,
        jobs=plan.jobs,
        progress=plan.progress,
        backend=plan.on,
        max_memory=plan.max_memory,
        pcap=plan.pcap,
        force=plan.force,
    )
    if plan.store is None:
        return Result(run_all(invocation=None))
    _core.check_backend(checked, plan.on)
    # A stored run has no packets.
    resume = not plan.fresh and plan.pcap is None
    invocation = runs.begin(_core.RunStore(plan.store), checked, backend=plan.on, resume=resume)
    outcome = run_all(invocation=invocation)
    if invocation.failure is not None:
        warnings.warn(f"not all finished runs could be stored: {invocation.failure}", stacklevel=3)
    return Result(outcome, invocation)


def execute(
    checked: _core.Scenario,
    *,
    jobs: int | None,
    progress: Callable[[int, int], object] | None,
    backend: str | None,
    invocation: _core.Invocation | None,
    max_memory: str | None,
    pcap: str | Path | None = None,
    force: bool = False,
) -> _core.Outcome:
    """Run a scenario on threads or processes."""
    queues = processes.checked_queues(checked)
    on_processes = queues and jobs != 1 and checked.replications * len(checked.arms) > 1
    outcome = None
    try:
        # One run is captured, which needs no processes.
        with budget.enforced(max_memory), captures.capturing(pcap, force=force) as capture:
            run_all = (
                partial(processes.run, queues=queues)
                if on_processes
                else partial(_core.run, capture=capture)
            )
            outcome = run_all(
                checked, jobs=jobs, progress=progress, backend=backend, invocation=invocation
            )
            _check_complete(outcome)
    except captures.NotWrittenError as error:
        if invocation is not None:
            invocation.close()
        if outcome is None:
            raise
        raise NotCapturedError(str(error), Result(outcome)) from None
    except BaseException:
        if invocation is not None:
            invocation.close()
        raise
    return outcome


def _check_complete(outcome: _core.Outcome) -> None:
    """Raise an exception with the finished runs if Ctrl-C ended the others."""
    if not outcome.complete:
        raise Interrupted(Result(outcome))
