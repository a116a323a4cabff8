"""``sojourn advise``: recommend a shaper for an access link and print its configuration."""

from pathlib import Path
from typing import Annotated

import typer

from sojourn import _core
from sojourn.advice import lines
from sojourn.advice.advice import MAX_RUNS, REPLICATIONS, Advice, Question, question
from sojourn.advice.router_config import read
from sojourn.cli import advice_tables, session
from sojourn.cli.options import (
    DryRun,
    Force,
    Jobs,
    Json,
    MaxMemory,
    Out,
    OwnSeed,
    ReportFile,
    Resume,
    path,
    within,
)
from sojourn.execute.executor import jobs_at_once
from sojourn.result import budget
from sojourn.result.formatting import counted
from sojourn.result.result import Result
from sojourn.scenario.presets import link_presets

# The device of OpenWrt towards the modem.
DEVICE = "wan"


def _names(incomplete: str) -> list[tuple[str, str]]:
    """List the presets whose names begin with `incomplete`."""
    return [
        (name, one.title) for name, one in link_presets().items() if name.startswith(incomplete)
    ]


def advise(
    *,
    preset: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            autocompletion=_names,
            help=f"Kind of link: {', '.join(link_presets())}. Sets the values that other "
            "options do not set.",
        ),
    ] = None,
    link: Annotated[
        str | None, typer.Option(help="Down/up rates of the line, such as 100/20mbit.")
    ] = None,
    rtt: Annotated[
        str | None, typer.Option(help="Round-trip time of the idle line, such as 25ms.")
    ] = None,
    layer: Annotated[
        str | None,
        typer.Option(
            help="Link layer: docsis, ethernet, pppoe-atm, pppoe-ptm, another keyword of cake, or "
            "an overhead such as 'overhead 44 mpu 84'."
        ),
    ] = None,
    buffer: Annotated[
        str | None,
        typer.Option(
            help="Down/up buffers of provider and modem as times, such as 100/300ms, or one time."
        ),
    ] = None,
    wifi: Annotated[
        bool, typer.Option("--wifi", help="Connect the devices of the home by WiFi (802.11ac).")
    ] = False,
    qdisc: Annotated[
        str,
        typer.Option(help="Queues to compare in tc syntax, separated by commas."),
    ] = "cake,fq_codel",
    share: Annotated[
        str | None,
        typer.Option(
            metavar="PERCENT",
            help="Rates of the shapers in percent of the rate of the line, separated by commas; by "
            "default 100 to 80, and lower rates if the rate of the line varies.",
        ),
    ] = None,
    present: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="FILE",
            parser=path,
            help="Also compare the present configuration, read from a copy of /etc/config/sqm or "
            "the output of 'tc -d qdisc show'; - for standard input.",
        ),
    ] = None,
    interface: Annotated[
        str | None,
        typer.Option(
            metavar="DEVICE",
            help="Network device towards the modem, for --from and for the printed lines (by "
            f"default {DEVICE}).",
        ),
    ] = None,
    replications: Annotated[
        int,
        typer.Option(
            callback=within("--replications", 1, MAX_RUNS),
            help=f"Number of runs per configuration, 1 to {MAX_RUNS}.",
        ),
    ] = REPLICATIONS,
    seed: OwnSeed = 1,
    jobs: Jobs = None,
    max_memory: MaxMemory = None,
    out: Out = None,
    force: Force = False,
    report: ReportFile = None,
    json: Json = False,
    everything: Annotated[
        bool, typer.Option("--all", help="Print all configurations and all findings.")
    ] = False,
    resume: Resume = False,
    dry_run: DryRun = False,
) -> int:
    """Recommend a shaper for an access link, and print its configuration for tc and OpenWrt."""
    device = DEVICE if interface is None else interface
    lines.check_device(device)
    asked = question(
        preset=preset,
        link=link,
        rtt=rtt,
        layer=layer,
        buffer=buffer,
        wifi=wifi,
        queues=[item for item in qdisc.split(",") if item.strip()],
        shares=None if share is None else _shares(share),
        present=None if present is None else read(present),
        interface=interface,
        replications=replications,
        seed=seed,
    )
    session.warn_of_bytes(link or "", qdisc)
    if asked.present is not None:
        session.say_notes(list(asked.present.notes))
        session.say(asked.present.description)

    def show(result: Result) -> None:
        advice = Advice(asked, result)
        advice_tables.show(advice, device=device, as_json=json, everything=everything)

    plan = session.Plan(
        scenario=asked.scenario,
        jobs=jobs,
        backend=None,
        max_memory=max_memory,
        out=out,
        force=force,
        report=report,
        json=json,
        everything=everything,
        strict=False,
        resume=resume,
        show=show,
    )
    if dry_run:
        if not json:
            advice_tables.show_link(asked.access)
            advice_tables.show_candidates(asked.compared)
        return session.describe(plan)
    session.say(_announced(asked, jobs, max_memory))
    return session.execute(plan)


def _announced(asked: Question, jobs: int | None, max_memory: str | None) -> str:
    """Describe the runs and estimate their time, before they start."""
    checked = asked.scenario.checked
    estimate = budget.estimate(checked, jobs=jobs, max_memory=max_memory)
    count = jobs_at_once(jobs, None)
    runs = f"{counted(asked.scenario.runs, 'run')} of {checked.duration_s:g} s"
    return (
        f"{counted(len(asked.compared), 'configuration')}, {runs}; "
        f"about {estimate['cpu_s'] / count:.2g} s on {counted(count, 'processor')}"
    )


def _shares(text: str) -> list[float]:
    try:
        return [float(item.strip().removesuffix("%")) for item in text.split(",") if item.strip()]
    except ValueError:
        message = f'share: "{text}" is not a list of numbers; expected percent, such as 100,95,90'
        raise _core.ScenarioError(message) from None
