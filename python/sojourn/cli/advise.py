"""``sojourn advise``: recommend a shaper for an access link and print its configuration."""

import json as js
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sojourn import _core
from sojourn.advice.access import Access
from sojourn.advice.advice import DEVICE, RULE, Advice, AdvicePlan, Question, question
from sojourn.advice.candidates import Candidate
from sojourn.advice.measures import DOWN_MBIT, PING, PING_MS, RPM, SCALES, UP_MBIT, Scale
from sojourn.advice.shaping import Shaping, rate
from sojourn.arguments.common import Fresh
from sojourn.cli import session
from sojourn.cli.options import Change, DryRun
from sojourn.cli.plans import Given, command
from sojourn.cli.process import say
from sojourn.cli.run import with_changes
from sojourn.cli.tables import print_aligned, print_note, print_table
from sojourn.execute.executor import jobs_at_once
from sojourn.execute.run import RunPlan
from sojourn.result import budget
from sojourn.result.catalogue import Metric
from sojourn.result.formatting import counted
from sojourn.result.result import Result
from sojourn.scenario.presets import MARK, Sourced

CHOSEN = "→ "
TITLE = "while others transfer data"
# What is shown of a candidate, with its grades.
MEASURES: tuple[tuple[Metric, Scale | None], ...] = (
    *((PING_MS if scale is PING else scale.metric, scale) for scale in SCALES),
    (DOWN_MBIT, None),
    (UP_MBIT, None),
)
LABELS = {
    "layer": "link layer",
    "down": "download rate",
    "up": "upload rate",
    "rtt": "idle round-trip time",
    "down_buffer": "buffer of the provider",
    "up_buffer": "buffer of the modem",
    "dip": "dips of the rate",
    "period": "time between changes",
    "subscribers": "households",
}


@command(AdvicePlan, rare=("replications",))
def advise(
    given: Given[AdvicePlan],
    *,
    change: Change = (),
    fresh: Fresh = False,
    dry_run: DryRun = False,
    output: session.Output,
) -> int:
    """Recommend a shaper for an access link, and print its configuration for tc and OpenWrt."""
    planned = given.plan()
    device = planned.interface or DEVICE
    asked = question(planned)
    rates = (asked.access.sourced[key].value for key in ("down", "up"))
    session.warn_of_bytes(*rates, *planned.queues, *change)
    session.note_queues(*planned.queues)
    asked = replace(asked, scenario=with_changes(asked.scenario, change))
    if asked.present is not None:
        # All of them: each names a difference between the router and the model.
        for note in asked.present.notes:
            say(f"note: {note}")
        say(asked.present.description)

    def show(result: Result) -> None:
        advice = Advice(asked, result)
        _show(advice, device=device, as_json=output.json, everything=output.everything)

    request = session.RunRequest(
        run=RunPlan(asked.scenario, jobs=planned.jobs, max_memory=planned.max_memory, fresh=fresh),
        output=output,
        show=show,
    )
    if dry_run:
        if not output.json:
            _show_link(asked.access)
            _show_candidates(asked.compared)
        return session.describe(request)
    if asked.present is not None:
        say(_settings(asked.present.up, asked.present.down))
    say(_announced(asked, planned.jobs, planned.max_memory))
    return session.execute(request)


def _announced(asked: Question, jobs: int | None, max_memory: str | None) -> str:
    """Describe the runs and estimate their time, before they start."""
    checked = asked.scenario.checked
    estimate = budget.estimate(checked, jobs=jobs, max_memory=max_memory)
    count = jobs_at_once(jobs, None)
    runs = f"{counted(asked.scenario.runs, 'run')} of {checked.duration_s:g} s"
    return (
        f"{counted(len(asked.compared), 'configuration')}, {runs}; "
        f"about {estimate['cpu_s'] / count:.2g} s on {counted(count, 'processor')}"
    )


def _show(advice: Advice, *, device: str, as_json: bool, everything: bool) -> None:
    """Print advice."""
    if as_json:
        print(js.dumps(_document(advice, device), indent=2))
        return
    if not advice.steps_below_best:
        # Interrupted before a run that could be recommended.
        return
    print_note(advice.answer)
    print()
    _before_and_after(advice)
    for title, text in advice.lines(device).items():
        print(f"# {title}")
        print(f"{text}\n")
    if everything:
        _explain(advice)
    else:
        others = counted(len(advice.compared), "configuration")
        print_note(
            f"--all: all {others}, the grades, and the values of the line with their sources"
        )
    _notes(advice, everything=everything)


def _explain(advice: Advice) -> None:
    """Print every candidate, the rule, the grades and the values of the link."""
    head = ["configuration", *(metric.heading for metric, _ in MEASURES)]
    rows = [
        [_marked(advice, one), *(_cell(advice, one, *measure) for measure in MEASURES)]
        for one in advice.compared
    ]
    print_table(head, rows, title=TITLE)
    print_note(f"recommended: {advice.recommended.name}: {advice.reason}.")
    print_note(RULE)
    print()
    print("grades (?: the 95 % interval contains another grade)")
    for scale in SCALES:
        print_note(f"  {scale.metric.label}: {scale.meaning}. Source: {scale.source}.")
    print()
    _show_link(advice.question.access)


def _show_link(access: Access) -> None:
    """Print the values of a link and their sources; assumptions are marked."""
    rows = [
        [LABELS[key], f"{item.value}{item.mark}", item.source]
        for key, item in access.sourced.items()
        if _matters(access, key)
    ]
    title = f"{access.title} ({MARK}: reconstructed or assumed)"
    print_table(["value", "", "source"], rows, title=title, words=3)


def _matters(access: Access, key: str) -> bool:
    """Whether a value has an effect."""
    if key in {"dip", "period"}:
        return access.dip > 0
    return key != "subscribers" or access.subscribers > 1


def _before_and_after(advice: Advice) -> None:
    """Print what the recommendation changes: a row per measure."""
    kinds = {"none", "present"}
    chosen = advice.recommended
    shown = [one for one in advice.compared if one.kind in kinds and one.name != chosen.name]
    shown.append(chosen)
    head = [TITLE, *(_marked(advice, one) for one in shown)]
    rows = [
        [metric.heading, *(_cell(advice, one, metric, scale) for one in shown)]
        for metric, scale in MEASURES
        if scale is not RPM
    ]
    print_aligned(head, rows)


def _marked(advice: Advice, one: Candidate) -> str:
    return f"{CHOSEN if one.name == advice.recommended.name else ''}{one.name}"


def _cell(advice: Advice, one: Candidate, metric: Metric, scale: Scale | None) -> str:
    """Write a measure with its grade, or the change of a speed."""
    text = _estimate(advice, one, metric)
    if scale is not None:
        doubt = "?" if advice.is_uncertain(one.name, scale) else ""
        return f"{text} {advice.grade(one.name, scale) + doubt:2}"
    change = advice.change_percent(one.name, up=metric is UP_MBIT)
    return text if change is None or one.kind == "none" else f"{text} ({_signed(change)} %)"


def _estimate(advice: Advice, one: Candidate, metric: Metric) -> str:
    """Write a mean with half the width of its interval, in few digits."""
    mean, low, high = advice.estimates[one.name][metric.column]
    if mean is None:
        return "–"
    digits = metric.digits + (abs(mean) < 1.0)
    half = "" if low is None or high is None else f" ±{(high - low) / 2.0:.{digits}f}"
    return f"{mean:.{digits}f}{half}"


def _signed(change: float) -> str:
    return f"{change:+.0f}".replace("-", "−")


def _notes(advice: Advice, *, everything: bool) -> None:
    for text in advice.warnings:
        say(f"warning: {text}")
    for notice in advice.result.provenance["notices"]:
        say(f"notice: {notice}")
    findings = advice.result.validity.findings
    shown = findings if everything else [one for one in findings if f"{one.severity}" == "error"]
    for finding in shown:
        say(f"{finding.severity}: {finding.text}")


def _document(advice: Advice, device: str) -> dict[str, Any]:
    """Collect the advice for JSON output."""
    result, present = advice.result, advice.question.present
    return {
        "sojourn": result.provenance["sojourn"],
        "scenario_hash": result.scenario.hash,
        "seed": result.scenario.seed,
        "replications": result.scenario.checked.replications,
        "link": _link_document(advice.question.access),
        "present": None if present is None else present.document,
        "configurations": advice.table().to_dicts(),
        "recommended": advice.recommended.name,
        "reason": advice.reason,
        "rule": RULE,
        "grades": [_scale(scale) for scale in SCALES],
        "lines": advice.lines(device),
        "warnings": advice.warnings,
        "validity": [
            {"severity": f"{one.severity}", "text": one.text} for one in result.validity.findings
        ],
    }


def _link_document(access: Access) -> dict[str, Any]:
    """Return the values of a link with their sources."""

    def written(item: Sourced) -> dict[str, Any]:
        return {"value": item.value, "source": item.source, "assumed": item.assumed}

    return {
        "title": access.title,
        "wifi": access.wifi,
        **{key: written(item) for key, item in access.sourced.items()},
    }


def _scale(scale: Scale) -> dict[str, Any]:
    return {
        "measure": scale.metric.column,
        "grades": [{"grade": letter, "bound": bound} for letter, bound in scale.steps],
        "worst": scale.worst,
        "higher_is_better": scale.higher,
        "source": scale.source,
    }


def _show_candidates(compared: Sequence[Candidate]) -> None:
    """Print what would be compared."""
    for one in compared:
        print(_core.printable(f"{one.name}: {_settings(one.up, one.down)}"))
    print()


def _settings(up: Shaping, down: Shaping) -> str:
    """Write the queues and shapers of both directions."""
    sides = (("up", up), ("down", down))
    return "; ".join(f"{side} {shaping.queue}" + _shaped(shaping) for side, shaping in sides)


def _shaped(shaping: Shaping) -> str:
    """Write the shaper above a queue that does not shape itself."""
    if shaping.bits_per_s is None or shaping.is_cake:
        return ""
    layer = "" if shaping.layer is None else f" {shaping.layer.keywords}"
    burst = "" if shaping.burst == "htb" else f" burst {shaping.burst}"
    return f", {shaping.bucket} {rate(shaping.bits_per_s)}{burst}{layer}"
