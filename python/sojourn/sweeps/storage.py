"""Save and load sweeps: ``sweep.json``, ``runs.parquet`` and ``points.parquet``."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from sojourn import _core
from sojourn.result import derived_files
from sojourn.storage.saved import Layout

FORMAT = 1
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
    if found.get("runs", 0) > manifest["runs"]:
        message = (
            f"{place}: contains {found['runs']} runs of the sweep, which one with "
            f"{manifest['runs']} runs never replaces"
        )
        raise _core.ResultError(message)


def load(directory: str | Path) -> tuple[dict[str, Any], pl.DataFrame, pl.DataFrame, str]:
    """Read a sweep."""
    saved = LAYOUT.load(directory)
    for name, count in (("runs", "replication"), ("points", "n")):
        expected = ["point", *saved.manifest["paths"], "arm", count]
        if saved.tables[name].columns[: len(expected)] != expected:
            message = (
                f"{Path(directory) / name}.parquet: damaged: expected the columns "
                f"{', '.join(expected)} first"
            )
            raise _core.DamagedResultError(message)
    manifest = {key: value for key, value in saved.manifest.items() if key != "runs"}
    return manifest, saved.tables["runs"], saved.tables["points"], saved.digest


def _is_described(manifest: dict[str, Any]) -> bool:
    """Whether the values of a manifest, which may come from anywhere, have their types."""
    paths, space = manifest["paths"], manifest["space"]
    if not (isinstance(paths, list) and isinstance(space, dict)):
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


LAYOUT = Layout(
    kind="sweep",
    manifest=derived_files.SWEEP,
    format=FORMAT,
    identity=("scenario", "space", "until", "replications", "most"),
    required=("paths", "points", "complete"),
    tables=("runs", "points"),
    is_described=_is_described,
    check_replaced=_check_replaced,
)
