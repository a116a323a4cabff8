"""``sojourn live``: run a program behind a queue, with real packets."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Annotated, Any

import typer

from sojourn import _core
from sojourn.cli import live_options, session, signals
from sojourn.cli.options import (
    Change,
    Everything,
    Force,
    Json,
    Out,
    Pcap,
    ReportFile,
    Strict,
    within,
)
from sojourn.cli.watch import Metrics, View, watcher
from sojourn.result import Result, captures, derived_files, storage
from sojourn.scenario.paths import assignment, overridden


def live(
    *,
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="COMMAND",
            help="Program and arguments, run in the client's network namespace; by default a "
            "shell. The environment variable SOJOURN_SERVER contains the server's address.",
            show_default=False,
        ),
    ] = None,
    link: Annotated[
        str,
        typer.Option(
            metavar="RATE[/RATE]",
            help="Rate of the link, or rates down/up, such as 10/1mbit.",
        ),
    ] = "10mbit",
    rtt: Annotated[str, typer.Option(metavar="TIME", help="Base round-trip time.")] = "20ms",
    qdisc: Annotated[
        str,
        typer.Option(metavar="QDISC", help="Queue for both directions, in tc syntax."),
    ] = "fq_codel",
    qdisc_up: Annotated[
        str | None,
        typer.Option(metavar="QDISC", help="Queue for the direction from client to server."),
    ] = None,
    server: Annotated[
        str | None,
        typer.Option(
            metavar="COMMAND",
            help="Program and arguments, as one string, run in the server's network namespace.",
        ),
    ] = None,
    time: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="End the run after this time."),
    ] = None,
    ecn: Annotated[bool, typer.Option("--ecn", help="Request ECN on TCP connections.")] = False,
    view: Annotated[
        bool,
        typer.Option("--view", help="Print rate, backlog, delay, drops and marks every second."),
    ] = False,
    view_flows: Annotated[
        int,
        typer.Option(
            metavar="N",
            callback=within("--view-flows", 0),
            help="Also print the N transport flows that sent most on each link; implies --view.",
            show_default=False,
        ),
    ] = 0,
    metrics: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS:PORT",
            help="Serve the same numbers in Prometheus text format; :PORT listens on loopback.",
        ),
    ] = None,
    pcap: Pcap = None,
    change: Change = None,
    out: Out = None,
    force: Force = False,
    report: ReportFile = None,
    json: Json = False,
    everything: Everything = False,
    strict: Strict = False,
) -> int:
    """Run a program behind a queue, with real packets, in network namespaces of its own.

    A nonzero exit code of the program becomes the exit code of the command. The summary goes to
    standard error; with --json it goes to standard output, and the output of the program to
    standard error.
    """
    scenario = live_options.scenario(
        command=command,
        server=server,
        link=link,
        rtt=rtt,
        qdisc=qdisc,
        qdisc_up=qdisc_up,
        time=time,
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
        resume=False,
    )
    _core.check_backend(scenario.checked, "live")
    if scenario.runs != 1:
        message = f"live: the scenario has {scenario.runs} runs; expected one"
        raise _core.ScenarioError(message)
    if pcap is not None:
        captures.check(scenario.checked, pcap, backend="live", resume=False, force=force)
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
