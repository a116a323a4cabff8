"""Judge expectations by the intervals of what was measured.

The sides of a comparison are computed in each run, so that arms are compared in runs with the same
seed. An expectation passes if the 95 % interval of the difference of the sides lies on the right
side of 0, fails if it lies on the other side, and is undecided if it contains 0. Judgements are
written as JUnit XML, which CI systems read.
"""

import ast
import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from sojourn import _core
from sojourn.deferred import Deferred
from sojourn.errors import alternatives, invalid
from sojourn.expectations.expectation import CAPACITY, QUANTILES, Expectation, is_capacity
from sojourn.expressions import Reference
from sojourn.result.derived_files import Kind
from sojourn.result.naming import check_possible, metric_column
from sojourn.result.student import mean_and_interval

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import polars as pl

    Numbers = npt.NDArray[np.float64]
else:
    # Needed only where expectations are judged.
    np, pl = Deferred("numpy"), Deferred("polars")

Verdict = Literal["pass", "fail", "undecided"]
# One random number generator per expectation: the same runs have the same verdict.
_SEED = 1
_RESAMPLES = 2000
# Fewer runs have no useful bootstrap interval.
_LEAST_FOR_QUANTILES = 5
_KEYS = ("point", "arm", "replication", "group")


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What expectations are judged by."""

    runs: "pl.DataFrame"
    capacities: Mapping[str, Mapping[str, float | None]]
    groups: "Callable[[], Sequence[pl.DataFrame]]" = tuple
    place: str = ""

    @property
    def count(self) -> int:
        """The number of replications."""
        return self.runs["replication"].n_unique()

    @property
    def arms(self) -> list[str]:
        """The names of the arms."""
        return self.runs["arm"].unique(maintain_order=True).to_list()

    def series(self, name: str, arm: str, place: str) -> dict[int, float]:
        """Return a metric of the runs of an arm by replication."""
        frame, column = self._find(name, place)
        selected = frame.filter(pl.col("arm") == arm).select("replication", column).drop_nulls()
        return dict(selected.iter_rows())

    def _find(self, name: str, place: str) -> "tuple[pl.DataFrame, str]":
        group, dot, metric = name.rpartition(".")
        if not dot:
            columns = [column for column in self.runs.columns if column not in _KEYS]
            return self.runs, metric_column(name, columns, place)
        known: list[str] = []
        for frame in self.groups():
            of_group = frame.filter(pl.col("group") == group)
            columns = [
                column
                for column in frame.columns
                if column not in _KEYS and of_group[column].null_count() < of_group.height
            ]
            known += columns
            try:
                return of_group, metric_column(metric, columns, place)
            except _core.ScenarioError:
                continue
        if known:
            # Raises: the columns do not have it.
            metric_column(metric, list(dict.fromkeys(known)), place)
        groups = [one for frame in self.groups() for one in frame["group"].unique().to_list()]
        raise _unknown_group(place, group, groups)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The verdict on an expectation for one arm."""

    expectation: Expectation
    verdict: Verdict
    arm: str
    place: str = ""
    runs: int = 0
    measured: float | None = None
    low: float | None = None
    high: float | None = None
    required: float | None = None
    reason: str = ""

    def document(self) -> dict[str, Any]:
        """Describe the judgement as JSON."""
        keys = ("verdict", "arm", "place", "runs", "measured", "low", "high", "required", "reason")
        found = {key: getattr(self, key) for key in keys}
        return {"name": self.expectation.title, "that": self.expectation.text, **found}


def judge(expectations: Sequence[Expectation], measured: Measured) -> list[Judgement]:
    """Judge expectations."""
    found = []
    for one in expectations:
        with one.located(), np.errstate(all="ignore"):
            found += [_judged(one, arm, measured) for arm in _subjects(one, measured.arms)]
    return found


def check(expectations: Sequence[Expectation], *, groups: bool) -> None:
    """Check the names of metrics before the first run, as far as they are known."""
    for one in expectations:
        with one.located():
            for reference in one.metrics:
                if "." in reference.name and not groups:
                    raise invalid(
                        _place(one), f"{reference.name}: a sweep has no metrics of groups"
                    )
                if "." not in reference.name:
                    check_possible(reference.name, place=_place(one))


def check_metrics(expectations: Sequence[Expectation], links: Sequence[str]) -> None:
    """Check the names of metrics of runs before the first run."""
    for one in expectations:
        with one.located():
            for reference in one.metrics:
                if "." not in reference.name:
                    check_possible(reference.name, links, place=_place(one))


def check_groups(expectations: Sequence[Expectation], known: Mapping[str, Sequence[str]]) -> None:
    """Check the names of groups and of their metrics before the first run."""
    for one in expectations:
        with one.located():
            for reference in one.metrics:
                group, dot, metric = reference.name.rpartition(".")
                if not dot:
                    continue
                if group not in known:
                    raise _unknown_group(_place(one), group, known)
                metric_column(metric, known[group], _place(one))


def _unknown_group(place: str, group: str, known: Iterable[str]) -> _core.ScenarioError:
    names = ", ".join(dict.fromkeys(known)) or "none"
    message = f'{place}: unknown group "{group}"; expected one of {names}'
    return _core.ScenarioError(message)


def check_arms(expectations: Sequence[Expectation], arms: Sequence[str]) -> None:
    """Check the names of arms before the first run."""
    for one in expectations:
        with one.located():
            _subjects(one, arms)


def check_links(
    expectations: Sequence[Expectation], capacities: Mapping[str, Mapping[str, float | None]]
) -> None:
    """Check the capacities of links before the first run."""
    for one in expectations:
        with one.located():
            for subject in _subjects(one, list(capacities)):
                for reference in filter(is_capacity, one.expression.references):
                    _capacity(one, reference, capacities[_arm_of(one, reference, subject)])


def failed(judgements: Sequence[Judgement]) -> bool:
    """Whether any expectation failed or is undecided."""
    return any(one.verdict != "pass" for one in judgements)


def _place(one: Expectation) -> str:
    return f'{one.place} "{one.text}"'


def _subjects(one: Expectation, known: Sequence[str]) -> list[str | None]:
    """List the arms that an expectation is judged for; None: it names all its arms itself."""
    for arm in [*one.named_arms, *(one.arms or ())]:
        if arm not in known:
            raise invalid(_place(one), f'unknown arm "{arm}"; expected one of {", ".join(known)}')
    if all(reference.arm is not None for reference in one.metrics):
        return [None]
    if one.arms is not None:
        return list(one.arms)
    # An arm is not compared with itself.
    others = [arm for arm in known if arm not in one.named_arms]
    if not others:
        raise invalid(_place(one), f"no other arm to compare; arms: {', '.join(known)}")
    return list(others)


def _arm_of(one: Expectation, reference: Reference, subject: str | None) -> str:
    """Return the arm that a name in an expectation is about, if it is judged for `subject`."""
    return reference.arm or subject or one.named_arms[0]


def _judged(one: Expectation, subject: str | None, measured: Measured) -> Judgement:
    place = _place(one)
    arm_of = {
        reference: _arm_of(one, reference, subject) for reference in one.expression.references
    }
    by_run = {
        reference: measured.series(reference.name, arm_of[reference], place)
        for reference in one.metrics
    }
    shared = sorted(set.intersection(*(set(series) for series in by_run.values())))
    values: dict[Reference, Numbers] = {
        reference: np.array([series[run] for run in shared], dtype=np.float64)
        for reference, series in by_run.items()
    }
    for reference in one.expression.references:
        if is_capacity(reference):
            capacity = _capacity(one, reference, measured.capacities[arm_of[reference]])
            values[reference] = np.full(len(shared), capacity)
    known = Judgement(
        expectation=one,
        verdict="undecided",
        arm=", ".join(one.named_arms) if subject is None else subject,
        place=measured.place,
        runs=len(shared),
        reason="not measured",
    )
    if not shared:
        return known
    left, right = _sides(one, values)
    mean, required = float(left.mean()), float(right.mean())
    if not math.isfinite(mean - required):
        return replace(known, reason="not a finite number in some run")
    known = replace(known, measured=mean, required=required)
    if missing := measured.count - len(shared):
        return replace(known, reason=f"not measured in {missing} of {measured.count} runs")
    estimate = _difference(one, values, left, right)
    if isinstance(estimate, str):
        return replace(known, reason=estimate)
    low, high = estimate
    verdict = _verdict(one.sides[1], low, high)
    reason = "more replications are needed" if verdict == "undecided" else ""
    return replace(known, verdict=verdict, reason=reason, low=required + low, high=required + high)


def _verdict(sign: str, low: float, high: float) -> Verdict:
    """Decide on the interval of left - right."""
    if sign.startswith(">"):
        low, high = -high, -low
    # Now the difference should be negative.
    if high < 0.0 or (sign.endswith("=") and high <= 0.0):
        return "pass"
    if low > 0.0 or (not sign.endswith("=") and low >= 0.0):
        return "fail"
    return "undecided"


def _sides(one: Expectation, values: "Mapping[Reference, Numbers]") -> "tuple[Numbers, Numbers]":
    """Compute both sides; the last axis has one value per run, or one for all."""
    left, _, right = one.sides
    functions: dict[str, Callable[[Any], Any]] = {
        "abs": np.abs,
        "mean": partial(np.mean, axis=-1, keepdims=True),
        **{name: partial(_quantile, share) for name, share in QUANTILES.items()},
    }
    found = [one.expression.part(side, values.__getitem__, functions) for side in (left, right)]
    return np.atleast_1d(found[0]), np.atleast_1d(found[1])


def _quantile(share: float, values: Any) -> "Numbers":
    return np.asarray(np.quantile(np.atleast_1d(values), share, axis=-1, keepdims=True))


def _difference(
    one: Expectation, values: "Mapping[Reference, Numbers]", left: "Numbers", right: "Numbers"
) -> tuple[float, float] | str:
    """Return the 95 % interval of left - right, or why there is none."""
    count = len(next(iter(values.values())))
    statistics = _statistics(one)
    if not statistics:
        if count == 1:
            return "one run; at least two are needed"
        _, low, high = mean_and_interval(np.broadcast_to(left - right, count).tolist())
        return low, high
    least = max(_least(name) for name in statistics)
    if count < least:
        return f"{count} runs; at least {least} are needed"
    # All metrics of a run are drawn together.
    drawn = np.random.default_rng(_SEED).integers(0, count, size=(_RESAMPLES, count))
    lefts, rights = _sides(one, {name: series[drawn] for name, series in values.items()})
    means = (lefts - rights).mean(axis=-1)
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


def _statistics(one: Expectation) -> list[str]:
    """List the statistics over runs that are called."""
    calls = (node for node in ast.walk(one.expression.tree) if isinstance(node, ast.Call))
    names = (node.func.id for node in calls if isinstance(node.func, ast.Name))
    return [name for name in names if name != "abs"]


def _least(name: str) -> int:
    """Return the number of runs that a 95 % interval of a quantile needs.

    A bootstrap interval ends within the sample. With fewer runs, the chance that all of them are on
    one side of the true quantile exceeds 2.5 %.
    """
    share = QUANTILES.get(name, 0.5)
    return max(_LEAST_FOR_QUANTILES, math.ceil(math.log(0.025) / math.log(max(share, 1 - share))))


def _capacity(one: Expectation, reference: Reference, rates: Mapping[str, float | None]) -> float:
    """Return the rate of a link; without a link in its name, of the link that metrics name."""
    _, underscore, link = reference.name.partition("_")
    if not underscore:
        names = "".join(f"_{metric.name}_" for metric in one.metrics)
        mentioned = [name for name in rates if f"_{name}_" in names]
        if len(mentioned) != 1:
            expected = alternatives(f"{CAPACITY}_{name}" for name in rates)
            raise invalid(_place(one), f"{CAPACITY} of which link? expected {expected}")
        (link,) = mentioned
    if link not in rates:
        raise invalid(_place(one), f'unknown link "{link}"; expected one of {", ".join(rates)}')
    rate = rates[link]
    if rate is None:
        raise invalid(_place(one), f'link "{link}" has no constant rate; expected a number')
    return rate


VERDICTS = Kind(
    name="file of verdicts",
    mark=b"<testsuite",
    suffixes=("", ".xml"),
    named="verdicts are XML; expected a name such as results.xml",
)


# Surrogates, and code points that are no characters (XML 1.0, section 2.2).
_NOT_XML = re.compile("[^\\t\\n\\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """The verdicts on a scenario or a sweep, the seed of its runs and how long they took."""

    judgements: Sequence[Judgement]
    seed: int | None
    elapsed_s: float


def junit(suites: Mapping[str, Suite]) -> bytes:
    """Write judgements as JUnit XML.

    A failure has the type ``fail`` or ``undecided``. The property ``seed`` of a suite is that of
    its runs; those of a case are what was measured, with its interval, and what was required.
    """
    root = ET.Element("testsuites")
    for name, judged in suites.items():
        not_passed = sum(one.verdict != "pass" for one in judged.judgements)
        counts = {"tests": f"{len(judged.judgements)}", "failures": f"{not_passed}"}
        timed = {"time": f"{judged.elapsed_s:.3f}"}
        suite = ET.SubElement(root, "testsuite", {"name": _text(name), **counts, **timed})
        _properties(suite, seed=judged.seed)
        for one in judged.judgements:
            where = "; ".join(filter(None, [one.place, one.arm]))
            attributes = {
                "classname": _text(f"{name}: {where}"),
                "name": _text(one.expectation.title),
            }
            case = ET.SubElement(suite, "testcase", attributes)
            values = {name: getattr(one, name) for name in ("measured", "low", "high", "required")}
            _properties(case, runs=one.runs, **values)
            if one.verdict != "pass":
                message = _text(described(one))
                failure = ET.SubElement(case, "failure", {"type": one.verdict, "message": message})
                failure.text = message
    ET.indent(root)
    return bytes(ET.tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"


def _properties(of: ET.Element, **values: float | None) -> None:
    """Add the properties of a suite or a case that have a value."""
    given = {name: value for name, value in values.items() if value is not None}
    properties = ET.SubElement(of, "properties") if given else of
    for name, value in given.items():
        text = f"{value}" if isinstance(value, int) else f"{value:.6g}"
        ET.SubElement(properties, "property", {"name": name, "value": text})


def described(one: Judgement) -> str:
    """Write what was measured and required on one line."""
    sign = one.expectation.sides[1]
    if one.measured is None or one.required is None:
        return f"{one.verdict}: {one.reason}"
    reason = f"; {one.reason}" if one.reason else ""
    text = f"{one.measured:.4g}, expected {sign} {one.required:.4g}, difference {difference(one)}"
    return f"{one.verdict}: {text} ({one.runs} runs){reason}"


def difference(one: Judgement) -> str:
    """Write what was measured minus what was required, with the interval that decided."""
    if one.measured is None or one.required is None:
        return ""
    text = f"{one.measured - one.required:.4g}"
    if one.low is None or one.high is None:
        return text
    return f"{text} [{one.low - one.required:.4g}, {one.high - one.required:.4g}]"


def _text(text: str) -> str:
    """Escape control characters, and replace others that XML cannot contain."""
    return _NOT_XML.sub("\ufffd", _core.printable(text))
