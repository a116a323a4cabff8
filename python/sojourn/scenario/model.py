"""Scenarios: links, traffic, durations, and the arms to compare.

A scenario is data. It is checked when it is built, by the same code that reads scenario files,
so that Python and TOML accept the same.
"""

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Any

from sojourn import _core
from sojourn.arguments import ArgumentError
from sojourn.deferred import Deferred
from sojourn.document import Table, check, needs, plain
from sojourn.errors import invalid
from sojourn.queues.base import AnyQueue, queues_in, warn_of_queues
from sojourn.scenario.controller import Controller
from sojourn.scenario.files import read_scenario, split, with_queue_files
from sojourn.scenario.link import Link
from sojourn.traffic import TYPES, Page, PageObject, Traffic

if TYPE_CHECKING:
    from sojourn.presentation import html, model
else:
    # Needed only to show a scenario in a notebook.
    html, model = Deferred("sojourn.presentation.html"), Deferred("sojourn.presentation.model")


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """A variant of the scenario, to be compared with others.

    Parameters
    ----------
    name
        Name of the arm in results.
    set
        The values that it changes, by their path in the scenario, such as ``links.up.qdisc``,
        ``links.up.qdisc.target`` or ``traffic.bulk.cc.beta``.

    Examples
    --------
    >>> Arm(name="pie", set={"links.up.qdisc": "pie"}).name
    'pie'
    """

    name: str
    set: Mapping[str, AnyQueue | type[Controller] | Table | str | float | bool | Sequence[Table]]

    def __post_init__(self) -> None:
        """Have the core check the name and the paths, as far as possible without the scenario."""
        check("arm", self.document())

    def document(self, place: str = "") -> dict[str, Any]:
        """Convert the arm to JSON; `place` is its path, for error messages."""
        at = f"{place}." if place else ""
        needs(f"{at}set", self.set, Mapping, "a mapping from paths to values")
        return {"name": plain(f"{at}name", self.name), "set": plain(f"{at}set", self.set)}

    def __hash__(self) -> int:
        """Hash the name and the changes."""
        return hash(
            (self.name, tuple(sorted((key, f"{value}") for key, value in self.set.items())))
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scenario:
    """A network, its traffic and the arms to compare.

    Two scenarios are equal if their canonical forms are: an omitted value equals its default, and
    ``"1000ms"`` equals ``"1s"``.

    Parameters
    ----------
    links
        The links by name. With links called ``up`` and ``down``, traffic may give a direction
        instead of a path. ``"unlimited"`` instead of a link: packets pass at once.
    traffic
        The traffic blocks.
    duration
        Simulated duration of a run, with its unit.
    warmup
        Warm-up period, excluded from totals, with its unit; series cover the whole run.
    arms
        The variants to compare; by default one, the scenario itself.
    replications
        Number of runs per arm. Replication `k` of every arm has the same seed, so that
        differences between arms are paired.
    seed
        Seed for all random numbers.
    sample
        Length of one interval of the series, with its unit.
    rtt
        Base round-trip time, to which the delays of links are added, with its unit, for traffic
        without one of its own.
    name
        Name of the scenario in reports.
    keep_events
        Record every drop, mark and loss as an event, in addition to counting it.
    sample_state
        Record the statistics and the state of every queue at each sample.
    pages
        Web pages by name, for the `page` of :class:`Web`.
    controller
        A subclass of :class:`Controller`, or its file and name such as
        ``"./autorate.py:Autorate"``, which may change links during a run; by default ``"none"``.

    Raises
    ------
    ScenarioError
        A value is not valid; the message gives its path and what is accepted.

    Examples
    --------
    >>> from sojourn import Tcp
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

    links: Mapping[str, Link | str]
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
    sample_state: bool | None = None
    pages: Mapping[str, Page] | None = None
    controller: str | type[Controller] | None = None
    _checked: _core.Scenario = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Have the core check the scenario."""
        table = _scenario_document(self)
        document = json.dumps(table)
        parts = {"links": table["links"], "arms": table["arms"]}
        checked = _core.Scenario.from_json(document)
        object.__setattr__(self, "_checked", checked)
        warn_of_queues(queues_in(parts), stacklevel=3)

    def __eq__(self, other: object) -> bool:
        """Compare the canonical forms."""
        return isinstance(other, Scenario) and self._checked == other._checked

    def __hash__(self) -> int:
        """Hash the canonical form."""
        return hash(self._checked)

    @property
    def checked(self) -> _core.Scenario:
        """The scenario as the core holds it, with all defaults."""
        return self._checked

    @property
    def hash(self) -> str:
        """SHA-256 of the canonical form, in hexadecimal."""
        return self._checked.hash

    def _repr_html_(self) -> str:
        """Return links, traffic and arms as HTML, for notebooks."""
        checked = self._checked
        document = json.loads(checked.to_json())
        times = f"{checked.duration_s:g} s, warm-up {checked.warmup_s:g} s"
        runs = f"replications: {checked.replications}, seed: {document['seed']}"
        parts = {
            "link": list(document["links"].items()),
            "traffic": [
                (block.pop("name"), block | negotiated_ecn(block)) for block in document["traffic"]
            ],
            "arm": [(arm["name"], arm["set"]) for arm in document.get("arms", [])],
        }
        tables = [
            model.Table(
                [kind, "parameters"], [[name, _settings(part)] for name, part in named], words=2
            )
            for kind, named in parts.items()
            if named
        ]
        head: model.Text = [model.Styled(checked.name), f" {times}; {runs}"]
        return html.fragment([model.Paragraph(head), *tables])

    @property
    def runs(self) -> int:
        """Number of runs: arms times replications."""
        return len(self._checked.arms) * self._checked.replications

    def to_toml(self) -> str:
        """Write the scenario as TOML, defaults included.

        Returns
        -------
        str
            A scenario file for ``sojourn run``.
        """
        return self._checked.to_toml()

    @staticmethod
    def from_toml(text: str, directory: str | Path | None = None) -> "Scenario":
        """Read a scenario from TOML; without its tables ``[sweep]``, ``[tune]``, ``[[expect]]``.

        A queue such as ``"./mine.py:Ramp"`` or ``"./libramp.so"`` runs the code of this file.

        Parameters
        ----------
        text
            The TOML.
        directory
            Base of relative file names; by default the working directory.

        Returns
        -------
        Scenario
            The scenario, with all defaults.

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
        scenario, _ = split(text)
        scenario = with_queue_files(scenario, Path(directory or "."))
        checked = _core.Scenario.from_toml(scenario, directory)
        # The canonical form, which follows, has no notes.
        warn_of_queues(queues_in(tomllib.loads(scenario)), stacklevel=2)
        return _scenario(json.loads(checked.to_json()))

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
            The scenario, with all defaults.

        Raises
        ------
        ScenarioError
            The text is not JSON, or not a valid scenario.
        """
        checked = _core.Scenario.from_json(text)
        warn_of_queues(queues_in(json.loads(text)), stacklevel=2)
        return _scenario(json.loads(checked.to_json()))

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
            The scenario, with all defaults.

        Raises
        ------
        ScenarioError
            The file is not a regular file of at most 16 MB, not TOML, or not a valid scenario; the
            message names the file.
        OSError
            The file cannot be read.
        """
        text = read_scenario(path)
        try:
            return Scenario.from_toml(text, Path(path).parent)
        except _core.ScenarioError as error:
            raise invalid(path, f"{error}") from None

    def replace(
        self,
        *,
        links: Mapping[str, Link | str] | None = None,
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
        sample_state: bool | None = None,
        pages: Mapping[str, Page] | None = None,
        controller: str | type[Controller] | None = None,
    ) -> "Scenario":
        """Return a copy with some fields changed; ``None`` keeps a field.

        Returns
        -------
        Scenario
            The copy, checked again.
        """
        given = {key: value for key, value in locals().items() if value is not None}
        del given["self"]
        return replace(self, **given)


def _scenario_document(scenario: Scenario) -> dict[str, Any]:
    needs("links", scenario.links, Mapping, "a mapping from names to Links")
    needs("traffic", scenario.traffic, list | tuple, "a list of traffic blocks")
    needs("arms", scenario.arms, list | tuple, "a list of Arms")
    document: dict[str, Any] = {
        "links": {name: _link(f"links.{name}", link) for name, link in scenario.links.items()},
        "traffic": [
            _part(f"traffic[{index}]", group, Traffic, "a traffic object, such as Tcp")
            for index, group in enumerate(scenario.traffic)
        ],
        "arms": [
            _part(f"arms[{index}]", arm, Arm, "an Arm") for index, arm in enumerate(scenario.arms)
        ],
    }
    for name in (one.name for one in fields(scenario) if one.init):
        value = getattr(scenario, name)
        if name not in {"links", "traffic", "arms", "pages"} and value is not None:
            document[name] = plain(name, value)
    if scenario.pages is not None:
        needs("pages", scenario.pages, Mapping, "a mapping from names to Pages")
        document["pages"] = {
            name: _part(f"pages.{name}", page, Page, "a Page")
            for name, page in scenario.pages.items()
        }
    return document


def _link(place: str, link: Link | str) -> Any:
    # Other texts are refused by the core.
    return link if isinstance(link, str) else _part(place, link, Link, "a Link")


def _part(place: str, part: Table | Arm, kinds: type | UnionType, what: str) -> Any:
    needs(place, part, kinds, what)
    return part.document(place)


def negotiated_ecn(block: Mapping[str, Any]) -> dict[str, Any]:
    """Return the ECN mode of connections whose control needs one, whatever their key says."""
    if not {"cc", "ecn"} <= block.keys():
        return {}
    name = block["cc"].split(" ")[0]
    (need,) = (cc["ecn"] for cc in json.loads(_core.cc_catalogue()) if cc["name"] == name)
    # Acknowledgements of QUIC count marks in any case.
    if need == "accurate" and "quic" not in {block["type"], block.get("transport")}:
        return {"ecn": "accurate"}
    return {"ecn": block["ecn"] or need != "optional"}


def _settings(part: Mapping[str, Any]) -> str:
    """Write the keys of a table on one line."""
    texts = (value if isinstance(value, str) else json.dumps(value) for value in part.values())
    return ", ".join(f"{key} = {text}" for key, text in zip(part, texts, strict=True))


def _scenario(document: dict[str, Any]) -> Scenario:
    """Build the objects from the core's canonical document."""
    links = {
        name: link if isinstance(link, str) else Link.from_document(link)
        for name, link in document.pop("links").items()
    }
    traffic = [_traffic(group) for group in document.pop("traffic")]
    arms = [Arm(**arm) for arm in document.pop("arms", [])]
    pages = {
        name: Page(objects=[PageObject.from_document(item) for item in page["objects"]])
        for name, page in document.pop("pages", {}).items()
    }
    return Scenario(links=links, traffic=traffic, arms=arms, pages=pages or None, **document)


def _traffic(document: dict[str, Any]) -> Traffic:
    return TYPES[document.pop("type")].from_document(document)


def check_arm(scenario: Scenario, name: str, argument: str = "arm") -> None:
    """Check that a scenario has an arm, which an argument names.

    Examples
    --------
    >>> from sojourn import Arm, Link, Ping, Scenario
    >>> scenario = Scenario(
    ...     links={"up": Link(rate="10mbit", qdisc="codel"), "down": "unlimited"},
    ...     traffic=[Ping(direction="up")],
    ...     arms=[Arm(name="a", set={}), Arm(name="b", set={"rtt": "9ms"})],
    ...     rtt="5ms",
    ...     duration="3s",
    ...     warmup="1s",
    ... )
    >>> check_arm(scenario, "c")
    Traceback (most recent call last):
    sojourn.arguments.errors.ArgumentError: arm='c': unknown arm; expected one of a, b
    """
    names = scenario.checked.arms
    if name in names:
        return
    if not scenario.arms:
        raise ArgumentError(argument, name, "the scenario has no arms")
    rule = "unknown arm; expected one of {names}"
    raise ArgumentError(argument, name, rule, names=", ".join(names))
