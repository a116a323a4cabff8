"""A bottleneck for the test suites of protocol stacks, driven by the caller's clock."""

from os import PathLike
from typing import Literal, NamedTuple

from sojourn import _core

__all__ = ["Delivery", "Path", "PathEvent"]

Direction = Literal["forward", "reverse"]
Ecn = Literal["not-ect", "ect0", "ect1", "ce"]


class Delivery(NamedTuple):
    """A packet that has arrived at an end of a :class:`Path`.

    Attributes
    ----------
    packet
        Its number: its place among all packets that were offered, from 0.
    at
        When it arrived, in seconds.
    direction
        Its direction.
    data
        Its bytes as they were offered. In those of :meth:`Path.push_ip`, DSCP and ECN are the ones
        below.
    ecn
        The ECN field on arrival.
    dscp
        The DSCP on arrival.
    flow
        Its source port: the flow that was given to :meth:`Path.push`.
    waited
        Its sojourn time in the queue, in seconds.
    """

    packet: int
    at: float
    direction: Direction
    data: bytes
    ecn: Ecn
    dscp: int
    flow: int
    waited: float


class PathEvent(NamedTuple):
    """Something that happened to a packet of a :class:`Path`.

    Attributes
    ----------
    at
        When, in seconds.
    direction
        The direction of the packet.
    packet
        Its number.
    size
        Its size as an Ethernet frame, in bytes.
    kind
        ``"offered"`` to the queue, ``"dropped"`` or ``"marked"`` by it, ``"departed"`` from it,
        ``"lost"`` on the wire, or ``"arrived"``.
    reason
        Of a drop or a mark: ``"overlimit"``, ``"aqm"``, ``"ack_filter"`` or ``"ce_threshold"``.
    waited
        Of a packet that was dropped or marked or has departed: seconds since it was offered.
    """

    at: float
    direction: Direction
    packet: int
    size: int
    kind: Literal["offered", "dropped", "marked", "departed", "lost", "arrived"]
    reason: str | None
    waited: float | None


class Path:
    """Two directions of a path, each with a bottleneck and a wire, in virtual time.

    It reads no clock: every call has the time as an argument, in seconds since an origin that the
    caller chooses, to the nanosecond. Times must not decrease from call to call. A call that is
    late changes nothing: each event is processed at the time at which it was due, timers of queues
    included. The same calls with the same seed give the same packets, drops and marks.

    Parameters
    ----------
    forward
        Pairs of a key and a value, the queue in the syntax of ``tc`` last, such as
        ``"rate 20mbit delay 10ms loss 1% qdisc fq_codel limit 1000"``. The keys are rate, delay,
        jitter, distribution, order, loss, drop (a list such as ``3,4,5``), duplicate, ecn and
        qdisc.
    reverse
        The same for the opposite direction; by default it has the delay of `forward` and no
        bottleneck.
    forward_trace, reverse_trace
        In place of a rate: the text of a trace file of Mahimahi, a time in milliseconds per line.
    seed
        Seed of every random number.
    events
        Whether to record :meth:`events`.
    strict
        Whether :meth:`poll` raises an error if a packet arrived before its time, so that a test
        that forgets :meth:`deadline` fails.
    capture
        A file to which all packets are written, in the format pcapng.

    Raises
    ------
    ScenarioError
        A parameter is not valid, or a time precedes that of an earlier call, or a call of a strict
        path is late.
    ResultError
        The capture cannot be written.

    Examples
    --------
    >>> path = Path("rate 20mbit delay 10ms qdisc fq_codel", seed=1)
    >>> path.push(0.0, bytes(1200), ecn="ect0")
    0
    >>> while (now := path.deadline()) is not None:
    ...     for delivery in path.poll(now):
    ...         print(delivery.at, len(delivery.data), delivery.ecn)
    0.0104968 1200 ect0
    """

    def __init__(
        self,
        forward: str,
        reverse: str | None = None,
        *,
        forward_trace: str | None = None,
        reverse_trace: str | None = None,
        seed: int = 0,
        events: bool = False,
        strict: bool = False,
        capture: str | PathLike[str] | None = None,
    ) -> None:
        self._path = _core.PacketPath(
            forward,
            reverse,
            forward_trace=forward_trace,
            reverse_trace=reverse_trace,
            seed=seed,
            events=events,
            strict=strict,
            capture=capture,
        )

    def push(
        self,
        now: float,
        payload: bytes,
        *,
        direction: Direction = "forward",
        ecn: Ecn = "not-ect",
        flow: int = 0,
    ) -> int:
        """Offer the payload of a UDP datagram, as QUIC stacks produce it.

        Queues count the Ethernet frame: the payload and 42 bytes of headers.

        Parameters
        ----------
        now
            Time in seconds.
        payload
            Its bytes; they come back unchanged.
        direction
            ``"forward"`` or ``"reverse"``.
        ecn
            The ECN field.
        flow
            The flow, 0 to 65535: its source port.

        Returns
        -------
        int
            The number of the packet.
        """
        return self._path.push(now, direction, payload, ecn, flow)

    def push_ip(self, now: float, packet: bytes, *, direction: Direction = "forward") -> int:
        """Offer an IPv4 or IPv6 packet, whose headers are read.

        A mark is written into its bytes.

        Parameters
        ----------
        now
            Time in seconds.
        packet
            Its bytes.
        direction
            ``"forward"`` or ``"reverse"``.

        Returns
        -------
        int
            The number of the packet.
        """
        return self._path.push_ip(now, direction, packet)

    def poll(self, now: float) -> list[Delivery]:
        """Return the packets of both directions that have arrived, in their order.

        Parameters
        ----------
        now
            Time in seconds.

        Returns
        -------
        list of Delivery
            Those that were not returned before.
        """
        return [Delivery(*each) for each in self._path.poll(now)]

    def deadline(self) -> float | None:
        """Return when to call :meth:`poll` next, in seconds.

        Returns
        -------
        float or None
            The time of the next event, timers of queues included; None while no packet is inside
            the path.
        """
        return self._path.deadline()

    def events(self) -> list[PathEvent]:
        """Remove and return the events so far.

        Returns
        -------
        list of PathEvent
            In their order; none unless the path records events.
        """
        return [PathEvent(*each) for each in self._path.events()]

    def counters(self, direction: Direction = "forward") -> dict[str, int]:
        """Return what was sent, dropped and marked by reason, and lost so far.

        Parameters
        ----------
        direction
            ``"forward"`` or ``"reverse"``. Without a bottleneck, only losses and duplicates are
            counted.

        Returns
        -------
        dict
            Numbers by name, such as ``sent_packets``, ``drops_aqm`` and ``marks_aqm``.
        """
        return dict(self._path.counters(direction))

    def sojourn(self, quantile: float, direction: Direction = "forward") -> float | None:
        """Return a quantile of the sojourn times of the packets that departed from a queue.

        Parameters
        ----------
        quantile
            0 to 1; 0.5 is the median.
        direction
            ``"forward"`` or ``"reverse"``.

        Returns
        -------
        float or None
            In seconds; None if no packet departed.
        """
        return self._path.sojourn(direction, quantile)

    def statistics(self, direction: Direction = "forward") -> dict[str, float]:
        """Return the statistics of a queue, with the names of ``tc -s``.

        Parameters
        ----------
        direction
            ``"forward"`` or ``"reverse"``.

        Returns
        -------
        dict
            Numbers by name; those of a part of the queue have names such as ``tins.0.drops``.
        """
        named = {}
        for name, part, value in self._path.statistics(direction):
            named[name if part is None else f"{part[0]}.{part[1]}.{name}"] = value
        return named

    def set_rate(self, now: float, rate: str, *, direction: Direction = "forward") -> None:
        """Change the rate of a bottleneck from now on, as in a handover.

        Parameters
        ----------
        now
            Time in seconds.
        rate
            Such as ``"5mbit"``. Without effect if there is no bottleneck or it follows a trace.
        direction
            ``"forward"`` or ``"reverse"``.
        """
        self._path.set_rate(now, direction, rate)

    def set_wire(self, now: float, change: str, *, direction: Direction = "forward") -> None:
        """Change delay, jitter, loss or duplication of a wire from now on.

        Parameters
        ----------
        now
            Time in seconds.
        change
            Such as ``"delay 50ms loss 1%"``; what it does not name stays.
        direction
            ``"forward"`` or ``"reverse"``.
        """
        self._path.set_wire(now, direction, change)

    def finish_capture(self) -> None:
        """End the capture; later packets are not captured."""
        self._path.finish_capture()
