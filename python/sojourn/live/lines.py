"""The links of a running run as lines of text."""

import sys
from typing import Any

from sojourn import _core

_UP = "\x1b[{}F"
_CLEAR = "\x1b[K"
_PROTOCOLS = {1: "icmp", 6: "tcp", 17: "udp", 58: "icmp6"}


class Lines:
    """Prints the links of a run once per second: in place on a terminal, else as lines."""

    def __init__(self, flows: int = 0) -> None:
        self._flows = flows
        self._lines = 0

    def show(self, links: list[dict[str, Any]]) -> None:
        """Print one line per link, and one per flow of it."""
        lines = []
        for link in links:
            lines.append(_line(link))
            lines += [_flow_line(flow) for flow in link["flows"][: self._flows]]
        if sys.stderr.isatty():
            back = _UP.format(self._lines) if self._lines else ""
            # Flows that have ended leave lines behind.
            lines += [""] * (self._lines - len(lines))
            text = back + "".join(f"{_CLEAR}{line}\n" for line in lines)
        else:
            text = "".join(f"{line}\n" for line in lines)
        self._lines = len(lines)
        sys.stderr.write(text)
        sys.stderr.flush()


def flow_name(flow: dict[str, Any]) -> str:
    """Name a transport flow by its protocol and ports."""
    protocol = _PROTOCOLS.get(flow["protocol"], f"protocol {flow['protocol']}")
    source, destination = flow["ports"]
    # Echo requests have an identifier instead of ports.
    return f"{protocol} {source} > {destination}" if source else f"{protocol} id {destination}"


def _line(link: dict[str, Any]) -> str:
    """Describe a link in the last second."""
    sojourn = link["sojourn_ms"]
    delays = "-" if sojourn is None else "/".join(f"{ms:.1f}" for ms in sojourn)
    return (
        f"{link['time_s']:6.0f} s  {_core.printable(link['link']):<8} "
        f"{link['bits_per_s'] / 1e6:8.2f} Mbit/s  "
        f"backlog {link['backlog_packets']:5} packets {link['backlog_bytes'] / 1e3:8.1f} kB  "
        f"sojourn p50/p95/p99 {delays} ms  drops {link['drops']}  marks {link['marks']}"
    )


def _flow_line(flow: dict[str, Any]) -> str:
    """Describe a transport flow at a link in the last second."""
    sojourn = flow["sojourn_ms"]
    delays = "-" if sojourn is None else "/".join(f"{ms:.1f}" for ms in sojourn)
    return (
        f"           {flow_name(flow):<18} {flow['bits_per_s'] / 1e6:8.2f} Mbit/s  "
        f"sojourn mean/max {delays} ms  drops {flow['drops']}  marks {flow['marks']}"
    )
