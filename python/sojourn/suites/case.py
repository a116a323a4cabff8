"""One simulation of a suite, and what of it is measured."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from sojourn import _core
from sojourn.result import Result
from sojourn.scenario import Scenario
from sojourn.scenario.paths import Value, overridden

Runner = Callable[[Scenario], Result]
Kind = TypeVar("Kind", bound="Case")
Subject = TypeVar("Subject")
Form = TypeVar("Form")
Report = TypeVar("Report")
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


def cases(
    builders: Mapping[str, Callable[[Subject, Form], list[Kind]]],
    tested: Subject,
    form: Form,
    numbers: Sequence[str],
    *,
    seed: int,
    changes: Mapping[str, Value] | None = None,
) -> dict[str, list[Kind]]:
    """Build the cases of numbers; errors in `changes` name the number of the scenario."""

    def seeded(case: Kind) -> Kind:
        scenario = case.scenario.replace(seed=seed)
        return replace(case, scenario=overridden(scenario, changes) if changes else scenario)

    found = {}
    for number in numbers:
        if number not in builders:
            continue
        built = builders[number](tested, form)
        try:
            found[number] = [seeded(case) for case in built]
        except _core.ScenarioError as error:
            message = f"scenario {number}: {error}"
            raise _core.ScenarioError(message) from None
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared(Generic[Report]):
    """The cases of all queues or controls by name, checked before the first run."""

    cases: Mapping[str, Mapping[str, Sequence[Case]]]
    report_on: Callable[[str, Runner], Report]

    @property
    def runs(self) -> int:
        """Number of runs."""
        several = (each for built in self.cases.values() for each in built.values())
        return sum(case.scenario.runs for each in several for case in each)

    def reports(
        self, runner: Runner, progress: Callable[[str], object] | None = None
    ) -> Iterator[Report]:
        """Run the cases of each queue or control in turn, and yield its report."""
        for name in self.cases:
            if progress is not None:
                progress(name)
            yield self.report_on(name, runner)
