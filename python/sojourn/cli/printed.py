"""A result on a terminal, and as JSON."""

from typing import Any

from sojourn.presentation import terminal
from sojourn.report.answer import answer
from sojourn.report.view import details, view
from sojourn.result import Result, formatting
from sojourn.result.catalogue import By


def show(result: Result, *, everything: bool) -> None:
    """Print the answer and the main metrics, or all tables."""
    shown = view(result)
    if sentence := answer(shown, result.validity.error):
        terminal.print_note(sentence)
        print()
    if everything:
        terminal.show(details(shown))
        note = "mean over n runs ± half the width of its 95 % bootstrap interval"
        starred = "; * marks a difference whose interval excludes 0"
        terminal.print_note(f"{note}{starred if shown.others else ''}")
        return
    main = shown.main()
    printed = len(main.columns) - 1
    if not shown.others and printed:
        terminal.print_aligned(main.turned())
    elif printed:
        printed = terminal.print_fitting(main)
    hidden = sum(len(part.metrics) for part in shown.parts) - printed
    if hidden:
        differences = f", and the differences from {shown.baseline}" if shown.others else ""
        terminal.print_note(f"--all: {formatting.counted(hidden, 'more metric')}{differences}")


def document(result: Result) -> dict[str, Any]:
    """Collect the data of the tables, with the value of each run, for JSON output."""
    found = result.estimates
    runs, arms = found.table(), found.arms

    def compared(by: By) -> list[dict[str, Any]]:
        return [
            {"baseline": arms[0], "arm": arm, **row}
            for arm in arms[1:]
            for row in found.difference(arms[0], arm, by)
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
        "summary": found.summary(),
        "groups": found.summary("group"),
        "classes": found.summary("class"),
        "applications": found.summary("application"),
        "differences": compared("run"),
        "group_differences": compared("group"),
        "class_differences": compared("class"),
        "application_differences": compared("application"),
        "runs": [dict(zip(runs, row, strict=True)) for row in zip(*runs.values(), strict=True)],
    }
