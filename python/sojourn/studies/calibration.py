"""``calibration.json``: a search of what a work does not state, on its baselines.

A search runs each combination of the values in ``[calibration.NAME]`` of ``study.toml``, and
measures the claims that it names. The distance of a combination is the mean over the conditions of
the logarithm of measured to published values, without sign; a bound that is met has the distance 0.
"""

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sojourn import _core
from sojourn.errors import invalid_file
from sojourn.execute.run import run
from sojourn.scenario import Scenario
from sojourn.studies import record
from sojourn.studies.claims import FILE as CLAIMS
from sojourn.studies.claims import Claim, Line, Subject
from sojourn.studies.manifest import Calibration
from sojourn.studies.quantities import Quantities
from sojourn.studies.study import DIGEST, Scale, Study, changed, restricted
from sojourn.studies.study import FILE as FILE_OF_STUDY
from sojourn.studies.verdicts import Estimate, Judged, judged
from sojourn.sweeps.parameters import parameters
from sojourn.sweeps.space import Points, points, space

FILE = "calibration.json"
# Combinations that are printed and shown, the nearest first.
SHOWN = 5
# What a recorded search belongs to.
_PARTS = {
    "claims": "its claims have",
    "digest": "claims.csv has",
    "scenarios": "the scenarios have",
    "space": "its space has",
    "set": "its changes have",
    "replications": "its replications have",
}
_COMPARED = ("equals", "at_least", "at_most")


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """A prepared search."""

    name: str
    plan: Calibration
    claims: list[Claim]
    scenarios: Mapping[str, Scenario]
    # Digests of the scenarios as the study states them.
    stated: Mapping[str, str]
    points: Points

    @property
    def runs(self) -> int:
        """Number of runs of all combinations."""
        return len(self.points) * sum(one.runs for one in self.scenarios.values())


def prepared(study: Study, scale: Scale, replications: int | None = None) -> list[Search]:
    """Check the searches of a study."""
    plans = study.description.calibration
    if not plans:
        message = f"{study.name} has no [calibration.NAME] in {FILE_OF_STUDY}; expected one"
        raise _core.ScenarioError(message)
    return [_prepared(study, name, plan, scale, replications) for name, plan in plans.items()]


def _prepared(
    study: Study, name: str, plan: Calibration, scale: Scale, replications: int | None
) -> Search:
    claims = _claims(study, name, plan)
    arms: dict[str, set[str]] = {}
    for subject in (subject for claim in claims for subject in claim.subjects):
        arms.setdefault(subject.scenario, set()).add(subject.arm)
    every = study.scenarios(list(arms), scale)
    study.check_arms(every)
    scenarios = {
        key: changed(restricted(one, arms[key]), plan.set).replace(
            replications=replications or plan.replications
        )
        for key, one in every.items()
    }
    place = points(space(parameters(plan.space)), next(iter(scenarios.values())))
    for point in place:
        for key, one in scenarios.items():
            searched = changed(one, point.changes)
            for arm in arms[key]:
                if own := study.own_queue(searched, arm):
                    rule = f"it sets {own}, a queue of the work itself, in arm {arm} of {key}"
                    raise invalid_file(
                        study.folder / FILE_OF_STUDY,
                        f"calibration.{name}: {rule}; expected only baselines",
                    )
    stated = {key: study.digest(key, scale) for key in scenarios}
    return Search(
        name=name, plan=plan, claims=claims, scenarios=scenarios, stated=stated, points=place
    )


def _claims(study: Study, name: str, plan: Calibration) -> list[Claim]:
    """Find the claims of a search, which do not count, without their weaker forms."""
    named = {claim.name: claim for claim in study.claims}
    kept = []
    for one in plan.claims:
        place, found = study.folder / FILE_OF_STUDY, named.get(one)
        if found is None or not found.is_calibration:
            rule = f"calibration.{name}: {one} is no claim of {CLAIMS} whose use is calibration"
            raise invalid_file(place, rule)
        lines = [line for line in found.lines if not line.weaker]
        if any(line.relation not in _COMPARED for line in lines):
            rule = f"calibration.{name}: claim {one} has no value; expected {', '.join(_COMPARED)}"
            raise invalid_file(place, rule)
        kept.append(replace(found, lines=lines))
    return kept


def searched(
    search: Search, *, jobs: int | None, progress: Callable[[int, int], object]
) -> dict[str, Any]:
    """Run a search, and record every combination, the nearest first."""
    found, builds = [], dict[str, None]()
    each = search.runs // max(len(search.points), 1)
    for number, point in enumerate(search.points):
        progress(number * each, search.runs)
        measured = dict[Subject, Estimate]()
        for name, scenario in search.scenarios.items():
            result = run(changed(scenario, point.changes), jobs=jobs)
            builds[result.build] = None
            quantities = Quantities(result)
            measured |= {
                subject: quantities.estimate(subject)
                for claim in search.claims
                for subject in claim.subjects
                if subject.scenario == name
            }
        lines = [line for one in judged(search.claims, measured) for line in one.lines]
        distances = [distance(line) for line in lines]
        mean = sum(distances) / len(distances)
        about = {"values": dict(point.values), "distance": mean if math.isfinite(mean) else None}
        found.append({**about, "compared": [record.rounded(line.compared) for line in lines]})
    return {
        **identity(search),
        "builds": list(builds),
        "conditions": [_condition(line) for claim in search.claims for line in claim.lines],
        "points": sorted(found, key=_by_distance),
    }


def identity(search: Search) -> dict[str, Any]:
    """Record what a search belongs to."""
    return {
        "claims": list(search.plan.claims),
        "digest": digest(search.claims),
        "scenarios": dict(search.stated),
        "space": {path: list(values) for path, values in search.plan.space.items()},
        "set": dict(search.plan.set),
        "replications": next(iter(search.scenarios.values())).checked.replications,
    }


def _by_distance(point: Mapping[str, Any]) -> float:
    """Order a combination that cannot be compared, such as one that measured 0, last."""
    return math.inf if point["distance"] is None else point["distance"]


def _condition(line: Line) -> str:
    beside = f" of {line.reference}" if line.reference else ""
    return f"{line.subject}{beside} {line.relation} {line.value:g}"


def distance(line: Judged) -> float:
    """Return how far a condition is from being met, as the logarithm of a ratio."""
    value, found = line.line.value or 0.0, line.compared or 0.0
    if value <= 0.0 or found <= 0.0:
        return 0.0 if value == found else math.inf
    ratio = math.log(found / value)
    relation = line.line.relation
    if relation == "equals":
        return abs(ratio)
    return max(0.0, -ratio if relation == "at_least" else ratio)


def digest(claims: Iterable[Claim]) -> str:
    """Digest what a search compares: its claims as they are in ``claims.csv``."""
    return hashlib.sha256(repr(list(claims)).encode()).hexdigest()[:DIGEST]


def disagreements(study: Study, found: Mapping[str, Any]) -> list[str]:
    """List the recorded searches that no longer belong to the study."""
    plans = study.description.calibration
    stale = [
        f"calibration {name} has not been run" for name in plans if name not in found["searches"]
    ]
    for name, one in found["searches"].items():
        if name not in plans:
            stale.append(f"calibration {name} is no longer in {FILE_OF_STUDY}")
            continue
        now = identity(_prepared(study, name, plans[name], found["scale"], None))
        stale += [
            f"calibration {name}: {_PARTS[part]} changed since it was run"
            for part, value in now.items()
            if one.get(part) != value
        ]
    return stale


def load(file: Path) -> dict[str, Any] | None:
    """Read a recorded search; None if there is none."""
    return record.load(file, "calibration")


def is_record(found: Any) -> bool:
    """Whether a document records searches."""
    return isinstance(found, dict) and found.keys() >= {"study", "scale", "searches"}


def rows(found: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Write the nearest combinations of a search as a table."""
    nearest = found["points"][:SHOWN]
    head = ["distance", *(nearest[0]["values"] if nearest else [])]
    return head, [
        [f"{one['distance']:.3f}", *(str(value) for value in one["values"].values())]
        for one in nearest
    ]
