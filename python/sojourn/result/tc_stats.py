"""Queue statistics in the format of ``tc -j -s qdisc``."""

import itertools
import json
from typing import Any

import polars as pl

from sojourn import _core
from sojourn.result import Result
from sojourn.result.metrics import check_arms

_COUNTED = ("bytes", "packets", "drops")

MICROS_PER_S = 1e6
BITS = 8


def queues(result: Result, *, arm: str, replication: int = 0) -> list[dict[str, Any]]:
    """Return the queue statistics at the end of a run, in the format of ``tc -j -s qdisc``.

    Counters cover the whole run, warm-up included. Times are in microseconds and rates in bytes
    per second, as in ``tc``. Statistics without a name in `tc` keep Sojourn's.

    Parameters
    ----------
    result
        A result.
    arm
        Name of an arm.
    replication
        Number of the replication, counted from 0.

    Returns
    -------
    list of dict
        One entry per link: ``kind``, ``handle``, ``root``, ``dev`` (the link), ``refcnt``,
        ``options``, ``bytes``, ``packets``, ``drops``, ``overlimits`` (drops and marks of the AQM),
        ``requeues``, ``backlog`` (bytes), ``qlen`` (packets) and the statistics of the queue. A
        classful queue is followed by its inner queues, which have ``parent`` instead of ``root``
        and no ``overlimits``.

    Raises
    ------
    ResultError
        The arm or the replication is unknown, or the run did not finish.
    """
    of_run = (pl.col("arm") == arm) & (pl.col("replication") == replication)
    links = result.links.filter(of_run)
    if links.is_empty():
        raise _core.ResultError(_unfinished(result, arm, replication))
    series = result.link_series.filter(of_run)
    numbers = result.queue_statistics.filter(of_run)
    return [
        queue
        for link in links.iter_rows(named=True)
        for queue in _with_leaves(
            _queue(
                link["link"],
                link["qdisc"],
                series.filter(pl.col("link") == link["link"]),
                numbers.filter(pl.col("link") == link["link"]),
            )
        )
    ]


def _unfinished(result: Result, arm: str, replication: int) -> str:
    """Write which replications of an arm, or which arms, have finished."""
    check_arms(result.per_run, arm)
    finished = result.per_run.filter(pl.col("arm") == arm)["replication"].sort().to_list()
    return f'arm "{arm}" has no finished replication {replication}; finished: {_ranges(finished)}'


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
    given = _leaves(queue["options"].get("leaf", ""))
    leaves = []
    for number, part in enumerate(parts):
        kind, *words = _leaf_of(given, number).split()
        leaves.append(
            {
                "kind": kind,
                "handle": f"{number + 1:x}0:",
                "parent": f"1:{number + 1:x}",
                "dev": queue["dev"],
                "options": _options(kind, words),
                **{name: part[name] for name in ("bytes", "packets", "drops")},
                "requeues": 0,
                **{name: value for name, value in part.items() if name not in _COUNTED},
            }
        )
    return [queue, *leaves]


def _declared(kind: str) -> dict[str, Any]:
    """Return the entry of a queue in the catalogue; a class of Python has none."""
    catalogue: list[dict[str, Any]] = json.loads(_core.qdisc_catalogue())
    nothing = {"parameters": [], "tc_statistics": {"counters": [], "leaves": None}}
    return next((entry for entry in catalogue if entry["name"] == kind), nothing)


def _leaf_of(given: list[str], number: int) -> str:
    """Return the queue of a class: a single one is for all classes, the default is a FIFO."""
    if len(given) == 1:
        return given[0]
    return given[number] if number < len(given) else "pfifo"


def _leaves(text: str) -> list[str]:
    """Split inner queues at the slashes outside parentheses."""
    parts, depth = [""], 0
    for mark in text:
        depth += {"(": 1, ")": -1}.get(mark, 0)
        if mark == "/" and depth == 0:
            parts.append("")
        else:
            parts[-1] += mark
    bare = [part.strip().removeprefix("(").removesuffix(")") for part in parts]
    return [part for part in bare if part]


def _queue(link: str, spec: str, series: pl.DataFrame, numbers: pl.DataFrame) -> dict[str, Any]:
    def total(*columns: str) -> int:
        return sum(int(series[column].sum()) for column in columns)

    def last(column: str) -> int:
        return 0 if series.is_empty() else int(series[column][-1])

    kind, *words = spec.split()
    return {
        "kind": kind,
        "handle": "1:",
        "root": True,
        "dev": link,
        "refcnt": 1,
        "options": _options(kind, words),
        "bytes": total("sent_bytes"),
        "packets": total("sent_packets"),
        "drops": total("drops_overlimit", "drops_aqm"),
        "overlimits": total("drops_aqm", "marks_aqm"),
        "requeues": 0,
        "backlog": last("backlog_bytes"),
        "qlen": last("backlog_packets"),
        **{name: total(column) for name, column in _declared(kind)["tc_statistics"]["counters"]},
        **_numbers(numbers),
    }


def _options(kind: str, words: list[str]) -> dict[str, Any]:
    """Parse the canonical text of a queue into options in the units of ``tc``."""
    known = _declared(kind)["parameters"]
    units = {item["key"]: item["unit"] for item in known}
    # These parameters are written as their value alone: diffserv4, ack-filter.
    chosen = {
        value: item["key"]
        for item in known
        if item["unit"] == "choice"
        for value in item["choices"]
    }
    options: dict[str, Any] = {}
    while words:
        word, *words = words
        unit = units.get(word)
        if word in chosen:
            options[chosen[word]] = word
        elif unit == "flag":
            options[word] = True
        elif unit is None:
            options[word.removeprefix("no")] = False
        elif unit == "leaves":
            options[word], words = " ".join(words), []
        elif unit == "numbers":
            count = len(list(itertools.takewhile(str.isdecimal, words)))
            options[word], words = [int(n) for n in words[:count]], words[count:]
        else:
            options[word], words = _value(unit, words[0]), words[1:]
    return options


def _value(unit: str, text: str) -> float | str:
    match unit:
        case "time":
            return round(_core.parse_time_s(text) * MICROS_PER_S)
        case "rate":
            return round(_core.parse_rate_bits_per_s(text) / BITS)
        case "size":
            return int(_core.parse_size_bytes(text))
        case "packets" | "count":
            return int(text)
        case "fraction" | "weight" | "percent":
            return float(text)
        case _:
            return text


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
