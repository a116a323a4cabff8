"""The links of a running run: their settings, and changes of them as users write them."""

import difflib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from sojourn import _core
from sojourn.document import plain
from sojourn.errors import alternatives, invalid
from sojourn.scenario.link import Link
from sojourn.scenario.paths import Value, value_of

# The keys of `changes` in scenarios, without the time.
KEYS = ("rate", "delay", "loss", "duplicate", "jitter", "qdisc")
EXPECTED = alternatives(KEYS)
# Also those that only a scenario sets.
OF_LINKS = {*KEYS, *(field.name for field in fields(Link))}
_PATH = re.compile(r"links\.(?P<link>[^.\[\]]+)\.(?P<key>[^.\[\]]+)(?:\.(?P<part>[^.\[\]]+))?")
Settings = dict[str, dict[str, Any]]


class Links:
    """The links of a run, of which the keys of `changes` can change at any time."""

    def __init__(self, control: _core.LinkControl) -> None:
        self._control = control

    def now(self) -> tuple[float, Settings]:
        """Return the time of the run in seconds and the settings of its links."""
        time_s, links = self._control.change([])
        return time_s, {name: json.loads(keys) for name, keys in links}

    def watch(self) -> None:
        """Let the watchers of the run be shown it from now on."""
        self._control.watch()

    def change(self, assignments: Iterable[tuple[str, Value]]) -> tuple[float, Settings]:
        """Change paths such as ``links.down.qdisc``: all at the same time, or none."""
        _, before = self.now()
        asked = requests(assignments, before)
        time_s, links = self._control.change([(name, json.dumps(asked[name])) for name in asked])
        return time_s, {name: json.loads(keys) for name, keys in links}


def assignment(text: str) -> tuple[str, Value]:
    """Read ``PATH=VALUE``.

    Examples
    --------
    >>> assignment("links.down.qdisc=pie target 20ms")
    ('links.down.qdisc', 'pie target 20ms')
    """
    path, sign, value = text.partition("=")
    if not sign or not path.strip() or not value.strip():
        raise invalid(text, "expected PATH=VALUE, such as links.down.qdisc=pie")
    return path.strip(), value_of(path.strip(), value.strip())


def requests(
    assignments: Iterable[tuple[str, Value]], settings: Mapping[str, Mapping[str, Any]]
) -> Settings:
    """Write assignments as the keys of a change for each link.

    Examples
    --------
    >>> settings = {"down": {"qdisc": "codel limit 1000"}, "up": {"qdisc": "pie"}}
    >>> requests([("links.*.rate", "5mbit")], settings)
    {'down': {'rate': '5mbit'}, 'up': {'rate': '5mbit'}}
    >>> requests([("links.down.qdisc.target", "9ms")], settings)
    {'down': {'qdisc': {'kind': 'codel', 'target': '9ms'}}}
    """
    asked: Settings = {}
    for path, value in assignments:
        for name, key, part in _targets(path, settings):
            keys = asked.setdefault(name, {})
            place = f"links.{name}.{key}"
            if part is None:
                if key in keys:
                    raise invalid(place, "given twice; expected one value")
                keys[key] = plain(path, value)
                continue
            if key != "qdisc":
                raise invalid(path, f"does not change alone; expected a value for {place}")
            kind = f"{settings[name][key]}".split()[0]
            queue = keys.setdefault(key, {"kind": kind})
            if not isinstance(queue, dict) or part in queue:
                raise invalid(path, f"given twice; expected one value, or one for {place}")
            queue[part] = plain(path, value)
    return asked


def values(settings: Mapping[str, Mapping[str, Any]], paths: Iterable[str]) -> dict[str, Any]:
    """Return the values at paths; without any, those of all keys.

    Examples
    --------
    >>> values({"down": {"rate": "5mbit", "qdisc": "pie target 15ms"}}, ["links.down.rate"])
    {'links.down.rate': '5mbit'}
    """
    found = {}
    for path in paths or ["links.*.*"]:
        for name, key, part in _targets(path, settings, refusal="is no setting of a run"):
            place = f"links.{name}.{key}"
            if key not in settings[name]:
                if "*" in path:
                    continue
                raise invalid(place, "a trace determines it")
            if part is None:
                found[place] = settings[name][key]
                continue
            parameters = dict(_core.parameters_at("links.x.qdisc", f"{settings[name][key]}"))
            if key != "qdisc" or part not in parameters:
                near = difflib.get_close_matches(part, parameters, n=1)
                instead = f"did you mean {near[0]}?" if near else f"expected {place}"
                raise invalid(path, f"no such parameter; {instead}")
            found[f"{place}.{part}"] = parameters[part]
    return found


def _targets(
    path: str,
    settings: Mapping[str, Mapping[str, Any]],
    refusal: str = "cannot change during a run",
) -> Iterable[tuple[str, str, str | None]]:
    """Yield the link, the key and the parameter of a queue that a path names."""
    found = _PATH.fullmatch(path)
    if found is None:
        rule = f"{refusal}; expected links.NAME.KEY, KEY: {EXPECTED}"
        raise invalid(path, rule)
    name, key, part = found["link"], found["key"], found["part"]
    if name != "*" and name not in settings:
        known = alternatives([*settings, "*"])
        place = f"links.{name}"
        raise invalid(place, f"unknown link; expected {known}")
    if key not in {*KEYS, "*"}:
        near = difflib.get_close_matches(key, KEYS, n=1)
        instead = f"did you mean {near[0]}?" if near else f"expected {EXPECTED}"
        problem = refusal if key in OF_LINKS else "unknown key"
        raise invalid(path, f"{problem}; {instead}")
    for link in settings if name == "*" else (name,):
        for one in KEYS if key == "*" else (key,):
            yield link, one, part
