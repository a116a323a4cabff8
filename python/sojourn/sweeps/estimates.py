"""Means, intervals and paired differences of the points of a sweep."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain

import polars as pl

from sojourn import _core
from sojourn.result import metrics
from sojourn.scenario.quantities import in_base_units, quantity
from sojourn.sweeps.executors import jobs_at_once

KEYS = ("point", "arm")
# Samples for which a thread is worth its start.
_LEAST_SAMPLES = 100


def by_point(runs: pl.DataFrame, paths: Sequence[str], names: Sequence[str]) -> pl.DataFrame:
    """Average every metric over the runs of each point and arm.

    Parameters
    ----------
    runs
        One row per run.
    paths, names
        The columns of the parameters and of the metrics.

    Returns
    -------
    polars.DataFrame
        ``point``, the parameters, ``arm``, ``n``, and per metric its mean, ``<metric>_low`` and
        ``<metric>_high``: the 95 % bootstrap interval, null for fewer than two runs.
    """
    # Lists, because a frame per cell would take most of the time.
    data = {name: runs[name].to_list() for name in (*KEYS, *paths, *names)}
    cells: dict[tuple[int, str], list[int]] = {}
    for place, cell in enumerate(zip(data["point"], data["arm"], strict=True)):
        cells.setdefault(cell, []).append(place)
    estimates = iter(
        _estimates(
            [
                [value for place in places if (value := data[name][place]) is not None]
                for places in cells.values()
                for name in names
            ]
        )
    )
    rows = []
    for (point, arm), places in cells.items():
        own = {path: data[path][places[0]] for path in paths}
        row = {"point": point, **own, "arm": arm, "n": len(places)}
        for name in names:
            columns_of_name = (name, f"{name}_low", f"{name}_high")
            row |= dict(zip(columns_of_name, next(estimates), strict=True))
        rows.append(row)
    columns = [column for name in names for column in (name, f"{name}_low", f"{name}_high")]
    schema: dict[str, pl.DataType | type[pl.DataType]] = {
        "point": pl.Int64,
        **{path: runs.schema[path] for path in paths},
        "arm": pl.String,
        "n": pl.Int64,
        **dict.fromkeys(columns, pl.Float64),
    }
    return pl.DataFrame(rows, schema=schema)


def _estimates(samples: Sequence[Sequence[float]]) -> list[metrics.Interval]:
    """Compute means and intervals on all processors: the bootstrap does not hold the GIL."""
    threads = jobs_at_once(None, None)
    size = max(-(-len(samples) // threads), _LEAST_SAMPLES)
    parts = [samples[start : start + size] for start in range(0, len(samples), size)]
    with ThreadPoolExecutor(threads, thread_name_prefix="estimates") as pool:
        found = pool.map(lambda part: [metrics.mean_and_interval(one) for one in part], parts)
        return list(chain.from_iterable(found))


def ranked(
    runs: pl.DataFrame, paths: Sequence[str], name: str, *, largest: bool, count: int
) -> pl.DataFrame:
    """Rank points by the mean of a metric, with the paired differences to the best one.

    Parameters
    ----------
    runs
        One row per run.
    paths
        The columns of the parameters.
    name
        The column of the metric.
    largest
        Whether a larger mean is better.
    count
        How many points to list.

    Returns
    -------
    polars.DataFrame
        ``point``, the parameters, ``arm``, ``n``, the metric with its interval, and
        ``difference``, ``difference_low`` and ``difference_high``: the mean of the differences to
        the best point over runs with the same seed.
    """
    table = by_point(runs, paths, [name]).drop_nulls(name)
    table = table.sort(name, descending=largest, maintain_order=True).head(count)
    values = {
        (point, arm): dict(of_cell.select("replication", name).drop_nulls().iter_rows())
        for (point, arm), of_cell in runs.group_by(KEYS, maintain_order=True)
    }
    rows = []
    for point, arm in table.select(KEYS).iter_rows():
        best = values[table["point"][0], table["arm"][0]]
        own = values[point, arm]
        shared = sorted(best.keys() & own.keys())
        differences = [own[replication] - best[replication] for replication in shared]
        rows.append(metrics.mean_and_interval(differences))
    columns = ("difference", "difference_low", "difference_high")
    schema = dict.fromkeys(columns, pl.Float64)
    return pl.concat([table, pl.DataFrame(rows, schema=schema, orient="row")], how="horizontal")


def in_order(values: pl.Series) -> list[object]:
    """List the different values of a parameter: quantities by their size, others as they come.

    Examples
    --------
    >>> in_order(pl.Series(["1gbit", "10mbit", "1gbit"]))
    ['10mbit', '1gbit']
    """
    found = values.unique(maintain_order=True).to_list()
    if all(value is not None and quantity(value) is not None for value in found):
        return sorted(found, key=in_base_units)
    return list(found)


def numeric(values: Sequence[object]) -> list[float] | None:
    """Convert values to numbers; None if they are not quantities of one kind."""
    found = [quantity(value) for value in values if isinstance(value, str | int | float)]
    if len(found) < len(values) or len({one.kind if one else None for one in found}) > 1:
        return None
    if any(one is None for one in found):
        return None
    return [in_base_units(value) for value in values if isinstance(value, str | int | float)]


def check_parameter(path: str, paths: Sequence[str]) -> None:
    """Raise a ResultError unless the sweep has this parameter."""
    if path not in paths:
        message = f'unknown parameter "{path}"; expected one of {", ".join(paths)}'
        raise _core.ResultError(message)
