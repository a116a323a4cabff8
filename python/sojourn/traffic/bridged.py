"""Packets of other machines, which a bridge passes."""

from dataclasses import dataclass
from typing import ClassVar

from sojourn.traffic.block import TrafficBlock


@dataclass(frozen=True, slots=True, kw_only=True)
class Bridged(TrafficBlock):
    """The packets of one direction of a bridge, from the machines behind its interfaces.

    Only ``sojourn bridge`` and ``sojourn interop`` pass them; the simulator and other live runs
    reject them. The parameters are those of :class:`TrafficBlock`. `count` must be 1.

    Examples
    --------
    >>> Bridged(direction="down").document()
    {'type': 'bridged', 'direction': 'down'}
    """

    kind: ClassVar[str] = "bridged"
