"""``sojourn reproduce`` for a study with published numbers: measured and published values."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from sojourn.cli import study_runs
from sojourn.cli.session import judged, say
from sojourn.cli.tables import print_table
from sojourn.result import Result, derived, formatting
from sojourn.result.catalogue import described
from sojourn.result.metrics import metrics_of
from sojourn.studies import study as studies
from sojourn.studies.study import Study

# Differences below this are shown to a tenth of a percent.
EXACT_BELOW_PERCENT = 10.0
_NOTE = (
    "measured: mean over n runs ± half the width of its 95 % bootstrap interval; published: value "
    "taken from the publication.\n"
    "A value is within a margin if it differs from the published value by at most that margin, or "
    "if its interval, widened by the error of reading values from the figure, contains the "
    "published value. The Linux column was measured on a real kernel; linux.csv of the study "
    "describes the setup."
)


def execute(
    study: Study,
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
    """Run every scenario of a study, compare, save results, reports and figures."""
    folder = out or Path("results") / study.name
    comparisons, code = {}, 0
    runs = study_runs.results(
        study.scenarios,
        folder,
        replications=replications,
        jobs=jobs,
        max_memory=max_memory,
        force=force,
        resume=resume,
        keep=partial(_draw, study.figure),
    )
    for key, result in runs:
        code = code or judged([result], strict=strict)
        comparisons[key] = studies.compared(study, key, result)
        if not as_json:
            _show(study, result, comparisons[key])
    if as_json:
        print(json.dumps({key: table.to_dicts() for key, table in comparisons.items()}, indent=2))
    else:
        print(_NOTE)
        print(verdict(study, comparisons))
    for key in comparisons:
        place = folder / key
        figure = _figure(place, study.figure)
        say(f"wrote report to {place / 'report.html'} and figure to {figure}")
    return code


def _draw(figure: studies.Figure, result: Result, folder: Path) -> None:
    from sojourn.plot import figures  # noqa: PLC0415 - the other commands start without matplotlib

    draw = {"ellipse": figures.plot_ellipse, "series": figures.plot_series}[figure]
    place = derived.inside(folder, _figure(folder, figure).name)
    figures.save(draw(result), place, result)


def _figure(folder: Path, figure: studies.Figure) -> Path:
    return folder / f"{figure}.png"


def _show(study: Study, result: Result, comparison: pl.DataFrame) -> None:
    known = {metric.column: metric for metric in metrics_of(studies.per_run(result))}
    rows = []
    for row in comparison.iter_rows(named=True):
        metric = known[row["metric"]]
        rows.append(
            [
                row["arm"],
                metric.heading,
                str(row["n"]),
                formatting.estimate(row["mean"], row["low"], row["high"], metric),
                f"{row['published']:g}",
                _percent(row["difference_percent"]),
                "–" if row["linux"] is None else f"{row['linux']:g}",
            ]
        )
    head = ["arm", "metric", "n", "measured", "published", "difference", "Linux 6.1"]
    if comparison["linux"].is_null().all():
        head, rows = head[:-1], [row[:-1] for row in rows]
    print_table(head, rows, title=result.scenario.checked.name, words=2)
    if studies.order(comparison, study.order).pairs:
        print(_order_line(study, comparison, known[study.order].label))
        print()


def _percent(value: float | None) -> str:
    """Write a difference in percent; a value that rounds to 0 has no sign."""
    if value is None:
        return "–"
    digits = 1 if abs(value) < EXACT_BELOW_PERCENT else 0
    return f"{value:+.{digits}f} %" if round(value, digits) else "0 %"


def _order_line(study: Study, comparison: pl.DataFrame, label: str) -> str:
    found = studies.order(comparison, study.order)
    line = f"order of {label}: {found.kept} of {found.pairs} pairs as published"
    if found.exchanged:
        pairs = ", ".join(f"{worse} is better than {better}" for better, worse in found.exchanged)
        line += f" (here {pairs})"
    return line


def verdict(study: Study, comparisons: dict[str, pl.DataFrame]) -> str:
    """Count the values of a study that are within their margin, and list the others."""
    together = pl.concat(comparisons.values())
    kinds = [(margin, studies.judged(together, margin)) for margin in study.margins]
    orders = [studies.order(comparison, study.order) for comparison in comparisons.values()]
    kept, pairs = sum(one.kept for one in orders), sum(one.pairs for one in orders)
    counts = "; ".join(
        f"{margin.kind} {rows['near'].sum()} of {rows.height} within {margin}"
        for margin, rows in kinds
    )
    lines = [
        f"outside the margin: {_beyond(row, margin)}"
        for margin, rows in kinds
        for row in rows.filter(~pl.col("near")).iter_rows(named=True)
    ]
    (ordered,) = described([study.order])
    lines.append(
        f"verdict on {study.name}: {counts}; order of {ordered.label}: {kept} of {pairs} pairs as "
        "published"
    )
    return "\n".join(lines)


def _beyond(row: dict[str, Any], margin: studies.Margin) -> str:
    percent = margin.unit == "percent"
    off = row["difference_percent"] if percent else row["mean"] - row["published"]
    words = f"{row['scenario']} {row['arm']} {row['metric']} {off:+.1f}{' %' if percent else ''}"
    if row["linux"] is None:
        return words
    kernel = (row["linux"] - row["published"]) / row["published"] * 100
    return f"{words}; Linux 6.1 {kernel:+.1f} %"
