"""``sojourn agree``: run a scenario in several places, and compare the results."""

import json as js
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from sojourn._core import ScenarioError
from sojourn.agreement import page, wording
from sojourn.agreement.agreement import LIVE, SIMULATOR, Agreement, AgreePlan
from sojourn.agreement.agreement import scenarios as scenarios_of
from sojourn.agreement.comparison import TOLERANCES
from sojourn.arguments import Argument
from sojourn.arguments.common import OUTPUT, Force, Fresh, Json
from sojourn.cli import continued, process, session
from sojourn.cli.options import Change, ReportFile, ScenarioFile, Strict
from sojourn.cli.plans import Given, command
from sojourn.cli.process import say, tolerated
from sojourn.cli.progress import progress_bar, work_of
from sojourn.cli.run import changed
from sojourn.presentation.terminal import print_note, print_table
from sojourn.result import Result, budget, derived_files, storage
from sojourn.scenario import Scenario

# In the directory of --out.
PAGE = "agreement.html"


@command(AgreePlan, rare=("simulated_replications",))
def agree(
    given: Given[AgreePlan],
    *,
    file: ScenarioFile,
    change: Change = (),
    fresh: Fresh = False,
    out: Annotated[
        Path | None,
        Argument(
            help="Directory to save the results in, with a directory for each place, and the "
            f"page {PAGE}, or a page for each place; created if needed, with its parents.",
            metavar="DIR",
            heading=OUTPUT,
        ),
    ] = None,
    force: Force = False,
    report: ReportFile = None,
    json: Json = False,
    strict: Strict = False,
) -> int:
    """Run a scenario simulated and live, or in the kernel, and compare the results."""
    read = changed(file, change)
    planned = given.plan(scenario=read)
    scenarios = scenarios_of(planned)
    others = [place for place in scenarios if place != SIMULATOR]
    if report is not None and len(others) > 1:
        message = "--report writes the page of one place; with several places, use --out"
        raise ScenarioError(message)
    jobs, scenario = planned.jobs, scenarios[others[0]]
    for one in scenarios.values():
        budget.check(one.checked, jobs=jobs, max_memory=planned.max_memory)
    folders = {} if out is None else {name: out / name for name in scenarios}
    pages = {} if out is None else {name: out / _page(name, others) for name in others}
    with ExitStack() as stack:
        claims = {
            name: stack.enter_context(_claimed(place, scenarios[name], force=force, fresh=fresh))
            for name, place in folders.items()
        }
        for place in pages.values():
            stack.enter_context(
                derived_files.claimed(derived_files.inside(place.parent, place.name))
            )
        stack.enter_context(derived_files.claimed(report))
        session.say_notes(scenario.checked.notes)
        # The simulator last, so that a machine that lacks something for the others fails at once.
        executions: dict[str, continued.KeptResult] = {}
        for backend in scenarios:
            executions[backend] = _executed(
                scenarios[backend],
                backend,
                jobs=jobs,
                fresh=fresh,
                max_memory=planned.max_memory,
            )
            if not executions[backend].result.complete:
                return _interrupted(list(executions.values()), backend)
        results = {name: execution.result for name, execution in executions.items()}
        agreements = [Agreement(results[SIMULATOR], results[name]) for name in others]
        _show(agreements, as_json=json)
        kept = _save(results, claims)
        for execution in executions.values():
            execution.end(kept=kept)
        if not kept:
            return session.ENVIRONMENT
        _write(agreements, pages, report)
    return session.judged(list(results.values()), strict=strict)


def _page(place: str, others: list[str]) -> str:
    """Name the page of a place in the directory of the results."""
    return PAGE if len(others) == 1 else f"agreement-{place}.html"


def _kind(backend: str) -> str:
    """Write what the runs of a backend are."""
    return "simulated" if backend == SIMULATOR else backend


def _claimed(
    place: Path, scenario: Scenario, *, force: bool, fresh: bool
) -> AbstractContextManager[Any]:
    """Reserve a directory, in which an incomplete result of the same scenario is replaced."""
    if place.is_dir() and not fresh:
        # Finishes a commit that was interrupted.
        with storage.claimed(place, force=True):
            pass
    resumed = scenario if not fresh and continued.is_incomplete(place) else None
    return storage.claimed(place, force=force, resumed=resumed)


def _executed(
    scenario: Scenario, backend: str, *, jobs: int | None, fresh: bool, max_memory: str | None
) -> continued.KeptResult:
    """Execute the runs of one backend; keep them in the run store."""
    what = f"{_kind(backend)} runs"

    def announce(finished: int, scenario: Scenario) -> None:
        runs = f"{finished} of {scenario.runs} {what}"
        say(f"continuing: {runs} are stored; {continued.FRESH} repeats them")

    with progress_bar(work_of(scenario, jobs=jobs, backend=backend), what) as progress:
        return continued.run(
            scenario,
            jobs=None if backend == LIVE else jobs,
            progress=progress,
            backend=backend,
            fresh=fresh,
            max_memory=max_memory,
            announce=announce,
        )


def _interrupted(executions: list[continued.KeptResult], backend: str) -> int:
    """Keep the finished runs, and say how to continue."""
    *earlier, last = executions
    runs = f"{last.result.finished} of {last.result.total} {_kind(backend)} runs"
    say(f"interrupted: finished {runs}")
    for execution in earlier:
        if execution.invocation is not None:
            execution.invocation.close()
    last.end(kept=False)
    if earlier and not last.result.finished and last.invocation is not None:
        say(f"to continue: {continued.continuation()}")
    return process.exit_code()


def _show(agreements: Sequence[Agreement], *, as_json: bool) -> None:
    """Print the table, the failed checks and the findings."""
    first, *more = agreements
    places = [agreement.place for agreement in agreements]
    with tolerated():
        if as_json:
            documents = [_document(agreement) for agreement in agreements]
            print(js.dumps(documents if more else documents[0], indent=2))
        else:
            for agreement in agreements:
                answer = wording.answer(agreement.table)
                print_note(f"Simulated and {agreement.place}: {answer}.")
            print()
            title = f"{first.simulated.scenario.checked.name}: {_listed(['simulated', *places])}"
            found = wording.tables(first.table, first.place)
            if more:
                found = wording.beside({one.place: one.table for one in agreements})
            for table in found:
                arm = f", {table.title}" if len(found) > 1 else ""
                print_table(replace(table, title=f"{title}{arm}"))
            if not more:
                print_note(wording.note(first.table, first.place))
    for agreement in agreements:
        for line in wording.failures(agreement.failed_checks, agreement.place):
            say(f"error: {line}")
        named = {check.arm for check in agreement.failed_checks}
        if named:
            arms = ", ".join(one for one in agreement.simulated.arms if one in named)
            say(f"error: do not draw conclusions from rows marked {wording.INVALID}: {arms}")
    _say_findings(agreements)


def _listed(names: Sequence[str]) -> str:
    """Write names, such as "simulated, live and linux-6.12"."""
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def _say_findings(agreements: Sequence[Agreement]) -> None:
    """Print the errors and warnings of all results, except failed checks."""
    results = {"simulated": agreements[0].simulated}
    results |= {agreement.place: agreement.measured for agreement in agreements}
    found: dict[tuple[str, str], list[str]] = {}
    for name, result in results.items():
        for finding in result.validity.findings:
            if finding.severity != "note" and "failed the backend check" not in finding.text:
                found.setdefault((finding.severity, finding.text), []).append(name)
    for (severity, text), names in found.items():
        say(f"{severity}: {_listed(names)}: {session.with_option(text)}")


def _document(agreement: Agreement) -> dict[str, Any]:
    """Collect the data of the table for JSON output."""
    results = {"simulated": agreement.simulated, "measured": agreement.measured}
    scenario = agreement.simulated.scenario
    return {
        "scenario": scenario.checked.name,
        "scenario_hash": scenario.hash,
        "seed": scenario.seed,
        "replications": scenario.checked.replications,
        "sojourn": agreement.simulated.provenance["sojourn"],
        "place": agreement.place,
        "backend": agreement.measured.provenance.get("backend"),
        "validity": {
            name: {
                "verdict": result.validity.verdict,
                "findings": [
                    {"severity": finding.severity, "text": finding.text}
                    for finding in result.validity.findings
                ],
            }
            for name, result in results.items()
        },
        "failed_checks": [
            {
                "arm": one.arm,
                "replication": one.replication,
                "name": one.name,
                "value": one.value,
            }
            for one in agreement.failed_checks
        ],
        "tolerances": [
            {"quantity": one.quantity, "relative": one.relative, "absolute": one.absolute}
            for one in TOLERANCES
        ],
        "agreement": agreement.table.to_dicts(),
    }


def _save(results: dict[str, Result], claims: dict[str, Any]) -> bool:
    """Save the results; return whether all were saved."""
    kept = True
    for name, claim in claims.items():
        try:
            storage.save(results[name], claim)
        except storage.NotSavedError as error:
            say(f"sojourn: {error}")
            kept = False
    return kept


def _write(agreements: Sequence[Agreement], pages: Mapping[str, Path], report: Path | None) -> None:
    """Write the pages to the requested directory and file."""
    if pages:
        folder = next(iter(pages.values())).parent
        names = [SIMULATOR, *pages]
        say(f"saved results to {', '.join(str(folder / name) for name in names)}")
    for agreement in agreements:
        place = pages.get(agreement.place)
        inside = None if place is None else derived_files.inside(place.parent, place.name)
        for file in (inside, report):
            if file is not None:
                page.write(agreement.to_html(), file)
                say(f"wrote report to {file}")
