"""Determines the base of published percentages.

A study whose publication prints percentages beside numbers may keep both in ``slides.csv``, with
the columns ``load``, ``metric``, ``floq`` (the value of the queue that is advertised), ``codel``,
``pie``, ``fifo`` and ``printed``.
"""

from pathlib import Path
from typing import Any

import polars as pl

FILE = "slides.csv"
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


def load(folder: Path) -> pl.DataFrame:
    """Read the printed numbers of the study in `folder`; empty if it has none."""
    path = folder / FILE
    if not path.is_file():
        return pl.DataFrame(schema=PRINTED)
    return pl.read_csv(path, schema=PRINTED, comment_prefix="#")


def audited(printed: pl.DataFrame) -> pl.DataFrame:
    """Find the baselines to which printed percentages refer.

    Parameters
    ----------
    printed
        Numbers with the printed percentage.

    Returns
    -------
    polars.DataFrame
        One row per percentage: ``load``, ``metric``, ``printed``, ``against`` (the
        matching baselines, divided by their own value or by FLOQ's; empty if none matches) and
        ``change_codel``, ``change_pie``, ``change_fifo``: the change in percent of the baseline.

    Examples
    --------
    >>> numbers = {"load": "a", "metric": "b", "floq": 2.0, "codel": 1.0, "pie": 4.0, "fifo": 3.0}
    >>> audited(pl.DataFrame([{**numbers, "printed": 50.0}]))["against"].to_list()
    ["codel, as a share of FLOQ's value"]
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
        for divisor, words in ((row[name], name), (own, f"{name}, as a share of FLOQ's value")):
            if abs(gained / divisor * 100 - row["printed"]) < _ROUNDING:
                against.append(words)
    return {
        "load": row["load"],
        "metric": row["metric"],
        "printed": row["printed"],
        "against": "; ".join(against),
        **changes,
    }
