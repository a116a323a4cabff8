"""Advice: compare candidates on an access link and recommend one."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import polars as pl

from sojourn.advice import lines as writing
from sojourn.advice.access import Access, access
from sojourn.advice.candidates import NO_SHAPER, QUEUES, Candidate, candidates
from sojourn.advice.experiment import experiment
from sojourn.advice.measures import (
    DOWN_MBIT,
    METRICS,
    PING_MS,
    SCALES,
    UP_MBIT,
    Estimate,
    Scale,
    estimates,
    measures,
)
from sojourn.advice.router_config import Present, read
from sojourn.advice.router_config import present as read_present
from sojourn.arguments import Argument, ArgumentError, Plan, common, takes
from sojourn.arguments.common import (
    SCENARIO,
    Jobs,
    MaxMemory,
    OwnReplications,
    OwnSeed,
    Progress,
)
from sojourn.execute.run import run
from sojourn.presentation.html import fragment
from sojourn.presentation.model import Code, Markup, Paragraph, Section, Styled
from sojourn.queues.base import Queues, texts
from sojourn.report.answer import FEWEST, too_few
from sojourn.result import Result
from sojourn.result.formatting import counted
from sojourn.result.validity import Validity
from sojourn.scenario import Scenario
from sojourn.scenario.presets import Preset

# The device of OpenWrt towards the modem.
DEVICE = "wan"
# Better grades do not justify a lower rate.
ENOUGH = "A"
RULE = (
    "The recommended configuration has the fewest grade steps below the best grade, added over all "
    "columns; A+ counts as A. Ties go to the highest rate, then to the first queue."
)
# More queues would take minutes.
MAX_QUEUES = 6


@dataclass(frozen=True)
class Question:
    """The question: an access link, and the candidates to compare on it."""

    access: Access
    compared: tuple[Candidate, ...]
    scenario: Scenario
    present: Present | None = None


@dataclass(frozen=True, repr=False)
class Advice:
    """Advice on shaping an access link, as returned by :func:`sojourn.advise`.

    Parameters
    ----------
    question
        The link and the candidates.
    result
        The runs of the experiment, with an arm per candidate.
    """

    question: Question
    result: Result

    @property
    def validity(self) -> Validity:
        """The findings on the runs, but for what the candidates differ in: that is the question."""
        return Validity(findings=[one for one in self.result.validity.findings if not one.of_arms])

    @cached_property
    def runs(self) -> pl.DataFrame:
        """One row per run: ``arm``, ``replication`` and the measures."""
        return measures(self.result, self.question.access.rtt_s)

    @cached_property
    def estimates(self) -> Mapping[str, Mapping[str, Estimate]]:
        """Mean, low and high end of the 95 % interval, by candidate and measure."""
        return estimates(self.runs)

    @property
    def compared(self) -> list[Candidate]:
        """The candidates that have a finished run."""
        return [one for one in self.question.compared if one.name in self.estimates]

    def mean(self, name: str, column: str) -> float | None:
        """Return the mean of a measure of a candidate; None if it was not measured."""
        return self.estimates[name][column][0]

    def grade(self, name: str, scale: Scale) -> str:
        """Return the grade of the mean of a candidate."""
        return scale.grade(self.mean(name, scale.metric.column))

    def is_uncertain(self, name: str, scale: Scale) -> bool:
        """Whether the interval of a candidate contains values with another grade."""
        _, low, high = self.estimates[name][scale.metric.column]
        return low is not None and scale.grade(low) != scale.grade(high)

    @cached_property
    def steps_below_best(self) -> dict[str, int]:
        """Grade steps below the best grades, by candidate that may be recommended."""
        names = [one.name for one in self.compared if one.kind in {"none", "candidate"}]
        total = dict.fromkeys(names, 0)
        for scale in SCALES:
            column = scale.metric.column
            enough = scale.letters.index(ENOUGH)
            steps = {name: max(scale.below_best(self.mean(name, column)), enough) for name in names}
            best = min(steps.values(), default=0)
            for name, below in steps.items():
                total[name] += below - best
        return total

    @cached_property
    def recommended(self) -> Candidate:
        """The recommended candidate, by ``RULE``."""
        steps = self.steps_below_best

        def rank(one: Candidate) -> tuple[int, float]:
            # Without a shaper, the line has its full rate.
            return steps[one.name], -(101.0 if one.percent is None else one.percent)

        return min((one for one in self.compared if one.name in steps), key=rank)

    @property
    def is_complete(self) -> bool:
        """Whether all runs are finished: an interrupted comparison recommends nothing."""
        return self.result.complete

    @property
    def answer(self) -> str:
        """What to set, and what it changes under load."""
        replications = self.result.scenario.checked.replications
        if not self.is_complete:
            runs = f"{self.result.finished} of {self.result.total} runs"
            return f"Interrupted after {runs}: no recommendation."
        if replications < FEWEST:
            return f"{too_few(replications)} Provisionally: {self._answer}"
        return self._answer

    @property
    def _answer(self) -> str:
        name, without = self.recommended.name, self.mean(NO_SHAPER, PING_MS.column)
        ping = self.mean(name, PING_MS.column)
        text = writing.in_words(self.question.access, self.recommended)
        if ping is not None:
            text += f" A game ping under load takes {ping:.0f} ms"
            text += "" if name == NO_SHAPER or without is None else f" instead of {without:.0f} ms"
            for what, up in (("downloads", False), ("uploads", True)):
                change = self.change_percent(name, up=up)
                if change is not None and name != NO_SHAPER:
                    text += f"{', ' if up else '; '}{what} {change:+z.0f} %".replace("-", "−")
            text += "."
        return text

    @property
    def reason(self) -> str:
        """Why the candidate is recommended, in one sentence."""
        below = self.steps_below_best[self.recommended.name]
        if below:
            return (
                f"no configuration has the best grade in every column; this one is "
                f"{counted(below, 'grade step')} below the best"
            )
        if self.recommended.kind == "none":
            return "no shaper improves a grade"
        return "it has the best grade in every column, and no configuration with a higher rate does"

    def change_percent(self, name: str, *, up: bool) -> float | None:
        """Return the change of the speed relative to no shaper, in percent."""
        column = (UP_MBIT if up else DOWN_MBIT).column
        if NO_SHAPER not in self.estimates:
            return None
        base, value = self.mean(NO_SHAPER, column), self.mean(name, column)
        if base is None or value is None or base <= 0:
            return None
        return (value / base - 1.0) * 100.0

    def table(self) -> pl.DataFrame:
        """Return one row per candidate: measures with intervals, grades and changes of speed."""
        rows = []
        for one in self.compared:
            row: dict[str, Any] = {
                "configuration": one.name,
                "recommended": one.name == self.recommended.name,
                "percent_of_rate": one.percent,
            }
            for metric in METRICS:
                mean, low, high = self.estimates[one.name][metric.column]
                row |= {
                    metric.column: mean,
                    f"{metric.column}_low": low,
                    f"{metric.column}_high": high,
                }
            for scale in SCALES:
                row[f"{scale.metric.column}_grade"] = self.grade(one.name, scale)
                row[f"{scale.metric.column}_grade_uncertain"] = self.is_uncertain(one.name, scale)
            row["download_change_percent"] = self.change_percent(one.name, up=False)
            row["upload_change_percent"] = self.change_percent(one.name, up=True)
            rows.append(row)
        return pl.DataFrame(rows, infer_schema_length=None)

    def lines(self, device: str = DEVICE) -> dict[str, str]:
        """Return the lines to copy, by their destination.

        Parameters
        ----------
        device
            Name of the network device towards the modem.

        Raises
        ------
        ScenarioError
            The name of the device is not valid.
        """
        found = writing.lines(self.question.access, self.recommended, device)
        return {item.title: item.text for item in found}

    def __repr__(self) -> str:
        """Return the answer in one line."""
        return f"<Advice: {self.answer}>"

    def _repr_html_(self) -> str:
        """Return the answer, all candidates and the lines to copy as HTML, for notebooks."""
        answer = Paragraph(Styled(self.answer))
        if not self.is_complete:
            return fragment([answer])
        lines = [Section(title, [Code(text)]) for title, text in self.lines().items()]
        return fragment([answer, Markup(self.table()._repr_html_()), *lines])

    @property
    def warnings(self) -> list[str]:
        """Limitations of the advice."""
        name = self.recommended.name
        worst = [one for one in SCALES if self.grade(name, one) == one.worst]
        poor = ", ".join(one.metric.label for one in worst)
        weak = [f"{name} still has the worst grade in: {poor}"] if worst else []
        return [*weak, *_of_routers(self.recommended), *_of_link(self.question.access)]


@dataclass(frozen=True, slots=True)
class Router:
    """A processor and the highest rate at which it was reported to shape."""

    name: str
    mbit_per_s: float
    source: str


_TABLES = tomllib.loads(Path(__file__).with_name("routers.toml").read_text(encoding="utf-8"))
ROUTERS = tuple(Router(**table) for table in _TABLES["router"])


def too_slow(bits_per_s: float) -> list[Router]:
    """List the routers that cannot shape at a rate, the sum of both directions.

    Examples
    --------
    >>> [router.mbit_per_s for router in too_slow(200e6)]
    [98.0, 150.0]
    """
    return [router for router in ROUTERS if router.mbit_per_s * 1e6 < bits_per_s]


def _of_routers(chosen: Candidate) -> list[str]:
    bits = (chosen.down.bits_per_s or 0) + (chosen.up.bits_per_s or 0)
    slow = too_slow(bits)
    if not slow:
        return []
    listed = "; ".join(f"{one.name}: {one.mbit_per_s:g} Mbit/s ({one.source})" for one in slow)
    text = (
        f"{bits / 1e6:.0f} Mbit/s, the sum of both directions, exceeds the rates at which these "
        f"routers were reported to shape: {listed}"
    )
    return [text]


def _of_link(link: Access) -> list[str]:
    found = []
    if link.dip:
        found.append(
            f"the rate of the line varies by {link.dip * 100:g} %: a constant shaper must "
            "be below the lowest rate; cake-autorate adapts the rate"
        )
    if link.wifi:
        found.append(
            "WiFi: if the radio is slower than the line, packets wait in its queues, not in the "
            "shaper; the model has one access point without interference"
        )
    return found


@dataclass(frozen=True, kw_only=True)
class AdvicePlan(Plan):
    """The arguments of a comparison of shapers for an access line."""

    queues: Annotated[
        Queues,
        replace(
            common.QUEUES,
            more=f"{common.QUEUES.more} ``htb`` shapes all of them except ``cake``.",
        ),
    ] = QUEUES
    preset: Preset = None
    link: Annotated[str | None, replace(common.LINK, unset="those of the preset")] = None
    rtt: Annotated[str | None, replace(common.RTT, unset="that of the preset")] = None
    layer: Annotated[
        str | None,
        Argument(
            help="Link layer: docsis, ethernet, pppoe-atm, pppoe-ptm, another keyword of cake, or "
            "an overhead such as 'overhead 44 mpu 84'.",
            unset="that of the preset",
            metavar="LAYER",
            heading=SCENARIO,
        ),
    ] = None
    buffer: Annotated[
        str | None,
        Argument(
            help="Down/up buffers of provider and modem as times, such as 100/300ms, or one time.",
            unset="those of the preset, or of a preset with the same framing",
            metavar="TIMES",
            heading=SCENARIO,
        ),
    ] = None
    wifi: Annotated[
        bool,
        Argument(help="Connect the devices of the home by WiFi (802.11ac).", heading=SCENARIO),
    ] = False
    shares: Annotated[
        str | Sequence[float] | None,
        Argument(
            help="Rates of the shapers in percent of the rate of the line, such as 95,90.",
            expected="a list of percentages, such as 95,90",
            unset="100 to 80, and lower rates if the rate of the line varies",
            metavar="PERCENTS",
            heading=SCENARIO,
            rare=True,
        ),
    ] = None
    present: Annotated[
        Path | str | None,
        Argument(
            help="Also compare the present configuration, read from a copy of /etc/config/sqm, the "
            "output of 'tc -d qdisc show' or a script of tc commands; - for standard input.",
            more="The text of such a file may replace its path.",
            metavar="FILE",
            heading=SCENARIO,
        ),
    ] = None
    interface: Annotated[
        str | None,
        Argument(
            help="Network device towards the modem: the shaper in {present} and the printed "
            "configuration are for this device.",
            unset=DEVICE,
            metavar="DEVICE",
            heading=SCENARIO,
        ),
    ] = None
    replications: OwnReplications = 5
    seed: OwnSeed = 1
    jobs: Jobs = None
    progress: Progress = None
    max_memory: MaxMemory = None


def question(plan: AdvicePlan) -> Question:
    """Check the question, and compose the experiment."""
    queues = texts(plan.queues)
    if len(queues) > MAX_QUEUES:
        rule = f"{len(queues)} queues; expected at most {MAX_QUEUES}"
        raise ArgumentError("queues", rule=rule)
    if plan.interface is not None:
        writing.check_device(plan.interface)
    described = access(
        preset=plan.preset,
        link=plan.link,
        rtt=plan.rtt,
        layer_name=plan.layer,
        buffer=plan.buffer,
        wifi=plan.wifi,
    )
    configured = None
    if plan.present is not None:
        given = plan.present
        text, place = read(given) if isinstance(given, Path) else (given, "present")
        configured = read_present(text, place, plan.interface)
    shapers = None if configured is None else (configured.up, configured.down)
    compared = candidates(described, queues=queues, shares=_percents(plan.shares), present=shapers)
    scenario = experiment(described, compared, replications=plan.replications, seed=plan.seed)
    return Question(described, tuple(compared), scenario, configured)


def _percents(shares: str | Sequence[float] | None) -> Sequence[float] | None:
    """Read ``95,90`` or ``95 %,90 %``."""
    if not isinstance(shares, str):
        return shares
    texts = [text.strip().removesuffix("%") for text in shares.split(",")]
    try:
        return [float(text) for text in texts if text]
    except ValueError:
        rule = "not a list of numbers; expected percent, such as 100,95,90"
        raise ArgumentError("shares", shares, rule) from None


@takes(AdvicePlan)
def advise(plan: AdvicePlan) -> Advice:
    """Compare shapers in front of a modem and recommend one.

    A household transfers data in both directions, calls, browses and plays behind an access line.
    Each queue is tried at several shares of the rate of the line, with its overhead and without.

    Returns
    -------
    Advice
        The measures, their grades, the recommendation and the lines to copy.

    Raises
    ------
    Interrupted
        Ctrl-C ended the runs.
    ScenarioError
        A value is missing or not valid; the message names it.

    Examples
    --------
    >>> advice = advise(preset="adsl", queues=["cake"], shares=[90], replications=1)
    >>> advice.recommended.name
    'cake 90 %'
    """
    asked = question(plan)
    result = run(asked.scenario, jobs=plan.jobs, progress=plan.progress, max_memory=plan.max_memory)
    return Advice(asked, result)
