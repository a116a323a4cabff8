"""The report on a result: validity, findings, tables, figures, provenance."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl
from polars import selectors as cs

from sojourn.plot import reported
from sojourn.presentation import html as writer
from sojourn.presentation.figure import Figure
from sojourn.presentation.model import (
    Block,
    Code,
    Document,
    Figures,
    Items,
    Legend,
    Markup,
    Note,
    Paragraph,
    Section,
    Styled,
    Text,
    facts,
    quiet,
)
from sojourn.report.answer import answer
from sojourn.report.view import MEANS, ResultView, details, view
from sojourn.result import Result, derived_files
from sojourn.result.catalogue import Metric
from sojourn.result.validity import Validity
from sojourn.scenario import Link

_SERIES_NOTE = (
    "Lines are means over short intervals and over replications, from the start of the run; the "
    "tables above exclude the warm-up. Goodput counts data delivered in order: after a "
    "retransmission, a large amount of data may be delivered at once, and goodput may briefly "
    "exceed the link rate."
)


def html(result: Result) -> str:
    """Write a report."""
    return writer.page(document(result))


def document(result: Result) -> Document:
    """Compose a report."""
    shown = view(result)
    sentence = answer(shown, result.validity.error)
    notices = [str(notice) for notice in result.provenance["notices"]]
    main = shown.main()
    said = findings(shown)
    return Document(
        title=shown.title,
        head=[
            Paragraph(_subtitle(result), quiet=True),
            *([Paragraph(Styled(sentence))] if sentence else []),
        ],
        content=[
            validity(result.validity),
            *([Note("Notices", [Items(notices)])] if notices else []),
            Legend(result.arms),
            figures("Induced latency and goodput", reported.ellipses(result), result.arms),
            *([Section("Main metrics", [main, *quiet(MEANS)])] if main.columns[1:] else []),
            Section("Findings", [Items(said)], folded=True),
            *details(shown),
            figures("Distributions", reported.cdfs(result), result.arms),
            figures("Over time", reported.over_time(result), result.arms, _SERIES_NOTE),
            *_explained_drop(result),
            provenance(result),
        ],
        names=result.arms,
        meta=origin(result),
    )


def _explained_drop(result: Result) -> list[Block]:
    """Write the command that explains a drop: the first of the interval with the most."""
    if not (result.provenance.get("backend") or {}).get("deterministic", True):
        return []
    signals = pl.sum_horizontal(cs.starts_with("drops_", "marks_"), "lost_packets")
    run = result.link_series.filter(replication=0)
    times = run.group_by("arm", "t_s", maintain_order=True).agg(signals.sum().alias("n"))
    most = times.sort("n", descending=True, maintain_order=True).head(1)
    if most.is_empty() or not most["n"][0]:
        return []
    arm, t_s, number = most.row(0)
    before = times.filter(pl.col("arm") == arm, pl.col("t_s") < t_s)["n"].sum()
    command = f"sojourn why DIR --arm {shlex.quote(arm)} --drop {before}"
    said = (
        f", the first of {number} in the interval with the most, up to {t_s:g} s. DIR is the "
        "directory of this result."
    )
    text: Text = ["Explain a drop, mark or loss: ", Styled(command, "code"), said]
    return [Paragraph(text, quiet=True)]


def fragment(result: Result) -> str:
    """Write what a notebook shows of a result: its verdict and tables of means."""
    shown = view(result)
    verdict = Markup(result.validity._repr_html_())
    runs: Text = [
        Styled(result.scenario.checked.name),
        f" {result.finished} of {result.total} runs",
    ]
    _, *parts = details(shown, changes=False)
    means = shown.means([shown.whole]).turned()
    return writer.fragment([Paragraph(runs), verdict, means, *quiet(MEANS), *parts])


def write(result: Result, path: str | Path, page: Callable[[Result], str] | None = None) -> None:
    """Write a report, or another page about a result, to a file."""
    save((page or html)(result), path, result.manifest_sha256)


def save(page: str, path: str | Path, manifest: str | None = None) -> None:
    """Write a page about the result whose manifest has this digest to a file."""
    derived_files.check_report(Path(path))
    derived_files.write(path, page.encode(), manifest)


def origin(result: Result) -> dict[str, str]:
    """Name the scenario of a page and, if it was saved, the manifest of its result."""
    digest = result.manifest_sha256
    saved = {} if digest is None else {"sojourn-manifest": digest}
    return {"sojourn-scenario": result.scenario.hash, **saved}


def _subtitle(result: Result) -> str:
    checked = result.scenario.checked
    links = ", ".join(f"{name} {_rate(link)}" for name, link in result.scenario.links.items())
    return f"{links}; runs of {checked.duration_s:g} s, measured from {checked.warmup_s:g} s; " + (
        f"n = {checked.replications} per arm."
        if result.complete
        else f"{result.finished} of {result.total} runs finished."
    )


def _rate(link: Link | str) -> str:
    """Write the rate of a link, or the name of its trace and the mean rate."""
    if isinstance(link, str):
        return link
    if not isinstance(link.trace, Mapping):
        return str(link.rate)
    name = Path(link.trace.get("file", "")).name
    return f"trace {name} (mean {link.bits_per_s / 1e6:.3g} Mbit/s)".replace("  ", " ")


def validity(of_result: Validity, of: str = "") -> Note:
    """Write the verdict on a result and the limitations found."""
    verdict, found = of_result.verdict, of_result.findings
    said = {
        "invalid": "This result does not support a conclusion about the queues.",
        "weak": "The warnings below limit the conclusions that this result supports.",
        "valid": "No warnings; see the notes." if found else "No limitations found.",
    }[verdict]
    items = Items([[Styled(one.severity), f": {one.text}"] for one in found])
    title = f"Validity of {of}" if of else "Validity"
    return Note(f"{title}: {verdict}", [Paragraph(said), items], verdict)


def figures(title: str, drawn: Sequence[Figure], names: Sequence[str], note: str = "") -> Section:
    """Make a section of figures of these names; one without figures is left out."""
    return Section(title, [*quiet(note), Figures(drawn, names)] if drawn else [])


def provenance(result: Result) -> Section:
    """Write what is needed to repeat the runs."""
    backend = result.provenance.get("backend") or {}
    said: Text = (
        "These runs were measured on a machine, in real time: a repetition gives other numbers, "
        "and other load on the machine changes them."
    )
    if backend.get("deterministic", True):
        depends = "A run depends only on the scenario, the seed and the version."
        repeat = "To reproduce these numbers, save the scenario below to a file and run"
        said = [f"{depends} {repeat} ", Styled("sojourn run FILE", "code"), "."]
    rows = [
        ("Sojourn", result.build),
        *([("kernel", f"Linux {kernel}")] if (kernel := backend.get("kernel")) else []),
        ("seed", str(result.scenario.seed)),
        ("scenario SHA-256", result.scenario.hash),
        ("runs", f"{result.finished} of {result.total}"),
    ]
    scenario = Section("Scenario", [Code(result.scenario.to_toml())], folded=True)
    return Section("Provenance", [facts(rows), Paragraph(said), scenario])


def findings(shown: ResultView) -> list[str]:
    """Describe the main results in sentences."""
    extremes = (_extremes(shown, metric) for metric in shown.whole.metrics)
    sentences = [sentence for sentence in extremes if sentence is not None]
    return sentences + [_against(shown, arm) for arm in shown.others]


def _extremes(shown: ResultView, metric: Metric) -> str | None:
    found = [(shown.whole.estimate(arm, metric), arm) for arm in shown.arms]
    known = sorted((one.mean, f"{one}", arm) for one, arm in found if one.mean is not None)
    if metric.role != "headline" or len(known) < 2:  # noqa: PLR2004 - extremes take two
        return None
    (_, least, first), (_, most, last) = known[0], known[-1]
    name, unit = f"{metric.label[0].upper()}{metric.label[1:]}", metric.unit
    if least == most:
        return f"{name} is {least} {unit} in all arms."
    return f"{name} ranges from {least} {unit} ({first}) to {most} {unit} ({last})."


def _against(shown: ResultView, arm: str) -> str:
    clear, unclear = [], []
    for section in shown.parts:
        group = "" if section.name is None else f"{section.name}: "
        for metric in section.metrics:
            found = section.change(arm, metric)
            if metric.role not in {"headline", "compared"} or found.mean is None:
                continue
            if "*" in found.value:
                text = f"{metric.label} {replace(found, clear=None)} {metric.unit}"
                clear.append(f"{group}{text}".strip())
            else:
                unclear.append(f"{group}{metric.label}")
    sentence = f"{arm} compared with {shown.baseline}: " + (
        ", ".join(clear) if clear else "no clear difference"
    )
    if clear and unclear:
        sentence += f"; no clear difference in {', '.join(unclear)}"
    return sentence + "."
