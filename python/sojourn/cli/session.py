"""Run a scenario for the command line: prepare directories, run, print, save.

Each run is stored when it ends. The same command, repeated, uses the runs that an interrupted one
has stored, and the complete result that the output directory contains already.
"""

import json as js
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from sojourn import _core
from sojourn import report as reports
from sojourn.arguments import Plan
from sojourn.arguments.common import Force, Json
from sojourn.cli import continued, expecting, printed, process
from sojourn.cli.options import Everything, Out, ReportFile, spell_options
from sojourn.cli.process import say, tolerated
from sojourn.cli.progress import progress_bar, work_of
from sojourn.execute.executor import jobs_at_once
from sojourn.execute.run import RunPlan
from sojourn.expectations.expectation import Expectation
from sojourn.expectations.judging import Measured, failed
from sojourn.result import Result, budget, captures, derived_files, formatting, storage
from sojourn.result.validity import Finding, Severity

ENVIRONMENT = 3
INVALID = 4
MAX_NOTES = 10
# Estimates of less processor time than this say no more.
LEAST_CPU_S = 0.01
# A value of the scenario in the text of a finding.
CHANGE = re.compile(r"\b(?:replications|warmup|duration)=(?=\w)")
# Rates in bytes per second: tc reads them so, but users often mean bits.
BYTES_PER_SECOND = re.compile(r"\b[\d.]+\s*[kmgt]?i?bps\b", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Output(Plan):
    """Where the result of a command is saved, and how it is printed."""

    out: Out = None
    force: Force = False
    report: ReportFile = None
    json: Json = False
    everything: Everything = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """A scenario to run and what to do with the result."""

    run: RunPlan
    output: Output
    strict: bool = False
    expectations: tuple[Expectation, ...] = ()
    show: Callable[[Result], object] | None = None
    # Writes the report in place of the report of a result.
    page: Callable[[Result], str] | None = None

    @property
    def stored(self) -> bool:
        """Whether the series of the runs stay in the run store."""
        return self.run.pcap is None


class Saved(Enum):
    """Where the result of a command is after it was saved."""

    AS_WANTED = auto()
    # On a disk, but not all of it where it was wanted.
    ELSEWHERE = auto()
    NOWHERE = auto()


def warn_of_bytes(*texts: str) -> None:
    """Warn about rates in bytes per second in texts of the user."""
    found = (rate for text in texts for rate in BYTES_PER_SECOND.findall(text))
    for rate in dict.fromkeys(found):
        megabits = _core.parse_rate_bits_per_s(rate) / 1e6
        say(f"warning: {rate} is a rate in bytes per second, as in tc: {megabits:g} Mbit/s")


def note_queues(*queues: str) -> None:
    """Print what ``tc`` reads otherwise than a reader of these queues may expect."""
    found = (note for text in queues for note in _core.qdisc_notes(text))
    say_notes(list(dict.fromkeys(found)))


def note_unreached(path: str, arms: list[str]) -> None:
    """Print a note that names the arms on which an override of `path` has no effect."""
    if arms:
        names = ", ".join(f'"{name}"' for name in arms)
        text = f"note: -s {path}: no effect on the arms that set this value themselves: {names}"
        say(text)


def say_notes(notes: list[str]) -> None:
    """Print the notes on a scenario, at most the first `MAX_NOTES`."""
    for note in notes[:MAX_NOTES]:
        say(f"note: {note}")
    if len(notes) > MAX_NOTES:
        say(f"note: and {len(notes) - MAX_NOTES} more notes")


def describe(request: RunRequest) -> int:
    """Print the plan of the runs, their estimate, and where the result would be saved."""
    checked = request.run.scenario.checked
    _core.check_backend(checked, request.run.on)
    _check_capture(request)
    expecting.check_names(request.expectations, request.run.scenario)
    say_notes(checked.notes)
    estimate = budget.estimate(
        checked,
        jobs=request.run.jobs,
        max_memory=request.run.max_memory,
        backend=request.run.on,
        stored=request.stored,
    )
    refused = estimate["refused"]
    if refused is None:
        _warn_of_memory(request)
    else:
        spell_options(refused)
    if request.output.json:
        document = {
            "scenario": checked.name,
            "scenario_hash": checked.hash,
            "duration_s": checked.duration_s,
            "arms": checked.arms,
            "replications": checked.replications,
            "estimate": {**estimate, "refused": None if refused is None else f"{refused}"},
        }
        print(js.dumps(document, indent=2))
        return _accepted(estimate)
    print(
        f"{_core.printable(checked.name)}: "
        f"{formatting.counted(request.run.scenario.runs, 'run')} of {checked.duration_s:g} s "
        f"(arms: {len(checked.arms)}, replications: {checked.replications})"
    )
    print(f"arms: {_core.printable(', '.join(checked.arms))}")
    concurrent = min(jobs_at_once(request.run.jobs, request.run.on), request.run.scenario.runs)
    print(f"estimate: {_estimated(estimate, concurrent)}")
    place = "not saved (no --out)" if request.output.out is None else f"{request.output.out}"
    print(f"result: {_core.printable(place)}")
    if request.run.pcap is not None:
        print(f"packets: {_core.printable(str(request.run.pcap))}")
    return _accepted(estimate)


def _estimated(estimate: dict[str, Any], jobs: int) -> str:
    """Write an estimate in a line, for a number of concurrent runs."""
    megabytes = f"at most {rounded(estimate['peak_memory_bytes'] / 1e6):,} MB of memory"
    if estimate["real_s"] is not None:
        return f"{estimate['real_s']:,g} s in real time, run after run; {megabytes} for packets"
    events = estimate["events"]
    and_events = "" if events is None else f" and {rounded(events):,} events"
    return (
        f"at most {rounded(estimate['packets']):,} packets{and_events}; "
        f"{cpu_time(estimate['cpu_s'])} of CPU time, "
        f"{cpu_time(estimate['cpu_s'] / jobs)} on {formatting.counted(jobs, 'processor')}; "
        f"{megabytes}"
    )


def _check_capture(request: RunRequest) -> None:
    """Check that the packets can be captured, if they are to be."""
    if request.run.pcap is not None:
        captures.check(
            request.run.scenario.checked,
            request.run.pcap,
            backend=request.run.on,
            force=request.output.force,
        )


def _warn_of_memory(request: RunRequest) -> None:
    """Say how much memory the tables of the runs need if that is much."""
    needed = budget.large_bytes(
        request.run.scenario.checked,
        jobs=request.run.jobs,
        backend=request.run.on,
        stored=request.stored,
    )
    # A user who sets --max-memory needs no warning.
    if needed is None or request.run.max_memory is not None:
        return
    runs = formatting.counted(request.run.scenario.runs, "run")
    say(
        f"warning: {runs} and their tables need up to {rounded(needed / 1e9):g} GB of memory; "
        "sojourn sweep keeps only one row per run"
    )


def _accepted(estimate: dict[str, Any]) -> int:
    """Return the exit code of a dry run; a scenario that would be refused raises the same error."""
    if estimate["refused"] is not None:
        raise estimate["refused"]
    return 0


def cpu_time(seconds: float) -> str:
    """Write an estimate of the processor time."""
    if seconds < LEAST_CPU_S:
        return f"less than {LEAST_CPU_S:g} s"
    return f"about {rounded(seconds):,} s"


def rounded(number: float) -> float:
    """Round to two digits."""
    shown = float(f"{number:.2g}")
    return int(shown) if shown >= 1 else shown


def execute(request: RunRequest) -> int:
    """Run, print and save; after an interrupt, save the finished runs."""
    _check_capture(request)
    expecting.check_names(request.expectations, request.run.scenario)
    # Before any directory is created.
    _core.check_backend(request.run.scenario.checked, request.run.on)
    budget.check(
        request.run.scenario.checked,
        jobs=request.run.jobs,
        max_memory=request.run.max_memory,
        stored=request.stored,
    )
    resumed = None
    out, scenario = request.output.out, request.run.scenario
    if out is not None and out.is_dir() and not request.run.fresh and request.run.pcap is None:
        # Reserving the directory also finishes a commit that was interrupted.
        with storage.claimed(out, force=True):
            if (finished := continued.saved_result(scenario, out, request.run.on)) is not None:
                return _show_again(finished, request)
            resumed = scenario if continued.is_incomplete(out) else None
    _warn_of_memory(request)
    with (
        storage.claimed(request.output.out, force=request.output.force, resumed=resumed) as claim,
        derived_files.claimed(request.output.report),
    ):
        say_notes(request.run.scenario.checked.notes)
        work = work_of(request.run.scenario, jobs=request.run.jobs, backend=request.run.on)
        with progress_bar(work) as progress:
            execution = continued.run(
                request.run.scenario,
                jobs=request.run.jobs,
                progress=progress,
                backend=request.run.on,
                fresh=request.run.fresh,
                max_memory=request.run.max_memory,
                pcap=request.run.pcap,
                force=request.output.force,
            )
        saved, code = conclude(execution.result, request, claim)
        code = code or _conclude_capture(execution, request)
    execution.end(kept=saved is not Saved.NOWHERE)
    return code or _verdict(execution.result, request)


def _conclude_capture(execution: continued.KeptResult, request: RunRequest) -> int:
    """Say where the packets are; return the exit code."""
    if request.run.pcap is None:
        return 0
    if execution.not_captured is not None:
        say(f"sojourn: {execution.not_captured}")
        return ENVIRONMENT
    say(f"wrote packets to {request.run.pcap}")
    return 0


def _show_again(result: Result, request: RunRequest) -> int:
    """Print a result that was complete before the command, and write its report."""
    runs = formatting.counted(result.total, "run")
    place = f"{request.output.out} contains the complete result of {runs}"
    say(f"{place}; {continued.FRESH} --force repeats them")
    _show(result, request)
    if request.output.report is not None:
        with derived_files.claimed(request.output.report):
            reports.write(result, request.output.report, request.page)
        say(f"wrote report to {request.output.report}")
    return _verdict(result, request)


def _verdict(result: Result, request: RunRequest) -> int:
    """Return the exit code of a complete result: that of its validity, then of expectations."""
    judgements = expecting.judged(request.expectations, _measured(result, request))
    code = expecting.FAILED if failed(judgements) else 0
    return judged([result], strict=request.strict) or code


def _measured(result: Result, request: RunRequest) -> list[Measured]:
    """Return what the expectations are judged by; without any, no table is needed."""
    return [expecting.of_result(result)] if request.expectations else []


def judged(results: Iterable[Result], *, strict: bool) -> int:
    """Return the exit code of results: :data:`INVALID` if `strict` and one of them is invalid."""
    return INVALID if strict and any(one.validity.verdict == "invalid" for one in results) else 0


def conclude(result: Result, request: RunRequest, claim: _core.Claim | None) -> tuple[Saved, int]:
    """Print and save a result, complete or not; return where it is, and the exit code."""
    saved = Saved.AS_WANTED
    if result.finished:
        try:
            _show(result, request)
        finally:
            # A broken pipe on standard output must not prevent saving.
            saved = _save(result, request, claim)
    if not result.complete:
        runs = f"{result.finished} of {result.total} runs"
        if request.output.out is None:
            text = f"finished {runs}; not saved (no --out)"
        else:
            is_there = result.finished and saved is Saved.AS_WANTED
            text = f"saved {runs} to {request.output.out}" if is_there else f"finished {runs}"
        if request.run.pcap is not None and captures.is_capture(captures.partial(request.run.pcap)):
            text = f"{text}; its packets are in {captures.partial(request.run.pcap)}"
        say(f"interrupted: {text}")
        return saved, process.exit_code()
    if saved is not Saved.AS_WANTED:
        return saved, ENVIRONMENT
    if request.output.out is not None:
        say(f"saved result to {request.output.out}")
    return saved, 0


def _show(result: Result, request: RunRequest) -> None:
    """Print the errors, the summary, the notices and the other findings of a result."""
    errors = [one for one in result.validity.findings if one.severity is Severity.ERROR]
    _say_findings(errors)
    if request.show is not None:
        with tolerated():
            request.show(result)
        return
    with tolerated():
        # Tables first: an unknown metric in an expectation does not hide them.
        measured = _measured(result, request)
        json, everything = request.output.json, request.output.everything
        judgements = expecting.judged(request.expectations, measured) if json else []
        if json:
            expected = (
                {"expectations": [one.document() for one in judgements]} if judgements else {}
            )
            print(js.dumps({**printed.document(result), **expected}, indent=2))
        else:
            printed.show(result, everything=everything)
            expecting.show(expecting.judged(request.expectations, measured))
    for notice in result.provenance["notices"]:
        say(f"notice: {notice}")
    _say_findings([one for one in result.validity.findings if one not in errors])


def _say_findings(findings: Iterable[Finding]) -> None:
    for finding in findings:
        say(f"{finding.severity}: {with_option(finding.text)}")


def with_option(text: str) -> str:
    """Write a change that a finding recommends as an option to paste.

    Examples
    --------
    >>> with_option("n = 1. Use replications=10.")
    'n = 1. Use -s replications=10.'
    """
    return CHANGE.sub(r"-s \g<0>", text)


def _save(result: Result, request: RunRequest, claim: _core.Claim | None) -> Saved:
    """Save a result and its report."""
    saved = Saved.AS_WANTED
    if claim is not None:
        try:
            storage.save(result, claim)
        except storage.NotSavedError as error:
            say(f"sojourn: {error}")
            saved = Saved.NOWHERE if error.place is None else Saved.ELSEWHERE
    if request.output.report is not None:
        try:
            reports.write(result, request.output.report, request.page)
        except _core.ResultError as error:
            say(f"sojourn: {error}")
            # A result on a disk can have its report later.
            return Saved.NOWHERE if claim is None or saved is Saved.NOWHERE else Saved.ELSEWHERE
        say(f"wrote report to {request.output.report}")
    return saved
