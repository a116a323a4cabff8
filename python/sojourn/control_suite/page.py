"""The report on one control, as one HTML file without scripts."""

import math
from collections.abc import Sequence

import polars as pl

from sojourn.control_suite.definitions import CONTROL_METRICS
from sojourn.control_suite.evaluation import Evaluation, Judged, Outcome
from sojourn.control_suite.topology import ControlCase
from sojourn.plot import reported
from sojourn.presentation import html as writer
from sojourn.presentation import style
from sojourn.presentation.figure import Axis, Figure, Level, Mark, Panel, Points, named_axis
from sojourn.presentation.html import tag
from sojourn.presentation.model import (
    Block,
    Document,
    Figures,
    Inline,
    Items,
    Legend,
    Markup,
    Paragraph,
    Section,
    Styled,
    Text,
    Tone,
    Verdict,
    quiet,
    text_table,
)
from sojourn.result import Result, formatting
from sojourn.suites.measurement import Measurement
from sojourn.suites.page import quoted, results

TONES: dict[str, Tone] = {"pass": "good", "fail": "bad", "undecided": "weak"}
# Margins beyond this are drawn at the edge.
_WIDEST = 10.0
_JUDGED = (
    "A comparison passes if the 95 % interval of the difference from the bound lies on the right "
    "side of 0, fails if it lies on the wrong side, and is undecided if it contains 0. The verdict "
    "is fail if one comparison fails, and undecided if none fails and one is undecided."
)
_STANDARD = (
    "Bounds from a standard control are computed in runs with the same seed; the most favourable "
    "standard control counts."
)
_MARGINS = (
    "Each dot is a comparison in one case: how many times better than its bound. Dots to the left "
    "of 1 are worse than the bound; those beyond 10 times are at the edge. What is exactly at its "
    "bound is at 1, also 0 of at most 0."
)


def summary(found: Evaluation) -> str:
    """Answer in one sentence: how many criteria have which verdict."""
    counted = found.counted()
    run = [word for word in ("pass", "fail", "undecided") if word in counted]
    tested = sum(counted[word] for word in run)
    words = {"pass": "met", "fail": "not met", "undecided": "undecided"}
    parts = [
        f"{counted[word]} {'is' if counted[word] == 1 else 'are'} {words[word]}" for word in run
    ]
    text = f"{found.tested.name}: {_tested(found, tested)}"
    text += formatted_list(parts) if parts else "runs can test none"
    others = [
        f"{counted[word]} {says}"
        for word, says in (
            ("not applicable", "not applicable"),
            ("not testable here", "not testable here"),
        )
        if word in counted
    ]
    return f"{text}; {formatted_list(others)}." if others else f"{text}."


def _tested(found: Evaluation, count: int) -> str:
    """Write how many criteria the sentence counts, and of how many."""
    edition = found.edition
    if not found.is_selection:
        return f"of {_counted(count, edition.noun)} of {edition.name} that runs can test, "
    if not count:
        return f"of {_counted(len(found.outcomes), f'selected {edition.noun}')} of {edition.name}, "
    every = sum(bool(one.checks) for one in edition.criteria.values())
    selected = _counted(count, f"selected {edition.noun}")
    return f"of {selected} of {edition.name} (runs can test {every}), "


def _counted(count: int, noun: str) -> str:
    plural = noun.replace("criterion", "criteria")
    return formatting.counted(count, noun) if plural == noun or count == 1 else f"{count} {plural}"


def formatted_list(parts: Sequence[str]) -> str:
    """Join parts of a sentence.

    Examples
    --------
    >>> formatted_list(["1", "2", "3"]), formatted_list(["1"])
    ('1, 2 and 3', '1')
    """
    *before, last = parts
    return f"{', '.join(before)} and {last}" if before else last


def drawn(result: Result, one: Measurement) -> list[Figure | Markup]:
    """Draw goodput and queueing delay over time of the cases that change during the run."""
    case = one.case
    if not isinstance(case, ControlCase) or not case.over_time:
        return []
    heading = tag("h3", case.name, style="grid-column:1/-1")
    shown = ("Goodput", "Sojourn", "Ping")
    figures = [one for one in reported.over_time(result) if one.title.startswith(shown)]
    return [heading, *figures] if figures else []


def html(found: Evaluation, build: str) -> str:
    """Write the report of a control."""
    names = found.tested.arms
    form = f"{found.form.name.capitalize()} form: " if found.form.name else ""
    about = (
        f"{found.edition.name}, {found.edition.title} ({found.edition.url}). "
        f"{form}{found.form.replications} runs per arm; Sojourn {build}."
    )
    metrics = [[metric.heading, metric.description] for metric in CONTROL_METRICS]
    judged = f"{_JUDGED} {_STANDARD}" if found.tested.standards else _JUDGED
    document = Document(
        title=f"{found.edition.name}: {found.tested.name}",
        head=[Paragraph(summary(found)), Paragraph(about, quiet=True)],
        content=[
            Section("Verdicts", [overview(found), *quiet(judged)]),
            Section("Margins", [Figures([margins(found)], names)] if any(found.checked) else []),
            *(_section(found, outcome) for outcome in found.outcomes),
            Section("Metrics", [text_table(["metric", "definition"], metrics)], folded=True),
        ],
        names=names,
    )
    return writer.page(document)


def overview(found: Evaluation) -> Block:
    """Write a row per criterion: its verdict and what decided."""
    rows: list[list[Text]] = []
    for one in found.outcomes:
        decided = one.deciding
        why = "" if decided is None else f"{decided.check.why}: {decided.case}"
        rows.append(
            [
                [f"{one.number} {one.criterion.title}", *_level(one)],
                Verdict(one.verdict, TONES.get(one.verdict, "")),
                why,
                "" if decided is None else decided.numbers,
                one.why,
            ]
        )
    head = [found.edition.noun, "verdict", "decisive comparison", "measured", "reason"]
    return text_table(head, rows)


def _level(one: Outcome) -> list[Inline]:
    """Write the level below the title, if the criteria differ in it."""
    level = one.criterion.level
    return [] if level == "example" else [" ", Styled(level, "small")]


def _section(found: Evaluation, one: Outcome) -> Section:
    criterion = one.criterion
    blocks: list[Block] = [
        quoted(criterion.quotation, found.edition.name),
        Paragraph(Verdict(one.verdict, TONES.get(one.verdict, ""))),
        *([Paragraph(one.reason)] if one.reason else []),
        *([Paragraph(f"Runs: {criterion.how}.")] if criterion.how else []),
    ]
    if one.judged:
        blocks.append(comparisons(one.judged))
    if one.measurements:
        limits = {
            text
            for measured in one.measurements
            if measured.validity[0] != "valid"
            for text in measured.validity[1]
        }
        names = found.tested.arms
        blocks += [
            Section(
                "Measurements", [results(one.measurements), Items(sorted(limits))], folded=True
            ),
            Legend(names, boxes=False),
            Figures([delay_and_use(one, names), *one.figures], names),
        ]
    return Section(f"{one.number} {criterion.title}", blocks)


def comparisons(judged: Sequence[Judged]) -> Block:
    """Write a row per comparison and case."""
    rows: list[list[Text]] = [
        [
            one.check.why,
            one.case,
            Verdict(one.verdict, TONES.get(one.verdict, "")),
            one.numbers,
            one.reason,
        ]
        for one in judged
    ]
    return text_table(["comparison", "case", "verdict", "measured", "reason"], rows)


def margins(found: Evaluation) -> Figure:
    """Draw how far every comparison is from its bound."""
    shown = [one for one in found.outcomes if one.judged]
    names = [one.number for one in shown]
    grouped: dict[str, list[tuple[float, float, str]]] = {}
    rows = []
    for place, outcome in enumerate(reversed(shown)):
        for one in outcome.judged:
            if one.margin is None:
                continue
            at = min(max(one.margin, 1 / _WIDEST), _WIDEST)
            hover = f"{outcome.number} {one.check.why} ({one.case}): {one.numbers}"
            grouped.setdefault(one.verdict, []).append((at, float(place), hover))
            margin = "∞" if math.isinf(one.margin) else f"{one.margin:.3g}"
            rows.append((outcome.number, one.check.why, one.case, one.verdict, margin))
    verdicts = [word for word in ("pass", "undecided", "fail") if word in grouped]
    marks: list[Mark] = [Level(value=1.0, upright=True)]
    marks += [
        Points(
            word,
            [at for at, _, _ in grouped[word]],
            [place for _, place, _ in grouped[word]],
            hover=[hover for _, _, hover in grouped[word]],
        )
        for word in verdicts
    ]
    colours = {"pass": 2, "undecided": 3, "fail": 1}
    panel = Panel(
        Axis("times better than the bound", log=True, low=1 / _WIDEST, high=_WIDEST),
        named_axis(list(reversed(names)), found.edition.noun),
        marks,
    )
    return Figure(
        "Margins of all comparisons",
        [panel],
        {word: colours[word] for word in verdicts},
        legend=[Points(word) for word in verdicts],
        note=_MARGINS,
        head=(found.edition.noun, "comparison", "case", "verdict", "times better"),
        rows=rows,
        height=max(2.0, 0.26 * len(names) + 1.0),
    )


def delay_and_use(one: Outcome, arms: Sequence[str]) -> Figure:
    """Draw the mean goodput of each case against its mean queueing delay."""
    points: dict[str, list[tuple[float, float, str]]] = {arm: [] for arm in arms}
    for measured in one.measurements:
        whole = measured.runs.filter(pl.col("group") == "all")
        means = whole.group_by("arm").agg(
            pl.col("queueing_ms", "goodput_mbit_per_s", "used_percent").mean()
        )
        for arm, delay, goodput, used in means.iter_rows():
            if arm in points and delay is not None and goodput is not None:
                y = goodput if used is None else used
                points[arm].append((max(delay, 0.01), y, measured.case.name))
    uses = all(
        measured.runs["used_percent"].null_count() < measured.runs.height
        for measured in one.measurements
    )
    label = "used capacity [%]" if uses else "goodput [Mbit/s]"
    marks = [
        Points(arm, [p[0] for p in found], [p[1] for p in found], hover=[p[2] for p in found])
        for arm, found in points.items()
        if found
    ]
    rows = [
        (arm, case, formatting.significant(x), formatting.significant(y))
        for arm, found in points.items()
        for x, y, case in found
    ]
    panel = Panel(Axis("mean queueing delay [ms]", log=True), Axis(label, zero=True), marks)
    return Figure(
        f"{label.split(' [', maxsplit=1)[0].capitalize()} against queueing delay",
        [panel],
        style.numbers(arms),
        note="Each dot is the mean of a case. Up and to the left is better.",
        head=("arm", "case", "delay [ms]", label),
        rows=rows,
    )
