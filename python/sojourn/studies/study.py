"""Published studies, measured again.

A study is a folder: scenarios in TOML; ``published.csv``, one line a published number, with
the columns ``scenario`` (file name without ending), ``arm``, ``metric`` (``docs/metrics.md``),
``published``, ``error`` (how well it could be read) and ``origin``; and ``study.toml``: what counts
as near, the metric by which arms are ordered, and the figure to draw. Where the real kernel was
measured on the same links, ``linux.csv`` says what it does: ``scenario``, ``arm``, ``metric``,
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
    """How near to the published number counts as near.

    Parameters
    ----------
    kind
        What verdicts call the numbers it is for.
    metrics
        How the names of their metrics begin.
    width
        How far off they may be.
    unit
        Of that: percent of the published number, or points, the unit of the number itself.
    arms
        The arms it is for; None: all.
    """

    kind: str
    metrics: str
    width: float
    unit: Literal["percent", "points"]
    arms: Sequence[str] | None = None

    def __str__(self) -> str:
        """Write it as verdicts do."""
        return f"{self.width:g} {'%' if self.unit == 'percent' else 'points'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """A published study.

    Parameters
    ----------
    name
        What it is called.
    scenarios
        By the name of their file, without its ending.
    published
        The published numbers.
    linux
        What the real kernel does on the same links; empty if nobody measured.
    margins
        What counts as near.
    order
        The metric by which arms are ordered; smaller is better.
    figure
        What to draw of each scenario.
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
    """How far arms stand in the published order.

    Parameters
    ----------
    pairs
        Pairs of arms whose published values differ by more than they could be read to.
    kept
        How many of these stand in the same order here.
    exchanged
        The others, the published better one first.
    """

    pairs: int
    kept: int
    exchanged: Sequence[tuple[str, str]]


def load(folder: Path) -> Study:
    """Read a study.

    Parameters
    ----------
    folder
        Where it is.

    Returns
    -------
    Study
        The study.

    Raises
    ------
    ResultError
        There is no such study.
    ScenarioError
        One of its scenarios is not valid.
    """
    table = folder / "published.csv"
    if not table.is_file():
        message = f"{folder} is no study: it has no published.csv"
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
    except (OSError, tomllib.TOMLDecodeError, KeyError) as error:
        message = f"{file}: {error!r}"
        raise _core.ResultError(message) from None
    if figure not in get_args(Figure):
        message = f"{file}: figure {figure!r}; there are: {', '.join(get_args(Figure))}"
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
    """Find the folder that holds the studies: the one given, or that of the checkout.

    Raises
    ------
    ResultError
        There is none.
    """
    folder = Path(__file__).parents[3] / "papers" if given is None else given
    if not folder.is_dir():
        message = (
            f"no studies in {folder}: name their folder with --papers, from a checkout of Sojourn"
        )
        raise _core.ResultError(message)
    return folder


def compared(study: Study, scenario: str, result: Result) -> pl.DataFrame:
    """Put measured means beside published numbers.

    Parameters
    ----------
    study
        The study.
    scenario
        Which of its scenarios.
    result
        What running it gave.

    Returns
    -------
    polars.DataFrame
        One row a published number: ``scenario``, ``arm``, ``metric``, ``unit``, ``n``, ``mean``,
        ``low``, ``high``, ``published``, ``error``, ``difference_percent`` of the published
        number and ``linux``, what the real kernel does.
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
    """List the metrics of each run that publications give, those of transport among them."""
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
        What :func:`compared` returns.
    metric
        By which the arms are ordered.

    Returns
    -------
    Order
        The pairs that stand in the published order, and those that do not.

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
    """Tell which numbers of a kind lie near the published ones.

    A number also counts if its interval, widened by the error of reading, holds the published
    one.

    Parameters
    ----------
    comparison
        What :func:`compared` returns.
    margin
        Which numbers, and what is near.

    Returns
    -------
    polars.DataFrame
        The rows of that kind which have a mean, with ``near``.
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
