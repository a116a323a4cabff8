"""Batches: immutable objects with the rows of some finished runs.

A batch is a Parquet file. Its name contains the number of its rows and the SHA-256 digest of its
content, so that writers never conflict and damage is found.
"""

import hashlib
import io
import re
from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

SUFFIX = ".parquet"
_NAME = re.compile(r"([0-9a-f]{64})\.(\d{1,9})\.parquet")
_COLUMNS = ("key", "row", "scenario", "scenario_sha256", "version", "commit")


class DamagedError(Exception):
    """The content of a batch is not what was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What the rows of a batch belong to, for people who look into the store.

    Parameters
    ----------
    scenario
        Name of the scenario.
    scenario_sha256
        Digest of the scenario without its arms and the number of replications.
    version, commit
        Those of Sojourn.
    """

    scenario: str
    scenario_sha256: str
    version: str
    commit: str


def encode(rows: Mapping[str, bytes], about: About) -> tuple[str, bytes]:
    """Encode rows as a batch.

    Parameters
    ----------
    rows
        Encoded rows by the keys of their runs.
    about
        What they belong to.

    Returns
    -------
    tuple of str and bytes
        Name and content.

    Examples
    --------
    >>> about = About(scenario="s", scenario_sha256="0", version="1", commit="c")
    >>> name, data = encode({"a": b"1", "b": b"2"}, about)
    >>> count(name), decode(name, data) == ({"a": b"1", "b": b"2"}, about)
    (2, True)
    """
    frame = pl.DataFrame(
        {
            "key": list(rows),
            "row": list(rows.values()),
            "scenario": about.scenario,
            "scenario_sha256": about.scenario_sha256,
            "version": about.version,
            "commit": about.commit,
        },
        schema={name: pl.Binary if name == "row" else pl.String for name in _COLUMNS},
    )
    stream = io.BytesIO()
    frame.write_parquet(stream, compression="zstd")
    data = stream.getvalue()
    return f"{hashlib.sha256(data).hexdigest()}.{len(rows)}{SUFFIX}", data


def decode(name: str, data: bytes) -> tuple[dict[str, bytes], About]:
    """Decode a batch.

    Parameters
    ----------
    name, data
        As :func:`encode` returned them.

    Returns
    -------
    tuple of dict and About
        Its rows by the keys of their runs, and what they belong to.

    Raises
    ------
    DamagedError
        The content does not match the name, or is not a batch.
    """
    found = _NAME.fullmatch(name)
    if found is None:
        message = "its name is not that of a batch"
        raise DamagedError(message)
    if hashlib.sha256(data).hexdigest() != found[1]:
        message = "its content does not have the digest in its name"
        raise DamagedError(message)
    try:
        frame = pl.read_parquet(io.BytesIO(data), columns=list(_COLUMNS))
    except pl.exceptions.PolarsError as error:
        message = f"not a batch: {error}"
        raise DamagedError(message) from None
    if frame.height != int(found[2]) or not frame.height:
        message = f"{frame.height} rows; expected {found[2]}"
        raise DamagedError(message)
    first = frame.row(0, named=True)
    about = About(**{field: first[field] for field in _COLUMNS[2:]})
    return dict(zip(frame["key"].to_list(), frame["row"].to_list(), strict=True)), about


def count(name: str) -> int | None:
    """Return the number of rows of a batch; None if the name is not that of a batch."""
    found = _NAME.fullmatch(name)
    return None if found is None else int(found[2])
