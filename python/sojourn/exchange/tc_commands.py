"""The commands of ``tc`` in a shell script: lines, variables and arithmetic."""

import ast
import operator
import re
import shlex
from collections.abc import Callable, Iterator

from sojourn import _core

_COMMAND = re.compile(
    r"^\s*(?:sudo\s+)?(?:\S*/)?(?:tc|\$TC|\$\{TC\})\s+(?:-\S+\s+)*"
    r"(?P<words>(?:qdisc|class|filter)\s.*)$"
)
_BATCH = re.compile(
    r"^\s*(?P<words>(?:qdisc|class|filter)\s+(?:add|replace|change|del|delete)\s.*)$"
)
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
_CONTROL = re.compile(r"^\s*(for|while|until|if|case|function)\b|^\s*\w+\s*\(\)")


def commands(text: str, place: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the commands with the numbers of their lines; in an empty place, nothing is refused."""
    values: dict[str, str] = {}
    for number, line in _lines(text):
        if (setting := _SETTING.match(line)) is not None:
            values[setting[1]] = _expanded(setting[2].strip("\"'"), values)
            continue
        if line.lstrip().startswith("#"):
            continue
        found = _COMMAND.match(line) or _BATCH.match(line)
        if found is None:
            control = _CONTROL.match(line)
            if place and control is not None and re.search(r"\btc\b", text):
                at = f"{place}: line {number}"
                word = control[0].strip()
                problem = "loops, conditions and functions are not read; expected tc commands"
                message = f'{at}: "{word}": {problem}'
                raise _core.ScenarioError(message)
            continue
        command = _expanded(found["words"], values)
        unset = _VARIABLE.search(command) or _ARITHMETIC.search(command)
        if unset is not None and place:
            message = f"{place}: line {number}: no line sets {unset[0]} to a fixed value"
            raise _core.ScenarioError(message)
        try:
            words = _words(command)
        except ValueError as error:
            if place:
                message = f"{place}: line {number}: {error}"
                raise _core.ScenarioError(message) from None
            continue
        ends = [at for at, word in enumerate(words) if word[:1] in {*_ENDS} or ">" in word]
        yield number, words[: min(ends, default=len(words))]


def _words(command: str) -> list[str]:
    """Split a command into words; an operator of the shell is a word, with or without spaces."""
    reader = shlex.shlex(command, posix=True, punctuation_chars=_ENDS)
    reader.whitespace_split = True
    return [*reader]


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Return the lines, each command of ``tc`` on its own."""
    for number, line in _joined(text):
        for part in _NEXT.split(line) if _COMMAND.match(line) else [line]:
            yield number, part


def _joined(text: str) -> Iterator[tuple[int, str]]:
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
