"""The HTML page of advice: what to set, before and after, lines to copy, assumptions."""

from html import escape

from sojourn.advice import wording
from sojourn.advice.advice import DEVICE, RULE, Advice
from sojourn.advice.lines import in_luci
from sojourn.advice.measures import SCALES, Scale
from sojourn.markup import wide_table
from sojourn.report import page
from sojourn.result.catalogue import Metric
from sojourn.scenario.presets import MARK

_TEXT = ' class="text"'


def html(advice: Advice, device: str = DEVICE) -> str:
    """Write the page."""
    access = advice.question.access
    if not advice.is_complete:
        return page.html(advice.result)
    lines = "".join(
        f"<h3>{escape(title)}</h3><pre>{escape(text)}</pre>"
        for title, text in advice.lines(device).items()
    )
    luci = in_luci(access, advice.recommended, device)
    fields = ""
    if luci:
        table = wide_table(["LuCI, Network, SQM QoS", "value"], luci, of_cells=_TEXT)
        fields = f"<h3>OpenWrt in a browser</h3>{table}"
    warnings = "".join(f"<li>{escape(text)}</li>" for text in advice.warnings)
    heading = '<section class="validity weak"><h2>Warnings</h2>'
    notice = f"{heading}<ul>{warnings}</ul></section>" if warnings else ""
    settings = f"<section><h2>Settings</h2>{fields}{lines}</section>" if lines else ""
    return f"""{page.head("Advice for a line", page.sheet())}<body>
<header>
<h1>Advice for your line</h1>
<p class="note">{escape(access.title)}</p>
<p><strong>{escape(advice.answer)}</strong></p>
</header>
{notice}
<section><h2>Before and after</h2>
<p>What you feel while others in the household transfer data: means of {_runs(advice)}.</p>
{"".join(_bars(advice, metric, scale) for metric, scale in wording.MAIN)}</section>
{settings}
<section><h2>How this was found</h2>
<details><summary>The line that was simulated</summary>
<p>{MARK}: reconstructed or assumed.</p>
{wide_table(["value", "", "source"], wording.link_rows(access), of_cells=_TEXT)}</details>
<details><summary>All configurations</summary>
{_all(advice)}<p>{escape(advice.recommended.name)}: {escape(advice.reason)}. {escape(RULE)}</p>
<p>A question mark: the 95 % interval contains another grade.</p></details>
<details><summary>Grades</summary>{_grades()}</details>
{page.validity(advice.result)}
{page.provenance(advice.result)}
</section>
</body>
</html>
"""


def _runs(advice: Advice) -> str:
    replications = advice.result.scenario.checked.replications
    return f"{replications} runs" if replications > 1 else "one run"


def _bars(advice: Advice, metric: Metric, scale: Scale | None) -> str:
    """Draw a measure of what is compared first as bars."""
    shown = wording.before_and_after(advice)
    means = [advice.mean(one.name, metric.column) for one in shown]
    longest = max((mean for mean in means if mean is not None), default=0.0) or 1.0
    bars = [
        "not measured"
        if mean is None
        else f'<span style="width:{100 * mean / longest:.1f}%"></span>'
        for mean in means
    ]
    rows = "".join(
        f'<tr><th scope="row">{escape(wording.marked(advice, one))}</th>'
        f'<td class="bar">{bar}</td>'
        f"<td>{escape(wording.cell(advice, one, metric, scale))}</td></tr>"
        for one, bar in zip(shown, bars, strict=True)
    )
    better = "more" if scale is None or scale.higher else "less"
    return (
        f'<table class="bars"><caption>{escape(metric.heading)}, {better} is better</caption>'
        f"<tbody>{rows}</tbody></table>"
    )


def _all(advice: Advice) -> str:
    head = ["configuration", *(metric.heading for metric, _ in wording.MEASURES)]
    rows = [
        [
            wording.marked(advice, one),
            *(wording.cell(advice, one, *measure) for measure in wording.MEASURES),
        ]
        for one in advice.compared
    ]
    return wide_table(head, rows)


def _grades() -> str:
    rows = [[scale.metric.label, scale.meaning, scale.source] for scale in SCALES]
    return wide_table(["measure", "grades", "source"], rows, of_cells=_TEXT)
