"""The scenario and the parameters of sweeps and searches: ``FILE|PRESET``, ``-p``, ``--where``."""

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from sojourn import _core
from sojourn.cli import session
from sojourn.cli.options import path
from sojourn.cli.run import scenario_file, with_changes
from sojourn.queues import qdisc
from sojourn.scenario import Scenario, presets
from sojourn.scenario.files import split
from sojourn.scenario.paths import assignment, overridden

# The options of presets.
_LINK, _RTT, _QUEUE = "10mbit", "50ms", "fq_codel"

# Heading of the options of a composed scenario in the help.
PRESET = "With TRAFFIC"

ScenarioOrPreset = Annotated[
    Path,
    typer.Argument(
        metavar="FILE|TRAFFIC",
        parser=path,
        help="Scenario file in TOML, - for standard input, or traffic of sojourn compare, such as "
        "rrul_be.",
    ),
]
Link = Annotated[
    str | None,
    typer.Option(
        metavar="RATES",
        rich_help_panel=PRESET,
        help="Down/up rates of the line, such as 10/1mbit, or one rate for both directions.",
        show_default=_LINK,
    ),
]
Rtt = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        rich_help_panel=PRESET,
        help="Round-trip time with empty queues.",
        show_default=_RTT,
    ),
]
QueueOption = Annotated[
    str | None,
    typer.Option(
        "--qdisc",
        metavar="QDISC",
        rich_help_panel=PRESET,
        help="Queue for both directions, in tc syntax.",
        show_default=_QUEUE,
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a scenario comes from."""

    file: Path
    link: str | None = None
    rtt: str | None = None
    queue: str | None = None
    change: Sequence[str] | None = None

    @property
    def is_preset(self) -> bool:
        """Whether it is a preset."""
        return _may_be_preset(self.file)

    def words(self) -> list[str]:
        """Return the words of a command that has the same scenario, without ``-s``."""
        pairs = (("--link", self.link), ("--rtt", self.rtt), ("--qdisc", self.queue))
        options = [word for name, value in pairs if value is not None for word in (name, value)]
        return [f"{self.file}", *options]

    def changes_beside(self, paths: Iterable[str]) -> list[str]:
        """Return the values of ``-s`` that parameters with these paths do not replace."""
        return [one for one in self.change or () if _replaced_by(one, paths) is None]

    def read(self) -> tuple[Scenario, dict[str, Any]]:
        """Read the file, or compose the preset, and apply the changes of the command line."""
        session.warn_of_bytes(*(self.change or ()))
        scenario, tables = self._preset() if self.is_preset else self._file()
        changes = None if self.change is None else list(self.change)
        return with_changes(scenario, changes, replications=None, seed=None), tables

    def _file(self) -> tuple[Scenario, dict[str, Any]]:
        found = None if self.link is None else presets.link_rates(self.link)
        for option, changes in (
            ("--link", found and f"-s links.down.rate={found.down} -s links.up.rate={found.up}"),
            ("--rtt", self.rtt and f"-s rtt={self.rtt}"),
            ("--qdisc", self.queue and _queues(self.queue)),
        ):
            if changes:
                message = f"{option}: requires a preset; expected {changes}"
                raise _core.ScenarioError(message)
        text, scenario = scenario_file(self.file)
        session.warn_of_bytes(text)
        return scenario, split(text)[1]

    def _preset(self) -> tuple[Scenario, dict[str, Any]]:
        link, queue = self.link or _LINK, self.queue or _QUEUE
        of = presets.link_rates(link)
        session.warn_of_bytes(of.down, of.up)
        try:
            groups = presets.traffic(f"{self.file}", of)
        except _core.ScenarioError as error:
            is_whole = f"{error}".startswith(f'unknown traffic "{self.file}"')
            near = presets.nearest(f"{self.file}") if is_whole else None
            instead = f": {error}" if near is None else f"; did you mean the preset {near}?"
            message = f"{self.file}: neither a file nor a preset{instead}"
            raise _core.ScenarioError(message) from None
        scenario = presets.access_link(
            rates=of,
            groups=groups,
            queues={queue: qdisc(queue)},
            rtt=self.rtt or _RTT,
            duration="70s",
            warmup="15s",
            replications=3,
            seed=1,
            name=f"{self.file} {link}",
        )
        return without_arms(scenario), {}


def _may_be_preset(file: Path) -> bool:
    return f"{file}" != "-" and not file.exists() and not file.suffix


def names_preset(file: Path) -> bool:
    """Whether there is no such file, but a preset of this name."""
    if not _may_be_preset(file):
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


def check_changes(changes: Sequence[str] | None, paths: Iterable[str], of: str) -> None:
    """Raise a ScenarioError if parameters with these paths replace a value that ``-s`` sets."""
    for text in changes or ():
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
