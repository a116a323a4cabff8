"""Numbers and findings in words, for terminals and reports alike."""

import math
from collections.abc import Mapping
from typing import Any

import polars as pl

from sojourn.result import Result
from sojourn.result.metrics import Metric, metrics_of

# More digits than this after the point say nothing about a network.
MOST_DECIMALS = 3


def decimals(half_width: float) -> int:
    """Count the decimals that a value with this uncertainty deserves.

    The uncertainty keeps one significant digit, two if it begins with 1.

    Examples
    --------
    >>> decimals(0.031), decimals(0.013), decimals(4.2), decimals(13.0)
    (2, 3, 0, 0)
    """
    exponent = math.floor(math.log10(half_width))
    leading = half_width / 10.0**exponent
    return min(max(-exponent + (1 if leading < 2 else 0), 0), MOST_DECIMALS)  # noqa: PLR2004 - see above


def _places(half_width: float, metric: Metric) -> int:
    """Count the decimals of a value of `metric`; of a ratio or a count, never more than its own."""
    if half_width == 0.0:
        return metric.digits
    places = decimals(half_width)
    return places if metric.unit else min(places, metric.digits)


def estimate(mean: float | None, low: float | None, high: float | None, metric: Metric) -> str:
    """Write a mean with half the width of its interval.

    Parameters
    ----------
    mean, low, high
        The estimate; no interval if there was one run, no mean if there was none.
    metric
        What is estimated.

    Returns
    -------
    str
        Such as ``"9.12 ±0.03"``; ``"–"`` for what was not measured.
    """
    if mean is None:
        return "–"
    half = 0.0 if low is None or high is None else (high - low) / 2.0
    if low is None:
        return f"{mean:.{metric.digits}f}"
    places = _places(half, metric)
    return f"{mean:.{places}f} ±{half:.{places}f}"


def interval(low: float | None, high: float | None, metric: Metric) -> str:
    """Write an interval, such as ``"9.09 to 9.15"``; nothing if there is none."""
    if low is None or high is None:
        return ""
    half = (high - low) / 2.0
    places = _places(half, metric)
    return f"{low:.{places}f} to {high:.{places}f}"


def change(row: Mapping[str, float | None], metric: Metric) -> str:
    """Write a paired difference with its sign and interval, such as ``"−68* [−72, −64]"``.

    The star marks an interval that excludes 0, unless the digits shown say 0 all the same.
    """
    mean, low, high = row["mean"], row["low"], row["high"]
    if mean is None:
        return "–"
    if low is None or high is None:
        return _signed(mean, metric.digits)
    half = (high - low) / 2.0
    places = _places(half, metric)
    text = _signed(mean, places)
    star = "*" if row["significant"] and text[0] in "+−" else ""
    return f"{text}{star} [{_signed(low, places)}, {_signed(high, places)}]"


def _signed(value: float, places: int) -> str:
    """Write a number with its sign; what rounds to 0 has none."""
    text = f"{value:+.{places}f}"
    return (text if any(digit in "123456789" for digit in text) else text[1:]).replace("-", "−")


def telling_groups(summary: pl.DataFrame) -> pl.DataFrame:
    """Leave out the groups of which the table of runs tells all: flows without end.

    Parameters
    ----------
    summary
        What :meth:`sojourn.Result.group_summary` returns.

    Returns
    -------
    polars.DataFrame
        Its rows of groups of transfers and of datagrams.
    """
    told = summary.filter(pl.col("metric").is_in(("fct_s_mean", "loss_percent")))
    return summary.filter(pl.col("group").is_in(told["group"].unique().to_list()))


def group_differences(
    result: Result, baseline: str, other: str
) -> dict[tuple[str, str], dict[str, Any]]:
    """Index the paired differences of groups and applications by group and metric.

    Parameters
    ----------
    result
        Any result.
    baseline, other
        Names of arms.

    Returns
    -------
    dict
        Rows of :meth:`sojourn.Result.group_difference` and ``application_difference``.
    """
    tables = (
        result.group_difference(baseline, other),
        result.application_difference(baseline, other),
    )
    return {
        (row["group"], row["metric"]): row
        for compared in tables
        for row in compared.iter_rows(named=True)
    }


def findings(result: Result) -> list[str]:
    """Say in sentences what the numbers show.

    Parameters
    ----------
    result
        Any result.

    Returns
    -------
    list of str
        The extremes of each main metric, then each arm against the first.
    """
    summary = result.summary()
    described = {metric.column: metric for metric in metrics_of(result.per_run)}
    sentences = [
        sentence
        for metric in described.values()
        if (sentence := _extremes(summary, metric)) is not None
    ]
    present = summary["arm"].unique(maintain_order=True).to_list()
    sentences += [_against(result, present[0], arm, described) for arm in present[1:]]
    return sentences


def _extremes(summary: pl.DataFrame, metric: Metric) -> str | None:
    main = metric.column == "induced_latency_ms" or metric.column.startswith("goodput_")
    rows = summary.filter(pl.col("metric") == metric.column).drop_nulls("mean").sort("mean")
    if not main or rows.height < 2:  # noqa: PLR2004 - extremes take two
        return None
    ends = [rows.row(0, named=True), rows.row(-1, named=True)]
    least, most = (
        f"{estimate(row['mean'], row['low'], row['high'], metric)} {metric.unit} ({row['arm']})"
        for row in ends
    )
    name = metric.label[0].upper() + metric.label[1:]
    if least.split(" (")[0] == most.split(" (")[0]:
        return f"{name} is {least.split(' (')[0]} in all arms."
    return f"{name} ranges from {least} to {most}."


def _against(result: Result, baseline: str, arm: str, described: dict[str, Metric]) -> str:
    clear, unclear = [], []
    for row in result.difference(baseline, arm).iter_rows(named=True):
        metric = described[row["metric"]]
        name = metric.column
        if not (name == "induced_latency_ms" or name.startswith(("goodput_", "jain_"))):
            continue
        said = change(row, metric)
        if "*" in said:
            clear.append(f"{metric.label} {said.replace('*', '')} {metric.unit}".strip())
        elif row["mean"] is not None:
            unclear.append(metric.label)
    sentence = f"{arm} against {baseline}: " + (
        ", ".join(clear) if clear else "no clear difference"
    )
    if clear and unclear:
        sentence += f"; no clear difference in {', '.join(unclear)}"
    return sentence + "."
