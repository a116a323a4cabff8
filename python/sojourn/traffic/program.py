"""Programs that live runs start."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from sojourn.traffic.block import TrafficBlock


@dataclass(frozen=True, slots=True, kw_only=True)
class Program(TrafficBlock):
    """A program that a live run starts, with the server that it connects to.

    A scenario may have one program; the simulator rejects it. The remaining parameters are those of
    :class:`TrafficBlock`. `count` must be 1.

    Parameters
    ----------
    command
        The program and its arguments, started on the client's host without a shell. The
        environment variable ``SOJOURN_SERVER`` is the address of the server's host;
        ``$SOJOURN_SERVER`` and ``${SOJOURN_SERVER}`` in these strings stand for it.
    server
        The program and its arguments that are started before `command` on the server's host,
        without a shell, and stopped at the end. ``SOJOURN_SERVER`` is set, but the strings are
        used as they are.

    Examples
    --------
    >>> client = ["iperf3", "--client", "$SOJOURN_SERVER", "--reverse"]
    >>> program = Program(direction="down", command=client, server=["iperf3", "--server"])
    >>> program.command[0]
    'iperf3'
    """

    kind: ClassVar[str] = "program"

    command: Sequence[str]
    server: Sequence[str] | None = None
