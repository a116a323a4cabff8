"""The configuration of a router, and the line behind it, for a scenario file."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from sojourn import _core
from sojourn.advice.access import access
from sojourn.advice.experiment import line as of_access
from sojourn.advice.router_config import from_sqm, present
from sojourn.advice.shaping import Shaping
from sojourn.arguments import Plan, common, in_argument
from sojourn.errors import invalid
from sojourn.exchange import importing
from sojourn.exchange.configuration import (
    DIRECTIONS,
    RTT,
    STANDARD_INPUT,
    Configuration,
    Line,
    Shaper,
    Source,
    source_of,
)
from sojourn.exchange.configuration import scenario as written
from sojourn.scenario import Link, presets
from sojourn.scenario.presets import Preset

_LISTING = re.compile(r"^\s*qdisc \w+ \S+ (?:dev|root|parent) ", re.MULTILINE)
_JSON_LISTING = re.compile(r'^\s*\[\s*\{\s*"kind"')
# Duration of the scenario, in which the rate of some lines varies.
_DURATION_S = 30.0


def configuration(paths: Sequence[str | Path]) -> Configuration | None:
    """Read the configuration of a router in any form; None: the files are something else."""
    source = source_of(paths)
    found = importing.configuration(paths, source)
    if found is None and source is not None:
        found = _of_router(source)
    if found is None and STANDARD_INPUT in map(Path, paths):
        message = (
            "standard input is read alone; expected no other file"
            if source is None
            else "standard input: no configuration of a router; measurements are read from files"
        )
        raise _core.ScenarioError(message)
    if found is None and source is None:
        _refuse_beside_others(paths)
    return found


def _refuse_beside_others(paths: Sequence[str | Path]) -> None:
    """Refuse a configuration among several files."""
    for path in paths:
        if importing.is_measured(path):
            continue
        source = source_of([path])
        if source and (importing.is_script(source.text) or _is_of_router(source.text)):
            problem = "is the configuration of a router; expected it alone, without other files"
            raise invalid(source.place, problem)


def _is_of_router(text: str) -> bool:
    is_listing = _LISTING.search(text) or _JSON_LISTING.match(text)
    return from_sqm.is_sqm(text) or bool(is_listing)


def _of_router(source: Source) -> Configuration | None:
    """Read /etc/config/sqm or output of tc; None: the text is something else."""
    if not _is_of_router(source.text):
        return None
    found = present(source.text, source.place)
    shapings = dict(zip(DIRECTIONS, (found.up, found.down), strict=True))
    return Configuration(
        title=found.description,
        source=source,
        shapers={
            direction: Shaper(
                device=direction,
                settings=_settings(direction, shaping),
                queue={"text": shaping.queue},
            )
            for direction, shaping in shapings.items()
        },
        notes=found.notes,
    )


def _settings(direction: str, shaping: Shaping) -> dict[str, Any]:
    place = f"links.{direction}."
    found = {key.removeprefix(place): text for key, text in shaping.of_link(direction).items()}
    del found["qdisc"]
    return found


@dataclass(frozen=True, kw_only=True)
class AroundPlan(Plan):
    """What is around the queues of a router: the line behind them, and the traffic."""

    preset: Preset = None
    link: Annotated[
        str | None,
        replace(
            common.LINK,
            help="Down/up rates of the line behind the router, such as 10/1mbit, or one rate for "
            "both directions.",
            unset="those of the preset, else no line",
        ),
    ] = None
    rtt: Annotated[str | None, replace(common.RTT, unset=f"that of the preset, else {RTT}")] = None
    traffic: Annotated[
        str | None,
        replace(presets.TRAFFIC, unset="a transfer per direction, or per block that filters name"),
    ] = None


def scenario(found: Configuration, plan: AroundPlan) -> tuple[str, list[str]]:
    """Write a scenario file, and what to note about it."""
    behind, groups = _line(plan), None
    if plan.traffic is not None:
        rates = None if behind is None else presets.line_rates(plan.preset, plan.link, "1gbit")
        with in_argument("traffic", plan.traffic):
            groups = presets.traffic(plan.traffic, rates)
    return written(found, line=behind, rtt=plan.rtt, traffic=groups)


def _line(plan: AroundPlan) -> Line | None:
    """Return the line behind a router: buffers are those of the preset, or else a default FIFO."""
    if plan.preset is not None:
        described = access(preset=plan.preset, link=plan.link)
        return Line(
            links={one: of_access(described, one, _DURATION_S) for one in DIRECTIONS},
            rtt=described.sourced["rtt"].value,
        )
    if plan.link is None:
        return None
    presets.check_link(plan.link)
    rates = presets.link_rates(plan.link)
    return Line(
        links={one: Link(rate=getattr(rates, one), qdisc="pfifo") for one in DIRECTIONS}, rtt=RTT
    )
