"""Scenarios: links, traffic, how long, and the variants to compare.

A scenario is data. It is checked when it is built, by the same code that reads scenario files,
so that what Python accepts and what a TOML file may say cannot differ.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from sojourn import _core
from sojourn.qdisc import Queue
from sojourn.scenario.validation import needs, plain
from sojourn.traffic import (
    Dash,
    Incast,
    Page,
    PageObject,
    Ping,
    Quic,
    Request,
    Responsiveness,
    Sessions,
    Tcp,
    Traffic,
    Udp,
    Voip,
    Web,
)

# What may leave at each time of a trace: 1504 B.
_OPPORTUNITY_BITS = 12032


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A transmitter with a queue in front and a wire behind.

    Parameters
    ----------
    rate
        Bits per second of Ethernet frames (14 B header, no FCS) plus `overhead`, with its unit.
    qdisc
        The queue: an object such as ``CoDel()`` or text such as ``"codel target 5ms"``.
    delay
        Propagation delay of the wire, with its unit.
    overhead
        Bytes that the link adds to each frame, with unit; may be negative. Or a link layer by
        its name in ``tc``, such as ``"ethernet"`` or ``"pppoe-ptm"``, with ``"ether-vlan"``
        behind it for a VLAN tag.
    mpu
        What the smallest frame counts, overhead included, with its unit.
    framing
        How the link packs bytes: ``"noatm"`` (as they are), ``"atm"`` or ``"ptm"``.
    trace
        Instead of `rate`: the file of a capacity trace of Mahimahi, each line of which is a time
        in milliseconds at which 1504 B may leave. A scenario keeps what the file holds.
    burst
        Enforce the rate by a token bucket of this size, with its unit, or ``"htb"`` for the
        size that Linux's ``htb`` takes; by default by serialisation, as a wire does.
    loss
        Share of packets lost on the wire, such as ``"1%"``, or a Gilbert-Elliott chain:
        ``{"model": "gilbert-elliott", "to_bad": "1%", "to_good": "25%"}``.
    duplicate
        Share of packets that arrive twice, such as ``"0.1%"``.
    jitter
        How far the delay of the wire deviates, uniformly and without reordering, with its unit;
        or ``{"spread": "5ms", "distribution": "normal", "order": "free"}``.
    changes
        What becomes of rate and delay later: ``[{"at": "10s", "rate": "5mbit"}]``.
    medium
        Makes the link a radio that shares the air with the others of its medium:
        ``{"type": "wifi", "name": "home", "driver": "12ms"}``. `rate` is that of its symbols.

    Examples
    --------
    >>> Link(rate="10mbit", qdisc="codel").rate
    '10mbit'
    """

    rate: str | None = None
    trace: str | Path | Mapping[str, str] | None = None
    qdisc: Queue | str
    delay: str | None = None
    overhead: str | int | None = None
    mpu: str | None = None
    framing: str | None = None
    burst: str | None = None
    loss: str | Mapping[str, str] | None = None
    duplicate: str | None = None
    jitter: str | Mapping[str, str] | None = None
    changes: Sequence[Mapping[str, str]] | None = None
    medium: Mapping[str, Any] | None = None

    @property
    def bits_per_s(self) -> float:
        """The highest rate the link has, or the mean of its trace, once that has been read."""
        if isinstance(self.trace, Mapping):
            gaps = [gap.partition("x") for gap in self.trace["gaps_ms"].split()]
            times = [int(times or 1) for _, _, times in gaps]
            last_ms = sum(int(gap) * n for (gap, _, _), n in zip(gaps, times, strict=True))
            return sum(times) * _OPPORTUNITY_BITS * 1000 / last_ms
        later = [change["rate"] for change in self.changes or () if "rate" in change]
        rates = later if self.rate is None else [self.rate, *later]
        return float(max((_core.parse_rate_bits_per_s(rate) for rate in rates), default=0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """A variant of the scenario.

    Parameters
    ----------
    name
        What results call it.
    set
        The values it changes, by their path in the scenario.

    Examples
    --------
    >>> Arm(name="pie", set={"links.up.qdisc": "pie"}).name
    'pie'
    """

    name: str
    set: Mapping[str, Queue | str | float | bool]

    def __hash__(self) -> int:
        """Hash the name and the changes."""
        return hash(
            (self.name, tuple(sorted((key, f"{value}") for key, value in self.set.items())))
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scenario:
    """What to simulate.

    Two scenarios are equal if they say the same, however they say it: what is left to its default
    equals what is given as such, ``"1000ms"`` equals ``"1s"``.

    Parameters
    ----------
    links
        The links by name. With links called ``up`` and ``down``, traffic may give a direction
        instead of a path.
    traffic
        What crosses them.
    duration
        How long a run lasts, with its unit.
    warmup
        From when on totals count, with its unit; series cover the whole run.
    arms
        The variants to compare; by default one, the scenario itself.
    replications
        How many runs each arm gets. Replication `k` of every arm draws the same random
        numbers, so that differences between arms are paired.
    seed
        Every random number of every run derives from it.
    sample
        Length of one interval of the series, with its unit.
    rtt
        Round-trip time with empty queues of traffic that does not say its own, with its unit.
    name
        What reports call the scenario.
    keep_events
        Keep every drop and mark as an event, besides counting it.
    pages
        Web pages by name, for :class:`Web` to look at.

    Raises
    ------
    ScenarioError
        The scenario does not hold together; the message names the place and what would be right.

    Examples
    --------
    >>> scenario = Scenario(
    ...     links={
    ...         "up": Link(rate="10mbit", qdisc="codel"),
    ...         "down": Link(rate="10mbit", qdisc="pfifo"),
    ...     },
    ...     traffic=[Tcp(direction="up")],
    ...     rtt="50ms",
    ...     duration="10s",
    ...     warmup="2s",
    ... )
    >>> scenario.replace(seed=7).seed
    7
    """

    links: Mapping[str, Link]
    traffic: Sequence[Traffic]
    duration: str
    warmup: str | None = None
    arms: Sequence[Arm] = ()
    replications: int | None = None
    seed: int | None = None
    sample: str | None = None
    rtt: str | None = None
    name: str | None = None
    keep_events: bool | None = None
    pages: Mapping[str, Page] | None = None
    _checked: _core.Scenario = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Have the core check the scenario."""
        document = json.dumps(_scenario_document(self))
        checked = _core.Scenario.from_json(document)
        object.__setattr__(self, "_checked", checked)

    def __eq__(self, other: object) -> bool:
        """Compare the canonical forms."""
        return isinstance(other, Scenario) and self._checked == other._checked

    def __hash__(self) -> int:
        """Hash the canonical form."""
        return hash(self._checked)

    @property
    def checked(self) -> _core.Scenario:
        """The scenario as the core holds it, with every default filled in."""
        return self._checked

    @property
    def hash(self) -> str:
        """SHA-256 of the canonical form, in hexadecimal."""
        return self._checked.hash

    @property
    def runs(self) -> int:
        """How many runs the scenario asks for: arms times replications."""
        return len(self._checked.arms) * self._checked.replications

    def to_toml(self) -> str:
        """Write the scenario as TOML, defaults included.

        Returns
        -------
        str
            What ``sojourn run`` reads.
        """
        return self._checked.to_toml()

    @staticmethod
    def from_toml(text: str, folder: str | Path | None = None) -> "Scenario":
        """Read a scenario from TOML.

        Parameters
        ----------
        text
            The TOML.
        folder
            What the names of files in it are relative to; by default the working directory.

        Returns
        -------
        Scenario
            The scenario, with every default filled in.

        Raises
        ------
        ScenarioError
            The text is not TOML, or not a valid scenario.

        Examples
        --------
        >>> Scenario.from_toml('''
        ... duration = "10s"
        ... warmup = "2s"
        ... rtt = "50ms"
        ... links.up = {rate = "10mbit", qdisc = "codel"}
        ... links.down = {rate = "10mbit", qdisc = "pfifo"}
        ... traffic = [{type = "tcp", direction = "up"}]
        ... ''').links["up"].rate
        '10mbit'
        """
        return _scenario(json.loads(_core.Scenario.from_toml(text, folder).to_json()))

    @staticmethod
    def from_json(text: str) -> "Scenario":
        """Read a scenario from JSON of the same shape as the TOML.

        Parameters
        ----------
        text
            The JSON.

        Returns
        -------
        Scenario
            The scenario, with every default filled in.

        Raises
        ------
        ScenarioError
            The text is not JSON, or not a valid scenario.
        """
        return _scenario(json.loads(_core.Scenario.from_json(text).to_json()))

    @staticmethod
    def from_file(path: str | Path) -> "Scenario":
        """Read a scenario from a TOML file.

        Parameters
        ----------
        path
            The file.

        Returns
        -------
        Scenario
            The scenario, with every default filled in.

        Raises
        ------
        ScenarioError
            The file is not TOML, or not a valid scenario; the message names the file.
        OSError
            The file cannot be read.
        """
        try:
            text = Path(path).read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            message = f"{path}: not text in UTF-8 (byte {error.start})"
            raise _core.ScenarioError(message) from None
        try:
            return Scenario.from_toml(text, Path(path).parent)
        except _core.ScenarioError as error:
            message = f"{path}: {error}"
            raise _core.ScenarioError(message) from None

    def replace(
        self,
        *,
        links: Mapping[str, Link] | None = None,
        traffic: Sequence[Traffic] | None = None,
        duration: str | None = None,
        warmup: str | None = None,
        arms: Sequence[Arm] | None = None,
        replications: int | None = None,
        seed: int | None = None,
        sample: str | None = None,
        rtt: str | None = None,
        name: str | None = None,
        keep_events: bool | None = None,
        pages: Mapping[str, Page] | None = None,
    ) -> "Scenario":
        """Return a copy with some fields changed; ``None`` keeps a field as it is.

        Returns
        -------
        Scenario
            The copy, checked anew.
        """
        return Scenario(
            links=self.links if links is None else links,
            traffic=self.traffic if traffic is None else traffic,
            duration=self.duration if duration is None else duration,
            warmup=self.warmup if warmup is None else warmup,
            arms=self.arms if arms is None else arms,
            replications=self.replications if replications is None else replications,
            seed=self.seed if seed is None else seed,
            sample=self.sample if sample is None else sample,
            rtt=self.rtt if rtt is None else rtt,
            name=self.name if name is None else name,
            keep_events=self.keep_events if keep_events is None else keep_events,
            pages=self.pages if pages is None else pages,
        )


# Fields whose name in a scenario file is a word that Python reserves.
_FILE_NAMES = {"reverse": "return"}
_FIELD_NAMES = {value: key for key, value in _FILE_NAMES.items()}


def _document(place: str, part: Link | Traffic | PageObject) -> dict[str, Any]:
    """Write the fields that were given."""
    given = {
        _FILE_NAMES.get(item.name, item.name): getattr(part, item.name) for item in fields(part)
    }
    return {
        name: plain(f"{place}.{name}", value) for name, value in given.items() if value is not None
    }


def _scenario_document(scenario: Scenario) -> dict[str, Any]:
    needs("links", scenario.links, Mapping, "Links by their names")
    needs("traffic", scenario.traffic, list | tuple, "a list of traffic")
    needs("arms", scenario.arms, list | tuple, "a list of Arms")
    document: dict[str, Any] = {
        "links": {name: _link(f"links.{name}", link) for name, link in scenario.links.items()},
        "traffic": [
            _group(f"traffic[{index}]", group) for index, group in enumerate(scenario.traffic)
        ],
        "arms": [_arm(f"arms[{index}]", arm) for index, arm in enumerate(scenario.arms)],
    }
    for name in (
        "duration",
        "warmup",
        "replications",
        "seed",
        "sample",
        "rtt",
        "name",
        "keep_events",
    ):
        value = getattr(scenario, name)
        if value is not None:
            document[name] = plain(name, value)
    if scenario.pages is not None:
        needs("pages", scenario.pages, Mapping, "Pages by their names")
        document["pages"] = {
            name: _page(f"pages.{name}", page) for name, page in scenario.pages.items()
        }
    return document


def _link(place: str, link: Link) -> dict[str, Any]:
    needs(place, link, Link, "a Link")
    return _document(place, link)


def _group(place: str, group: Traffic) -> dict[str, Any]:
    needs(place, group, Traffic, "traffic such as a Tcp")
    return {"type": group.kind, **_document(place, group)}


def _arm(place: str, arm: Arm) -> dict[str, Any]:
    needs(place, arm, Arm, "an Arm")
    needs(f"{place}.set", arm.set, Mapping, "values by their paths")
    return {"name": plain(f"{place}.name", arm.name), "set": plain(f"{place}.set", arm.set)}


def _page(place: str, page: Page) -> dict[str, Any]:
    needs(place, page, Page, "a Page")
    needs(f"{place}.objects", page.objects, list | tuple, "a list of PageObjects")
    objects = [(f"{place}.objects[{index}]", item) for index, item in enumerate(page.objects)]
    for at, item in objects:
        needs(at, item, PageObject, "a PageObject")
    return {"objects": [_document(at, item) for at, item in objects]}


def _scenario(document: dict[str, Any]) -> Scenario:
    """Build the objects from the core's canonical document."""
    links = {name: Link(**link) for name, link in document.pop("links").items()}
    traffic = [_traffic(group) for group in document.pop("traffic")]
    arms = [Arm(**arm) for arm in document.pop("arms", [])]
    pages = {
        name: Page(objects=[PageObject(**item) for item in page["objects"]])
        for name, page in document.pop("pages", {}).items()
    }
    return Scenario(links=links, traffic=traffic, arms=arms, pages=pages or None, **document)


def _traffic(document: dict[str, Any]) -> Traffic:
    kind = document.pop("type")
    renamed = {_FIELD_NAMES.get(key, key): value for key, value in document.items()}
    kinds: dict[str, type[Traffic]] = {
        "tcp": Tcp,
        "quic": Quic,
        "udp": Udp,
        "ping": Ping,
        "web": Web,
        "sessions": Sessions,
        "request": Request,
        "incast": Incast,
        "dash": Dash,
        "voip": Voip,
        "responsiveness": Responsiveness,
    }
    return kinds[kind](**renamed)
