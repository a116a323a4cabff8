"""Save and load sweeps: ``sweep.json``, ``runs.parquet`` and ``points.parquet``."""

import hashlib
import io
import json
import tempfile
from pathlib import Path
from typing import Any

import polars as pl

from sojourn import _core, files, folder
from sojourn.result import derived_files

MANIFEST = derived_files.SWEEP
RUNS = "runs.parquet"
POINTS = "points.parquet"
FORMAT = 1
# A point has less than 1 kB in a manifest; tables have about 100 bytes per run.
MAX_MANIFEST = 256 << 20
MAX_TABLE = 2 << 30
# Bytes per run of the tables, without columns of applications: about 66 in runs.parquet and 300 per
# point in points.parquet, which has an interval for every mean (90 points of 3 runs, 25 November
# 2026). A saved sweep is smaller than this if points have several runs.
_BYTES_PER_RUN = 400
# Keys of the manifest that identify a sweep.
IDENTITY = ("scenario", "space", "until", "replications", "most")


def expected_bytes(runs: int) -> int:
    """Estimate the size of a saved sweep with a number of runs: at most about this many bytes."""
    return _BYTES_PER_RUN * runs


def check(directory: str | Path, manifest: dict[str, Any], *, force: bool) -> None:
    """Check that a sweep may be saved in a directory, and that it can be written."""
    place = Path(directory)
    _check_content(place, manifest, force=force)
    nearest = next(one for one in (place, *place.absolute().parents) if one.exists())
    try:
        with tempfile.TemporaryFile(dir=nearest):
            pass
    except OSError as error:
        message = f"cannot write {place}: {nearest}: {error.strerror}"
        raise _core.ResultError(message) from None


def _check_content(place: Path, manifest: dict[str, Any], *, force: bool) -> None:
    try:
        names = {entry.name for entry in place.iterdir()}
    except FileNotFoundError:
        return
    except OSError as error:
        message = f"{place}: {error.strerror}"
        raise _core.ResultError(message) from None
    hidden = {folder.NEW, folder.COMMIT}
    names = {name for name in names - hidden if not name.startswith(files.TEMPORARY)}
    if not names and not folder.current(place, MANIFEST).exists():
        return
    if not folder.current(place, MANIFEST).exists():
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
) -> str:
    """Write a sweep: all of its files or none."""
    place = Path(directory)
    # Before the directory is created.
    check(place, manifest, force=force)
    contents = {}
    for name, frame in ((RUNS, runs), (POINTS, points)):
        stream = io.BytesIO()
        frame.write_parquet(stream, compression="zstd")
        contents[name] = stream.getvalue()
    digests = {name: hashlib.sha256(data).hexdigest() for name, data in contents.items()}
    described = {**manifest, "runs": runs.height, "files": digests}
    text = json.dumps(described, indent=1, ensure_ascii=False)
    try:
        with folder.locked(place):
            # Another process may have saved a sweep in the meantime.
            _check_content(place, manifest, force=force)
            if not force:
                _check_replaced(place, complete=manifest["complete"], runs=runs.height)
            folder.commit(place, {**contents, MANIFEST: text.encode()})
            digest = hashlib.sha256(text.encode()).hexdigest()
            derived_files.remove_obsolete(place, digest)
    except OSError as error:
        message = f"{error.filename or place}: {error.strerror}"
        raise _core.ResultError(message) from None
    return digest


def _check_replaced(place: Path, *, complete: bool, runs: int) -> None:
    """Raise a ResultError if a less complete sweep would replace a saved one."""
    if complete or not (place / MANIFEST).exists():
        return
    found = _manifest(place)
    if found["complete"]:
        message = f"{place}: contains the complete sweep, which an interrupted one never replaces"
        raise _core.ResultError(message)
    if found.get("runs", 0) > runs:
        message = (
            f"{place}: contains {found['runs']} runs of the sweep, which one with {runs} runs "
            "never replaces"
        )
        raise _core.ResultError(message)


def load(directory: str | Path) -> tuple[dict[str, Any], pl.DataFrame, pl.DataFrame, str]:
    """Read a sweep."""
    place = Path(directory)
    manifest, digest = _read(place)
    while True:
        try:
            frames = [_table(place, name, manifest) for name in (RUNS, POINTS)]
        except _core.ResultError:
            # Another process may have replaced the sweep in the meantime.
            before, (manifest, digest) = digest, _read(place)
            if digest == before:
                raise
        else:
            break
    own = {key: value for key, value in manifest.items() if key not in {"files", "runs"}}
    return own, frames[0], frames[1], digest


def _manifest(place: Path) -> dict[str, Any]:
    return _read(place)[0]


def _read(place: Path) -> tuple[dict[str, Any], str]:
    """Return the manifest and its SHA-256."""
    path = place / MANIFEST
    try:
        manifest, digest = folder.read(
            place, MANIFEST, lambda found: files.read_json_digest(found, MAX_MANIFEST)
        )
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
    if not _is_described(manifest):
        message = f"{path}: damaged: its parameters are not those of a sweep"
        raise _core.DamagedResultError(message)
    return manifest, digest


def _is_described(manifest: dict[str, Any]) -> bool:
    """Whether the values of a manifest, which may come from anywhere, have their types."""
    paths, space, files_ = manifest["paths"], manifest["space"], manifest["files"]
    if not (isinstance(paths, list) and isinstance(space, dict) and isinstance(files_, dict)):
        return False
    parameters, where = space.get("parameters"), space.get("where")
    if not (isinstance(parameters, dict) and isinstance(where, list)):
        return False
    named = ",".join(parameters).split(",")
    return (
        all(isinstance(path, str) for path in paths)
        and sorted(named) == sorted(paths)
        and all(isinstance(values, list) for values in parameters.values())
        and all(isinstance(text, str) for text in where)
        and isinstance(space.get("sample"), str | None)
        and isinstance(manifest["complete"], bool)
        and all(isinstance(manifest[key], int) for key in ("points", "replications", "most"))
    )


def _table(place: Path, name: str, manifest: dict[str, Any]) -> pl.DataFrame:
    path = place / name
    try:
        data = folder.read(place, name, lambda found: files.head(found, MAX_TABLE))
    except OSError as error:
        message = f"{path}: {error.strerror}"
        raise _core.ResultError(message) from None
    if hashlib.sha256(data).hexdigest() != manifest["files"].get(name):
        message = f"{path}: damaged: its digest is not that in {MANIFEST}"
        raise _core.DamagedResultError(message)
    try:
        frame = pl.read_parquet(io.BytesIO(data))
    except pl.exceptions.PolarsError as error:
        message = f"{path}: damaged: {error}"
        raise _core.DamagedResultError(message) from None
    expected = ["point", *manifest["paths"], "arm", "replication" if name == RUNS else "n"]
    if frame.columns[: len(expected)] != expected:
        message = f"{path}: damaged: expected the columns {', '.join(expected)} first"
        raise _core.DamagedResultError(message)
    return frame
