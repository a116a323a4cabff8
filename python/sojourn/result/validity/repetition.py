"""Findings on the number and the length of the runs: single, equal or short runs."""

from collections.abc import Iterator
from operator import itemgetter

from sojourn.result.rows import Records, digest, grouped
from sojourn.result.validity.evidence import Evidence
from sojourn.result.validity.finding import Finding, note, warning

# In a shorter measurement, the start of the flows dominates the means.
SHORT_S = 10.0
# The share of experiments whose 95 % bootstrap interval contains the true mean, by the number of
# runs: measured in 4,000 simulated experiments per number, with normally distributed data.
COVERAGE_PERCENT = {3: 75, 5: 84, 8: 89, 10: 90, 20: 92, 30: 93}
# With fewer runs, bootstrap intervals are clearly too narrow.
FEW_RUNS = 8
ENOUGH_RUNS = 10


def _replications(evidence: Evidence) -> Iterator[Finding]:
    """Find whether there are too few runs for intervals."""
    runs = evidence.replications
    if runs == 1:
        yield warning(f"n = 1: differences may be due to chance. Use replications={ENOUGH_RUNS}.")
    elif runs < FEW_RUNS:
        known = 5 if runs >= 5 else 3  # noqa: PLR2004 - a key
        yield note(
            f"n = {runs}: intervals are too narrow ({COVERAGE_PERCENT[known]} % instead of 95 % at "
            f"n = {known}). Use replications={ENOUGH_RUNS}."
        )


def _no_variance(evidence: Evidence) -> Iterator[Finding]:
    """Find arms whose replications have equal results: more of them say no more than one."""
    arms = [arm for arm in evidence.arms if _is_repeated(evidence, arm)]
    if arms:
        yield warning(
            f"{', '.join(arms)}: all {evidence.replications} replications have identical results "
            "and count as n = 1. Vary the traffic, for example with start_jitter."
        )


def _is_repeated(evidence: Evidence, arm: str) -> bool:
    """Whether the load of an arm, or its pings and links without a load, is equal in all runs."""
    every = (evidence.load, evidence.flows, evidence.links)
    load, *others = ([row for row in table if row["arm"] == arm] for table in every)
    return all(_runs_are_equal(table) for table in ([load] if load else others))


def _runs_are_equal(table: Records) -> bool:
    """Whether there are several runs, and all of them are equal."""
    differing = {"replication", "started_s", "connected_s"}
    runs = grouped(table, itemgetter("replication")).values()
    # Of different runs, the first two are enough.
    digests = (digest(run, differing) for run in runs)
    first = next(digests, None)
    return len(runs) > 1 and all(other == first for other in digests)


def _short(evidence: Evidence) -> Iterator[Finding]:
    """Find whether the measured time is too short."""
    if evidence.measured_s < SHORT_S:
        yield warning(
            f"only {evidence.measured_s:g} s of each run is measured: the start of the flows "
            "dominates. Use a longer run."
        )


CHECKS = (_replications, _no_variance, _short)
