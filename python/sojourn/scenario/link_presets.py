"""Presets of access links: rates, link layer, delay and buffers, each with its source.

``links.toml`` declares them. A value without a source is an assumption; texts mark it with
``[R]``: reconstructed.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from sojourn import _core

MARK = "[R]"
_FILE = Path(__file__).with_name("links.toml")


@dataclass(frozen=True, slots=True)
class Sourced:
    """A value and where it comes from."""

    value: Any
    source: str
    assumed: bool = False

    @property
    def mark(self) -> str:
        """``" [R]"`` if the value is assumed, else nothing."""
        return f" {MARK}" if self.assumed else ""


@dataclass(frozen=True, slots=True)
class LinkPreset:
    """An access link."""

    name: str
    title: str
    values: Mapping[str, Sourced]


@cache
def link_presets() -> dict[str, LinkPreset]:
    """Return the presets by name.

    Examples
    --------
    >>> link_presets()["adsl"].values["layer"].value
    'pppoe-llcsnap'
    """
    tables = tomllib.loads(_FILE.read_text(encoding="utf-8"))
    return {name: _preset(name, table) for name, table in tables.items()}


def _preset(name: str, table: dict[str, Any]) -> LinkPreset:
    values = {
        key: Sourced(item["value"], item.get("source") or item["assumed"], "assumed" in item)
        for key, item in table.items()
        if key != "title"
    }
    return LinkPreset(name, table["title"], values)


def link_preset(name: str) -> LinkPreset:
    """Return a preset."""
    known = link_presets()
    if name not in known:
        message = f'preset "{name}": unknown; expected one of {", ".join(known)}'
        raise _core.ScenarioError(message)
    return known[name]
