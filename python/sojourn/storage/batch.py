"""Batches: immutable objects with the rows of finished runs.

A batch is a Parquet file. Its name consists of the SHA-256 digest of the keys of its runs and of
their number, so equal batches have equal names and different batches never conflict. The metadata
of the file contains the digest of the file, which detects damage.
"""

import hashlib
import io
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import polars as pl

from sojourn import _core
from sojourn.storage import saved

# No batch is larger, as an object or in memory: it has at most 4,096 rows.
MAX_BYTES = 256 << 20
SUFFIX = ".parquet"
_NAME = re.compile(r"([0-9a-f]{64})\.(\d{1,9})\.parquet")
_COLUMNS: saved.Columns = {
    "key": saved.TEXT,
    "row": (pl.Binary,),
    **dict.fromkeys(("scenario", "scenario_sha256", "version", "commit"), saved.TEXT),
}
# The key of the digest in the metadata, and the placeholder while the digest is computed.
_DIGEST = "sojourn.sha256"
_BLANK = "0" * 64
# The lengths of both texts are in the bytes before them (Parquet's metadata is in Thrift).
_PLACE = re.compile(_DIGEST.encode().replace(b".", rb"\.") + rb"\x18\x40([0-9a-f]{64})")


class DamagedError(Exception):
    """The content of a batch differs from what was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """The scenario and version of the rows of a batch, for people who inspect the store."""

    scenario: str
    scenario_sha256: str
    version: str
    commit: str


def encode(rows: Mapping[str, bytes], about: About) -> tuple[str, bytes]:
    """Encode rows as a batch.

    Examples
    --------
    >>> about = About(scenario="s", scenario_sha256="0", version="1", commit="c")
    >>> name, data = encode({"a": b"1", "b": b"2"}, about)
    >>> count(name), decode(name, data) == ({"a": b"1", "b": b"2"}, about)
    (2, True)
    """
    keys = sorted(rows)
    frame = pl.DataFrame(
        {
            "key": keys,
            "row": [rows[key] for key in keys],
            "scenario": about.scenario,
            "scenario_sha256": about.scenario_sha256,
            "version": about.version,
            "commit": about.commit,
        },
        schema={name: of[0] for name, of in _COLUMNS.items()},
    )
    stream = io.BytesIO()
    frame.write_parquet(stream, compression="zstd", metadata={_DIGEST: _BLANK})
    blank = stream.getvalue()
    digest = hashlib.sha256(blank).hexdigest()
    return name_of(keys), _with_digest(blank, digest.encode())


def name_of(keys: Iterable[str]) -> str:
    """Return the name of the batch with the runs of these keys; equal keys count once."""
    ordered = sorted(set(keys))
    digest = hashlib.sha256("\n".join(ordered).encode()).hexdigest()
    return f"{digest}.{len(ordered)}{SUFFIX}"


def decode(name: str, data: bytes) -> tuple[dict[str, bytes], About]:
    """Decode a batch."""
    if _NAME.fullmatch(name) is None:
        message = "its name is not that of a batch"
        raise DamagedError(message)
    place = _place(data)
    blank = _with_digest(data, _BLANK.encode())
    if place is None or hashlib.sha256(blank).hexdigest().encode() != place[1]:
        message = "its content does not have the digest that it contains"
        raise DamagedError(message)
    try:
        frame = saved.read_table(data, _COLUMNS, MAX_BYTES)
    except _core.DamagedResultError as error:
        message = f"it {error}"
        raise DamagedError(message) from None
    if frame.is_empty() or name_of(frame["key"]) != name:
        message = "it contains other runs than its name says"
        raise DamagedError(message)
    first = frame.row(0, named=True)
    about = About(**{field: first[field] for field in list(_COLUMNS)[2:]})
    return dict(zip(frame["key"].to_list(), frame["row"].to_list(), strict=True)), about


def is_undamaged(name: str, data: bytes | None) -> bool:
    """Whether the content of an object is the batch of this name; false without content.

    Versions of the Parquet writer differ, so other bytes may be the same batch.
    """
    try:
        return data is not None and bool(decode(name.rpartition("/")[2], data))
    except DamagedError:
        return False


def _with_digest(data: bytes, digest: bytes) -> bytes:
    """Replace the digest in the metadata of a batch."""
    place = _place(data)
    return data if place is None else data[: place.start(1)] + digest + data[place.end(1) :]


def _place(data: bytes) -> re.Match[bytes] | None:
    """Find the digest, which is in the metadata at the end of the file, after the rows."""
    return next(iter([*_PLACE.finditer(data)][-1:]), None)


def count(name: str) -> int | None:
    """Return the number of rows of a batch; None if the name is not that of a batch."""
    found = _NAME.fullmatch(name)
    return None if found is None else int(found[2])
