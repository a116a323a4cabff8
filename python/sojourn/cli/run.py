"""``sojourn run``: run a scenario file."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sojourn import _core
from sojourn.cli import expecting, session
from sojourn.cli.options import (
    Arm,
    Backend,
    Change,
    DryRun,
    Everything,
    Expect,
    Force,
    Fresh,
    Jobs,
    Json,
    MaxMemory,
    Out,
    Pcap,
    Replications,
    ReportFile,
    ScenarioFile,
    Seed,
    Strict,
)
from sojourn.result.naming import links_of
from sojourn.scenario import Scenario
from sojourn.scenario.files import read_scenario, read_standard_input, split
from sojourn.scenario.model import check_arm
from sojourn.scenario.paths import assignment, overridden

# Its parent is the working directory, to which paths in the scenario are relative.
STANDARD_INPUT = Path("-")


def run(
    *,
    file: ScenarioFile,
    change: Change = None,
    arm: Arm = None,
    replications: Replications = None,
    seed: Seed = None,
    jobs: Jobs = None,
    backend: Backend = None,
    max_memory: MaxMemory = None,
    fresh: Fresh = False,
    dry_run: DryRun = False,
    out: Out = None,
    force: Force = False,
    report: ReportFile = None,
    pcap: Pcap = None,
    json: Json = False,
    everything: Everything = False,
    expect: Expect = None,
    strict: Strict = False,
) -> int:
    """Run a scenario file; - reads it from standard input."""
    scenario, tables = opened(file, change, replications=replications, seed=seed)
    if arm is not None:
        scenario = only(scenario, arm)
    plan = session.Plan(
        scenario=scenario,
        jobs=jobs,
        backend=backend,
        max_memory=max_memory,
        out=out,
        force=force,
        report=report,
        json=json,
        everything=everything,
        strict=strict,
        fresh=fresh,
        pcap=pcap,
        expectations=tuple(expecting.all_expectations(expect, tables)),
    )
    return session.describe(plan) if dry_run else session.execute(plan)


def changed(
    file: Path, change: list[str] | None, *, replications: int | None, seed: int | None
) -> Scenario:
    """Read a scenario file, apply the changes of the command line and print notes on them."""
    return opened(file, change, replications=replications, seed=seed)[0]


def opened(
    file: Path, change: list[str] | None, *, replications: int | None, seed: int | None
) -> tuple[Scenario, dict[str, Any]]:
    """Read a scenario file as :func:`changed` does, with its tables that are no scenario."""
    text, scenario = scenario_file(file)
    session.warn_of_bytes(text, *(change or ()))
    tables = split(text)[1]
    return with_changes(scenario, change, replications=replications, seed=seed), tables


def with_changes(
    scenario: Scenario, change: list[str] | None, *, replications: int | None, seed: int | None
) -> Scenario:
    """Apply the changes of the command line and print notes on them."""
    if change:
        changes = dict(assignment(text) for text in change)
        _check_links(changes, scenario)
        before, scenario = scenario, overridden(scenario, changes)
        if "name" not in changes:
            scenario = scenario.replace(name=f"{before.checked.name} ({', '.join(change)})")
        for path in changes:
            session.note_unreached(path, before.checked.arms_that_set(path))
    if replications is not None:
        scenario = scenario.replace(replications=replications)
    if seed is not None:
        scenario = scenario.replace(seed=seed)
    return scenario


def _check_links(paths: Iterable[str], scenario: Scenario) -> None:
    """Check that no path names all links: only parameters of sweeps and searches may."""
    for path in paths:
        if path.startswith("links.*"):
            links = " or ".join(f"links.{link}" for link in sorted(links_of(scenario.checked)))
            message = f"{path}: * is not possible here; expected {links}"
            raise _core.ScenarioError(message)


def only(scenario: Scenario, name: str) -> Scenario:
    """Return a scenario with one of its arms."""
    check_arm(scenario, name)
    return scenario.replace(arms=[arm for arm in scenario.arms if arm.name == name])


def scenario_file(file: Path) -> tuple[str, Scenario]:
    """Read a scenario file once, because it may change; return its text and the scenario."""
    piped = file == STANDARD_INPUT
    try:
        text = read_standard_input() if piped else read_scenario(file)
    except OSError as error:
        message = f"cannot read {file}: {error.strerror}"
        raise _core.ScenarioError(message) from None
    try:
        return text, Scenario.from_toml(text, file.parent)
    except _core.ScenarioError as error:
        message = f"{'standard input' if piped else file}: {error}"
        raise _core.ScenarioError(message) from None
