"""LaTeX of tables, which need no package but booktabs."""

from collections.abc import Iterable, Sequence

from sojourn import _core
from sojourn.presentation.model import Estimate, Table, Text, plain

_MISSING = r"\multicolumn{2}{c}{--}"
_SPECIAL = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\char34{}",
    # After \\ these would be an optional argument or its starred form; hyphens form dashes.
    "[": "{[}",
    "]": "{]}",
    "*": "{*}",
    "-": "{-}",
    "`": r"\`{}",
    "'": "{'}",
    "−": "$-$",
    "±": r"$\pm$",
    "×": r"$\times$",
    "·": r"$\cdot$",
    "µ": r"$\mu$",
    "μ": r"$\mu$",
    "σ": r"$\sigma$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "–": "--",
    "…": r"\dots{}",
}
_ESCAPES = str.maketrans(_SPECIAL)


def escaped(text: str) -> str:
    r"""Escape a text for LaTeX; control characters are written as they are on a terminal.

    Examples
    --------
    >>> print(escaped("fq_codel 5% [µs]"))
    fq\_codel 5\% {[}$\mu$s{]}
    """
    return _core.printable(text).translate(_ESCAPES)


def tabular(table: Table) -> str:
    """Write a table; the decimal points of estimates are below each other.

    The unit of an estimate is below its heading.
    """
    columns = list(zip(*table.rows, strict=True)) or [()] * len(table.columns)
    estimated = [any(isinstance(cell, Estimate) for cell in column) for column in columns]
    layout = [
        "r@{}l" if one else "l" if at < table.words else "r" for at, one in enumerate(estimated)
    ]
    heads = [str(column).partition(" [") for column in table.columns]
    labels = [
        _heading(name) if one else name for (name, *_), one in zip(heads, estimated, strict=True)
    ]
    units = [
        _heading(bracket.strip() + unit) if one else ""
        for (_, bracket, unit), one in zip(heads, estimated, strict=True)
    ]
    cells = [
        _estimates(column) if one else [escaped(plain(cell)) for cell in column]
        for column, one in zip(columns, estimated, strict=True)
    ]
    lines = [rf"\begin{{tabular}}{{{' '.join(layout)}}}", r"\toprule", _row(labels)]
    lines += [_row(units)] if any(bracket for _, bracket, _ in heads) else []
    body = [_row(row) for row in zip(*cells, strict=True)]
    return "\n".join([*lines, r"\midrule", *body, r"\bottomrule", r"\end{tabular}"])


def _heading(text: str) -> str:
    return rf"\multicolumn{{2}}{{c}}{{{escaped(text)}}}"


def _row(cells: Iterable[str]) -> str:
    return " & ".join(cells) + r" \\"


def _estimates(column: Sequence[Text]) -> list[str]:
    """Write the cells of a column of estimates."""
    found = [cell for cell in column if isinstance(cell, Estimate) and cell.mean is not None]
    most = max((cell.decimals for cell in found), default=0)
    starred = any("*" in cell.value for cell in found)
    return [
        _estimate(cell, most, starred=starred)
        if isinstance(cell, Estimate)
        else escaped(plain(cell))
        for cell in column
    ]


def _estimate(cell: Estimate, most: int, *, starred: bool) -> str:
    """Write a number of at most `most` decimals, and its uncertainty in a second column."""
    if cell.mean is None:
        return _MISSING
    number = cell.value.replace("−", "-").rstrip("*")
    missing = most - cell.decimals
    padding = rf"\phantom{{{'' if cell.decimals else '.'}{'0' * missing}}}" if missing else ""
    star = r"^{*}" if "*" in cell.value else r"\phantom{^{*}}" if starred else ""
    spread = rf"{{}}\pm {cell.half}" if cell.half else ""
    if cell.signed and cell.span:
        spread = r"\;" + cell.span.replace("−", "-")
    return f"${number}{padding}{star}$ & " + (f"${spread}$" if spread else "")
