"""``sojourn reproduce`` for studies that check claims."""

import json
from pathlib import Path

import polars as pl
from rich.console import Console

from sojourn import groups, targets, wording
from sojourn.cli import scenarios
from sojourn.cli.tables import print_table
from sojourn.result import Result
from sojourn.targets import Claims

_NOTE = (
    "measured: mean ±half the 95 % bootstrap interval of the mean over the runs; below: the two "
    "intervals do not overlap; ratio: of the means, met if it lies on the same side of 1"
)
_METRICS = {metric.column: metric for metric in groups.METRICS}


def execute(
    folder: Path, *, replications: int | None, jobs: int | None, out: Path | None, as_json: bool
) -> int:
    """Run every scenario of a study of claims, judge, save results and reports."""
    claims = targets.load(folder)
    kept = out or Path("results") / claims.name
    judged, summaries = {}, {}
    runs = scenarios.results(claims.scenarios, kept, replications=replications, jobs=jobs)
    for key, result in runs:
        judged[key] = targets.judged(claims, key, result)
        summaries[key] = result.group_summary()
        if not as_json:
            _show(result, summaries[key])
    together = pl.concat(judged.values())
    audit = targets.audited(claims.printed)
    if as_json:
        document = {
            "groups": {key: table.to_dicts() for key, table in summaries.items()},
            "targets": together.to_dicts(),
            "audit": audit.to_dicts(),
        }
        print(json.dumps(document, indent=2))
    else:
        _show_claims(together)
        _show_audit(audit)
        print(_NOTE)
        print(verdict(claims, together, list(summaries)))
    said = Console(stderr=True, soft_wrap=True, highlight=False)
    for key in judged:
        said.print(f"report in {kept / key / 'report.html'}", markup=False)
    return 0


def _show(result: Result, summary: pl.DataFrame) -> None:
    for group in summary["group"].unique(maintain_order=True):
        of_group = summary.filter(pl.col("group") == group)
        present = [name for name in _METRICS if name in of_group["metric"]]
        rows = []
        for arm in result.arms:
            of_arm = of_group.filter(pl.col("arm") == arm)
            found = {row["metric"]: row for row in of_arm.iter_rows(named=True)}
            rows.append([arm, *(_cell(found.get(name), name) for name in present)])
        head = ["arm", *(_METRICS[name].heading for name in present)]
        print_table(head, rows, title=f"{result.scenario.checked.name}: {group}")


def _cell(row: dict[str, float | None] | None, metric: str) -> str:
    if row is None:
        return "–"
    return wording.estimate(row["mean"], row["low"], row["high"], _METRICS[metric])


def _show_claims(judged: pl.DataFrame) -> None:
    rows = []
    for row in judged.iter_rows(named=True):
        metric = _METRICS[row["metric"]]
        own = wording.estimate(row["mean"], row["low"], row["high"], metric)
        other = row["reference_mean"]
        if row["relation"] == "at_least":
            claim, against = f"at least {row['value']:g}", ""
        else:
            claim = f"{row['relation']} {row['reference']}".replace("ratio", "over")
            against = wording.estimate(other, row["reference_low"], row["reference_high"], metric)
        if row["relation"] == "ratio" and other and row["mean"] is not None:
            claim += f" {row['value']:.2f}"
            own = f"{row['mean'] / other:.2f}"
            against = ""
        met = "–" if row["met"] is None else "yes" if row["met"] else "no"
        rows.append(
            [row["target"], row["scenario"], row["arm"], metric.heading, claim, own, against, met]
        )
    head = ["target", "load", "arm", "metric", "claim", "measured", "reference", "met"]
    print_table(head, rows, title="claims", words=5)


def _show_audit(audit: pl.DataFrame) -> None:
    if audit.is_empty():
        return
    rows = [
        [
            row["load"],
            row["metric"],
            f"{row['printed']:+.2f} %",
            row["against"] or "none",
            *(f"{row[f'change_{name}']:+.1f} %" for name in ("codel", "pie", "fifo")),
        ]
        for row in audit.iter_rows(named=True)
    ]
    head = ["load", "metric", "printed", "is the change from", "codel", "pie", "fifo"]
    print_table(head, rows, title="printed percentages, and changes in percent of each", words=4)


def verdict(claims: Claims, judged: pl.DataFrame, scenarios: list[str]) -> str:
    """Say how many claims of each target are met, and that the queue may be a reconstruction."""
    counts = judged.group_by("target", maintain_order=True).agg(
        met=pl.col("met").fill_null(value=False).sum(), claims=pl.len()
    )
    words = "; ".join(
        f"{row['target']} {row['met']} of {row['claims']}" for row in counts.iter_rows(named=True)
    )
    return f"verdict on {claims.name}, reconstructed, in {len(scenarios)} scenarios: {words}"
