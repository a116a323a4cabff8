"""The commands and their options."""

from pathlib import Path
from typing import Annotated

import typer

from sojourn import _core, presets, tc
from sojourn import report as reports
from sojourn.cli import catalogue, reproduction, session, tables
from sojourn.overrides import assignment, overridden, refuse_hidden
from sojourn.qdiscs import Queue, qdisc
from sojourn.result import Result
from sojourn.scenario import Scenario
from sojourn.storage import claim_file

app = typer.Typer(
    name="sojourn",
    add_completion=True,
    pretty_exceptions_enable=False,
    help="A laboratory for queue management.",
)

# What the scenario schema takes.
MOST_SEED = 2**63 - 1
# More threads than any machine has processors.
MOST_JOBS = 4096

Seed = Annotated[
    int | None,
    typer.Option(
        min=0,
        max=MOST_SEED,
        metavar="INTEGER",
        help="What random numbers derive from, instead of the scenario's.",
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option(min=1, max=MOST_JOBS, help="Threads; by default one a processor."),
]
Out = Annotated[Path | None, typer.Option(help="Folder to save the result in.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Check everything, run nothing.")]
ReportFile = Annotated[Path | None, typer.Option("--report", help="HTML file to write.")]


def _version(asked: bool) -> None:  # noqa: FBT001 - typer calls it with a flag
    if asked:
        typer.echo(f"sojourn {_core.version()} ({_core.commit()})")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    *,
    version: Annotated[  # noqa: ARG001 - its callback answers
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command()
def run(
    *,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A scenario in TOML.")],
    change: Annotated[
        list[str] | None,
        typer.Option("--set", "-s", help="Change a value, such as links.up.rate=5mbit."),
    ] = None,
    seed: Seed = None,
    jobs: Jobs = None,
    out: Out = None,
    report: ReportFile = None,
    json: Json = False,
    dry_run: DryRun = False,
) -> int:
    """Run a scenario from a file."""
    scenario = _scenario_file(file)
    session.warn_of_bytes(file.read_text(encoding="utf-8"))
    if change:
        changes = dict(assignment(text) for text in change)
        refuse_hidden(scenario, changes)
        scenario = overridden(scenario, changes)
    if seed is not None:
        scenario = scenario.replace(seed=seed)
    plan = session.Plan(scenario=scenario, jobs=jobs, out=out, report=report, json=json)
    return session.describe(plan) if dry_run else session.execute(plan)


@app.command()
def compare(
    *,
    queues: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="QDISC",
            help="Queues as tc writes them; quote one with parameters: 'codel target 13ms'. "
            "By default pfifo, codel, pie and fq_codel.",
        ),
    ] = None,
    link: Annotated[
        str, typer.Option(help="Rates down/up, such as 10/1mbit, or one for both.")
    ] = "10mbit",
    rtt: Annotated[str, typer.Option(help="Round-trip time with empty queues.")] = "50ms",
    traffic: Annotated[
        str,
        typer.Option(
            help=f"One of {', '.join(presets.TRAFFIC_NAMES)}, or several joined by +, such as "
            "web+tcp_1up."
        ),
    ] = "rrul_be",
    cc: Annotated[
        str | None,
        typer.Option(help="Congestion control of all connections, LEDBAT's apart, such as bbr."),
    ] = None,
    ecn: Annotated[bool, typer.Option("--ecn", help="All connections negotiate ECN.")] = False,
    duration: Annotated[str, typer.Option(help="How long a run lasts, in simulated time.")] = "70s",
    warmup: Annotated[str, typer.Option(help="From when on totals count.")] = "15s",
    replications: Annotated[int, typer.Option(help="Runs of each queue.")] = 10,
    seed: Annotated[
        int,
        typer.Option(
            min=0, max=MOST_SEED, metavar="INTEGER", help="What random numbers derive from."
        ),
    ] = 1,
    jobs: Jobs = None,
    out: Out = None,
    report: ReportFile = None,
    json: Json = False,
    dry_run: DryRun = False,
    generate: Annotated[
        bool, typer.Option("--generate", help="Print the scenario as TOML, run nothing.")
    ] = False,
) -> int:
    """Compare queues at both ends of an access link."""
    rates = presets.link_rates(link)
    session.warn_of_bytes(link)
    scenario = presets.access_link(
        rates=rates,
        groups=presets.traffic(traffic, rates, cc=cc, ecn=ecn or None),
        queues=_queues(queues or ["pfifo", "codel", "pie", "fq_codel"]),
        rtt=rtt,
        duration=duration,
        warmup=warmup,
        replications=replications,
        seed=seed,
        name=" ".join(filter(None, [traffic, cc, "ecn" if ecn else "", link])),
    )
    if generate:
        typer.echo(scenario.to_toml(), nl=False)
        return 0
    plan = session.Plan(scenario=scenario, jobs=jobs, out=out, report=report, json=json)
    return session.describe(plan) if dry_run else session.execute(plan)


@app.command()
def qdiscs(
    *,
    name: Annotated[
        str | None, typer.Argument(metavar="QDISC", help="A queue; by default all.")
    ] = None,
    json: Json = False,
) -> int:
    """List the queues and their parameters."""
    return catalogue.show(name, as_json=json)


@app.command("report")
def write_report(
    *,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A saved result.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file; by default DIR/report.html.")
    ] = None,
) -> int:
    """Write an HTML report on a saved result."""
    result = Result.load(folder)
    file = claim_file(folder / "report.html" if output is None else output)
    reports.write(result, file)
    typer.echo(f"report in {file}", err=True)
    return 0


@app.command()
def stats(
    *,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A saved result.")],
    arm: Annotated[str | None, typer.Option(help="An arm; by default the first.")] = None,
    replication: Annotated[int, typer.Option(min=0, help="Which of its runs.")] = 0,
    tc_json: Annotated[
        bool, typer.Option("--tc-json", help="Print what tc -j -s qdisc would.")
    ] = False,
) -> int:
    """Show what each queue of a saved run says of itself."""
    result = Result.load(folder)
    arm = arm or result.arms[0]
    queues = tc.queues(result, arm=arm, replication=replication)
    tables.show_queues(queues, run=f"arm {arm}, run {replication}", as_json=tc_json)
    return 0


@app.command()
def reproduce(
    *,
    study: Annotated[
        str,
        typer.Argument(metavar="STUDY", help="A published study: residential, cocoa, afcd, floq."),
    ],
    replications: Annotated[
        int | None, typer.Option(min=1, help="Runs of each queue and link.")
    ] = None,
    jobs: Jobs = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the results; by default results/STUDY.")
    ] = None,
    papers: Annotated[
        Path | None, typer.Option(help="Folder of the studies; by default that of the checkout.")
    ] = None,
    json: Json = False,
) -> int:
    """Measure a published study again and compare."""
    return reproduction.execute(
        study, replications=replications, jobs=jobs, out=out, papers=papers, as_json=json
    )


def _queues(texts: list[str]) -> dict[str, Queue]:
    """Name each queue by its text; two equal ones would be one arm."""
    named: dict[str, Queue] = {}
    for text in texts:
        name = " ".join(text.split())
        if name in named:
            message = f"queue {name!r} is given twice"
            raise _core.ScenarioError(message)
        named[name] = qdisc(name)
    return named


def _scenario_file(file: Path) -> Scenario:
    try:
        return Scenario.from_file(file)
    except OSError as error:
        message = f"cannot read {file}: {error.strerror}"
        raise _core.ScenarioError(message) from None
