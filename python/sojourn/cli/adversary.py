"""``sojourn adversary``: find the scenario in which an arm loses most against another."""

import json as js
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from sojourn import _core, files
from sojourn.arguments.common import OUTPUT
from sojourn.cli import searching, session, spaces
from sojourn.cli.options import Change, path
from sojourn.cli.plans import Given, command
from sojourn.cli.run import opened
from sojourn.cli.searching import estimate
from sojourn.cli.tables import print_note, print_table
from sojourn.result.formatting import counted
from sojourn.search import regret
from sojourn.search.adversary import AdversaryPlan, AdversaryResult, execute, prepared


@command(AdversaryPlan)
def adversary(
    given: Given[AdversaryPlan],
    *,
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE",
            parser=path,
            help="Scenario file with both arms; by default a built-in scenario, whose arms are "
            "queues of the downlink.",
        ),
    ] = None,
    worst: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            parser=path,
            rich_help_panel=OUTPUT,
            help="Write the simplified scenario to this file.",
        ),
    ] = None,
    change: Change = None,
    output: searching.Output,
) -> int:
    """Find the scenario in which an arm loses most against another, and simplify it."""
    if file is None and change:
        message = f"-s {change[0]}: requires FILE; expected a scenario file, or -p instead of -s"
        raise _core.ScenarioError(message)
    scenario = None
    if file is not None:
        if spaces.names_preset(file):
            message = (
                f"{file}: adversary takes no presets; expected a scenario file with both arms, or "
                "no FILE"
            )
            raise _core.ScenarioError(message)
        scenario, _ = opened(file, change)
    plan = given.plan(scenario, {})
    planned = prepared(plan)
    if worst is not None:
        _check(worst, force=output.force)
    words = shlex.join(["sojourn", *sys.argv[1:]])
    written: list[Path] = []

    def write(result: AdversaryResult) -> None:
        if worst is not None:
            result.write(worst)
            written.append(worst)

    code = searching.conduct(
        plan,
        planned,
        lambda planned, runner: execute(planned, runner, command=words),
        kind=AdversaryResult,
        size=f"adversary: {counted(planned.trials, 'trial')}",
        output=output,
        show=_show,
        document=_document,
        save=write,
    )
    for place in written:
        session.say(f"saved scenario to {place}")
    return code


def _check(worst: Path, *, force: bool) -> None:
    """Check that the scenario may be written."""
    if worst.exists() and not force:
        message = f"--worst {worst}: exists; expected --force or another file"
        raise _core.ResultError(message)
    files.check_writable_file(worst)


def _document(result: AdversaryResult) -> dict[str, Any]:
    worst = result.worst
    return {
        **{key: value for key, value in result.manifest.items() if key != "scenario"},
        "regret": list(result.regret),
        "found": [worst.found, worst.found_low, worst.found_high],
        "worst": js.loads(worst.scenario.checked.to_json()),
    }


def _show(result: AdversaryResult) -> None:
    worst = result.worst
    rows = [
        ["as found", estimate(worst.found, worst.found_low, worst.found_high)],
        ["simplified", estimate(*result.regret)],
    ]
    print_table(
        ["scenario", "regret"],
        rows,
        title=f"{worst.arm} against {worst.against}: regret in {worst.score}, mean [95 % interval] "
        "with new seeds",
    )
    if worst.score == regret.SCORE:
        factor = regret.times(worst.regret)
        power = f"the power (goodput / ping p99) of {worst.arm}"
        print_note(f"{power} is smaller by a factor of {factor}")
    searching.show_states(result, "the score was not measured")
    print(worst.scenario.to_toml())
