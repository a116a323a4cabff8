"""``/etc/config/qosify`` of OpenWrt, as commands of ``tc``.

Source: the queues that ``interface.c`` of qosify (github.com/nbd168/qosify) sets up, and its README
for the options.
"""

import re
import shlex
from collections.abc import Iterator, Mapping
from typing import NoReturn

from sojourn import _core

_QOSIFY = re.compile(r"^\s*option\s+bandwidth_(?:up|down)\b", re.MULTILINE)
_DEFAULTS: Mapping[str, str] = {
    "disabled": "0",
    "ingress": "1",
    "egress": "1",
    "mode": "diffserv4",
    "host_isolate": "1",
    "autorate_ingress": "0",
    "overhead_type": "none",
    "options": "",
    "nat": "1",
    "ingress_options": "",
    "egress_options": "",
    "name": "",
    "bandwidth": "",
    "bandwidth_up": "",
    "bandwidth_down": "",
    "overhead": "",
    "overhead_encap": "",
    "overhead_mpu": "",
    "overhead_vlan": "",
}
_KINDS = ("interface", "device")
# Sections about classes of packets, whose DSCP qosify sets before the queue.
_MARKING = ("defaults", "class", "alias")


def is_qosify(text: str) -> bool:
    """Whether a text is a configuration of qosify."""
    return _QOSIFY.search(text) is not None


def script(text: str, place: str) -> tuple[str, list[str]]:
    """Write the commands, each in the line of its section, and what is left out."""
    written = [""] * (text.count("\n") + 1)
    notes: list[str] = []
    for line, kind, options in _sections(text, place):
        at = f"{place}: line {line}: {kind}"
        if kind in _MARKING:
            note = f"{place}: the DSCP that qosify sets is not modelled; set it for the traffic"
            notes += [note] if note not in notes else []
        elif kind not in _KINDS:
            _refuse(at, f"is not read; expected {', '.join(_KINDS + _MARKING[:-1])} or alias")
        elif options.get("disabled", "0") != "1":
            own = {"nat": "0", **options} if kind == "device" else options
            # A section has at least as many lines as commands.
            for offset, command in enumerate(_commands(own, at)):
                written[line - 1 + offset] = command
    if not any(written):
        _refuse(place, "every interface is disabled; expected one with disabled '0'")
    return "\n".join(written), notes


def _commands(options: Mapping[str, str], at: str) -> list[str]:
    """Return the commands of both directions."""
    unknown = next((key for key in options if key not in _DEFAULTS), None)
    if unknown is not None:
        _refuse(at, f"unknown option {unknown}; expected one of {', '.join(_DEFAULTS)}")
    given = {**_DEFAULTS, **options}
    device = given["name"] or "wan"
    found = []
    for side, end, host in (("egress", "up", "src"), ("ingress", "down", "dst")):
        if given[side] != "1":
            continue
        rate = given[f"bandwidth_{end}"] or given["bandwidth"]
        nat = "nat" if given["nat"] == "1" else "nonat"
        isolation = f"{nat} dual-{host}host" if given["host_isolate"] == "1" else "flows"
        own = [given["mode"], side, isolation, *_overhead(given), given["options"]]
        if side == "ingress" and given["autorate_ingress"] == "1":
            own.append("autorate-ingress")
        target = device if side == "egress" else f"ifb-{device}"
        bandwidth = f"bandwidth {rate}" if rate else "unlimited"
        words = [target, "root handle 1: cake", bandwidth, *own, given[f"{side}_options"]]
        found.append("tc qdisc add dev " + " ".join(word for word in words if word))
    return found


def _overhead(given: Mapping[str, str]) -> list[str]:
    kind = given["overhead_type"]
    if kind == "none":
        return []
    if kind != "manual":
        return [kind, *(["ether-vlan"] if given["overhead_vlan"] == "1" else [])]
    words = ["overhead", given["overhead"] or "0", given["overhead_encap"]]
    return [*words, *(["mpu", given["overhead_mpu"]] if given["overhead_mpu"] else [])]


def _sections(text: str, place: str) -> Iterator[tuple[int, str, dict[str, str]]]:
    """Yield the line, the type and the options of each section."""
    current: tuple[int, str, dict[str, str]] | None = None
    for number, line in enumerate(text.splitlines(), 1):
        try:
            words = shlex.split(line, comments=True)
        except ValueError:
            _refuse(f"{place}: line {number}", "a quotation mark is not closed")
        match words:
            case []:
                continue
            case ["config", kind, *_]:
                if current is not None:
                    yield current
                current = (number, kind, {})
            case ["option" | "list", key, value] if current is not None:
                current[2][key] = value
            case _:
                problem = "expected a line such as: option bandwidth_up '20mbit'"
                _refuse(f"{place}: line {number}", problem)
    if current is not None:
        yield current


def _refuse(at: str, problem: str) -> NoReturn:
    message = f"{at}: {problem}"
    raise _core.ScenarioError(message) from None
