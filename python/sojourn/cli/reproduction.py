"""``sojourn reproduce``: a published study measured again, number beside number."""

import json
from pathlib import Path

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
GOODPUT_PERCENT = 5.0
LATENCY_PERCENT = 25.0
FAIRNESS_PERCENT = 10.0


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
            text = (
                f"interrupted: kept {result.finished} of {result.total} runs of {key} "
                f"in {folder / key}"
            )
            said.print(text, markup=False)
            return INTERRUPTED
        comparisons[key] = studies.compared(study, key, result)
        if not as_json:
            _show(result, comparisons[key])
    if as_json:
        print(json.dumps({key: table.to_dicts() for key, table in comparisons.items()}, indent=2))
    else:
        print(verdict(study, comparisons))
    for key in comparisons:
        said.print(f"report in {folder / key / 'report.html'}", markup=False)
    return 0


def _study(name: str, papers: Path | None) -> Study:
    folder = studies.studies_folder(papers)
    if not (folder / name / "published.csv").is_file():
        known = sorted(path.parent.name for path in folder.glob("*/published.csv"))
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
    figures.save(figures.plot_ellipse(result), folder / "ellipse.png", result)


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
                "–" if row["difference_percent"] is None else f"{row['difference_percent']:+.0f} %",
            ]
        )
    head = ["arm", "metric", "n", "measured", "published", "difference"]
    print_table(head, rows, title=result.scenario.checked.name, words=2)
    if studies.order(comparison).pairs:
        print(_order_line(comparison))
        print()


def _order_line(comparison: pl.DataFrame) -> str:
    found = studies.order(comparison)
    line = f"order of induced latency: {found.kept} of {found.pairs} pairs as published"
    if found.exchanged:
        pairs = ", ".join(f"{worse} is below {better}" for better, worse in found.exchanged)
        line += f" (here {pairs})"
    return line


def verdict(study: Study, comparisons: dict[str, pl.DataFrame]) -> str:
    """Say in one line how much of a study was found again."""
    together = pl.concat(comparisons.values())
    goodput = studies.within(together, "goodput_", GOODPUT_PERCENT)
    latency = studies.within(together, "induced_latency_ms", LATENCY_PERCENT)
    fairness = studies.within(together, "jain_", FAIRNESS_PERCENT)
    orders = [studies.order(comparison) for comparison in comparisons.values()]
    kept, pairs = sum(one.kept for one in orders), sum(one.pairs for one in orders)
    return (
        f"verdict on {study.name}: goodput {goodput[0]} of {goodput[1]} within "
        f"{GOODPUT_PERCENT:g} % of published; induced latency {latency[0]} of {latency[1]} within "
        f"{LATENCY_PERCENT:g} %; fairness {fairness[0]} of {fairness[1]} within "
        f"{FAIRNESS_PERCENT:g} %; order of induced latency {kept} of {pairs} pairs as published"
    )
