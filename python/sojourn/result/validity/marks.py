"""Findings on ECN: queues whose marks no flow accepts, and controls without the marks they need."""

import json
from collections.abc import Iterator, Mapping
from functools import cache

from sojourn import _core
from sojourn.queues.base import inner_queues
from sojourn.result.validity.bottlenecks import counted, waiting
from sojourn.result.validity.evidence import Block, Evidence, Setup
from sojourn.result.validity.finding import Finding, warning
from sojourn.scenario.model import negotiated_ecn

# Parameters that let a queue mark, unless they are off.
MARKING = ("ecn", "ce_threshold")
# A queue whose purpose is to mark.
L4S = "dualpi2"
# Queues that mark without a parameter.
ALWAYS = (L4S, "cake", "cake_mq", "sfb")
# A control needs ECN unless its declaration has this.
OPTIONAL = "optional"


@cache
def _defaults() -> Mapping[str, Mapping[str, str]]:
    """Return the defaults of the parameters of each queue."""
    return {
        kind["name"]: {one["key"]: one["default"] for one in kind["parameters"]}
        for kind in json.loads(_core.qdisc_catalogue())
    }


@cache
def _needs_marks(control: str) -> bool:
    """Whether a congestion control needs ECN."""
    name = control.split(" ", 1)[0]
    controls = json.loads(_core.cc_catalogue())
    return any(one["name"] == name and one["ecn"] != OPTIONAL for one in controls)


def _queues(qdisc: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield the name and the parameters of a queue and of its leaves."""
    parameters = dict(_core.qdisc_parameters(qdisc))
    yield qdisc.split(" ", 1)[0], parameters
    for leaf in inner_queues(parameters.get("leaf", "")):
        yield from _queues(leaf)


def _marking(qdisc: str) -> list[tuple[str, str, str]]:
    """List the queues and parameters that let a queue mark, with their values."""
    return [
        (kind, key, value)
        for kind, parameters in _queues(qdisc)
        for key, value in parameters.items()
        if key in MARKING and value != "off"
    ]


def _not_negotiated(evidence: Evidence) -> Iterator[Finding]:
    """Find queues that the user lets mark, while no flow that crosses them negotiated ECN."""
    found: dict[str, list[str]] = {}
    for arm, setup in evidence.arms.items():
        for name in setup.links:
            if _is_to_mark(evidence, setup, name) and not _may_be_marked(setup, name):
                found.setdefault(name, []).append(arm)
    for link, arms in found.items():
        if not _marks(evidence, arms, [link]):
            yield warning(
                f"{', '.join(arms)}: the queue of link {link} may mark, but no flow that crosses "
                "it negotiated ECN. Set ecn = true in the traffic."
            )


def _is_to_mark(evidence: Evidence, setup: Setup, link: str) -> bool:
    """Whether the user lets the queue of a link mark: in one arm only, or against its default."""
    qdisc = setup.links[link]["qdisc"]
    marking, kinds = _marking(qdisc), [kind for kind, _ in _queues(qdisc)]
    # With nqb, its low-latency queue also serves traffic without ECN.
    is_l4s = any(kind == L4S and given.get("nqb") != "on" for kind, given in _queues(qdisc))
    if is_l4s or any(value != _defaults()[kind][key] for kind, key, value in marking):
        return True
    others = (arm.links[link]["qdisc"] for arm in evidence.arms.values() if link in arm.links)
    alike = (other for other in others if [kind for kind, _ in _queues(other)] == kinds)
    return any(_marking(other) != marking for other in alike) and bool(marking)


def _may_be_marked(setup: Setup, link: str) -> bool:
    """Whether a flow that crosses a link negotiated ECN, or is a program that may have done so."""
    return any(
        block["type"] == "program" or bool(negotiated_ecn(block).get("ecn"))
        for block in setup.blocks.values()
        if link in setup.both_ways(block)
    )


def _marks(evidence: Evidence, arms: list[str], links: list[str]) -> int:
    """Count the marks of some links in all runs of some arms."""
    rows = (row for row in evidence.links if row["arm"] in arms and row["link"] in links)
    return sum(counted(row, "marks_") for row in rows)


def _no_marks(evidence: Evidence) -> Iterator[Finding]:
    """Find controls that need marks and get none although queues are congested."""
    found: dict[tuple[str, str], list[str]] = {}
    for arm, setup in evidence.arms.items():
        for name, block in setup.blocks.items():
            links = setup.forward(block)
            control = block.get("cc", "")
            if not _needs_marks(control) or not _is_congested(evidence, arm, block, links):
                continue
            if not _marks(evidence, [arm], links):
                found.setdefault((control.split(" ")[0], name), []).append(arm)
    for (control, group), arms in found.items():
        yield warning(
            f"{', '.join(arms)}: {control} of {group} needs ECN marks, but no queue on its path "
            "marked a packet. Use a queue that marks."
        )


def _is_congested(evidence: Evidence, arm: str, block: Block, links: list[str]) -> bool:
    """Whether a queue on the path of a block drops packets, or cannot mark those that wait."""
    setup = evidence.arms[arm]
    drops = (
        counted(row, "drops_")
        for row in evidence.links
        if row["arm"] == arm and row["link"] in links
    )
    unmarked = [name for name in links if not _may_mark(setup.links[name]["qdisc"])]
    waits = any(of.link in unmarked for of in waiting(evidence) if of.arm == arm)
    has_flows = any(
        flow["arm"] == arm and flow["group"] == block["name"] for flow in evidence.flows
    )
    return has_flows and bool(links) and (any(drops) or waits)


def _may_mark(qdisc: str) -> bool:
    """Whether a queue marks ECN-capable packets, as far as it is known."""
    kinds = [kind for kind, _ in _queues(qdisc)]
    is_known = all(kind in _defaults() for kind in kinds)
    return not is_known or bool(_marking(qdisc)) or any(kind in ALWAYS for kind in kinds)


CHECKS = (_not_negotiated, _no_marks)
