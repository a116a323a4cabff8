"""Words for the numbers behind a drop or mark of a queue, as its state has them."""

import re
from collections.abc import Iterator
from typing import Any

from sojourn.result.formatting import counted, significant, size

Row = dict[str, Any]

# Parameters of queues that a decision depends on, by its reason.
PARAMETERS = {
    "overlimit": ("limit", "memory_limit", "memlimit", "flow_limit"),
    "aqm": ("target", "min", "max", "bytes"),
    "ce_threshold": ("ce_threshold", "step_thresh"),
}


def explained(facts: Row) -> tuple[str, str]:
    """Write the numbers behind a decision, and what else waited then."""
    parts = ", ".join(part for part in _reason(facts) if part)
    return "; ".join(part for part in (parts, _next(facts)) if part), _waiting(facts)


def _reason(facts: Row) -> Iterator[str]:
    """Write what the decision follows from."""
    state, limits, reason = facts["state"] or {}, facts["parameters"], facts["reason"]
    waited = _ms(facts["waited_until_action_ms"])
    if reason == "overlimit":
        yield from (f"{key} {_spaced(value)}" for key, value in limits.items())
        return
    if reason == "ack_filter":
        yield "a later acknowledgement in the queue makes it redundant"
        return
    if reason == "replaced":
        yield "a change of the link replaced or emptied the queue"
        return
    if reason == "ce_threshold":
        yield from (f"{waited} > {key} {_spaced(value)}" for key, value in limits.items())
        return
    yield {"L": "queue L", "C": "queue C"}.get(state.get("class", ""), state.get("class", ""))
    if "delay" in state and "drop_next" in state:
        target = f" > target {_spaced(limits['target'])}" if "target" in limits else ""
        yield (waited if target else f"waited {waited}") + target + _since(state)
    elif "blue_prob" in state:
        yield f"BLUE probability {_percent(state['blue_prob'])}"
    elif "average" in state:
        yield _average(state, limits)
    elif "delay" in state and "target" in limits:
        yield f"delay {_ms(state['delay'] / 1000)}, target {_spaced(limits['target'])}"
    elif "marking" in state:
        yield "marking is on" if state["marking"] else ""
    yield from _details(state)


def _details(state: Row) -> Iterator[str]:
    """Write the other numbers."""
    own = {"L": "prob_l", "C": "prob_c"}.get(state.get("class", ""), "prob")
    if state.get("matched"):
        yield "matched a packet of its flow"
    elif own in state:
        yield f"probability {_percent(state[own])}"
    if "samples" in state:
        fair = state.get("fair_share", 0)
        yield f"{counted(state['samples'], 'sample')} of its flow, fair share {significant(fair)}"
    if "bucket" in state:
        yield f"{counted(state['bucket'], 'packet')} in its emptiest bucket"
    if "load" in state:
        yield f"load {_percent(state['load'])} in an RTT of {_ms(state['active_rtt'] / 1000)}"
    if "count" in state and not state.get("matched"):
        count = state["count"]
        yield f"count {count}" if "drop_next" in state else f"packet {count} since the last signal"


def _since(state: Row) -> str:
    """Write for how long the delay has been above the target."""
    return f" for {_ms(state['above'] / 1000)}" if "above" in state else ""


def _average(state: Row, limits: Row) -> str:
    """Write the average of RED with its thresholds."""
    in_bytes = limits.get("bytes") == "on" or f"{limits.get('min')}".endswith("b")
    average = state["average"]
    text = size(average) if in_bytes else f"{significant(average)} packets"
    known = [f"{key} {_spaced(limits[key])}" for key in ("min", "max") if key in limits]
    return f"average {text}" + (f" ({', '.join(known)})" if known else "")


def _next(facts: Row) -> str:
    """Write when the next drop or mark is due."""
    left = (facts["state"] or {}).get("drop_next")
    if left is None or facts["reason"] != "aqm":
        return ""
    when = f"in {_ms(left / 1000)}" if left > 0 else "due at once"
    return f"next {facts['action']} {when}"


def _waiting(facts: Row) -> str:
    """Write what waited in the queue after the decision."""
    backlog = facts["backlog"]
    if not backlog["packets"]:
        return "nothing else waited"
    packets = f"{counted(backlog['packets'], 'other packet')} ({size(backlog['bytes'])})"
    flows, own = backlog["flows"], backlog["packets_of_flow"]
    of_flow = f", {own or 'none'} of its flow" if flows > 1 else ""
    return f"{packets} of {counted(flows, 'flow')} waited{of_flow}"


def _ms(milliseconds: float) -> str:
    return f"{significant(milliseconds)} ms"


def _percent(share: float) -> str:
    return f"{significant(100 * share)} %"


def _spaced(value: str) -> str:
    """Put a space between a number and its unit, and write bytes as elsewhere."""
    number = re.fullmatch(r"(\d+)b", value)
    return size(int(number[1])) if number else re.sub(r"(?<=\d)(?=[a-z])", " ", value)
