"""Save and load the results of searches: a manifest in JSON and a Parquet file per table."""

import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from sojourn import _core, files

FORMAT = 1
MAX_MANIFEST = 64 << 20
MAX_TABLE = 1 << 30


def check(directory: str | Path, kind: str, manifest: Mapping[str, Any], *, force: bool) -> None:
    """Check that a result may be saved in a directory.

    Parameters
    ----------
    directory
        The directory; it need not exist.
    kind
        The kind of search, such as ``"tune"``.
    manifest
        The keys that identify the search; a result of the same search may be replaced.
    force
        Whether another search of the same kind may be replaced.

    Raises
    ------
    ResultError
        The directory contains other files or another search.
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
    if f"{kind}.json" not in names:
        message = f"{place}: contains other files; expected an empty directory or a new one"
        raise _core.ResultError(message)
    if force:
        return
    found = _manifest(place, kind)
    if any(found.get(key) != value for key, value in manifest.items()):
        message = f"{place}: contains another result; expected --force or another directory"
        raise _core.ResultError(message)


def save(
    directory: str | Path,
    kind: str,
    manifest: Mapping[str, Any],
    tables: Mapping[str, pl.DataFrame],
    texts: Mapping[str, str],
) -> None:
    """Write a result; the manifest is written last and has the digests of the tables.

    Parameters
    ----------
    directory
        The directory, created if needed.
    kind
        The kind of search: the manifest is ``<kind>.json``.
    manifest
        The manifest.
    tables
        The tables by name: ``<name>.parquet``.
    texts
        Other files by name, such as scenarios.

    Raises
    ------
    ResultError
        The directory cannot be written.
    """
    place = Path(directory)
    try:
        place.mkdir(parents=True, exist_ok=True)
        digests = {}
        for name, frame in tables.items():
            stream = io.BytesIO()
            frame.write_parquet(stream, compression="zstd")
            files.replace(place / f"{name}.parquet", stream.getvalue())
            digests[name] = hashlib.sha256(stream.getvalue()).hexdigest()
        for name, text in texts.items():
            files.replace(place / name, text.encode())
        whole = {"format": FORMAT, **manifest, "files": digests}
        text = json.dumps(whole, indent=1, ensure_ascii=False)
        files.replace(place / f"{kind}.json", text.encode())
    except OSError as error:
        message = f"{error.filename or place}: {error.strerror}"
        raise _core.ResultError(message) from None


def load(
    directory: str | Path, kind: str, names: Sequence[str]
) -> tuple[dict[str, Any], dict[str, pl.DataFrame]]:
    """Read a result.

    Parameters
    ----------
    directory
        The directory.
    kind
        The kind of search.
    names
        The names of its tables.

    Returns
    -------
    tuple
        The manifest and the tables by name.

    Raises
    ------
    ResultError
        The directory contains no such result.
    DamagedResultError
        A file is damaged.
    """
    place = Path(directory)
    manifest = _manifest(place, kind)
    digests = manifest.pop("files")
    tables = {name: _table(place / f"{name}.parquet", digests.get(name)) for name in names}
    del manifest["format"]
    return manifest, tables


def _manifest(place: Path, kind: str) -> dict[str, Any]:
    path = place / f"{kind}.json"
    try:
        manifest = files.read_json(path, MAX_MANIFEST)
    except FileNotFoundError:
        message = f"{place}: no result of {kind}; expected a directory with {path.name}"
        raise _core.ResultError(message) from None
    except OSError as error:
        message = f"{path}: {error.strerror}"
        raise _core.ResultError(message) from None
    except ValueError as error:
        message = f"{path}: damaged: {error}"
        raise _core.DamagedResultError(message) from None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        message = f"{path}: unknown format; expected a result of {kind} of format {FORMAT}"
        raise _core.DamagedResultError(message)
    if not isinstance(manifest.get("files"), dict):
        message = f"{path}: damaged: no files"
        raise _core.DamagedResultError(message)
    return manifest


def _table(path: Path, digest: object) -> pl.DataFrame:
    try:
        data = files.head(path, MAX_TABLE)
    except OSError as error:
        message = f"{path}: {error.strerror}"
        raise _core.ResultError(message) from None
    if hashlib.sha256(data).hexdigest() != digest:
        message = f"{path}: damaged: its digest is not that in the manifest"
        raise _core.DamagedResultError(message)
    try:
        return pl.read_parquet(io.BytesIO(data))
    except pl.exceptions.PolarsError as error:
        message = f"{path}: damaged: {error}"
        raise _core.DamagedResultError(message) from None
