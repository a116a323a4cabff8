"""``verdicts.json``: the verdicts of a study and the measured values behind them.

The README and the page of a study are written from this record and from ``study.toml``.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sojourn.studies.claims import Claim, Subject
from sojourn.studies.study import Scale, Study, Varied
from sojourn.studies.verdicts import (
    NOTHING,
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
        "claims": [_claim(one) for one in verdicts],
        "presets": _presets(study, measured),
        "assumptions": _assumptions(study, measured, varied),
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
    line = one.line
    subject, other = line.subject, one.reference or NOTHING
    return {
        "scenario": subject and subject.scenario,
        "arm": subject and subject.arm,
        "group": subject and subject.group,
        "metric": subject and subject.metric,
        "relation": line.relation,
        "weaker": line.weaker,
        "reference": line.reference and str(line.reference),
        "value": line.value,
        "tolerance": rounded(line.tolerance),
        "n": one.estimate.n,
        "mean": rounded(one.estimate.mean),
        "low": rounded(one.estimate.low),
        "high": rounded(one.estimate.high),
        "reference_mean": rounded(other.mean),
        "reference_low": rounded(other.low),
        "reference_high": rounded(other.high),
        "compared": rounded(one.compared),
        "verdict": one.verdict,
    }


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
            if any(subject.arm in preset.arms for subject in claim.subjects)
        }
        every = judged(substituted(study.claims, preset.arms), measured)
        verdicts = [one for one in every if one.claim.name in named]
        found.append(
            {
                "label": preset.label,
                "arms": dict(preset.arms),
                "totals": totals(one.verdict for one in verdicts),
                "verdicts": {one.claim.name: one.verdict for one in verdicts},
            }
        )
    return found


def _assumptions(
    study: Study, measured: Measured, varied: Sequence[Varied]
) -> list[dict[str, Any]]:
    return [
        {
            "name": assumption.name,
            "text": assumption.text,
            "claims": list(assumption.claims),
            "variants": [
                {
                    "label": variant.label,
                    "set": dict(variant.set),
                    "plausible": variant.plausible,
                    "claims": _varied(
                        study,
                        measured,
                        assumption.claims,
                        [
                            one
                            for one in varied
                            if one.variant is variant and one.assumption is assumption
                        ],
                    ),
                }
                for variant in assumption.variant
            ],
        }
        for assumption in study.description.assumption
        if any(one.assumption is assumption for one in varied)
    ]


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


def subjects(study: Study, scenario: str) -> list[Subject]:
    """List what the claims, with the arms of every preset, compare in a scenario."""
    judged_arms = [
        study.claims,
        *(substituted(study.claims, preset.arms) for preset in study.description.preset),
    ]
    found = (
        subject
        for claims in judged_arms
        for claim in claims
        for subject in claim.subjects
        if subject.scenario == scenario
    )
    return list(dict.fromkeys(found))
