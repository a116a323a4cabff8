"""``sojourn tune``: find the best settings."""

import shlex
from typing import Any

from sojourn.cli import searching
from sojourn.cli.options import Change
from sojourn.cli.plans import Given, command
from sojourn.cli.searching import estimate
from sojourn.cli.spaces import Line, Origin, ScenarioOrPreset
from sojourn.cli.tables import print_note, print_table
from sojourn.result.formatting import counted
from sojourn.search.tune import TunePlan, TuneResult, execute, prepared


@command(TunePlan, table="tune")
def tune(
    given: Given[TunePlan],
    *,
    file: ScenarioOrPreset,
    change: Change = None,
    line: Line,
    output: searching.Output,
) -> int:
    r"""Find the parameter values that are best in one or several objectives.

    The table \[tune] of the file gives the values of options that are left out.
    """
    origin = Origin(file=file, line=line, change=change)
    plan = given.plan(*origin.read())
    planned = prepared(plan)
    return searching.conduct(
        plan,
        planned,
        execute,
        kind=TuneResult,
        size=f"tune: {counted(planned.trials, 'trial')}",
        output=output,
        show=lambda result: _show(result, _command(result, origin, plan.arm)),
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
