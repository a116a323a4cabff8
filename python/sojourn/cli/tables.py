"""Tables for terminals, aligned text for pipes, JSON for programs."""

import json
import sys
import textwrap
from collections.abc import Callable, Sequence
from typing import Any, Literal

import polars as pl
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from sojourn import _core
from sojourn.report import formatting
from sojourn.report.view import ResultView, Section, view
from sojourn.result import Result
from sojourn.result.metric import Metric

# Space between columns, and the width of a border.
GAP = 3
# On narrower terminals the full tables would be split into many parts.
WIDE = 120
# Rows of the ranked table, and the width of its headings, which are names of arms.
RANKED = 15
HEADING = 14


def show(result: Result, *, as_json: bool, everything: bool) -> None:
    """Print the means of every arm and the differences from the first arm.

    A narrow terminal shows only the metrics that differ between arms, unless `everything` is set.
    """
    if as_json:
        print(json.dumps(document(result), indent=2))
        return
    shown = view(result)
    if sys.stdout.isatty() and not everything and Console().width < WIDE:
        _print_ranked(shown)
    else:
        _print_all(shown)


def _print_all(shown: ResultView) -> None:
    _print_section(shown.title, shown, shown.whole, counted=True)
    _print_groups(shown)
    for group in shown.applications:
        _print_section(f"{shown.title}: {group.name}", shown, group, counted=False)
    note = "mean over n runs ± half the width of its 95 % bootstrap interval"
    if shown.others:
        for section in shown.sections:
            _print_differences(shown, section)
        note += "; * marks a difference whose interval excludes 0"
    _print_note(note)


def _print_ranked(shown: ResultView) -> None:
    """Print the metrics that differ between arms, the largest relative difference first."""
    every = [(section, metric) for section in shown.sections for metric in section.metrics]
    ranked = every
    if shown.others:
        effects = [
            (section.effect(metric, shown.others), section, metric) for section, metric in every
        ]
        found = [entry for entry in effects if entry[0] is not None]
        found.sort(key=lambda entry: -(entry[0] or 0.0))
        ranked = [(section, metric) for _, section, metric in found[:RANKED]]
    rows = [
        [section.label(metric), *(section.estimate(arm, metric) for arm in shown.arms)]
        for section, metric in ranked
    ]
    runs = {shown.whole.runs(arm) for arm in shown.arms}
    counts = f"n = {min(runs)}" if len(runs) == 1 else f"n = {min(runs)} to {max(runs)}"
    if rows:
        title = f"{shown.title} ({counts})"
        print_table(["metric", *shown.arms], rows, title=title, heading=HEADING)
    _print_groups(shown, parts=1)
    note = "mean over n runs ± half the width of its 95 % bootstrap interval"
    if shown.others:
        note += (
            f"; only metrics that differ from {shown.baseline} with an interval that excludes 0, "
            "sorted by the difference relative to the larger mean"
        )
        hidden = len(every) - len(rows)
        note += f"; --all shows {hidden} more metrics and the differences" if hidden else ""
    _print_note(note)


def _print_groups(shown: ResultView, parts: int | None = None) -> None:
    """Print the groups of traffic and the classes of queues, each in at most `parts` tables."""
    _print_grouped(f"{shown.title}: traffic groups", "group", shown.groups, shown, parts)
    _print_grouped(f"{shown.title}: classes of queues", "class", shown.classes, shown, parts)


def _print_grouped(
    title: str, what: str, groups: Sequence[Section], shown: ResultView, parts: int | None
) -> None:
    """Print one line per group and arm."""
    if not groups:
        return
    metrics = [
        metric
        for metric in groups[0].metrics
        if any((arm, metric.column) in group.estimates for group in groups for arm in shown.arms)
    ]
    head = [what, "arm", *(metric.heading for metric in metrics)]
    rows = [
        [str(group.name), arm, *(group.estimate(arm, metric) for metric in metrics)]
        for group in groups
        for arm in shown.arms
        if group.runs(arm)
    ]
    print_table(head, rows, title=title, words=2, lead=2, parts=parts)


def _print_note(note: str) -> None:
    """Print a note, wrapped at words on a terminal."""
    if sys.stdout.isatty():
        Console(highlight=False).print(note, markup=False)
    else:
        print(note)


def _print_section(title: str, shown: ResultView, section: Section, *, counted: bool) -> None:
    """Print one line per arm, with the number of its runs if `counted`."""
    head = ["arm", *(["n"] if counted else []), *(metric.heading for metric in section.metrics)]
    rows = [
        [arm, *([str(section.runs(arm))] if counted else []), *section.estimates_of(arm)]
        for arm in shown.arms
    ]
    print_table(head, rows, title=title)


def _print_differences(shown: ResultView, section: Section) -> None:
    """Print one line per arm that has the metrics, unless there is none."""
    head = ["arm", "n", *(metric.heading for metric in section.metrics)]
    rows = [
        [arm, str(pairs), *section.changes_of(arm)]
        for arm in shown.others
        if (pairs := section.pairs(arm))
    ]
    if not rows:
        return
    group = "" if section.name is None else f"{section.name}: "
    print_table(head, rows, title=f"{group}difference from {shown.baseline}, paired by replication")


def show_queues(queues: list[dict[str, Any]], *, run: str, as_json: bool) -> None:
    """Print queue statistics, as :func:`sojourn.result.tc_stats.queues` returns them.

    Parts of a queue and inner queues without any packet are left out of the tables.
    """
    if as_json:
        print(json.dumps(queues, indent=2))
        return
    for queue in queues:
        inner = queue.get("parent")
        if inner is not None and not queue["packets"] + queue["drops"] + queue["qlen"]:
            continue
        rows = [[name, _shown(value)] for name, value in _flat(queue) if name != "options"]
        kind = queue["kind"] if inner is None else f"{queue['kind']} in {inner}"
        print_table(["statistic", "value"], rows, title=f"{queue['dev']}: {kind} ({run})")


def _flat(queue: dict[str, Any]) -> list[tuple[str, Any]]:
    """Flatten the statistics of parts to names such as ``tins[0].drops``."""
    flat: list[tuple[str, Any]] = []
    for name, value in queue.items():
        if isinstance(value, list):
            parts = enumerate(value)
            flat += [
                (f"{name}[{n}].{key}", x)
                for n, part in parts
                if any(part.values())
                for key, x in part.items()
            ]
        else:
            flat.append((name, value))
    return flat


def _shown(value: float | str) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def document(result: Result) -> dict[str, Any]:
    """Collect the data of the tables, with the value of each run, for JSON output."""
    arms = result.per_run["arm"].unique(maintain_order=True).to_list()

    def compared(difference: Callable[[str, str], pl.DataFrame]) -> list[dict[str, Any]]:
        return [
            {"baseline": arms[0], "arm": arm, **row}
            for arm in arms[1:]
            for row in difference(arms[0], arm).to_dicts()
        ]

    return {
        "scenario": result.scenario.checked.name,
        "scenario_hash": result.scenario.hash,
        "seed": result.scenario.seed,
        "sojourn": result.provenance["sojourn"],
        "finished_runs": result.finished,
        "total_runs": result.total,
        "notices": result.provenance["notices"],
        "validity": {
            "verdict": result.validity.verdict,
            "findings": [
                {"severity": finding.severity, "text": finding.text}
                for finding in result.validity.findings
            ],
        },
        "summary": result.summary().to_dicts(),
        "groups": result.group_summary().to_dicts(),
        "classes": result.class_summary().to_dicts(),
        "applications": result.application_summary().to_dicts(),
        "differences": compared(result.difference),
        "group_differences": compared(result.group_difference),
        "class_differences": compared(result.class_difference),
        "application_differences": compared(result.application_difference),
        "runs": result.per_run.to_dicts(),
    }


def print_estimates(
    summary: pl.DataFrame, metrics: Sequence[Metric], *, arms: Sequence[str], title: str
) -> None:
    """Print one line per arm with the metrics that `summary` has for at least one arm."""
    present = [metric for metric in metrics if metric.column in summary["metric"]]
    found = {(row["arm"], row["metric"]): row for row in summary.iter_rows(named=True)}
    rows = [
        [arm, *(_estimate(found.get((arm, metric.column)), metric) for metric in present)]
        for arm in arms
    ]
    print_table(["arm", *(metric.heading for metric in present)], rows, title=title)


def _estimate(row: dict[str, float | None] | None, metric: Metric) -> str:
    if row is None:
        return "–"
    return formatting.estimate(row["mean"], row["low"], row["high"], metric)


def print_table(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    title: str,
    words: int = 1,
    lead: int = 1,
    parts: int | None = None,
    heading: int | None = None,
) -> None:
    """Print a table to stdout: bordered on a terminal, aligned text in a pipe.

    The first `words` columns hold text, the others numbers. A table wider than the terminal is
    continued below, in at most `parts` parts, with its first `lead` columns repeated; a table of
    text only is wrapped. Headings are wrapped at `heading` characters.
    """
    title = _core.printable(title)
    head = [_core.printable(cell) for cell in head]
    if heading is not None:
        head = [textwrap.fill(cell, heading) for cell in head]
    rows = [[_core.printable(cell) for cell in row] for row in rows]
    if not sys.stdout.isatty():
        _print_plain(head, rows, title=title, words=words)
        return
    console = Console(highlight=False)
    whole = [list(range(len(head)))]
    blocks = whole if words == len(head) else _blocks(head, rows, console.width, lead)
    for columns in blocks[:parts]:
        table = Table(title=Text(title), title_justify="left", title_style="bold")
        for index in columns:
            justify: Literal["left", "right"] = "left" if index < words else "right"
            table.add_column(Text(_stacked(head[index])), justify=justify)
        for row in rows:
            table.add_row(*(Text(_stacked(row[index]) if index else row[0]) for index in columns))
        console.print(table)


def _blocks(
    head: Sequence[str], rows: Sequence[Sequence[str]], width: int, lead: int
) -> list[list[int]]:
    """Split the columns into blocks that fit; the first `lead` columns lead every block."""
    widths = [GAP + max(cell_len(row[0]) for row in (head, *rows))]
    for index in range(1, len(head)):
        lines = [line for row in (head, *rows) for line in _stacked(row[index]).split("\n")]
        widths.append(GAP + max(cell_len(line) for line in lines))
    first = list(range(lead))
    blocks: list[list[int]] = [first.copy()]
    for index in range(lead, len(head)):
        used = sum(widths[column] for column in blocks[-1]) + 1
        if len(blocks[-1]) > lead and used + widths[index] > width:
            blocks.append(first.copy())
        blocks[-1].append(index)
    return blocks


def _stacked(text: str) -> str:
    """Put the unit or interval, and each word of a heading, on a line of its own."""
    upper, bracket, lower = text.partition(" [")
    if not bracket:
        return text
    return (upper.replace(" ", "\n") if upper[0].isalpha() else upper) + "\n[" + lower


def _print_plain(
    head: Sequence[str], rows: Sequence[Sequence[str]], *, title: str, words: int
) -> None:
    widths = [max(cell_len(row[index]) for row in [head, *rows]) for index in range(len(head))]
    print(title)
    for row in [head, *rows]:
        cells = [
            cell + pad if index < words else pad + cell
            for index, cell in enumerate(row)
            for pad in [" " * (widths[index] - cell_len(cell))]
        ]
        print("  ".join(cells).rstrip())
    print()
