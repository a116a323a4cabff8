"""The commands of ``tc`` in a shell script: lines, variables and arithmetic."""

import ast
import operator
import re
import shlex
from collections.abc import Callable, Iterator, Sequence

from sojourn import _core

# The option for a network namespace has a value.
_COMMAND = re.compile(
    r"^\s*(?:sudo\s+)?(?:\S*/)?(?:tc|\$TC|\$\{TC\})\s+(?:-n(?:etns)?\s+\S+\s+|-\S*\s+)*"
    r"(?P<words>[^\s<>&|;-].*)$"
)
# Words of tc, which takes the first one that begins as the word that is given.
_OBJECTS = ("qdisc", "class", "filter", "chain", "actions", "monitor", "exec", "help")
_READ = _OBJECTS[:3]
_ACTIONS = ("add", "change", "replace", "delete", "get", "list", "show", "lst", "help")
_OF_QDISCS = ("add", "change", "replace", "link", "delete", "list", "show", "lst", "help")
_CHANGING = ("add", "change", "replace", "delete")
# Operators of the shell that end a command.
_ENDS = ";&|"
# Where another command begins on the line of one.
_NEXT = re.compile(r"\s*(?:;|&&)\s*(?=(?:sudo\s+)?(?:\S*/)?(?:tc|\$TC|\$\{TC\})\s)")
_SETTING = re.compile(
    r"""^\s*(?:export\s+|local\s+)?(\w+)="""
    r"""("[^"`]*"|'[^']*'|\$\(\([^()]*\)\)|\$\[[^\]]*\]|[^\s"'`;]*)\s*;?\s*(?:#.*)?$"""
)
_ARITHMETIC = re.compile(r"\$\(\(([^()]*)\)\)|\$\[([^\]]*)\]")
_OPERATIONS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.floordiv,
}
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_TC = re.compile(r"\btc\b", re.IGNORECASE)
# A command somewhere in a line, such as behind a condition.
_HIDDEN = re.compile(
    r"(?:\btc|\$TC|\$\{TC\})\"?\s+(?:-\S*\s+)*(?:(?:q|c|f)\w*\s+(?:a|c|r|d)\w*\s|-b(?!.*<<)|-[^<]*<(?!<))"
)
# What a variable of the shell leaves after all that lines set.
_UNSET = re.compile(r"\$(?:\{[^}]*\}|\w+|[@*#?!])")
_CONTROL = re.compile(r"^\s*(for|while|until|if|case|function)\b|^\s*\w+\s*\(\)")


def commands(text: str, place: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the commands with the numbers of their lines; in an empty place, nothing is refused.

    The first two words are whole: abbreviations are completed.
    """
    values: dict[str, str] = {}
    for number, line in _lines(text):
        if (setting := _SETTING.match(line)) is not None:
            values[setting[1]] = _expanded(setting[2].strip("\"'"), values)
            continue
        if line.lstrip().startswith("#"):
            continue
        try:
            words = _command(line, values, text if place else "")
        except ValueError as error:
            if place:
                message = f"{place}: line {number}: {error}"
                raise _core.ScenarioError(message) from None
            continue
        if words:
            yield number, words


def _command(line: str, values: dict[str, str], text: str) -> list[str]:
    """Return the words of the command of a line; an empty list: it has none that is read."""
    # A variable may hold the beginning of a command.
    found = _COMMAND.match(line) or _COMMAND.match(_expanded(line, values))
    if found is None and not _is_of_batch(line):
        control = _CONTROL.match(line)
        if control is not None and _TC.search(text):
            problem = "loops, conditions and functions are not read; expected tc commands"
            message = f'"{control[0].strip()}": {problem}'
            raise ValueError(message)
        if text and (hidden := _HIDDEN.search(_expanded(line.partition(" #")[0], values))):
            message = f'"{hidden[0].strip()}" is not read here; expected a line that begins with tc'
            raise ValueError(message)
        if not text or _TC.search(re.sub(r"(?m)^\s*#.*", "", text)):
            return []
    if found is not None and " -b" in found[0][: found.start("words") - found.start()]:
        message = "tc -batch is not read; import the file of its commands"
        raise ValueError(message)
    # Every line of a text without the word is one for ``tc -batch``.
    command = _expanded(line if found is None else found["words"], values)
    unset = _UNSET.search(command) or _ARITHMETIC.search(command)
    if unset is not None:
        message = f"no line sets {unset[0]} to a fixed value"
        raise ValueError(message)
    words = _words(command)
    ends = [at for at, word in enumerate(words) if word[:1] in {*_ENDS} or ">" in word]
    return _completed(words[: min(ends, default=len(words))])


def _completed(words: list[str]) -> list[str]:
    """Complete the object and the action; an empty list: the command makes no queue."""
    if not words:
        return []
    what, action, *rest = [*words[:1], *(words[1:] or ["list"])]
    whole = _first(what, _OBJECTS)
    actions = _OF_QDISCS if whole == _OBJECTS[0] else _ACTIONS
    completed = [whole, _first(action, actions), *rest]
    if completed[0] in _READ:
        return completed
    if completed[0] not in _OBJECTS:
        message = f'tc: "{what}" is unknown; expected {", ".join(_READ[:-1])} or {_READ[-1]}'
        raise ValueError(message)
    return []


def _first(word: str, known: Sequence[str]) -> str:
    """Complete a word as tc does; an unknown one stays as it is."""
    return next((one for one in known if word and one.startswith(word)), word)


def _is_of_batch(line: str) -> bool:
    """Whether a line is a command of a file for ``tc -batch``."""
    what, action, *_ = [*line.split(maxsplit=2), "", ""]
    return _first(what, _OBJECTS) in _READ and _first(action, _ACTIONS) in _CHANGING


def _words(command: str) -> list[str]:
    """Split a command into words; an operator of the shell is a word, with or without spaces."""
    reader = shlex.shlex(command, posix=True, punctuation_chars=_ENDS)
    reader.whitespace_split = True
    return [*reader]


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Return the lines, each command of ``tc`` on its own."""
    for number, line in joined(text):
        for part in _NEXT.split(line) if _COMMAND.match(line) else [line]:
            yield number, part


def joined(text: str) -> Iterator[tuple[int, str]]:
    """Join lines that end in a backslash."""
    whole, first = "", 1
    for number, line in enumerate(text.splitlines(), 1):
        first = first if whole else number
        if line.endswith("\\"):
            whole += line[:-1] + " "
            continue
        yield first, whole + line
        whole = ""
    if whole:
        yield first, whole


def _expanded(text: str, values: dict[str, str]) -> str:
    """Replace variables, then compute what is whole numbers."""
    known = _VARIABLE.sub(lambda found: values.get(found[1] or found[2], found[0]), text)
    return _ARITHMETIC.sub(lambda found: _computed(found, values), known)


def _computed(found: re.Match[str], values: dict[str, str]) -> str:
    """Compute ``$((…))`` or ``$[…]``; it is left as it is if it has more than numbers."""
    text = re.sub(r"[A-Za-z_]\w*", lambda name: values.get(name[0], name[0]), found[1] or found[2])

    def value(node: ast.expr) -> int:
        match node:
            case ast.Constant(value=int(number)):
                return number
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATIONS:
                return _OPERATIONS[type(op)](value(left), value(right))
        raise ValueError

    try:
        return f"{value(ast.parse(text.strip(), mode='eval').body)}"
    except (SyntaxError, ValueError, ZeroDivisionError, RecursionError):
        return found[0]
