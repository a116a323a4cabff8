"""``sojourn tune``: find the best settings."""

import shlex
from dataclasses import replace
from typing import Annotated, Any

import typer

from sojourn.cli import searching, spaces
from sojourn.cli.options import Change, Jobs, Json, MaxMemory, ResumeAccepted, Seed
from sojourn.cli.places import On, Store
from sojourn.cli.searching import estimate
from sojourn.cli.spaces import Link, Origin, QueueOption, Rtt, ScenarioOrPreset, Where
from sojourn.cli.tables import print_note, print_table
from sojourn.result.formatting import counted
from sojourn.search import TuneResult, tuning
from sojourn.search.tune_table import tune_table
from sojourn.sweeps.origins import naming_keys


def tune(
    *,
    file: ScenarioOrPreset,
    parameter: searching.Parameters = None,
    where: Where = None,
    objective: Annotated[
        list[str] | None,
        typer.Option(
            metavar="OBJECTIVE",
            help="min or max and a metric or an expression of metrics, such as 'min ping_ms_p99' "
            "or 'max goodput_down'; repeatable.",
        ),
    ] = None,
    trials: Annotated[
        int | None, typer.Option(help=f"Number of trials (default {tuning.TRIALS}).")
    ] = None,
    replications: Annotated[
        int | None, typer.Option(help=f"Runs per trial (default {tuning.REPLICATIONS}).")
    ] = None,
    intervals: Annotated[
        int | None,
        typer.Option(
            help="Runs per trial on the Pareto front, with seeds new to the search (default "
            f"{tuning.INTERVALS})."
        ),
    ] = None,
    change: Change = None,
    arm: searching.Arm = None,
    link: Link = None,
    rtt: Rtt = None,
    queue: QueueOption = None,
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
    r"""Find the parameter values that are best in one or several objectives.

    The table \[tune] of the file gives the values of options that are left out.
    """
    origin = Origin(file=file, link=link, rtt=rtt, queue=queue, change=change, seed=seed)
    scenario, tables = origin.read()
    table = tune_table(tables.get("tune", {}))
    given: dict[str, Any] = {
        "objectives": tuple(objective) if objective else None,
        "where": tuple(where) if where else None,
        "arm": arm,
        "trials": trials,
        "replications": replications,
        "intervals": intervals,
    }
    given = {name: value for name, value in given.items() if value is not None}
    chosen = replace(
        table,
        parameters=spaces.parameters(parameter, table.parameters, "tune"),
        keys=table.keys - given.keys(),
        **given,
    )
    planned = chosen.plan(scenario)
    with naming_keys("tune", chosen.keys):
        return searching.conduct(
            planned,
            tuning.execute,
            kind=TuneResult,
            size=f"tune: {counted(planned.trials, 'trial')}",
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
            show=lambda result: _show(result, _command(result, origin, chosen.arm)),
            document=_document,
        )


def _show(result: TuneResult, command: str | None) -> None:
    name = result.scenario.checked.name
    rows = []
    for row in result.front.iter_rows(named=True):
        number = row["trial"]
        mark = "proposed" if number == result.best else "dominated" if row["dominated"] else ""
        rows.append(
            [
                "original" if number is None else f"{number}",
                *("" if number is None else row[path] for path in result.parameters),
                mark,
                *(_estimate(row, one) for one in result.objectives),
                *(
                    "–" if number is None else _estimate(row, f"{one}_change")
                    for one in result.objectives
                ),
            ]
        )
    changes = [f"change of {one.split(' ', 1)[1]}" for one in result.objectives]
    print_table(
        ["trial", *result.parameters, "note", *result.objectives, *changes],
        rows,
        title=f"{name}: Pareto front, mean [95 % interval] with new seeds",
        words=2 + len(result.parameters),
    )
    table = [
        [row["objective"], row["parameter"], estimate(row["importance"], row["low"], row["high"])]
        for row in result.importance.iter_rows(named=True)
    ]
    print_table(
        ["objective", "parameter", "importance"],
        table,
        title="importance of the parameters (PED-ANOVA), share [95 % interval]",
        words=2,
    )
    searching.show_states(result, "an objective was not measured")
    if result.best is not None:
        print_note(f"proposed: trial {result.best}")
        for line in filter(None, [*result.settings().tc, command]):
            # Not wrapped, so that it can be copied.
            print(f"  {line}")


def _command(result: TuneResult, origin: Origin, arm: str | None) -> str | None:
    """Return the command that runs the scenario with the proposed settings."""
    if result.best is None:
        return None
    found = result.settings()
    given = [word for one in origin.changes_beside(found.changes) for word in ("-s", one)]
    if arm is None and not origin.is_preset:
        return f"{shlex.join(['sojourn', 'run', *origin.words(), *given])} {found.options}"
    # `run` takes no preset, and applies -s before the changes of the arm.
    of_arm = [] if arm is None else ["--arm", arm]
    words = ["sojourn", "sweep", *origin.words(), *of_arm, *given]
    return f"{shlex.join(words)} {found.written('-p')}"


def _estimate(row: dict[str, Any], name: str) -> str:
    return estimate(row[name], row[f"{name}_low"], row[f"{name}_high"])


def _document(result: TuneResult) -> dict[str, Any]:
    keys = (
        "sojourn",
        "parameters",
        "objectives",
        "where",
        "seed",
        "seed_of_intervals",
        "best",
        "invalid",
    )
    return {
        **{key: result.manifest[key] for key in keys},
        "settings": {
            number: result.settings(int(number)).document() for number in result.manifest["points"]
        },
        "front": result.front.to_dicts(),
        "importance": result.importance.to_dicts(),
        "trials": result.trials.to_dicts(),
    }
