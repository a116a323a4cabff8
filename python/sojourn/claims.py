"""Published claims, checked again.

A study whose figures cannot be read has no published numbers; its text still claims that one queue
is fairer than another, or that a delay stays below a millisecond. Such a study is a folder with
scenarios in TOML and ``claims.csv``, one line a claim, with the columns ``scenario`` (file name
without ending), ``arm``, ``quantity``, ``than`` (another arm; empty: the quantity itself is
meant), ``least`` and ``most`` (of the quantity, or of its ratio to that of the other arm) and
``origin``. The quantities are those of :func:`quantities`.
"""

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from sojourn import _core
from sojourn.metrics import KEYS
from sojourn.result import Result
from sojourn.scenario import Scenario

FILE = "claims.csv"
CLAIMS = {
    "scenario": pl.String,
    "arm": pl.String,
    "quantity": pl.String,
    "than": pl.String,
    "least": pl.Float64,
    "most": pl.Float64,
    "origin": pl.String,
}


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
        There are no claims.
    ScenarioError
        One of its scenarios is not valid.
    """
    table = folder / FILE
    if not table.is_file():
        message = f"{folder} has no {FILE}"
        raise _core.ResultError(message)
    claims = pl.read_csv(table, schema=CLAIMS, comment_prefix="#")
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
        One row an arm and quantity: ``arm``, ``quantity``, ``mean``, and ``low`` and ``high``, the
        smallest and the largest of the runs. ``jain`` is Jain's index of the goodputs of all TCP
        and UDP flows, ``throughput_mbit_per_s`` their sum, ``share_percent:GROUP`` the part of it
        that a group of flows has; ``sojourn_ms_mean`` and ``sojourn_ms_max`` are of the packets of
        the link with the longest mean sojourn.
    """
    runs = [_of_flows(result.flows), _of_groups(result.flows), _of_links(result.links)]
    return (
        pl.concat(runs)
        .group_by("arm", "quantity", maintain_order=True)
        .agg(
            mean=pl.col("value").mean(),
            low=pl.col("value").min(),
            high=pl.col("value").max(),
        )
    )


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
        quantity="share_percent:" + pl.col("group"),
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
    return runs.unpivot(index=KEYS, variable_name="quantity", value_name="value")


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
        The claims on it with ``value``, the quantity or ratio that was measured, and ``holds``.

    Examples
    --------
    >>> claim = pl.DataFrame({
    ...     "scenario": ["s"], "arm": ["afcd"], "quantity": ["jain"], "than": ["codel"],
    ...     "least": [1.0], "most": [None], "origin": ["fairer"],
    ... }, schema=CLAIMS)
    >>> seen = pl.DataFrame({
    ...     "arm": ["codel", "afcd"], "quantity": ["jain"] * 2, "mean": [0.5, 0.75],
    ... })
    >>> checked(claim, "s", seen).select("value", "holds").row(0)
    (1.5, True)
    """
    means = measured.select("arm", "quantity", "mean")
    others = means.rename({"arm": "than", "mean": "other"})
    ratio = pl.col("mean") / pl.col("other")
    value = pl.when(pl.col("than").is_null()).then("mean").otherwise(ratio)
    enough = pl.col("least").is_null() | (pl.col("value") >= pl.col("least"))
    not_more = pl.col("most").is_null() | (pl.col("value") <= pl.col("most"))
    return (
        claims.filter(pl.col("scenario") == scenario)
        .join(means, on=["arm", "quantity"], how="left", maintain_order="left")
        .join(others, on=["than", "quantity"], how="left", maintain_order="left")
        .with_columns(value=value)
        .with_columns(holds=enough & not_more)
        .drop("mean", "other")
    )
