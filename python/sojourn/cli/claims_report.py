"""``sojourn reproduce`` for a study with claims: which claims hold."""

import json
from pathlib import Path
from typing import Any

import polars as pl

from sojourn.cli import study_runs
from sojourn.cli.session import judged, say
from sojourn.cli.tables import print_estimates, print_table
from sojourn.result import Result, formatting
from sojourn.studies import audit
from sojourn.studies import claims as claiming

_NOTE = (
    "measured: mean over the runs ± half the width of its 95 % bootstrap interval; below: the "
    "interval lies entirely below that of the reference; ratio to an arm: ratio of the means; on "
    "the same side of 1 as a number: both above 1 or both below 1"
)
_WORDS = {"at_least": "at least", "at_most": "at most", "same_side": "on the same side of 1 as"}
_OF_RUNS = {metric.column: metric for metric in claiming.RUN_METRICS}
_OF_GROUPS = {metric.column: metric for metric in claiming.GROUP_METRICS}


def execute(
    folder: Path,
    *,
    replications: int | None,
    jobs: int | None,
    max_memory: str | None,
    out: Path | None,
    force: bool,
    as_json: bool,
    strict: bool,
    resume: bool,
) -> int:
    """Run every scenario of the study in `folder`, check its claims, save results and reports."""
    study = claiming.load(folder)
    kept = out or Path("results") / study.name
    measured, checked, code = {}, [], 0
    runs = study_runs.results(
        study.scenarios,
        kept,
        replications=replications,
        jobs=jobs,
        max_memory=max_memory,
        force=force,
        resume=resume,
    )
    for key, result in runs:
        code = code or judged([result], strict=strict)
        measured[key] = claiming.quantities(result)
        checked.append(claiming.checked(study.claims, key, measured[key]))
        if not as_json:
            _show(result, measured[key])
    claims = pl.concat(checked)
    percentages = audit.audited(audit.load(folder))
    if as_json:
        document = {
            "measured": {key: table.to_dicts() for key, table in measured.items()},
            "claims": claims.to_dicts(),
            "audit": percentages.to_dicts(),
        }
        print(json.dumps(document, indent=2))
    else:
        _show_claims(claims)
        _show_audit(percentages)
        print(_NOTE)
        print(verdict(study.name, claims))
    for key in measured:
        say(f"wrote report to {kept / key / 'report.html'}")
    return code


def _show(result: Result, measured: pl.DataFrame) -> None:
    title = result.scenario.checked.name
    measured = measured.rename({"quantity": "metric"})
    whole = measured.filter(pl.col("group").is_null())
    print_estimates(whole, claiming.RUN_METRICS, arms=result.arms, title=title)
    for group in measured["group"].drop_nulls().unique(maintain_order=True):
        of_group = measured.filter(group=group)
        metrics = claiming.GROUP_METRICS
        print_estimates(of_group, metrics, arms=result.arms, title=f"{title}: {group}")


def _show_claims(claims: pl.DataFrame) -> None:
    rows = [_claim(row) for row in claims.iter_rows(named=True)]
    head = ["target", "load", "arm", "quantity", "claim", "measured", "reference", "holds"]
    print_table(head, rows, title="claims", words=5)


def _claim(row: dict[str, Any]) -> list[str]:
    """Write a claim and the measured value as a line of the table."""
    metric = (_OF_RUNS if row["group"] is None else _OF_GROUPS)[row["quantity"]]
    own = formatting.estimate(row["mean"], row["low"], row["high"], metric)
    reference, mean, other = row["reference"], row["mean"], row["reference_mean"]
    against = ""
    if row["relation"] == "below":
        bounds = (row["reference_low"], row["reference_high"])
        against = formatting.estimate(other, *bounds, metric)
        stated = f"below {reference}"
    else:
        stated = f"{_WORDS[row['relation']]} {row['value']:g}"
        if reference is not None:
            stated = f"ratio to {reference} {stated}"
            ratio = mean / other if mean is not None and other else None
            own = "–" if ratio is None else f"{ratio:.3g}"
    name = metric.heading if row["group"] is None else f"{row['group']}: {metric.heading}"
    met = {None: "–", True: "yes", False: "no"}[row["met"]]
    return [
        row["target"],
        row["scenario"],
        row["arm"],
        name,
        stated,
        own,
        against,
        met,
    ]


def _show_audit(percentages: pl.DataFrame) -> None:
    if percentages.is_empty():
        return
    rows = [
        [
            row["load"],
            row["metric"],
            f"{row['printed']:+.2f} %",
            row["against"] or "none",
            *(f"{row[f'change_{name}']:+.1f} %" for name in ("codel", "pie", "fifo")),
        ]
        for row in percentages.iter_rows(named=True)
    ]
    head = ["load", "metric", "published", "change relative to", "codel", "pie", "fifo"]
    print_table(
        head,
        rows,
        title="published percentages and the change relative to each baseline",
        words=4,
    )


def verdict(name: str, claims: pl.DataFrame) -> str:
    """Count the claims that hold, by target and by arm."""
    by = [
        ", ".join(
            f"{key} {rows['met'].sum()} of {rows.height}"
            for (key,), rows in claims.group_by(column, maintain_order=True)
        )
        for column in ("target", "arm")
    ]
    met = f"{claims['met'].sum()} of {claims.height} claims hold"
    return f"verdict on {name}: {met}; by target: {by[0]}; by arm: {by[1]}"
