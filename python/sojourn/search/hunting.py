"""Find the scenario in which an arm loses most against another."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from sojourn import _core
from sojourn.document import needs
from sojourn.queues import Queue, qdisc
from sojourn.scenario import Arm, Link, Scenario
from sojourn.search.adversary_result import AdversaryResult
from sojourn.search.dimensions import check_paths, dimensions, listed, measured_links
from sojourn.search.laboratory import Laboratory, executed, fresh_seed
from sojourn.search.minimising import MAX_STEPS, Candidate, minimised
from sojourn.search.objectives import objective
from sojourn.search.optimising import Costs
from sojourn.search.planned import TrialSearch, check_numbers, conditions
from sojourn.search.regret import SCORE, Contest, Regret, contest
from sojourn.search.trying import tried
from sojourn.search.worst_case import Counterexample
from sojourn.sweeps.parameters import Parameter
from sojourn.sweeps.parameters import parameters as read_parameters
from sojourn.traffic import Ping, Tcp, Udp

TRIALS = 128
# Runs per trial and arm, per step of the simplification, and for the printed regret.
REPLICATIONS = 2
STEP_RUNS = 4
INTERVALS = 10
# Share of the regret that a simpler scenario must keep.
KEEP = 0.9
#: The parameters of the built-in scenario: path and traffic.
SPACE = {
    "links.down.rate": "loguniform(1mbit,100mbit)",
    "rtt": "loguniform(5ms,300ms)",
    "links.down.loss": "loguniform(0.001%,2%)",
    "links.down.jitter": "loguniform(10us,10ms)",
    "traffic.bulk.count": "integers(1,32)",
    "traffic.bulk.cc": ["cubic", "reno", "bbr", "bbr3", "vegas"],
    "traffic.other.count": "integers(1,8)",
    "traffic.other.cc": ["cubic", "reno", "bbr", "bbr3", "ledbat"],
    "traffic.udp.rate": "loguniform(10kbit,20mbit)",
}


def built_in(arm: str | Queue, against: str | Queue) -> Scenario:
    """Return the built-in scenario: a download link, two groups of TCP, UDP and pings."""
    pairs = (("--arm", arm), ("--against", against))
    arms = {_queue_name(option, one): one for option, one in pairs}
    return Scenario(
        name="worst case",
        links={
            "up": Link(rate="100mbit", qdisc="pfifo"),
            "down": Link(rate="20mbit", qdisc="pfifo"),
        },
        traffic=[
            Tcp(name="bulk", direction="down", count=1, start_jitter="100ms"),
            Tcp(name="other", direction="down", count=1, start_jitter="100ms"),
            Udp(name="udp", direction="down", rate="100kbit", start_jitter="100ms"),
            Ping(name="ping", direction="up", interval="50ms", start_jitter="50ms"),
        ],
        arms=[Arm(name=name, set={"links.down.qdisc": queue}) for name, queue in arms.items()],
        rtt="50ms",
        duration="20s",
        warmup="5s",
    )


_NOT_MEASURED = (
    "adversary: fewer than two pairs of runs with new seeds measured the score; expected more "
    "--intervals, or a score that more runs measure"
)


class NeverLosesError(_core.ScenarioError):
    """The arm loses in no scenario of a search."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hunt(TrialSearch):
    """A checked search for a worst case: the scenario has both arms."""

    contest: Contest
    keep: float

    @property
    def runs(self) -> int:
        """The most runs that the search needs."""
        of_steps = (MAX_STEPS + 1) * STEP_RUNS
        # The original trial and some steps are checked, then two scenarios are measured.
        of_intervals = (1 + len(_undone(MAX_STEPS)) + 2) * self.intervals
        return 2 * (self.trials * self.replications + of_steps + of_intervals)

    def tries(self, candidate: Candidate) -> bool:
        """Whether a simpler scenario meets the conditions."""
        if not self.where:
            return True
        try:
            return self.allows(candidate.kept, candidate.scenario(self.scenario))
        except _core.ScenarioError:
            # A condition names removed traffic, or a value that the scenario does not have.
            return False

    def own(self) -> dict[str, Any]:
        """Describe what only this kind of search has."""
        return {
            **TrialSearch.own(self),
            "arm": self.contest.arm,
            "against": self.contest.against,
            "score": self.contest.score.text,
            "keep": self.keep,
        }


def hunt(
    scenario: Scenario | None,
    parameters: Sequence[Parameter],
    *,
    arm: str | Queue,
    against: str | Queue,
    score: str = SCORE,
    where: Sequence[str] = (),
    trials: int = TRIALS,
    replications: int = REPLICATIONS,
    intervals: int = INTERVALS,
    keep: float = KEEP,
    seed: int | None = None,
) -> Hunt:
    """Check a search for a worst case; the parameters are those of :func:`adversary`."""
    check_numbers(trials=trials, replications=replications, intervals=intervals)
    if not 0.0 < keep <= 1.0:
        message = f"--keep {keep}: expected a share above 0 and up to 1, such as {KEEP}"
        raise _core.ScenarioError(message)
    objective(score, "--score")
    base = built_in(arm, against) if scenario is None else scenario
    pairs = (("--arm", arm), ("--against", against))
    names = [_queue_name(option, one) if scenario is None else f"{one}" for option, one in pairs]
    of = contest(base, names[0], names[1], score)
    given = parameters
    if scenario is None and not parameters:
        given = read_parameters(SPACE)
    chosen = base.replace(arms=[one for one in base.arms if one.name in names])
    found = dimensions(given, "adversary")
    check_paths(chosen, found)
    objective(score, "--score", measured_links(chosen, found))
    return Hunt(
        scenario=chosen if seed is None else chosen.replace(seed=seed),
        dimensions=tuple(found),
        contest=of,
        trials=trials,
        replications=replications,
        intervals=intervals,
        keep=keep,
        where=conditions(where, chosen, given, found),
    )


def execute(planned: Hunt, laboratory: Laboratory, *, command: str = "") -> AdversaryResult:
    """Search for a worst case and simplify it."""
    tries = tried(
        planned,
        laboratory,
        lambda runs: _costs(runs, planned.contest),
        objectives=1,
        command="adversary",
        measures="the score was not measured",
    )
    (point,) = listed(planned.scenario, [tries.best[0].values])
    worst = _minimised(planned, Candidate(dict(point.changes)), laboratory)
    trials = pl.DataFrame(
        [
            {
                "trial": one.number,
                **{path: f"{one.values[path]}" for path in planned.paths},
                "state": one.state,
                "regret": None if one.costs is None else -one.costs[0],
            }
            for one in tries.trials
        ],
        schema_overrides={"regret": pl.Float64},
        infer_schema_length=None,
    )
    found, final = worst
    case = Counterexample(
        scenario=final[0],
        arm=planned.contest.arm,
        against=planned.contest.against,
        score=planned.contest.score.text,
        regret=final[1][0],
        regret_low=final[1][1],
        regret_high=final[1][2],
        found=found[0],
        found_low=found[1],
        found_high=found[2],
        trials=planned.trials,
        search_seed=planned.seed,
        version=_core.version(),
        command=command,
    )
    return AdversaryResult({**planned.document(), "invalid": tries.faults}, trials, case)


def _costs(runs: pl.DataFrame, of: Contest) -> Costs:
    mean = of.regret(runs).mean
    return None if mean is None else (-mean,)


Ends = tuple[float, float, float]


def _undone(steps: int) -> list[int]:
    """List how many of some steps are undone in each check: none, then twice as many each time.

    Examples
    --------
    >>> _undone(9)
    [0, 1, 3, 7]
    """
    return [2**number - 1 for number in range(steps.bit_length())]


def _minimised(
    planned: Hunt, found: Candidate, laboratory: Laboratory
) -> tuple[Ends, tuple[Scenario, Ends]]:
    """Simplify a candidate; return the regrets, with new seeds, of it and of the result."""
    base = planned.scenario
    seed = fresh_seed(planned.seed, "minimiser")

    def regret(scenario: Scenario, replications: int, seed: int) -> Regret:
        (runs,) = laboratory.measure(scenario, [{}], replications=replications, seed=seed)
        return planned.contest.regret(runs)

    whole = regret(found.scenario(base), STEP_RUNS, seed).mean
    if whole is None or whole <= 0.0:
        message = (
            f"adversary: {planned.contest.arm} loses in no scenario of the search; expected other "
            "or wider ranges, or more --trials"
        )
        raise NeverLosesError(message)
    threshold = planned.keep * whole

    def keeps(scenario: Scenario) -> bool:
        try:
            mean = regret(scenario, STEP_RUNS, seed).mean
        except _core.ScenarioError:
            # The score needs a metric of the removed traffic.
            return False
        return mean is not None and mean >= threshold

    accepted = minimised(base, found, planned.dimensions, keeps, planned.tries)
    # Few runs judged each step, so some steps may have passed by chance.
    seed = fresh_seed(planned.seed, "check")
    whole = regret(found.scenario(base), planned.intervals, seed).mean
    if whole is None:
        raise _core.ScenarioError(_NOT_MEASURED)
    simplest = found
    for candidate in (accepted[-1 - undone] for undone in _undone(len(accepted) - 1)):
        mean = regret(candidate.scenario(base), planned.intervals, seed).mean
        if mean is not None and mean >= planned.keep * whole:
            simplest = candidate
            break
    laboratory.planned = laboratory.finished + 4 * planned.intervals
    seed = fresh_seed(planned.seed, "intervals")
    ends = []
    for one in (found, simplest):
        final = regret(one.scenario(base), planned.intervals, seed)
        if final.mean is None or final.low is None or final.high is None:
            # An interval needs at least two pairs of runs.
            raise _core.ScenarioError(_NOT_MEASURED)
        ends.append((final.mean, final.low, final.high))
    scenario = simplest.scenario(base).replace(seed=seed, replications=planned.intervals)
    return ends[0], (scenario, ends[1])


def _queue_name(option: str, queue: str | Queue) -> str:
    """Check a queue; errors name its option."""
    try:
        spec = qdisc(queue).spec if isinstance(queue, str) else queue.spec
    except _core.ScenarioError as error:
        message = f"{option} {queue}: {error}"
        raise _core.ScenarioError(message) from None
    return queue if isinstance(queue, str) else spec


def adversary(
    scenario: Scenario | None = None,
    parameters: Mapping[Any, Any] | None = None,
    *,
    arm: str | Queue,
    against: str | Queue,
    score: str = SCORE,
    where: str | Sequence[str] = (),
    trials: int = TRIALS,
    replications: int = REPLICATIONS,
    intervals: int = INTERVALS,
    keep: float = KEEP,
    seed: int | None = None,
    jobs: int | None = None,
    progress: Callable[[int, int], object] | None = None,
    backend: str | None = None,
    store: str | Path | None = None,
    on: str | None = None,
    shared: str | Path | None = None,
    max_memory: str | None = None,
) -> AdversaryResult:
    """Search for the scenario in which an arm loses most against another, and simplify it.

    Optuna proposes values of the parameters. The worst trial is then simplified step by step as
    long as the regret remains: groups of traffic are removed, parameters are reset to their values
    in the scenario, numbers of flows are reduced, numbers are rounded, and runs are shortened. The
    returned regret is that of the simplified scenario, with seeds that neither the search nor the
    simplification has used.

    Parameters
    ----------
    scenario
        The scenario; by default a built-in one with a download link.
    parameters
        Values or ranges by their path, as for :func:`tune`; for the built-in scenario, by default
        rate, RTT, loss, jitter, flows, congestion controls and UDP rate.
    arm, against
        Names of arms of the scenario; with the built-in scenario, queues.
    score
        ``"min"`` or ``"max"`` and a metric or an expression. The regret is the mean difference of
        the arms in runs with the same seed; it is positive if `arm` is worse. By default, the
        negative logarithm of the power, goodput divided by the 99th percentile of the ping time: a
        regret of log 2 = 0.69 means half the power. In scores, a rate is at least 0.001 Mbit/s
        and a time at most 60 s. In a run in which only one arm has a score, the other arm failed:
        its rates count as 0.001 Mbit/s, its times as 60 s, and if the score is still not finite,
        the difference counts as 1000000. Runs in which neither arm has a score do not count.
    where
        Conditions that the scenario must meet, as for :func:`tune`, also when it is simplified.
    trials
        Number of trials.
    replications
        Runs per trial and arm.
    intervals
        Runs per arm for the returned regret.
    keep
        Share of the regret that the simplified scenario must keep.
    seed
        Replaces the seed of the scenario. The same seed gives the same result.
    jobs, progress, backend, on, shared, max_memory
        As for :func:`sweep`.
    store
        Directory in which each run is stored when it finishes.

    Returns
    -------
    AdversaryResult
        The scenario and its regret.

    Raises
    ------
    UnavailableError
        Optuna or another package is not installed, or the cluster is not available.
    ScenarioError
        A parameter, an arm, the score or a place is not valid, or `arm` loses in no trial.
    ResultError
        A store cannot be read or written.
    SweepInterrupted
        Ctrl-C ended the runs.
    """
    if scenario is not None:
        needs("adversary", scenario, Scenario, "a Scenario")
    if not isinstance(parameters, Mapping | None):
        # The keys of parameters that change together are tuples.
        needs("parameters", parameters, Mapping, "a mapping from paths to values")
    planned = hunt(
        scenario,
        read_parameters(parameters or {}),
        arm=arm,
        against=against,
        score=score,
        where=[where] if isinstance(where, str) else list(where),
        trials=trials,
        replications=replications,
        intervals=intervals,
        keep=keep,
        seed=seed,
    )
    return executed(
        planned,
        execute,
        jobs=jobs,
        progress=progress,
        backend=backend,
        store=store,
        on=on,
        shared=shared,
        max_memory=max_memory,
    )
