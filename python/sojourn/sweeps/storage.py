"""Save and load sweeps: ``sweep.json``, ``runs.parquet`` and ``points.parquet``."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from sojourn import _core
from sojourn.result import derived_files
from sojourn.storage.saved import MAX_BYTES, NUMBER, TEXT, VALUE, WHOLE, Columns, Layout

# Bytes per run of the tables, without columns of applications: about 66 in runs.parquet and 300 per
# point in points.parquet, which has an interval for every mean (90 points of 3 runs, 25 November
# 2026). A saved sweep is smaller than this if points have several runs.
_BYTES_PER_RUN = 400


def expected_bytes(runs: int) -> int:
    """Estimate the size of a saved sweep with a number of runs: at most about this many bytes."""
    return _BYTES_PER_RUN * runs


def save(
    directory: str | Path,
    manifest: Mapping[str, Any],
    runs: pl.DataFrame,
    points: pl.DataFrame,
    *,
    force: bool,
) -> str:
    """Write a sweep: all of its files or none."""
    described = {**manifest, "runs": runs.height}
    return LAYOUT.save(directory, described, {"runs": runs, "points": points}, force=force)


def _check_replaced(place: Path, found: dict[str, Any], manifest: Mapping[str, Any]) -> None:
    """Raise a ResultError if a less complete sweep would replace a saved one."""
    if manifest["complete"]:
        return
    if found["complete"]:
        message = f"{place}: contains the complete sweep, which an interrupted one never replaces"
        raise _core.ResultError(message)
    if found["runs"] > manifest["runs"]:
        message = (
            f"{place}: contains {found['runs']} runs of the sweep, which one with "
            f"{manifest['runs']} runs never replaces"
        )
        raise _core.ResultError(message)


def load(
    directory: str | Path, *, max_bytes: int = MAX_BYTES
) -> tuple[dict[str, Any], pl.DataFrame, pl.DataFrame, str]:
    """Read a sweep, whose tables take at most `max_bytes` of memory."""
    saved = LAYOUT.load(directory, max_bytes=max_bytes)
    manifest = {key: value for key, value in saved.manifest.items() if key != "runs"}
    return manifest, saved.tables["runs"], saved.tables["points"], saved.digest


def _columns(manifest: dict[str, Any]) -> dict[str, Columns]:
    """List the columns of the tables; metrics follow those that are named."""
    point = {"point": WHOLE, **dict.fromkeys(manifest["paths"], VALUE), "arm": TEXT}
    return {
        "runs": {**point, "replication": WHOLE, "*": NUMBER},
        "points": {**point, "n": WHOLE, "*": NUMBER},
    }


def _is_consistent(manifest: dict[str, Any]) -> bool:
    """Whether the parameters are those of the paths."""
    named = ",".join(manifest["space"]["parameters"]).split(",")
    return sorted(named) == sorted(manifest["paths"])


LAYOUT = Layout(
    kind="sweep",
    manifest=derived_files.SWEEP,
    identity=("scenario", "space", "until", "replications", "most"),
    fields={
        "scenario_sha256": str,
        "space": {"parameters": dict[str, list[Any]], "where": list[str], "sample": str | None},
        "paths": list[str],
        "points": int,
        "replications": int,
        "until": str | None,
        "most": int,
        "complete": bool,
        "runs": int,
    },
    tables=("runs", "points"),
    columns=_columns,
    is_consistent=_is_consistent,
    check_replaced=_check_replaced,
)
