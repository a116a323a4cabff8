"""Save and load results in a directory: a manifest in JSON, Parquet tables, and texts.

A directory contains the files of one result or those of another one, never of both. The manifest
has the digests of the other files.
"""

import contextlib
import hashlib
import io
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from sojourn import _core, files
from sojourn.arguments import OutputError

# A point of a sweep has less than 1 kB in a manifest; tables have about 100 bytes per run.
MAX_MANIFEST = 256 << 20
MAX_FILE = 2 << 30


@dataclass(frozen=True, slots=True)
class Saved:
    """A saved result."""

    manifest: dict[str, Any]
    # The SHA-256 of the manifest.
    digest: str
    tables: dict[str, pl.DataFrame]
    texts: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The files of a kind of result."""

    # As in "expected a sweep".
    kind: str
    # The name of the manifest.
    manifest: str
    format: int
    # Keys of the manifest that identify a result: another one is only replaced by force.
    identity: tuple[str, ...]
    # Other keys that a manifest must have.
    required: tuple[str, ...] = ()
    # Names of the tables, without the suffix.
    tables: tuple[str, ...]
    # Names of texts, which a result may lack.
    texts: tuple[str, ...] = ()
    # Whether the values of a manifest, which may come from anywhere, have their types.
    is_described: Callable[[dict[str, Any]], bool] = lambda _: True
    # Raises a ResultError if a manifest in the directory must not be replaced without force.
    check_replaced: Callable[[Path, dict[str, Any], Mapping[str, Any]], None] = lambda *_: None

    def check(self, directory: str | Path, manifest: Mapping[str, Any], *, force: bool) -> None:
        """Check that a result may be saved in a directory, and that it can be written."""
        place = Path(directory)
        with _claimed(place) as folder:
            self._check_content(folder, place, manifest, force=force)
            folder.check([self.manifest, *map(_file_of, self.tables), *self.texts])

    def save(
        self,
        directory: str | Path,
        manifest: Mapping[str, Any],
        tables: Mapping[str, pl.DataFrame],
        texts: Mapping[str, str | None] | None = None,
        *,
        force: bool,
    ) -> str:
        """Write a result, all of its files or none; return the SHA-256 of the manifest."""
        place = Path(directory)
        contents = {name: text.encode() for name, text in (texts or {}).items() if text is not None}
        for name, frame in tables.items():
            stream = io.BytesIO()
            frame.write_parquet(stream, compression="zstd")
            contents[_file_of(name)] = stream.getvalue()
        digests = {name: hashlib.sha256(data).hexdigest() for name, data in contents.items()}
        whole = {**manifest, "files": digests}
        text = json.dumps(whole, indent=1, ensure_ascii=False).encode()
        digest = hashlib.sha256(text).hexdigest()
        with _claimed(place) as folder:
            found = self._check_content(folder, place, manifest, force=force)
            if found is not None and not force:
                self.check_replaced(place, found, manifest)
            folder.commit(
                [*contents.items(), (self.manifest, text)],
                remove=[name for name in self.texts if name not in contents],
                manifest=digest,
            )
        return digest

    def load(self, directory: str | Path) -> Saved:
        """Read a result."""
        place = Path(directory)
        manifest, digest = self._read_manifest(place)
        while True:
            digests = manifest["files"]
            try:
                return Saved(
                    {key: value for key, value in manifest.items() if key != "files"},
                    digest,
                    {name: self._table(place, _file_of(name), digests) for name in self.tables},
                    {
                        name: self._text(place, name, digests)
                        for name in self.texts
                        if name in digests
                    },
                )
            except _core.ResultError:
                # Another process may have replaced the result in the meantime.
                before, (manifest, digest) = digest, self._read_manifest(place)
                if digest == before:
                    raise

    def _check_content(
        self, folder: _core.Folder, place: Path, manifest: Mapping[str, Any], *, force: bool
    ) -> dict[str, Any] | None:
        """Check what is in a directory; return the manifest of the result in it."""
        if folder.is_vacant():
            return None
        if not (place / self.manifest).exists():
            message = f"{place}: contains other files; expected an empty directory or a new one"
            raise _core.ResultError(message)
        if force:
            return None
        found, _ = self._read_manifest(place)
        if any(found.get(key) != manifest[key] for key in self.identity):
            message = "{place}: contains another {kind}; expected {force} or another directory"
            raise OutputError(message, place=place, kind=self.kind)
        return found

    def _read_manifest(self, place: Path) -> tuple[dict[str, Any], str]:
        """Return the manifest and its SHA-256."""
        path = place / self.manifest
        try:
            content = _read(place, self.manifest, MAX_MANIFEST + 1)
            manifest = files.parsed_json(content, MAX_MANIFEST)
        except FileNotFoundError:
            message = f"{place}: no {self.kind}; expected a directory with {self.manifest}"
            raise _core.ResultError(message) from None
        except OSError as error:
            message = f"{path}: {error.strerror}"
            raise _core.ResultError(message) from None
        except ValueError as error:
            message = f"{path}: damaged: {error}"
            raise _core.DamagedResultError(message) from None
        if not isinstance(manifest, dict) or manifest.get("format") != self.format:
            message = f"{path}: unknown format; expected a {self.kind} of format {self.format}"
            raise _core.DamagedResultError(message)
        if missing := {*self.identity, *self.required, "files"} - manifest.keys():
            message = f"{path}: damaged: no {', '.join(sorted(missing))}"
            raise _core.DamagedResultError(message)
        if not isinstance(manifest["files"], dict) or not self.is_described(manifest):
            message = f"{path}: damaged: its parameters are not those of a {self.kind}"
            raise _core.DamagedResultError(message)
        return manifest, hashlib.sha256(content).hexdigest()

    def _content(self, place: Path, name: str, digests: Mapping[str, object]) -> bytes:
        """Read a file whose digest is in the manifest."""
        path = place / name
        try:
            data = _read(place, name, MAX_FILE)
        except OSError as error:
            message = f"{path}: {error.strerror}"
            raise _core.ResultError(message) from None
        if hashlib.sha256(data).hexdigest() != digests.get(name):
            message = f"{path}: damaged: its digest is not that in {self.manifest}"
            raise _core.DamagedResultError(message)
        return data

    def _text(self, place: Path, name: str, digests: Mapping[str, object]) -> str:
        try:
            return self._content(place, name, digests).decode()
        except UnicodeDecodeError:
            message = f"{place / name}: damaged: not valid UTF-8"
            raise _core.DamagedResultError(message) from None

    def _table(self, place: Path, name: str, digests: Mapping[str, object]) -> pl.DataFrame:
        try:
            return pl.read_parquet(io.BytesIO(self._content(place, name, digests)))
        except pl.exceptions.PolarsError as error:
            message = f"{place / name}: damaged: {error}"
            raise _core.DamagedResultError(message) from None


@contextlib.contextmanager
def _claimed(place: Path) -> Iterator[_core.Folder]:
    """Lock a directory, which is created if needed."""
    try:
        with _core.Folder(place) as folder:
            yield folder
    except OSError as error:
        message = f"cannot write {place}: {error.strerror}"
        raise _core.ResultError(message) from None


def _read(place: Path, name: str, most: int) -> bytes:
    """Read a file of a directory, even while another process replaces it."""
    with os.fdopen(_core.open_committed(place, name), "rb") as stream:
        return stream.read(most)


def _file_of(table: str) -> str:
    return f"{table}.parquet"
