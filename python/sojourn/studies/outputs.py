"""The files of a reproduced study, beside the results of its scenarios."""

import json
import os
import shlex
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import polars as pl

from sojourn import _core, files
from sojourn.arguments import OutputError
from sojourn.presentation.latex import escaped
from sojourn.presentation.markdown import table
from sojourn.presentation.model import Text, text_table
from sojourn.result import Result, derived_files
from sojourn.result.validity import Severity
from sojourn.studies import calibration, record, runtime, wording
from sojourn.studies.study import Scale
from sojourn.studies.verdicts import NOT_RUN

PARQUET = "claims.parquet"
MARKDOWN = "claims.md"
LATEX = "claims.tex"
# Begins every Markdown table of claims.
TABLE_HEAD = "| claim | source | statement | published | measured | verdict |"
_COLUMNS = {
    **dict.fromkeys(("id", "verdict", "scenario", "arm", "group", "metric"), pl.String),
    "relation": pl.String,
    "weaker": pl.Boolean,
    "reference": pl.String,
    **dict.fromkeys(("value", "tolerance"), pl.Float64),
    "n": pl.Int64,
    **dict.fromkeys(("mean", "low", "high", "reference_mean", "compared"), pl.Float64),
    "line_verdict": pl.String,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a command reproduces."""

    study: str
    scale: Scale
    figures: Sequence[str] = ()
    replications: int | None = None
    papers: Path | None = None

    @property
    def command(self) -> str:
        """The command that repeats it, without the options that do not change numbers.

        Examples
        --------
        >>> Request(study="floq", scale="full", figures=["3 b"], replications=1).command
        "sojourn reproduce floq --full --figure '3 b' --replications 1"
        """
        words = ["sojourn", "reproduce", self.study]
        words += ["--full"] * (self.scale == "full")
        for name in self.figures:
            words += ["--figure", name]
        if self.replications is not None:
            words += ["--replications", str(self.replications)]
        if self.papers is not None:
            words += ["--papers", str(self.papers)]
        return shlex.join(words)


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A validity error of the result of a scenario."""

    scenario: str
    arm: str | None
    text: str


def problems(scenario: str, result: Result) -> list[Problem]:
    """List the validity errors of a result."""
    found = []
    for finding in result.validity.findings:
        if finding.severity is Severity.ERROR:
            # Of several arms, the longest name that fits.
            arms = [arm for arm in result.arms if finding.text.startswith(f"{arm}: ")]
            arm = max(arms, key=len, default=None)
            text = finding.text if arm is None else finding.text.removeprefix(f"{arm}: ")
            found.append(Problem(scenario=scenario, arm=arm, text=text))
    return found


def with_origin(
    verdicts: Mapping[str, Any], request: Request, found: Sequence[Problem]
) -> dict[str, Any]:
    """Add to a record how it was made, and the validity errors of the results."""
    return {
        **verdicts,
        "command": request.command,
        "figures": list(request.figures),
        "validity": [asdict(one) for one in found],
    }


def write(folder: Path, verdicts: Mapping[str, Any], seconds: Mapping[str, float]) -> list[Path]:
    """Write the verdicts as JSON, Parquet, Markdown and LaTeX, and the times of the runs."""
    scale: Scale = verdicts["scale"]
    table = BytesIO()
    frame(verdicts).write_parquet(table)
    contents = {
        record.FILE: as_json(verdicts).encode(),
        PARQUET: table.getvalue(),
        MARKDOWN: markdown(verdicts).encode(),
        LATEX: latex(verdicts).encode(),
        runtime.FILE: runtime.written(seconds, scale).encode(),
    }
    for name, content in contents.items():
        write_file(folder / name, content)
    return [folder / name for name in contents]


def write_file(file: Path, content: bytes) -> None:
    """Write a file of a study, with its directory."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        files.replace(file, content)
    except OSError as error:
        message = f"cannot write {file}: {error.strerror}"
        raise _core.ResultError(message) from None


def as_json(verdicts: Mapping[str, Any]) -> str:
    """Write a record as JSON, one line per condition, so that changes are readable."""
    return _indented(verdicts, 0) + "\n"


def _indented(value: Any, depth: int) -> str:
    """Write each element of tables and lists on its own line, down to tables of plain values."""
    compact = json.dumps(value, ensure_ascii=False)
    if not value or not isinstance(value, dict | list):
        return compact
    elements = value.values() if isinstance(value, dict) else value
    if depth > 1 and not any(isinstance(one, dict | list) and one for one in elements):
        return compact
    lines = [_indented(one, depth + 1) for one in elements]
    if isinstance(value, dict):
        lines = [f"{json.dumps(key)}: {line}" for key, line in zip(value, lines, strict=True)]
    inner, outer = "\n" + " " * (depth + 1), "\n" + " " * depth
    return compact[0] + inner + f",{inner}".join(lines) + outer + compact[-1]


def frame(verdicts: Mapping[str, Any]) -> pl.DataFrame:
    """Return the conditions of all claims as a table."""
    rows: list[dict[str, Any]] = []
    for claim in verdicts["claims"]:
        about = {"id": claim["id"], "verdict": claim["verdict"]}
        lines = [
            {**about, **line, "line_verdict": line["verdict"], "verdict": claim["verdict"]}
            for line in claim["lines"]
        ]
        rows.extend(lines or [about])
    return pl.DataFrame(
        [{column: row.get(column) for column in _COLUMNS} for row in rows], schema=_COLUMNS
    )


def shown(verdicts: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """List the claims to show: with figures, only those that were run."""
    claims: Sequence[Mapping[str, Any]] = verdicts["claims"]
    return [one for one in claims if not verdicts["figures"] or one["verdict"] != NOT_RUN]


def left_out(verdicts: Mapping[str, Any]) -> str:
    """Write how many claims are not shown; empty if all are.

    Examples
    --------
    >>> left_out({"figures": ["3", "4 a"], "claims": [{"verdict": "not run"}] * 12})
    'Not listed: 12 claims that need scenarios other than those of figures 3, 4 a.'
    >>> left_out({"figures": [], "claims": [{"verdict": "not run"}]})
    ''
    """
    number = len(verdicts["claims"]) - len(shown(verdicts))
    if not number:
        return ""
    names = verdicts["figures"]
    claims = "1 claim that needs" if number == 1 else f"{number} claims that need"
    figures = "figure" if len(names) == 1 else "figures"
    return f"Not listed: {claims} scenarios other than those of {figures} {', '.join(names)}."


def markdown(verdicts: Mapping[str, Any]) -> str:
    """Write the claims and their verdicts as a Markdown table, with the validity errors."""
    lines = [
        f"# {verdicts['title']}: claims",
        "",
        f"{wording.counted(verdicts['totals'])} ({wording.scale(verdicts)}).",
        wording.counts(verdicts),
        "",
        f"To reproduce these numbers: `{verdicts['command']}`",
        "",
        table(text_table(TABLE_HEAD[2:-2].split(" | "), map(_cells, shown(verdicts)))),
    ]
    for note in (left_out(verdicts), wording.of_single_runs(verdicts)):
        lines += ["", note] if note else []
    if verdicts["validity"]:
        lines += ["", "## Validity", ""]
        lines += [f"* {wording.problem(one)}" for one in verdicts["validity"]]
    return "\n".join(lines) + "\n"


def _cells(claim: Mapping[str, Any]) -> list[Text]:
    full = [line for line in claim["lines"] if not line["weaker"]]
    published = [f"{wording.subject(line)}: {wording.stated(line)}" for line in full]
    measured = [wording.measured(line) for line in full]
    about = [claim["id"], claim["source"], claim["statement"]]
    return [*about, "\n".join(published), "\n".join(measured), claim["verdict"]]


# Shares of the width of a line; the rest is the space between the columns.
_WIDTHS = {
    "claim": 0.07,
    "statement": 0.21,
    "quantity": 0.18,
    "published": 0.11,
    "measured": 0.11,
    "verdict": 0.13,
}


def latex(verdicts: Mapping[str, Any]) -> str:
    """Write the claims as a LaTeX table over several pages, with one row per condition."""
    origin = f"{verdicts['study']}, {wording.scale(verdicts)}: {verdicts['command']}"
    widths = "".join(rf"p{{{share}\linewidth}}" for share in _WIDTHS.values())
    lines = [
        derived_files.TABLE.mark.decode(),
        f"% {_core.printable(origin)}",
        f"% {_core.printable(wording.counted(verdicts['totals']))}",
        r"% Requires \usepackage{booktabs,longtable}.",
        rf"\begin{{longtable}}{{@{{}}{widths}@{{}}}}",
        r"\toprule",
        " & ".join(_WIDTHS) + r" \tabularnewline",
        r"\midrule",
        r"\endhead",
        r"\bottomrule",
        r"\endfoot",
        *(row for claim in shown(verdicts) for row in _rows(claim)),
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


# Larger files are not read, and are not outputs of a study.
_MAX_BYTES = 1 << 26


def check(folder: Path, study: str, drawn: Sequence[str], *, force: bool) -> None:
    """Refuse a directory in which a study would replace files that it did not write."""
    _check_directories(folder, drawn)
    for name in (*_WRITTEN, *drawn):
        file = folder / name
        if (content := _content(file)) is None:
            continue
        is_ours = _WRITTEN.get(name) or _DRAWN[Path(name).suffix]
        if content and not is_ours(content):
            message = (
                f"cannot write {file}: it exists and is not a file of a study; expected another "
                "directory"
            )
            raise _core.ResultError(message)
    found = study_name(folder)
    if found not in (None, study) and not force:
        message = (
            '{folder} contains the output of the study "{found}"; '
            "expected {force} or another directory"
        )
        raise OutputError(message, folder=folder, found=found)


def study_name(folder: Path) -> str | None:
    """Return the name of the study whose output a directory contains; None if it is none."""
    try:
        found = files.read_json(folder / record.FILE, _MAX_BYTES)
    except (OSError, ValueError):
        return None
    return str(found["study"]) if _is_record(found) else None


def _check_directories(folder: Path, drawn: Sequence[str]) -> None:
    """Refuse a directory in whose place, or in that of a parent, is something else."""
    inner = {(folder / name).parent for name in drawn}
    for place in (*reversed(folder.parents), folder, *sorted(inner)):
        if os.path.lexists(place) and not place.is_dir():
            message = f"cannot write to {folder}: {place} is not a directory"
            raise _core.ResultError(message)


def _content(file: Path) -> bytes | None:
    """Read a file that would be replaced; None if there is none."""
    try:
        # The page may be a link, which is followed.
        found = file.lstat()
        if not stat.S_ISREG(found.st_mode) and file.suffix != _PAGE:
            message = f"cannot write {file}: it exists and is not a regular file"
            raise _core.ResultError(message)
        return files.head(file, _MAX_BYTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        message = f"cannot write {file}: {error.strerror}"
        raise _core.ResultError(message) from None


def _is_record(found: Any) -> bool:
    keys = {"study", "title", "scale", "totals", "claims"}
    return isinstance(found, dict) and found.keys() >= keys


def _is_times(found: Any) -> bool:
    return isinstance(found, dict) and all(
        scale in ("quick", "full") and isinstance(times, dict) for scale, times in found.items()
    )


def _json(is_ours: Callable[[Any], bool]) -> Callable[[bytes], bool]:
    def check_content(content: bytes) -> bool:
        try:
            return is_ours(json.loads(content))
        except (ValueError, RecursionError):
            return False

    return check_content


def _is_table(content: bytes) -> bool:
    try:
        columns = pl.read_parquet_schema(BytesIO(content))
    except (OSError, pl.exceptions.PolarsError):
        return False
    return {"id", "verdict", "line_verdict"} <= set(columns)


def _marked(mark: bytes) -> Callable[[bytes], bool]:
    return lambda content: mark in content


_PAGE = ".html"
# What the files of every study contain.
_WRITTEN: dict[str, Callable[[bytes], bool]] = {
    record.FILE: _json(_is_record),
    PARQUET: _is_table,
    MARKDOWN: _marked(TABLE_HEAD.encode()),
    LATEX: _marked(derived_files.TABLE.mark),
    runtime.FILE: _json(_is_times),
    calibration.FILE: _json(calibration.is_record),
}
# What pages and figures contain: Sojourn is in the metadata of figures.
_DRAWN: dict[str, Callable[[bytes], bool]] = {
    _PAGE: _marked(derived_files.REPORT.mark),
    ".svg": _marked(b"Sojourn"),
    ".png": _marked(b"Sojourn"),
    ".pdf": _marked(b"Sojourn"),
}
