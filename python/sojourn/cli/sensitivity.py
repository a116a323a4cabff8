"""``sojourn sensitivity``: compute how much each parameter affects a metric."""

from typing import Annotated, Any

import typer

from sojourn import _core
from sojourn.cli import searching, spaces
from sojourn.cli.options import Change, Jobs, Json, MaxMemory, ResumeAccepted, Seed
from sojourn.cli.places import On, Store
from sojourn.cli.searching import estimate
from sojourn.cli.spaces import Link, Origin, QueueOption, Rtt, ScenarioOrPreset
from sojourn.cli.tables import print_note, print_table
from sojourn.result.formatting import counted
from sojourn.search import SensitivityResult, analysing

_SHOWN = {
    "sobol": (("first", "first order"), ("total", "total order")),
    "morris": (("mu_star", "μ*"), ("mu", "μ"), ("sigma", "σ")),
}


def sensitivity(
    *,
    file: ScenarioOrPreset,
    parameter: searching.Parameters = None,
    where: Annotated[list[str] | None, typer.Option(hidden=True)] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            metavar="METRIC",
            help="A metric, such as ping_ms_p99, or an expression of metrics; repeatable.",
        ),
    ] = None,
    method: Annotated[
        str, typer.Option(help="sobol (shares of the variance) or morris (screening, fewer runs).")
    ] = "sobol",
    samples: Annotated[
        int | None,
        typer.Option(
            help="Samples of Sobol, a power of two (default "
            f"{analysing.SAMPLES['sobol']}), or trajectories of Morris (default "
            f"{analysing.SAMPLES['morris']})."
        ),
    ] = None,
    replications: Annotated[
        int, typer.Option(help="Runs per point; the analysis uses their mean.")
    ] = analysing.REPLICATIONS,
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
    """Compute how much each parameter affects metrics."""
    if where:
        message = (
            f"--where {where[0]}: not possible, because the indices of Sobol and Morris need all "
            "points of their design; expected ranges in which all points meet the condition"
        )
        raise _core.ScenarioError(message)
    origin = Origin(file=file, link=link, rtt=rtt, queue=queue, change=change, seed=seed)
    scenario, _ = origin.read()
    planned = analysing.analysis(
        scenario,
        spaces.parameters(parameter),
        metric or [],
        arm=arm,
        method=method,
        samples=samples,
        replications=replications,
    )
    spaces.check_changes(change, planned.changed, "analysis")
    return searching.conduct(
        planned,
        analysing.execute,
        kind=SensitivityResult,
        size=f"sensitivity: {counted(planned.points, 'point')}",
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
