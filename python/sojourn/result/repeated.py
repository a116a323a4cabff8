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
# The column of events that is null unless the scenario samples the state.
STATE = "state"
SERIES = "_series"


def check(result: "Result", *, place: str = "", remedy: str = "") -> None:
    """Refuse runs that cannot be repeated exactly; `place` begins and `remedy` ends messages."""
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


def repeat(
    result: "Result",
    run: tuple[str, int],
    path: Path,
    *,
    place: str = "",
    sample: str | None = None,
) -> "Result":
    """Repeat a replication of an arm, and capture its packets in an existing file.

    With `sample` it also keeps events with the state of the queue, and its series have this
    interval.
    """
    arm, replication = run
    scenario = result.scenario
    arms = [one for one in scenario.arms if one.name == arm]
    changes: dict[str, Any] = {}
    if sample is not None:
        changes = {"sample": sample, "keep_events": True, "sample_state": False}
        arms = [
            replace(one, set={key: one.set[key] for key in one.set if key not in changes})
            for one in arms
        ]
    budget.check(
        scenario.replace(arms=arms, replications=1, **changes).checked, jobs=1, max_memory=None
    )
    checked = scenario.replace(arms=arms, replications=replication + 1, **changes).checked
    backend = result.provenance.get("backend")
    with budget.enforced(None):
        capture = _core.Capture(path, state=sample is not None)
        outcome = _core.run(
            checked,
            jobs=1,
            backend=None if backend is None else str(backend["name"]),
            capture=capture,
            only=replication,
        )
        if not outcome.complete:
            raise KeyboardInterrupt
        if capture.failure is not None:
            raise OSError(capture.failure)
        again: Result = _RESULT.Result(outcome)
        if (table := _different(result, again, run, sampled=sample is None)) is not None:
            which = f'arm "{arm}"' + (f", replication {replication}" if replication else "")
            message = (
                f"{place}{which}: the repeated run differs from the result in the table {table}"
            )
            raise _core.ResultError(message)
    return again


def _different(
    result: "Result", again: "Result", run: tuple[str, int], *, sampled: bool
) -> str | None:
    """Return the first table in which a repeated run differs; None if there is none.

    Unless `sampled`, the sample interval may differ, and the result may lack events.
    """
    for entry in json.loads(_core.column_catalogue()):
        name = str(entry["name"])
        former: pl.DataFrame = getattr(result, name).filter(arm=run[0], replication=run[1])
        found: pl.DataFrame = getattr(again, name)
        if not sampled:
            if name.endswith(SERIES) or (name == "events" and former.is_empty()):
                continue
            others = [*SAMPLED, STATE] if name == "events" else SAMPLED
            former, found = (one.drop(others, strict=False) for one in (former, found))
        if not former.equals(found):
            return name
    return None
