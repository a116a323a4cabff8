"""``sojourn demo``: four queues on a home line, in seconds."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from sojourn.cli import session
from sojourn.cli.options import REPORT
from sojourn.cli.plans import command
from sojourn.execute.compare import ComparePlan, access_link
from sojourn.execute.run import RunPlan
from sojourn.presentation.model import Table, Text
from sojourn.presentation.terminal import print_aligned, print_note
from sojourn.report.answer import LATENCY, UPLOADS, answer
from sojourn.report.view import view
from sojourn.result import Result, formatting

PLAN = ComparePlan(
    queues=("pfifo", "codel", "fq_codel", "cake"), link="50/10mbit", traffic="tcp_2up+voip"
)
CALL = "voip up"
MOS = "mos_mean"
NEXT = {
    "sojourn compare pfifo cake --link 100/20mbit": "a line with other rates",
    "sojourn advise --preset vdsl": "settings for your router",
    "sojourn live --qdisc fq_codel -- ping -c 3 '$SOJOURN_SERVER'": "a program behind a queue",
    "sojourn qdiscs cake": "the parameters of a queue",
}


@command()
def demo(*, report: Annotated[Path, replace(REPORT, metavar="FILE")] = Path("demo.html")) -> int:
    """Compare four queues on a home line, with two uploads and a call, in seconds."""
    output = session.Output(report=report)
    code = session.execute(
        session.RunRequest(run=RunPlan(access_link(PLAN)), output=output, show=_show)
    )
    if code == 0:
        width = max(map(len, NEXT))
        print("\nNext:")
        for line, purpose in NEXT.items():
            print(f"  {line:{width}}  {purpose}")
    return code


def _show(result: Result) -> None:
    """Print one row per queue, and what follows from them."""
    shown = view(result)
    call = next(one for one in shown.parts if one.name == CALL)
    columns = [
        (section, metric, heading)
        for section, column, heading in (
            (shown.whole, LATENCY, "ping under load [ms]"),
            (shown.whole, UPLOADS, "upload [Mbit/s]"),
            (call, MOS, "call [MOS, 1 to 4.5]"),
        )
        for metric in section.metrics
        if metric.column == column
    ]
    rows: list[list[Text]] = [
        [arm, *(section.estimate(arm, metric) for section, metric, _ in columns)]
        for arm in shown.arms
    ]
    runs = formatting.counted(min(shown.whole.runs(arm) for arm in shown.arms), "run")
    duration = result.scenario.checked.duration_s
    print_note(
        f"A line of {PLAN.link}, two uploads and a call: {runs} of {duration:g} s for each queue."
    )
    print()
    head = ["queue", *(heading for _, _, heading in columns)]
    print_aligned(Table(head, rows, f"means of {runs} ± half the 95 % interval"))
    if sentence := answer(shown, result.validity.error):
        print_note(sentence)
