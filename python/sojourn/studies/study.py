"""Published studies and their reproduction.

A study is a directory: scenarios in TOML; ``published.csv``, one line per published number, with
the columns ``scenario`` (file name without suffix), ``arm``, ``metric`` (``docs/metrics.md``),
``published``, ``error`` (reading error) and ``origin``; and ``study.toml``: the margins, the metric
by which arms are ordered, and the figure to draw. Where a real kernel was measured on the same
links, ``linux.csv`` has its values: ``scenario``, ``arm``, ``metric``,
``linux``.
"""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, Literal, get_args

import polars as pl

from sojourn import _core
from sojourn.result import Result, metrics
from sojourn.scenario import Scenario
from sojourn.studies import claims

Figure = Literal["ellipse", "series"]
PUBLISHED = {
    "scenario": pl.String,
    "arm": pl.String,
    "metric": pl.String,
    "published": pl.Float64,
    "error": pl.Float64,
    "origin": pl.String,
}
LINUX = {
    "scenario": pl.String,
    "arm": pl.String,
    "metric": pl.String,
    "linux": pl.Float64,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Margin:
    """The largest accepted difference from a published number.

    Parameters
    ----------
    kind
        Name of the kind of numbers in verdicts.
    metrics
        Prefix of the names of their metrics.
    width
        The largest accepted difference.
    unit
        Unit of `width`: percent of the published number, or points in the unit of the metric.
    arms
        The arms to which the margin applies; None: all.
    """

    kind: str
    metrics: str
    width: float
    unit: Literal["percent", "points"]
    arms: Sequence[str] | None = None

    def __str__(self) -> str:
        """Write the margin for a verdict."""
        return f"{self.width:g} {'%' if self.unit == 'percent' else 'points'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """A published study.

    Parameters
    ----------
    name
        Name of the study.
    scenarios
        The scenarios by the name of their file without suffix.
    published
        The published numbers.
    linux
        Values of a real kernel on the same links; may be empty.
    margins
        The accepted differences.
    order
        The metric by which arms are ordered; smaller is better.
    figure
        The figure to draw of each scenario.
    """

    name: str
    scenarios: dict[str, Scenario]
    published: pl.DataFrame
    linux: pl.DataFrame
    margins: Sequence[Margin]
    order: str
    figure: Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Agreement of the order of arms with the published order.

    Parameters
    ----------
    pairs
        Number of pairs of arms whose published values differ by more than the reading errors.
    kept
        Number of these pairs that have the same order here.
    exchanged
        The other pairs, the arm that is better in the publication first.
    """

    pairs: int
    kept: int
    exchanged: Sequence[tuple[str, str]]


def load(folder: Path) -> Study:
    """Read a study.

    Parameters
    ----------
    folder
        The directory of the study.

    Returns
    -------
    Study
        The study.

    Raises
    ------
    ResultError
        The directory contains no study.
    ScenarioError
        One of its scenarios is not valid.
    """
    table = folder / "published.csv"
    if not table.is_file():
        message = f"{folder}: not a study; expected a published.csv"
        raise _core.ResultError(message)
    published = pl.read_csv(table, schema=PUBLISHED, comment_prefix="#")
    kernel = folder / "linux.csv"
    linux = (
        pl.read_csv(kernel, schema=LINUX, comment_prefix="#")
        if kernel.is_file()
        else pl.DataFrame(schema=LINUX)
    )
    names = published["scenario"].unique(maintain_order=True).to_list()
    margins, order_by, figure = _judgement(folder / "study.toml")
    return Study(
        name=folder.name,
        scenarios={name: Scenario.from_file(folder / f"{name}.toml") for name in names},
        published=published,
        linux=linux,
        margins=margins,
        order=order_by,
        figure=figure,
    )


def _judgement(file: Path) -> tuple[list[Margin], str, Figure]:
    try:
        table = tomllib.loads(file.read_text())
        margins = [_margin(entry) for entry in table["margins"]]
        order_by, figure = table["order"], table["figure"]
    except (OSError, tomllib.TOMLDecodeError) as error:
        message = f"{file}: cannot read study: {getattr(error, 'strerror', None) or error}"
        raise _core.ResultError(message) from None
    except KeyError as error:
        message = f'{file}: cannot read study: missing key "{error.args[0]}"'
        raise _core.ResultError(message) from None
    if figure not in get_args(Figure):
        message = (
            f'{file}: unknown figure "{figure}"; expected one of {", ".join(get_args(Figure))}'
        )
        raise _core.ResultError(message)
    return margins, order_by, figure


def _margin(entry: dict[str, Any]) -> Margin:
    unit: Literal["percent", "points"] = "points" if "points" in entry else "percent"
    return Margin(
        kind=entry["kind"],
        metrics=entry["metrics"],
        width=entry[unit],
        unit=unit,
        arms=entry.get("arms"),
    )


def studies_folder(given: Path | None) -> Path:
    """Find the directory of the studies: the given one, or the one in this package.

    Raises
    ------
    ResultError
        The directory that was given does not exist.
    """
    if given is not None:
        if given.is_dir():
            return given
        message = f"{given} is not a directory; set --papers to a directory of studies"
        raise _core.ResultError(message)
    return (Path(__file__).parent / "papers").resolve()


def names(folder: Path) -> list[str]:
    """List the studies of a directory."""
    tables = ("published.csv", claims.FILE)
    return sorted({path.parent.name for table in tables for path in folder.glob(f"*/{table}")})


def title(folder: Path) -> str | None:
    """Return the title of a study: the heading of its README, if it has one."""
    try:
        first = (folder / "README.md").read_text(encoding="utf-8").partition("\n")[0]
    except (OSError, UnicodeDecodeError):
        return None
    return first.removeprefix("# ").strip() if first.startswith("# ") else None


def compared(study: Study, scenario: str, result: Result) -> pl.DataFrame:
    """Compare measured means with published numbers.

    Parameters
    ----------
    study
        The study.
    scenario
        Name of the scenario.
    result
        Its result.

    Returns
    -------
    polars.DataFrame
        One row per published number: ``scenario``, ``arm``, ``metric``, ``unit``, ``n``, ``mean``,
        ``low``, ``high``, ``published``, ``error``, ``difference_percent`` of the published
        number, and ``linux``, the value of a real kernel.
    """
    of_scenario = pl.col("scenario") == scenario
    linux = study.linux.filter(of_scenario).select("arm", "metric", "linux")
    return (
        study.published.filter(of_scenario)
        .select("scenario", "arm", "metric", "published", "error")
        .join(_summary(result), on=["arm", "metric"], how="left", maintain_order="left")
        .join(linux, on=["arm", "metric"], how="left", maintain_order="left")
        .with_columns(
            difference_percent=(pl.col("mean") - pl.col("published")) / pl.col("published") * 100
        )
        .select(
            "scenario",
            "arm",
            "metric",
            "unit",
            "n",
            "mean",
            "low",
            "high",
            "published",
            "error",
            "difference_percent",
            "linux",
        )
    )


def per_run(result: Result) -> pl.DataFrame:
    """Compute the metrics of each run that publications report, including those of transport."""
    checked = result.scenario.checked
    transport = metrics.transport_metrics(
        result.flows, result.links, measured_s=checked.duration_s - checked.warmup_s
    )
    return result.per_run.join(transport, on=list(metrics.KEYS), how="left", maintain_order="left")


def _summary(result: Result) -> pl.DataFrame:
    return metrics.summary(per_run(result))


def order(comparison: pl.DataFrame, metric: str) -> Order:
    """Compare the order of arms with the published one.

    Parameters
    ----------
    comparison
        The frame of :func:`compared`.
    metric
        The metric by which the arms are ordered.

    Returns
    -------
    Order
        The pairs with the published order and those without.

    Examples
    --------
    >>> order(pl.DataFrame({
    ...     "arm": ["codel", "pie", "sfq"], "metric": ["induced_latency_ms"] * 3,
    ...     "mean": [30.0, 20.0, 8.0], "published": [35.0, 53.0, 8.3], "error": [0.3] * 3,
    ... }), "induced_latency_ms").exchanged
    [('codel', 'pie')]
    """
    rows = comparison.filter(pl.col("metric") == metric).drop_nulls("mean").to_dicts()
    rows.sort(key=lambda row: row["published"])
    pairs = [
        (better, worse)
        for better, worse in combinations(rows, 2)
        if worse["published"] - better["published"] > better["error"] + worse["error"]
    ]
    exchanged = [
        (better["arm"], worse["arm"]) for better, worse in pairs if better["mean"] >= worse["mean"]
    ]
    return Order(pairs=len(pairs), kept=len(pairs) - len(exchanged), exchanged=exchanged)


def judged(comparison: pl.DataFrame, margin: Margin) -> pl.DataFrame:
    """Select the numbers of a kind and mark those within the margin of the published ones.

    A number is also within the margin if its interval, widened by the reading error, covers the
    published one.

    Parameters
    ----------
    comparison
        The frame of :func:`compared`.
    margin
        The margin and the numbers to which it applies.

    Returns
    -------
    polars.DataFrame
        The rows of that kind that have a mean, with ``near``.
    """
    rows = comparison.filter(pl.col("metric").str.starts_with(margin.metrics)).drop_nulls("mean")
    if margin.arms is not None:
        rows = rows.filter(pl.col("arm").is_in(margin.arms))
    low = pl.col("low").fill_null(pl.col("mean")) - pl.col("error")
    high = pl.col("high").fill_null(pl.col("mean")) + pl.col("error")
    off = (
        pl.col("difference_percent")
        if margin.unit == "percent"
        else pl.col("mean") - pl.col("published")
    )
    close = off.abs() <= margin.width
    return rows.with_columns(near=close | pl.col("published").is_between(low, high))
