"""The reference of scenario keys, from the committed JSON Schema of scenario files."""

import json
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from generators.files import File, replace_section

Schema = dict[str, Any]

SCHEMA = "docs/schema/scenario.schema.json"
PAGE = "docs/reference/scenario.md"
WIDTH = 120
#: Types of the schema in words, where their own name is not the word.
TYPES = {
    "text": "string",
    "percent": "percentage",
    "dscp": "DSCP",
    "qdisc": "[queue](../qdiscs/README.md)",
    "congestion_control": "[congestion control](../controls/index.md)",
    "set": "table of [values by path](#set)",
    "link": "[link](#links)",
    "page": "[page](#pages)",
    "traffic": "[traffic block](#traffic)",
}
#: Types with distributions, and the section that describes them.
DISTRIBUTIONS = {"amount": "Random sizes", "wait": "Random times"}
#: Sections with the keys that several types of traffic declare alike, by one of their keys.
SHARED = {
    "start": "Keys of all traffic",
    "cc": "Keys of TCP, QUIC and applications",
    "on_ce": "Keys of TCP and applications",
    "transport": "Keys of applications",
}
#: The paths of an arm, by the beginning of their pattern in the schema.
PATHS = {
    r"links\.[^.]+\.": ("`links.<link>.<key>`", "[links](#links)"),
    r"traffic(\[(\d+|\*)\]|\..+)\.": (
        "`traffic[<number>].<key>`, `traffic.<name>.<key>`, `traffic[*].<key>`",
        "[traffic](#traffic)",
    ),
}


OF_COMMANDS = (
    "These tables say what is done with a scenario. They are not part of it and do not change its "
    "hash. The guides on\n[sweeps](../howto/sweeps.md), [searches](../howto/tune.md) and "
    "[expectations](../howto/expectations.md) explain them."
)


def documentation(root: Path) -> Iterator[File]:
    """Yield the page with a table of the keys of each table of a scenario."""
    schema = json.loads((root / SCHEMA).read_text(encoding="utf-8"))
    definitions = schema["$defs"]
    lines = ["## Types", "", *type_table(definitions)]
    lines += ["", "## General keys", "", *key_table(schema)]
    lines += ["", "## Links", "", *key_table(definitions["link"])]
    lines += subsections(definitions["link"], "###")
    lines += ["", "## Traffic", "", *traffic(definitions)]
    lines += ["", "## Pages", "", *key_table(definitions["page"])]
    lines += subsections(definitions["page"], "###")
    lines += ["", "## Distributions"]
    for name, title in DISTRIBUTIONS.items():
        lines += ["", f"### {title}", "", *tables(definitions[name], "####")]
    lines += ["", "## Arms", "", *tables(schema["properties"]["arms"], "###")]
    lines += ["", *paths(definitions)]
    lines += ["", "## Tables of commands", "", OF_COMMANDS]
    for name in ("sweep", "tune", "expect"):
        lines += ["", f"### `{name}`", "", *tables(schema["properties"][name], "####")]
    text = (root / PAGE).read_text(encoding="utf-8")
    text = replace_section(text, "keys", "\n".join(lines), where=PAGE)
    yield File(PAGE, text.encode())


def type_table(definitions: dict[str, Schema]) -> list[str]:
    """Return the types of values that the schema describes, with examples."""
    lines = ["| type | description | allowed | examples |", "|---|---|---|---|"]
    for name, definition in definitions.items():
        forms = [definition, *definition.get("anyOf", [])]
        described = next((form for form in forms if "description" in form), None)
        # Links and queues have tables of their own.
        if described and "properties" not in definition and "](" not in words(name):
            choices = "; ".join(filter(None, map(allowed, forms)))
            examples = literals(described.get("examples", []))
            lines.append(row(words(name), described["description"], choices, examples))
    return lines


def traffic(definitions: dict[str, Schema]) -> list[str]:
    """Return a section for each group of shared keys and for each type of traffic."""
    kinds = [form["$ref"].removeprefix("#/$defs/") for form in definitions["traffic"]["oneOf"]]
    owners: dict[tuple[str, str], list[str]] = {}
    for kind in kinds:
        for key, value in definitions[kind]["properties"].items():
            owners.setdefault((key, json.dumps(value)), []).append(kind)
    groups: dict[str, list[str]] = {}
    for marker, title in SHARED.items():
        found = [each for (key, _), each in owners.items() if key == marker]
        if len(found) != 1:
            message = f"{SCHEMA}: expected one declaration of the key {marker} in traffic"
            raise SystemExit(message)
        groups[title] = found[0]
    shared = {
        title: [key for (key, _), each in owners.items() if each == members]
        for title, members in groups.items()
    }
    lines: list[str] = []
    for title, members in groups.items():
        names = [f"[`{kind_name(kind)}`](#{kind_name(kind)})" for kind in members]
        lines += ["", f"### {title}", ""]
        if members != kinds:
            lines += [*paragraph(f"For {joined(names)}:"), ""]
        lines += key_table(definitions[members[0]], shared[title])
    for kind in kinds:
        titles = [title for title, members in groups.items() if kind in members]
        inherited = {key for title in titles for key in shared[title]}
        own = [key for key in definitions[kind]["properties"] if key not in inherited]
        links = [f"[{title[0].lower()}{title[1:]}](#{anchor(title)})" for title in titles]
        lines += ["", f"### `{kind_name(kind)}`", ""]
        lines += [*paragraph(f"Has the {joined([*links, 'these'])}:"), ""]
        lines += key_table(definitions[kind], own)
    return lines[1:]


def kind_name(definition: str) -> str:
    """Return the type of traffic that a definition describes."""
    return definition.removeprefix("traffic_")


def paths(definitions: dict[str, Schema]) -> list[str]:
    """Return what an arm may set and what it may not."""
    found: dict[str, list[str]] = {"": []}
    refused = []
    for pattern, value in definitions["set"]["patternProperties"].items():
        path = pattern.removeprefix("^").removesuffix("$")
        prefix = next((each for each in PATHS if path.startswith(each)), "")
        if value is False:
            refused.append(f"`{path}`")
        else:
            found.setdefault(prefix, []).append(path.removeprefix(prefix))
    kinds = [value for name, value in definitions.items() if name.startswith("traffic_")]
    everything = {key for kind in kinds for key in kind["properties"]}
    complete = dict(zip(PATHS, (set(definitions["link"]["properties"]), everything), strict=True))
    lines = ["### `set`", "", "| path | keys |", "|---|---|"]
    for prefix, keys in found.items():
        path, table = PATHS.get(prefix, ("`<key>`", ""))
        every = prefix and set(keys) == complete[prefix]
        listed = f"all keys of {table}" if every else ", ".join(f"`{key}`" for key in keys)
        lines.append(row(path, listed))
    lines += ["", f"An arm cannot change {joined(refused)}."]
    return [*lines, "[Arms](../scenario.md#arms-arms) has the paths of queue parameters."]


# Tables of keys


def subsections(table: Schema, heading: str, outer: Schema | None = None) -> list[str]:
    """Return a section for each key whose value is a table, unless `outer` has the same key."""
    lines: list[str] = []
    known = {} if outer is None else outer["properties"]
    for key, value in table["properties"].items():
        forms = inline_tables(value)
        if forms and forms != inline_tables(known.get(key, {})):
            lines += ["", f"{heading} `{key}`", "", *tables(value, heading + "#", table)]
    return lines


def tables(value: Schema, heading: str, outer: Schema | None = None) -> list[str]:
    """Return the keys of each table that a value may be, and of the tables in them."""
    lines: list[str] = []
    forms = inline_tables(value)
    for form in forms:
        # The key with one value says which table this is.
        markers = [each for each in form["properties"].values() if len(each.get("enum", [])) == 1]
        if len(forms) > 1:
            lines += ["", *(marker["description"] for marker in markers)]
        lines += ["", *key_table(form), *subsections(form, heading, outer)]
    return lines[1:]


def inline_tables(value: Schema) -> list[Schema]:
    """Return the tables that a value may be or hold, without those that have a name."""
    if "properties" in value:
        return [value]
    forms = [*value.get("anyOf", []), *([value["items"]] if "items" in value else [])]
    return [table for form in forms for table in inline_tables(form)]


def key_table(table: Schema, keys: list[str] | None = None) -> list[str]:
    """Return the keys of a table, required ones first, as a table in Markdown; no older names."""
    required = table.get("required", [])
    # Alternatives: a table has the keys of exactly one of them.
    one_of = [key for form in table.get("oneOf", []) for key in form["required"]]
    lines = ["| key | type | default | allowed | description |", "|---|---|---|---|---|"]
    present = [key for key, value in table["properties"].items() if "deprecated" not in value]
    chosen = [key for key in present if keys is None or key in keys]
    for key in sorted(chosen, key=lambda key: (key != "type", key not in required + one_of)):
        value = table["properties"][key]
        if "description" not in value:
            message = f"{SCHEMA}: the key {key} has no description"
            raise SystemExit(message)
        default = literals([value["default"]]) if "default" in value else value.get("x-default", "")
        if key in one_of:
            default = f"*this or* {', '.join(f'`{each}`' for each in one_of if each != key)}"
        elif key in required:
            default = "*required*"
        lines.append(
            row(f"`{key}`", type_of(value, key), default, allowed(value), value["description"])
        )
    return lines


def type_of(value: Schema, key: str) -> str:
    """Return the type of a value in words."""
    if "$ref" in value:
        return words(value["$ref"].removeprefix("#/$defs/"))
    if "anyOf" in value:
        forms = [
            literals(form["enum"]) if "enum" in form else type_of(form, key)
            for form in value["anyOf"]
        ]
        return " or ".join(forms)
    if "items" in value:
        return f"array of {plural(type_of(value['items'], key))}"
    if "additionalProperties" in value and "properties" not in value:
        return f"table of {plural(type_of(value['additionalProperties'], key))}"
    if "properties" in value:
        return f"[table](#{key})"
    if all(isinstance(choice, int) for choice in value.get("enum", [""])):
        return "integer"
    return str(value.get("type", "string"))


def allowed(value: Schema) -> str:
    """Return the choices or the range of a value that is not a union."""
    parts = []
    if "const" in value or "enum" in value:
        parts.append(literals(value.get("enum", [value.get("const")])))
    if "minimum" in value:
        parts.append(f"{number(value['minimum'])} to {number(value['maximum'])}")
    if "x-range" in value:
        parts.append(" to ".join(literals([end]) for end in value["x-range"]))
    if value.get("minItems", 0) or value.get("minProperties", 0):
        parts.append("at least one")
    if "propertyNames" in value:
        parts.append(f"names: `{value['propertyNames']['pattern']}`")
    return "; ".join(parts)


def words(name: str) -> str:
    """Return the name of a type of the schema in words."""
    if name in DISTRIBUTIONS:
        section = anchor(DISTRIBUTIONS[name])
        return f"{'size' if name == 'amount' else 'time'} or [distribution](#{section})"
    return TYPES.get(name, name.replace("_", " "))


def plural(name: str) -> str:
    """Return the plural of a type, also of one that is a link."""
    return re.sub(r"(\]\(.*\))?$", r"s\1", name, count=1)


def number(value: float) -> str:
    """Return a number with separators, and a whole one without a fraction."""
    return f"{int(value) if value == int(value) else value:,}"


def joined(parts: list[str]) -> str:
    """Return an enumeration."""
    return " and ".join(filter(None, [", ".join(parts[:-1]), parts[-1]]))


def paragraph(text: str) -> list[str]:
    """Return the lines of a paragraph; a link is not broken."""
    protected = re.sub(r"\[[^\]]*\]", lambda link: link[0].replace(" ", "\0"), text)
    lines = textwrap.wrap(protected, WIDTH, break_long_words=False, break_on_hyphens=False)
    return [line.replace("\0", " ") for line in lines]


def literals(values: list[Any]) -> str:
    """Return values as they are written in TOML, which is as in JSON."""
    return ", ".join(f"`{json.dumps(value, ensure_ascii=False)}`" for value in values)


def anchor(title: str) -> str:
    """Return the anchor of a heading."""
    return title.lower().replace(",", "").replace(" ", "-")


def row(*cells: str) -> str:
    """Return a row of a table in Markdown."""
    escaped = [cell.replace("|", "\\|") for cell in cells]
    return f"| {' | '.join(escaped)} |".replace("|  |", "| |").replace("|  |", "| |")
