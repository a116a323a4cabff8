"""What a run has shown so far, for dashboards."""

from collections import deque
from collections.abc import Callable
from typing import Any

from sojourn.live.lines import flow_name

# Views that are kept: one per second.
KEPT = 600
# Flows of a link that dashboards show.
MOST_FLOWS = 8
Links = list[dict[str, Any]]


class History:
    """The last views of the links of a run."""

    def __init__(self, kept: int = KEPT) -> None:
        self.kept = kept
        self.views: deque[Links] = deque(maxlen=kept)
        # All changes so far: the time, the link and the keys.
        self.changes: deque[tuple[float, str, str]] = deque(maxlen=kept)

    def add(self, links: Links) -> Links:
        """Add a view; return it as it is kept, with fewer flows."""
        kept = [
            {**link, "flows": [_named(one) for one in _largest(link["flows"])]} for link in links
        ]
        self.views.append(kept)
        for link in kept:
            self.changes += [(time_s, link["link"], keys) for time_s, keys in link["changes"]]
        return kept

    @property
    def last(self) -> Links:
        """The last view; empty before the first."""
        return self.views[-1] if self.views else []

    def of_link(self, name: str, value: Callable[[dict[str, Any]], float | None]) -> list[float]:
        """Return a value of a link over time; 0 where it has none."""
        return [
            value(link) or 0.0 for links in self.views for link in links if link["link"] == name
        ]

    def of_flow(
        self, name: str, flow: str, value: Callable[[dict[str, Any]], float | None]
    ) -> list[float]:
        """Return a value of a flow of a link over time; 0 where it sent nothing."""

        def of(link: dict[str, Any]) -> float | None:
            found = (one for one in link["flows"] if one["name"] == flow)
            one = next(found, None)
            return None if one is None else value(one)

        return self.of_link(name, of)


def _largest(flows: Links) -> Links:
    """Return the flows to show: those that sent or wait most."""
    flows = sorted(flows, key=lambda one: (-one["bits_per_s"], -one["backlog_bytes"]))
    return flows[:MOST_FLOWS]


def _named(flow: dict[str, Any]) -> dict[str, Any]:
    return {**flow, "name": flow_name(flow)}
