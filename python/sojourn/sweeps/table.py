"""The table ``[sweep]`` of scenario files."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sojourn import _core
from sojourn.document import bounded, needs
from sojourn.scenario import Scenario
from sojourn.scenario.model import MAX_REPLICATIONS
from sojourn.sweeps.parameters import Parameter, parameters
from sojourn.sweeps.run import Plan, plan
from sojourn.sweeps.space import space

KEYS = ("parameters", "where", "sample", "replications", "until", "most")


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepTable:
    """The content of a table ``[sweep]``.

    Parameters
    ----------
    parameters
        The parameters.
    where, sample, replications, until, most
        As for :func:`sojourn.sweep`.
    """

    parameters: tuple[Parameter, ...] = ()
    where: tuple[str, ...] = ()
    sample: str | None = None
    replications: int | None = None
    until: str | None = None
    most: int | None = None

    def plan(self, scenario: Scenario) -> Plan:
        """Check the sweep of a scenario."""
        return plan(
            scenario,
            space(self.parameters, self.where, self.sample),
            replications=self.replications,
            until_=self.until,
            most=self.most,
        )


def sweep_table(table: object) -> SweepTable:
    """Read a table ``[sweep]``.

    Parameters
    ----------
    table
        The value of the key ``sweep``.

    Returns
    -------
    SweepTable
        Its content.

    Raises
    ------
    ScenarioError
        A key is unknown or a value is not valid.

    Examples
    --------
    >>> sweep_table({"parameters": {"rtt": "10ms,50ms"}}).parameters[0].values
    (('10ms',), ('50ms',))
    """
    needs("sweep", table, Mapping, "a table [sweep]")
    keys: dict[str, Any] = dict(table) if isinstance(table, Mapping) else {}
    for key in keys:
        if key not in KEYS:
            message = f"sweep.{key}: unknown key; expected one of {', '.join(KEYS)}"
            raise _core.ScenarioError(message)
    where = keys.get("where", [])
    where = [where] if isinstance(where, str) else where
    needs("sweep.where", where, list, "a list of conditions")
    for condition in where:
        needs("sweep.where", condition, str, "conditions as texts")
    given = keys.get("parameters", {})
    needs("sweep.parameters", given, Mapping, "a table of values by their path")
    for key, kind, what in (
        ("sample", str, "a text"),
        ("until", str, "a text"),
        ("replications", int, "a whole number"),
        ("most", int, "a whole number"),
    ):
        if key in keys:
            needs(f"sweep.{key}", keys[key], kind, what)
            if kind is int:
                bounded(f"sweep.{key}", keys[key], 1, MAX_REPLICATIONS)
    rest = {key: keys[key] for key in KEYS[2:] if key in keys}
    return SweepTable(parameters=tuple(parameters(given)), where=tuple(where), **rest)
