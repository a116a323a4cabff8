"""The JSON Schema of scenario files says what the reader says."""

import json
import re
import tomllib
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import sojourn as sj
from corpus import corpus
from sojourn import _core
from sojourn.cli.reference import document as printed

ROOT = Path(__file__).parents[3]
COMMITTED = ROOT / "docs/schema/scenario.schema.json"
SCHEMA: dict[str, Any] = json.loads(_core.scenario_schema())
VALIDATOR = Draft202012Validator(SCHEMA)

Document = dict[str, Any]

# What each type of traffic cannot be without.
NEEDED: dict[str, Document] = {
    "tcp": {},
    "quic": {},
    "udp": {"rate": "1mbit"},
    "ping": {},
    "web": {"page": "small"},
    "sessions": {"every": "1s", "bytes": "1kb"},
    "request": {"bytes": "1kb"},
    "incast": {"bytes": "1kb", "servers": 2},
    "dash": {},
    "voip": {},
    "media": {},
    "responsiveness": {},
    "program": {"command": ["true"]},
    "bridged": {},
}
# What keys require beside them.
CONTEXT: dict[str, Document] = {
    **{f"web.{key}": {"http": "3"} for key in ("zero_rtt", "max_data", "max_stream_data")},
    **{f"{kind}.gro_flush_timeout": {"gro": True} for kind in NEEDED},
    "media.key_frame_factor": {"key_frame_interval": "1s"},
    "media.resume": {"pause": "1us"},
    "link.bql": {"tx_ring": 64},
    "link.tx_coalesce": {"tx_ring": 64},
    "link.medium.snr_db": {"rate_control": "minstrel_ht"},
    "link.medium.stations": {"rate_control": "minstrel_ht"},
    "tcp.block": {"rate": "1mbit"},
    "ping.payload": {"protocol": "udp"},
    "ping.timeout": {"protocol": "udp", "interval": "back-to-back"},
}
# Tables whose values have the unit of their key; crates/scenario/tests/changes.rs tests them.
TRACES = {"rate_trace", "delay_trace", "loss_trace"}
# Tables within tables.
EXAMPLES: list[Document] = [
    {"distribution": "exponential", "mean": "5ms"},
    {"distribution": "exponential", "mean": "5kb"},
    {"distribution": "lognormal", "median": "5kb", "sigma": 1.0},
    {"distribution": "pareto", "least": "5kb", "shape": 1.5},
    {"model": "gilbert-elliott", "to_bad": "1%", "to_good": "25%"},
    {"spread": "5ms"},
    {"at": "1s", "rate": "5mbit"},
    {"type": "wifi"},
    {"host": 1, "rate": "6mbit"},
    {"gaps_ms": "1 2x10"},
    {"name": "entry", "bytes": "1kb"},
    {"objects": [{"name": "entry", "bytes": "1kb"}]},
    {"name": "entry"},
]
# Accepted and refused values of definitions whose range is part of a pattern.
RANGES: dict[str, tuple[list[Any], list[Any]]] = {
    "name": (["x", "x" * 200], ["", "x" * 201]),
    "percent": (["0%", "100%"], ["-1%", "100.1%"]),
    "packets": (["1p", "1000000p"], ["0p", "1000001p"]),
}
# Values of every form, right in one place and wrong in most.
VALUES: list[Any] = [
    *(True, False, 0, 1, 2, 63, 64, 127, -1, 1_000_000_000, 0.5, -0.5, 6.0),
    *("", " ", "x", "5ms", " 5 MSEC ", "0s", "0.0s", "5", "-5ms", "10mbit", "10 Mbit/s", "0mbit"),
    *("400b", "4k", "1kbit", "1514", "-14b", "1%", "100%", "101%", "1 %", "10p", "0p", "htb"),
    *("EF", "af42", "64", "up", "down", "cubic", "hystart", "accurate", "2", "large", "adaptive"),
    *("codel", "codel target 5ms", "kodel", "pppoe-ptm", "ethernet ether-vlan", "back-to-back"),
    *([], ["up"], ["x"], ["5ms"], ["1mbit", "2mbit"], [1], {}, {"x": 1}),
    {"distribution": "exponential", "mean": "5ms"},
    {"distribution": "exponential", "mean": "5kb"},
    {"distribution": "pareto", "least": "5kb", "shape": 1.5},
    {"distribution": "pareto", "least": "5kb"},
    {"model": "gilbert-elliott", "to_bad": "1%", "to_good": "25%"},
    {"model": "gilbert", "to_bad": "1%", "to_good": "25%"},
    {"spread": "5ms", "distribution": "normal", "order": "free"},
    {"type": "wifi", "driver": "12ms", "stations": [{"host": 1, "rate": "6mbit"}]},
    {"type": "wifi", "driver": "0p"},
    {"file": "", "gaps_ms": "1 2x10"},
    {"kind": "codel", "target": "5ms", "ecn": True, "limit": 100},
    {"kind": "codel", "tarqet": "5ms"},
    *("python:Foo:0123456789ab", {"kind": "python:Foo:0123456789ab"}),
    {"kind": "prio", "leaf": ["python:Foo:0123456789ab", {"kind": "python:Foo:01", "limit": 3}]},
    {"kind": "cake", "diffserv4": True},
    {"kind": "prio", "bands": 3, "leaf": ["pfifo", "codel", {"kind": "sfq", "limit": 60}]},
    [{"at": "1s", "rate": "5mbit"}],
    [{"at": "1s", "speed": "5mbit"}],
]


def scenario(kind: str = "tcp", **traffic: Any) -> Document:
    """Compose a small scenario of one block of traffic."""
    link = {"rate": "10mbit", "qdisc": "pfifo"}
    block = {"type": kind, "direction": "up"} | NEEDED[kind] | traffic
    links = {"up": dict(link), "down": dict(link)}
    return {"duration": "10s", "rtt": "10ms", "links": links, "traffic": [block]}


def is_read(document: Document) -> bool:
    try:
        sj.Scenario.from_json(json.dumps(document))
    except sj.ScenarioError:
        return False
    return True


def variants() -> Iterator[tuple[str, Document]]:
    """Every key of every table, with every value."""
    for kind in NEEDED:
        for key in SCHEMA["$defs"][f"traffic_{kind}"]["properties"].keys() - {"type"}:
            for value in VALUES:
                document = scenario(kind)
                if key in {"path", "return"}:
                    del document["traffic"][0]["direction"]
                    document["traffic"][0]["path"] = ["up"]
                document["traffic"][0][key] = value
                yield f"{kind}.{key} = {value!r}", document
    for key in SCHEMA["$defs"]["link"]["properties"]:
        for value in VALUES:
            document = scenario()
            if key == "trace":
                del document["links"]["up"]["rate"]
            document["links"]["up"][key] = value
            yield f"link.{key} = {value!r}", document
    for key in SCHEMA["properties"]:
        for value in VALUES:
            yield f"{key} = {value!r}", scenario() | {key: value}


def scenario_files() -> list[Path]:
    folders = ("papers", "tests/golden/scenarios", "crates")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*.toml")]
    return [path for path in files if "links" in tomllib.loads(path.read_text(encoding="utf-8"))]


def test_the_committed_schema_is_the_one_that_the_command_prints() -> None:
    assert COMMITTED.read_text(encoding="utf-8") == printed(), (
        "docs/schema/scenario.schema.json is stale: make schema"
    )
    Draft202012Validator.check_schema(json.loads(printed()))


def test_every_key_of_the_reader_has_a_description() -> None:
    tables = {"scenario": SCHEMA, "link": SCHEMA["$defs"]["link"]}
    tables["page object"] = SCHEMA["$defs"]["page"]["properties"]["objects"]["items"]
    tables |= {kind: SCHEMA["$defs"][f"traffic_{kind}"] for kind in NEEDED}
    assert set(tables) == set(_core.scenario_keys())
    for name, keys in _core.scenario_keys().items():
        properties = tables[name]["properties"]
        present = {key for key, schema in properties.items() if "deprecated" not in schema}
        assert present == set(keys), name
        assert all(properties[key]["description"] for key in keys), name


# Validating takes a hundred times as long as reading.
@pytest.mark.parametrize("step", [8, pytest.param(1, marks=pytest.mark.slow)])
def test_every_scenario_of_the_repository_is_valid(step: int) -> None:
    files = scenario_files()
    assert len(files) > 30
    documents = {str(path): tomllib.loads(path.read_text(encoding="utf-8")) for path in files}
    part = dict(list(corpus().items())[::step])
    for name, document in (documents | part).items():
        assert VALIDATOR.is_valid(document), name


@pytest.mark.parametrize("step", [8, pytest.param(1, marks=pytest.mark.slow)])
def test_the_schema_refuses_nothing_that_the_reader_accepts(step: int) -> None:
    accepted = refused = 0
    for n, (name, document) in enumerate(variants()):
        if is_read(document):
            accepted += 1
            if accepted % step == 0:
                assert VALIDATOR.is_valid(document), (
                    f"the reader accepts and the schema refuses {name}"
                )
        elif n % (10 * step) == 0:
            refused += not VALIDATOR.is_valid(document)
    assert accepted > 800
    assert refused > 800 / step


def test_older_names_are_valid_where_the_reader_accepts_them() -> None:
    older = [place for place in all_keys() if place.schema.get("deprecated")]
    assert "page.objects.think" in {place.name for place in older}
    for place in older:
        accepted = [value for value in VALUES if is_read(place.scenario(value))]
        assert accepted, place.name
        for value in accepted:
            assert VALIDATOR.is_valid(place.scenario(value)), f"{place.name} = {value!r}"


def test_defaults_are_those_of_the_reader() -> None:
    checked = 0
    for place in all_keys():
        if "default" in place.schema:
            given, left_out = place.scenario(place.schema["default"]), place.scenario()
            assert read(given) == read(left_out), place.name
            checked += 1
    assert checked > 100


def test_ranges_are_those_of_the_reader() -> None:
    checked = 0
    for place in all_keys():
        for accepted, refused in ranges(place.schema):
            for value in accepted:
                error = refusal(place.scenario(value))
                # The largest number of flows has more samples and requests than a run may keep.
                assert error is None or ("too " in error and place.key == "count"), place.name
            for value in refused:
                assert not is_read(place.scenario(value)), f"{place.name} = {value!r}"
            checked += 1
    assert checked > 100


@dataclass(frozen=True)
class Place:
    """A key of a table, and scenarios in which it has a value or none."""

    name: str
    key: str
    schema: Document
    example: Document
    put: Callable[[Document], Document]

    def scenario(self, *values: Any) -> Document:
        """Put the key with this value, or the table without the key, into a scenario."""
        given = dict(zip([self.key], values, strict=False))
        return self.put(without(self.example, self.key) | given)


def all_keys() -> Iterator[Place]:
    """Every key of a scenario, those of nested tables included, but not those of queues."""
    whole = scenario()
    yield from keys("scenario", SCHEMA, whole, lambda document: document)
    link, up = SCHEMA["$defs"]["link"], whole["links"]["up"]
    yield from keys("link", link, up, lambda up: whole | {"links": whole["links"] | {"up": up}})
    page = SCHEMA["$defs"]["page"]
    yield from keys("page", page, example(page), lambda page: whole | {"pages": {"own": page}})
    for kind in NEEDED:
        table, block = SCHEMA["$defs"][f"traffic_{kind}"], scenario(kind)["traffic"][0]
        yield from keys(kind, table, block, lambda block: whole | {"traffic": [block]})


def keys(
    name: str, table: Document, given: Document, put: Callable[[Document], Document]
) -> Iterator[Place]:
    """The keys of a table of which `given` is an example."""
    for key, schema in table["properties"].items():
        whole = given | CONTEXT.get(f"{name}.{key}", {})
        yield Place(f"{name}.{key}", key, schema, whole, put)
        if key in TRACES:
            continue
        for inner, many in tables(schema):
            yield from keys(
                f"{name}.{key}",
                inner,
                example(inner),
                lambda entry, key=key, many=many, whole=whole: put(
                    whole | {key: [entry] if many else entry}
                ),
            )


def tables(schema: Document) -> Iterator[tuple[Document, bool]]:
    """The tables that a value may be, or that the items of a list are."""
    for form in forms(schema):
        if "items" in form:
            yield from ((inner, True) for inner, _ in tables(form["items"]))
        elif "properties" in form:
            yield form, False


def forms(schema: Document) -> Iterator[Document]:
    """What a value may be, with definitions in the place of their names."""
    name = schema.get("$ref", "").removeprefix("#/$defs/")
    if name in {"amount", "wait", "dscp"}:
        yield from forms(SCHEMA["$defs"][name])
    elif "anyOf" in schema:
        for form in schema["anyOf"]:
            yield from forms(form)
    else:
        yield schema


def example(table: Document) -> Document:
    """The first of the examples that is valid as such a table."""
    validator = Draft202012Validator(table | {"$defs": SCHEMA["$defs"]})
    return next(each for each in EXAMPLES if validator.is_valid(each))


def ranges(schema: Document) -> Iterator[tuple[list[Any], list[Any]]]:
    """The ends of the ranges of a value, and the values just outside."""
    for form in forms(schema):
        name = form.get("$ref", "").removeprefix("#/$defs/")
        if "x-range" in form:
            least, most = (re.findall(r"\d+|\D+", end) for end in form["x-range"])
            below, above = f"{int(least[0]) - 1}{least[1]}", f"{int(most[0]) + 1}{most[1]}"
            yield form["x-range"], [below, above]
        elif name in RANGES:
            yield RANGES[name]
        elif form.get("type") == "integer":
            least, most = form["minimum"], form["maximum"]
            yield [least, most], [least - 1, most + 1]
        elif form.get("type") == "number":
            least, most = form["minimum"], form["maximum"]
            yield [least, most], [least - 1e-6, most + 1e-6]


def refusal(document: Document) -> str | None:
    """The error of the reader, if there is one."""
    try:
        read(document)
    except sj.ScenarioError as error:
        return str(error)
    return None


def read(document: Document) -> sj.Scenario:
    return sj.Scenario.from_json(json.dumps(document))


def without(table: Document, key: str) -> Document:
    return {name: value for name, value in table.items() if name != key}


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("a key that is unknown", {"durration": "5s"}),
        ("a time without unit", {"duration": "10"}),
        ("a time that is a number", {"duration": 10}),
        ("a duration of zero", {"duration": "0s"}),
        ("replications below 1", {"replications": 0}),
        ("a flag that is text", {"keep_events": "yes"}),
        ("no traffic", {"traffic": []}),
        ("no links", {"links": {}}),
        ("an unknown type", {"traffic": [{"type": "ftp", "direction": "up"}]}),
        ("traffic without a way", {"traffic": [{"type": "tcp"}]}),
        ("both ways", {"traffic": [{"type": "tcp", "direction": "up", "path": ["up"]}]}),
        ("a direction that is none", {"traffic": [{"type": "tcp", "direction": "left"}]}),
        ("a key of another type", {"traffic": [{"type": "ping", "direction": "up", "cc": "bbr"}]}),
        ("an unknown control", {"traffic": [{"type": "tcp", "direction": "up", "cc": "cubci"}]}),
        ("UDP without a rate", {"traffic": [{"type": "udp", "direction": "up"}]}),
        ("a class that is none", {"traffic": [{"type": "tcp", "direction": "up", "dscp": "XY"}]}),
        ("an arm without a name", {"arms": [{"set": {}}]}),
        ("an arm with its own seed", {"arms": [{"name": "a", "set": {"seed": 2}}]}),
        ("an arm with a rate of 0", {"arms": [{"name": "a", "set": {"links.up.rate": "0mbit"}}]}),
        ("an arm without a queue", {"arms": [{"name": "a", "set": {"links.up.qdisc": "kodel"}}]}),
        ("an arm with no control", {"arms": [{"name": "a", "set": {"traffic[*].cc": "x"}}]}),
    ],
)
def test_both_refuse(name: str, change: Document) -> None:
    document = scenario() | change
    assert not VALIDATOR.is_valid(document), name
    assert not is_read(document), name


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("a queue that is unknown", {"qdisc": "kodel"}),
        ("a parameter that is unknown", {"qdisc": {"kind": "codel", "tarqet": "5ms"}}),
        ("a queue without a kind", {"qdisc": {"target": "5ms"}}),
        ("a rate that is a number", {"rate": 10}),
        ("a share without %", {"loss": "0.1"}),
        ("a chain that is incomplete", {"loss": {"model": "gilbert-elliott", "to_bad": "1%"}}),
        ("a framing that is none", {"framing": "tcp"}),
        ("a link layer that is none", {"overhead": "pppoe"}),
        ("a medium that is none", {"medium": {"type": "lte"}}),
        ("no changes", {"changes": []}),
    ],
)
def test_both_refuse_of_a_link(name: str, change: Document) -> None:
    document = scenario()
    document["links"]["up"] |= change
    assert not VALIDATOR.is_valid(document), name
    assert not is_read(document), name


def test_both_refuse_what_is_incomplete() -> None:
    whole = scenario("incast")
    documents = [without(whole, key) for key in ("duration", "links", "traffic")]
    for key in ("type", "direction", "servers", "bytes"):
        document = deepcopy(whole)
        document["traffic"][0] = without(document["traffic"][0], key)
        documents.append(document)
    for key in ("rate", "qdisc"):
        document = deepcopy(whole)
        document["links"]["up"] = without(document["links"]["up"], key)
        documents.append(document)
    for document in documents:
        assert not VALIDATOR.is_valid(document)
        assert not is_read(document)
