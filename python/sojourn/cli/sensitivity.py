"""``sojourn sensitivity``: compute how much each parameter affects a metric."""

from typing import Annotated, Any

import typer

from sojourn.arguments import ArgumentError
from sojourn.arguments.common import POINTS
from sojourn.cli import searching, spaces
from sojourn.cli.options import Change, DryRun, Force, Json
from sojourn.cli.plans import Given, command
from sojourn.cli.searching import estimate
from sojourn.cli.spaces import Link, Origin, QueueOption, Rtt, ScenarioOrPreset
from sojourn.cli.tables import print_note, print_table
from sojourn.result.formatting import counted
from sojourn.search.sensitivity import SensitivityPlan, SensitivityResult, execute, prepared

_SHOWN = {
    "sobol": (("first", "first order"), ("total", "total order")),
    "morris": (("mu_star", "μ*"), ("mu", "μ"), ("sigma", "σ")),
}


@command(SensitivityPlan)
def sensitivity(
    given: Given[SensitivityPlan],
    *,
    file: ScenarioOrPreset,
    change: Change = None,
    link: Link = None,
    rtt: Rtt = None,
    queue: QueueOption = None,
    out: searching.Out = None,
    force: Force = False,
    json: Json = False,
    dry_run: DryRun = False,
    where: Annotated[
        list[str] | None,
        typer.Option(
            hidden=True,
            metavar="CONDITION",
            rich_help_panel=POINTS,
            help="Not possible, because the indices need all points of their design.",
        ),
    ] = None,
) -> int:
    """Compute how much each parameter affects metrics."""
    if where:
        rule = (
            "not possible, because the indices of Sobol and Morris need all points of their "
            "design; expected ranges in which all points meet the condition"
        )
        raise ArgumentError("where", where[0], rule)
    origin = Origin(file=file, link=link, rtt=rtt, queue=queue, change=change)
    plan = given.plan(*origin.read())
    planned = prepared(plan)
    spaces.check_changes(change, planned.changed, "analysis")
    return searching.conduct(
        plan,
        planned,
        execute,
        kind=SensitivityResult,
        size=f"sensitivity: {counted(planned.points, 'point')}",
        output=searching.Output(out=out, force=force, json=json, dry_run=dry_run),
        show=_show,
        document=_document,
    )


def _show(result: SensitivityResult) -> None:
    shown = _SHOWN[result.method]
    name = result.scenario.checked.name
    for noise in result.noise.iter_rows(named=True):
        metric = noise["metric"]
        of_metric = result.indices.filter(result.indices["metric"] == metric)
        rows = [
            [row["parameter"], *(_index(row, index) for index, _ in shown)]
            for row in of_metric.iter_rows(named=True)
        ]
        print_table(
            ["parameter", *(heading for _, heading in shown)],
            rows,
            title=f"{name}: {metric}, index [95 % interval]",
        )
        spread = f"{metric}: mean {noise['mean']:.4g}, standard deviation between points "
        spread += f"{noise['deviation']:.3g}"
        if noise["noise"] is None:
            print_note(f"{spread}; noise unknown; expected --replications of at least 2")
        else:
            print_note(f"{spread}; about {100 * noise['noise']:.2g} % of their variance is noise")
        print()


def _index(row: dict[str, Any], name: str) -> str:
    return estimate(row[name], row.get(f"{name}_low"), row.get(f"{name}_high"))


def _document(result: SensitivityResult) -> dict[str, Any]:
    return {
        **{key: value for key, value in result.manifest.items() if key != "scenario"},
        "indices": result.indices.to_dicts(),
        "noise": result.noise.to_dicts(),
    }
