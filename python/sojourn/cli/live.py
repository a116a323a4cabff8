"""``sojourn live``: run a program behind a queue, with real packets."""

import json
import os
import shlex
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Protocol

from sojourn import _core
from sojourn.arguments import Argument, ArgumentError, Plan, common
from sojourn.arguments.common import OUTPUT, SCENARIO, Ecn
from sojourn.cli import process, session
from sojourn.cli.commands import MAYBE_ADDRESS, NO_ADDRESS
from sojourn.cli.options import Change, Strict
from sojourn.cli.plans import Given, command
from sojourn.cli.process import say
from sojourn.errors import invalid
from sojourn.execute.run import RunPlan
from sojourn.live.browser import Browser
from sojourn.live.lines import Lines
from sojourn.live.links import Links
from sojourn.live.metrics import Metrics
from sojourn.live.sockets import ControlSocket, NoSocketError
from sojourn.queues.base import queues_in
from sojourn.queues.queue_file import short
from sojourn.result import Result, captures, derived_files, storage
from sojourn.result.rows import rows
from sojourn.scenario import Arm, Link, Scenario, presets
from sojourn.scenario.files import is_scenario
from sojourn.scenario.paths import assignment, overridden
from sojourn.traffic import Program, Traffic

# The longest run of a program without --duration.
LONGEST = "3600s"
# Characters of the longest name of a scenario.
MAX_NAME = 200
COMMAND = "expected a program and its arguments as separate words, such as ping -c 3 100.64.0.2"
SERVER = "expected a program and its arguments in one string, such as 'iperf3 -s'"
NO_NAME = "the program has no name"
# A link that some packet reached counts one of these above 0.
CROSSED = ("sent_packets", "drops_overlimit", "drops_aqm")


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
SecondQueue = Annotated[
    str | None,
    Argument(
        help="Queue that the key b of the full-screen view ({view}) switches to.",
        unset="the last other queue that was set",
        kind="queue",
        metavar="QDISC",
        heading=OUTPUT,
        rare=True,
    ),
]
Watch = Annotated[
    str | None,
    Argument(
        help="Show the run full-screen, with keys that change it, or as lines without a terminal; "
        "with an address, in a browser. :PORT listens on the loopback interface.",
        unset="off",
        metavar=MAYBE_ADDRESS,
        heading=OUTPUT,
    ),
]
WatchFlows = Annotated[
    int,
    Argument(
        help="Print a line per link and second, with the N flows that sent the most.",
        least=0,
        metavar="N",
        heading=OUTPUT,
        rare=True,
    ),
]
Serve = Annotated[
    str | None,
    Argument(
        help="Serve rates, delays and drops of the links in Prometheus text format. :PORT listens "
        "on the loopback interface.",
        metavar="ADDRESS:PORT",
        heading=OUTPUT,
        rare=True,
    ),
]
Pcap = Annotated[Path | str | None, replace(common.PCAP, rare=False)]


class Shown(Protocol):
    """What is shown and captured of a run of real packets."""

    @property
    def qdisc_b(self) -> str | None:
        """The second queue of the keys."""

    @property
    def view(self) -> str | None:
        """Where to show the links: an address, or that there is none; None: not at all."""

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
    qdisc_b: SecondQueue = None
    view: Watch = None
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
            help="Let the program reach the Internet, through the link and then the network of "
            "this machine.",
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
    scenario = changed(composed(planned), planned, change)
    _core.check_backend(scenario.checked, "live")
    run = partial(_core.run_program, ecn=planned.ecn, internet=planned.internet)
    return follow(scenario, planned, run, output=output, strict=strict)


def changed(scenario: Scenario, planned: LinePlan, change: Sequence[str]) -> Scenario:
    """Note units that may surprise in a line and its changes, and apply the changes."""
    rates = presets.link_rates(planned.link)
    session.warn_of_bytes(rates.down, rates.up, *change)
    changes = dict(assignment(text) for text in change)
    queues = (planned.qdisc, planned.qdisc_up, planned.qdisc_b)
    session.note_queues(*filter(None, queues), *queues_in(changes))
    return overridden(scenario, changes) if changes else scenario


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
    pcap, force = planned.pcap, output.force
    if pcap is not None:
        captures.check(scenario.checked, pcap, backend="live", force=force)
    claimed = storage.claimed(output.out, force=force)
    with claimed as claim, derived_files.claimed(output.report):
        control = _core.LinkControl()
        capturing = captures.capturing(pcap, force=force)
        with (
            capturing as capture,
            _shown(planned, scenario, Links(control), json=output.json) as shown,
            _output_of_program(json=output.json),
        ):
            outcome, status, interrupted = run(
                scenario.checked,
                watch=_watcher(shown),
                links=planned.view is not None or planned.prometheus is not None,
                flows=planned.view is not None or planned.view_flows > 0,
                capture=capture,
                control=control,
            )
        result = Result(outcome)
        _, code = _concluded(result, request, claim)
    if not any(any(row) for row in rows(outcome.table("links"), *CROSSED)):
        hint = "; use $SOJOURN_SERVER as the server" if isinstance(planned, LivePlan) else ""
        say(f"note: no packet crossed the links{hint}")
    if interrupted:
        say(f"interrupted after {result.scenario.checked.duration_s:.1f} s")
        return process.exit_code()
    if code:
        return code
    return status or session.judged([result], strict=strict)


class Watcher(Protocol):
    """Is shown the links of a run once per second."""

    def show(self, links: list[dict[str, Any]]) -> None:
        """Show a view."""


@contextmanager
def _shown(
    planned: Shown, scenario: Scenario, links: Links, *, json: bool
) -> Iterator[list[Watcher]]:
    """Show a run, and let the user change it, while the block lasts."""
    name = scenario.name or "run"
    about = {"name": name, "second": planned.qdisc_b}
    shown: list[Watcher] = []
    with ExitStack() as stack:
        try:
            shown.append(control := ControlSocket(links, about))
            stack.callback(control.close)
        except NoSocketError as error:
            say(f"note: sojourn live ctl cannot change this run: {error}")
        if planned.prometheus is not None:
            shown.append(metrics := Metrics(planned.prometheus))
            stack.callback(metrics.close)
        if planned.view is not None and planned.view != NO_ADDRESS:
            shown.append(browser := Browser(planned.view, about))
            stack.callback(browser.close)
            say(f"this run is shown at {browser.url}")
        elif planned.view is not None and (screen := _screen(planned, name, links, json=json)):
            shown.append(stack.enter_context(screen))
        elif planned.view is not None or planned.view_flows:
            shown.append(Lines(planned.view_flows))
        yield shown


def _screen(planned: Shown, name: str, links: Links, *, json: bool) -> Any:
    """Return the full-screen view; None where a shell has the terminal or there is none."""
    # Slow to import.
    from sojourn.live import screen, terminal  # noqa: PLC0415

    if not terminal.is_possible():
        return None
    if isinstance(planned, LivePlan) and not planned.words:
        say("note: the shell has the terminal; in another one, use: sojourn live ctl view")
        return None
    shown = screen.Screen(
        name,
        links,
        second=planned.qdisc_b,
        # As Ctrl-C does.
        leave=partial(os.kill, os.getpid(), signal.SIGINT),
        bars=terminal.bars(),
    )
    return terminal.Terminal(shown, to_stderr=json)


def _watcher(shown: Sequence[Watcher]) -> Callable[[str], None] | None:
    """Return a function that passes a view, given as JSON, to all of these; None without any."""
    if not shown:
        return None

    def show(text: str) -> None:
        links = json.loads(text)
        for one in shown:
            one.show(links)

    return show


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
def named(argument: str, value: str) -> Iterator[None]:
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
    with named("rtt", plan.rtt), named("duration", duration):
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
    if (file := Path(words[0])).suffix == ".toml" and is_scenario(file):
        expected = f"expected sojourn run {shlex.quote(words[0])} --on live"
        raise invalid(file, f"is a scenario file, not a program; {expected}")
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
