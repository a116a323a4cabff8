"""``sojourn sensitivity``: compute how much each parameter affects a metric."""

from typing import Any

from sojourn.cli import searching, spaces
from sojourn.cli.options import Change
from sojourn.cli.plans import Given, command
from sojourn.cli.searching import estimate
from sojourn.cli.spaces import Line, Origin, ScenarioOrPreset
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
    line: Line,
    output: searching.Output,
) -> int:
    """Compute how much each parameter affects metrics."""
    origin = Origin(file=file, line=line, change=change)
    plan = given.plan(*origin.read())
    planned = prepared(plan)
    spaces.check_changes(change, planned.changed, "analysis")
    return searching.conduct(
        plan,
        planned,
        execute,
        kind=SensitivityResult,
        size=f"sensitivity: {counted(planned.points, 'point')}",
        output=output,
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
