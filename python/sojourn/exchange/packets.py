"""Writes the packets of simulated runs: a result keeps none, but each run can be repeated."""

import json
from functools import partial
from pathlib import Path

import polars as pl

from sojourn import _core
from sojourn.arguments import OutputError
from sojourn.exchange.selection import Product, Selection, named
from sojourn.result import Result, budget

SUFFIX = ".pcapng"


def captures(selection: Selection) -> list[Product]:
    """Create the captures of an export: one per arm, each by repeating a run."""
    result = selection.result
    _check_backend(result)
    _check_build(result)
    for name in result.scenario.checked.external_queues:
        message = (
            f"format pcapng: {name} is a queue from outside Sojourn, which may not be the same"
        )
        raise _core.ResultError(message)
    products = []
    for arm, replication in selection.runs():
        if replication:
            message = (
                f"format pcapng: replication {replication} cannot be repeated alone; expected "
                "replication 0"
            )
            raise _core.ResultError(message)
        write = partial(_repeat, result, arm)
        products.append(Product(name=named(arm, SUFFIX), write=write))
    return products


def _check_backend(result: Result) -> None:
    """Refuse results that cannot be repeated exactly."""
    backend = result.provenance.get("backend")
    if backend is not None and not backend["deterministic"]:
        message = (
            "format pcapng: the packets of a live run cannot be repeated; record them during the "
            "run, with {pcap}"
        )
        raise OutputError(message)


def _check_build(result: Result) -> None:
    """Refuse results of other builds, whose packets may differ."""
    made_by = result.provenance["sojourn"]
    commit = f"{made_by['commit'] or 'unknown'}{'-dirty' if made_by['dirty'] else ''}"
    if (made_by["version"], commit) != (_core.version(), _core.commit()):
        message = (
            "format pcapng: the result is of Sojourn {made_by}, this is {own}, whose packets may "
            "differ; record packets during the run, with {pcap}"
        )
        raise OutputError(
            message,
            made_by=f"{made_by['version']} (commit {commit})",
            own=f"{_core.version()} (commit {_core.commit()})",
        )


def _repeat(result: Result, arm: str, path: Path) -> None:
    """Repeat the first replication of an arm, and write its packets to a file."""
    scenario = result.scenario
    arms = [one for one in scenario.arms if one.name == arm]
    checked = scenario.replace(arms=arms, replications=1).checked
    budget.check(checked, jobs=1, max_memory=None)
    with budget.enforced(None), _core.Replacement(path) as temporary:
        capture = _core.Capture(temporary)
        outcome = _core.run(checked, jobs=1, backend=_backend(result), capture=capture)
        if not outcome.complete:
            raise KeyboardInterrupt
        if capture.failure is not None:
            raise OSError(capture.failure)
        if (table := _different(result, Result(outcome), arm)) is not None:
            message = (
                f'format pcapng: arm "{arm}": the repeated run differs from the result in the '
                f"table {table}"
            )
            raise _core.ResultError(message)


def _backend(result: Result) -> str | None:
    backend = result.provenance.get("backend")
    return None if backend is None else str(backend["name"])


def _different(result: Result, again: Result, arm: str) -> str | None:
    """Return the first table in which a repeated run differs; None if there is none."""
    for entry in json.loads(_core.column_catalogue()):
        name = str(entry["name"])
        former: pl.DataFrame = getattr(result, name).filter(arm=arm, replication=0)
        if not former.equals(getattr(again, name)):
            return name
    return None
