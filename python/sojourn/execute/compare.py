"""Compare queues in both directions of an access link."""

import json
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from itertools import takewhile
from typing import Annotated

from sojourn import _core
from sojourn.arguments import Argument, ArgumentError, Plan, common, in_argument, takes
from sojourn.arguments.common import (
    SCENARIO,
    Backend,
    Ecn,
    Jobs,
    MaxMemory,
    OwnReplications,
    OwnSeed,
    Progress,
)
from sojourn.execute.run import run
from sojourn.queues import Queue, qdisc
from sojourn.queues.base import Queues, texts
from sojourn.queues.queue_file import named
from sojourn.result import Result
from sojourn.scenario import Scenario, presets
from sojourn.scenario.presets import Preset
from sojourn.traffic import Traffic

QUEUES = ("pfifo", "codel", "pie", "fq_codel")
LINK = "10mbit"


@dataclass(frozen=True)
class ComparePlan(Plan):
    """The scenario that is composed, and how its runs are executed."""

    queues: Annotated[Queues, common.QUEUES] = QUEUES
    _: KW_ONLY
    preset: Preset = None
    link: Annotated[str | None, replace(common.LINK, unset=f"those of the preset, else {LINK}")] = (
        None
    )
    rtt: Annotated[str, common.RTT] = "50ms"
    traffic: Annotated[str, presets.TRAFFIC] = "rrul_be"
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
    progress: Progress = None


@takes(ComparePlan)
def compare(plan: ComparePlan) -> Result:
    """Compare queues in both directions of an access link, under traffic with a name.

    The same as ``sojourn compare``. The scenario of the result has an arm for each queue.

    Returns
    -------
    Result
        The result, with all runs.

    Raises
    ------
    Interrupted
        Ctrl-C ended the runs.
    ScenarioError
        A queue, the traffic or another value is not valid; the message names it.
    QueueError
        A queue written in Python failed.

    Examples
    --------
    >>> from sojourn import CoDel
    >>> result = compare(
    ...     ["pfifo", CoDel(target="13ms")], link="10mbit", traffic="tcp_1up", duration="20s",
    ...     replications=2,
    ... )
    >>> result.arms
    ['pfifo', 'codel target 13ms']
    """
    return run(
        access_link(plan),
        jobs=plan.jobs,
        progress=plan.progress,
        on=plan.on,
        max_memory=plan.max_memory,
    )


def line_rates(plan: ComparePlan) -> presets.Rates:
    """Return the rates of the line of a comparison."""
    return presets.line_rates(plan.preset, plan.link, LINK)


def access_link(plan: ComparePlan) -> Scenario:
    """Compose the scenario, with an arm per queue."""
    rates = line_rates(plan)
    with in_argument("traffic", plan.traffic):
        groups = presets.traffic(plan.traffic, rates, cc=plan.cc, ecn=plan.ecn or None)
    _check_duration(plan, groups)
    link = _named(plan.link, rates) if plan.link else "" if plan.preset else LINK
    words = [plan.traffic, plan.cc, "ecn" if plan.ecn else "", plan.preset, link]
    return presets.access_link(
        rates=rates,
        groups=groups,
        queues=_queues(texts(plan.queues)),
        rtt=plan.rtt,
        duration=plan.duration,
        warmup=plan.warmup,
        replications=plan.replications,
        seed=plan.seed,
        name=" ".join(filter(None, words)),
    )


def _named(link: str, rates: presets.Rates) -> str:
    """Write rates in bytes per second, such as 10mbps, in Mbit/s."""
    if not link.lower().endswith("bps"):
        return link
    both = (_core.parse_rate_bits_per_s(rate) / 1e6 for rate in (rates.down, rates.up))
    return f"{'/'.join(dict.fromkeys(f'{rate:g}' for rate in both))} Mbit/s"


def _check_duration(plan: ComparePlan, groups: list[Traffic]) -> None:
    """Refuse a duration that ends before all traffic starts, or with the warm-up."""
    try:
        end_s = _core.parse_time_s(plan.duration)
        warmup_s = _core.parse_time_s(plan.warmup)
    except _core.ScenarioError:
        return  # Refused with its place when the scenario is built.
    for group in groups:
        if isinstance(group.start, str) and _core.parse_time_s(group.start) >= end_s:
            rule = f"too short; expected more than {group.start}, when {group.name} starts"
            raise ArgumentError("duration", plan.duration, rule)
    if warmup_s < end_s:
        return
    if plan.duration == ComparePlan.duration:
        rule = "too long; expected less than the {length} of {duration}"
        raise ArgumentError("warmup", plan.warmup, rule, length=plan.duration)
    rule = "too short; expected more than the {length} of {warmup}"
    raise ArgumentError("duration", plan.duration, rule, length=plan.warmup)


def _queues(given: Sequence[str]) -> dict[str, Queue]:
    """Key the queues by their text, which names their arms."""
    found: dict[str, Queue] = {}
    for index, text in enumerate(given):
        name = " ".join(text.split())
        if index and (quoted := _unquoted(given[index - 1], given[index:])) is not None:
            message = (
                f'unknown queue "{name}"; quote a queue that has parameters, such as {quoted!r}'
            )
            raise _core.ScenarioError(message)
        if name in found:
            message = f'queue "{name}": given twice; expected each queue once'
            raise _core.ScenarioError(message)
        found[name] = qdisc(name)
    return {name: found[text] for name, text in named(found).items()}


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
