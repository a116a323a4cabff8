"""``sojourn compare``: compare queues in both directions of an access link."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Annotated

import typer

from sojourn import _core
from sojourn.arguments import Argument, ArgumentError, Plan, common, in_argument
from sojourn.arguments.common import (
    OUTPUT,
    SCENARIO,
    Backend,
    Ecn,
    Fresh,
    Jobs,
    MaxMemory,
    OwnReplications,
    OwnSeed,
)
from sojourn.cli import expecting, session
from sojourn.cli.options import Change, DryRun, Expect, Strict
from sojourn.cli.plans import Given, command
from sojourn.cli.run import with_changes
from sojourn.execute.run import RunPlan
from sojourn.queues import Queue, qdisc
from sojourn.scenario import Scenario, presets
from sojourn.scenario.presets import Preset
from sojourn.traffic import Traffic

QUEUES = ("pfifo", "codel", "pie", "fq_codel")
LINK = "10mbit"


@dataclass(frozen=True, kw_only=True)
class ComparePlan(Plan):
    """The scenario that is composed, and how its runs are executed."""

    queues: Annotated[str | Sequence[str], common.QUEUES] = QUEUES
    preset: Preset = None
    link: Annotated[str | None, replace(common.LINK, unset=f"those of the preset, else {LINK}")] = (
        None
    )
    rtt: Annotated[str, common.RTT] = "50ms"
    traffic: Annotated[
        str,
        Argument(
            help=f"One of {', '.join(presets.TRAFFIC_NAMES)}, or several joined by +, such as "
            "web+tcp_1up. N and M are numbers of flows.",
            metavar="TRAFFIC",
            heading=SCENARIO,
            completion="traffic",
        ),
    ] = "rrul_be"
    cc: Annotated[
        str | None,
        Argument(
            help="Congestion control for all connections except LEDBAT, such as bbr.",
            unset="that of the traffic, mostly cubic",
            kind="control",
            metavar="CONTROL",
            heading=SCENARIO,
            completion="controls",
        ),
    ] = None
    ecn: Ecn = False
    duration: Annotated[
        str, Argument(help="Duration of a run.", kind="time", metavar="TIME", heading=SCENARIO)
    ] = "70s"
    warmup: Annotated[
        str,
        Argument(
            help="Warm-up period, excluded from totals.",
            kind="time",
            metavar="TIME",
            heading=SCENARIO,
            rare=True,
        ),
    ] = "15s"
    replications: OwnReplications = 10
    seed: OwnSeed = 1
    jobs: Jobs = None
    on: Backend = None
    max_memory: MaxMemory = None
    fresh: Fresh = False


@command(ComparePlan, rare=("cc", "ecn", "duration", "on"))
def compare(
    given: Given[ComparePlan],
    *,
    change: Change = (),
    dry_run: DryRun = False,
    output: session.Output,
    generate: Annotated[
        bool,
        Argument(help="Print the scenario as TOML without running it.", heading=OUTPUT, rare=True),
    ] = False,
    expect: Expect = (),
    strict: Strict = False,
) -> int:
    """Compare queues in both directions of an access link."""
    planned = given.plan()
    rates = _rates(planned)
    session.warn_of_bytes(rates.down, rates.up, *planned.queues, *change)
    session.note_queues(*planned.queues)
    scenario = with_changes(access_link(planned), change)
    if generate:
        typer.echo(scenario.to_toml(), nl=False)
        return 0
    request = session.RunRequest(
        run=RunPlan(
            scenario,
            jobs=planned.jobs,
            on=planned.on,
            max_memory=planned.max_memory,
            fresh=planned.fresh,
        ),
        output=output,
        strict=strict,
        expectations=tuple(expecting.all_expectations(expect)),
    )
    return session.describe(request) if dry_run else session.execute(request)


def _rates(plan: ComparePlan) -> presets.Rates:
    return presets.line_rates(plan.preset, plan.link, LINK)


def access_link(plan: ComparePlan) -> Scenario:
    """Compose the scenario, with an arm per queue."""
    rates = _rates(plan)
    with in_argument("traffic", plan.traffic):
        groups = presets.traffic(plan.traffic, rates, cc=plan.cc, ecn=plan.ecn or None)
    _check_duration(plan.duration, groups)
    link = plan.link or ("" if plan.preset else LINK)
    words = [plan.traffic, plan.cc, "ecn" if plan.ecn else "", plan.preset, link]
    return presets.access_link(
        rates=rates,
        groups=groups,
        queues=_queues(plan.queues),
        rtt=plan.rtt,
        duration=plan.duration,
        warmup=plan.warmup,
        replications=plan.replications,
        seed=plan.seed,
        name=" ".join(filter(None, words)),
    )


def _check_duration(duration: str, groups: list[Traffic]) -> None:
    """Refuse a duration before the start of the traffic, which presets and not users choose."""
    try:
        end_s = _core.parse_time_s(duration)
    except _core.ScenarioError:
        return  # Refused with its place when the scenario is built.
    for group in groups:
        if isinstance(group.start, str) and _core.parse_time_s(group.start) >= end_s:
            rule = f"too short; expected more than {group.start}, when {group.name} starts"
            raise ArgumentError("duration", duration, rule)


def _queues(texts: Sequence[str]) -> dict[str, Queue]:
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


def _unquoted(queue: str, words: Sequence[str]) -> str | None:
    """Join a queue and the words after it if the first of them is a parameter of the queue."""
    parameters = {
        entry["name"]: [item["key"] for item in entry["parameters"]]
        for entry in json.loads(_core.qdisc_catalogue())
    }
    own = parameters.get(queue.split(maxsplit=1)[0] if queue.strip() else "", [])
    if words[0] in parameters or not {words[0], words[0].removeprefix("no")} & set(own):
        return None
    return " ".join([queue, *takewhile(lambda word: word.split(" ")[0] not in parameters, words)])
