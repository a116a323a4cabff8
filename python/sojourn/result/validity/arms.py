"""Findings on what the arms differ in: nothing that matters, or more than what is compared."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from functools import cache
from itertools import combinations
from operator import itemgetter

from sojourn.result.rows import KEYS, digest, grouped
from sojourn.result.validity.evidence import Evidence, Setup
from sojourn.result.validity.finding import Finding, Severity, note, warning
from sojourn.traffic.applications import Application, Sessions
from sojourn.traffic.block import TrafficBlock
from sojourn.traffic.connections import Quic

# Columns that restate the configuration, so that they differ although nothing else does.
CONFIGURATION = {
    "flows": ("cc", "rtt_ms", "base_rtt_ms", "bytes"),
    "links": ("qdisc", "rate_mbit_per_s", "capacity_mbit_per_s"),
}
# The last part of the paths of what is compared: queues, congestion controls and other options of
# endpoints, which are those of all applications over TCP and those that QUIC has besides. The rest,
# such as load, RTT and rate, is what they are compared under.
COMPARED = {
    "qdisc",
    *{field.name for field in fields(Application)} - {field.name for field in fields(TrafficBlock)},
    *{field.name for field in fields(Quic)} - {field.name for field in fields(Sessions)},
}
# Values that do not affect packets; names of arms and their changes, which are applied.
NEUTRAL = {"name", "replications", "seed", "sample", "keep_events", "sample_state", "arms"}
# More paths are counted, not listed.
MOST_PATHS = 4


def _identical(evidence: Evidence) -> Iterator[Finding]:
    """Find arms with identical results: the settings that differ had no effect."""
    tables = [
        (grouped(table, itemgetter(*KEYS)), {"arm", *CONFIGURATION[columns]})
        for table, columns in ((evidence.flows, "flows"), (evidence.links, "links"))
    ]
    replications: dict[str, set[int]] = {}
    for arm, replication in (run for runs, _ in tables for run in runs):
        replications.setdefault(arm, set()).add(replication)

    @cache
    def measured(arm: str, replication: int) -> tuple[int, ...]:
        return tuple(digest(runs.get((arm, replication), ()), without) for runs, without in tables)

    def equal(one: str, other: str) -> bool:
        # Arms nearly always differ in the first run.
        common = replications[one] & replications[other]
        return bool(common) and all(measured(one, run) == measured(other, run) for run in common)

    seen: list[str] = []
    for arm in dict.fromkeys(flow["arm"] for flow in evidence.flows):
        twin = next((name for name in seen if equal(arm, name)), None)
        if twin is None:
            seen.append(arm)
            continue
        paths = _differing(evidence.arms[twin], evidence.arms[arm])
        settings = f" ({_listed(paths)})" if paths else ""
        yield warning(
            f"{arm} and {twin} have identical results in every run: the settings that differ"
            f"{settings} had no effect."
        )


def _differing(one: Setup, other: Setup) -> list[str]:
    """List the paths of the values in which two arms differ, in order."""
    these, those = dict(one.values()), dict(other.values())
    paths = [*these, *(path for path in those if path not in these)]
    return [
        path for path in paths if these.get(path) != those.get(path) and _last(path) not in NEUTRAL
    ]


def _last(path: str) -> str:
    return path.rpartition(".")[2]


def _listed(paths: Sequence[str]) -> str:
    """Write some paths.

    Examples
    --------
    >>> _listed(["rtt", "a", "b", "c", "d"])
    'rtt, a, b, c and 1 more'
    """
    rest = len(paths) - MOST_PATHS
    return ", ".join(paths[:MOST_PATHS]) + (f" and {rest} more" if rest > 0 else "")


def _confounded(evidence: Evidence) -> Iterator[Finding]:
    """Find arms that differ in load, RTT or rate, alone or besides what is compared.

    Two arms that differ in both may be compared through a third one, which has the environment of
    the one and the queues of the other.
    """
    compared, environment = _parts(evidence, of_environment=False), _parts(evidence)
    if len(set(environment.values())) == 1:
        return
    every = list(combinations(evidence.arms, 2))
    exist = {(environment[arm], compared[arm]) for arm in evidence.arms}
    pairs = [
        (one, other)
        for one, other in every
        if environment[one] != environment[other]
        and compared[one] != compared[other]
        and (environment[one], compared[other]) not in exist
        and (environment[other], compared[one]) not in exist
    ]
    if pairs:
        names = list(dict.fromkeys(name for pair in pairs for name in pair))
        values = _listed(_between(evidence, pairs, environment, with_values=len(pairs) == 1))
        what = _listed(_between(evidence, pairs, compared))
        yield Finding(
            severity=Severity.WARNING,
            text=f"{', '.join(names)}: these arms differ in {values} besides {what}: their "
            f"differences are not those of {what} alone.",
            of_arms=True,
        )
        return
    paths = _listed(_between(evidence, every, environment))
    if len(set(compared.values())) == 1:
        yield note(f"the arms differ in {paths}, not in queues or congestion control.")
    else:
        what = _listed(_between(evidence, every, compared))
        yield note(f"the arms differ in {paths} and {what}: compare arms that differ in one only.")


def _parts(
    evidence: Evidence, *, of_environment: bool = True
) -> dict[str, frozenset[tuple[str, str]]]:
    """Return the values of each arm that belong to the environment, or those that do not."""
    return {
        arm: frozenset(
            (path, value)
            for path, value in setup.values()
            if _last(path) not in NEUTRAL and (_last(path) not in COMPARED) == of_environment
        )
        for arm, setup in evidence.arms.items()
    }


def _between(
    evidence: Evidence,
    pairs: Sequence[tuple[str, str]],
    of: Mapping[str, frozenset[tuple[str, str]]],
    *,
    with_values: bool = False,
) -> list[str]:
    """List the paths in which the arms of some pairs differ."""
    paths: dict[str, None] = {}
    for one, other in pairs:
        differing = {path for path, _ in of[one] ^ of[other]}
        these, those = dict(evidence.arms[one].values()), dict(evidence.arms[other].values())
        for path in (path for path in {**these, **those} if path in differing):
            values = f" ({these.get(path, 'none')} and {those.get(path, 'none')})"
            paths[path + values * with_values] = None
    return list(paths)


CHECKS = (_identical, _confounded)
