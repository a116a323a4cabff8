"""Find the scenario in which an arm loses most against another."""

import tomllib
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

import polars as pl

from sojourn import _core, files
from sojourn.arguments import Argument, ArgumentError, in_argument, takes
from sojourn.arguments.common import POINTS, RUNS, Where
from sojourn.execute.executor import ExecutionPlan
from sojourn.queues import qdisc
from sojourn.queues.base import AnyQueue
from sojourn.queues.queue_file import named, toml_string, toml_with_files
from sojourn.scenario import Arm, Link, Scenario
from sojourn.scenario.files import with_queue_files
from sojourn.search.dimensions import check_paths, dimensions, listed, measured_links
from sojourn.search.minimising import MAX_STEPS, Candidate, minimised
from sojourn.search.objectives import SCORE, Contest, Regret, contest, objective
from sojourn.search.plan import (
    MAX_RUNS,
    SEARCH_PARAMETERS,
    TRIAL_FIELDS,
    Trials,
    TrialSearch,
    conditions,
)
from sojourn.search.runner import Runner, executed, fresh_seed
from sojourn.search.search_result import SearchResult
from sojourn.search.trials import Costs, tried
from sojourn.storage.saved import NUMBER, TEXT, WHOLE, Columns, Saved
from sojourn.sweeps.parameters import parameters
from sojourn.traffic import Ping, Tcp, Udp

# Runs per step of the simplification.
STEP_RUNS = 4
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


def built_in(loser: str, against: str) -> Scenario:
    """Return the built-in scenario: a download link, two groups of TCP, UDP and pings."""
    for argument, queue in (("loser", loser), ("against", against)):
        with in_argument(argument, queue):
            qdisc(queue)
    arms = named(dict.fromkeys((loser, against)))
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


@dataclass(frozen=True)
class AdversaryPlan(ExecutionPlan):
    """The arguments of a search for a worst case."""

    scenario: Annotated[
        Scenario | None,
        Argument(
            help="The scenario; by default a built-in one with a download link.", option="FILE"
        ),
    ] = None
    parameters: Annotated[Mapping[Any, Any] | None, SEARCH_PARAMETERS] = None
    _: KW_ONLY
    loser: Annotated[
        AnyQueue,
        Argument(
            help="The arm that should lose; with the built-in scenario, a queue.",
            kind="queues",
            expected="an arm or a queue",
            metavar="ARM",
        ),
    ]
    against: Annotated[
        AnyQueue,
        Argument(
            help="The arm to compare with; with the built-in scenario, a queue.",
            kind="queues",
            expected="an arm or a queue",
            metavar="ARM",
        ),
    ]
    score: Annotated[
        str,
        Argument(
            help="The score: min or max and a metric or an expression of metrics. The regret is "
            "how much worse the score of {loser} is in runs with the same seed.",
            more="By default, the score is the negative logarithm of the power, goodput divided by "
            "the 99th percentile of the ping time: a regret of log 2 = 0.69 means half the power. "
            "In scores, a rate is at least 0.001 Mbit/s and a time at most 60 s. In a run in which "
            "only one arm has a score, the other arm failed: its rates count as 0.001 Mbit/s, its "
            "times as 60 s, and if the score is still not finite, the difference counts as "
            "1000000. Runs in which neither arm has a score do not count.",
            metavar="SCORE",
        ),
    ] = SCORE
    where: Where = ()
    trials: Trials = 128
    replications: Annotated[
        int,
        Argument(help="Runs per trial and arm.", least=1, most=MAX_RUNS, metavar="N", heading=RUNS),
    ] = 2
    final_replications: Annotated[
        int,
        Argument(
            help="Runs per arm for the regret of the result, with new seeds.",
            least=2,
            most=MAX_RUNS,
            metavar="N",
            heading=RUNS,
        ),
    ] = 10
    keep: Annotated[
        float,
        Argument(
            help="Share of the regret that the simplified scenario must keep.",
            above=0.0,
            most=1.0,
            example=0.9,
            metavar="SHARE",
            heading=POINTS,
            rare=True,
        ),
    ] = 0.9


_NOT_MEASURED = (
    "fewer than two pairs of runs with new seeds measured the score; expected more, or a score "
    "that more runs measure"
)


class NeverLosesError(ArgumentError):
    """The arm loses in no scenario of a search."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedAdversary(TrialSearch):
    """A checked search for a worst case: the scenario has both arms."""

    contest: Contest
    keep: float

    @property
    def runs(self) -> int:
        """The most runs that the search needs."""
        of_steps = (MAX_STEPS + 1) * STEP_RUNS
        # The original trial and some steps are checked, then two scenarios are measured.
        of_intervals = (1 + len(_undone(MAX_STEPS)) + 2) * self.final_replications
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


TITLE = "# A worst case that `sojourn adversary` found. The seed below was not used by the search."
MAX_FILE = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Counterexample:
    """A scenario in which an arm loses against another."""

    scenario: Scenario
    arm: str
    against: str
    score: str
    regret: float
    regret_low: float
    regret_high: float
    found: float
    found_low: float
    found_high: float
    trials: int
    search_seed: int
    version: str
    command: str = ""

    def to_toml(self) -> str:
        """Write the scenario with the comment block."""
        values = {
            item.name: getattr(self, item.name) for item in fields(self) if item.name != "scenario"
        }
        lines = [f"# {key} = {_written(value)}" for key, value in values.items()]
        return "\n".join([TITLE, *lines, "", self.scenario.to_toml()])


def read(path: str | Path) -> Counterexample:
    """Read a worst case."""
    try:
        text = files.head(path, MAX_FILE).decode()
    except OSError as error:
        message = f"{path}: {error.strerror}"
        raise _core.ResultError(message) from None
    except UnicodeDecodeError:
        message = f"{path}: not valid UTF-8; expected a scenario file"
        raise _core.ResultError(message) from None
    return parsed(with_queue_files(text, Path(path).parent), path)


def parsed(text: str, path: str | Path) -> Counterexample:
    """Read a worst case from its text; `path` is its file, for error messages."""
    head, *rest = text.splitlines() or [""]
    block = []
    for line in rest:
        if not line.startswith("# "):
            break
        block.append(line.removeprefix("# "))
    try:
        values: dict[str, Any] = tomllib.loads("\n".join(block))
    except tomllib.TOMLDecodeError:
        values = {}
    wanted = {item.name for item in fields(Counterexample)} - {"scenario"}
    if head != TITLE or values.keys() != wanted:
        message = (
            f"{path}: not a worst case; expected a file that a search for worst cases has written"
        )
        raise _core.ResultError(message)
    # Not Scenario.from_toml, which loads the files of queues: reading a result executes nothing.
    scenario = Scenario.from_json(_core.Scenario.from_toml(text).to_json())
    return Counterexample(scenario=scenario, **values)


def _written(value: str | float) -> str:
    if isinstance(value, str):
        return toml_string(value.replace("\n", " "))
    return repr(value)


_SCENARIO = "worst.toml"


class AdversaryResult(SearchResult):
    """The scenario in which an arm loses most against another.

    Created by :func:`sojourn.adversary` and :meth:`load`.

    Parameters
    ----------
    manifest
        Scenario, parameters, arms, score, seeds and version.
    trials
        The frame :attr:`trials`.
    worst
        The simplified scenario, with its regret.
    """

    _KIND = "adversary"
    _TABLES = ("trials",)
    _TEXTS = (_SCENARIO,)
    _IDENTITY = (
        *("sojourn", "scenario", "parameters", "arm", "against", "score", "where"),
        *("trials", "replications", "intervals", "keep", "seed"),
    )
    _FIELDS: ClassVar[Mapping[str, Any]] = {
        **TRIAL_FIELDS,
        "arm": str,
        "against": str,
        "score": str,
        "keep": float,
        "invalid": list[str],
    }

    def __init__(
        self, manifest: dict[str, Any], trials: pl.DataFrame, worst: Counterexample
    ) -> None:
        super().__init__(manifest, trials=trials)
        self.worst = worst

    def __repr__(self) -> str:
        """Return the regret on one line."""
        one = self.worst
        return (
            f"AdversaryResult(arm={one.arm!r}, against={one.against!r}, "
            f"regret={one.regret:.3g} [{one.regret_low:.3g}, {one.regret_high:.3g}])"
        )

    @property
    def trials(self) -> pl.DataFrame:
        """One row per trial: ``trial``, the parameters, ``state``, and ``regret`` in the search.

        The states are those of :attr:`TuneResult.trials`.
        """
        return self._tables["trials"]

    @cached_property
    def scenario(self) -> Scenario:
        """The scenario that was found, with both arms."""
        return self.worst.scenario

    @property
    def regret(self) -> tuple[float, float, float]:
        """The regret with new seeds: mean, and the ends of its 95 % interval."""
        return self.worst.regret, self.worst.regret_low, self.worst.regret_high

    def write(self, path: str | Path) -> None:
        """Write the scenario with its regret as a scenario file.

        Raises
        ------
        ResultError
            The file cannot be written.
        """
        try:
            text = toml_with_files(self.worst.to_toml(), Path(path).parent)
            files.replace(path, text.encode())
        except OSError as error:
            message = f"cannot write {path}: {error.strerror}"
            raise _core.ResultError(message) from None

    @classmethod
    def _columns(cls, manifest: dict[str, Any]) -> dict[str, Columns]:
        values = dict.fromkeys(manifest["paths"], TEXT)
        return {"trials": {"trial": WHOLE, **values, "state": TEXT, "regret": NUMBER}}

    @classmethod
    def _loaded(cls, saved: Saved, directory: Path) -> Self:
        if _SCENARIO not in saved.texts:
            message = f"{directory}: damaged: no {_SCENARIO}"
            raise _core.DamagedResultError(message)
        worst = parsed(saved.texts[_SCENARIO], directory / _SCENARIO)
        return cls(saved.manifest, saved.tables["trials"], worst)

    def _texts(self) -> dict[str, str | None]:
        return {_SCENARIO: self.worst.to_toml()}


def prepared(plan: AdversaryPlan) -> PreparedAdversary:
    """Check a search for a worst case."""
    objective(plan.score, "score")
    names = [f"{plan.loser}", f"{plan.against}"]
    if plan.scenario is None:
        base = built_in(*names)
        short = {text: name for name, text in named(dict.fromkeys(names)).items()}
        names = [short[text] for text in names]
    else:
        base = plan.scenario
    of = contest(base, names[0], names[1], plan.score)
    mapping = plan.parameters or {}
    given = parameters(SPACE if plan.scenario is None and not mapping else mapping)
    chosen = base.replace(arms=[one for one in base.arms if one.name in names])
    found = dimensions(given, varying=False)
    check_paths(chosen, found)
    objective(plan.score, "score", measured_links(chosen, found))
    return PreparedAdversary(
        scenario=chosen if plan.seed is None else chosen.replace(seed=plan.seed),
        dimensions=tuple(found),
        contest=of,
        trials=plan.trials,
        replications=plan.replications,
        final_replications=plan.final_replications,
        keep=plan.keep,
        where=conditions(plan.where, chosen, given, found),
    )


def execute(planned: PreparedAdversary, runner: Runner, *, command: str = "") -> AdversaryResult:
    """Search for a worst case and simplify it."""
    tries = tried(
        planned,
        runner,
        lambda runs: _costs(runs, planned.contest),
        objectives=1,
        command="adversary",
        measures="the score was not measured",
    )
    (point,) = listed(planned.scenario, [tries.best[0].values])
    worst = _minimised(planned, Candidate(dict(point.changes)), runner)
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
    planned: PreparedAdversary, found: Candidate, runner: Runner
) -> tuple[Ends, tuple[Scenario, Ends]]:
    """Simplify a candidate; return the regrets, with new seeds, of it and of the result."""
    base = planned.scenario
    seed = fresh_seed(planned.seed, "minimiser")

    def regret(scenario: Scenario, replications: int, seed: int) -> Regret:
        (runs,) = runner.measure(scenario, [{}], replications=replications, seed=seed)
        return planned.contest.regret(runs)

    whole = regret(found.scenario(base), STEP_RUNS, seed).mean
    if whole is None or whole <= 0.0:
        rule = (
            "loses in no scenario of the search; expected other or wider ranges, or more {trials}"
        )
        raise NeverLosesError("loser", planned.contest.arm, rule)
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
    whole = regret(found.scenario(base), planned.final_replications, seed).mean
    if whole is None:
        raise ArgumentError("final_replications", rule=_NOT_MEASURED)
    simplest = found
    for candidate in (accepted[-1 - undone] for undone in _undone(len(accepted) - 1)):
        mean = regret(candidate.scenario(base), planned.final_replications, seed).mean
        if mean is not None and mean >= planned.keep * whole:
            simplest = candidate
            break
    runner.planned = runner.finished + 4 * planned.final_replications
    seed = fresh_seed(planned.seed, "intervals")
    ends = []
    for one in (found, simplest):
        final = regret(one.scenario(base), planned.final_replications, seed)
        if final.mean is None or final.low is None or final.high is None:
            # An interval needs at least two pairs of runs.
            raise ArgumentError("final_replications", rule=_NOT_MEASURED)
        ends.append((final.mean, final.low, final.high))
    scenario = simplest.scenario(base).replace(seed=seed, replications=planned.final_replications)
    return ends[0], (scenario, ends[1])


@takes(AdversaryPlan)
def adversary(plan: AdversaryPlan) -> AdversaryResult:
    """Search for the scenario in which an arm loses most against another, and simplify it.

    Optuna proposes values of the parameters. The worst trial is then simplified step by step as
    long as the regret remains: groups of traffic are removed, parameters are reset to their values
    in the scenario, numbers of flows are reduced, numbers are rounded, and runs are shortened. The
    returned regret is that of the simplified scenario, with seeds that neither the search nor the
    simplification has used.

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
    return executed(prepared(plan), execute, plan)
