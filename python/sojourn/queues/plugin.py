"""Queues in shared libraries, which are named by their files, such as ``./libramp.so``."""

import stat
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from sojourn import _core
from sojourn.errors import invalid

# Random sequences of calls when a library is loaded: a few hundredths of a second.
_CASES = 20
_SEED = 1


class Plugin(NamedTuple):
    """A library that was loaded; another process that needs its queue must find the same file."""

    name: str
    file: str
    sha256: str


# By file, with what tells whether it has changed; and by name.
_files: dict[Path, tuple[tuple[int, int, int], str]] = {}
_loaded: dict[str, Plugin] = {}


def load(file: Path) -> str:
    """Load the queue of a library, which runs its code, and return its name in scenarios.

    The contract checks run once per content of the file and process. Errors are values of
    :class:`ScenarioError`, :class:`QueueError` or OSError without the name of the file.
    """
    place = file.resolve()
    status = place.stat()
    if not stat.S_ISREG(status.st_mode):
        message = "not a regular file; expected a shared library"
        raise _core.ScenarioError(message)
    seen = status.st_ino, status.st_size, status.st_mtime_ns
    if place in _files and _files[place][0] == seen:
        return _files[place][1]
    try:
        name = _core.load_plugin(place)
    except _core.ScenarioError as error:
        # The caller names the file.
        raise _core.ScenarioError(f"{error}".replace(f"{place}: ", "")) from None
    _, sha256 = _core.queue_origin(name)
    if name not in _loaded:
        try:
            _core.check_qdisc(name, _CASES, _SEED)
        except AssertionError as error:
            raise _core.ScenarioError(f"{error}".removeprefix(f"{name} ")) from None
    _files[place] = seen, name
    _loaded[name] = Plugin(name, f"{place}", f"{sha256}")
    return name


def loaded(names: Iterable[str]) -> list[Plugin]:
    """Return the libraries of those queues of a scenario that are plug-ins."""
    plugins = [name for name in names if name.startswith(_core.plugin_prefix())]
    for name in plugins:
        if name not in _loaded:
            problem = "the plug-in is not loaded; pass its file, such as ./libramp.so, as the qdisc"
            raise invalid(name, problem)
    return [_loaded[name] for name in plugins]


def load_same(plugin: Plugin) -> None:
    """Load a library that another process has loaded."""
    file = Path(plugin.file)
    if plugin.name in _loaded:
        return
    try:
        name = load(file)
    except OSError as error:
        problem = f"cannot read {file}: {error.strerror}"
        raise _core.QueueError(problem) from None
    if _loaded[name].sha256 != plugin.sha256:
        found, expected = _loaded[name].sha256[:12], plugin.sha256[:12]
        problem = (
            f"{file} differs from the loaded file: its SHA-256 is {found}…; expected {expected}…"
        )
        raise _core.QueueError(problem)
