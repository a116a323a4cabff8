"""``sojourn live``: run a program behind a queue, with real packets."""

import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from sojourn import _core
from sojourn.arguments import Argument, ArgumentError, Plan, common
from sojourn.arguments.common import OUTPUT, SCENARIO, Ecn, Pcap
from sojourn.cli import session, signals
from sojourn.cli.options import Change, Strict
from sojourn.cli.plans import Given, command
from sojourn.cli.watch import Metrics, View, watcher
from sojourn.execute.run import RunPlan
from sojourn.result import Result, captures, derived_files, storage
from sojourn.scenario import Link, Scenario, presets
from sojourn.scenario.paths import assignment, overridden
from sojourn.traffic import Program

# The longest run of a program without --duration.
LONGEST = "3600s"
# Characters of the longest name of a scenario.
MAX_NAME = 200
QUEUE = "expected a queue in tc syntax, such as 'fq_codel target 13ms' (see sojourn qdiscs)"
COMMAND = "expected a program and its arguments as separate words, such as ping -c 3 100.64.0.2"
SERVER = "expected a program and its arguments in one string, such as 'iperf3 -s'"
NO_NAME = "the program has no name"


@dataclass(frozen=True, kw_only=True)
class LivePlan(Plan):
    """The program, the line in front of it, and what is shown while it runs."""

    words: Annotated[
        str | Sequence[str],
        Argument(
            help="Program and arguments, run in the client's network namespace. The environment "
            "variable SOJOURN_SERVER contains the server's address.",
            unset="a shell",
            option="COMMAND",
        ),
    ] = ()
    link: Annotated[str, common.LINK] = "10mbit"
    rtt: Annotated[str, common.RTT] = "50ms"
    qdisc: Annotated[str, common.QDISC] = "fq_codel"
    qdisc_up: Annotated[
        str | None,
        Argument(
            help="Queue for the direction from client to server.",
            unset="that of {qdisc}",
            metavar="QDISC",
            heading=SCENARIO,
            rare=True,
        ),
    ] = None
    server: Annotated[
        str | None,
        Argument(
            help="Program and arguments, as one string, run in the server's network namespace.",
            metavar="COMMAND",
            heading=SCENARIO,
        ),
    ] = None
    ecn: Ecn = False
    duration: Annotated[
        str | None,
        Argument(
            help="Duration of a run.",
            unset="until the program ends, at most 1 h",
            metavar="TIME",
            heading=SCENARIO,
        ),
    ] = None
    view: Annotated[
        bool,
        Argument(help="Print rate, backlog, delay, drops and marks every second.", heading=OUTPUT),
    ] = False
    view_flows: Annotated[
        int,
        Argument(
            help="Also print the N transport flows that sent most on each link; implies {view}.",
            least=0,
            metavar="N",
            heading=OUTPUT,
            rare=True,
        ),
    ] = 0
    metrics: Annotated[
        str | None,
        Argument(
            help="Serve the same numbers in Prometheus text format; :PORT listens on loopback.",
            metavar="ADDRESS:PORT",
            heading=OUTPUT,
            rare=True,
        ),
    ] = None
    pcap: Pcap = None


@command(LivePlan)
def live(
    given: Given[LivePlan],
    *,
    change: Change = None,
    output: session.Output,
    strict: Strict = False,
) -> int:
    """Run a program behind a queue, with real packets, in network namespaces of its own.

    A nonzero exit code of the program becomes the exit code of the command. The summary goes to
    standard error; with --json it goes to standard output, and the output of the program to
    standard error.
    """
    planned = LivePlan(**given.options)
    rates = presets.link_rates(planned.link)
    session.warn_of_bytes(rates.down, rates.up, *(change or ()))
    scenario = composed(planned)
    if change:
        scenario = overridden(scenario, dict(assignment(text) for text in change))
    signals.on_exit("interrupted", patient=True)
    plan = session.Plan(
        run=RunPlan(scenario, jobs=1, on="live", fresh=True), output=output, strict=strict
    )
    _core.check_backend(scenario.checked, "live")
    if scenario.runs != 1:
        message = f"live: the scenario has {scenario.runs} runs; expected one"
        raise _core.ScenarioError(message)
    pcap, force, flows = planned.pcap, output.force, planned.view_flows
    if pcap is not None:
        captures.check(scenario.checked, pcap, backend="live", force=force)
    claimed = storage.claimed(output.out, force=force)
    with claimed as claim, derived_files.claimed(output.report):
        served = None if planned.metrics is None else Metrics(planned.metrics)
        shown = watcher(View(flows) if planned.view or flows else None, served)
        capturing = captures.capturing(pcap, force=force)
        with _output_of_program(json=output.json), capturing as capture:
            outcome, status, interrupted = _core.run_program(
                scenario.checked, ecn=planned.ecn, watch=shown, flows=flows > 0, capture=capture
            )
        if served is not None:
            served.close()
        result = Result(outcome)
        _, code = _concluded(result, plan, claim)
    if interrupted:
        session.say(f"interrupted after {result.scenario.checked.duration_s:.1f} s")
        return signals.exit_code()
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


def _concluded(result: Result, plan: session.Plan, claim: Any) -> tuple[session.Saved, int]:
    """Print and save the result; standard output belongs to the program."""
    if plan.output.json:
        return session.conclude(result, plan, claim)
    with redirect_stdout(sys.stderr):
        return session.conclude(result, plan, claim)


@contextmanager
def _named(key: str, argument: str, value: str, expected: str) -> Iterator[None]:
    """Name an argument in errors of the key of the scenario that it sets."""
    try:
        yield
    except _core.ScenarioError as error:
        # Errors of scenarios begin with the key.
        place, _, problem = f"{error}".partition(": ")
        if place != key:
            raise
        raise _refused(argument, value, problem, expected) from None


def _refused(argument: str, value: str, problem: str, expected: str) -> ArgumentError:
    """Return the error of an argument, with what is accepted unless the problem says it."""
    accepted = "" if "; expected " in problem else f"; {expected}"
    return ArgumentError(argument, value, "{problem}{accepted}", problem=problem, accepted=accepted)


def composed(plan: LivePlan) -> Scenario:
    """Build the scenario of a program behind one link in each direction."""
    words = _command(plan.words)
    server = None if plan.server is None else _server(plan.server)
    program = Program(name="program", direction="down", command=words, server=server)
    rates = presets.link_rates(plan.link)
    of_up = ("qdisc", plan.qdisc) if plan.qdisc_up is None else ("qdisc_up", plan.qdisc_up)
    links = {
        "down": _link(rates.down, "qdisc", plan.qdisc),
        "up": _link(rates.up, *of_up),
    }
    duration = LONGEST if plan.duration is None else plan.duration
    with (
        _named("rtt", "rtt", plan.rtt, "expected TIME such as 20ms"),
        _named("duration", "duration", duration, "expected TIME such as 30s"),
    ):
        return Scenario(
            name=_name(words[0]),
            links=links,
            traffic=[program],
            rtt=plan.rtt,
            duration=duration,
            warmup="0s",
        )


def _name(program: str) -> str:
    """Return the name of the scenario: that of the program, as far as it is the name of one."""
    name = _core.printable(Path(program).name or program).strip()
    return name[:MAX_NAME].strip() or "program"


def _command(words: Sequence[str]) -> list[str]:
    """Return the words of the program; without any, a shell."""
    if not words:
        return [os.environ.get("SHELL") or "/bin/sh"]
    if not words[0]:
        raise _refused("words", words[0], NO_NAME, COMMAND)
    return list(words)


def _server(text: str) -> list[str]:
    """Split the command of a server as a shell does."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise _refused("server", text, f"{error}".lower(), SERVER) from None
    if not words or not words[0]:
        raise _refused("server", text, NO_NAME, SERVER)
    return words


def _link(rate: str, argument: str, queue: str) -> Link:
    """Build a link with the queue of an argument."""
    with _named("qdisc", argument, queue, QUEUE):
        return Link(rate=rate, qdisc=queue)
