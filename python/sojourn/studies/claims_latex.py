"""The claims of a study as a LaTeX table over several pages."""

from collections.abc import Mapping, Sequence
from typing import Any

from sojourn import _core
from sojourn.result import derived_files
from sojourn.result.latex import escaped
from sojourn.studies import wording

# Shares of the width of a line; the rest is the space between the columns.
_COLUMNS = {
    "claim": 0.07,
    "statement": 0.21,
    "quantity": 0.18,
    "published": 0.11,
    "measured": 0.11,
    "verdict": 0.13,
}


def written(verdicts: Mapping[str, Any], claims: Sequence[Mapping[str, Any]]) -> str:
    """Write a table with one row per condition."""
    origin = f"{verdicts['study']}, {wording.scale(verdicts)}: {verdicts['command']}"
    widths = "".join(rf"p{{{share}\linewidth}}" for share in _COLUMNS.values())
    lines = [
        derived_files.TABLE.mark.decode(),
        f"% {_core.printable(origin)}",
        f"% {_core.printable(wording.counted(verdicts['totals']))}",
        r"% Requires \usepackage{booktabs,longtable}.",
        rf"\begin{{longtable}}{{@{{}}{widths}@{{}}}}",
        r"\toprule",
        " & ".join(_COLUMNS) + r" \tabularnewline",
        r"\midrule",
        r"\endhead",
        r"\bottomrule",
        r"\endfoot",
        *(row for claim in claims for row in _rows(claim)),
        r"\end{longtable}",
    ]
    return "\n".join(lines) + "\n"


def _rows(claim: Mapping[str, Any]) -> list[str]:
    """Write the conditions of a claim; the first row also names it."""
    first = [claim["id"], claim["statement"]]
    conditions = [
        [wording.subject(line), wording.stated(line), wording.found(line)]
        for line in claim["lines"]
        if not line["weaker"]
    ]
    rows = []
    for at, condition in enumerate(conditions or [["", "", ""]]):
        about, verdict = (["", ""], "") if at else (first, claim["verdict"])
        rows.append(_row([*about, *condition, verdict]))
    return rows


def _row(cells: Sequence[str]) -> str:
    return " & ".join(_cell(text) for text in cells) + r" \tabularnewline"


def _cell(text: str) -> str:
    """Write a cell whose lines are not justified and break in names of metrics."""
    if not text:
        return ""
    return r"\raggedright " + escaped(text).replace(r"\_", r"\_\allowbreak{}")
