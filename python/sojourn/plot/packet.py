"""The figure of one packet: backlog of its link and window of its sender around its time."""

from typing import Any

import polars as pl
from matplotlib.figure import Figure as Canvas

from sojourn.presentation.figure import Axis, Figure, Level, Line, Mark, Panel, Points, Span
from sojourn.result import Result

# Width of the figure and height of a panel, in inches.
_WIDTH, _PANEL = 7.0, 1.7
# Of the axes, so that no line is at its edge.
_HEADROOM = 1.05
# Round trips after the history of the packet; before it is one.
_AROUND = 2
_QUEUE, _PACKET = "queue", "packet"
_NOTE = "Orange: the packet in the queue; ticks: drops, marks and losses of its flow."


def draw(again: Result, facts: dict[str, Any], answer: str) -> Canvas:
    """Draw the repeated run `again` around a packet."""
    of_flow = again.flow_series.filter(flow=facts["flow"] or "").drop_nulls("cwnd_packets")
    round_trip_s = again.flows["rtt_ms"].max() / 1000  # type: ignore[operator]
    reaction = facts["reaction"] or {"to_s": facts["left_s"]}
    first = max(min(facts["sent_s"] or facts["arrived_s"], facts["arrived_s"]) - round_trip_s, 0)
    last = max(reaction["to_s"], facts["left_s"]) + _AROUND * round_trip_s
    shown = pl.col("t_s").is_between(first, last)
    backlog = again.link_series.filter(shown, link=facts["link"])
    series = [(f"backlog {facts['link']} [packets]", backlog, "backlog_packets")]
    if not of_flow.is_empty():
        series.append(("congestion window [packets]", of_flow.filter(shown), "cwnd_packets"))
    signals = again.events.filter(shown, flow=facts["flow"] or "")["t_s"].to_list()
    panels: list[Panel] = []
    for label, frame, column in series:
        y = frame[column].to_list()
        marks: list[Mark] = [
            Line(_QUEUE, frame["t_s"].to_list(), y, step=True, width=1.5),
            # A tick at the lower edge per drop or mark of the flow.
            Points("", signals, [0.04] * len(signals), ink=True, marker="|", size=7, fixed=True),
            Level(_PACKET, facts["action_s"] or facts["left_s"], upright=True, width=1.2, dash=0),
        ]
        if not panels:
            marks.insert(0, Span(_PACKET, facts["arrived_s"], facts["left_s"], alpha=0.25))
        x = Axis("time [s]", low=first, high=last)
        y_axis = Axis(label, low=0, high=_HEADROOM * max([*y, 1]))
        panels.append(Panel(x, y_axis, marks, title="" if panels else answer))
    figure = Figure(
        title=answer,
        panels=panels,
        colours={_QUEUE: 0, _PACKET: 1},
        note=_NOTE,
        width=_WIDTH,
        height=_PANEL,
        shared=True,
    )
    return figure.drawn(again.origin)
