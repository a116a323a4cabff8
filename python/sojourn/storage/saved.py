"""Save and load results in a directory: a manifest in JSON, Parquet tables, and texts.

A directory contains the files of one result or those of another one, never of both. The manifest
has the digests of the other files and, since format 2, its own digest.

Saved results are untrusted. A result is loaded only if every digest agrees, the values of the
manifest have their types, and the tables have their columns and fit into the memory allowed.
"""

import contextlib
import hashlib
import io
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin

import polars as pl

from sojourn import _core, files
from sojourn.arguments import OutputError

# The format that is written. Format 1 had no digest of the manifest.
FORMAT = 2
# A manifest names each value of a parameter once.
MAX_MANIFEST = 64 << 20
MAX_TEXT = 16 << 20
# Memory of the tables of a result.
MAX_BYTES = 2 << 30
# Most bytes of a Parquet file in addition to its rows.
_OVERHEAD = 1 << 20
# The key of the SHA-256 of the manifest, which covers all other keys as JSON without spaces whose
# keys are sorted.
DIGEST = "manifest_sha256"
# Keys of manifests that belong to the file, not to the result.
_OWN = {"format", "files", DIGEST}
# Keys of all manifests, and their types.
_FIELDS: dict[str, Any] = {
    "format": int,
    "sojourn": {"version": str, "commit": str},
    "scenario": dict[str, Any],
    "files": dict[str, str],
}

# Types of columns; those without ``pl.Null`` have no nulls.
TEXT = (pl.String,)
WHOLE = (pl.Int64, pl.UInt32, pl.UInt64)
FLAG = (pl.Boolean,)
NUMBER = (*WHOLE, pl.Float64, pl.Null)
VALUE = (*NUMBER, *TEXT, *FLAG)
# The types of columns by name; ``*`` stands for all columns that are not named.
Columns = Mapping[str, tuple[type[pl.DataType], ...]]


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
    # Keys of the manifest that identify a result: another one is only replaced by force.
    identity: tuple[str, ...]
    # Keys that a manifest must have besides those of all manifests, and their types.
    fields: Mapping[str, Any]
    # The columns of the tables by name, without the suffix, from the manifest.
    columns: Callable[[dict[str, Any]], Mapping[str, Columns]]
    # Names of the tables, without the suffix.
    tables: tuple[str, ...]
    # Names of texts, which a result may lack.
    texts: tuple[str, ...] = ()
    # Whether the values of a manifest, which have their types, agree with each other.
    is_consistent: Callable[[dict[str, Any]], bool] = lambda _: True
    # Raises a ResultError if a manifest in the directory must not be replaced without force.
    check_replaced: Callable[[Path, dict[str, Any], Mapping[str, Any]], None] = lambda *_: None

    def check(self, directory: str | Path, manifest: Mapping[str, Any], *, force: bool) -> None:
        """Check that a result may be saved in a directory, and that it can be written."""
        directory = Path(directory)
        with _claimed(directory) as folder:
            self._check_content(folder, directory, manifest, force=force)
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
        directory = Path(directory)
        contents = {name: text.encode() for name, text in (texts or {}).items() if text is not None}
        for name, frame in tables.items():
            stream = io.BytesIO()
            frame.write_parquet(stream, compression="zstd")
            contents[_file_of(name)] = stream.getvalue()
        digests = {name: hashlib.sha256(data).hexdigest() for name, data in contents.items()}
        whole = {"format": FORMAT, **manifest, "files": digests}
        digest = digest_of(whole)
        text = json.dumps({**whole, DIGEST: digest}, indent=1, ensure_ascii=False).encode()
        with _claimed(directory) as folder:
            found = self._check_content(folder, directory, manifest, force=force)
            if found is not None and not force:
                self.check_replaced(directory, found, manifest)
            folder.commit(
                [*contents.items(), (self.manifest, text)],
                remove=[name for name in self.texts if name not in contents],
                manifest=digest,
            )
        return digest

    def load(self, directory: str | Path, *, max_bytes: int = MAX_BYTES) -> Saved:
        """Read a result, whose tables take at most `max_bytes` of memory."""
        directory = Path(directory)
        while True:
            version = self._version(directory)
            manifest, digest = self._read_manifest(directory)
            try:
                return self._load_as(directory, manifest, digest, max_bytes)
            except _core.ResultError:
                # Another process may have replaced the result meanwhile, even by an equal one.
                if self._version(directory) == version:
                    raise

    def _version(self, directory: Path) -> tuple[int, int] | None:
        """Identify the file of the manifest: each save replaces it."""
        try:
            with os.fdopen(_core.open_committed(directory, self.manifest), "rb") as stream:
                found = os.fstat(stream.fileno())
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns

    def _load_as(
        self, directory: Path, manifest: dict[str, Any], digest: str, max_bytes: int
    ) -> Saved:
        digests, columns, left = manifest["files"], self.columns(manifest), max_bytes
        tables = {}
        for name in self.tables:
            tables[name] = self._table(directory, name, digests, columns[name], left)
            left -= int(tables[name].estimated_size())
        return Saved(
            {key: value for key, value in manifest.items() if key not in _OWN},
            digest,
            tables,
            {name: self._text(directory, name, digests) for name in self.texts if name in digests},
        )

    def _check_content(
        self, folder: _core.Folder, directory: Path, manifest: Mapping[str, Any], *, force: bool
    ) -> dict[str, Any] | None:
        """Check what is in a directory; return the manifest of the result in it."""
        if folder.is_vacant():
            return None
        if not (directory / self.manifest).exists():
            message = f"{directory}: contains other files; expected an empty directory or a new one"
            raise _core.ResultError(message)
        if force:
            return None
        found, _ = self._read_manifest(directory)
        if any(found.get(key) != manifest[key] for key in self.identity):
            message = "{directory}: contains another {kind}; expected {force} or another directory"
            raise OutputError(message, directory=directory, kind=self.kind)
        return found

    def _read_manifest(self, directory: Path) -> tuple[dict[str, Any], str]:
        """Return the manifest and its SHA-256."""
        path = directory / self.manifest
        try:
            content = _read(directory, self.manifest, MAX_MANIFEST + 1)
            manifest = files.parsed_json(content, MAX_MANIFEST)
        except FileNotFoundError:
            message = f"{directory}: no {self.kind}; expected a directory with {self.manifest}"
            raise _core.ResultError(message) from None
        except OSError as error:
            message = f"{path}: {error.strerror}"
            raise _core.ResultError(message) from None
        except ValueError as error:
            message = f"{path}: damaged: {error}"
            raise _core.DamagedResultError(message) from None
        digest = hashlib.sha256(content).hexdigest()
        try:
            return manifest, self._checked(manifest) or digest
        except ValueError as error:
            message = f"{path}: {error}"
            raise _core.DamagedResultError(message) from None

    def _checked(self, manifest: Any) -> str | None:
        """Check a manifest; return the digest in it, None in format 1."""
        readable = [FORMAT] if isinstance(manifest, dict) and DIGEST in manifest else [1, FORMAT]
        if not isinstance(manifest, dict) or manifest.get("format") not in readable:
            message = f"unknown format; expected a {self.kind} of format 1 or {FORMAT}"
            raise ValueError(message)
        digest = None
        if manifest["format"] != 1:
            digest = digest_of(manifest)
            if manifest.get(DIGEST) != digest:
                message = f"damaged: the SHA-256 of its content is not {DIGEST}"
                raise ValueError(message)
        fields = {**dict.fromkeys(self.identity, Any), **self.fields, **_FIELDS}
        if missing := fields.keys() - manifest.keys():
            message = f"damaged: no {', '.join(sorted(missing))}"
            raise ValueError(message)
        wrong = next((key for key, of in fields.items() if not _fits(manifest[key], of)), None)
        if wrong is not None or not self.is_consistent(manifest):
            message = f"damaged: {wrong or 'its content'} is not that of a {self.kind}"
            raise ValueError(message)
        scenario = json.dumps(manifest["scenario"])
        stated = manifest.get("scenario_sha256")
        try:
            if stated is not None and _core.scenario_sha256(scenario) != stated:
                message = "damaged: the SHA-256 of its scenario is not scenario_sha256"
                raise ValueError(message)
            _core.Scenario.from_saved(scenario)
        except _core.ScenarioError as error:
            message = f"damaged: not a valid scenario: {error}"
            raise ValueError(message) from None
        return digest

    def _content(self, directory: Path, name: str, digests: Mapping[str, str], most: int) -> bytes:
        """Read a file whose digest is in the manifest."""
        path = directory / name
        try:
            data = _read(directory, name, most + 1)
        except OSError as error:
            message = f"{path}: {error.strerror}"
            raise _core.ResultError(message) from None
        if len(data) > most:
            message = f"{path}: too large; expected at most {most} bytes"
            raise _core.DamagedResultError(message)
        if hashlib.sha256(data).hexdigest() != digests.get(name):
            message = f"{path}: damaged: its digest is not that in {self.manifest}"
            raise _core.DamagedResultError(message)
        return data

    def _text(self, directory: Path, name: str, digests: Mapping[str, str]) -> str:
        try:
            return self._content(directory, name, digests, MAX_TEXT).decode()
        except UnicodeDecodeError:
            message = f"{directory / name}: damaged: not valid UTF-8"
            raise _core.DamagedResultError(message) from None

    def _table(
        self, directory: Path, table: str, digests: Mapping[str, str], columns: Columns, left: int
    ) -> pl.DataFrame:
        name = _file_of(table)
        content = self._content(directory, name, digests, left + _OVERHEAD)
        try:
            return read_table(content, columns, left)
        except _core.DamagedResultError as error:
            message = f"{directory / name}: damaged: {error}"
            raise _core.DamagedResultError(message) from None


def scenario_text(manifest: Mapping[str, Any]) -> str:
    """Return the scenario of a manifest as canonical JSON; files that it names are not read."""
    return _core.Scenario.from_saved(json.dumps(manifest["scenario"])).to_json()


def digest_of(manifest: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a manifest without its digest."""
    covered = {key: value for key, value in manifest.items() if key != DIGEST}
    text = json.dumps(covered, separators=(",", ":"), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def read_table(content: bytes, columns: Columns, max_bytes: int) -> pl.DataFrame:
    """Read a table in Parquet that has the expected columns first, and others only for ``*``.

    The message of an error begins with a verb.
    """
    table = _core.read_table(content, max(max_bytes, 0))
    named = [name for name in columns if name != "*"]
    if table.column_names[: len(named)] != named:
        message = f"has other columns; expected {', '.join(named)} first"
        raise _core.DamagedResultError(message)
    try:
        frame = pl.DataFrame(table)
    except pl.exceptions.PolarsError as error:
        message = f"cannot be read: {error}"
        raise _core.DamagedResultError(message) from None
    others = columns.get("*", ())
    for name, found in frame.schema.items():
        kinds = columns.get(name, others)
        if found not in kinds:
            message = f"has a column of another type: {name} is {found}"
            raise _core.DamagedResultError(message)
        if pl.Null not in kinds and frame[name].null_count():
            message = f"has a column without some values: {name}"
            raise _core.DamagedResultError(message)
    return frame


def _fits(value: object, of: Any) -> bool:
    """Whether a value of JSON has a type, such as ``dict[str, list[int]]``, or keys with types.

    Examples
    --------
    >>> _fits({"a": [1]}, dict[str, list[int]]), _fits([True], list[int]), _fits({}, {"a": int})
    (True, False, False)
    """
    if of is Any:
        return True
    if isinstance(of, Mapping):
        return isinstance(value, dict) and all(
            key in value and _fits(value[key], one) for key, one in of.items()
        )
    if isinstance(of, UnionType):
        return any(_fits(value, one) for one in get_args(of))
    origin, arguments = get_origin(of) or of, get_args(of)
    if origin is float:
        origin = (int, float)
    if not isinstance(value, origin) or (isinstance(value, bool) and of is not bool):
        return False
    if isinstance(value, dict):
        return all(_fits(one, arguments[1]) for one in value.values())
    return not isinstance(value, list) or all(_fits(one, arguments[0]) for one in value)


@contextlib.contextmanager
def _claimed(directory: Path) -> Iterator[_core.Folder]:
    """Lock a directory, which is created if needed."""
    try:
        with _core.Folder(directory) as folder:
            if not folder.is_exclusive:
                files.warn_of_locks(directory)
            yield folder
    except OSError as error:
        message = f"cannot write {directory}: {error.strerror}"
        raise _core.ResultError(message) from None


def _read(directory: Path, name: str, most: int) -> bytes:
    """Read a file of a directory, even while another process replaces it."""
    with os.fdopen(_core.open_committed(directory, name), "rb") as stream:
        return stream.read(most)


def _file_of(table: str) -> str:
    return f"{table}.parquet"
