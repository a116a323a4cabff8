"""Words and numbers for recorded verdicts: in terminals, READMEs and pages."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

from sojourn.result.formatting import counted as counted_runs
from sojourn.studies.claims import CALIBRATION, INTERVALS
from sojourn.studies.verdicts import (
    IN_DIRECTION,
    JUDGED,
    NOT_REPRODUCED,
    REPRODUCED,
    UNDECIDED,
    VERDICTS,
)

# Significant digits of measured values.
DIGITS = 4
_COMPARED = {"at_least": "≥", "at_most": "≤"}
_BESIDE = {"above": "above", "below": "below", "differs": "differs from"}
# Distances from published numbers that are counted, and what rounding adds to them.
SHARES = (0.05, 0.10, 0.25)
CLOSE = 0.10
ROUNDING = 1e-5
LEGEND = (
    "Measured values are means or medians over runs ± half the width of their 95 % interval; × "
    "marks the ratio of two. Above, below and differs from require a significant difference (5 %; "
    "t test, of medians sign test)."
)


def number(value: float | None) -> str:
    """Write a measured value.

    Examples
    --------
    >>> number(0.123456), number(1234.56), number(None)
    ('0.1235', '1235', '–')
    """
    if value is None:
        return "–"
    text = f"{value:.{DIGITS}g}"
    return f"{value:.0f}" if "e+" in text else text


def subject(line: Mapping[str, Any]) -> str:
    """Write what a condition is about: scenario, arm, group and metric."""
    group = f" {line['group']}" if line["group"] else ""
    return f"{line['scenario']}, {line['arm']}{group}: {line['metric']}"


def short_subjects(lines: Sequence[Mapping[str, Any]]) -> list[str]:
    """Write in which scenario, arm, group and metric the conditions of a claim differ.

    Examples
    --------
    >>> line = {"scenario": "a", "arm": "pie", "group": None, "metric": "jain"}
    >>> short_subjects([line, line | {"arm": "codel"}]), short_subjects([line])
    (['pie', 'codel'], [''])
    """
    parts = ("scenario", "arm", "group", "metric")
    differing = [part for part in parts if len({line[part] for line in lines}) > 1]
    return [" ".join(str(line[part]) for part in differing if line[part]) for line in lines]


def reference(line: Mapping[str, Any]) -> str:
    """Write the parts of a reference in which it differs from the subject."""
    place, _, metric = line["reference"].rpartition(":")
    place, _, group = place.partition("@")
    scenario, _, arm = place.rpartition("/")
    parts = [
        scenario if scenario != line["scenario"] else "",
        arm if arm != line["arm"] else "",
        group if group != (line["group"] or "") else "",
        metric if metric != line["metric"] else "",
    ]
    return " ".join(part for part in parts if part) or "itself"


def stated(line: Mapping[str, Any]) -> str:
    """Write the condition of a line.

    Examples
    --------
    >>> stated({"relation": "equals", "reference": None, "value": 54.0, "tolerance": 0.5})
    '54 ± 0.5'
    """
    relation = line["relation"]
    if relation in INTERVALS:
        return f"{_BESIDE[relation]} {reference(line)}"
    value = number(line["value"])
    bound = (
        f"{value} ± {number(line['tolerance'])}"
        if relation == "equals"
        else f"{_COMPARED[relation]} {value}"
    )
    return f"{bound} × {reference(line)}" if line["reference"] else bound


def found(line: Mapping[str, Any]) -> str:
    """Write what was measured for a condition.

    Examples
    --------
    >>> line = {"relation": "at_most", "reference": "s/pie:loss", "compared": 0.5, "mean": 0.25,
    ...         "low": 0.125, "high": 0.375, "reference_mean": 0.0, "reference_low": 0.0,
    ...         "reference_high": 0.0}
    >>> found(line), found({**line, "compared": None})
    ('0.5 ×', '0.25 ±0.12 and 0 ±0')
    """
    # A ratio to 0 has no number.
    if line["relation"] in INTERVALS or (line["reference"] and line["compared"] is None):
        return f"{_interval(line, '')} and {_interval(line, 'reference_')}"
    if line["reference"]:
        return f"{number(line['compared'])} ×"
    return _interval(line, "")


def measured(line: Mapping[str, Any]) -> str:
    """Write what was measured for a condition, and what would decide it.

    Examples
    --------
    >>> line = {"relation": "equals", "reference": None, "value": 3.0, "mean": 3.0, "low": 2.0,
    ...         "high": 4.0, "n": 3, "verdict": "undecided", "runs_to_decide": 40}
    >>> measured(line), measured({**line, "n": 1, "low": None, "runs_to_decide": None})
    ('3 ±1 (undecided: about 40 runs would decide)', '3 (undecided: one run has no interval)')
    """
    if line["verdict"] != UNDECIDED:
        return found(line)
    runs = line.get("runs_to_decide")
    reason = f": about {runs} runs would decide" if runs else ""
    return f"{found(line)} (undecided{': one run has no interval' if line['n'] == 1 else reason})"


def _interval(line: Mapping[str, Any], side: str) -> str:
    mean, low, high = (line[f"{side}{name}"] for name in ("mean", "low", "high"))
    if low is None or high is None or mean is None:
        return number(mean)
    return f"{number(mean)} ±{_half((high - low) / 2, number(mean))}"


def _half(half: float, mean: str) -> str:
    """Write half the width of an interval; zeros if it is less than the last digit of the mean.

    Examples
    --------
    >>> _half(0.0123, "1.234"), _half(0.00002, "52.97"), _half(123.4, "1500"), _half(0.0, "0")
    ('0.012', '0.00', '123', '0')
    """
    decimals = len(mean.partition(".")[2])
    if half < 0.5 * 10.0**-decimals:
        return f"{0.0:.{decimals}f}"
    return f"{half:.0f}" if half >= 10 else f"{half:.2g}"  # noqa: PLR2004 - two digits


def counted(totals: Mapping[str, int]) -> str:
    """Write totals as a sentence part.

    Examples
    --------
    >>> counted({"reproduced": 3, "reproduced in direction": 1, "not reproduced": 1,
    ...          "not checkable": 2, "definitional": 0, "not run": 0})
    '3 of 5 claims reproduced, 1 in direction, 1 not reproduced; 2 not checkable'
    """
    judged, undecided = _judged(totals), totals.get(UNDECIDED, 0)
    text = (
        f"{totals[REPRODUCED]} of {judged} claims reproduced, {totals[IN_DIRECTION]} in direction, "
        + (f"{undecided} undecided, " if undecided else "")
        + f"{totals[NOT_REPRODUCED]} not reproduced"
    )
    others = [
        f"{totals[verdict]} {verdict}"
        for verdict in VERDICTS
        if verdict not in JUDGED and totals.get(verdict)
    ]
    return f"{text}; {', '.join(others)}" if others else text


def answer(record: Mapping[str, Any]) -> str:
    """Say in a sentence how close the numbers are, and how often the order of queues is kept.

    Examples
    --------
    >>> line = {"relation": "equals", "weaker": False, "value": 2.0, "compared": 2.1}
    >>> answer({"claims": [{"lines": [line | {"reference": "x"}]}], "totals": {}})
    '1 of 1 stated or implied values are met within 10 %.'
    """
    found = closeness(record["claims"])
    clauses = []
    if found["numbers"]:
        clauses.append(
            f"{found['close']} of {found['numbers']} stated or implied values are met within "
            f"{CLOSE:.0%}".replace("%", " %")
        )
    if found["pairs"]:
        clauses.append(
            f"the published order is kept in {found['kept']} of {found['pairs']} pairs of queues"
        )
    text = "; ".join(clauses) or counted(record["totals"])
    return f"{text[0].upper()}{text[1:]}."


def closeness(claims: Iterable[Mapping[str, Any]]) -> Counter[str]:
    """Count published numbers, those met within 10 %, pairs of queues, and those in their order.

    Pairs are those of a condition that states an order, and arms with published values of the same
    metric that differ by more than the tolerances.
    """
    lines = [line for line in _counted(claims) if not line["weaker"]]
    off = _distances(lines)
    orders = [
        (line["mean"] > line["reference_mean"])
        if line["relation"] == "above"
        else (line["mean"] < line["reference_mean"])
        for line in lines
        if line["relation"] in {"above", "below"}
        and None not in (line["mean"], line["reference_mean"])
    ]
    families: dict[tuple[str, ...], dict[str, Mapping[str, Any]]] = {}
    for line in lines:
        if line["relation"] == "equals" and not line["reference"] and line["mean"] is not None:
            key = line["scenario"], line["group"] or "", line["metric"]
            families.setdefault(key, {})[line["arm"]] = line
    for family in families.values():
        for one, other in combinations(family.values(), 2):
            if abs(one["value"] - other["value"]) > one["tolerance"] + other["tolerance"]:
                orders.append((one["value"] > other["value"]) == (one["mean"] > other["mean"]))
    close = sum(share <= CLOSE + ROUNDING for share in off)
    return Counter(numbers=len(off), close=close, pairs=len(orders), kept=sum(orders))


def _counted(claims: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Yield the conditions of the claims that did not serve for calibration."""
    for claim in claims:
        if claim.get("verdict") != CALIBRATION:
            yield from claim["lines"]


def _distances(lines: Iterable[Mapping[str, Any]]) -> list[float]:
    """Compute how far measured numbers are from published ones, as shares."""
    return [
        abs(line["compared"] / line["value"] - 1)
        for line in lines
        if line["relation"] == "equals"
        and not line["weaker"]
        and line["value"]
        and line["compared"] is not None
    ]


def counts(record: Mapping[str, Any]) -> str:
    """Write the totals by condition, and those with the claims used for calibration.

    Examples
    --------
    >>> totals = {REPRODUCED: 3, IN_DIRECTION: 2, UNDECIDED: 1, NOT_REPRODUCED: 4}
    >>> counts({"counts": {"conditions": totals}})
    'Of 10 conditions, 3 hold, 2 hold in their weaker form, 1 is undecided.'
    >>> both = {"claims_with_calibration": totals, "conditions_with_calibration": totals}
    >>> counts({"counts": {"conditions": totals, **both}}).partition(". ")[2]
    'With the claims used for calibration, 5 of 10 claims and 5 of 10 conditions hold at least so.'
    >>> counts({})
    ''
    """
    found = record.get("counts", {})
    one = found.get("conditions")
    if not one:
        return ""
    undecided = one[UNDECIDED]
    verb = "is" if undecided == 1 else "are"
    text = (
        f"Of {_judged(one)} conditions, {one[REPRODUCED]} hold, {one[IN_DIRECTION]} hold in their "
        f"weaker form, {undecided} {verb} undecided."
    )
    if "claims_with_calibration" not in found:
        return text
    both = " and ".join(
        f"{totals[REPRODUCED] + totals[IN_DIRECTION]} of {_judged(totals)} {what}"
        for what in ("claims", "conditions")
        for totals in [found[f"{what}_with_calibration"]]
    )
    return f"{text} With the claims used for calibration, {both} hold at least so."


def _judged(totals: Mapping[str, int]) -> int:
    return sum(totals.get(verdict, 0) for verdict in JUDGED)


def distances(claims: Iterable[Mapping[str, Any]]) -> str:
    """Say how far measured numbers are from published ones, whatever their tolerances.

    Examples
    --------
    >>> line = {"relation": "equals", "weaker": False, "value": 2.0, "compared": 2.1}
    >>> distances([{"lines": [line, {**line, "compared": 3.0}]}])
    'Of 2 stated or implied values, 1 is met within 5 %, 1 within 10 %, 1 within 25 %.'
    >>> distances([{"lines": [{**line, "relation": "above"}]}])
    ''
    """
    off = _distances(_counted(claims))
    if not off:
        return ""
    met = [sum(one <= share + ROUNDING for one in off) for share in SHARES]
    first, *others = (f"{100 * share:.0f} %" for share in SHARES)
    verb = "is" if met[0] == 1 else "are"
    rest = "".join(
        f", {number} within {share}" for number, share in zip(met[1:], others, strict=True)
    )
    return f"Of {len(off)} stated or implied values, {met[0]} {verb} met within {first}{rest}."


def runs(replications: Iterable[int]) -> str:
    """Write how many runs each arm of the scenarios of a study has.

    Examples
    --------
    >>> runs([1, 1]), runs([3, 14, 3])
    ('1 run', '3 to 14 runs')
    """
    numbers = sorted(set(replications))
    if len(numbers) > 1:
        return f"{numbers[0]} to {numbers[-1]} runs"
    return counted_runs(numbers[0], "run") if numbers else "no runs"


def scale(record: Mapping[str, Any]) -> str:
    """Write the scale of recorded verdicts, with the number of runs."""
    return f"{record['scale']} scale, {runs(record['replications'].values())} per arm"


def of_single_runs(record: Mapping[str, Any]) -> str:
    """Write how conditions on single runs are judged; empty if there are none.

    Examples
    --------
    >>> of_single_runs({"replications": {"rrul": 1}})
    'One run gives no interval: its conditions are undecided.'
    """
    if 1 not in record["replications"].values():
        return ""
    return "One run gives no interval: its conditions are undecided."


def problem(one: Mapping[str, Any]) -> str:
    """Write a validity error.

    Examples
    --------
    >>> problem({"scenario": "rrul", "arm": "pie", "text": "no link was a bottleneck."})
    'rrul, pie: no link was a bottleneck.'
    """
    place = ", ".join(part for part in (one["scenario"], one["arm"]) if part)
    return f"{place}: {one['text']}"


def unmet(claim: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """List the conditions that decide the verdict on a claim.

    Of a claim that is not reproduced, these are the conditions that fail in their weaker form too.

    Examples
    --------
    >>> lines = [{"weaker": False, "verdict": one} for one in (IN_DIRECTION, NOT_REPRODUCED)]
    >>> [line["verdict"] for line in unmet({"verdict": NOT_REPRODUCED, "lines": lines})]
    ['not reproduced']
    """
    found = failing(claim)
    if claim["verdict"] != NOT_REPRODUCED or any(line["weaker"] for line in claim["lines"]):
        return found
    return [line for line in found if line["verdict"] == NOT_REPRODUCED]


def failing(claim: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """List the conditions of a claim that do not hold fully."""
    return [line for line in claim["lines"] if not line["weaker"] and line["verdict"] != REPRODUCED]
