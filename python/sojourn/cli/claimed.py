"""``sojourn reproduce`` on a study that has claims but no numbers."""

import json
from pathlib import Path

import polars as pl
from rich.console import Console

from sojourn import claims as claiming
from sojourn.cli import scenarios
from sojourn.cli.tables import print_table
from sojourn.result import Result

_NOTE = (
    "measured: means over the runs, with the smallest and the largest; a claim that names another "
    "arm is on the ratio to it"
)


def execute(
    folder: Path, *, replications: int | None, jobs: int | None, out: Path | None, as_json: bool
) -> int:
    """Run every scenario of the study in `folder`, check its claims, save results and reports."""
    study = claiming.load(folder)
    kept = out or Path("results") / study.name
    told = {}
    runs = scenarios.results(study.scenarios, kept, replications=replications, jobs=jobs)
    for key, result in runs:
        measured = claiming.quantities(result)
        told[key] = (measured, claiming.checked(study.claims, key, measured))
        if not as_json:
            _show(result, *told[key])
    if as_json:
        print(json.dumps({key: _as_dicts(*tables) for key, tables in told.items()}, indent=2))
    else:
        print(_NOTE)
        print(verdict(study.name, pl.concat([claims for _, claims in told.values()])))
    said = Console(stderr=True, soft_wrap=True, highlight=False)
    for key in told:
        said.print(f"report in {kept / key / 'report.html'}", markup=False)
    return 0


def _as_dicts(measured: pl.DataFrame, claims: pl.DataFrame) -> dict[str, list[dict[str, object]]]:
    return {"measured": measured.to_dicts(), "claims": claims.to_dicts()}


def _show(result: Result, measured: pl.DataFrame, claims: pl.DataFrame) -> None:
    names = measured["quantity"].unique(maintain_order=True).to_list()
    rows = []
    for arm in result.arms:
        of_arm = {row["quantity"]: row for row in measured.filter(arm=arm).to_dicts()}
        rows.append([arm, *(_spread(of_arm[name]) for name in names)])
    print_table(["arm", *names], rows, title=result.scenario.checked.name, words=1)
    for row in claims.iter_rows(named=True):
        print(f"{'holds' if row['holds'] else 'MISSED'}: {sentence(row)}")
    print()


def _spread(row: dict[str, float]) -> str:
    return f"{row['mean']:.4g} ({row['low']:.4g} to {row['high']:.4g})"


def sentence(row: dict[str, object]) -> str:
    """Write a claim and what was measured."""
    of = f"{row['arm']} {row['quantity']}"
    if row["than"] is not None:
        of += f" / {row['than']}'s"
    bounds = [f"at least {row['least']:g}"] if row["least"] is not None else []
    bounds += [f"at most {row['most']:g}"] if row["most"] is not None else []
    return f"{of} {row['value']:.4g}, claimed {' and '.join(bounds)} ({row['origin']})"


def verdict(name: str, claims: pl.DataFrame) -> str:
    """Say how many claims hold, arm by arm."""
    parts = [
        f"{arm} {rows['holds'].sum()} of {rows.height}"
        for (arm,), rows in claims.group_by("arm", maintain_order=True)
    ]
    held = f"{claims['holds'].sum()} of {claims.height} claims hold"
    return f"verdict on {name}: {held}: {', '.join(parts)}"
