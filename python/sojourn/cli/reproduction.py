"""``sojourn reproduce``: a published study measured again, number beside number."""

import json
from pathlib import Path
from typing import Any

import polars as pl
from rich.console import Console

from sojourn import _core, wording
from sojourn import report as reports
from sojourn import study as studies
from sojourn.cli.session import INTERRUPTED, progress_bar
from sojourn.cli.tables import print_table
from sojourn.metrics import metrics_of
from sojourn.result import Result, run
from sojourn.storage import claim_folder
from sojourn.study import Study

# What counts as near: goodput is bounded by the link and hardly varies between set-ups; latency
# and fairness depend on details of the testbed.
GOODPUT_PERCENT = 3.0
LATENCY_PERCENT = 25.0
FAIRNESS_PERCENT = 10.0
FIGURE = "ellipse.png"
_NOTE = (
    "measured: mean ±half the 95 % bootstrap interval of the mean over n runs; published: as read "
    "off the study\n"
    "within a margin counts what is so near to the published number, or holds it in its interval "
    "widened by the error of that reading; a column of a kernel is that kernel itself, in a set-up "
    "that differs as the study's linux.csv says"
)


def execute(
    name: str,
    *,
    replications: int | None,
    jobs: int | None,
    out: Path | None,
    papers: Path | None,
    as_json: bool,
) -> int:
    """Run every scenario of a study, compare, save results, reports and figures."""
    study = _study(name, papers)
    folder = claim_folder_tree(out or Path("results") / name, list(study.scenarios))
    said = Console(stderr=True, soft_wrap=True, highlight=False)
    comparisons = {}
    for key, scenario in study.scenarios.items():
        chosen = scenario if replications is None else scenario.replace(replications=replications)
        with progress_bar() as progress:
            result = run(chosen, jobs=jobs, progress=progress)
        if result.finished:
            _keep(result, folder / key)
        if not result.complete:
            where = f"in {folder / key}" if result.finished else "(nothing to save)"
            text = f"interrupted: kept {result.finished} of {result.total} runs of {key} {where}"
            said.print(text, markup=False)
            return INTERRUPTED
        comparisons[key] = studies.compared(study, key, result)
        if not as_json:
            _show(result, comparisons[key])
    if as_json:
        print(json.dumps({key: table.to_dicts() for key, table in comparisons.items()}, indent=2))
    else:
        print(_NOTE)
        print(verdict(study, comparisons))
    for key in comparisons:
        place = folder / key
        said.print(f"report in {place / 'report.html'}, figure in {place / FIGURE}", markup=False)
    return 0


def _study(name: str, papers: Path | None) -> Study:
    folder = studies.studies_folder(papers)
    if not (folder / name / "published.csv").is_file():
        known = sorted(path.parent.name for path in folder.glob("*/published.csv"))
        if not known:
            message = f"no studies in {folder}: no folder in it holds a published.csv"
            raise _core.ResultError(message)
        message = f"there is no study {name!r}; there are: {', '.join(known)}"
        raise _core.ScenarioError(message)
    return studies.load(folder / name)


def claim_folder_tree(folder: Path, names: list[str]) -> Path:
    """Claim a folder for each scenario of a study."""
    for name in names:
        claim_folder(folder / name)
    return folder


def _keep(result: Result, folder: Path) -> None:
    from sojourn import figures  # noqa: PLC0415 - the other commands start without matplotlib

    result.save(folder)
    reports.write(result, folder / "report.html")
    figures.save(figures.plot_ellipse(result), folder / FIGURE, result)


def _show(result: Result, comparison: pl.DataFrame) -> None:
    described = {metric.column: metric for metric in metrics_of(result.per_run)}
    rows = []
    for row in comparison.iter_rows(named=True):
        metric = described[row["metric"]]
        rows.append(
            [
                row["arm"],
                metric.heading,
                str(row["n"]),
                wording.estimate(row["mean"], row["low"], row["high"], metric),
                f"{row['published']:g}",
                _percent(row["difference_percent"]),
                "–" if row["linux"] is None else f"{row['linux']:g}",
            ]
        )
    head = ["arm", "metric", "n", "measured", "published", "difference", "Linux 6.1"]
    if comparison["linux"].is_null().all():
        head, rows = head[:-1], [row[:-1] for row in rows]
    print_table(head, rows, title=result.scenario.checked.name, words=2)
    if studies.order(comparison).pairs:
        print(_order_line(comparison))
        print()


def _percent(value: float | None) -> str:
    """Write a difference in percent; what rounds to 0 has no sign."""
    if value is None:
        return "–"
    return f"{value:+.0f} %" if round(value) else "0 %"


def _order_line(comparison: pl.DataFrame) -> str:
    found = studies.order(comparison)
    line = f"order of induced latency: {found.kept} of {found.pairs} pairs as published"
    if found.exchanged:
        pairs = ", ".join(f"{worse} is below {better}" for better, worse in found.exchanged)
        line += f" (here {pairs})"
    return line


def verdict(study: Study, comparisons: dict[str, pl.DataFrame]) -> str:
    """Say how much of a study was found again, and what was not."""
    together = pl.concat(comparisons.values())
    kinds = {
        "goodput": studies.judged(together, "goodput_", GOODPUT_PERCENT),
        "induced latency": studies.judged(together, "induced_latency_ms", LATENCY_PERCENT),
        "fairness": studies.judged(together, "jain_", FAIRNESS_PERCENT),
    }
    margins = [GOODPUT_PERCENT, LATENCY_PERCENT, FAIRNESS_PERCENT]
    orders = [studies.order(comparison) for comparison in comparisons.values()]
    kept, pairs = sum(one.kept for one in orders), sum(one.pairs for one in orders)
    counts = "; ".join(
        f"{kind} {rows['near'].sum()} of {rows.height} within {margin:g} %"
        for (kind, rows), margin in zip(kinds.items(), margins, strict=True)
    )
    lines = [
        f"beyond the margin: {_beyond(row)}"
        for rows in kinds.values()
        for row in rows.filter(~pl.col("near")).iter_rows(named=True)
    ]
    lines.append(
        f"verdict on {study.name}: {counts}; "
        f"order of induced latency {kept} of {pairs} pairs as published"
    )
    return "\n".join(lines)


def _beyond(row: dict[str, Any]) -> str:
    words = f"{row['scenario']} {row['arm']} {row['metric']} {row['difference_percent']:+.1f} %"
    if row["linux"] is None:
        return words
    kernel = (row["linux"] - row["published"]) / row["published"] * 100
    return f"{words}; Linux 6.1 itself {kernel:+.1f} %"
