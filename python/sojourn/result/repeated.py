"""Repeats one run of a result with its packets captured; the records must be the same."""

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from sojourn import _core
from sojourn.arguments import OutputError
from sojourn.deferred import Deferred
from sojourn.result import budget

if TYPE_CHECKING:
    from sojourn.result.result import Result

# The module of the class needs this one.
_RESULT = Deferred("sojourn.result.result")
# Columns of flows that are means over the sample intervals, and the tables of these intervals.
SAMPLED = ("srtt_ms_mean", "cwnd_packets_mean")
SERIES = "_series"


def check(result: "Result", replication: int, *, place: str = "", remedy: str = "") -> None:
    """Refuse a run that cannot be repeated exactly; `place` begins and `remedy` ends messages."""
    backend = result.provenance.get("backend")
    if backend is not None and not backend["deterministic"]:
        message = f"{place}the packets of a live run cannot be repeated{remedy}"
        raise OutputError(message)
    made_by = result.provenance["sojourn"]
    commit = f"{made_by['commit'] or 'unknown'}{'-dirty' if made_by['dirty'] else ''}"
    if (made_by["version"], commit) != (_core.version(), _core.commit()):
        message = (
            f"{place}the result is of Sojourn {{made_by}}, this is {{own}}, whose packets may "
            f"differ{remedy}"
        )
        raise OutputError(
            message,
            made_by=f"{made_by['version']} (commit {commit})",
            own=f"{_core.version()} (commit {_core.commit()})",
        )
    if replication:
        message = (
            f"{place}replication {replication} cannot be repeated alone; expected replication 0"
        )
        raise _core.ResultError(message)


def repeat(
    result: "Result", arm: str, path: Path, *, place: str = "", sample: str | None = None
) -> "Result":
    """Repeat the first replication of an arm, and capture its packets in an existing file.

    With `sample` it also keeps events, and its series have this interval.
    """
    scenario = result.scenario
    arms = [one for one in scenario.arms if one.name == arm]
    changes: dict[str, Any] = {}
    if sample is not None:
        changes = {"sample": sample, "keep_events": True}
        arms = [
            replace(one, set={key: one.set[key] for key in one.set if key not in changes})
            for one in arms
        ]
    checked = scenario.replace(arms=arms, replications=1, **changes).checked
    budget.check(checked, jobs=1, max_memory=None)
    backend = result.provenance.get("backend")
    with budget.enforced(None):
        capture = _core.Capture(path)
        outcome = _core.run(
            checked,
            jobs=1,
            backend=None if backend is None else str(backend["name"]),
            capture=capture,
        )
        if not outcome.complete:
            raise KeyboardInterrupt
        if capture.failure is not None:
            raise OSError(capture.failure)
        again: Result = _RESULT.Result(outcome)
        if (table := _different(result, again, arm, sampled=sample is None)) is not None:
            message = (
                f'{place}arm "{arm}": the repeated run differs from the result in the table {table}'
            )
            raise _core.ResultError(message)
    return again


def _different(result: "Result", again: "Result", arm: str, *, sampled: bool) -> str | None:
    """Return the first table in which a repeated run differs; None if there is none.

    Unless `sampled`, the sample interval may differ, and the result may lack events.
    """
    for entry in json.loads(_core.column_catalogue()):
        name = str(entry["name"])
        former: pl.DataFrame = getattr(result, name).filter(arm=arm, replication=0)
        found: pl.DataFrame = getattr(again, name)
        if not sampled:
            if name.endswith(SERIES) or (name == "events" and former.is_empty()):
                continue
            former, found = (one.drop(SAMPLED, strict=False) for one in (former, found))
        if not former.equals(found):
            return name
    return None
