"""``sojourn adversary``: find the scenario in which an arm loses most against another."""

import json as js
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from sojourn import _core, files
from sojourn.cli import searching, session, spaces
from sojourn.cli.options import Change, Jobs, Json, MaxMemory, ResumeAccepted, Seed, path
from sojourn.cli.places import On, Store
from sojourn.cli.run import opened
from sojourn.cli.searching import estimate
from sojourn.cli.spaces import Where
from sojourn.cli.tables import print_note, print_table
from sojourn.result.formatting import counted
from sojourn.search import AdversaryResult, hunting, regret


def adversary(
    *,
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE]",
            parser=path,
            help="Scenario file with both arms; by default a built-in scenario, whose arms are "
            "queues of the downlink.",
        ),
    ] = None,
    arm: Annotated[
        str, typer.Option(metavar="NAME", help="The arm that should lose; without FILE, a queue.")
    ],
    against: Annotated[
        str, typer.Option(metavar="NAME", help="The arm to compare with; without FILE, a queue.")
    ],
    parameter: searching.Parameters = None,
    where: Where = None,
    score: Annotated[
        str,
        typer.Option(
            metavar="SCORE",
            help="min or max and a metric or an expression of metrics. The regret is how much "
            "worse the score of --arm is in runs with the same seed.",
        ),
    ] = regret.SCORE,
    trials: Annotated[int, typer.Option(help="Number of trials.")] = hunting.TRIALS,
    replications: Annotated[
        int, typer.Option(help="Runs per trial and arm.")
    ] = hunting.REPLICATIONS,
    intervals: Annotated[
        int, typer.Option(help="Runs per arm for the printed regret, with new seeds.")
    ] = hunting.INTERVALS,
    keep: Annotated[
        float, typer.Option(help="Share of the regret that the simplified scenario must keep.")
    ] = hunting.KEEP,
    save: Annotated[
        Path | None,
        typer.Option(metavar="PATH", parser=path, help="Write the scenario to this file."),
    ] = None,
    change: Change = None,
    seed: Seed = None,
    jobs: Jobs = None,
    on: On = None,
    store: Store = None,
    max_memory: MaxMemory = None,
    out: searching.Out = None,
    force: searching.Force = False,
    json: Json = False,
    resume: ResumeAccepted = False,  # noqa: ARG001 - stored runs are always reused
    dry_run: searching.DryRun = False,
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
        scenario, _ = opened(file, change, replications=None, seed=seed)
    planned = hunting.hunt(
        scenario,
        spaces.parameters(parameter),
        arm=arm,
        against=against,
        score=score,
        where=where or (),
        trials=trials,
        replications=replications,
        intervals=intervals,
        keep=keep,
        seed=seed,
    )
    if save is not None:
        _check(save, force=force)
    command = shlex.join(["sojourn", *(word for word in sys.argv[1:] if word != "--resume")])
    written: list[Path] = []

    def write(result: AdversaryResult) -> None:
        if save is not None:
            result.write(save)
            written.append(save)

    code = searching.conduct(
        planned,
        lambda planned, laboratory: hunting.execute(planned, laboratory, command=command),
        kind=AdversaryResult,
        size=f"adversary: {counted(trials, 'trial')}",
        options=searching.Options(
            jobs=jobs,
            on=on,
            store=store,
            max_memory=max_memory,
            out=out,
            force=force,
            json=json,
            dry_run=dry_run,
        ),
        show=_show,
        document=_document,
        save=write,
    )
    for place in written:
        session.say(f"saved scenario to {place}")
    return code


def _check(save: Path, *, force: bool) -> None:
    """Check that the scenario may be written."""
    if save.exists() and not force:
        message = f"--save {save}: exists; expected --force or another file"
        raise _core.ResultError(message)
    files.check_writable_file(save)


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
