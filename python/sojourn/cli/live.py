"""``sojourn live``: run a program behind a queue, with real packets."""

import os
import re
import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Annotated, Any

import typer

from sojourn import _core
from sojourn.arguments.common import OUTPUT, SCENARIO
from sojourn.cli import session, signals
from sojourn.cli.options import (
    RTT,
    Change,
    Ecn,
    Everything,
    Force,
    Json,
    Out,
    Pcap,
    ReportFile,
    Rtt,
    Strict,
    Typed,
    within,
)
from sojourn.cli.watch import Metrics, View, watcher
from sojourn.result import Result, captures, derived_files, storage
from sojourn.scenario import Link, Scenario
from sojourn.scenario.paths import assignment, overridden
from sojourn.traffic import Program

# The longest run of a program without --duration.
LONGEST = "3600s"
# Characters of the longest name of a scenario.
MAX_NAME = 200
RATES = "RATE or DOWN/UP such as 10/1mbit"
QUEUE = "a queue in tc syntax, such as 'fq_codel target 13ms' (see sojourn qdiscs)"
COMMAND = "a program and its arguments as separate words, such as ping -c 3 100.64.0.2"
SERVER = "a program and its arguments in one string, such as 'iperf3 -s'"
_UNIT = re.compile(r"[A-Za-z].*$")


def live(
    *,
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="COMMAND",
            help="Program and arguments, run in the client's network namespace. The environment "
            "variable SOJOURN_SERVER contains the server's address.",
            show_default="a shell",
        ),
    ] = None,
    link: Annotated[
        str,
        typer.Option(
            metavar="RATES",
            help="Down/up rates of the line, such as 10/1mbit, or one rate for both directions.",
            rich_help_panel=SCENARIO,
        ),
    ] = "10mbit",
    rtt: Rtt = RTT,
    qdisc: Annotated[
        str,
        typer.Option(
            metavar="QDISC",
            help="Queue for both directions, in tc syntax.",
            rich_help_panel=SCENARIO,
        ),
    ] = "fq_codel",
    qdisc_up: Annotated[
        str | None,
        typer.Option(
            metavar="QDISC",
            help="Queue for the direction from client to server.",
            show_default="that of --qdisc",
            rich_help_panel=SCENARIO,
            hidden=True,
        ),
    ] = None,
    server: Annotated[
        str | None,
        typer.Option(
            metavar="COMMAND",
            help="Program and arguments, as one string, run in the server's network namespace.",
            rich_help_panel=SCENARIO,
        ),
    ] = None,
    ecn: Ecn = False,
    duration: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Duration of a run.",
            show_default="until the program ends, at most 1 h",
            rich_help_panel=SCENARIO,
        ),
    ] = None,
    change: Change = None,
    view: Annotated[
        bool,
        typer.Option(
            "--view",
            help="Print rate, backlog, delay, drops and marks every second.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    view_flows: Annotated[
        int,
        typer.Option(
            metavar="N",
            callback=within("--view-flows", 0),
            help="Also print the N transport flows that sent most on each link; implies --view.",
            rich_help_panel=OUTPUT,
            hidden=True,
        ),
    ] = 0,
    metrics: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS:PORT",
            help="Serve the same numbers in Prometheus text format; :PORT listens on loopback.",
            rich_help_panel=OUTPUT,
            hidden=True,
        ),
    ] = None,
    out: Out = None,
    force: Force = False,
    report: ReportFile = None,
    pcap: Pcap = None,
    json: Json = False,
    everything: Everything = False,
    strict: Strict = False,
) -> int:
    """Run a program behind a queue, with real packets, in network namespaces of its own.

    A nonzero exit code of the program becomes the exit code of the command. The summary goes to
    standard error; with --json it goes to standard output, and the output of the program to
    standard error.
    """
    scenario = composed(
        command=command,
        server=server,
        link=link,
        rtt=rtt,
        qdisc=qdisc,
        qdisc_up=qdisc_up,
        duration=duration,
    )
    session.warn_of_bytes(link, *(change or ()))
    if change:
        scenario = overridden(scenario, dict(assignment(text) for text in change))
    signals.on_exit("interrupted", patient=True)
    plan = session.Plan(
        scenario=scenario,
        jobs=1,
        backend="live",
        max_memory=None,
        out=out,
        force=force,
        report=report,
        json=json,
        everything=everything,
        strict=strict,
        fresh=True,
    )
    _core.check_backend(scenario.checked, "live")
    if scenario.runs != 1:
        message = f"live: the scenario has {scenario.runs} runs; expected one"
        raise _core.ScenarioError(message)
    if pcap is not None:
        captures.check(scenario.checked, pcap, backend="live", force=force)
    with storage.claimed(out, force=force) as claim, derived_files.claimed(report):
        served = None if metrics is None else Metrics(metrics)
        shown = watcher(View(view_flows) if view or view_flows else None, served)
        with _output_of_program(json=json), captures.capturing(pcap, force=force) as capture:
            outcome, status, interrupted = _core.run_program(
                scenario.checked, ecn=ecn, watch=shown, flows=view_flows > 0, capture=capture
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
    if plan.json:
        return session.conclude(result, plan, claim)
    with redirect_stdout(sys.stderr):
        return session.conclude(result, plan, claim)


@contextmanager
def _named(options: Mapping[str, Typed]) -> Iterator[None]:
    """Name the option in errors of a key of the scenario that an option sets."""
    try:
        yield
    except _core.ScenarioError as error:
        # Errors of scenarios begin with the key.
        key, _, problem = str(error).partition(": ")
        if key not in options:
            raise
        options[key].refuse(problem)


def composed(
    *,
    command: list[str] | None,
    server: str | None,
    link: str,
    rtt: str,
    qdisc: str,
    qdisc_up: str | None,
    duration: str | None,
) -> Scenario:
    """Build the scenario of a program behind one link in each direction."""
    words = _command(command)
    longest = LONGEST if duration is None else duration
    times = {
        "rtt": Typed("--rtt", rtt, "TIME such as 20ms"),
        "duration": Typed("--duration", longest, "TIME such as 30s"),
    }
    program = Program(
        name="program",
        direction="down",
        command=words,
        server=None if server is None else _server(server),
    )
    down, up = _rates(link)
    queue = Typed("--qdisc", qdisc, QUEUE)
    queue_up = queue if qdisc_up is None else Typed("--qdisc-up", qdisc_up, QUEUE)
    links = {"down": _link(link, down, queue), "up": _link(link, up, queue_up)}
    with _named(times):
        return Scenario(
            name=_name(words[0]),
            links=links,
            traffic=[program],
            rtt=times["rtt"].value,
            duration=times["duration"].value,
            warmup="0s",
        )


def _name(program: str) -> str:
    """Return the name of the scenario: that of the program, as far as it is the name of one."""
    name = _core.printable(Path(program).name or program).strip()
    return name[:MAX_NAME].strip() or "program"


def _command(words: list[str] | None) -> list[str]:
    """Return the words of the program; without any, a shell."""
    if not words:
        return [os.environ.get("SHELL") or "/bin/sh"]
    typed = [Typed("COMMAND", word, COMMAND) for word in words]
    if not words[0]:
        typed[0].refuse("the program has no name")
    return words


def _server(text: str) -> list[str]:
    """Split the command of a server as a shell does."""
    typed = Typed("--server", text, SERVER)
    try:
        words = shlex.split(text)
    except ValueError as error:
        typed.refuse(str(error).lower())
    if not words or not words[0]:
        typed.refuse("the program has no name")
    return words


def _rates(text: str) -> tuple[str, str]:
    """Return the rates of a link, down and up: ``10/1mbit`` is 10mbit and 1mbit."""
    typed = Typed("--link", text, RATES)
    down, *rest = text.split("/")
    if len(rest) > 1:
        typed.refuse(f"{len(rest) + 1} rates")
    up = rest[0] if rest else down
    unit = _UNIT.search(up)
    if not all((down, up)):
        typed.refuse("a rate is missing")
    if unit is None:
        typed.refuse("a rate needs a unit")
    if not _UNIT.search(down):
        down += unit.group()
    return down, up


def _link(rates: str, rate: str, queue: Typed) -> Link:
    """Build a link from one of the rates and its queue."""
    with _named({"rate": Typed("--link", rates, RATES), "qdisc": queue}):
        return Link(rate=rate, qdisc=queue.value)
