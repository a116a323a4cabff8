"""Claims of publications that print no numbers to compare with.

Such a study is a directory with scenarios in TOML and ``claims.csv``, one line per claim:

============  =====================================================================
``target``    part of the publication, such as a section
``scenario``  name of the scenario file without suffix
``group``     group of flows; empty: the whole run
``quantity``  metric of :data:`GROUP_METRICS` or :data:`RUN_METRICS`
``arm``       name of the arm
``relation``  ``at_least``, ``at_most``: the mean, or its ratio to that of `reference`, and
              `value`; ``below``: its interval lies below that of `reference`;
              ``same_side``: the ratio to `reference` and `value` are on one side of 1
``reference`` another arm, if the claim compares arms
``value``     a number, if the claim has one
``origin``    place of the claim in the publication, and our assumptions
============  =====================================================================
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from sojourn import _core
from sojourn.result import Result, flow_groups
from sojourn.result.catalogue import of_kind
from sojourn.result.metrics import KEYS, mean_and_interval
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
_OF_GROUPS = ("share_percent",)
GROUP_METRICS = (
    *flow_groups.METRICS,
    *(metric for metric in of_kind("claim") if metric.column in _OF_GROUPS),
)
RUN_METRICS = tuple(metric for metric in of_kind("claim") if metric.column not in _OF_GROUPS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """A study with claims.

    Parameters
    ----------
    name
        Name of the study.
    scenarios
        The scenarios by the name of their file without suffix.
    claims
        One row per claim.
    """

    name: str
    scenarios: dict[str, Scenario]
    claims: pl.DataFrame


def load(folder: Path) -> Claims:
    """Read the claims of a study and their scenarios.

    Parameters
    ----------
    folder
        The directory of the study.

    Returns
    -------
    Claims
        The study.

    Raises
    ------
    ResultError
        There are no claims, or one cannot be parsed.
    ScenarioError
        One of its scenarios is not valid.
    """
    try:
        claims = pl.read_csv(folder / FILE, schema=CLAIMS, comment_prefix="#")
    except (OSError, pl.exceptions.PolarsError) as error:
        message = f"{folder / FILE}: cannot read claims: {error}"
        raise _core.ResultError(message) from None
    names = claims["scenario"].unique(maintain_order=True).to_list()
    scenarios = {name: Scenario.from_file(folder / f"{name}.toml") for name in names}
    return Claims(name=folder.name, scenarios=scenarios, claims=claims)


def quantities(result: Result) -> pl.DataFrame:
    """Average the quantities of claims over the runs of each arm.

    Parameters
    ----------
    result
        The result of a scenario.

    Returns
    -------
    polars.DataFrame
        One row per arm, group and quantity: ``arm``, ``group`` (null: the whole run), ``quantity``,
        ``mean``, and ``low`` and ``high`` as in :meth:`sojourn.Result.summary`. For the whole run,
        ``jain`` is Jain's index of the goodputs of all TCP, QUIC and UDP flows and
        ``throughput_mbit_per_s`` their sum; ``sojourn_ms_mean`` and ``sojourn_ms_max`` refer to the
        link with the longest mean sojourn time. ``share_percent`` is the part of the throughput
        that a group has.
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
        Name of the scenario.
    measured
        The frame of :func:`quantities`.

    Returns
    -------
    polars.DataFrame
        The claims with ``mean``, ``low`` and ``high`` of the arm, ``reference_mean``,
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
