"""``sojourn agree``: run a scenario simulated and live, and compare the results."""

import json as js
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

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
FOLDERS = {SIMULATOR: "sim", LIVE: "live"}


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
            help="Directory to save both results in, as sim and live, with the page "
            f"{PAGE}; created if needed, with its parents.",
            metavar="DIR",
            heading=OUTPUT,
        ),
    ] = None,
    force: Force = False,
    report: ReportFile = None,
    json: Json = False,
    strict: Strict = False,
) -> int:
    """Run a scenario both simulated and live, and compare the results."""
    read = changed(file, change)
    planned = given.plan(scenario=read)
    scenarios = scenarios_of(planned)
    jobs, scenario = planned.jobs, scenarios[LIVE]
    for one in scenarios.values():
        budget.check(one.checked, jobs=jobs, max_memory=planned.max_memory)
    places = {} if out is None else {name: out / folder for name, folder in FOLDERS.items()}
    with ExitStack() as stack:
        claims = {
            name: stack.enter_context(_claimed(place, scenarios[name], force=force, fresh=fresh))
            for name, place in places.items()
        }
        if out is not None:
            stack.enter_context(derived_files.claimed(derived_files.inside(out, PAGE)))
        stack.enter_context(derived_files.claimed(report))
        session.say_notes(scenario.checked.notes)
        # Live first, so that a machine that cannot do live runs fails at once.
        executions: list[continued.KeptResult] = []
        for backend in (LIVE, SIMULATOR):
            execution = _executed(
                scenarios[backend],
                backend,
                jobs=jobs,
                fresh=fresh,
                max_memory=planned.max_memory,
            )
            executions.append(execution)
            if not executions[-1].result.complete:
                return _interrupted(executions, backend)
        live, simulated = (execution.result for execution in executions)
        agreement = Agreement(simulated, live)
        _show(agreement, as_json=json)
        kept = _save({SIMULATOR: simulated, LIVE: live}, claims)
        for execution in executions:
            execution.end(kept=kept)
        if not kept:
            return session.ENVIRONMENT
        _write(agreement, out, report)
    return session.judged([simulated, live], strict=strict)


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
    what = "live runs" if backend == LIVE else "simulated runs"

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
    what = "live" if backend == LIVE else "simulated"
    say(f"interrupted: finished {last.result.finished} of {last.result.total} {what} runs")
    for execution in earlier:
        if execution.invocation is not None:
            execution.invocation.close()
    last.end(kept=False)
    if earlier and not last.result.finished and last.invocation is not None:
        say(f"to continue: {continued.continuation()}")
    return process.exit_code()


def _show(agreement: Agreement, *, as_json: bool) -> None:
    """Print the table, the failed checks of live runs and the findings."""
    with tolerated():
        if as_json:
            print(js.dumps(_document(agreement), indent=2))
        else:
            answer = wording.answer(agreement.table)
            print_note(f"Simulated and live: {answer}.")
            print()
            title = f"{agreement.simulated.scenario.checked.name}: simulated and live"
            found = wording.tables(agreement.table)
            for table in found:
                arm = f", {table.title}" if len(found) > 1 else ""
                print_table(replace(table, title=f"{title}{arm}"))
            print_note(wording.note(agreement.table))
    for line in wording.failures(agreement.failed_checks):
        say(f"error: {line}")
    named = {check.arm for check in agreement.failed_checks}
    if named:
        arms = ", ".join(one for one in agreement.simulated.arms if one in named)
        say(f"error: do not draw conclusions from rows marked {wording.INVALID}: {arms}")
    _say_findings(agreement)


def _say_findings(agreement: Agreement) -> None:
    """Print the errors and warnings of both results, except failed checks."""
    found: dict[tuple[str, str], list[str]] = {}
    for name, result in (("simulated", agreement.simulated), ("live", agreement.live)):
        for finding in result.validity.findings:
            if finding.severity != "note" and "failed the backend check" not in finding.text:
                found.setdefault((finding.severity, finding.text), []).append(name)
    for (severity, text), names in found.items():
        say(f"{severity}: {' and '.join(names)}: {session.with_option(text)}")


def _document(agreement: Agreement) -> dict[str, Any]:
    """Collect the data of the table for JSON output."""
    results = {"simulated": agreement.simulated, "live": agreement.live}
    scenario = agreement.simulated.scenario
    return {
        "scenario": scenario.checked.name,
        "scenario_hash": scenario.hash,
        "seed": scenario.seed,
        "replications": scenario.checked.replications,
        "sojourn": agreement.simulated.provenance["sojourn"],
        "live_backend": agreement.live.provenance.get("backend"),
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
    """Save both results; return whether both were saved."""
    kept = True
    for name, claim in claims.items():
        try:
            storage.save(results[name], claim)
        except storage.NotSavedError as error:
            say(f"sojourn: {error}")
            kept = False
    return kept


def _write(agreement: Agreement, out: Path | None, report: Path | None) -> None:
    """Write the page to the requested directory and file."""
    if out is not None:
        say(f"saved results to {', '.join(str(out / name) for name in FOLDERS.values())}")
    files = [
        *([] if out is None else [derived_files.inside(out, PAGE)]),
        *([report] if report else []),
    ]
    if not files:
        return
    text = agreement.to_html()
    for file in files:
        page.write(text, file)
        say(f"wrote report to {file}")
