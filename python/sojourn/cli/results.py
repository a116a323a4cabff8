"""``sojourn report``, ``why``, ``stats``, ``export`` and ``import``: results on pages, in files."""

import json as js
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, TypeVar

from sojourn._core import DamagedResultError, ScenarioError
from sojourn.advice.router_config import as_scenario as routers
from sojourn.advice.router_config.as_scenario import AroundPlan
from sojourn.arguments import Argument
from sojourn.arguments.common import (
    ARM,
    EXECUTION,
    OUTPUT,
    REPLICATION,
    SELECTION,
    Force,
    Json,
)
from sojourn.cli.options import REPORT, Folder, ReportFile, Strict
from sojourn.cli.plans import Given, command
from sojourn.cli.process import say
from sojourn.cli.session import judged
from sojourn.exchange import exporting, importing, measurement
from sojourn.exchange.exporting import ExportPlan
from sojourn.exchange.measurement import Beside, per_run, products
from sojourn.presentation import terminal
from sojourn.presentation.model import Table
from sojourn.report import measured
from sojourn.report.view import details
from sojourn.result import Result, budget, derived_files, formatting, metrics, tc_stats
from sojourn.result.estimates import metrics_of
from sojourn.sweeps import SweepResult
from sojourn.sweeps.page import write_report

T = TypeVar("T")
STANDARD_OUTPUT = Path("-")
# A report needs this many times the memory of the tables, and by default as much as this.
REPORT_FACTOR = 4
REPORT_BYTES = 4 << 30
# The heading of the options for the content of the LaTeX table.
TABLE = "LaTeX table"


@command(rare=("max_memory",))
def report(
    *,
    folder: Folder,
    page: Annotated[
        Path | None,
        replace(REPORT, option="--report", unset="DIR/report.html; none with --latex"),
    ] = None,
    latex: Annotated[
        Path | None,
        Argument(
            help="Write the means of each arm as a LaTeX table to this file, such as delay.tex; - "
            "for standard output.",
            metavar="FILE",
            heading=OUTPUT,
        ),
    ] = None,
    metric: Annotated[
        Sequence[str],
        Argument(
            help="A metric, as in the JSON output of run.",
            unset="the main ones",
            metavar="METRIC",
            heading=TABLE,
        ),
    ] = (),
    group: Annotated[
        str | None,
        Argument(
            help="Report on a traffic group, a class of a queue or a group of applications instead "
            "of the whole run.",
            metavar="NAME",
            heading=TABLE,
        ),
    ] = None,
    baseline: Annotated[
        str | None,
        Argument(
            help="Paired differences from this arm instead of means.", metavar="ARM", heading=TABLE
        ),
    ] = None,
    max_memory: Annotated[
        str | None,
        Argument(
            help="Maximum memory, such as 8gb; a result or sweep that needs more is rejected.",
            unset="4 GiB, or 80 % of the available memory if that is less",
            kind="size",
            metavar="SIZE",
            heading=EXECUTION,
        ),
    ] = None,
    strict: Strict = False,
) -> int:
    """Write an HTML report of a saved result or sweep, or a LaTeX table of a result."""
    if latex is None and (metric or group is not None or baseline is not None):
        message = "--metric, --group and --baseline choose the content of --latex"
        raise ScenarioError(message)
    if (folder / derived_files.SWEEP).exists():
        if latex is not None:
            message = (
                f"--latex: {folder} contains a sweep; expected a result; points.parquet has the "
                "means of the sweep"
            )
            raise ScenarioError(message)
        swept, file = _loaded(SweepResult.load, folder, max_memory), _file(folder, page)
        write_report(swept, file)
        say(f"wrote report to {file}")
        return 0
    result = _loaded(Result.load, folder, max_memory)
    if latex is not None:
        text = result.to_latex(metric or None, group=group, baseline=baseline)
        _write(latex, text, result)
    if latex is None or page is not None:
        file = _file(folder, page)
        write_report(result, file)
        say(f"wrote report to {file}")
    return judged([result], strict=strict)


def _loaded(load: Callable[..., T], folder: Path, max_memory: str | None) -> T:
    """Load a result or a sweep whose report needs at most some memory."""
    limit = budget.limit(max_memory)
    if limit is None or max_memory is None:
        limit = min(REPORT_BYTES, limit or REPORT_BYTES)
    try:
        return load(folder, max_bytes=max(limit // REPORT_FACTOR, 1))
    except DamagedResultError as error:
        if "memory" not in str(error):
            raise
        message = f"{error}; a report needs {REPORT_FACTOR} times the memory; see --max-memory"
        raise DamagedResultError(message) from None


def _file(folder: Path, page: Path | None) -> Path:
    """Return the file of a report; by default in the directory."""
    return derived_files.inside(folder, "report.html") if page is None else page


def _write(file: Path, text: str, result: Result) -> None:
    """Write a table, which replaces only a table."""
    if file == STANDARD_OUTPUT:
        print(text, end="")
        return
    with derived_files.claimed(file, derived_files.TABLE):
        derived_files.write(file, text.encode(), result.manifest_sha256)
    say(f"wrote table to {file}")


@command()
def stats(
    *,
    folder: Folder,
    arm: Annotated[str | None, replace(ARM, unset="the first")] = None,
    replication: Annotated[int, replace(REPLICATION, unset=None)] = 0,
    tc_json: Annotated[
        bool, Argument(help="Print JSON in the format of tc -j -s qdisc.", heading=OUTPUT)
    ] = False,
) -> int:
    """Print the queue statistics of a saved run."""
    result = Result.load(folder)
    arm = arm or result.arms[0]
    queues = tc_stats.queues(result, arm=arm, replication=replication)
    _show_queues(queues, run=f"arm {arm}, replication {replication}", as_json=tc_json)
    return 0


@command()
def why(
    *,
    folder: Folder,
    at: Annotated[
        str | None,
        Argument(
            help="The packet dropped or marked nearest to this time, such as 12.4s, if within "
            "100 ms; else the one that waited longest of those in a queue then.",
            kind="time",
            metavar="TIME",
            heading=SELECTION,
        ),
    ] = None,
    drop: Annotated[
        int | None,
        Argument(
            help="The packet of this drop, mark or loss of the run, counted from 0.",
            least=0,
            metavar="N",
            heading=SELECTION,
        ),
    ] = None,
    slowest: Annotated[
        bool,
        Argument(
            help="The packet that waited longest of those sent after the warm-up, as without {at} "
            "and {drop}.",
            heading=SELECTION,
        ),
    ] = False,
    flow: Annotated[
        str | None,
        Argument(
            help="Consider only this flow: its number, counted from 0, or its name.",
            metavar="FLOW",
            heading=SELECTION,
        ),
    ] = None,
    link: Annotated[
        str | None,
        Argument(help="Consider only this link.", metavar="NAME", heading=SELECTION),
    ] = None,
    arm: Annotated[str | None, replace(ARM, unset="the first")] = None,
    replication: Annotated[int, replace(REPLICATION, unset=None)] = 0,
    out: Annotated[
        Path | None,
        Argument(
            help="Draw the backlog of the link and the window of the sender around this time in "
            "this file: .svg, .pdf, .png or .pgf (LaTeX).",
            short="-o",
            metavar="FILE",
            heading=OUTPUT,
        ),
    ] = None,
    json: Json = False,
) -> int:
    """Explain one packet of a saved run: what it met at a queue, and how its sender reacted."""
    with derived_files.claimed(out, derived_files.FIGURE):
        facts = Result.load(folder).why(
            at=at,
            drop=drop,
            slowest=slowest,
            flow=flow,
            link=link,
            arm=arm,
            replication=replication,
            path=out,
        )
    print(js.dumps(facts, indent=2) if json else f"{facts}")
    if out is not None:
        say(f"wrote figure to {out}")
    return 0


@command(ExportPlan, rare=("replication",))
def export(given: Given[ExportPlan], *, folder: Folder) -> int:
    """Write a saved result in the format of another program."""
    out = _beside(folder, given.options["format"])
    plan = given.plan(result=Result.load(folder), out=out)
    products = exporting.prepared(plan)
    paths = exporting.written(products, Path(plan.out), force=plan.force)
    for note in dict.fromkeys(note for product in products for note in product.notes):
        say(f"note: {note}")
    say(f"wrote {formatting.counted(len(paths), 'file')} to {plan.out}")
    return 0


def _beside(folder: Path, name: str) -> Path:
    """Return the default directory of an export."""
    whole = folder.resolve() if folder.name in {"", ".."} else folder
    return whole.with_name(f"{whole.name}-{name}")


_BESIDE = (
    "measured runs: from the warm-up of the simulated ones to the end of their load; – marks "
    "values missing from a file"
)
_NOTHING_BEHIND = (
    "nothing is behind the queues of the router, so they are the bottleneck; --preset or --link "
    "adds the line"
)
_NOTE = "measured from the start to the end of the load; – marks values missing from a file"


@command(AroundPlan, rare=("name",))
def import_(
    given: Given[AroundPlan],
    *,
    paths: Annotated[
        Sequence[Path],
        Argument(
            help="Measurements: packet captures (pcap, pcapng), JSON of iperf3 and irtt, data "
            "files of flent (format versions 1 to 4), qlog files and logs of Mahimahi's mm-link, "
            "plain or compressed with gzip or bzip2; files with the same title form one arm. "
            "Configurations of routers, printed as a scenario file: a script of tc commands, "
            "output of tc, /etc/config/sqm or the output of uci show sqm, /etc/config/qosify, "
            "that of cake-autorate, a .network file of systemd-networkd, network.json with "
            "ShapedDevices.csv of LibreQoS; - for standard input. The pages of a HAR file are "
            "printed for a scenario file.",
            option="FILE",
            least_items=1,
        ),
    ],
    name: Annotated[
        str | None,
        Argument(
            help="Name of the arm that all files form.",
            unset="the title of each file",
            metavar="NAME",
            heading=SELECTION,
        ),
    ] = None,
    beside: Annotated[
        Path | None,
        Argument(
            help="Show the measured runs beside this saved result, also in the report.",
            metavar="DIR",
            heading=SELECTION,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        Argument(
            help="Directory for the tables as Parquet files, with import.json, which states their "
            "origin; created if needed, with its parents.",
            metavar="DIR",
            heading=OUTPUT,
        ),
    ] = None,
    force: Force = False,
    report: ReportFile = None,
    json: Json = False,
) -> int:
    """Read measurements to compare with a saved result, or configurations as scenario files."""
    if report is not None and beside is None:
        message = "--report: needs --beside DIR, the saved result to compare with"
        raise ScenarioError(message)
    of_measurements = {
        "--name": name,
        "--beside": beside,
        "--out": out,
        "--report": report,
        "--force": force,
        "--json": json,
    }
    if _print_scenario(paths, given, of_measurements):
        return 0
    measurements = importing.measured(paths, name)
    both = None if beside is None else Beside(Result.load(beside), measurements)
    with derived_files.claimed(report):
        if out is not None:
            exporting.written(products(measurements), out, force=force)
        runs = per_run(measurements)
        summary = metrics.summary(runs, metrics_of(runs.columns))
        applications = measurement.by_application(measurements)
        of_applications = measurement.summary_by_application(applications)
        notes = measurement.notes(measurements)
        if json:
            found = {
                "summary": summary.to_dicts(),
                "runs": runs.to_dicts(),
                "applications": of_applications.to_dicts(),
                "flows": measurement.combined(measurements, "flows").to_dicts(),
                "notes": notes,
            }
            if both is not None:
                found["beside"] = both.summary().to_dicts()
            print(js.dumps(found, indent=2))
        else:
            arms = list(dict.fromkeys(one.arm for one in measurements))
            shown = measured.view("measured runs", arms, runs, applications)
            terminal.show(details(shown) if both is None else details(measured.of_beside(both)))
            print(_NOTE if both is None else _BESIDE)
            terminal.show(measured.connections(measurements, both and both.simulated))
        for note in notes:
            say(f"note: {note}")
        if out is not None:
            count = formatting.counted(len(measurements), "measured run")
            say(f"wrote {count} to {out}")
        if both is not None and report is not None:
            measured.write(both, report)
            say(f"wrote report to {report}")
    return 0


def _print_scenario(
    paths: Sequence[Path], given: Given[AroundPlan], of_measurements: Mapping[str, object]
) -> bool:
    """Print a configuration as a scenario file, or pages for one; False: a measurement."""
    around = given.plan()
    configuration = routers.configuration(paths)
    pages = None if configuration is not None else importing.pages(paths)
    if configuration is None:
        of_routers = {given.name(option): value for option, value in given.options.items()}
        _refuse_options(paths[0], of_routers, "configurations of routers")
    if configuration is None and pages is None:
        return False
    _refuse_options(paths[0], of_measurements, "measurements")
    if pages is not None:
        text, notes = pages
        print(text)
    elif configuration is not None:
        text, notes = routers.scenario(configuration, around)
        print(text, end="")
        if around.preset is None and around.link is None:
            notes.append(_NOTHING_BEHIND)
    for note in notes:
        say(f"note: {note}")
    return True


def _refuse_options(path: Path, options: Mapping[str, object], of: str) -> None:
    """Refuse options that have no effect on a file."""
    if given := [name for name, value in options.items() if value not in {None, False}]:
        verb = "is" if len(given) == 1 else "are"
        message = f"{path}: {', '.join(given)} {verb} only for {of}"
        raise ScenarioError(message)


def _show_queues(queues: list[dict[str, Any]], *, run: str, as_json: bool) -> None:
    """Print queue statistics, as :func:`sojourn.result.tc_stats.queues` returns them.

    Parts of a queue and inner queues without any packet are left out of the tables.
    """
    if as_json:
        print(js.dumps(queues, indent=2))
        return
    for queue in queues:
        inner = queue.get("parent")
        if inner is not None and not queue["packets"] + queue["drops"] + queue["qlen"]:
            continue
        rows = [[name, _shown(value)] for name, value in _flat(queue) if name != "options"]
        kind = queue["kind"] if inner is None else f"{queue['kind']} in {inner}"
        terminal.print_table(Table(["statistic", "value"], rows, f"{queue['dev']}: {kind} ({run})"))


def _flat(queue: dict[str, Any]) -> list[tuple[str, Any]]:
    """Flatten the statistics of parts to names such as ``tins[0].drops``."""
    flat: list[tuple[str, Any]] = []
    for name, value in queue.items():
        if isinstance(value, list):
            parts = enumerate(value)
            flat += [
                (f"{name}[{n}].{key}", x)
                for n, part in parts
                if any(part.values())
                for key, x in part.items()
            ]
        else:
            flat.append((name, value))
    return flat


def _shown(value: float | str) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
