"""``sojourn compare``: compare queues in both directions of an access link."""

from typing import Annotated

import typer

from sojourn.arguments import Argument
from sojourn.arguments.common import OUTPUT, Fresh
from sojourn.cli import expecting, session
from sojourn.cli.options import Change, DryRun, Expect, Strict
from sojourn.cli.plans import Given, command
from sojourn.cli.run import with_changes
from sojourn.execute.compare import ComparePlan, access_link, line_rates
from sojourn.execute.run import RunPlan
from sojourn.queues.base import texts
from sojourn.queues.queue_file import toml_with_files


@command(ComparePlan, rare=("cc", "ecn", "duration", "on"))
def compare(
    given: Given[ComparePlan],
    *,
    change: Change = (),
    fresh: Fresh = False,
    dry_run: DryRun = False,
    output: session.Output,
    generate: Annotated[
        bool,
        Argument(help="Print the scenario as TOML without running it.", heading=OUTPUT, rare=True),
    ] = False,
    expect: Expect = (),
    strict: Strict = False,
) -> int:
    """Compare queues in both directions of an access link."""
    planned = given.plan()
    rates, queues = line_rates(planned), texts(planned.queues)
    session.warn_of_bytes(rates.down, rates.up, *queues, *change)
    session.note_queues(*queues)
    scenario = with_changes(access_link(planned), change)
    if generate:
        typer.echo(toml_with_files(scenario.to_toml()), nl=False)
        return 0
    request = session.RunRequest(
        run=RunPlan(
            scenario,
            jobs=planned.jobs,
            on=planned.on,
            max_memory=planned.max_memory,
            fresh=fresh,
        ),
        output=output,
        strict=strict,
        expectations=tuple(expecting.all_expectations(expect)),
    )
    return session.describe(request) if dry_run else session.execute(request)
