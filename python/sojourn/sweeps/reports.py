"""HTML reports on results and on sweeps."""

from pathlib import Path

from sojourn import _core, report
from sojourn.document import needs
from sojourn.result import Result, derived_files
from sojourn.sweeps import page
from sojourn.sweeps.result import SweepResult


def write_report(result: Result | SweepResult, path: str | Path) -> None:
    """Write an HTML report on a result or a sweep.

    Parameters
    ----------
    result
        The result or the sweep, with at least one finished run.
    path
        The file, such as ``report.html``; its directory is created if needed, with its parents. A
        report of this name is replaced.

    Raises
    ------
    ResultError
        No run has finished, or the file cannot be written, or exists and is not a report.
    ScenarioError
        `result` has another type.

    Examples
    --------
    >>> import tempfile
    >>> import sojourn as sj
    >>> links = {side: sj.Link(rate="2mbit", qdisc="codel") for side in ("up", "down")}
    >>> ping = sj.Ping(direction="up", interval="100ms")
    >>> scenario = sj.Scenario(links=links, traffic=[ping], rtt="50ms", duration="4s")
    >>> swept = sj.sweep(scenario, {"rtt": ["20ms", "50ms"]})
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     sj.write_report(swept, f"{directory}/report.html")
    """
    needs("result", result, Result | SweepResult, "a Result or a SweepResult")
    if isinstance(result, SweepResult):
        with derived_files.claimed(path):
            page.write(result, path)
        return
    if not result.finished:
        message = "no run of the result has finished; a report requires at least one"
        raise _core.ResultError(message)
    with derived_files.claimed(path):
        report.write(result, path)
