"""Tables for terminals, aligned text for pipes, JSON for programs."""

import json
import sys
import textwrap
from collections.abc import Sequence
from typing import Any, Literal

import polars as pl
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from sojourn import _core
from sojourn.expectations.judging import Judgement
from sojourn.report.answer import answer
from sojourn.report.view import MOST, ResultView, Section, view
from sojourn.result import Result, formatting
from sojourn.result.catalogue import By, Metric

# Space between columns with borders and without.
BORDER = 3
GAP = 2
# The width at which the headings of the first table are wrapped.
HEADING = 16


def show(
    result: Result, *, as_json: bool, everything: bool, judgements: Sequence[Judgement] = ()
) -> None:
    """Print the answer and the main metrics, or all tables if `everything` is set."""
    if as_json:
        expected = {"expectations": [one.document() for one in judgements]} if judgements else {}
        print(json.dumps({**document(result), **expected}, indent=2))
        return
    shown = view(result)
    if sentence := answer(shown, result.validity.error):
        print_note(_core.printable(sentence))
        print()
    (_print_all if everything else _print_main)(shown)


def _print_main(shown: ResultView) -> None:
    """Print the metrics that matter most: in columns if arms are compared, else in rows."""
    cells = [
        list(map(_core.printable, [section.label(metric), *section.row(shown.arms, metric)]))
        for section, metric in shown.ranked()[:MOST]
    ]
    if shown.others:
        columns = [["arm", *map(_core.printable, shown.arms)]]
        for heading, *values in cells:
            column = [textwrap.fill(heading, HEADING), *values]
            # The first metric is shown, however long the names of the arms are.
            if len(columns) > 1 and sum(map(_width, (*columns, column))) > Console().width + GAP:
                break
            columns.append(column)
        head, *rows = (list(row) for row in zip(*columns, strict=True))
        printed = len(columns) - 1
    else:
        head, rows, printed = ["metric", *map(_core.printable, shown.arms)], cells, len(cells)
    if printed:
        print_aligned(head, rows, title=f"{shown.title}: {shown.measured}")
    hidden = sum(len(section.metrics) for section in shown.sections) - printed
    if hidden:
        differences = f", and the differences from {shown.baseline}" if shown.others else ""
        note = f"--all: {formatting.counted(hidden, 'more metric')}{differences}"
        print_note(_core.printable(note))


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
    print_note(note)


def _print_groups(shown: ResultView) -> None:
    """Print the groups of traffic and the classes of queues."""
    _print_grouped(f"{shown.title}: traffic groups", "group", shown.groups, shown)
    _print_grouped(f"{shown.title}: classes of queues", "class", shown.classes, shown)


def _print_grouped(title: str, what: str, groups: Sequence[Section], shown: ResultView) -> None:
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
    _put_table(*_escaped(head, rows), title=title, words=2, lead=2)


def print_note(note: str) -> None:
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
    runs = result.table()
    arms = runs["arm"].unique(maintain_order=True).to_list()

    def compared(by: By) -> list[dict[str, Any]]:
        return [
            {"baseline": arms[0], "arm": arm, **row}
            for arm in arms[1:]
            for row in result.difference(arms[0], arm, by).to_dicts()
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
        "groups": result.summary("group").to_dicts(),
        "classes": result.summary("class").to_dicts(),
        "applications": result.summary("application").to_dicts(),
        "differences": compared("run"),
        "group_differences": compared("group"),
        "class_differences": compared("class"),
        "application_differences": compared("application"),
        "runs": runs.to_dicts(),
    }


def print_estimates(
    summary: pl.DataFrame, metrics: Sequence[Metric], *, arms: Sequence[str], title: str
) -> None:
    """Print one line per arm, or per group and arm, with the metrics that `summary` has."""
    present = [metric for metric in metrics if metric.column in summary["metric"]]
    grouped = "group" in summary.columns
    groups = summary["group"].unique(maintain_order=True).to_list() if grouped else [""]
    found = {
        (row.get("group", ""), row["arm"], row["metric"]): row
        for row in summary.iter_rows(named=True)
    }
    rows = [
        [
            *([group] if grouped else []),
            arm,
            *(_estimate(found.get((group, arm, metric.column)), metric) for metric in present),
        ]
        for group in groups
        for arm in arms
        if not grouped or any((group, arm, metric.column) in found for metric in present)
    ]
    head = [*(["group"] if grouped else []), "arm", *(metric.heading for metric in present)]
    print_table(head, rows, title=title, words=2 if grouped else 1)


def _estimate(row: dict[str, float | None] | None, metric: Metric) -> str:
    if row is None:
        return "–"
    return formatting.estimate(row["mean"], row["low"], row["high"], metric)


def print_table(
    head: Sequence[str], rows: Sequence[Sequence[str]], *, title: str, words: int = 1
) -> None:
    """Print a table to stdout: bordered on a terminal, aligned text in a pipe.

    The first `words` columns hold text, the others numbers. A table wider than the terminal is
    continued below, with its first column repeated; a table of text only is wrapped.
    """
    _put_table(*_escaped(head, rows), title=title, words=words)


def _escaped(
    head: Sequence[str], rows: Sequence[Sequence[str]]
) -> tuple[list[str], list[list[str]]]:
    """Escape control characters, also line breaks, in the cells of a table."""
    return [_core.printable(cell) for cell in head], [
        [_core.printable(cell) for cell in row] for row in rows
    ]


def _put_table(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    title: str,
    words: int = 1,
    lead: int = 1,
) -> None:
    """Print a table of escaped cells; its first `lead` columns are repeated where it continues."""
    title = _core.printable(title)
    if not sys.stdout.isatty():
        print_aligned(head, rows, title=title, words=words)
        return
    console = Console(highlight=False)
    whole = [list(range(len(head)))]
    blocks = whole if words == len(head) else _blocks(head, rows, console.width, lead)
    for columns in blocks:
        # Not the title of the table, which would be wrapped at its width.
        console.print(Text(title, style="bold"))
        table = Table()
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
    widths = _widths(head, rows)
    first = list(range(lead))
    blocks: list[list[int]] = [first.copy()]
    for index in range(lead, len(head)):
        used = sum(widths[column] for column in blocks[-1]) + 1
        if len(blocks[-1]) > lead and used + widths[index] > width:
            blocks.append(first.copy())
        blocks[-1].append(index)
    return blocks


def _widths(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    """Return the width of each column with its border."""
    widths = []
    for index in range(len(head)):
        cells = (row[index] for row in (head, *rows))
        lines = (line for cell in cells for line in (_stacked(cell) if index else cell).split("\n"))
        widths.append(BORDER + max(map(cell_len, lines)))
    return widths


def _stacked(text: str) -> str:
    """Put the unit or interval, and each word of a heading, on a line of its own."""
    upper, bracket, lower = text.partition(" [")
    if not bracket:
        return text
    return (upper.replace(" ", "\n") if upper[0].isalpha() else upper) + "\n[" + lower


def _width(cells: Sequence[str]) -> int:
    """Return the width of a column without borders, with the space before the next."""
    return GAP + max(cell_len(line) for cell in cells for line in cell.split("\n"))


def print_aligned(
    head: Sequence[str], rows: Sequence[Sequence[str]], *, title: str = "", words: int = 1
) -> None:
    """Print aligned text, with the lines of a heading above its column."""
    headings = [cell.split("\n") for cell in head]
    height = max(map(len, headings))
    above = zip(*([""] * (height - len(lines)) + lines for lines in headings), strict=True)
    widths = [_width(column) - GAP for column in zip(head, *rows, strict=True)]
    if title:
        print(_core.printable(title))
    for row in [*above, *rows]:
        cells = [
            cell + pad if index < words else pad + cell
            for index, cell in enumerate(row)
            for pad in [" " * (widths[index] - cell_len(cell))]
        ]
        print((" " * GAP).join(cells).rstrip())
    print()
