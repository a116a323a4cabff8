"""The table ``[sweep]`` of scenario files."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import UnionType
from typing import Any

from sojourn import _core
from sojourn.arguments.common import MAX_REPLICATIONS
from sojourn.document import bounded, described, needs
from sojourn.scenario import Scenario
from sojourn.sweeps.origins import naming_keys
from sojourn.sweeps.parameters import Parameter, parameters
from sojourn.sweeps.run import Plan, plan
from sojourn.sweeps.space import space

NUMBER, TEXT = (int, "a whole number"), (str, "a text")
# The keys of [sweep] beside `parameters` and `where`: the type of their value.
_KEYS = {"sample": TEXT, "replications": NUMBER, "until": TEXT, "most": NUMBER}


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepTable:
    """The content of a table ``[sweep]``."""

    parameters: tuple[Parameter, ...] = ()
    where: tuple[str, ...] = ()
    sample: str | None = None
    replications: int | None = None
    until: str | None = None
    most: int | None = None
    keys: frozenset[str] = frozenset()

    def plan(self, scenario: Scenario) -> Plan:
        """Check the sweep of a scenario."""
        with naming_keys("sweep", self.keys):
            planned = plan(
                scenario,
                space(self.parameters, self.where, self.sample),
                replications=self.replications,
                until_=self.until,
                most=self.most,
            )
        return replace(planned, table_keys=self.keys)


def sweep_table(table: object) -> SweepTable:
    """Read a table ``[sweep]``.

    Examples
    --------
    >>> sweep_table({"parameters": {"rtt": "10ms,50ms"}}).parameters[0].values
    (('10ms',), ('50ms',))
    """
    found = entries("sweep", table, _KEYS)
    for key in ("replications", "most"):
        if key in found:
            bounded(f"sweep.{key}", found[key], 1, MAX_REPLICATIONS)
    return SweepTable(**found, keys=names(table))


def names(table: object) -> frozenset[str]:
    """Return the keys of a table beside ``parameters``."""
    return frozenset(table if isinstance(table, Mapping) else ()) - {"parameters"}


def entries(
    name: str, table: object, kinds: Mapping[str, tuple[type | UnionType, str]]
) -> dict[str, Any]:
    """Check the keys and the types of the values of a table with parameters and conditions."""
    needs(name, table, Mapping, f"a table [{name}]")
    keys: dict[str, Any] = dict(table) if isinstance(table, Mapping) else {}
    known = ("parameters", "where", *kinds)
    for key, value in keys.items():
        place = f"{name}.{key}"
        if key not in known:
            message = f"{place}: unknown key; expected one of {', '.join(known)}"
            raise _core.ScenarioError(message)
        if key not in kinds:
            continue
        kind, what = kinds[key]
        if isinstance(value, bool):
            # Python counts it as a whole number.
            message = f"{place}: expected {what}, not {described(value)}"
            raise _core.ScenarioError(message)
        needs(place, value, kind, what)
    given = keys.pop("parameters", {})
    needs(f"{name}.parameters", given, Mapping, "a table of values by their path")
    where = texts(f"{name}.where", keys.pop("where", []), "conditions")
    return {"parameters": tuple(parameters(given)), "where": tuple(where), **keys}


def texts(place: str, value: object, what: str) -> list[str]:
    """Return a list of texts; a single text is a list of one."""
    found = [value] if isinstance(value, str) else value
    needs(place, found, list, f"a list of {what}")
    checked = []
    for text in found if isinstance(found, list) else ():
        needs(place, text, str, f"{what} as texts")
        checked.append(text)
    return checked
