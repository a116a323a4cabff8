"""The scenario and the parameters of sweeps and searches: ``FILE|TRAFFIC``, ``-p``, ``--where``."""

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from sojourn import _core
from sojourn.arguments import Argument, Plan, common, declared
from sojourn.cli import session
from sojourn.cli.run import named, scenario_file, with_changes
from sojourn.queues import qdisc
from sojourn.scenario import Scenario, presets
from sojourn.scenario.files import Tables, split
from sojourn.scenario.paths import assignment, overridden

# The defaults of the options of TRAFFIC.
_LINK, _RTT, _QUEUE = "10mbit", "50ms", "fq_codel"

# Heading of the options of a composed scenario in the help.
WITH_TRAFFIC = "With TRAFFIC"

ScenarioOrTraffic = Annotated[
    Path,
    Argument(
        help="Scenario file in TOML, - for standard input, or traffic of sojourn compare, such as "
        "rrul_be.",
        option="FILE|TRAFFIC",
        completion="scenarios",
    ),
]


@dataclass(frozen=True, kw_only=True)
class Line(Plan):
    """The line of a composed scenario."""

    preset: Annotated[str | None, replace(presets.PRESET, heading=WITH_TRAFFIC)] = None
    link: Annotated[
        str | None,
        replace(common.LINK, heading=WITH_TRAFFIC, unset=f"those of the preset, else {_LINK}"),
    ] = None
    rtt: Annotated[str | None, replace(common.RTT, heading=WITH_TRAFFIC, unset=_RTT)] = None
    qdisc: Annotated[str | None, replace(common.QDISC, heading=WITH_TRAFFIC, unset=_QUEUE)] = None

    def words(self) -> list[str]:
        """Return the options of the command line."""
        given = ((one.option, getattr(self, one.name)) for one in declared(Line))
        return [word for name, value in given if value is not None for word in (name, value)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a scenario comes from."""

    file: Path
    line: Line
    change: Sequence[str] = ()

    @property
    def is_traffic(self) -> bool:
        """Whether it is traffic and not a file."""
        return _may_be_traffic(self.file)

    def words(self) -> list[str]:
        """Return the words of a command that has the same scenario, without ``-s``."""
        return [f"{self.file}", *self.line.words()]

    def changes_beside(self, paths: Iterable[str]) -> list[str]:
        """Return the values of ``-s`` that parameters with these paths do not replace."""
        return [one for one in self.change if _replaced_by(one, paths) is None]

    def read(self) -> tuple[Scenario, Tables]:
        """Read the file, or compose the traffic, and apply the changes of the command line."""
        session.warn_of_bytes(*self.change)
        scenario, tables = self._traffic() if self.is_traffic else self._file()
        return with_changes(scenario, self.change), tables

    def _file(self) -> tuple[Scenario, Tables]:
        line = self.line
        rated = line.preset is not None or line.link is not None
        found = presets.line_rates(line.preset, line.link, _LINK) if rated else None
        rates = found and f"-s links.down.rate={found.down} -s links.up.rate={found.up}"
        for option, changes in (
            ("--preset", line.preset and rates),
            ("--link", rates),
            ("--rtt", line.rtt and f"-s rtt={line.rtt}"),
            ("--qdisc", line.qdisc and _queues(line.qdisc)),
        ):
            if changes:
                message = f"{option}: requires TRAFFIC instead of FILE; expected {changes}"
                raise _core.ScenarioError(message)
        text, scenario = scenario_file(self.file)
        session.warn_of_bytes(text)
        return scenario, split(text, named(self.file))[1]

    def _traffic(self) -> tuple[Scenario, Tables]:
        line, queue = self.line, self.line.qdisc or _QUEUE
        of = presets.line_rates(line.preset, line.link, _LINK)
        session.warn_of_bytes(of.down, of.up)
        session.note_queues(queue)
        try:
            groups = presets.traffic(f"{self.file}", of)
        except _core.ScenarioError as error:
            is_whole = error.value == f"{self.file}"
            near = presets.nearest(f"{self.file}") if is_whole else None
            instead = f": {error}" if near is None else f"; did you mean {near}?"
            message = f"{self.file}: neither a file nor traffic{instead}"
            raise _core.ScenarioError(message) from None
        default = "" if line.preset else _LINK
        scenario = presets.access_link(
            rates=of,
            groups=groups,
            queues={queue: qdisc(queue)},
            rtt=line.rtt or _RTT,
            duration="70s",
            warmup="15s",
            replications=3,
            seed=1,
            name=" ".join(filter(None, [f"{self.file}", line.preset, line.link or default])),
        )
        return without_arms(scenario), Tables({})


def _may_be_traffic(file: Path) -> bool:
    return f"{file}" != "-" and not file.exists() and not file.suffix


def names_traffic(file: Path) -> bool:
    """Whether there is no such file, but traffic of this name."""
    if not _may_be_traffic(file):
        return False
    try:
        presets.traffic(f"{file}", presets.link_rates(_LINK))
    except _core.ScenarioError:
        return False
    return True


def _queues(queue: str) -> str:
    """Write the options that set the queue of both links."""
    changes = (f"links.{link}.qdisc={queue}" for link in ("down", "up"))
    return " ".join(f"-s {shlex.quote(change)}" for change in changes)


def without_arms(scenario: Scenario) -> Scenario:
    """Apply the only arm of a scenario to it."""
    (arm,) = scenario.arms
    return overridden(scenario.replace(arms=[]), dict(arm.set))  # type: ignore[arg-type]


def check_changes(changes: Sequence[str], paths: Iterable[str], of: str) -> None:
    """Raise a ScenarioError if parameters with these paths replace a value that ``-s`` sets."""
    for text in changes:
        replaced = _replaced_by(text, paths)
        if replaced is not None:
            message = (
                f"-s {text}: each point of the {of} sets {replaced}; expected either -s or a "
                f"parameter of the {of}"
            )
            raise _core.ScenarioError(message)


def _replaced_by(change: str, paths: Iterable[str]) -> str | None:
    """Return the path that replaces the value of a change; None if no path does."""
    changed, _ = assignment(change)
    return next((one for one in paths if changed == one or changed.startswith(f"{one}.")), None)
