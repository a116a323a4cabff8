"""The HTML page of advice: what to set, before and after, lines to copy, assumptions."""

from sojourn.advice import wording
from sojourn.advice.advice import DEVICE, RULE, Advice
from sojourn.advice.lines import in_luci
from sojourn.advice.measures import SCALES, Scale
from sojourn.presentation import html as writer
from sojourn.presentation.model import (
    Bar,
    Block,
    Code,
    Document,
    Items,
    Note,
    Paragraph,
    Section,
    Styled,
    Table,
    Text,
    text_table,
)
from sojourn.report import page
from sojourn.result.catalogue import Metric
from sojourn.scenario.presets import MARK


def html(advice: Advice, device: str = DEVICE) -> str:
    """Write the page."""
    if not advice.is_complete:
        return page.html(advice.result)
    access = advice.question.access
    runs = advice.result.scenario.checked.replications
    means = f"means of {runs} runs" if runs > 1 else "means of one run"
    bars = [_bars(advice, metric, scale) for metric, scale in wording.MAIN]
    warnings = [Note("Warnings", [Items(advice.warnings)])] if advice.warnings else []
    document = Document(
        title="Advice for your line",
        head=[Paragraph(access.title, quiet=True), Paragraph(Styled(advice.answer))],
        content=[
            *warnings,
            Section("Before and after", [Paragraph(f"{_FELT}: {means}."), *bars]),
            Section("Settings", _settings(advice, device)),
            Section("How this was found", _method(advice)),
            page.validity(advice.validity),
            page.provenance(advice.result),
        ],
    )
    return writer.page(document)


_FELT = "What you feel while others in the household transfer data"


def _settings(advice: Advice, device: str) -> list[Block]:
    """Write the lines to copy."""
    luci = in_luci(advice.question.access, advice.recommended, device)
    fields = [
        Section("OpenWrt in a browser", [text_table(["LuCI, Network, SQM QoS", "value"], luci)])
    ]
    lines = [Section(title, [Code(text)]) for title, text in advice.lines(device).items()]
    return [*(fields if luci else []), *lines] if lines else []


def _method(advice: Advice) -> list[Block]:
    """Write what was simulated and how the answer was chosen."""
    link = wording.link_table(advice.question.access)
    grades = [[scale.metric.label, scale.meaning, scale.source] for scale in SCALES]
    chosen = f"{advice.recommended.name}: {advice.reason}. {RULE}"
    doubt = "A question mark means that the 95 % interval contains another grade."
    every: list[Block] = [wording.table(advice), Paragraph(chosen), Paragraph(doubt)]
    parts: dict[str, list[Block]] = {
        "Simulated line": [Paragraph(f"{MARK}: reconstructed or assumed."), link],
        "All configurations": every,
        "Grades": [text_table(["measure", "grades", "source"], grades)],
    }
    return [Section(title, content, folded=True) for title, content in parts.items()]


def _bars(advice: Advice, metric: Metric, scale: Scale | None) -> Table:
    """Draw a measure of what is compared first as bars."""
    shown = wording.before_and_after(advice)
    means = [advice.mean(one.name, metric.column) for one in shown]
    longest = max((mean for mean in means if mean is not None), default=0.0) or 1.0
    rows: list[list[Text]] = [
        [
            wording.marked(advice, one),
            "not measured" if mean is None else Bar(mean / longest),
            wording.cell(advice, one, metric, scale),
        ]
        for one, mean in zip(shown, means, strict=True)
    ]
    better = "more" if scale is None or scale.higher else "less"
    title = f"{metric.heading}, {better} is better"
    return Table(["configuration", "", ""], rows, title, kind="bars")
