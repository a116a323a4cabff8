"""``sojourn interop``: the network of the QUIC interop runner, with any queue and real packets."""

import os
import shlex
import socket
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

from sojourn import _core
from sojourn.arguments import Argument, ArgumentError, Plan
from sojourn.arguments.common import OUTPUT, SCENARIO
from sojourn.cli import live, session
from sojourn.cli.live import LONGEST, MAX_NAME, follow
from sojourn.cli.options import Strict
from sojourn.cli.plans import Given, command
from sojourn.cli.process import say
from sojourn.live.address import MAX_PORT
from sojourn.queues import qdisc
from sojourn.scenario import Link, Scenario
from sojourn.traffic import Bridged

# ns-3 counts the 2 bytes of its point-to-point protocol, links count the 14 of Ethernet.
OVERHEAD = "-12b"
# Endpoints of the interop runner wait until this port accepts connections.
READY = 57832
LOGS = Path("/logs")
# A long header with a version that no server has, and IDs of no bytes: a server answers with the
# list of its versions (RFC 9000, 6.1), if the datagram is not too short (14.1).
PROBE = bytes([0xC0]) + b"WAIT" + bytes(1200)
LONG_HEADER = 0x80
VERSION_ENDS = 5
WAIT_S = 10.0
PROBE_EVERY_S = 0.5


@dataclass(frozen=True, kw_only=True)
class InteropPlan(Plan):
    """A scenario, the interfaces between which it takes place, and what is shown of it."""

    scenario: Annotated[
        str | None,
        Argument(
            help="Scenario of quic-network-simulator with its options, as one string.",
            unset="the environment variable SCENARIO",
            option="SCENARIO",
            has_options=True,
        ),
    ] = None
    left: Annotated[
        str,
        Argument(help="Interface of the client.", metavar="INTERFACE", heading=SCENARIO),
    ] = "eth0"
    right: Annotated[
        str,
        Argument(help="Interface of the server.", metavar="INTERFACE", heading=SCENARIO),
    ] = "eth1"
    wait: Annotated[
        str | None,
        Argument(
            help="Start when a QUIC server answers at this address; fail after 10 s.",
            unset="the environment variable WAITFORSERVER, if set",
            metavar="HOST:PORT",
            heading=SCENARIO,
        ),
    ] = None
    duration: live.Lasts = None
    logs: Annotated[
        Path | None,
        Argument(
            help="Directory for trace_node_left.pcap and trace_node_right.pcap, the packets at "
            "the two ends of the link.",
            unset="/logs, if that exists",
            metavar="DIR",
            heading=OUTPUT,
        ),
    ] = None
    qdisc_b: live.SecondQueue = None
    view: live.Watch = None
    view_flows: live.WatchFlows = 0
    prometheus: live.Serve = None
    pcap: live.Pcap = None


@command(InteropPlan)
def interop(given: Given[InteropPlan], *, output: session.Output, strict: Strict = False) -> int:
    """Replace the network of the QUIC interop runner: route between two interfaces, as root.

    SCENARIO is a scenario of quic-network-simulator, such as "simple-p2p --delay=15ms
    --bandwidth=10Mbps --queue=25". It accepts --qdisc=QDISC, with any queue, instead of --queue.
    Both interfaces need addresses in different networks, and the hosts need a route to the other
    network through this machine. Ctrl-C ends the run.
    """
    planned = given.plan()
    text = planned.scenario or os.environ.get("SCENARIO", "")
    described = read(text, planned)
    scenario = composed(text, described, planned.duration)
    if server := planned.wait or os.environ.get("WAITFORSERVER", ""):
        wait_for(server)
    say(f"scenario: {_core.printable(text)}")
    run = partial(_core.run_program, interop=described)
    return follow(scenario, planned, run, output=output, strict=strict)


def read(text: str, planned: InteropPlan) -> _core.Interop:
    """Read a scenario."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ArgumentError("scenario", text, f"{error}".lower()) from None
    logs = planned.logs
    if logs is None:
        logs = LOGS if LOGS.is_dir() else None
    elif not logs.is_dir():
        raise ArgumentError("logs", logs, "expected an existing directory")
    try:
        described = _core.Interop(words, (planned.left, planned.right), ready=READY, logs=logs)
        for queue in described.qdiscs:
            qdisc(queue)
    except _core.SojournError as error:
        raise ArgumentError("scenario", text, "{problem}", problem=f"{error}") from None
    return described


def composed(text: str, described: _core.Interop, duration: str | None) -> Scenario:
    """Build the scenario of the packets of both directions on the link."""
    rate, delay = f"{described.bits_per_s}bit", f"{described.delay_ns}ns"
    links = {
        name: Link(rate=rate, delay=delay, overhead=OVERHEAD, qdisc=qdisc)
        for name, qdisc in zip(("down", "up"), described.qdiscs, strict=True)
    }
    duration = LONGEST if duration is None else duration
    with live.named("duration", duration):
        return Scenario(
            name=_core.printable(text)[:MAX_NAME].strip(),
            links=links,
            traffic=[Bridged(name=name, direction=name) for name in ("down", "up")],
            rtt="0ms",
            duration=duration,
            warmup="0s",
        )


def wait_for(server: str) -> None:
    """Wait until a QUIC server answers."""
    host, _, port = server.rpartition(":")
    if not host or not port.isdecimal() or not 1 <= int(port) <= MAX_PORT:
        raise ArgumentError("wait", server, "expected HOST:PORT, such as server:443")
    rule = "no QUIC server answers there: {problem}"
    try:
        (family, _, _, _, address), *_ = socket.getaddrinfo(
            host.strip("[]"), int(port), type=socket.SOCK_DGRAM
        )
    except OSError as error:
        raise ArgumentError("wait", server, rule, problem=error.strerror) from None
    deadline = time.monotonic() + WAIT_S
    with socket.socket(family, socket.SOCK_DGRAM) as asking:
        asking.connect(address)
        while time.monotonic() < deadline:
            next_probe = time.monotonic() + PROBE_EVERY_S
            try:
                asking.send(PROBE)
                asking.settimeout(PROBE_EVERY_S)
                answer = asking.recv(2048)
            except OSError:
                # Nothing listens yet, or it does not answer.
                time.sleep(max(0.0, next_probe - time.monotonic()))
                continue
            if (
                len(answer) > VERSION_ENDS
                and answer[0] & LONG_HEADER
                and not any(answer[1:VERSION_ENDS])
            ):
                return
    raise ArgumentError("wait", server, rule, problem=f"waited {WAIT_S:g} s")
