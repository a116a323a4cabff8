"""``verdicts.json``: the verdicts of a study and the measured values behind them.

The README and the page of a study are written from this record and from ``study.toml``.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from sojourn import files
from sojourn.errors import invalid_file
from sojourn.studies.claims import Claim, Line, Subject
from sojourn.studies.manifest import Assumption
from sojourn.studies.study import Scale, Study, Varied
from sojourn.studies.verdicts import (
    NOT_RUN,
    NOTHING,
    VERDICTS,
    Estimate,
    Judged,
    Measured,
    Verdict,
    judged,
    substituted,
    totals,
)

FILE = "verdicts.json"
# Significant digits of recorded values.
DIGITS = 6


def record(
    study: Study,
    *,
    scale: Scale,
    replications: Mapping[str, int],
    measured: Measured,
    varied: Sequence[Varied],
    builds: Sequence[str] = (),
) -> dict[str, Any]:
    """Judge the claims of a study and record the verdicts."""
    verdicts = judged(study.claims, measured)
    return {
        "study": study.name,
        "title": study.description.title,
        "reconstruction": study.description.reconstruction,
        "scale": scale,
        "builds": list(builds),
        "replications": dict(replications),
        "scenarios": {name: study.digest(name, scale) for name in replications},
        "totals": totals(one.verdict for one in verdicts),
        "counts": _counts(study, measured),
        "claims": [_claim(one) for one in verdicts],
        "presets": _presets(study, measured),
        "assumptions": _assumptions(study, measured, varied),
        "measured": _measured(study, measured),
    }


def _counts(study: Study, measured: Measured) -> dict[str, dict[str, int]]:
    """Count conditions, and count again as if no claim had served for calibration."""
    claims = study.claims
    found = {"conditions": _conditions(judged(claims, measured))}
    if any(claim.is_calibration for claim in claims):
        every = judged([replace(claim, is_calibration=False) for claim in claims], measured)
        found["claims_with_calibration"] = totals(one.verdict for one in every)
        found["conditions_with_calibration"] = _conditions(every)
    return found


def _conditions(verdicts: Iterable[Verdict]) -> dict[str, int]:
    """Count the verdicts on the conditions of claims that count, without weaker forms."""
    return totals(
        line.verdict
        for one in verdicts
        if not one.claim.is_calibration
        for line in one.lines
        if not line.line.weaker
    )


def _measured(study: Study, measured: Measured) -> dict[str, Any]:
    """Record the estimates that verdicts rest on, with the values of the runs."""
    return {
        str(subject): {
            "n": one.n,
            **_values(one),
            "values": [rounded(value) for value in one.values],
        }
        for subject in subjects(study)
        if (one := measured.get(subject, NOTHING)).n
    }


def _claim(verdict: Verdict) -> dict[str, Any]:
    claim = verdict.claim
    return {
        "id": claim.name,
        **texts(claim),
        "verdict": verdict.verdict,
        "lines": [_line(one) for one in verdict.lines],
    }


def texts(claim: Claim) -> dict[str, str]:
    """Return what a record says about a claim, apart from verdict and values."""
    return {
        "source": claim.source,
        "evidence": claim.evidence,
        "statement": claim.statement,
        "reason": "; ".join(dict.fromkeys(line.reason for line in claim.lines if line.reason)),
    }


def _line(one: Judged) -> dict[str, Any]:
    return {
        **_condition(one.line),
        "n": one.estimate.n,
        **_values(one.estimate),
        **_values(one.reference or NOTHING, "reference_"),
        "compared": rounded(one.compared),
        "verdict": one.verdict,
        "runs_to_decide": one.runs,
    }


def _condition(line: Line) -> dict[str, Any]:
    """Return what a record says about a condition, apart from verdict and values."""
    about = dict.fromkeys(("scenario", "arm", "group", "metric"))
    return {
        **(about if line.subject is None else asdict(line.subject)),
        "relation": line.relation,
        "weaker": line.weaker,
        "reference": line.reference and str(line.reference),
        "value": line.value,
        "tolerance": rounded(line.tolerance),
        "published_runs": line.runs,
    }


def _values(estimate: Estimate, side: str = "") -> dict[str, float | None]:
    return {f"{side}{end}": rounded(getattr(estimate, end)) for end in ("mean", "low", "high")}


def rounded(value: float | None) -> float | None:
    """Round to the digits that are recorded.

    Examples
    --------
    >>> rounded(0.123456789), rounded(None)
    (0.123457, None)
    """
    return None if value is None else float(f"{value:.{DIGITS}g}")


def _presets(study: Study, measured: Measured) -> list[dict[str, Any]]:
    found = []
    for preset in study.description.preset:
        named = {
            claim.name
            for claim in study.claims
            if any(
                subject.arm in preset.arms or subject.scenario in preset.scenarios
                for subject in claim.subjects
            )
        }
        every = judged(substituted(study.claims, preset.arms, preset.scenarios), measured)
        verdicts = [one for one in every if one.claim.name in named]
        found.append(
            {
                "label": preset.label,
                "arms": dict(preset.arms),
                "scenarios": dict(preset.scenarios),
                "totals": totals(one.verdict for one in verdicts),
                "verdicts": {one.claim.name: one.verdict for one in verdicts},
            }
        )
    return found


def _assumptions(
    study: Study, measured: Measured, varied: Sequence[Varied]
) -> list[dict[str, Any]]:
    found = []
    for assumption in study.description.assumption:
        runs = [one for one in varied if one.assumption is assumption]
        if not runs:
            continue
        variants = []
        for variant in assumption.variant:
            of_variant = [one for one in runs if one.variant is variant]
            claims = _varied(study, measured, assumption.claims, of_variant)
            about = {"label": variant.label, "set": dict(variant.set)}
            variants.append({**about, "plausible": variant.plausible, "claims": claims})
        about = {"name": assumption.name, "text": assumption.text}
        found.append({**about, "claims": list(assumption.claims), "variants": variants})
    return found


def _varied(
    study: Study, measured: Measured, names: Iterable[str], varied: Sequence[Varied]
) -> dict[str, Any]:
    """Judge claims with the estimates of varied scenarios in place of the others.

    Arms that were not run again keep their estimates only if the change does not concern them.
    """
    view = dict(measured)
    for one in varied:
        for subject in measured:
            if subject.scenario == one.base and one.variant.concerns(subject.arm):
                del view[subject]
        for subject, estimate in measured.items():
            if subject.scenario == one.key:
                view[replace(subject, scenario=one.base)] = estimate
    verdicts = judged(study.claims, view)
    return {
        one.claim.name: {
            "verdict": one.verdict,
            "compared": [rounded(line.compared) for line in one.lines if not line.line.weaker],
        }
        for one in verdicts
        if one.claim.name in set(names)
    }


def subjects(study: Study, scenario: str | None = None) -> list[Subject]:
    """List what the claims, with the arms of every preset, compare, or compare in a scenario."""
    found = (
        subject
        for claim in study.judged_claims(study.claims)
        for subject in claim.subjects
        if scenario in (None, subject.scenario)
    )
    return list(dict.fromkeys(found))


FULL, QUICK = "full.json", "quick.json"
# The better one first.
FILES = (FULL, QUICK)
_MAX_BYTES = 1 << 25

Record = Mapping[str, Any]


def load(file: Path, what: str = "verdicts") -> dict[str, Any] | None:
    """Read recorded verdicts, or what else a study records; None if there are none."""
    try:
        found: dict[str, Any] = files.read_json(file, _MAX_BYTES)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise invalid_file(file, f"cannot read {what}: {error}") from None
    return found


def with_texts(study: Study, record: Record) -> dict[str, Any]:
    """Copy the texts of a study into recorded verdicts, which are as old as the runs."""
    about = study.description
    claims = {claim.name: claim for claim in study.claims}
    assumptions = {one.name: one for one in about.assumption}
    return {
        **record,
        "title": about.title,
        "reconstruction": about.reconstruction,
        "totals": _complete(record["totals"]),
        "presets": [{**one, "totals": _complete(one["totals"])} for one in record["presets"]],
        "claims": [
            {**one, **(texts(claims[one["id"]]) if one["id"] in claims else {})}
            for one in record["claims"]
        ],
        "assumptions": [
            _with_texts(one, assumptions[one["name"]]) if one["name"] in assumptions else one
            for one in record["assumptions"]
        ],
    }


def _complete(counts: Mapping[str, int]) -> dict[str, int]:
    """Count every verdict: records may be older than one of them."""
    return {verdict: counts.get(verdict, 0) for verdict in VERDICTS}


def _with_texts(record: Record, assumption: Assumption) -> dict[str, Any]:
    plausible = {variant.label: variant.plausible for variant in assumption.variant}
    variants = [
        {**one, "plausible": plausible.get(one["label"], one["plausible"])}
        for one in record["variants"]
    ]
    return {**record, "text": assumption.text, "variants": variants}


# What a record is compared by, and what may have changed besides.
PARTS, OTHER = ("claims", "scenarios", "presets", "assumptions"), "other"


def disagreements(study: Study, record: Record) -> list[str]:
    """List the claims, scenarios, presets and assumptions that differ from the recorded ones.

    A record of runs that take hours may say by part what is outdated; the others are compared.
    """
    found = [*_changed_claims(study, record), *_changed_runs(study, record)]
    outdated, changed = record.get("outdated", {}), {part for part, _ in found}
    named = (
        f"its outdated {part} have not changed"
        if part in PARTS
        else f"unknown part {part} in outdated; expected {', '.join((*PARTS, OTHER))}"
        for part in outdated
        if part not in {OTHER, *changed}
    )
    return [*(text for part, text in found if part not in outdated), *named]


def _changed_claims(study: Study, record: Record) -> Iterator[tuple[str, str]]:
    """Name the claims that have changed, with their part."""
    judged = {claim["id"]: claim for claim in record["claims"]}
    names = {claim.name for claim in study.claims}
    for name in judged:
        if name not in names:
            yield "claims", f"claim {name} is no longer in claims.csv"
    for claim in study.claims:
        if claim.name not in judged:
            yield "claims", f"claim {claim.name} was not judged"
        elif not _is_same(claim, judged[claim.name]["lines"]):
            yield "claims", f"claim {claim.name} has changed since it was judged"


def _is_same(claim: Claim, lines: Sequence[Record]) -> bool:
    """Whether a claim has the conditions of its record."""
    conditions = [] if claim.uncounted else [_condition(line) for line in claim.lines]
    return len(conditions) == len(lines) and all(
        condition.items() <= line.items() for condition, line in zip(conditions, lines, strict=True)
    )


def _changed_runs(study: Study, record: Record) -> Iterator[tuple[str, str]]:
    """Name the declarations of runs that have changed, with their part."""
    scale = record["scale"]
    needed = study.needed(study.figures([]), study.claims)
    for name in needed:
        if record.get("scenarios", {}).get(name) != study.digest(name, scale):
            yield "scenarios", f"scenario {name} has changed since the runs"
    about = study.description
    if [(one.label, dict(one.arms), dict(one.scenarios)) for one in about.preset] != [
        (one["label"], one["arms"], one.get("scenarios", {})) for one in record["presets"]
    ]:
        yield "presets", "presets have changed since the runs"
    if scale == "full":
        recorded = {one["name"]: one["variants"] for one in record["assumptions"]}
        for assumption in about.assumption:
            stated = [(one.label, dict(one.set)) for one in assumption.variant]
            found = [(one["label"], one.get("set")) for one in recorded.get(assumption.name, [])]
            if stated != found:
                yield "assumptions", f"assumption {assumption.name} has changed since the runs"


def differences(before: Record, after: Record, *, partial: bool = False) -> list[str]:
    """Compare two records of a study; list what differs, one claim per line."""
    known = {claim["id"]: claim for claim in before["claims"]}
    found = []
    for claim in after["claims"]:
        if partial and claim["verdict"] == NOT_RUN:
            continue
        if claim["id"] not in known:
            found.append(f"claim {claim['id']} is new")
        elif claim != known[claim["id"]]:
            found.append(_difference(known[claim["id"]], claim))
    if partial:
        return found
    names = {claim["id"] for claim in after["claims"]}
    found += [f"claim {name} is missing" for name in known if name not in names]
    own = ("claims", "builds")
    others = (key for key in after if key not in own and before.get(key) != after[key])
    return found + [f"{key} differ: {_short(before.get(key), after[key])}" for key in others]


def _difference(before: Record, after: Record) -> str:
    """Write the first difference of a claim."""
    changes = [
        f"{line['scenario']}, {line['arm']}: {key} {old[key]} is now {line[key]}"
        for old, line in zip(before["lines"], after["lines"], strict=False)
        for key in line
        if old.get(key) != line[key]
    ]
    changes += [
        f"{key} {before[key]} is now {after[key]}"
        for key in after
        if key != "lines" and before.get(key) != after[key]
    ]
    more = f", and {len(changes) - 1} other values" if len(changes) > 1 else ""
    return f"claim {after['id']}: {changes[0] if changes else 'its conditions'}{more}"


def _short(before: Any, after: Any) -> str:
    if isinstance(before, dict) and isinstance(after, dict):
        keys = [key for key in {**before, **after} if before.get(key) != after.get(key)]
        return _listed([f"{key} {before.get(key)} is now {after.get(key)}" for key in keys])
    plain = not isinstance(before, list) and not isinstance(after, list)
    return f"{before} is now {after}" if plain else "see the files"


def _listed(items: Sequence[str]) -> str:
    return ", ".join(items[:3]) + (" …" if len(items) > 3 else "")  # noqa: PLR2004
