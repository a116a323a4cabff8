"""Save and load sweeps: ``sweep.json``, ``runs.parquet`` and ``points.parquet``."""

import hashlib
import io
import json
from pathlib import Path
from typing import Any

import polars as pl

from sojourn import _core, files

MANIFEST = "sweep.json"
RUNS = "runs.parquet"
POINTS = "points.parquet"
FORMAT = 1
# A point has less than 1 kB in a manifest; tables have about 100 bytes per run.
MAX_MANIFEST = 256 << 20
MAX_TABLE = 2 << 30
# What decides whether two directories have the same sweep.
IDENTITY = ("scenario", "space", "until", "replications", "most")


def check(directory: str | Path, manifest: dict[str, Any], *, force: bool) -> None:
    """Check that a sweep may be saved in a directory.

    Parameters
    ----------
    directory
        The directory; it need not exist.
    manifest
        The description of the sweep. The same sweep may be replaced by a more complete one.
    force
        Whether another sweep may be replaced.

    Raises
    ------
    ResultError
        The directory contains other files or another sweep.
    """
    place = Path(directory)
    try:
        names = {entry.name for entry in place.iterdir()}
    except FileNotFoundError:
        return
    except OSError as error:
        message = f"{place}: {error.strerror}"
        raise _core.ResultError(message) from None
    names = {name for name in names if not name.startswith(files.TEMPORARY)}
    if not names:
        return
    if MANIFEST not in names:
        message = f"{place}: contains other files; expected an empty directory or a new one"
        raise _core.ResultError(message)
    if force:
        return
    found = _manifest(place)
    if any(found.get(key) != manifest[key] for key in IDENTITY):
        message = f"{place}: contains another sweep; expected --force or another directory"
        raise _core.ResultError(message)


def save(
    directory: str | Path,
    manifest: dict[str, Any],
    runs: pl.DataFrame,
    points: pl.DataFrame,
    *,
    force: bool,
) -> None:
    """Write a sweep; the manifest is replaced last and has the digests of the tables.

    Raises
    ------
    ResultError
        The directory cannot be written, or contains other files or another sweep.
    """
    check(directory, manifest, force=force)
    place = Path(directory)
    exists = (place / MANIFEST).exists()
    if exists and not (force or manifest["complete"]) and _manifest(place)["complete"]:
        message = f"{place}: contains the complete sweep, which an interrupted one never replaces"
        raise _core.ResultError(message)
    try:
        place.mkdir(parents=True, exist_ok=True)
        digests = {}
        for name, frame in ((RUNS, runs), (POINTS, points)):
            stream = io.BytesIO()
            frame.write_parquet(stream, compression="zstd")
            data = stream.getvalue()
            files.replace(place / name, data)
            digests[name] = hashlib.sha256(data).hexdigest()
        text = json.dumps({**manifest, "files": digests}, indent=1, ensure_ascii=False)
        files.replace(place / MANIFEST, text.encode())
    except OSError as error:
        message = f"{error.filename or place}: {error.strerror}"
        raise _core.ResultError(message) from None


def load(directory: str | Path) -> tuple[dict[str, Any], pl.DataFrame, pl.DataFrame]:
    """Read a sweep.

    Returns
    -------
    tuple
        The manifest, the runs and the points.

    Raises
    ------
    ResultError
        The directory contains no sweep.
    DamagedResultError
        A file is damaged.
    """
    place = Path(directory)
    manifest = _manifest(place)
    frames = [_table(place / name, manifest["files"].get(name)) for name in (RUNS, POINTS)]
    return {key: value for key, value in manifest.items() if key != "files"}, frames[0], frames[1]


def _manifest(place: Path) -> dict[str, Any]:
    path = place / MANIFEST
    try:
        manifest = files.read_json(path, MAX_MANIFEST)
    except FileNotFoundError:
        message = f"{place}: no sweep; expected a directory with {MANIFEST}"
        raise _core.ResultError(message) from None
    except OSError as error:
        message = f"{path}: {error.strerror}"
        raise _core.ResultError(message) from None
    except ValueError as error:
        message = f"{path}: damaged: {error}"
        raise _core.DamagedResultError(message) from None
    expected = {*IDENTITY, "files", "paths", "points", "complete"}
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        message = f"{path}: unknown format; expected a sweep of format {FORMAT}"
        raise _core.DamagedResultError(message)
    if missing := expected - manifest.keys():
        message = f"{path}: damaged: no {', '.join(sorted(missing))}"
        raise _core.DamagedResultError(message)
    return manifest


def _table(path: Path, digest: str | None) -> pl.DataFrame:
    try:
        data = files.head(path, MAX_TABLE)
    except OSError as error:
        message = f"{path}: {error.strerror}"
        raise _core.ResultError(message) from None
    if hashlib.sha256(data).hexdigest() != digest:
        message = f"{path}: damaged: its digest is not that in {MANIFEST}"
        raise _core.DamagedResultError(message)
    try:
        return pl.read_parquet(io.BytesIO(data))
    except pl.exceptions.PolarsError as error:
        message = f"{path}: damaged: {error}"
        raise _core.DamagedResultError(message) from None
