"""The base of the typed queue disciplines, and queues in the syntax of ``tc``.

Each subclass is one discipline and each field one of its parameters, named as in ``tc``. A field
that is ``None`` takes the default of the discipline (``sojourn qdiscs NAME`` lists them). The
parameters are checked when the object is built.
"""

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, cast, get_args

from sojourn import _core
from sojourn.arguments import checked
from sojourn.document import Brief, described, hint, queue_loaders, queue_text, word
from sojourn.errors import QueueWarning, invalid
from sojourn.queues.python_queue import PythonQueue
from sojourn.queues.queue_file import resolved

queue_loaders.append(resolved)


class _QueueClass(type):
    """The class of :class:`Queue`: a class of queues stands for a queue with all defaults."""

    @property
    def spec(cls) -> str:
        """The queue in the syntax of ``tc``."""
        return str(cls())


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue(Brief, metaclass=_QueueClass):
    """A queue discipline and its parameters.

    Base class of the typed queues; use a subclass or :func:`qdisc`.
    """

    kind: ClassVar[str] = ""

    def __post_init__(self) -> None:
        """Have the core check the parameters; what ``tc`` would change of a text is an error."""
        _core.parse_qdisc(self.spec)
        for note in _core.qdisc_notes(self.spec):
            raise _core.ScenarioError(note)

    @property
    def spec(self) -> str:
        """The queue in the syntax of ``tc``.

        Examples
        --------
        >>> from sojourn import CoDel
        >>> CoDel(target="13ms", ecn=False).spec
        'codel target 13ms noecn'
        """
        words = [self.kind]
        for field in fields(self):
            words += _words(field.name, getattr(self, field.name), Queue in get_args(field.type))
        return " ".join(words)

    def __str__(self) -> str:
        """Return the queue in the syntax of ``tc``."""
        return self.spec


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An entry of a list in a queue, such as a class of ``htb``.

    Base class; use a subclass.
    """

    def __str__(self) -> str:
        """Return the entry as text, in parentheses."""
        words: list[str] = []
        for field in fields(self):
            words += _words(field.name, getattr(self, field.name), Queue in get_args(field.type))
        return f"({' '.join(words)})"


def _words(name: str, value: "_Value", has_queues: bool) -> list[str]:  # noqa: FBT001
    """Write one parameter: a flag as its name alone, or with the prefix ``no``."""
    if value is None:
        return []
    if isinstance(value, bool):
        return [name if value else f"no{name}"]
    if has_queues:
        leaves = [value] if isinstance(value, str) or not isinstance(value, Sequence) else value
        return [name, " / ".join(_part(name, leaf) for leaf in leaves)]
    if isinstance(value, str | int | float):
        return [name, word(name, value)]
    if isinstance(value, Sequence) and value and all(isinstance(one, Entry) for one in value):
        return [name, *(f"{one}" for one in value)]
    if not isinstance(value, Sequence):
        raise invalid(name, f"expected a string or a number, not {described(value)}{hint(value)}")
    return [name, *(word(name, cast("str | int", part)) for part in value)]


def _part(name: str, leaf: object) -> str:
    """Write a leaf; one that has leaves of its own in parentheses."""
    spec = queue_text(name, leaf)
    if not isinstance(spec, str):
        raise invalid(name, f"expected a queue, not {described(leaf)}{hint(leaf)}")
    return f"({spec})" if " / " in spec else spec


# What is accepted as a queue: a text, which may name a file such as ``./mine.py:Ramp``, an object,
# or a class, which stands for an object with all defaults. Also as a queue inside another.
AnyQueue = str | Queue | type[Queue] | type[PythonQueue]
Leaf = AnyQueue
Queues = AnyQueue | Sequence[AnyQueue]

_Value = str | float | Leaf | Sequence[int] | Sequence[Leaf] | Sequence[Entry] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Text(Queue):
    """A queue in the syntax of ``tc``, with every parameter."""

    text: str

    @property
    def spec(self) -> str:
        """The queue in the syntax of ``tc``."""
        return self.text


def texts(queues: Queues) -> tuple[str, ...]:
    """Return the queues of a plan, which has written them as texts."""
    return cast("tuple[str, ...]", queues)


# What was warned of: once per process, however often a scenario is copied.
_warned: set[str] = set()


def warn_of_queues(texts: Iterable[str], stacklevel: int) -> None:
    """Warn once of what ``tc`` reads otherwise than a reader of these queues may expect."""
    for note in (note for text in texts for note in _core.qdisc_notes(text)):
        if note not in _warned:
            warnings.warn(note, QueueWarning, stacklevel + 1)
            _warned.add(note)


def queues_in(document: Any) -> Iterator[str]:
    """Iterate over the queues in a table of a scenario file, also those of its arms."""
    yield from texts_of("qdisc", document)


def texts_of(key: str, document: Any) -> Iterator[str]:
    """Iterate over the texts of a key in a table of a scenario file, also those of its arms."""
    items = document.items() if isinstance(document, dict) else [("", document)]
    for path, value in items:
        if isinstance(value, str):
            yield from [value] if path.split(".")[-1] == key else []
        elif isinstance(value, dict | list):
            for one in value if isinstance(value, list) else [value]:
                yield from texts_of(key, {path: one} if isinstance(one, str) else one)


@checked
def qdisc(text: str) -> Text:
    """Parse a queue in the syntax of ``tc``.

    Issues a :class:`QueueWarning` for what ``tc`` reads otherwise than you may expect, such as a
    time without a unit.

    Parameters
    ----------
    text
        Name and parameters, such as ``"fq_codel target 5ms"``, or the file and the class of a
        queue written in Python, such as ``"./mine.py:Ramp"``, or the library of a plug-in and its
        parameters, such as ``"./libramp.so low 2ms"``.

    Returns
    -------
    Text
        The queue, in canonical form.

    Raises
    ------
    ScenarioError
        The queue or a parameter is unknown, or a value is out of range.

    Examples
    --------
    >>> qdisc("pfifo limit 127").spec
    'pfifo limit 127'
    """
    queue = Text(text=_core.parse_qdisc(queue_text("", text)))
    warn_of_queues([text], stacklevel=3)
    return queue


def inner_queues(text: str) -> list[str]:
    """Split inner queues at the slashes outside parentheses.

    Examples
    --------
    >>> inner_queues("codel target 9ms / (drr leaf pie / red)")
    ['codel target 9ms', 'drr leaf pie / red']
    """
    parts, depth = [""], 0
    for mark in text:
        depth += {"(": 1, ")": -1}.get(mark, 0)
        if mark == "/" and depth == 0:
            parts.append("")
        else:
            parts[-1] += mark
    bare = [part.strip().removeprefix("(").removesuffix(")") for part in parts]
    return [part for part in bare if part]
