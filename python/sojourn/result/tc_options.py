"""The ``options`` of queues in the format of ``tc -j qdisc``."""

from collections.abc import Callable, Mapping
from typing import Any

from sojourn import _core

MICROS_PER_S = 1e6
BITS = 8

# What `tc` prints for the ACK filter of CAKE.
_ACK_FILTER = {
    "no-ack-filter": "disabled",
    "ack-filter": "enabled",
    "ack-filter-aggressive": "aggressive",
}
# The kernel's map of priorities to the bands of pfifo_fast.
_PFIFO_FAST = {
    "bands": 3,
    "priomap": [1, 2, 2, 2, 1, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1],
    "multiqueue": False,
}


def options(
    kind: str, values: Mapping[str, str], parameters: list[dict[str, Any]]
) -> dict[str, Any]:
    """Return the options of a queue as ``tc -j`` prints them.

    Names, units and values are those of iproute2: times in microseconds, rates in bytes per
    second. Flags that are off are omitted where `tc` omits them. Parameters that `tc` does not
    have keep their names. Kernel options that Sojourn does not simulate are omitted.
    """
    units = {item["key"]: item["unit"] for item in parameters}
    typed = {key: _UNITS.get(units[key], str)(text) for key, text in values.items()}
    return _WRITTEN.get(kind, dict)(typed)


def _without_off(typed: dict[str, Any]) -> dict[str, Any]:
    """Leave flags out that are off."""
    return {key: value for key, value in typed.items() if value is not False}


def _red(typed: dict[str, Any]) -> dict[str, Any]:
    """Print every flag of RED."""
    return {**dict.fromkeys(("ecn", "harddrop", "adaptive", "nodrop"), False), **typed}


def _cake(typed: dict[str, Any]) -> dict[str, Any]:
    framing, overhead = typed.pop("framing"), typed.pop("overhead", None)
    raw = overhead is None and framing == "noatm"
    return {
        "bandwidth": typed.pop("bandwidth", "unlimited"),
        **{key: typed.pop(key) for key in ("diffserv", "flowmode", "nat", "wash", "ingress")},
        "ack-filter": _ACK_FILTER[typed.pop("ack_filter")],
        "rtt": typed.pop("rtt"),
        "raw": raw,
        **({} if raw else {"atm": framing}),
        "overhead": overhead or 0,
        **{key: value for key, value in typed.items() if value},
    }


def _dualpi2(typed: dict[str, Any]) -> dict[str, Any]:
    """Use the names of iproute2 6.18, which have dashes."""
    names = {
        "memlimit": "memory-limit",
        "step_thresh": "step-thresh-us",
        "coupling_factor": "coupling",
        "classic_protection": "c-protection",
        "min_qlen_step": "min-qlen-step",
    }
    chosen = {
        "drop-overload": "drop" if typed.pop("drop_on_overload") else "overflow",
        "drop-early": typed.pop("drop_early", "drop_dequeue").replace("_", "-"),
        "ecn-mask": typed.pop("ecn_mask", "l4s_ect").replace("_", "-"),
    }
    return {**{names.get(key, key): value for key, value in typed.items()}, **chosen}


def _sfq(typed: dict[str, Any]) -> dict[str, Any]:
    """Print `perturb` in seconds, unlike other times."""
    if "perturb" in typed:
        typed["perturb"] = round(typed["perturb"] / MICROS_PER_S)
    return _without_off(typed)


_WRITTEN: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "red": _red,
    "choke": _red,
    "cake": _cake,
    "dualpi2": _dualpi2,
    "sfq": _sfq,
    **dict.fromkeys(("bfifo", "codel", "fq_codel", "pie", "fq_pie"), _without_off),
    "prio": lambda typed: {**typed, "multiqueue": False},
    "pfifo_fast": lambda typed: {**_PFIFO_FAST, **typed},
}


def _percent(text: str) -> float:
    share = float(text)
    return int(share) if share.is_integer() else share


_UNITS: dict[str, Callable[[str], Any]] = {
    "flag": lambda text: text == "on",
    "time": lambda text: round(_core.parse_time_s(text) * MICROS_PER_S),
    "rate": lambda text: round(_core.parse_rate_bits_per_s(text) / BITS),
    "size": lambda text: int(_core.parse_size_bytes(text)),
    "numbers": lambda text: [int(number) for number in text.split()],
    "packets": int,
    "count": int,
    "fraction": float,
    "weight": float,
    "percent": _percent,
}
