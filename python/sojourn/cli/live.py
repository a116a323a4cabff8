"""``sojourn live``: run a program behind a queue, with real packets."""

import asyncio
import json
import os
import shlex
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, replace
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Any, NoReturn, Protocol

from sojourn import _core
from sojourn.arguments import Argument, ArgumentError, Plan, common
from sojourn.arguments.common import OUTPUT, SCENARIO, Ecn
from sojourn.cli import process, session
from sojourn.cli.options import Change, Strict
from sojourn.cli.plans import Given, command
from sojourn.cli.process import say
from sojourn.execute.run import RunPlan
from sojourn.queues.queue_file import short
from sojourn.result import Result, captures, derived_files, storage
from sojourn.scenario import Arm, Link, Scenario, presets
from sojourn.scenario.paths import assignment, overridden
from sojourn.traffic import Program, Traffic

_METRICS = (
    ("sent_bytes", "counter", "Bytes taken from the queue."),
    ("sent_packets", "counter", "Packets taken from the queue."),
    ("drops", "counter", "Packets discarded by the queue."),
    ("marks", "counter", "Packets CE-marked by the queue."),
    ("backlog_bytes", "gauge", "Bytes waiting in the queue."),
    ("backlog_packets", "gauge", "Packets waiting in the queue."),
)
MAX_PORT = 65535
# Of the endpoint of metrics: the time of a connection, their number, the bytes of a request, and
# the time until it listens again if it cannot accept a connection.
TIMEOUT_S = 5.0
MOST_CONNECTIONS = 8
MOST_HEAD = 16_384
RETRY_S = 1.0
_QUANTILES = ("0.5", "0.95", "0.99")
_UP = "\x1b[{}F"
_CLEAR = "\x1b[K"


_PROTOCOLS = {1: "icmp", 6: "tcp", 17: "udp", 58: "icmp6"}


class View:
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
    protocol = _PROTOCOLS.get(flow["protocol"], f"protocol {flow['protocol']}")
    source, destination = flow["ports"]
    # Echo requests have an identifier instead of ports.
    name = f"{protocol} {source} > {destination}" if source else f"{protocol} id {destination}"
    sojourn = flow["sojourn_ms"]
    delays = "-" if sojourn is None else "/".join(f"{ms:.1f}" for ms in sojourn)
    return (
        f"           {name:<18} {flow['bits_per_s'] / 1e6:8.2f} Mbit/s  "
        f"sojourn mean/max {delays} ms  drops {flow['drops']}  marks {flow['marks']}"
    )


def _listening(host: str, port: int) -> socket.socket:
    """Listen at an address of IPv4 or IPv6, or at that of a name."""
    (family, _, _, _, place), *_ = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(place)
        listening.listen()
        listening.settimeout(0)
    except OSError:
        listening.close()
        raise
    return listening


class Metrics:
    """Serves the last view in the text format of Prometheus.

    One thread serves all connections. Each has :data:`TIMEOUT_S` from its start, and when there are
    :data:`MOST_CONNECTIONS`, a new one ends the oldest: clients that do not read or that never
    complete a request neither use up the descriptors of the run nor keep others from the numbers.
    """

    def __init__(self, address: str) -> None:
        def refuse(problem: str) -> NoReturn:
            rule = "{problem}; expected ADDRESS:PORT or :PORT, PORT from 1 to {most}"
            raise ArgumentError(
                "prometheus", address, rule, problem=problem, most=MAX_PORT
            ) from None

        host, colon, port = address.rpartition(":")
        if not colon or not port.isdecimal():
            refuse("no port")
        if not 1 <= int(port) <= MAX_PORT:
            refuse(f"port {port} is out of range")
        self._links: list[dict[str, Any]] = []
        try:
            self._listening = _listening(host.strip("[]") or "127.0.0.1", int(port))
        except OSError as error:
            refuse(f"cannot listen there: {error.strerror}")
        except UnicodeError:
            refuse(f"{host} is not a host name")
        # The connections, the oldest first.
        self._open: dict[asyncio.Task[None], socket.socket] = {}
        self._loop = asyncio.new_event_loop()
        self._ended = asyncio.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with self._listening, asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        # The end of the runner ends it and the connections.
        accepting = self._loop.create_task(self._accept())
        await self._ended.wait()
        accepting.cancel()

    async def _accept(self) -> None:
        while True:
            try:
                client, _ = await self._loop.sock_accept(self._listening)
            except OSError:
                # No descriptor is free, for example.
                await asyncio.sleep(RETRY_S)
                continue
            if len(self._open) == MOST_CONNECTIONS:
                oldest = next(iter(self._open))
                oldest.cancel()
                await asyncio.wait([oldest])
            task = self._loop.create_task(self._answer(client))
            self._open[task] = client
            task.add_done_callback(self._close)

    def _close(self, task: "asyncio.Task[None]") -> None:
        # Not at the end of the coroutine: a task can end before it has started.
        self._open.pop(task).close()

    async def _answer(self, client: socket.socket) -> None:
        """Answer one request."""
        try:
            async with asyncio.timeout(TIMEOUT_S):
                head = b""
                while b"\r\n\r\n" not in head and len(head) < MOST_HEAD:
                    part = await self._loop.sock_recv(client, MOST_HEAD)
                    if not part:
                        return
                    head += part
                await self._loop.sock_sendall(client, self._response(head))
        except (OSError, asyncio.CancelledError):
            # The client has gone, is too slow, or is replaced by another.
            pass

    def _response(self, head: bytes) -> bytes:
        """Return the response to the head of a request."""
        method = head.split(b" ", 1)[0]
        if b"\r\n\r\n" not in head:
            status = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
        elif method not in {b"GET", b"HEAD"}:
            status = HTTPStatus.METHOD_NOT_ALLOWED
        else:
            status = HTTPStatus.OK
        body = self.text().encode() if status is HTTPStatus.OK else b""
        lines = (
            f"HTTP/1.1 {status} {status.phrase}",
            "Content-Type: text/plain; version=0.0.4; charset=utf-8",
            f"Content-Length: {len(body)}",
            "Connection: close",
        )
        return "".join(f"{line}\r\n" for line in (*lines, "")).encode() + (
            b"" if method == b"HEAD" else body
        )

    @property
    def port(self) -> int:
        """The port on which the server listens."""
        return int(self._listening.getsockname()[1])

    def show(self, links: list[dict[str, Any]]) -> None:
        """Replace the served metrics."""
        self._links = links

    def text(self) -> str:
        """Return the metrics in the text format of Prometheus."""
        lines = []
        for name, kind, meaning in _METRICS:
            full = f"sojourn_link_{name}" + ("_total" if kind == "counter" else "")
            lines += [f"# HELP {full} {meaning}", f"# TYPE {full} {kind}"]
            lines += [f"{full}{{{_label(link)}}} {link[name]}" for link in self._links]
        full = "sojourn_link_sojourn_seconds"
        lines += [
            f"# HELP {full} Time in the queue of the packets sent in the last second.",
            f"# TYPE {full} gauge",
        ]
        for link in self._links:
            pairs = zip(_QUANTILES, link["sojourn_ms"] or (), strict=False)
            lines += [f'{full}{{{_label(link)},quantile="{q}"}} {ms / 1e3:.9f}' for q, ms in pairs]
        return "\n".join(lines) + "\n"

    def close(self) -> None:
        """Stop serving."""
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join()


def _label(link: dict[str, Any]) -> str:
    name = link["link"].replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'link="{name}"'


def watcher(*shown: View | Metrics | None) -> Any:
    """Return a function that passes a view, given as JSON, to all of these; None without any."""
    wanted = [one for one in shown if one is not None]
    if not wanted:
        return None

    def show(text: str) -> None:
        links = json.loads(text)
        for one in wanted:
            one.show(links)

    return show


# The longest run of a program without --duration.
LONGEST = "3600s"
# Characters of the longest name of a scenario.
MAX_NAME = 200
COMMAND = "expected a program and its arguments as separate words, such as ping -c 3 100.64.0.2"
SERVER = "expected a program and its arguments in one string, such as 'iperf3 -s'"
NO_NAME = "the program has no name"


# What every run of real packets has.
Lasts = Annotated[
    str | None,
    Argument(
        help="Duration of a run.",
        unset="until it ends by itself or by a signal, at most 1 h",
        kind="time",
        metavar="TIME",
        heading=SCENARIO,
    ),
]
Watch = Annotated[
    bool,
    Argument(help="Print rate, backlog, delay, drops and marks every second.", heading=OUTPUT),
]
WatchFlows = Annotated[
    int,
    Argument(
        help="Also print the N transport flows that sent most on each link; implies {view}.",
        least=0,
        metavar="N",
        heading=OUTPUT,
        rare=True,
    ),
]
Serve = Annotated[
    str | None,
    Argument(
        help="Serve the same numbers in Prometheus text format; :PORT listens on loopback.",
        metavar="ADDRESS:PORT",
        heading=OUTPUT,
        rare=True,
    ),
]
Pcap = Annotated[Path | str | None, replace(common.PCAP, rare=False)]


class Shown(Protocol):
    """What is shown and captured of a run of real packets."""

    @property
    def view(self) -> bool:
        """Whether to print the links every second."""

    @property
    def view_flows(self) -> int:
        """How many flows of each link to print."""

    @property
    def prometheus(self) -> str | None:
        """Where to serve the numbers."""

    @property
    def pcap(self) -> Path | str | None:
        """The file for the packets."""


@dataclass(frozen=True, kw_only=True)
class LinePlan(Plan):
    """A line that real packets cross, and what is shown of it."""

    link: Annotated[str, common.LINK] = "10mbit"
    rtt: Annotated[str, common.RTT] = "50ms"
    qdisc: Annotated[str, common.QDISC] = "fq_codel"
    qdisc_up: Annotated[
        str | None,
        Argument(
            help="Queue for the direction from client to server.",
            unset="that of {qdisc}",
            kind="queue",
            metavar="QDISC",
            heading=SCENARIO,
            rare=True,
        ),
    ] = None
    duration: Lasts = None
    view: Watch = False
    view_flows: WatchFlows = 0
    prometheus: Serve = None
    pcap: Pcap = None


@dataclass(frozen=True, kw_only=True)
class LivePlan(LinePlan):
    """The program, and the hosts between which it sends."""

    words: Annotated[
        str | Sequence[str],
        Argument(
            help="Program and arguments, run in the client's network namespace. The environment "
            "variable SOJOURN_SERVER contains the server's address.",
            unset="a shell",
            option="COMMAND",
        ),
    ] = ()
    server: Annotated[
        str | None,
        Argument(
            help="Program and arguments, as one string, run in the server's network namespace.",
            metavar="COMMAND",
            heading=SCENARIO,
        ),
    ] = None
    internet: Annotated[
        bool,
        Argument(
            help="Let the program reach the network of this machine, through the link.",
            heading=SCENARIO,
        ),
    ] = False
    ecn: Ecn = False


@command(LivePlan)
def live(
    given: Given[LivePlan],
    *,
    change: Change = (),
    output: session.Output,
    strict: Strict = False,
) -> int:
    """Run a program behind a queue, with real packets, in separate network namespaces.

    A nonzero exit code of the program becomes the exit code of the command. The summary goes to
    standard error; with --json it goes to standard output, and the output of the program to
    standard error.
    """
    planned = given.plan()
    rates = presets.link_rates(planned.link)
    session.warn_of_bytes(rates.down, rates.up, *change)
    scenario = composed(planned)
    if change:
        scenario = overridden(scenario, dict(assignment(text) for text in change))
    _core.check_backend(scenario.checked, "live")
    run = partial(_core.run_program, ecn=planned.ecn, internet=planned.internet)
    return follow(scenario, planned, run, output=output, strict=strict)


def follow(
    scenario: Scenario,
    planned: Shown,
    run: Callable[..., tuple[_core.Outcome, int | None, bool]],
    *,
    output: session.Output,
    strict: bool,
) -> int:
    """Have real packets cross the links of a scenario until it ends; show and save the result."""
    scenario = with_named_queues(scenario)
    process.on_exit("interrupted", patient=True)
    request = session.RunRequest(
        run=RunPlan(scenario, jobs=1, on="live", fresh=True), output=output, strict=strict
    )
    if scenario.runs != 1:
        message = f"live: the scenario has {scenario.runs} runs; expected one"
        raise _core.ScenarioError(message)
    pcap, force, flows = planned.pcap, output.force, planned.view_flows
    if pcap is not None:
        captures.check(scenario.checked, pcap, backend="live", force=force)
    claimed = storage.claimed(output.out, force=force)
    with claimed as claim, derived_files.claimed(output.report):
        served = None if planned.prometheus is None else Metrics(planned.prometheus)
        shown = watcher(View(flows) if planned.view or flows else None, served)
        capturing = captures.capturing(pcap, force=force)
        with _output_of_program(json=output.json), capturing as capture:
            outcome, status, interrupted = run(
                scenario.checked, watch=shown, flows=flows > 0, capture=capture
            )
        if served is not None:
            served.close()
        result = Result(outcome)
        _, code = _concluded(result, request, claim)
    if interrupted:
        say(f"interrupted after {result.scenario.checked.duration_s:.1f} s")
        return process.exit_code()
    if code:
        return code
    return status or session.judged([result], strict=strict)


@contextmanager
def _output_of_program(*, json: bool) -> Iterator[None]:
    """Redirect the output of the program to standard error if standard output is for JSON."""
    if not json:
        yield
        return
    kept = os.dup(1)
    try:
        os.dup2(2, 1)
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def _concluded(
    result: Result, request: session.RunRequest, claim: Any
) -> tuple[session.Saved, int]:
    """Print and save the result; standard output belongs to the program."""
    if request.output.json:
        return session.conclude(result, request, claim)
    with redirect_stdout(sys.stderr):
        return session.conclude(result, request, claim)


@contextmanager
def _named(argument: str, value: str) -> Iterator[None]:
    """Name an argument in errors of the key of the scenario with its name."""
    try:
        yield
    except _core.ScenarioError as error:
        if error.path != argument:
            raise
        raise ArgumentError(argument, value, "{problem}", problem=error.problem) from None


def composed(plan: LivePlan) -> Scenario:
    """Build the scenario of a program behind one link in each direction."""
    words = _command(plan.words)
    server = None if plan.server is None else _server(plan.server)
    program = Program(name="program", direction="down", command=words, server=server)
    return on_line(plan, _name(words[0]), [program])


def on_line(plan: LinePlan, name: str, traffic: Sequence[Traffic]) -> Scenario:
    """Build the scenario of traffic on one link in each direction."""
    rates = presets.link_rates(plan.link)
    links = {
        "down": Link(rate=rates.down, qdisc=plan.qdisc),
        "up": Link(rate=rates.up, qdisc=plan.qdisc if plan.qdisc_up is None else plan.qdisc_up),
    }
    duration = LONGEST if plan.duration is None else plan.duration
    with _named("rtt", plan.rtt), _named("duration", duration):
        return Scenario(
            name=name,
            links=links,
            traffic=traffic,
            rtt=plan.rtt,
            duration=duration,
            warmup="0s",
        )


def with_named_queues(scenario: Scenario) -> Scenario:
    """Name the only arm after the queues, unless the user has declared arms."""
    if scenario.arms:
        return scenario
    links = (scenario.links[name] for name in ("down", "up"))
    down, up = (short(f"{one.qdisc}") if isinstance(one, Link) else one for one in links)
    name = down if down == up else f"{down}, up {up}"
    return scenario.replace(arms=[Arm(name=name[:MAX_NAME], set={})])


def _name(program: str) -> str:
    """Return the name of the scenario: that of the program, as far as it is the name of one."""
    name = _core.printable(Path(program).name or program).strip()
    return name[:MAX_NAME].strip() or "program"


def _command(words: Sequence[str]) -> list[str]:
    """Return the words of the program; without any, a shell."""
    if not words:
        return [os.environ.get("SHELL") or "/bin/sh"]
    if not words[0]:
        raise ArgumentError("words", words[0], f"{NO_NAME}; {COMMAND}")
    return list(words)


def _server(text: str) -> list[str]:
    """Split the command of a server as a shell does."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ArgumentError(
            "server", text, "{problem}; {accepted}", problem=f"{error}".lower(), accepted=SERVER
        ) from None
    if not words or not words[0]:
        raise ArgumentError("server", text, f"{NO_NAME}; {SERVER}")
    return words
