"""One simulation of a suite, and what of it is measured."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from sojourn import _core
from sojourn.scenario import Scenario
from sojourn.scenario.paths import Value, overridden

Kind = TypeVar("Kind", bound="Case")
# The group of the pings that measure delay.
PROBE = "probe"


@dataclass(frozen=True, slots=True, kw_only=True)
class Phases:
    """Phases that follow each other from the end of the warm-up and repeat."""

    names: tuple[str, ...]
    length_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One simulation of a scenario, such as one RTT of RFC 7928 section 6.2."""

    name: str = ""
    scenario: Scenario
    # The class of each group of traffic.
    classes: Mapping[str, str]
    bottleneck: str = "down"
    phases: Phases | None = None
    categories: tuple[str, str] | None = None
    against: tuple[str, str] | None = None
    x: float | None = None


def changed(built: dict[str, list[Kind]], changes: Mapping[str, Value]) -> dict[str, list[Kind]]:
    """Change values of scenarios; errors name the number of the scenario."""
    if not changes:
        return built
    found = {}
    for number, several in built.items():
        try:
            found[number] = [
                replace(case, scenario=overridden(case.scenario, changes)) for case in several
            ]
        except _core.ScenarioError as error:
            message = f"scenario {number}: {error}"
            raise _core.ScenarioError(message) from None
    return found
