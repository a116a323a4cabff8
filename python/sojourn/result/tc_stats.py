"""Queue statistics in the format of ``tc -j -s qdisc``, and the options that they list."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import polars as pl

from sojourn import _core
from sojourn.arguments import ArgumentError
from sojourn.queues.base import inner_queues
from sojourn.result import Result
from sojourn.result.estimates import check_arms

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


def _fq_codel(typed: dict[str, Any]) -> dict[str, Any]:
    """Print the value and the mask of the selector apart, as numbers."""
    selector = typed.pop("ce_threshold_selector", None)
    if selector is not None:
        value, mask = (int(byte, 0) for byte in selector.split("/"))
        typed |= {"ce_threshold_selector": value, "ce_threshold_mask": mask}
    return _without_off(typed)


def _sfq(typed: dict[str, Any]) -> dict[str, Any]:
    """Print `perturb` in seconds, unlike other times."""
    if "perturb" in typed:
        typed["perturb"] = round(typed["perturb"] / MICROS_PER_S)
    return _without_off(typed)


_WRITTEN: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "red": _red,
    "choke": _red,
    **dict.fromkeys(("cake", "cake_mq"), _cake),
    "dualpi2": _dualpi2,
    "sfq": _sfq,
    "fq_codel": _fq_codel,
    **dict.fromkeys(("bfifo", "codel", "pie", "fq_pie"), _without_off),
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


_COUNTED = ("bytes", "packets", "drops")
# Keys of a link that make its rate vary, so that the queue has no fixed rate.
_VARYING = ("trace", "rate_trace", "medium")


def queues(result: Result, *, arm: str, replication: int = 0) -> list[dict[str, Any]]:
    """Return the queue statistics at the end of a run, in the format of ``tc -j -s qdisc``.

    Counters cover the whole run, warm-up included. Times are in microseconds and rates in bytes
    per second, as in ``tc``. Statistics without a name in `tc` keep Sojourn's.
    """
    of_run = (pl.col("arm") == arm) & (pl.col("replication") == replication)
    links = result.links.filter(of_run)
    if links.is_empty():
        raise _unfinished(result, arm, replication)
    series = result.link_series.filter(of_run)
    numbers = result.queue_statistics.filter(of_run)
    return [
        queue
        for link in links.iter_rows(named=True)
        for queue in _with_leaves(
            _queue(
                link["link"],
                _values(result, arm, link),
                link["qdisc"].split()[0],
                series.filter(pl.col("link") == link["link"]),
                numbers.filter(pl.col("link") == link["link"]),
            )
        )
    ]


def _unfinished(result: Result, arm: str, replication: int) -> ArgumentError:
    """Return the error that names the replications of an arm, or the arms, that have finished."""
    check_arms(result.table()["arm"], "arm", arm)
    finished = result.table().filter(pl.col("arm") == arm)["replication"].sort().to_list()
    rule = 'not finished in arm "{arm_name}"; expected one of {finished}'
    return ArgumentError("replication", replication, rule, arm_name=arm, finished=_ranges(finished))


def _ranges(numbers: list[int]) -> str:
    """Return ascending numbers as text.

    Examples
    --------
    >>> _ranges([0, 1, 2, 3, 4, 6])
    '0 to 4, 6'
    """
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(f"{run[0]} to {run[-1]}" if run[1:] else f"{run[0]}" for run in runs)


def _with_leaves(queue: dict[str, Any]) -> list[dict[str, Any]]:
    """Give the inner queues of a classful queue entries of their own."""
    parts = queue.pop(_declared(queue["kind"])["tc_statistics"]["leaves"] or "", [])
    given = inner_queues(queue["options"].get("leaf", ""))
    leaves = []
    for number, part in enumerate(parts):
        spec = _leaf_of(given, number)
        kind, values = spec.split()[0], dict(_core.qdisc_parameters(spec))
        leaves.append(
            {
                "kind": kind,
                "handle": f"{number + 1:x}0:",
                "parent": f"1:{number + 1:x}",
                "dev": queue["dev"],
                "options": options(kind, values, _declared(kind)["parameters"]),
                **{name: part[name] for name in _COUNTED},
                "overlimits": _overlimits(kind, part),
                "requeues": 0,
                **_named(kind, {key: part[key] for key in part if key not in _COUNTED}),
            }
        )
    return [queue, *leaves]


def _declared(kind: str) -> dict[str, Any]:
    """Return the entry of a queue in the catalogue; a class of Python has none."""
    catalogue: list[dict[str, Any]] = json.loads(_core.qdisc_catalogue())
    statistics: dict[str, Any] = {"counters": [], "leaves": None, "overlimits": False}
    nothing = {"parameters": [], "tc_statistics": statistics}
    return next((entry for entry in catalogue if entry["name"] == kind), nothing)


def _values(result: Result, arm: str, link: dict[str, Any]) -> dict[str, str]:
    """Return the parameters of a link's queue, with those that are derived from the link."""
    scenario, name = result.scenario, link["link"]
    varies = any(
        getattr(scenario.links[name], key) is not None
        or arm in scenario.checked.arms_that_set(f"links.{name}.{key}")
        for key in _VARYING
    )
    bits_per_s = None if varies else round(link["rate_mbit_per_s"] * 1e6)
    return dict(_core.qdisc_parameters(link["qdisc"], bits_per_s))


def _overlimits(kind: str, numbers: dict[str, Any]) -> int | None:
    """Remove `overlimits` from the statistics of a queue and return it; some queues lack it."""
    counted: int | None = numbers.pop("overlimits", None)
    return counted if _declared(kind)["tc_statistics"]["overlimits"] else 0


def _named(kind: str, numbers: dict[str, Any]) -> dict[str, Any]:
    """Rename statistics as in iproute2, which prints those of DualPI2 with dashes."""
    if kind != "dualpi2":
        return numbers
    return {name.replace("_", "-"): value for name, value in numbers.items()}


def _leaf_of(given: list[str], number: int) -> str:
    """Return the queue of a class: a single one is for all classes, the default is a FIFO."""
    if len(given) == 1:
        return given[0]
    return given[number] if number < len(given) else "pfifo"


def _queue(
    link: str, values: dict[str, str], kind: str, series: pl.DataFrame, rows: pl.DataFrame
) -> dict[str, Any]:
    def total(*columns: str) -> int:
        return sum(int(series[column].sum()) for column in columns)

    def last(column: str) -> int:
        return 0 if series.is_empty() else int(series[column][-1])

    declared = _declared(kind)
    numbers = _numbers(rows)
    overlimits = _overlimits(kind, numbers)
    return {
        "kind": kind,
        "handle": "1:",
        "root": True,
        "dev": link,
        "refcnt": 1,
        "options": options(kind, values, declared["parameters"]),
        "bytes": total("sent_bytes"),
        "packets": total("sent_packets"),
        "drops": total("drops_overlimit", "drops_aqm", "drops_ack_filter", "drops_replaced"),
        "overlimits": overlimits,
        "requeues": 0,
        "backlog": last("backlog_bytes"),
        "qlen": last("backlog_packets"),
        **{name: total(column) for name, column in declared["tc_statistics"]["counters"]},
        **_named(kind, numbers),
    }


def _numbers(rows: pl.DataFrame) -> dict[str, Any]:
    """Collect the statistics of a queue, those of its parts in lists."""
    typed = {"count": int, "real": float, "flag": bool}
    found: dict[str, Any] = {}
    for row in rows.iter_rows(named=True):
        target = found
        if row["part"] is not None:
            parts = found.setdefault(row["part"], [])
            parts += [{} for _ in range(row["part_number"] + 1 - len(parts))]
            target = parts[row["part_number"]]
        target[row["name"]] = typed[row["type"]](row["value"])
    return found
