"""Queues that are named by their file, such as ``./mine.py:Ramp`` or ``./libramp.so``."""

import contextlib
import hashlib
import json
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

from sojourn import _core, files
from sojourn.document import LIBRARIES, may_name_file
from sojourn.errors import alternatives, invalid
from sojourn.queues import plugin
from sojourn.queues.python_class import PythonClass, registered, root
from sojourn.queues.python_queue import PythonQueue

# Maximum size of a file in bytes.
MAX_BYTES = 1_000_000
_WHOLE = re.compile(r"(?P<file>.+\.py)(?::(?P<name>.*))?")
_SUFFIX = f"(?:{'|'.join(map(re.escape, LIBRARIES))})"
_LIBRARY = re.compile(rf"(?P<file>.+?{_SUFFIX})(?P<cls>:\S*)?(?P<parameters> .*)?")
# In a queue that has others as leaves.
_LEAF = re.compile(rf"[^\s()]+(?:\.py(?::[^\s()]*)?|{_SUFFIX})(?![^\s()])")
_NAME = re.compile(rf"(?:{_core.python_prefix()}|{_core.plugin_prefix()})(\w+):[0-9a-f]+")

# The module of each file with the SHA-256 of its content; the file of each queue and how the user
# wrote both.
_modules: dict[Path, tuple[str, ModuleType]] = {}
_written: dict[str, tuple[Path, str]] = {}


def resolved(text: str, folder: Path | None = None) -> str:
    """Replace each ``FILE.py:CLASS`` and ``FILE.so`` in a queue by its name; load the file.

    Relative names are below `folder`, by default the working directory.
    """
    if not may_name_file(text):
        return text
    known = {entry["name"] for entry in json.loads(_core.qdisc_catalogue())}
    if text.split(maxsplit=1)[0] in known:
        return _LEAF.sub(lambda found: _name(found[0], folder), text)
    whole = " ".join(text.split())
    if found := _LIBRARY.fullmatch(whole):
        if found["cls"]:
            raise _refused(whole, f"a plug-in has one queue; expected {found['file']}")
        return _name(found["file"], folder) + (found["parameters"] or "")
    return _name(whole, folder) if _WHOLE.fullmatch(whole) else text


def _name(text: str, folder: Path | None) -> str:
    """Load a file with a queue, and return its name."""
    if not text.endswith(LIBRARIES):
        return class_name(text, folder)
    path = (folder or Path()) / text
    try:
        name = plugin.load(path)
    except OSError as error:
        raise _refused(text, f"cannot read {path}: {error.strerror}") from None
    except (_core.ScenarioError, _core.QueueError) as error:
        raise _refused(text, short(f"{error}")) from None
    _written[name] = path, text
    return name


def short(text: str) -> str:
    """Write classes of Python and plug-ins in a queue without their digits.

    Examples
    --------
    >>> short("prio leaf python:Ramp:0123456789ab")
    'prio leaf Ramp'
    """
    return _NAME.sub(r"\1", text)


def with_files(text: str, folder: Path | None = None, *, write: Callable[[str], str] = str) -> str:
    """Name what was loaded from files in a text as the user did, or relative to `folder`.

    `write` writes a name as a part of the text.
    """

    def name(found: re.Match[str]) -> str:
        if found[0] not in _written:
            return found[0]
        path, written = _written[found[0]]
        if folder is not None:
            written = os.path.relpath(path, folder)
            if not written.endswith(LIBRARIES):
                written += f":{found[1]}"
        return write(written)

    return _NAME.sub(name, text)


def toml_with_files(text: str, folder: Path | None = None) -> str:
    """Name the classes in a TOML document that the core wrote, all of whose strings are basic."""
    return with_files(text, folder, write=lambda name: toml_string(name)[1:-1])


def toml_string(text: str) -> str:
    r"""Write a basic string of TOML.

    Examples
    --------
    >>> print(toml_string('a"b\\c\x7f'))
    "a\"b\\c\u007f"
    """
    # JSON does not escape DEL.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def named(texts: Iterable[str]) -> dict[str, str]:
    """Key queues by names for people; a file tells classes of one name apart."""
    chosen = list(texts)
    names = [short(text) for text in chosen]
    return {
        name if names.count(name) == 1 else with_files(text): text
        for name, text in zip(names, chosen, strict=True)
    }


def catalogued(text: str) -> dict[str, Any]:
    """Return the entry of a queue in the catalogue; a class of Python gets its own."""
    name = text.split(maxsplit=1)[0]
    if not name.startswith(_core.python_prefix()):
        entries: list[dict[str, Any]] = json.loads(_core.qdisc_catalogue(name))
        for library in plugin.loaded([name]):
            version, sha256 = _core.queue_origin(name)
            entries[0] |= {"file": library.file, "version": version, "sha256": sha256}
        return entries[0]
    queue, _ = registered(name)
    file, _ = _written.get(name, (queue.__module__, ""))
    return {
        "name": name,
        "summary": (queue.__doc__ or "a queue written in Python").strip().splitlines()[0],
        "source": f"{file}",
        "reconstruction": None,
        "profiles": [],
        "parameters": [],
    }


def class_name(text: str, folder: Path | None, base: type = PythonQueue) -> str:
    """Load a subclass of `base` from a text such as ``./mine.py:Ramp``, and return its name."""
    found = _WHOLE.fullmatch(text)
    if found is None:
        raise _refused(text, "expected a file and a class, such as ./mine.py:Mine")
    file, name = found["file"], found["name"] or ""
    path = (folder or Path()) / file
    module = _loaded(path, text)
    known = [
        key
        for key, value in vars(module).items()
        if isinstance(value, PythonClass) and root(value) is base and value is not base
    ]
    instead = f"expected {alternatives(f'{file}:{key}' for key in known)}"
    if not known:
        instead = f"the file has no subclass of sojourn.{base.__name__}"
    if " " in name:
        problem = (
            f"a {vars(module)[known[0]].kind} has no parameters; write a subclass as a variant"
        )
        raise _refused(text, problem)
    if not name:
        raise _refused(text, f"no class; {instead}")
    if name not in known:
        kind = (
            "no class"
            if name not in vars(module)
            else f"not a subclass of sojourn.{base.__name__}:"
        )
        raise _refused(text, f"{kind} {name}; {instead}")
    spec: str = vars(module)[name].spec
    _written[spec] = path, text
    return spec


def _refused(text: str, problem: str) -> _core.ScenarioError:
    error = invalid(text, problem)
    # The argument that has the value names it.
    error.path, error.value = None, text
    return error


def _loaded(path: Path, text: str) -> ModuleType:
    """Load a file, again if its content has changed."""
    try:
        content = files.head(path, MAX_BYTES + 1)
    except _core.NotRegularError as error:
        raise _refused(text, f"{path}: {error.strerror}; expected a Python file") from None
    except OSError as error:
        raise _refused(text, f"cannot read {path}: {error.strerror}") from None
    if len(content) > MAX_BYTES:
        raise _refused(text, f"{path}: too large; expected at most {MAX_BYTES} bytes")
    place, digest = path.resolve(), hashlib.sha256(content).hexdigest()
    if place in _modules and _modules[place][0] == digest:
        return _modules[place][1]
    # The same wherever the file is, because the identity of a class contains it.
    module = ModuleType("queue_file_" + re.sub(r"\W", "_", path.stem))
    module.__file__ = f"{place}"
    # Of another file of this name, or of this one before it was edited.
    previous = sys.modules.get(module.__name__)
    sys.modules[module.__name__] = module
    try:
        # Standard output may be a document.
        with contextlib.redirect_stdout(sys.stderr):
            # Not by the import system, which would write a cache beside the file.
            exec(compile(content, f"{place}", "exec"), vars(module))  # noqa: S102 - the user's own
    except BaseException as error:
        if previous is None:
            del sys.modules[module.__name__]
        else:
            sys.modules[module.__name__] = previous
        if isinstance(error, KeyboardInterrupt):
            raise
        raise _refused(text, _located(path, place, error)) from error
    _modules[place] = digest, module
    return module


def _located(path: Path, place: Path, error: BaseException) -> str:
    """Write an error of a file with the last line of the file that led to it."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == f"{place}"]
    line = error.lineno if isinstance(error, SyntaxError) else lines[-1] if lines else None
    problem = error.msg if isinstance(error, SyntaxError) else " ".join(f"{error}".split())
    at = f"{path}" if line is None else f"{path}, line {line}"
    return f"{at}: {type(error).__name__}: {problem}".removesuffix(": ")
