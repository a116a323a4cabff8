"""Shell completion of queues, congestion controls, traffic, studies, backends and paths.

Each function is called with the incomplete word. It must not raise, because the error would be
printed into the command line.
"""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import typer

from sojourn import _core
from sojourn.document import LIBRARIES, may_name_file
from sojourn.scenario import presets
from sojourn.scenario.presets import link_presets

# A word with its description.
Items = list[tuple[str, str]]


def queues(incomplete: str) -> Items:
    """List the queues whose names begin with `incomplete`; for a path, files with queues."""
    if "/" in incomplete or may_name_file(incomplete):
        return _queue_files(incomplete)
    return _described(_core.qdisc_catalogue(), incomplete)


def _queue_files(incomplete: str) -> Items:
    """List directories, files with queues, and classes that begin with `incomplete`."""
    folder, _, start = incomplete.rpartition("/")
    file, colon, cls = incomplete.partition(":")
    try:
        if colon:
            # Only read: completion runs no code of the file.
            text = Path(file).read_text(encoding="utf-8")
            names = re.findall(r"^class (\w+)\(.*\bPythonQueue\b", text, re.MULTILINE)
            return [(f"{file}:{name}", "queue") for name in names if name.startswith(cls)]
        found = sorted(Path(folder or ("/" if incomplete.startswith("/") else ".")).iterdir())
        names = [
            one.name + ("/" if one.is_dir() else ":" if one.suffix == ".py" else "")
            for one in found
            if one.name.startswith(start)
            and (one.is_dir() or one.suffix == ".py" or one.suffix in LIBRARIES)
        ]
    except (OSError, ValueError):
        return []
    return [(incomplete.removesuffix(start) + name, "") for name in names]


def controls(incomplete: str) -> Items:
    """List the congestion controls whose names begin with `incomplete`."""
    return _described(_core.cc_catalogue(), incomplete)


def citable(context: typer.Context, incomplete: str) -> Items:
    """List the queues, congestion controls and studies whose names begin with `incomplete`."""
    names = [(name, "study") for name in studies(context, incomplete)]
    return [*names, *queues(incomplete), *controls(incomplete)]


def traffic(incomplete: str) -> list[str]:
    """List the traffic names that begin with `incomplete`, with 1 for each number of flows.

    Examples
    --------
    >>> traffic("web+tcp_1up")
    ['web+tcp_1up', 'web+tcp_1up_1down']
    """
    *given, last = incomplete.split("+")
    before = "".join(f"{part}+" for part in given)
    return [before + name for name in presets.numbered_names() if name.startswith(last)]


def scenarios(incomplete: str) -> list[str]:
    """List the names of traffic, the scenario files and the directories that begin so."""
    folder = Path(incomplete).parent if "/" in incomplete else Path()
    try:
        files = [
            f"{one}/" if one.is_dir() else f"{one}"
            for one in sorted(folder.iterdir())
            if one.is_dir() or one.suffix == ".toml"
        ]
    except OSError:
        files = []
    return [*(name for name in files if name.startswith(incomplete)), *traffic(incomplete)]


def presets_of_lines(incomplete: str) -> Items:
    """List the presets of access lines whose names begin with `incomplete`."""
    return [
        (name, one.title) for name, one in link_presets().items() if name.startswith(incomplete)
    ]


def studies(context: typer.Context, incomplete: str) -> list[str]:
    """List the studies in the directory of ``--papers`` that begin with `incomplete`."""
    from sojourn.studies import study  # noqa: PLC0415 - slow to import

    try:
        folder = study.studies_folder(context.params.get("papers"))
    except _core.SojournError:
        return []
    return [name for name in study.names(folder) if name.startswith(incomplete)]


def backends(incomplete: str) -> list[str]:
    """List the backends whose names begin with `incomplete`."""
    return [name for name in _core.backend_names() if name.startswith(incomplete)]


def targets(incomplete: str) -> list[str]:
    """List the backends and clusters whose names begin with `incomplete`."""
    return [*backends(incomplete), *(one for one in ("dask",) if one.startswith(incomplete))]


def changes(context: typer.Context, incomplete: str) -> list[str]:
    """List the paths in the scenario file that begin with `incomplete`, each followed by ``=``."""
    # An option without its value stops the parser, which leaves the file among the arguments.
    given = context.params.get("file") or next(iter(context.args), None)
    try:
        file = Path(given or "")
        checked = _core.Scenario.from_toml(file.read_text(encoding="utf-8"), file.parent)
    except (OSError, ValueError, _core.SojournError):
        return []
    scenario = json.loads(checked.to_json())
    return [f"{path}=" for path in _paths(scenario) if path.startswith(incomplete)]


def _paths(scenario: dict[str, Any]) -> Iterable[str]:
    keys = _core.scenario_keys()
    yield from (key for key in keys["scenario"] if key not in {"links", "traffic", "arms", "pages"})
    for name, link in scenario["links"].items():
        # An unlimited link is a word without keys.
        if isinstance(link, dict):
            yield from _below(f"links.{name}", link, keys["link"])
    for block in scenario["traffic"]:
        of_type = (key for key in keys[block["type"]] if key not in {"type", "name"})
        yield from _below(f"traffic.{block['name']}", block, of_type)


def _below(place: str, table: dict[str, Any], keys: Iterable[str]) -> Iterable[str]:
    """List the paths of the keys of a table, and of the parameters of their values."""
    for key in keys:
        path, value = f"{place}.{key}", table.get(key)
        yield path
        if isinstance(value, str):
            yield from (f"{path}.{name}" for name, _ in _core.parameters_at(path, value))


def _described(catalogue: str, incomplete: str) -> Items:
    entries = json.loads(catalogue)
    return [
        (entry["name"], entry["summary"])
        for entry in entries
        if entry["name"].startswith(incomplete)
    ]


def formats(incomplete: str) -> Items:
    """List the formats of exports whose names begin with `incomplete`."""
    from sojourn.exchange import exporting  # noqa: PLC0415 - slow to import

    return [
        (name, one.summary)
        for name, one in exporting.FORMATS.items()
        if name.startswith(incomplete)
    ]
