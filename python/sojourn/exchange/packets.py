"""Writes the packets of simulated runs: a result keeps none, but each run can be repeated."""

from collections import Counter
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
    """Create the captures of an export: one per run, each by repeating it."""
    result = selection.result
    repeated.check(result, place=PLACE, remedy=REMEDY)
    for name in result.scenario.checked.external_queues:
        message = f"{PLACE}{name} is from outside Sojourn and may not be the same"
        raise _core.ResultError(message)
    products, replications = [], Counter(arm for arm, _ in selection.runs())
    for arm, replication in selection.runs():
        write = partial(_write, result, (arm, replication))
        several = selection.replication is None and replications[arm] > 1
        name = f"{arm}-{replication}" if several else arm
        products.append(Product(name=named(name, SUFFIX), write=write))
    return products


def _write(result: Result, run: tuple[str, int], path: Path) -> None:
    """Write the packets of a replication of an arm."""
    with _core.Replacement(path) as temporary:
        repeated.repeat(result, run, temporary, place=PLACE)
