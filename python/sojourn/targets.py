"""Studies that check what a publication claims where it prints too little to compare numbers.

Such a study is a folder: scenarios in TOML; ``expected.csv``, one line a claim, with the columns
``target`` (what it belongs to), ``scenario`` (file name without ending), ``group``, ``metric`` (a
column of :attr:`sojourn.Result.per_group`), ``arm``, ``relation``, ``reference`` (another arm),
``value`` and ``origin``; and, where the publication prints percentages, ``slides.csv`` with the
numbers they belong to.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from sojourn import _core
from sojourn.result import Result
from sojourn.scenario import Scenario

FILE = "expected.csv"
EXPECTED: dict[str, Any] = {
    "target": pl.String,
    "scenario": pl.String,
    "group": pl.String,
    "metric": pl.String,
    "arm": pl.String,
    "relation": pl.Enum(["below", "at_least", "ratio"]),
    "reference": pl.String,
    "value": pl.Float64,
    "origin": pl.String,
}
PRINTED = {
    "load": pl.String,
    "metric": pl.String,
    "floq": pl.Float64,
    "codel": pl.Float64,
    "pie": pl.Float64,
    "fifo": pl.Float64,
    "printed": pl.Float64,
}
# What the change of a number printed with three digits may be off by: half a tenth of 33.3.
_ROUNDING = 0.15


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """A publication's claims and the scenarios to check them in.

    Parameters
    ----------
    name
        What the study is called.
    scenarios
        By the name of their file, without its ending.
    expected
        The claims.
    printed
        The numbers that percentages were printed of; empty if there are none.
    """

    name: str
    scenarios: dict[str, Scenario]
    expected: pl.DataFrame
    printed: pl.DataFrame


def load(folder: Path) -> Claims:
    """Read a study of claims.

    Raises
    ------
    ResultError
        There is none, or a claim is not understood.
    ScenarioError
        One of its scenarios is not valid.
    """
    try:
        expected = pl.read_csv(folder / FILE, schema=EXPECTED, comment_prefix="#")
    except (OSError, pl.exceptions.PolarsError) as error:
        message = f"{folder} is no study of claims: {error}"
        raise _core.ResultError(message) from None
    slides = folder / "slides.csv"
    printed = (
        pl.read_csv(slides, schema=PRINTED, comment_prefix="#")
        if slides.is_file()
        else pl.DataFrame(schema=PRINTED)
    )
    names = expected["scenario"].unique(maintain_order=True).to_list()
    return Claims(
        name=folder.name,
        scenarios={name: Scenario.from_file(folder / f"{name}.toml") for name in names},
        expected=expected,
        printed=printed,
    )


def judged(claims: Claims, scenario: str, result: Result) -> pl.DataFrame:
    """Judge the claims on a scenario.

    Parameters
    ----------
    claims
        The study.
    scenario
        Which of its scenarios.
    result
        What running it gave.

    Returns
    -------
    polars.DataFrame
        The claims, with ``mean``, ``low`` and ``high`` of the arm, ``reference_mean``,
        ``reference_low`` and ``reference_high``, and ``met``: null where something has no value.
    """
    on = ["arm", "group", "metric"]
    measured = result.group_summary().select(*on, "mean", "low", "high")
    other = measured.rename(
        {"arm": "reference", **{key: f"reference_{key}" for key in ("mean", "low", "high")}}
    )
    rows = (
        claims.expected.filter(pl.col("scenario") == scenario)
        .join(measured, on=on, how="left", maintain_order="left")
        .join(other, on=["reference", "group", "metric"], how="left", maintain_order="left")
    )
    apart = pl.col("high").fill_null(pl.col("mean")) < pl.col("reference_low").fill_null(
        pl.col("reference_mean")
    )
    ratio = pl.col("mean") / pl.col("reference_mean")
    relation = pl.col("relation").cast(pl.String)
    return rows.with_columns(
        met=pl.when(relation == "below")
        .then(apart)
        .when(relation == "at_least")
        .then(pl.col("mean") >= pl.col("value"))
        .otherwise((ratio > 1) == (pl.col("value") > 1))
    )


def audited(printed: pl.DataFrame) -> pl.DataFrame:
    """Find out what printed percentages are percentages of.

    Parameters
    ----------
    printed
        Numbers with the percentage beside them.

    Returns
    -------
    polars.DataFrame
        One row a percentage: ``load``, ``metric``, ``printed``, ``against`` (the baselines of which
        it is the change, with their own value or FLOQ's as divisor; empty if of none) and
        ``change_codel``, ``change_pie``, ``change_fifo``: the change in percent of the baseline.

    Examples
    --------
    >>> numbers = {"load": "a", "metric": "b", "floq": 2.0, "codel": 1.0, "pie": 4.0, "fifo": 3.0}
    >>> audited(pl.DataFrame([{**numbers, "printed": 50.0}]))["against"].to_list()
    ["codel, of FLOQ's value"]
    """
    return pl.DataFrame(
        [_audit(row) for row in printed.drop_nulls("printed").iter_rows(named=True)],
        schema={
            "load": pl.String,
            "metric": pl.String,
            "printed": pl.Float64,
            "against": pl.String,
            "change_codel": pl.Float64,
            "change_pie": pl.Float64,
            "change_fifo": pl.Float64,
        },
    )


def _audit(row: dict[str, Any]) -> dict[str, Any]:
    own, against, changes = row["floq"], [], {}
    for name in ("codel", "pie", "fifo"):
        gained = own - row[name]
        changes[f"change_{name}"] = gained / row[name] * 100
        for divisor, words in ((row[name], name), (own, f"{name}, of FLOQ's value")):
            if abs(gained / divisor * 100 - row["printed"]) < _ROUNDING:
                against.append(words)
    return {
        "load": row["load"],
        "metric": row["metric"],
        "printed": row["printed"],
        "against": "; ".join(against),
        **changes,
    }
