"""``sojourn advise``: recommend a shaper for an access link and print its configuration."""

import json as js
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sojourn import _core
from sojourn.advice import page, wording
from sojourn.advice.access import Access
from sojourn.advice.advice import DEVICE, RULE, Advice, AdvicePlan, Question, question
from sojourn.advice.candidates import Candidate
from sojourn.advice.measures import SCALES, Scale
from sojourn.advice.shaping import Shaping, rate
from sojourn.arguments.common import Fresh
from sojourn.cli import session
from sojourn.cli.options import Change, DryRun
from sojourn.cli.plans import Given, command
from sojourn.cli.process import say
from sojourn.cli.run import with_changes
from sojourn.execute.executor import jobs_at_once
from sojourn.execute.run import RunPlan
from sojourn.presentation.model import Table
from sojourn.presentation.terminal import print_aligned, print_note, print_table
from sojourn.queues.base import texts
from sojourn.queues.queue_file import short
from sojourn.result import budget
from sojourn.result.formatting import counted
from sojourn.result.result import Result
from sojourn.result.validity import Severity
from sojourn.scenario.presets import Sourced


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
    session.warn_of_bytes(*rates, *texts(planned.queues), *change)
    session.note_queues(*texts(planned.queues))
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
        page=lambda result: page.html(Advice(asked, result), device),
    )
    if dry_run:
        if not output.json:
            print_table(wording.link_table(asked.access))
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
    print_note(advice.answer)
    if not advice.is_complete:
        return
    print()
    _before_and_after(advice)
    for title, text in advice.lines(device).items():
        print(f"# {title}")
        print(f"{text}\n")
    if everything:
        _explain(advice)
    else:
        print_note("--all: every configuration, the grades, the values of the line, all findings")
    _notes(advice, everything=everything)


def _explain(advice: Advice) -> None:
    """Print every candidate, the rule, the grades and the values of the link."""
    print_table(wording.table(advice))
    print_note(f"recommended: {advice.recommended.name}: {advice.reason}.")
    print_note(RULE)
    print()
    print("grades (?: the 95 % interval contains another grade)")
    for scale in SCALES:
        print_note(f"  {scale.metric.label}: {scale.meaning}. Source: {scale.source}.")
    print()
    print_table(wording.link_table(advice.question.access))


def _before_and_after(advice: Advice) -> None:
    """Print what the recommendation changes: a row per measure."""
    shown = wording.before_and_after(advice)
    head = [wording.TITLE, *(wording.marked(advice, one) for one in shown)]
    rows = [
        [metric.heading, *(wording.cell(advice, one, metric, scale) for one in shown)]
        for metric, scale in wording.MAIN
    ]
    print_aligned(Table(head, rows))


def _notes(advice: Advice, *, everything: bool) -> None:
    for text in advice.warnings:
        say(f"warning: {text}")
    for notice in advice.result.provenance["notices"]:
        say(f"notice: {notice}")
    # Errors are printed before the answer.
    shown = {Severity.WARNING, *([Severity.NOTE] if everything else [])}
    for finding in advice.validity.findings:
        if finding.severity in shown:
            say(f"{finding.severity}: {session.with_option(finding.text)}")


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
            {"severity": f"{one.severity}", "text": one.text} for one in advice.validity.findings
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
    return "; ".join(f"{side} {short(shaping.queue)}" + _shaped(shaping) for side, shaping in sides)


def _shaped(shaping: Shaping) -> str:
    """Write the shaper above a queue that does not shape itself."""
    if shaping.bits_per_s is None or shaping.is_cake:
        return ""
    layer = "" if shaping.layer is None else f" {shaping.layer.keywords}"
    burst = "" if shaping.burst == "htb" else f" burst {shaping.burst}"
    return f", {shaping.bucket} {rate(shaping.bits_per_s)}{burst}{layer}"
