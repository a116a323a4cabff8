"""``sojourn run``: run a scenario file."""

import contextlib
import errno
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path

from sojourn import _core
from sojourn.cli import expecting, session
from sojourn.cli.options import Arms, Change, DryRun, Expect, ScenarioFile, Strict
from sojourn.cli.plans import Given, command
from sojourn.errors import alternatives
from sojourn.execute.run import RunPlan
from sojourn.queues.base import queues_in
from sojourn.result.naming import links_of
from sojourn.scenario import Scenario
from sojourn.scenario.files import Tables, read_scenario, read_standard_input, split
from sojourn.scenario.model import check_arm
from sojourn.scenario.paths import assignment, overridden

# Its parent is the working directory, to which paths in the scenario are relative.
STANDARD_INPUT = Path("-")
_EXPECTED = (
    "expected a scenario file, which 'sojourn compare --generate' prints, and for a router with "
    "SQM 'sojourn import /etc/config/sqm'"
)


@command(RunPlan)
def run(
    given: Given[RunPlan],
    *,
    file: ScenarioFile,
    change: Change = (),
    arm: Arms = (),
    dry_run: DryRun = False,
    output: session.Output,
    expect: Expect = (),
    strict: Strict = False,
) -> int:
    """Run a scenario file; - reads it from standard input."""
    scenario, tables = opened(file, change)
    if arm:
        scenario = only(scenario, arm)
    request = session.RunRequest(
        run=given.plan(scenario=scenario),
        output=output,
        strict=strict,
        expectations=tuple(expecting.all_expectations(expect, tables)),
    )
    return session.describe(request) if dry_run else session.execute(request)


def changed(file: Path, change: Sequence[str]) -> Scenario:
    """Read a scenario file, apply the changes of the command line and print notes on them."""
    return opened(file, change)[0]


def opened(file: Path, change: Sequence[str]) -> tuple[Scenario, Tables]:
    """Read a scenario file as :func:`changed` does, with its tables that are no scenario."""
    text, scenario = scenario_file(file)
    session.warn_of_bytes(text, *change)
    return with_changes(scenario, change), split(text, named(file))[1]


def with_changes(scenario: Scenario, change: Sequence[str]) -> Scenario:
    """Apply the changes of the command line and print notes on them."""
    if not change:
        return scenario
    changes = dict(assignment(text) for text in change)
    session.note_queues(*queues_in(changes))
    _check_links(changes, scenario)
    changed = overridden(scenario, changes)
    if "name" not in changes:
        changed = changed.replace(name=f"{scenario.checked.name} ({', '.join(change)})")
    for path in changes:
        session.note_unreached(path, scenario.checked.arms_that_set(path))
    return changed


def _check_links(paths: Iterable[str], scenario: Scenario) -> None:
    """Check that no path names all links: only parameters of sweeps and searches may."""
    for path in paths:
        if path.startswith("links.*"):
            links = alternatives(f"links.{link}" for link in sorted(links_of(scenario.checked)))
            message = f"{path}: * is not possible here; expected {links}"
            raise _core.ScenarioError(message)


def only(scenario: Scenario, names: Sequence[str]) -> Scenario:
    """Return a scenario with some of its arms, in this order."""
    for name in names:
        check_arm(scenario, name)
    by_name = {arm.name: arm for arm in scenario.arms}
    chosen = dict.fromkeys(name for name in names if name in by_name)
    return scenario.replace(arms=[by_name[name] for name in chosen])


def named(file: Path) -> str:
    """Write the name of a scenario file in messages."""
    return "standard input" if file == STANDARD_INPUT else f"{file}"


def scenario_file(file: Path) -> tuple[str, Scenario]:
    """Read a scenario file once, because it may change; return its text and the scenario."""
    piped = file == STANDARD_INPUT
    try:
        text = read_standard_input() if piped else read_scenario(file)
    except OSError as error:
        message = f"cannot read {file}: {error.strerror}"
        if error.errno == errno.ENOENT and not file.suffix:
            # Not the name of a file in TOML: perhaps that of a queue, of a line or of SQM.
            message += f"; {_EXPECTED}"
        raise _core.ScenarioError(message) from None
    try:
        scenario = Scenario.from_toml(text, file.parent)
    except _core.ScenarioError as error:
        message = f"{named(file)}: {error}"
        raise _core.ScenarioError(message) from None
    with contextlib.suppress(tomllib.TOMLDecodeError):  # a later TOML, which the core reads
        session.note_queues(*queues_in(tomllib.loads(text)))
    return text, scenario
