"""Print sweeps as tables and as JSON."""

import json
from collections.abc import Sequence
from typing import Any

from sojourn.cli.tables import print_note, print_table
from sojourn.expectations.judging import Judgement
from sojourn.result import formatting
from sojourn.result.catalogue import Metric
from sojourn.result.naming import described
from sojourn.sweeps import SweepResult
from sojourn.sweeps.estimates import KEYS, main_metrics
from sojourn.sweeps.run import PreparedSweep

# Rows that are printed without --all.
MAX_ROWS = 60


def show(
    result: SweepResult,
    *,
    as_json: bool,
    everything: bool,
    metrics: Sequence[str] | None,
    judgements: Sequence[Judgement] = (),
) -> None:
    """Print the points of a sweep with their metrics."""
    columns = [result.column(name) for name in metrics] if metrics else result.metrics
    if as_json:
        expected = {"expectations": [one.document() for one in judgements]} if judgements else {}
        print(json.dumps({**document(result, columns), **expected}, indent=2))
        return
    found = described(columns) if metrics or everything else main_metrics(columns)
    several = len(result.arms) > 1
    head = [*result.parameters, *(["arm"] if several else []), "n"]
    words = len(head) - 1
    count = result.runs.select(KEYS).n_unique()
    shown = result.first_points(
        count if everything else MAX_ROWS, [metric.column for metric in found]
    )
    rows = [
        [
            *(f"{row[path]}" for path in result.parameters),
            *([row["arm"]] if several else []),
            f"{row['n']}",
            *(_estimate(row, one) for one in found),
        ]
        for row in shown.iter_rows(named=True)
    ]
    title = f"{result.scenario.checked.name}: mean ± half of the 95 % interval"
    print_table([*head, *(one.heading for one in found)], rows, title=title, words=words)
    if len(rows) < count:
        print_note(f"{count - len(rows)} more rows; --all prints them")


def show_points(planned: PreparedSweep) -> None:
    """Print the points of a sweep that was not executed."""
    paths = planned.space.paths
    rows = [[f"{point.values[path]}" for path in paths] for point in planned.points[:MAX_ROWS]]
    name = planned.scenario.checked.name
    print_table(paths, rows, title=f"{name}: points", words=len(paths))
    if len(rows) < len(planned.points):
        print_note(f"{len(planned.points) - len(rows)} more points; --json prints them")


def document(result: SweepResult, columns: Sequence[str]) -> dict[str, Any]:
    """Describe a sweep as JSON: each point with the estimates of its metrics."""
    points = [
        {
            "point": row["point"],
            "values": {path: row[path] for path in result.parameters},
            "arm": row["arm"],
            "n": row["n"],
            "metrics": {
                name: {"mean": row[name], "low": row[f"{name}_low"], "high": row[f"{name}_high"]}
                for name in columns
            },
        }
        for row in result.points.iter_rows(named=True)
    ]
    keys = ("sojourn", "scenario_sha256", "paths", "space", "until", "complete")
    return {**{key: result.manifest[key] for key in keys}, "points": points}


def _estimate(row: dict[str, Any], metric: Metric) -> str:
    name = metric.column
    return formatting.estimate(row[name], row[f"{name}_low"], row[f"{name}_high"], metric)
