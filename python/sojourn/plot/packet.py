"""The figure of one packet: backlog of its link and window of its sender around its time."""

from typing import Any

import polars as pl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from sojourn.plot import drawing, figures, style
from sojourn.result import Result

# Width and height of the figure in inches; letters of its title per inch.
_WIDTH, _PANEL, _REST, _LETTERS = 7.0, 1.7, 1.2, 13
# Of the axes, so that no line is at its edge.
_HEADROOM = 1.05
# Round trips after the history of the packet; before it is one.
_AROUND = 2


def draw(again: Result, facts: dict[str, Any], answer: str) -> Figure:
    """Draw the repeated run `again` around a packet."""
    of_flow = again.flow_series.filter(flow=facts["flow"] or "").drop_nulls("cwnd_packets")
    panels = 1 + (not of_flow.is_empty())
    figure = figures.Plot(figsize=(_WIDTH, _PANEL * panels + _REST), layout="constrained")
    FigureCanvasAgg(figure)
    axes = [figure.add_subplot(panels, 1, place + 1) for place in range(panels)]
    round_trip_s = again.flows["rtt_ms"].max() / 1000  # type: ignore[operator]
    reaction = facts["reaction"] or {"to_s": facts["left_s"]}
    first = max(min(facts["sent_s"] or facts["arrived_s"], facts["arrived_s"]) - round_trip_s, 0)
    last = max(reaction["to_s"], facts["left_s"]) + _AROUND * round_trip_s
    shown = pl.col("t_s").is_between(first, last)
    backlog = again.link_series.filter(shown, link=facts["link"])
    axes[0].step(backlog["t_s"], backlog["backlog_packets"], where="post", color=style.colour(0))
    axes[0].set_ylabel(drawing.wrapped(f"backlog {facts['link']} [packets]", 20))
    axes[0].axvspan(facts["arrived_s"], facts["left_s"], color=style.colour(1), alpha=0.25, lw=0)
    if panels > 1:
        window = of_flow.filter(shown)
        axes[1].step(window["t_s"], window["cwnd_packets"], where="post", color=style.colour(0))
        axes[1].set_ylabel(drawing.wrapped("congestion window [packets]", 20))
    signals = again.events.filter(shown, flow=facts["flow"] or "")["t_s"]
    for one in axes:
        # A tick at the lower edge per drop or mark of the flow.
        bottom = one.get_xaxis_transform()
        one.plot(signals, [0.04] * len(signals), "|", color="black", ms=7, transform=bottom)
        one.axvline(facts["action_s"] or facts["left_s"], color=style.colour(1), lw=1.2)
        one.set_xlim(first, last)
        one.set_ylim(0, _HEADROOM * max(one.get_ylim()[1], 1))
        one.ticklabel_format(axis="x", useOffset=False)
        drawing.add_grid(one)
        one.tick_params(labelbottom=one is axes[-1])
    axes[-1].set_xlabel("time [s]")
    title = drawing.wrapped(answer, int(_WIDTH * _LETTERS))
    axes[0].set_title(title, loc="left", fontsize="small")
    note = "Orange: the packet in the queue; ticks: drops, marks and losses of its flow."
    figures.add_note(figure, f"{note} {again.origin}")
    figures.fit(figure)
    return figure
