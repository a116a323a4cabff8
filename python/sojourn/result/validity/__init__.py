"""Validity of a result: checks for the common mistakes in measuring queues.

Each finding states what was measured, with its number. A check is a function that yields findings,
listed in ``CHECKS`` of its module.
"""

from sojourn.result.validity import (
    arms,
    bottlenecks,
    load,
    marks,
    observations,
    repetition,
    rings,
)
from sojourn.result.validity.evidence import Evidence, setups
from sojourn.result.validity.finding import Finding, Severity, Validity
from sojourn.result.validity.percentiles import Sparse, sparse
from sojourn.result.validity.repetition import COVERAGE_PERCENT, FEW_RUNS

__all__ = [
    "COVERAGE_PERCENT",
    "FEW_RUNS",
    "Evidence",
    "Finding",
    "Severity",
    "Sparse",
    "Validity",
    "assess",
    "setups",
    "sparse",
]

# A run that lasted as long as its program (``sojourn live``) is no experiment: its user wants to
# know what the program did behind the link, and need neither repeat it nor fill the link.
OF_EXPERIMENTS = (
    *repetition.CHECKS,
    *bottlenecks.CHECKS,
    *arms.CHECKS,
    *load.CHECKS,
    *marks.CHECKS,
    *rings.CHECKS,
)


def assess(evidence: Evidence) -> Validity:
    """Check a result for limitations."""
    checks = [*(OF_EXPERIMENTS if evidence.is_experiment else ()), *observations.CHECKS]
    findings = [finding for check in checks for finding in check(evidence)]
    order = list(Severity)
    findings.sort(key=lambda finding: order.index(finding.severity))
    return Validity(findings=findings)
