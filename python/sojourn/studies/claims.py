"""Studies that check what a publication claims where it prints no numbers to compare with.

Such a study is a folder: scenarios in TOML and ``claims.csv``, one line a claim:

============  =====================================================================
``target``    what of the publication it belongs to, such as a section
``scenario``  file name without ending
``group``     the group of flows it is about; empty: the whole run
``quantity``  a metric of :data:`GROUP_METRICS` or of :data:`RUN_METRICS`
``arm``       whose
``relation``  ``at_least``, ``at_most``: the mean, or its ratio to that of `reference`, and
              `value`; ``below``: its interval lies below that of `reference`;
              ``same_side``: the ratio to `reference` and `value` are on one side of 1
``reference`` another arm, if one is meant
``value``     a number, if one is meant
``origin``    where the claim stands, and what of it is ours
============  =====================================================================
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from sojourn import _core
from sojourn.result import Result, flow_groups
from sojourn.result.metrics import KEYS, Metric, mean_and_interval
from sojourn.scenario import Scenario

FILE = "claims.csv"
CLAIMS: dict[str, Any] = {
    "target": pl.String,
    "scenario": pl.String,
    "group": pl.String,
    "quantity": pl.String,
    "arm": pl.String,
    "relation": pl.Enum(["at_least", "at_most", "below", "same_side"]),
    "reference": pl.String,
    "value": pl.Float64,
    "origin": pl.String,
}
GROUP_METRICS = (
    *flow_groups.METRICS,
    Metric(column="share_percent", label="share", unit="%", digits=1),
)
RUN_METRICS = (
    Metric(column="jain", label="Jain", unit="", digits=3),
    Metric(column="throughput_mbit_per_s", label="throughput", unit="Mbit/s", digits=1),
    Metric(column="sojourn_ms_mean", label="sojourn mean", unit="ms", digits=3),
    Metric(column="sojourn_ms_max", label="sojourn max", unit="ms", digits=1),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """What a study claims.

    Parameters
    ----------
    name
        What the study is called.
    scenarios
        By the name of their file, without its ending.
    claims
        One row a claim.
    """

    name: str
    scenarios: dict[str, Scenario]
    claims: pl.DataFrame


def load(folder: Path) -> Claims:
    """Read the claims of a study and the scenarios that they are about.

    Parameters
    ----------
    folder
        Where it is.

    Returns
    -------
    Claims
        The study.

    Raises
    ------
    ResultError
        There are no claims, or one is not understood.
    ScenarioError
        One of its scenarios is not valid.
    """
    try:
        claims = pl.read_csv(folder / FILE, schema=CLAIMS, comment_prefix="#")
    except (OSError, pl.exceptions.PolarsError) as error:
        message = f"{folder / FILE} holds no claims: {error}"
        raise _core.ResultError(message) from None
    names = claims["scenario"].unique(maintain_order=True).to_list()
    scenarios = {name: Scenario.from_file(folder / f"{name}.toml") for name in names}
    return Claims(name=folder.name, scenarios=scenarios, claims=claims)


def quantities(result: Result) -> pl.DataFrame:
    """Average what claims are about over the runs of each arm.

    Parameters
    ----------
    result
        What running a scenario gave.

    Returns
    -------
    polars.DataFrame
        One row an arm, group and quantity: ``arm``, ``group`` (null: the whole run), ``quantity``,
        ``mean``, and ``low`` and ``high`` as those of :meth:`sojourn.Result.summary`. Of the whole
        run, ``jain`` is Jain's index of the goodputs of all TCP and UDP flows and
        ``throughput_mbit_per_s`` their sum; ``sojourn_ms_mean`` and ``sojourn_ms_max`` are of the
        packets of the link with the longest mean sojourn. ``share_percent`` is the part of the
        throughput that a group has.
    """
    runs = [_of_flows(result.flows), _of_links(result.links), _of_groups(result.flows)]
    rows = [
        (*key, *mean_and_interval(values["value"].drop_nulls().to_list()))
        for key, values in pl.concat(runs).group_by("arm", "group", "quantity", maintain_order=True)
    ]
    return pl.concat(
        [
            pl.DataFrame(rows, schema=_MEASURED, orient="row"),
            result.group_summary().rename({"metric": "quantity"}).select(*_MEASURED),
        ]
    )


_MEASURED = {
    "arm": pl.String,
    "group": pl.String,
    "quantity": pl.String,
    "mean": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
}


def _of_flows(flows: pl.DataFrame) -> pl.DataFrame:
    rate = pl.col("goodput_mbit_per_s")
    runs = _data(flows).group_by(KEYS, maintain_order=True)
    jain = rate.sum().pow(2) / (rate.count() * rate.pow(2).sum())
    return _long(runs.agg(jain=jain, throughput_mbit_per_s=rate.sum()))


def _of_groups(flows: pl.DataFrame) -> pl.DataFrame:
    rate = pl.col("goodput_mbit_per_s")
    groups = _data(flows).group_by(*KEYS, "group", maintain_order=True).agg(rate.sum())
    return groups.select(
        *KEYS,
        "group",
        quantity=pl.lit("share_percent"),
        value=100 * rate / rate.sum().over(KEYS),
    )


def _of_links(links: pl.DataFrame) -> pl.DataFrame:
    columns = ("sojourn_ms_mean", "sojourn_ms_max")
    longest = links.sort("sojourn_ms_mean", descending=True, maintain_order=True)
    runs = longest.group_by(KEYS, maintain_order=True).first()
    return _long(runs.select(*KEYS, *columns).sort(KEYS, maintain_order=True))


def _data(flows: pl.DataFrame) -> pl.DataFrame:
    return flows.filter(pl.col("kind") != "ping")


def _long(runs: pl.DataFrame) -> pl.DataFrame:
    values = runs.unpivot(index=KEYS, variable_name="quantity", value_name="value")
    return values.select(*KEYS, pl.lit(None, pl.String).alias("group"), "quantity", "value")


def checked(claims: pl.DataFrame, scenario: str, measured: pl.DataFrame) -> pl.DataFrame:
    """Check the claims on one scenario.

    Parameters
    ----------
    claims
        All claims of the study.
    scenario
        Which of its scenarios.
    measured
        What :func:`quantities` returns of it.

    Returns
    -------
    polars.DataFrame
        The claims on it with ``mean``, ``low`` and ``high`` of the arm, ``reference_mean``,
        ``reference_low`` and ``reference_high`` of the other, and ``met``: null where one of them
        was not measured.

    Examples
    --------
    >>> claim = pl.DataFrame({
    ...     "target": ["A"], "scenario": ["s"], "group": [None], "quantity": ["jain"],
    ...     "arm": ["afcd"], "relation": ["at_least"], "reference": ["codel"], "value": [1.0],
    ...     "origin": ["fairer"],
    ... }, schema=CLAIMS)
    >>> seen = pl.DataFrame({
    ...     "arm": ["codel", "afcd"], "group": [None] * 2, "quantity": ["jain"] * 2,
    ...     "mean": [0.5, 0.75], "low": [0.4, 0.7], "high": [0.6, 0.8],
    ... }, schema_overrides={"group": pl.String})
    >>> checked(claim, "s", seen)["met"].to_list()
    [True]
    """
    estimate = ("mean", "low", "high")
    others = measured.rename(
        {"arm": "reference", **{name: f"reference_{name}" for name in estimate}}
    )
    on = ["group", "quantity"]
    rows = (
        claims.filter(pl.col("scenario") == scenario)
        .join(measured, on=["arm", *on], how="left", nulls_equal=True, maintain_order="left")
        .join(others, on=["reference", *on], how="left", nulls_equal=True, maintain_order="left")
    )
    ratio = pl.col("mean") / pl.col("reference_mean")
    compared = pl.when(pl.col("reference").is_null()).then("mean").otherwise(ratio)
    # One run has no interval: then its value stands for both ends.
    own_high = pl.coalesce("high", "mean")
    other_low = pl.coalesce("reference_low", "reference_mean")
    relation = pl.col("relation").cast(pl.String)
    return rows.with_columns(
        met=pl.when(relation == "at_least")
        .then(compared >= pl.col("value"))
        .when(relation == "at_most")
        .then(compared <= pl.col("value"))
        .when(relation == "below")
        .then(own_high < other_low)
        .otherwise((ratio > 1) == (pl.col("value") > 1))
    )
