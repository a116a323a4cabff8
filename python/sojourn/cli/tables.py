"""Tables for terminals, aligned text for pipes, JSON for programs."""

import json
import sys
from collections.abc import Sequence
from typing import Any, Literal

import polars as pl
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from sojourn.report import formatting
from sojourn.result import Result, app_metrics, flow_groups
from sojourn.result.metrics import Metric, metrics_of

# Space between columns, and what a border takes.
GAP = 3


def show(result: Result, *, as_json: bool) -> None:
    """Print the summary and the differences from the first arm."""
    if as_json:
        print(json.dumps(document(result), indent=2))
        return
    head, rows = _summary(result)
    print_table(head, rows, title=result.scenario.checked.name)
    for group, metrics, summary in _grouped(result):
        title = f"{result.scenario.checked.name}: {group}"
        print_estimates(summary, metrics, arms=result.arms, title=title)
    compared = _differences(result)
    note = "mean ±half the 95 % bootstrap interval of the mean over n runs"
    if compared is not None:
        first, head, rows = compared
        print_table(head, rows, title=f"difference from {first}, paired by run")
        _show_group_differences(result, first)
        note += "; * where the interval of a difference excludes 0"
    print(note)


def _grouped(result: Result) -> list[tuple[str, Sequence[Metric], pl.DataFrame]]:
    """List groups of transfers, datagrams and applications, with what is told of each."""
    told: tuple[tuple[Sequence[Metric], pl.DataFrame], ...] = (
        (flow_groups.METRICS, formatting.telling_groups(result.group_summary())),
        (app_metrics.METRICS, result.application_summary()),
    )
    return [
        (group, metrics, summary.filter(group=group))
        for metrics, summary in told
        for group in summary["group"].unique(maintain_order=True)
    ]


def _show_group_differences(result: Result, first: str) -> None:
    compared = {arm: formatting.group_differences(result, first, arm) for arm in _arms(result)[1:]}
    for group, metrics, summary in _grouped(result):
        present = [metric for metric in metrics if metric.column in summary["metric"]]
        rows = []
        for arm, found in compared.items():
            cells = [found.get((group, metric.column)) for metric in present]
            pairs = max((row["n"] for row in cells if row is not None), default=0)
            shown = zip(cells, present, strict=True)
            changes = [
                "–" if row is None else formatting.change(row, metric) for row, metric in shown
            ]
            rows.append([arm, str(pairs), *changes])
        title = f"{group}: difference from {first}, paired by run"
        print_table(["arm", "n", *(metric.heading for metric in present)], rows, title=title)


def _change(row: dict[str, Any] | None, metric: Metric) -> str:
    return "–" if row is None else formatting.change(row, metric)


def show_queues(queues: list[dict[str, Any]], *, run: str, as_json: bool) -> None:
    """Print the state of queues after a run, as :func:`sojourn.tc.queues` describes it.

    Parts of a queue, and queues inside one, in which nothing happened are left out of the tables.
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
        print_table(["number", "value"], rows, title=f"{queue['dev']}: {kind} ({run})")


def _flat(queue: dict[str, Any]) -> list[tuple[str, Any]]:
    """Name the numbers of parts by list and place: ``tins[0].drops``."""
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
    """Collect what the tables show, and what lies behind it, for programs."""
    arms = _arms(result)
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
        "applications": result.application_summary().to_dicts(),
        "differences": [
            {"baseline": arms[0], "arm": arm, **row}
            for arm in arms[1:]
            for row in result.difference(arms[0], arm).to_dicts()
        ],
        "group_differences": [
            {"baseline": arms[0], "arm": arm, **row}
            for arm in arms[1:]
            for row in result.group_difference(arms[0], arm).to_dicts()
        ],
        "application_differences": [
            {"baseline": arms[0], "arm": arm, **row}
            for arm in arms[1:]
            for row in result.application_difference(arms[0], arm).to_dicts()
        ],
        "runs": result.per_run.to_dicts(),
    }


def _arms(result: Result) -> list[str]:
    return result.per_run["arm"].unique(maintain_order=True).to_list()


def _summary(result: Result) -> tuple[list[str], list[list[str]]]:
    described = metrics_of(result.per_run)
    summary = result.summary()
    rows = []
    for arm in _arms(result):
        of_arm = summary.filter(pl.col("arm") == arm)
        cells = [arm, str(of_arm["n"].max())]
        for metric in described:
            row = of_arm.row(by_predicate=pl.col("metric") == metric.column, named=True)
            cells.append(formatting.estimate(row["mean"], row["low"], row["high"], metric))
        rows.append(cells)
    return ["arm", "n", *(metric.heading for metric in described)], rows


def _differences(result: Result) -> tuple[str, list[str], list[list[str]]] | None:
    first, *others = _arms(result)
    if not others:
        return None
    described = {metric.column: metric for metric in metrics_of(result.per_run)}
    rows = []
    for arm in others:
        compared = list(result.difference(first, arm).iter_rows(named=True))
        pairs = str(max(row["n"] for row in compared))
        cells = [formatting.change(row, described[row["metric"]]) for row in compared]
        rows.append([arm, pairs, *cells])
    return first, ["arm", "n", *(metric.heading for metric in described.values())], rows


def print_estimates(
    summary: pl.DataFrame, metrics: Sequence[Metric], *, arms: Sequence[str], title: str
) -> None:
    """Print a line an arm, with those of `metrics` that `summary` has of any."""
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
    head: Sequence[str], rows: Sequence[Sequence[str]], *, title: str, words: int = 1
) -> None:
    """Print a table to stdout: bordered on a terminal, aligned text in a pipe.

    The first `words` columns hold text, the others numbers. A table wider than the terminal is
    continued below, with its first column repeated; one of text alone is wrapped.
    """
    if not sys.stdout.isatty():
        _print_plain(head, rows, title=title, words=words)
        return
    console = Console(highlight=False)
    whole = [list(range(len(head)))]
    for columns in whole if words == len(head) else _blocks(head, rows, console.width):
        table = Table(title=Text(title), title_justify="left", title_style="bold")
        for index in columns:
            justify: Literal["left", "right"] = "left" if index < words else "right"
            table.add_column(Text(_stacked(head[index])), justify=justify)
        for row in rows:
            table.add_row(*(Text(_stacked(row[index]) if index else row[0]) for index in columns))
        console.print(table)


def _blocks(head: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[list[int]]:
    """Divide the columns so that each part fits; the first column leads every part."""
    widths = [GAP + max(cell_len(row[0]) for row in (head, *rows))]
    for index in range(1, len(head)):
        lines = [line for row in (head, *rows) for line in _stacked(row[index]).split("\n")]
        widths.append(GAP + max(cell_len(line) for line in lines))
    blocks: list[list[int]] = [[0]]
    for index in range(1, len(head)):
        used = sum(widths[column] for column in blocks[-1]) + 1
        if len(blocks[-1]) > 1 and used + widths[index] > width:
            blocks.append([0])
        blocks[-1].append(index)
    return blocks


def _stacked(text: str) -> str:
    """Put a unit or an interval below what it belongs to, and the words of a heading likewise."""
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
