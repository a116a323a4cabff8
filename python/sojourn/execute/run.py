"""Run scenarios on threads or processes; store finished runs and resume interrupted executions."""

import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

from sojourn import _core
from sojourn.document import needs
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


def run(
    scenario: Scenario,
    *,
    seed: int | None = None,
    jobs: int | None = None,
    progress: Callable[[int, int], object] | None = None,
    backend: str | None = None,
    store: str | Path | None = None,
    resume: bool = False,
    max_memory: str | None = None,
    pcap: str | Path | None = None,
    force: bool = False,
) -> Result:
    """Run every arm and replication of a scenario.

    A run depends only on the scenario, its seed and the version of Sojourn; `jobs` affects only the
    wall-clock time. The GIL is released during the runs. Scenarios with queues written in Python
    run on processes instead of threads if there is more than one run.

    Parameters
    ----------
    scenario
        The scenario.
    seed
        Seed to use instead of the scenario's.
    jobs
        Number of threads, or of processes, at least 1; by default one per processor.
    progress
        Called with the number of finished runs and the total number of runs.
    backend
        Name of the backend; by default the simulator.
    store
        Directory in which each run is stored when it finishes, so that an interrupted execution can
        be continued; by default, runs are not stored. :meth:`Result.save` removes the stored runs.
    resume
        Continue the last interrupted execution of the same scenario and seed in `store`: its
        finished runs are not repeated. Without one, all runs are executed.
    max_memory
        Maximum memory for the runs, such as ``4gb``. By default 80 % of the smallest of the
        available memory, the limits of the control groups and the limit of the address space.
    pcap
        File for the packets of the run at the bottlenecks, in the format pcapng. The scenario must
        have one arm and one replication. The packets of an interrupted run are in a file of the
        same name with the suffix ``.partial``.
    force
        Whether `pcap` may replace a capture. Other files are never replaced.

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
        scenario, `jobs` is less than 1, or the runs may need more than `max_memory`; the message
        names the key that needs the most.
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
    needs("run", scenario, Scenario, "a Scenario")
    chosen = scenario if seed is None else scenario.replace(seed=seed)
    checked = chosen.checked
    budget.check(checked, jobs=jobs, max_memory=max_memory)
    if store is None and resume:
        message = "resume: requires a store; set store as well"
        raise _core.ScenarioError(message)
    if pcap is not None:
        captures.check(checked, pcap, backend=backend, resume=resume, force=force)
    run_all = partial(
        execute, checked, jobs=jobs, progress=progress, backend=backend, pcap=pcap, force=force
    )
    if store is None:
        return Result(run_all(invocation=None))
    _core.check_backend(checked, backend)
    invocation = runs.begin(_core.RunStore(store), checked, backend=backend, resume=resume)
    outcome = run_all(invocation=invocation)
    if invocation.failure is not None:
        warnings.warn(f"not all finished runs could be stored: {invocation.failure}", stacklevel=2)
    return Result(outcome, invocation)


def execute(
    checked: _core.Scenario,
    *,
    jobs: int | None,
    progress: Callable[[int, int], object] | None,
    backend: str | None,
    invocation: _core.Invocation | None,
    pcap: str | Path | None = None,
    force: bool = False,
) -> _core.Outcome:
    """Run a scenario on threads or processes."""
    queues = processes.checked_queues(checked)
    on_processes = queues and jobs != 1 and checked.replications * len(checked.arms) > 1
    outcome = None
    try:
        # One run is captured, which needs no processes.
        with captures.capturing(pcap, force=force) as capture:
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
