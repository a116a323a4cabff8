"""What an output directory already contains: a study replaces only files of its own kind."""

import json
import os
import stat
from collections.abc import Callable, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import polars as pl

from sojourn import _core, files
from sojourn.result import derived_files
from sojourn.studies import outputs, record, runtime

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
                "directory (--out)"
            )
            raise _core.ResultError(message)
    found = study_name(folder)
    if found not in (None, study) and not force:
        message = (
            f'{folder} contains the output of the study "{found}"; expected another directory '
            "(--out), or --force to replace it"
        )
        raise _core.ResultError(message)


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
    outputs.PARQUET: _is_table,
    outputs.MARKDOWN: _marked(outputs.TABLE_HEAD.encode()),
    outputs.LATEX: _marked(derived_files.TABLE.mark),
    runtime.FILE: _json(_is_times),
}
# What pages and figures contain: Sojourn is in the metadata of figures.
_DRAWN: dict[str, Callable[[bytes], bool]] = {
    _PAGE: _marked(derived_files.REPORT.mark),
    ".svg": _marked(b"Sojourn"),
    ".png": _marked(b"Sojourn"),
    ".pdf": _marked(b"Sojourn"),
}
