"""HTML reports on sweeps: best points, differences, small multiples, heat maps and tables."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from sojourn import _core, report
from sojourn.arguments import checked
from sojourn.presentation import html as writer
from sojourn.presentation.model import (
    Block,
    Code,
    Columns,
    Document,
    Estimate,
    Keyed,
    Legend,
    Note,
    Paragraph,
    Section,
    Styled,
    Table,
    Text,
    facts,
    quiet,
)
from sojourn.report import page as pages
from sojourn.report.view import heading
from sojourn.result import Result, derived_files, formatting
from sojourn.result.catalogue import Metric
from sojourn.sweeps import comparisons, panels
from sojourn.sweeps.estimates import main_metrics
from sojourn.sweeps.result import SweepResult

# Most rows of the table of all points, and of best points. `points.parquet` has all points.
_MOST_ROWS = 2000
_BEST = 10
# Most listed values of a parameter.
_MOST_VALUES = 40
# Whether larger or smaller is better, by unit: larger rates, smaller times; else neither.
_LARGEST = {"Mbit/s": True, "ms": False}
_WORDS = {True: "yes", False: "no", None: "–"}


def html(result: SweepResult) -> str:
    """Write a report."""
    metrics = main_metrics(result.metrics)
    of = panels.layout(result)
    what, lines = panels.legend(result, of)
    digest = result.manifest_sha256
    stopped = "The sweep was interrupted: points and replications are missing."
    document = Document(
        title=result.scenario.checked.name,
        head=[Paragraph(_subtitle(result), quiet=True)],
        content=[
            *([] if result.complete else [Note("Incomplete", [Paragraph(stopped)])]),
            Section("Best points", _best(result, metrics)),
            *([Legend(lines, what)] if lines else []),
            *(_figures(result, metric, of, lines or [""]) for metric in metrics),
            *_differences(result, metrics),
            _points(result, metrics),
            _provenance(result),
        ],
        names=lines or [""],
        meta={} if digest is None else {"sojourn-manifest": digest},
        is_sortable=True,
    )
    return writer.page(document)


def write(result: SweepResult, path: str | Path) -> None:
    """Write a report to a file."""
    if result.runs.is_empty():
        message = "no run of the sweep has finished; a report requires at least one"
        raise _core.ResultError(message)
    pages.save(html(result), path, result.manifest_sha256)


def _subtitle(result: SweepResult) -> str:
    points = formatting.counted(result.manifest["points"], "point")
    arms = f", {formatting.counted(len(result.arms), 'arm')}" if len(result.arms) > 1 else ""
    runs = formatting.counted(result.runs.height, "run")
    checked = result.scenario.checked
    return (
        f"Sweep of {', '.join(result.parameters)}: {points}{arms}, {runs} of "
        f"{checked.duration_s:g} s, measured from {checked.warmup_s:g} s."
    )


def _figures(
    result: SweepResult, metric: Metric, of: panels.Layout, lines: Sequence[str]
) -> Section:
    curves, more = panels.multiples(result, metric, of)
    maps, more_maps = panels.heat_maps(result, metric, of)
    note = f"Points are means over runs; bars are their 95 % {result.interval}s."
    if of.sampled:
        note = "Each dot is the mean of a sample over its runs."
    hidden = [
        formatting.counted(number, what)
        for number, what in ((more, "panel"), (more_maps, "heat map"))
        if number
    ]
    if hidden:
        left = " and ".join(hidden)
        note += f" Not shown: {left}; SweepResult.lines and heatmap draw any of them."
    title = f"{metric.label[0].upper()}{metric.label[1:]}"
    return pages.figures(title, [*curves, *maps], lines, note)


def _best(result: SweepResult, metrics: Sequence[Metric]) -> list[Block]:
    """Write the best points of each metric for which larger or smaller is better."""
    count = result.points.height
    parts: list[Block] = []
    for metric in metrics:
        largest = _LARGEST.get(metric.unit)
        if largest is None or count == 1:
            continue
        table = result.best(metric.column, largest=largest, count=_BEST)
        if table.is_empty():
            continue
        names = metric.column, "difference"
        means, changes = (_estimates(table, name, metric.digits) for name in names)
        rows = [
            [*_place(result, row), mean, replace(change, signed=True), _WORDS[row["may_be_best"]]]
            for row, mean, change in zip(table.iter_rows(named=True), means, changes, strict=True)
        ]
        columns = [*_headings(result), heading(metric), "difference from the first"]
        title = f"Points with the {'largest' if largest else 'smallest'} {metric.label}"
        parts.append(Section(title, [_sortable([*columns, "may be the best"], rows, title)]))
    note = (
        "Differences are paired by replication. Their intervals are those of Bonferroni for all "
        f"pairs of {count} points and arms: all of them are correct with a probability of at least "
        "95 %. With the same probability, the best point is among those that may be the best, "
        "which no other point exceeds in a one-sided test (Edwards and Hsu, 1983); the table may "
        "not show all of them."
    )
    return [*parts, *quiet(note)] if parts else []


def _sortable(columns: Columns, rows: Sequence[Sequence[Text]], title: str) -> Table:
    return Table(columns, rows, title, kind="sortable")


def _differences(result: SweepResult, metrics: Sequence[Metric]) -> list[Section]:
    """Write the paired differences of arms from the first one at each point."""
    baseline, *others = result.arms
    if not others:
        return []
    columns = [metric.column for metric in metrics]
    keys = ["point", *result.parameters, "replication"]
    first = result.runs.filter(pl.col("arm") == baseline).select("point", "replication", *columns)
    rows, samples = [], []
    for arm in others:
        own = result.runs.filter(pl.col("arm") == arm).select(*keys, *columns)
        pairs = own.join(first, on=["point", "replication"], suffix="_first", how="inner")
        for _, of_point in pairs.group_by("point", maintain_order=True):
            rows.append(of_point.row(0, named=True) | {"arm": arm, "n": of_point.height})
            for name in columns:
                difference = of_point[name] - of_point[f"{name}_first"]
                samples.append(difference.drop_nulls().to_list())
    found = comparisons.selected(samples)
    count = sum(one.significant is not None for one in found)
    chosen = sum(bool(one.significant) for one in found)
    width = max(len(columns), 1)
    changes = []
    for column, metric in enumerate(metrics):
        of = found[column::width]
        places = _decimals(((one.low, one.high) for one in of), metric.digits)
        changes.append(
            [
                Estimate(one.mean, one.low, one.high, places, signed=True, clear=one.significant)
                for one in of
            ]
        )
    cells = [
        [*_place(result, row), *(column[place] for column in changes)]
        for place, row in enumerate(rows[:_MOST_ROWS])
    ]
    title = f"Difference from {baseline}"
    note = (
        f"Means of paired differences. * marks {chosen} of {count} differences, selected so that "
        f"at most 5 % of the marked ones, {comparisons.ERRORS * chosen:.1f}, are expected to be "
        "wrong (Benjamini and Hochberg, 1995); the intervals are adjusted accordingly (Benjamini "
        "and Yekutieli, 2005). If all differences were really zero, "
        f"unadjusted 95 % intervals would mark about {comparisons.ERRORS * count:.1f} of them."
    )
    table = _sortable([*_headings(result), *map(heading, metrics)], cells, title)
    return [Section(title, [table, *quiet(f"{note}{_cut(len(rows))}")])]


def _points(result: SweepResult, metrics: Sequence[Metric]) -> Section:
    """Write the means of all points."""
    table = result.points.head(_MOST_ROWS)
    means = [_estimates(table, metric.column, metric.digits) for metric in metrics]
    rows = [
        [*_place(result, row), *(column[place] for column in means)]
        for place, row in enumerate(table.iter_rows(named=True))
    ]
    note = (
        f"Means over n runs; below each, its own 95 % {result.interval}. Click a heading to sort "
        "the table (requires scripts)."
    )
    title = "All points"
    written = _sortable([*_headings(result), *map(heading, metrics)], rows, title)
    return Section(title, [written, *quiet(f"{note}{_cut(result.points.height)}")])


def _cut(rows: int) -> str:
    """State how many rows a table omits."""
    more = rows - _MOST_ROWS
    return f" {more} more rows are in points.parquet." if more > 0 else ""


def _headings(result: SweepResult) -> Columns:
    several = len(result.arms) > 1
    return [*result.parameters, *(["arm"] if several else []), "n"]


def _place(result: SweepResult, row: dict[str, Any]) -> list[Text]:
    """Write the cells of a row before its metrics."""
    values = [Keyed(f"{row[path]}", panels.sort_key(row[path])) for path in result.parameters]
    arm = [row["arm"]] if len(result.arms) > 1 else []
    return [*values, *arm, Keyed(f"{row['n']}", row["n"])]


def _decimals(intervals: Iterable[tuple[float | None, float | None]], most: int) -> int:
    """Return the digits of a column: those of its narrowest interval, at most `most`."""
    halves = [
        (high - low) / 2.0
        for low, high in intervals
        if low is not None and high is not None and high > low
    ]
    return min(max(map(formatting.decimals, halves), default=most), most)


def _estimates(table: pl.DataFrame, name: str, most: int) -> list[Estimate]:
    """Return the values of a column with their intervals, in equal digits."""
    found = list(
        zip(*(table[f"{name}{end}"].to_list() for end in ("", "_low", "_high")), strict=True)
    )
    places = _decimals(((low, high) for _, low, high in found), most)
    return [Estimate(mean, low, high, places) for mean, low, high in found]


def _listed(values: Sequence[Any]) -> str:
    """Write the values of a parameter; those of parameters that change together with / between."""
    texts = [
        "/".join(f"{part}" for part in value) if isinstance(value, list) else f"{value}"
        for value in values
    ]
    if len(texts) > _MOST_VALUES:
        return f"{', '.join(texts[:_MOST_VALUES])}, … ({len(texts)} values)"
    return ", ".join(texts)


def _provenance(result: SweepResult) -> Section:
    manifest, space = result.manifest, result.manifest["space"]
    until = manifest["until"]
    rows = [
        ("Sojourn", f"{manifest['sojourn']['version']} ({manifest['sojourn']['commit']})"),
        ("seed", f"{result.scenario.seed}"),
        ("scenario SHA-256", manifest["scenario_sha256"]),
        ("replications", f"{manifest['replications']}"),
        *([("until", f"{until}, at most {manifest['most']}")] if until else []),
        *((paths, _listed(values)) for paths, values in space["parameters"].items()),
        *(("condition", condition) for condition in space["where"]),
        *([("samples", space["sample"])] if space["sample"] else []),
    ]
    depends = (
        "A run depends only on the scenario with the values of its point, the seed and the "
        "version. A sweep keeps only the metrics of its runs and has no validity findings; "
    )
    code = Styled("sojourn run", "code")
    said: Text = [depends, code, " with the values of a point reports them."]
    scenario = Section("Scenario", [Code(result.scenario.to_toml())], folded=True)
    return Section("Provenance", [facts(rows), Paragraph(said), scenario])


@checked
def write_report(result: Result | SweepResult, path: str | Path) -> None:
    """Write an HTML report on a result or a sweep.

    Parameters
    ----------
    result
        The result or the sweep, with at least one finished run.
    path
        The file, such as ``report.html``; its directory is created if needed, with its parents. A
        report of this name is replaced.

    Raises
    ------
    ResultError
        No run has finished, or the file cannot be written, or exists and is not a report.
    ArgumentError
        An argument has another type.

    Examples
    --------
    >>> import tempfile
    >>> import sojourn as sj
    >>> links = {side: sj.Link(rate="2mbit", qdisc="codel") for side in ("up", "down")}
    >>> ping = sj.Ping(direction="up", interval="100ms")
    >>> scenario = sj.Scenario(links=links, traffic=[ping], rtt="50ms", duration="4s")
    >>> swept = sj.sweep(scenario, {"rtt": ["20ms", "50ms"]})
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     sj.write_report(swept, f"{directory}/report.html")
    """
    if isinstance(result, SweepResult):
        with derived_files.claimed(path):
            write(result, path)
        return
    if not result.finished:
        message = "no run of the result has finished; a report requires at least one"
        raise _core.ResultError(message)
    with derived_files.claimed(path):
        report.write(result, path)
