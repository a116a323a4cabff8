"""Means, intervals and paired differences of the points of a sweep."""

import itertools
from array import array
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import polars as pl

from sojourn.arguments import ArgumentError
from sojourn.deferred import Deferred
from sojourn.execute.executor import jobs_at_once
from sojourn.result import metrics, student
from sojourn.result.catalogue import Metric
from sojourn.result.estimates import Interval, intervals
from sojourn.result.naming import described
from sojourn.scenario.quantities import in_base_units, quantity
from sojourn.sweeps import comparisons

if TYPE_CHECKING:
    import numpy as np
else:
    # Needed only where points are ranked.
    np = Deferred("numpy")

KEYS = ("point", "arm")
# Least number of samples per thread.
_LEAST_SAMPLES = 100
# Shown by default in addition to the main metrics.
_USUAL = {"ping_ms_p99"}


def main_metrics(columns: Sequence[str]) -> list[Metric]:
    """Describe the metrics that tables and reports show by default."""
    return [one for one in described(columns) if one.role == "headline" or one.column in _USUAL]


Estimate = Callable[[Sequence[Sequence[float]]], list[Interval]]


def student_intervals(samples: Sequence[Sequence[float]]) -> list[Interval]:
    """Compute means and their intervals of Student's t distribution, as `until` does.

    Without values there is no mean, with one value no interval.
    """
    return [
        student.mean_and_interval(values)
        if len(values) > 1
        else (values[0] if values else None, None, None)
        for values in samples
    ]


def by_point(
    runs: pl.DataFrame,
    paths: Sequence[str],
    names: Sequence[str],
    estimate: Estimate = intervals,
) -> pl.DataFrame:
    """Average every metric over the runs of each point and arm."""
    # Lists, because one frame per cell would be slow.
    data = {name: runs[name].to_list() for name in (*KEYS, *paths, *names)}
    cells: dict[tuple[int, str], list[int]] = {}
    for place, cell in enumerate(zip(data["point"], data["arm"], strict=True)):
        cells.setdefault(cell, []).append(place)
    estimates = iter(
        _estimates(
            [
                [value for place in places if (value := data[name][place]) is not None]
                for name in names
                for places in cells.values()
            ],
            estimate,
        )
    )
    first = [places[0] for places in cells.values()]
    columns: dict[str, list[Any]] = {
        "point": [point for point, _ in cells],
        **{path: [data[path][place] for place in first] for path in paths},
        "arm": [arm for _, arm in cells],
        "n": [len(places) for places in cells.values()],
    }
    for name in names:
        of_name = list(itertools.islice(estimates, len(cells)))
        for end, part in enumerate((name, f"{name}_low", f"{name}_high")):
            columns[part] = [found[end] for found in of_name]
    schema: dict[str, pl.DataType | type[pl.DataType]] = {
        **dict.fromkeys(columns, pl.Float64),
        "point": pl.Int64,
        **{path: runs.schema[path] for path in paths},
        "arm": pl.String,
        "n": pl.Int64,
    }
    return pl.DataFrame(columns, schema=schema, strict=False)


def long(
    points: pl.DataFrame, runs: pl.DataFrame, paths: Sequence[str], known: Sequence[Metric]
) -> pl.DataFrame:
    """Write a table of points with one row per point, arm and metric."""
    names = [metric.column for metric in known]
    counts = runs.group_by(KEYS, maintain_order=True).agg(pl.col(names).count())
    parts = [
        points.select(
            pl.int_range(pl.len()).alias("row"),
            *("point", *paths, "arm"),
            metric=pl.lit(metric.column),
            unit=pl.lit(metric.unit),
            n=counts[metric.column].cast(pl.Int64),
            mean=metric.column,
            low=f"{metric.column}_low",
            high=f"{metric.column}_high",
        )
        for metric in known
    ]
    return pl.concat(parts).sort("row", maintain_order=True).drop("row")


def paired(
    runs: pl.DataFrame,
    paths: Sequence[str] | None,
    known: Sequence[Metric],
    baseline: str,
    other: str,
) -> pl.DataFrame:
    """Average the paired differences of two arms, at each point with `paths`, else at all."""
    point = pl.col("point")
    if paths is None:
        # Pairs have the same point, too.
        first = pl.col("replication").max() + 1
        pairs = runs.with_columns(replication=point * first + pl.col("replication"))
        return metrics.difference(pairs, known, baseline, other)
    of_points = runs.with_columns(group=point.cast(pl.String))
    found = metrics.difference(of_points, known, baseline, other)
    values = runs.select("point", *paths).unique("point", maintain_order=True)
    found = found.with_columns(point=pl.col("group").cast(pl.Int64)).drop("group")
    named = found.join(values, on="point", how="left", maintain_order="left")
    return named.select("point", *paths, *(name for name in found.columns if name != "point"))


def _estimates(samples: Iterable[Sequence[float]], estimate: Estimate) -> list[Interval]:
    """Compute means and intervals on all processors: the bootstrap does not hold the GIL.

    Equal samples, such as those of a metric that is 0 at most points, are computed once.
    """
    # As bytes, because 0.0 and -0.0 differ.
    keys = [array("d", sample).tobytes() for sample in samples]
    distinct = list(dict.fromkeys(keys))
    threads = jobs_at_once(None, None)
    size = max(-(-len(distinct) // threads), _LEAST_SAMPLES)
    parts = [distinct[start : start + size] for start in range(0, len(distinct), size)]
    with ThreadPoolExecutor(threads, thread_name_prefix="estimates") as pool:
        found = pool.map(
            lambda part: estimate([memoryview(one).cast("d").tolist() for one in part]), parts
        )
        known = dict(zip(distinct, itertools.chain.from_iterable(found), strict=True))
    return [known[key] for key in keys]


def ranked(
    points: pl.DataFrame, runs: pl.DataFrame, name: str, *, largest: bool, count: int
) -> pl.DataFrame:
    """Rank points by the mean of a metric, with the paired differences from the best one."""
    table = points.drop_nulls(name).sort(name, descending=largest, maintain_order=True)
    replications = runs["replication"].unique().sort().to_list()
    column = {replication: n for n, replication in enumerate(replications)}
    place = {cell: n for n, cell in enumerate(table.select(KEYS).iter_rows())}
    values = np.full((len(place), len(column)), np.nan)
    for *cell, replication, value in runs.select(*KEYS, "replication", name).iter_rows():
        if value is not None:
            values[place[tuple(cell)], column[replication]] = value
    rows = []
    for row in range(min(count, len(place))):
        found = comparisons.against_first(values, row)
        best = comparisons.may_be_best(values, row, largest=largest)
        rows.append((found.mean, found.low, found.high, best))
    schema: dict[str, pl.DataType | type[pl.DataType]] = {
        **dict.fromkeys(("difference", "difference_low", "difference_high"), pl.Float64),
        "may_be_best": pl.Boolean,
    }
    ranks = pl.DataFrame(rows, schema=schema, orient="row")
    return pl.concat([table.head(count), ranks], how="horizontal")


def in_order(values: pl.Series) -> list[object]:
    """List the distinct values of a parameter: quantities by size, others in given order.

    Examples
    --------
    >>> in_order(pl.Series(["1gbit", "10mbit", "1gbit"]))
    ['10mbit', '1gbit']
    """
    found = values.unique(maintain_order=True).to_list()
    if all(value is not None and quantity(value) is not None for value in found):
        return sorted(found, key=in_base_units)
    return list(found)


def check_parameter(argument: str, path: str, paths: Sequence[str]) -> None:
    """Check that the sweep has the parameter that an argument names."""
    if path not in paths:
        rule = "unknown parameter; expected one of {paths}"
        raise ArgumentError(argument, path, rule, paths=", ".join(paths))
