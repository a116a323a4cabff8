"""``study.toml``: the tables that describe a study; the fields of each plan are its keys."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from sojourn import _core
from sojourn.arguments import Argument, ArgumentError, Plan, build
from sojourn.errors import invalid_file
from sojourn.scenario.files import Tables

Key = partial(Argument, in_files=True)
Kind = Literal["bars", "series", "cdf", "sweep", "ellipse"]
Changes = Mapping[str, Any]
# Begins a path that changes one arm.
ARMS = "arms."

# Of a figure or a panel.
Title = Annotated[str, Key(help="Its title.")]
Range = Annotated[Sequence[float], Key(help="The least and the greatest value of the axis.")]
IsLog = Annotated[bool, Key(help="Whether the axis is logarithmic.")]
AxisLabel = Annotated[str, Key(help="Label of the axis.", unset="that of the metric")]
Quick = Annotated[
    Changes, Key(help="What quick runs change, as paths and values, as with `-s` of `sojourn run`.")
]


@dataclass(frozen=True, kw_only=True)
class Sweep(Plan):
    """Scenarios that differ in the values of one axis."""

    scenario: Annotated[str, Key(help="The scenario: `transient` is read from transient.toml.")]
    name: Annotated[str, Key(help="Name of each point, with the axis, such as `transient_{rtt}`.")]
    axis: Annotated[str, Key(help="The parameter on the axis.")]
    set: Annotated[
        Mapping[str, Sequence[Any]],
        Key(help="A list of values per parameter; all have one value per point."),
    ]
    quick: Quick = field(default_factory=dict)
    label: Annotated[str, Key(help="Label of the axis in figures.")] = ""

    @property
    def points(self) -> dict[str, dict[str, Any]]:
        """The changes of each point, by its name."""
        return {
            self.name.replace(f"{{{self.axis}}}", str(value)): {
                path: values[at] for path, values in self.set.items()
            }
            for at, value in enumerate(self.set[self.axis])
        }


@dataclass(frozen=True, kw_only=True)
class Preset(Plan):
    """Other arms or scenarios by which the claims are judged again."""

    label: Annotated[str, Key(help="Its name.")]
    arms: Annotated[Mapping[str, str], Key(help="The arm that replaces an arm of the claims.")] = (
        field(default_factory=dict)
    )
    scenarios: Annotated[
        Mapping[str, str], Key(help="The scenario that replaces a scenario of the claims.")
    ] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Panel(Plan):
    """A panel of a figure."""

    scenario: Annotated[str, Key(help="The scenario, or a point of a sweep.")] = ""
    sweep: Annotated[str, Key(help="The sweep, instead of a scenario.")] = ""
    metric: Annotated[str, Key(help="The metric or the series.")] = ""
    arms: Annotated[Sequence[str], Key(help="The arms.", unset="all")] = ()
    groups: Annotated[Sequence[str], Key(help="The groups.", unset="the whole run")] = ()
    title: Title = ""
    x_label: AxisLabel = ""
    y_label: AxisLabel = ""
    x_range: Range = ()
    y_range: Range = ()
    x_log: IsLog = False
    y_log: IsLog = False
    published: Annotated[
        str, Key(help="File with the published data, such as published/fig3.csv.")
    ] = ""


@dataclass(frozen=True, kw_only=True)
class Figure(Plan):
    """A figure of the work."""

    name: Annotated[str, Key(help="Its number in the work; the command selects figures by it.")]
    title: Title
    kind: Annotated[Kind, Key(help="How it is drawn.")]
    panel: Annotated[Sequence[Panel], Key(help="Its panels.")]
    statement: Annotated[
        str, Key(help="What the work says about the figure, if its data are not legible.")
    ] = ""

    @property
    def panels(self) -> Sequence[Panel]:
        """Its panels."""
        return self.panel


@dataclass(frozen=True, kw_only=True)
class Variant(Plan):
    """A value of a parameter that the work does not state."""

    label: Annotated[str, Key(help="Its name.")]
    set: Annotated[Changes, Key(help="What it changes in the scenarios, as paths and values.")]
    plausible: Annotated[str, Key(help="Whether the work may have used it, and why.")]

    def concerns(self, arm: str) -> bool:
        """Whether the value may change the results of an arm."""
        return any(
            not path.startswith(ARMS) or path.startswith(f"{ARMS}{arm}.") for path in self.set
        )


@dataclass(frozen=True, kw_only=True)
class Assumption(Plan):
    """A parameter that the work does not state, varied to see whether verdicts depend on it."""

    name: Annotated[str, Key(help="The parameter.")]
    claims: Annotated[Sequence[str], Key(help="The claims that are judged again.")]
    scenarios: Annotated[Sequence[str], Key(help="The scenarios that are run again.")]
    variant: Annotated[Sequence[Variant], Key(help="The values that are tried.")]
    text: Annotated[str, Key(help="What the work says about the parameter.")]
    arms: Annotated[Sequence[str], Key(help="The arms that run.", unset="those of the claims")] = ()
    replications: Annotated[
        int | None, Key(help="Number of runs per arm.", unset="that of the scenario", least=1)
    ] = None

    @property
    def slug(self) -> str:
        """Its name as part of a file name.

        Examples
        --------
        >>> Assumption(name="Buffer size, packets", claims=[], scenarios=[], variant=[],
        ...            text="").slug
        'buffer-size-packets'
        """
        return re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")


@dataclass(frozen=True, kw_only=True)
class Calibration(Plan):
    """A search of what the work does not state, on baselines."""

    claims: Annotated[
        Sequence[str],
        Key(help="The claims from which the distance is kept small; `use` is calibration."),
    ]
    space: Annotated[
        Mapping[str, Sequence[Any]],
        Key(help="The values per path; paths with commas change together, as in sweeps."),
    ]
    set: Annotated[
        Changes, Key(help="What every run of the search changes, such as `duration`.")
    ] = field(default_factory=dict)
    replications: Annotated[int, Key(help="Number of runs per arm.", least=1)] = 1


@dataclass(frozen=True, kw_only=True)
class QuickScenario(Plan):
    """What a quick run changes in a scenario."""

    quick: Quick


@dataclass(frozen=True, kw_only=True)
class Description(Plan):
    """A ``study.toml``."""

    title: Annotated[str, Key(help="Title of the work.")]
    citation: Annotated[
        Mapping[str, Any], Key(help="The entry in BibTeX: its fields, its `key` and its `type`.")
    ]
    reconstruction: Annotated[
        str, Key(help="Which part of the study is a reconstruction; shown with the verdicts.")
    ] = ""
    own: Annotated[
        Sequence[str],
        Key(help="The queues of the work itself, without presets; calibration excludes them."),
    ] = ()
    quick: Quick = field(default_factory=dict)
    scenario: Annotated[
        Mapping[str, QuickScenario], Key(help="Further changes of quick runs, per scenario.")
    ] = field(default_factory=dict)
    sweep: Annotated[Mapping[str, Sweep], Key(help="The sweeps by name.")] = field(
        default_factory=dict
    )
    preset: Annotated[
        Sequence[Preset], Key(help="Other arms or scenarios for which the claims are judged again.")
    ] = ()
    figure: Annotated[Sequence[Figure], Key(help="The figures of the work.")] = ()
    assumption: Annotated[
        Sequence[Assumption], Key(help="Parameters that the work does not state.")
    ] = ()
    calibration: Annotated[
        Mapping[str, Calibration], Key(help="Searches of what the work does not state, by name.")
    ] = field(default_factory=dict)

    def scenarios_of(self, panel: Panel) -> list[str]:
        """List the scenarios that a panel shows."""
        return list(self.sweep[panel.sweep].points) if panel.sweep else [panel.scenario]

    def quick_of(self, scenario: str) -> Changes:
        """Return what a quick run changes in a scenario besides."""
        return self.scenario[scenario].quick if scenario in self.scenario else {}


def load(file: Path) -> Description:
    """Read a ``study.toml``."""
    try:
        text = file.read_text(encoding="utf-8")
        table = tomllib.loads(text)
        description = build(Description, "", table, Tables(table, text, f"{file}"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        problem = getattr(error, "strerror", None) or error
        raise invalid_file(file, f"cannot read study: {problem}") from None
    except ArgumentError as error:
        raise _core.ResultError(str(error)) from None
    _check(description, file)
    return description


def _check(description: Description, file: Path) -> None:
    """Check what depends on more than one key."""
    for name, sweep in description.sweep.items():
        lengths = {len(values) for values in sweep.set.values()}
        if sweep.axis not in sweep.set or len(lengths) != 1:
            rule = f"set needs a list for {sweep.axis} and lists of equal length"
            raise invalid_file(file, f"sweep {name}: {rule}")
    for preset in description.preset:
        if not preset.arms and not preset.scenarios:
            raise invalid_file(file, f'preset "{preset.label}": expected arms or scenarios')
    for figure in description.figure:
        for panel in figure.panel:
            if panel.sweep and panel.sweep not in description.sweep:
                raise invalid_file(file, f"figure {figure.name}: no sweep {panel.sweep}")
            if not {len(panel.x_range), len(panel.y_range)} <= {0, 2}:
                rule = "x_range and y_range need two numbers each"
                raise invalid_file(file, f"figure {figure.name}: {rule}")
