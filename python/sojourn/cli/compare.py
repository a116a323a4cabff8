"""``sojourn compare``: compare queues in both directions of an access link."""

import json
from itertools import takewhile
from typing import Annotated

import typer

from sojourn import _core
from sojourn.cli import completion, expecting, session
from sojourn.cli.options import (
    Backend,
    DryRun,
    Everything,
    Expect,
    Force,
    Jobs,
    Json,
    MaxMemory,
    Out,
    OwnSeed,
    ReportFile,
    Resume,
    Strict,
    within,
)
from sojourn.cli.spaces import rates as link_rates
from sojourn.queues import Queue, qdisc
from sojourn.scenario import presets
from sojourn.scenario.model import MAX_REPLICATIONS
from sojourn.scenario.presets import link_presets
from sojourn.traffic import Traffic


def compare(
    *,
    queues: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="QDISC",
            autocompletion=completion.queues,
            help="Queues in tc syntax; quote a queue that has parameters, such as "
            "'codel target 13ms'. Default: pfifo, codel, pie and fq_codel.",
        ),
    ] = None,
    link: Annotated[
        str,
        typer.Option(
            help="Down/up rates, such as 10/1mbit, one rate for both directions, or the rates and "
            f"the link layer of a preset: {', '.join(link_presets())}."
        ),
    ] = "10mbit",
    rtt: Annotated[str, typer.Option(help="Round-trip time with empty queues.")] = "50ms",
    traffic: Annotated[
        str,
        typer.Option(
            autocompletion=completion.traffic,
            help=f"One of {', '.join(presets.TRAFFIC_NAMES)}, or several joined by +, such as "
            "web+tcp_1up. N and M are numbers of flows.",
        ),
    ] = "rrul_be",
    cc: Annotated[
        str | None,
        typer.Option(
            autocompletion=completion.controls,
            help="Congestion control for all connections except LEDBAT, such as bbr.",
        ),
    ] = None,
    ecn: Annotated[bool, typer.Option("--ecn", help="Negotiate ECN on all connections.")] = False,
    duration: Annotated[str, typer.Option(help="Simulated duration of a run.")] = "70s",
    warmup: Annotated[str, typer.Option(help="Warm-up period, excluded from totals.")] = "15s",
    replications: Annotated[
        int,
        typer.Option(
            callback=within("--replications", 1, MAX_REPLICATIONS),
            help=f"Number of runs per queue, 1 to {MAX_REPLICATIONS}.",
        ),
    ] = 10,
    seed: OwnSeed = 1,
    jobs: Jobs = None,
    backend: Backend = None,
    max_memory: MaxMemory = None,
    out: Out = None,
    force: Force = False,
    report: ReportFile = None,
    expect: Expect = None,
    json: Json = False,
    everything: Everything = False,
    strict: Strict = False,
    resume: Resume = False,
    dry_run: DryRun = False,
    generate: Annotated[
        bool, typer.Option("--generate", help="Print the scenario as TOML without running it.")
    ] = False,
) -> int:
    """Compare queues in both directions of an access link."""
    rates = link_rates(link)
    queues = queues or ["pfifo", "codel", "pie", "fq_codel"]
    session.warn_of_bytes(rates.down, rates.up, *queues)
    groups = presets.traffic(traffic, rates, cc=cc, ecn=ecn or None)
    _check_duration(duration, groups)
    scenario = presets.access_link(
        rates=rates,
        groups=groups,
        queues=_queues(queues),
        rtt=rtt,
        duration=duration,
        warmup=warmup,
        replications=replications,
        seed=seed,
        name=" ".join(filter(None, [traffic, cc, "ecn" if ecn else "", link])),
    )
    if generate:
        typer.echo(scenario.to_toml(), nl=False)
        return 0
    plan = session.Plan(
        scenario=scenario,
        jobs=jobs,
        backend=backend,
        max_memory=max_memory,
        out=out,
        force=force,
        report=report,
        json=json,
        everything=everything,
        strict=strict,
        resume=resume,
        expectations=tuple(expecting.all_expectations(expect)),
    )
    return session.describe(plan) if dry_run else session.execute(plan)


def _check_duration(duration: str, groups: list[Traffic]) -> None:
    """Refuse a duration before the start of the traffic, which presets and not users choose."""
    try:
        end_s = _core.parse_time_s(duration)
    except _core.ScenarioError:
        return  # Refused with its place when the scenario is built.
    for group in groups:
        if isinstance(group.start, str) and _core.parse_time_s(group.start) >= end_s:
            message = (
                f'duration: "{duration}" is too short; expected more than {group.start}, when '
                f'"{group.name}" starts'
            )
            raise _core.ScenarioError(message)


def _queues(texts: list[str]) -> dict[str, Queue]:
    """Key the queues by their text, which names their arms."""
    named: dict[str, Queue] = {}
    for index, text in enumerate(texts):
        name = " ".join(text.split())
        if index and (quoted := _unquoted(texts[index - 1], texts[index:])) is not None:
            message = (
                f'unknown queue "{name}"; quote a queue that has parameters, such as {quoted!r}'
            )
            raise _core.ScenarioError(message)
        if name in named:
            message = f'queue "{name}": given twice; expected each queue once'
            raise _core.ScenarioError(message)
        named[name] = qdisc(name)
    return named


def _unquoted(queue: str, words: list[str]) -> str | None:
    """Join a queue and the words after it if the first of them is a parameter of the queue."""
    parameters = {
        entry["name"]: [item["key"] for item in entry["parameters"]]
        for entry in json.loads(_core.qdisc_catalogue())
    }
    own = parameters.get(queue.split(maxsplit=1)[0] if queue.strip() else "", [])
    if words[0] in parameters or not {words[0], words[0].removeprefix("no")} & set(own):
        return None
    return " ".join([queue, *takewhile(lambda word: word.split(" ")[0] not in parameters, words)])
