"""``study.toml``: the tables that describe a study, as dataclasses."""

import dataclasses
import re
import tomllib
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from sojourn import _core

T = TypeVar("T")
_NAMES = {str: "a string", int: "an integer", float: "a number", bool: "true or false"}


def build(cls: type[T], table: Any, place: str) -> T:
    """Build a dataclass from a table."""
    if not isinstance(table, Mapping):
        message = f"{place}: expected a table"
        raise _core.ResultError(message)
    fields = {one.name: one for one in dataclasses.fields(cls)}  # type: ignore[arg-type]
    hints = get_type_hints(cls)
    if unknown := next((key for key in table if key not in fields), None):
        message = f'{place}: unknown key "{unknown}"; expected {", ".join(fields)}'
        raise _core.ResultError(message)
    values = {}
    for name, one in fields.items():
        if name in table:
            values[name] = _value(hints[name], table[name], f"{place}.{name}")
        elif one.default is one.default_factory is dataclasses.MISSING:
            message = f'{place}: missing key "{name}"'
            raise _core.ResultError(message)
    return cls(**values)


def _value(hint: Any, value: Any, place: str) -> Any:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        (hint,) = (one for one in arguments if one is not types.NoneType)
        origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any or origin is Literal:
        return _one_of(arguments, value, place)
    if origin in (Sequence, Mapping):
        return _values(origin, arguments, value, place)
    if dataclasses.is_dataclass(hint):
        return build(hint, value, place)  # type: ignore[arg-type]
    if type(value) is not hint and (hint, type(value)) != (float, int):
        message = f"{place}: expected {_NAMES[hint]}"
        raise _core.ResultError(message)
    return hint(value)


def _one_of(accepted: tuple[Any, ...], value: Any, place: str) -> Any:
    """Check a literal; if no values are listed, accept any."""
    if accepted and value not in accepted:
        message = f'{place}: "{value}"; expected one of {", ".join(accepted)}'
        raise _core.ResultError(message)
    return value


def _values(origin: Any, arguments: tuple[Any, ...], value: Any, place: str) -> Any:
    if origin is Sequence and isinstance(value, list):
        return [_value(arguments[0], one, f"{place}[{at}]") for at, one in enumerate(value)]
    if origin is Mapping and isinstance(value, dict):
        return {key: _value(arguments[1], one, f"{place}.{key}") for key, one in value.items()}
    message = f"{place}: expected a {'list' if origin is Sequence else 'table'}"
    raise _core.ResultError(message)


Kind = Literal["bars", "series", "cdf", "sweep", "ellipse"]
Changes = Mapping[str, Any]
# Begins a path that changes one arm.
ARMS = "arms."


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """Scenarios that differ in the values of one axis."""

    scenario: str
    name: str
    axis: str
    set: Mapping[str, Sequence[Any]]
    quick: Changes = field(default_factory=dict)
    label: str = ""

    @property
    def points(self) -> dict[str, dict[str, Any]]:
        """The changes of each point, by its name."""
        return {
            self.name.replace(f"{{{self.axis}}}", str(value)): {
                path: values[at] for path, values in self.set.items()
            }
            for at, value in enumerate(self.set[self.axis])
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """Other arms by which the claims are judged again."""

    label: str
    arms: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """A panel of a figure."""

    scenario: str = ""
    sweep: str = ""
    metric: str = ""
    arms: Sequence[str] = ()
    groups: Sequence[str] = ()
    title: str = ""
    x_label: str = ""
    y_label: str = ""
    x_range: Sequence[float] = ()
    y_range: Sequence[float] = ()
    x_log: bool = False
    y_log: bool = False
    published: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A figure of the work."""

    name: str
    title: str
    kind: Kind
    panel: Sequence[Panel]
    statement: str = ""

    @property
    def panels(self) -> Sequence[Panel]:
        """Its panels."""
        return self.panel


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A value of a parameter that the work does not state."""

    label: str
    set: Changes
    plausible: str

    def concerns(self, arm: str) -> bool:
        """Whether the value may change the results of an arm."""
        return any(
            not path.startswith(ARMS) or path.startswith(f"{ARMS}{arm}.") for path in self.set
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumption:
    """A parameter that the work does not state, varied to see whether verdicts depend on it."""

    name: str
    claims: Sequence[str]
    scenarios: Sequence[str]
    variant: Sequence[Variant]
    text: str
    arms: Sequence[str] = ()
    replications: int | None = None

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """A ``study.toml``."""

    title: str
    citation: Mapping[str, Any]
    reconstruction: str = ""
    quick: Changes = field(default_factory=dict)
    scenario: Mapping[str, "QuickScenario"] = field(default_factory=dict)
    sweep: Mapping[str, Sweep] = field(default_factory=dict)
    preset: Sequence[Preset] = ()
    figure: Sequence[Figure] = ()
    assumption: Sequence[Assumption] = ()

    def scenarios_of(self, panel: Panel) -> list[str]:
        """List the scenarios that a panel shows."""
        return list(self.sweep[panel.sweep].points) if panel.sweep else [panel.scenario]

    def quick_of(self, scenario: str) -> Changes:
        """Return what a quick run changes in a scenario besides."""
        return self.scenario[scenario].quick if scenario in self.scenario else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class QuickScenario:
    """What a quick run changes in a scenario."""

    quick: Changes


def load(file: Path) -> Description:
    """Read a ``study.toml``."""
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        message = f"{file}: cannot read study: {getattr(error, 'strerror', None) or error}"
        raise _core.ResultError(message) from None
    description = build(Description, table, str(file))
    for name, sweep in description.sweep.items():
        lengths = {len(values) for values in sweep.set.values()}
        if sweep.axis not in sweep.set or len(lengths) != 1:
            message = (
                f"{file}: sweep {name}: set needs a list for {sweep.axis} and lists of equal length"
            )
            raise _core.ResultError(message)
    for figure in description.figure:
        for panel in figure.panel:
            if panel.sweep and panel.sweep not in description.sweep:
                message = f"{file}: figure {figure.name}: no sweep {panel.sweep}"
                raise _core.ResultError(message)
    return description
