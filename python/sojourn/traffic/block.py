"""Base of all traffic: path, number of flows, times, DSCP and version of IP."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from sojourn.document import Table, check, convert

Direction = Literal["up", "down"]
Conversions = Mapping[str, tuple[type[Table], ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficBlock(Table):
    """Base class of all traffic: one or more flows or users with the same parameters.

    Parameters
    ----------
    direction
        ``"up"`` or ``"down"``: data crosses the link of that name, replies cross the other.
    path
        The links that data crosses, in order; instead of `direction`.
    reverse
        The links that replies cross, in order; with `path`.
    name
        Name of the group. Its flows are numbered.
    count
        Number of flows or users.
    start
        When they start, with its unit.
    start_jitter
        Each start is delayed by a random time of at most this, with its unit.
    stop
        When they stop, with its unit; by default when the run ends.
    rtt
        Base round-trip time, to which the delays of links are added, or one for each flow, with
        units.
    dscp
        DSCP of all packets, in both directions: ``"EF"``, ``"AF42"``, ``"NQB"``, ``"LE"``, 0 to 63.
    ip
        Version of IP of all packets, 4 or 6. Headers of IPv6 are 20 B longer.
    host
        Client host that the flows belong to, 0 to 126, for queues that share capacity among hosts.

    Raises
    ------
    ScenarioError
        A value is not valid; the message is that of a scenario file.
    """

    kind: ClassVar[str] = ""
    # The classes to which tables are converted, by field.
    converted: ClassVar[Conversions] = {}

    direction: Direction | None = None
    path: Sequence[str] | None = None
    reverse: Sequence[str] | None = None
    name: str | None = None
    count: int | None = None
    start: str | None = None
    start_jitter: str | None = None
    stop: str | None = None
    rtt: str | Sequence[str] | None = None
    dscp: str | int | None = None
    ip: Literal[4, 6] | None = None
    host: int | None = None

    def __post_init__(self) -> None:
        """Have the core check the block, as far as it can be without the scenario; type tables."""
        check("traffic", self.document())
        for name, classes in self.converted.items():
            convert(self, name, *classes)

    def document(self, place: str = "") -> Any:
        """Convert the block to JSON, with its type."""
        return {"type": self.kind, **Table.document(self, place)}
