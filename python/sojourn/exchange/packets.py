"""Writes the packets of simulated runs: a result keeps none, but each run can be repeated."""

from functools import partial
from pathlib import Path

from sojourn import _core
from sojourn.exchange.selection import Product, Selection, named
from sojourn.result import Result, repeated

SUFFIX = ".pcapng"
# What begins messages, and what ends those about runs that cannot be repeated.
PLACE = "format pcapng: "
REMEDY = "; record packets during the run, with {pcap}"


def captures(selection: Selection) -> list[Product]:
    """Create the captures of an export: one per arm, each by repeating a run."""
    result = selection.result
    repeated.check(result, 0, place=PLACE, remedy=REMEDY)
    for name in result.scenario.checked.external_queues:
        message = f"{PLACE}{name} is a queue from outside Sojourn, which may not be the same"
        raise _core.ResultError(message)
    products = []
    for arm, replication in selection.runs():
        repeated.check(result, replication, place=PLACE, remedy=REMEDY)
        write = partial(_write, result, arm)
        products.append(Product(name=named(arm, SUFFIX), write=write))
    return products


def _write(result: Result, arm: str, path: Path) -> None:
    """Write the packets of the first replication of an arm."""
    with _core.Replacement(path) as temporary:
        repeated.repeat(result, arm, temporary, place=PLACE)
