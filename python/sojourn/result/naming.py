"""Names of metrics as users write them."""

from collections.abc import Sequence

from sojourn import _core
from sojourn.result.catalogue import METRICS

# Ends of names of metrics that are units; users may leave them out.
_UNITS = ("_mbit_per_s", "_ms", "_percent", "_s")


def metric_column(name: str, columns: Sequence[str], place: str) -> str:
    """Return the column of a metric.

    Parameters
    ----------
    name
        Its name; a unit at its end may be left out: ``goodput_down`` is
        ``goodput_down_mbit_per_s``.
    columns
        The columns that exist.
    place
        What the name is part of, for error messages.

    Returns
    -------
    str
        The column.

    Raises
    ------
    ScenarioError
        There is no such column.

    Examples
    --------
    >>> metric_column("goodput_up", ["drops", "goodput_up_mbit_per_s"], "--until")
    'goodput_up_mbit_per_s'
    """
    for column in (name, *(f"{name}{unit}" for unit in _UNITS)):
        if column in columns:
            return column
    message = f'{place}: unknown metric "{name}"; expected one of {", ".join(columns)}'
    raise _core.ScenarioError(message)


def is_possible(name: str) -> bool:
    """Whether a metric of runs may have this name, in some scenario.

    Examples
    --------
    >>> is_possible("goodput_down"), is_possible("goodpt_down")
    (True, False)
    """
    named = (name, *(f"{name}{unit}" for unit in _UNITS))
    of_runs = [metric for metric in METRICS if metric.kind == "run"]
    return any(metric.named(column) is not None for column in named for metric in of_runs)
