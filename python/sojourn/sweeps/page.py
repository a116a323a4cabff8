"""HTML reports on sweeps: best points, differences, small multiples, heat maps and tables."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

import polars as pl

from sojourn import _core, report
from sojourn.arguments import checked
from sojourn.report.page import head, legend_of, section, style_of
from sojourn.report.script import Heading, Value, element, sortable, sorting
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
    name = escape(result.scenario.checked.name)
    digest = result.manifest_sha256
    about = "" if digest is None else f'<meta name="sojourn-manifest" content="{digest}">\n'
    script = sorting()
    metrics = main_metrics(result.metrics)
    of = panels.layout(result)
    what, lines = panels.legend(result, of)
    return f"""{head(f"{name}: sweep", style_of(lines or [""]), about, script)}<body>
<header>
<h1>{name}</h1>
<p class="note">{escape(_subtitle(result))}</p>
</header>
{_incomplete(result)}
{_best(result, metrics)}
{legend_of(lines, what) if lines else ""}
{_figures(result, metrics, of, lines or [""])}
{_differences(result, metrics)}
{_points(result, metrics)}
{_provenance(result)}
{element(script)}
</body>
</html>
"""


def write(result: SweepResult, path: str | Path) -> None:
    """Write a report to a file."""
    if result.runs.is_empty():
        message = "no run of the sweep has finished; a report requires at least one"
        raise _core.ResultError(message)
    derived_files.check_report(Path(path))
    derived_files.write(path, html(result).encode(), result.manifest_sha256)


def _subtitle(result: SweepResult) -> str:
    points = formatting.counted(result.manifest["points"], "point")
    arms = f", {formatting.counted(len(result.arms), 'arm')}" if len(result.arms) > 1 else ""
    runs = formatting.counted(result.runs.height, "run")
    checked = result.scenario.checked
    return (
        f"Sweep of {', '.join(result.parameters)}: {points}{arms}, {runs} of "
        f"{checked.duration_s:g} s, measured from {checked.warmup_s:g} s."
    )


def _incomplete(result: SweepResult) -> str:
    if result.complete:
        return ""
    return (
        '<section class="validity weak"><h2>Incomplete</h2><p>The sweep was interrupted: points '
        "and replications are missing.</p></section>"
    )


def _figures(
    result: SweepResult, metrics: Sequence[Metric], of: panels.Layout, lines: Sequence[str]
) -> str:
    parts = []
    for metric in metrics:
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
            note += (
                f" Not shown: {' and '.join(hidden)}; SweepResult.lines and heatmap draw any of "
                "them."
            )
        title = f"{metric.label[0].upper()}{metric.label[1:]}"
        parts.append(section(escape(title), [*curves, *maps], lines, note))
    return "\n".join(parts)


def _best(result: SweepResult, metrics: Sequence[Metric]) -> str:
    """Write the best points of each metric for which larger or smaller is better."""
    count = result.points.height
    parts = []
    for metric in metrics:
        largest = _LARGEST.get(metric.unit)
        if largest is None or count == 1:
            continue
        table = result.best(metric.column, largest=largest, count=_BEST)
        if table.is_empty():
            continue
        rows = []
        own = _of_estimates(metric, table)
        ends = (table[f"difference{end}"].to_list() for end in ("_low", "_high"))
        of_differences = _of_column(metric, zip(*ends, strict=True))
        for row in table.iter_rows(named=True):
            change = {key: row[f"difference{end}"] for key, end in _ENDS.items()}
            rows.append(
                [
                    *_place(result, row),
                    _estimated(row, own),
                    _changed(change | {"significant": None}, of_differences),
                    Value(_WORDS[row["may_be_best"]]),
                ]
            )
        side = "largest" if largest else "smallest"
        headings = [
            *_headings(result),
            Heading(metric.heading, metric.definition),
            Heading("difference from the first"),
            Heading("may be the best"),
        ]
        title = f"Points with the {side} {metric.label}"
        parts.append(f"<h3>{escape(title)}</h3>{sortable(title, headings, rows)}")
    if not parts:
        return ""
    return (
        f'<section><h2>Best points</h2>{"".join(parts)}<p class="note">Differences are paired by '
        f"replication. Their intervals are those of Bonferroni for all pairs of {count} points and "
        "arms: all of them are correct with a probability of at least 95 %. With the same "
        "probability, the best point is among those that may be the best, which no other point "
        "exceeds in a one-sided test (Edwards and Hsu, 1983); the table may not show all of "
        "them.</p></section>"
    )


_ENDS = {"mean": "", "low": "_low", "high": "_high"}


def _differences(result: SweepResult, metrics: Sequence[Metric]) -> str:
    """Write the paired differences of arms from the first one at each point."""
    baseline, *others = result.arms
    if not others:
        return ""
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
    written = [
        _of_column(metric, ((one.low, one.high) for one in found[column::width]))
        for column, metric in enumerate(metrics)
    ]
    cells = [
        [
            *_place(result, row),
            *(
                _changed(_row(change), metric)
                for change, metric in zip(
                    found[place * width : (place + 1) * width], written, strict=True
                )
            ),
        ]
        for place, row in enumerate(rows[:_MOST_ROWS])
    ]
    title = f"Difference from {baseline}"
    heads = [*_headings(result), *(Heading(one.heading, one.definition) for one in metrics)]
    note = (
        f"Means of paired differences. * marks {chosen} of {count} differences, selected so that "
        f"at most 5 % of the marked ones, {comparisons.ERRORS * chosen:.1f}, are expected to be "
        "wrong (Benjamini and Hochberg, 1995); the intervals are adjusted accordingly (Benjamini "
        "and Yekutieli, 2005). If all differences were really zero, "
        f"unadjusted 95 % intervals would mark about {comparisons.ERRORS * count:.1f} of them."
    )
    return (
        f"<section><h2>{escape(title)}</h2>{sortable(title, heads, cells)}"
        f'<p class="note">{escape(note)}{_cut(len(rows))}</p></section>'
    )


def _points(result: SweepResult, metrics: Sequence[Metric]) -> str:
    """Write the means of all points."""
    heads = [*_headings(result), *(Heading(one.heading, one.definition) for one in metrics)]
    table = result.points.head(_MOST_ROWS)
    written = [_of_estimates(metric, table) for metric in metrics]
    rows = [
        [*_place(result, row), *(_estimated(row, metric) for metric in written)]
        for row in table.iter_rows(named=True)
    ]
    note = (
        f"Means over n runs; below each, its own 95 % {result.interval}. Click a heading to sort "
        "the table (requires scripts)."
    )
    return (
        f"<section><h2>All points</h2>{sortable('All points', heads, rows)}"
        f'<p class="note">{note}{_cut(result.points.height)}</p></section>'
    )


def _cut(rows: int) -> str:
    """State how many rows a table omits."""
    more = rows - _MOST_ROWS
    return f" {more} more rows are in points.parquet." if more > 0 else ""


def _headings(result: SweepResult) -> list[Heading]:
    several = len(result.arms) > 1
    names = [*result.parameters, *(["arm"] if several else []), "n"]
    return [Heading(name) for name in names]


def _place(result: SweepResult, row: dict[str, Any]) -> list[Value]:
    """Write the cells of a row before its metrics."""
    values = [Value(f"{row[path]}", panels.sort_key(row[path])) for path in result.parameters]
    arm = [Value(row["arm"])] if len(result.arms) > 1 else []
    return [*values, *arm, Value(f"{row['n']}", row["n"])]


def _of_column(metric: Metric, intervals: Iterable[tuple[float | None, float | None]]) -> Metric:
    """Return a metric with equal digits for a column: those of its narrowest interval.

    There are at most as many as for values without an interval.
    """
    halves = [
        (high - low) / 2.0
        for low, high in intervals
        if low is not None and high is not None and high > low
    ]
    places = max(map(formatting.decimals, halves), default=metric.digits)
    return replace(metric, digits=min(places, metric.digits))


def _of_estimates(metric: Metric, table: pl.DataFrame) -> Metric:
    ends = (table[f"{metric.column}{end}"].to_list() for end in ("_low", "_high"))
    return _of_column(metric, zip(*ends, strict=True))


def _estimated(row: dict[str, Any], metric: Metric) -> Value:
    """Write a mean and its interval with the digits of the column."""
    mean, *ends = (row[f"{metric.column}{end}"] for end in ("", "_low", "_high"))
    text, *span = (formatting.estimate(one, None, None, metric) for one in (mean, *ends))
    return Value(text, mean, " to ".join(span) if None not in ends else "")


def _row(change: comparisons.Difference) -> dict[str, Any]:
    return {key: getattr(change, key) for key in ("mean", "low", "high", "significant")}


def _changed(change: dict[str, Any], metric: Metric) -> Value:
    """Write a difference and its interval with the digits of the column."""
    text, *span = (
        formatting.change({"mean": change[key], "low": None, "high": None}, metric)
        for key in ("mean", "low", "high")
    )
    star = "*" if change["significant"] and text[0] in "+−" else ""
    return Value(
        f"{text}{star}", change["mean"], f"[{', '.join(span)}]" if change["low"] is not None else ""
    )


def _listed(values: Sequence[Any]) -> str:
    """Write the values of a parameter; those of parameters that change together with / between."""
    texts = [
        "/".join(f"{part}" for part in value) if isinstance(value, list) else f"{value}"
        for value in values
    ]
    if len(texts) > _MOST_VALUES:
        return f"{', '.join(texts[:_MOST_VALUES])}, … ({len(texts)} values)"
    return ", ".join(texts)


def _provenance(result: SweepResult) -> str:
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
    body = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td class="text">{escape(value)}</td></tr>'
        for name, value in rows
    )
    return (
        f'<section><h2>Provenance</h2><div class="wide"><table><tbody>{body}</tbody></table></div>'
        "<p>A run depends only on the scenario with the values of its point, the seed and the "
        "version. A sweep keeps only the metrics of its runs and has no validity "
        "findings; <code>sojourn run</code> with the values of a point reports them.</p>"
        "<details><summary>Scenario</summary>"
        f"<pre>{escape(result.scenario.to_toml())}</pre></details></section>"
    )


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
