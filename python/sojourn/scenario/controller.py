"""Controllers written in Python: they see measurements of each interval and may change links."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from sojourn import _core
from sojourn.document import controller_loaders, described, plain
from sojourn.errors import invalid
from sojourn.queues.python_class import PythonClass
from sojourn.queues.queue_file import class_name

# The fields of a link and of a reply, as the core writes them.
_Link = tuple[
    int | None,
    str,
    float | None,
    tuple[int, int],
    tuple[float | None, float | None],
    tuple[int, int],
    tuple[int, int, int],
]
_Reply = tuple[int, float, float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredLink:
    """What a :class:`Controller` sees of a link.

    Parameters
    ----------
    rate_bits_per_s
        Rate of the link at the end of the interval; None if a trace determines it, and for WiFi.
    qdisc
        Queue with its parameters, in the syntax of ``tc``, at the end of the interval.
    utilisation
        Share of the capacity of the link that was used in the interval; None for WiFi. It can
        exceed 1 slightly: a packet counts when its transmission begins.
    backlog_packets, backlog_bytes
        Packets and bytes in the queue at the end of the interval.
    sojourn_ms_mean, sojourn_ms_max
        Mean and longest sojourn time of the packets that left the queue in the interval; None if
        none left.
    sent_packets, sent_bytes
        Packets and bytes sent in the interval, without link-layer overhead.
    bits_per_s
        Rate of these bytes.
    drops, marks
        Packets that the queue dropped or marked in the interval.
    lost_packets
        Packets that the wire lost in the interval.
    """

    rate_bits_per_s: int | None
    qdisc: str
    utilisation: float | None
    backlog_packets: int
    backlog_bytes: int
    sojourn_ms_mean: float | None
    sojourn_ms_max: float | None
    sent_packets: int
    sent_bytes: int
    bits_per_s: float
    drops: int
    marks: int
    lost_packets: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PingReply:
    """The reply to a ping, as a :class:`Controller` sees it.

    Parameters
    ----------
    flow
        Name of the flow of pings.
    sent_s
        Time at which the request was sent, in seconds.
    rtt_ms
        Round-trip time.
    request_ms, reply_ms
        One-way delays of the request and of the reply. Their clocks agree exactly; add an offset to
        both to model clocks that do not.
    """

    flow: str
    sent_s: float
    rtt_ms: float
    request_ms: float
    reply_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What a :class:`Controller` sees of an interval.

    Parameters
    ----------
    interval_s
        Length of the interval.
    links
        The links by name.
    replies
        The replies to pings that arrived in the interval, by time of arrival.
    """

    interval_s: float
    links: Mapping[str, MeasuredLink]
    replies: Sequence[PingReply]


class _ControllerType(PythonClass):
    """The class of :class:`Controller`, which is given to scenarios as a class."""

    kind = "controller"
    needed = ("control",)

    def register(self, name: str, source: str) -> None:
        """Make the class usable as a controller."""
        interval, wires = getattr(self, "interval", None), getattr(self, "changes_wires", None)
        for key, value, kind in (("interval", interval, str), ("changes_wires", wires, bool)):
            if not isinstance(value, kind):
                example = '"100ms"' if kind is str else "True or False"
                rule = f"expected {example}, not {described(value)}"
                place = f"{self.__name__}.{key}"
                raise invalid(place, rule)
        try:
            _core.register_controller(name, self, source, f"{interval}", bool(wires))
        except _core.ScenarioError as error:
            place = f"{self.__name__}.interval"
            raise invalid(place, f"{error}") from None


class Controller(metaclass=_ControllerType):
    """A controller of links written in Python: subclass it and pass the class to a scenario.

    Every run creates its own instance and calls its method :meth:`control` at the end of each
    interval. Changes have the same meaning as ``changes`` of a link: the queue keeps its packets if
    only its parameters change. Setting a value that is already in force is not a change. The table
    ``link_changes`` of a result lists the changes that were made.

    Parameters are class attributes: a variant is a subclass with other values. Two runs with the
    same seed must behave identically, which Sojourn cannot enforce: draw random numbers from
    `random` only, do not read a clock, and keep no state outside the object. A method that raises
    ends the run with a :class:`QueueError` that names the simulated time.

    Attributes
    ----------
    interval
        Time between two calls, with its unit. The first is one interval after the start.
    changes_wires
        Whether the controller may change delay, jitter, loss and duplication, besides rates and
        queues.
    random
        Random numbers of this controller, seeded by the run.

    Examples
    --------
    >>> import sojourn as sj
    >>> class Halved(sj.Controller):
    ...     interval = "500ms"
    ...
    ...     def control(self, now, measured):
    ...         down = measured.links["down"]
    ...         if down.sojourn_ms_max is not None and down.sojourn_ms_max > 50:
    ...             return {"down": {"rate": f"{down.rate_bits_per_s // 2}bit"}}
    ...         return None
    >>> scenario = sj.Scenario(
    ...     links={"down": sj.Link(rate="10mbit", qdisc="pfifo"), "up": "unlimited"},
    ...     traffic=[sj.Tcp(direction="down")],
    ...     rtt="50ms",
    ...     duration="3s",
    ...     controller=Halved,
    ... )
    >>> sj.run(scenario).link_changes.select("t_s", "link", "rate_mbit_per_s").row(0)
    (1.0, 'down', 5.0)
    """

    interval: str = "100ms"
    changes_wires: bool = False
    random: Random
    _links: Sequence[str]
    _flows: Sequence[str]

    def control(self, now: float, measured: Measured) -> Mapping[str, Mapping[str, Any]] | None:
        """Return the changes to make now.

        Parameters
        ----------
        now
            Simulated time in seconds: the end of the interval.
        measured
            Measurements of the interval.

        Returns
        -------
        Mapping or None
            For each link to change, the keys of :class:`Change` without ``at``, such as
            ``{"down": {"rate": "5mbit", "qdisc": "cake bandwidth 5mbit"}}``. None: no change.
        """
        raise NotImplementedError

    def _call(
        self, now: float, links: Sequence[_Link], replies: Sequence[_Reply]
    ) -> list[tuple[int, str]]:
        """Call :meth:`control` with what the core measured; return its changes as JSON."""
        length = _core.parse_time_s(type(self).interval)
        measured = Measured(
            interval_s=length,
            links={
                name: _measured(link, length) for name, link in zip(self._links, links, strict=True)
            },
            replies=[
                PingReply(
                    flow=self._flows[flow],
                    sent_s=sent_s,
                    rtt_ms=there + back,
                    request_ms=there,
                    reply_ms=back,
                )
                for flow, sent_s, there, back in replies
            ],
        )
        return list(self._asked(self.control(now, measured)))

    def _asked(self, changes: object) -> Iterator[tuple[int, str]]:
        if changes is None:
            return
        if not isinstance(changes, Mapping):
            message = f"expected changes by link or None, not {described(changes)}"
            raise TypeError(message)
        for name, change in changes.items():
            if name not in self._links:
                known = ", ".join(self._links)
                message = f'links: unknown link "{name}"; expected one of {known}'
                raise ValueError(message)
            if not isinstance(change, Mapping):
                message = f"links.{name}: expected keys of a change, not {described(change)}"
                raise TypeError(message)
            yield self._links.index(name), json.dumps(plain(f"links.{name}", change))


def _measured(link: _Link, length: float) -> MeasuredLink:
    rate, qdisc, utilisation, backlog, sojourn, sent, counts = link
    return MeasuredLink(
        rate_bits_per_s=rate,
        qdisc=qdisc,
        utilisation=utilisation,
        backlog_packets=backlog[0],
        backlog_bytes=backlog[1],
        sojourn_ms_mean=sojourn[0],
        sojourn_ms_max=sojourn[1],
        sent_packets=sent[0],
        sent_bytes=sent[1],
        bits_per_s=8 * sent[1] / length,
        drops=counts[0],
        marks=counts[1],
        lost_packets=counts[2],
    )


def _resolved(text: str, folder: Path | None) -> str:
    """Load the controller that a text such as ``./autorate.py:Autorate`` names."""
    return class_name(" ".join(text.split()), folder, Controller)


controller_loaders.append(_resolved)
