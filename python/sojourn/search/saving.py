"""Save and load the results of searches: a manifest in JSON and a Parquet file per table."""

import hashlib
import io
import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from sojourn import _core, files, folder

FORMAT = 1
MAX_MANIFEST = 64 << 20
MAX_TABLE = 1 << 30


@dataclass(frozen=True, slots=True)
class Saved:
    """A saved result."""

    manifest: dict[str, Any]
    tables: dict[str, pl.DataFrame]
    texts: dict[str, str]


def check(directory: str | Path, kind: str, identity: Mapping[str, Any], *, force: bool) -> None:
    """Check that a result may be saved in a directory, and that it can be written."""
    place = Path(directory)
    _check_content(place, kind, identity, force=force)
    _check_writable(place, place)


def check_file(file: str | Path) -> None:
    """Check that a file can be written."""
    place = Path(file)
    if place.is_symlink() or (place.exists() and not place.is_file()):
        message = f"cannot write {place}: it exists and is not a regular file"
        raise _core.ResultError(message)
    if not place.parent.is_dir():
        message = f"cannot write {place}: {place.parent} is not a directory"
        raise _core.ResultError(message)
    _check_writable(place, place.parent)


def _check_writable(place: Path, directory: Path) -> None:
    nearest = next(one for one in (directory, *directory.absolute().parents) if one.exists())
    try:
        with tempfile.TemporaryFile(dir=nearest):
            pass
    except OSError as error:
        message = f"cannot write {place}: {nearest}: {error.strerror}"
        raise _core.ResultError(message) from None


def _check_content(place: Path, kind: str, identity: Mapping[str, Any], *, force: bool) -> None:
    try:
        names = {entry.name for entry in place.iterdir()}
    except FileNotFoundError:
        return
    except OSError as error:
        message = f"cannot write {place}: {error.strerror}"
        raise _core.ResultError(message) from None
    hidden = {folder.NEW, folder.COMMIT}
    names = {name for name in names - hidden if not name.startswith(files.TEMPORARY)}
    exists = folder.current(place, f"{kind}.json").exists()
    if not names and not exists:
        return
    if not exists:
        message = f"{place}: contains other files; expected an empty directory or a new one"
        raise _core.ResultError(message)
    if force:
        return
    found, _ = _manifest(place, kind)
    if any(found.get(key) != value for key, value in identity.items()):
        message = f"{place}: contains another result; expected --force or another directory"
        raise _core.ResultError(message)


def save(
    directory: str | Path,
    kind: str,
    manifest: Mapping[str, Any],
    tables: Mapping[str, pl.DataFrame],
    texts: Mapping[str, str | None],
    *,
    identity: Sequence[str],
    force: bool,
) -> None:
    """Write a result, all of its files or none; the manifest has the digests of the others."""
    place = Path(directory)
    own = {key: manifest[key] for key in identity}
    # Before the directory is created.
    check(place, kind, own, force=force)
    contents = {name: text.encode() for name, text in texts.items() if text is not None}
    for name, frame in tables.items():
        stream = io.BytesIO()
        frame.write_parquet(stream, compression="zstd")
        contents[f"{name}.parquet"] = stream.getvalue()
    digests = {name: hashlib.sha256(data).hexdigest() for name, data in contents.items()}
    whole = {"format": FORMAT, **manifest, "files": digests}
    text = json.dumps(whole, indent=1, ensure_ascii=False)
    try:
        with folder.locked(place):
            # Another process may have saved a result in the meantime.
            _check_content(place, kind, own, force=force)
            folder.commit(place, {**contents, f"{kind}.json": text.encode()})
            for name in texts.keys() - contents.keys():
                (place / name).unlink(missing_ok=True)
    except OSError as error:
        message = f"cannot write {error.filename or place}: {error.strerror}"
        raise _core.ResultError(message) from None


def load(
    directory: str | Path, kind: str, tables: Sequence[str], texts: Sequence[str] = ()
) -> Saved:
    """Read a result."""
    place = Path(directory)
    manifest, digest = _manifest(place, kind)
    while True:
        digests = manifest["files"]
        try:
            found = Saved(
                {key: value for key, value in manifest.items() if key not in {"files", "format"}},
                {name: _table(place, f"{name}.parquet", digests) for name in tables},
                {name: _text(place, name, digests) for name in texts if name in digests},
            )
        except _core.ResultError:
            # Another process may have replaced the result in the meantime.
            before, (manifest, digest) = digest, _manifest(place, kind)
            if digest == before:
                raise
        else:
            return found


def _manifest(place: Path, kind: str) -> tuple[dict[str, Any], str]:
    """Return the manifest and its SHA-256."""
    path = folder.current(place, f"{kind}.json")
    try:
        manifest, digest = files.read_json_digest(path, MAX_MANIFEST)
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
    return manifest, digest


def _read(place: Path, name: str, digests: Mapping[str, object]) -> bytes:
    """Read a file whose digest is in the manifest."""
    path = folder.current(place, name)
    try:
        data = files.head(path, MAX_TABLE)
    except OSError as error:
        message = f"{path}: {error.strerror}"
        raise _core.ResultError(message) from None
    if hashlib.sha256(data).hexdigest() != digests.get(name):
        message = f"{path}: damaged: its digest is not that in the manifest"
        raise _core.DamagedResultError(message)
    return data


def _text(place: Path, name: str, digests: Mapping[str, object]) -> str:
    try:
        return _read(place, name, digests).decode()
    except UnicodeDecodeError:
        message = f"{place / name}: damaged: not valid UTF-8"
        raise _core.DamagedResultError(message) from None


def _table(place: Path, name: str, digests: Mapping[str, object]) -> pl.DataFrame:
    try:
        return pl.read_parquet(io.BytesIO(_read(place, name, digests)))
    except pl.exceptions.PolarsError as error:
        message = f"{place / name}: damaged: {error}"
        raise _core.DamagedResultError(message) from None
