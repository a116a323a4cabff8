"""Commands whose options follow from a plan, whose declarations the Python function shares."""

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

import typer

from sojourn import _core
from sojourn.arguments import (
    ArgumentError,
    Declared,
    FileSpelling,
    OutputError,
    Plan,
    declared,
    read_table,
    spelled,
)
from sojourn.arguments.errors import PLACEHOLDER
from sojourn.cli import completion, session
from sojourn.cli.options import path
from sojourn.scenario import Scenario

PlanT = TypeVar("PlanT", bound=Plan)


class OptionSpelling:
    """Arguments as options of a command: ``--trials 0``."""

    def name(self, argument: str, beside: str | None = None) -> str:  # noqa: ARG002 - protocol
        """Write the name of an argument."""
        return f"--{argument.replace('_', '-')}"

    def entry(self, argument: str, key: str) -> str:
        """Write the name of an entry of an argument that is a mapping."""
        return f"{self.name(argument)} {key}"

    def given(self, argument: str, value: object) -> str:
        """Write an argument with its value."""
        text = f"{value}"
        shown = f'"{text}"' if not text or any(map(str.isspace, text)) else text
        return f"{self.name(argument)} {shown}"


def spell_options(error: _core.SojournError) -> None:
    """Let an error of an argument that no plan of a command declares name an option."""
    if isinstance(error, ArgumentError | OutputError):
        error.spelling = error.spelling or OptionSpelling()


class Given(OptionSpelling, Generic[PlanT]):
    """The arguments of a plan that the user gave: as options, and in a table of the file."""

    def __init__(self, plan: type[PlanT], options: Mapping[str, Any], table: str | None) -> None:
        self._plan = plan
        self._declared = {one.name: one for one in declared(plan)}
        # By argument; a mapping is kept as the texts KEY=VALUE of its option.
        self.options = dict(options)
        self.file: dict[str, Any] = {}
        self._table = table

    def plan(self, scenario: Scenario | None, tables: Mapping[str, Any]) -> PlanT:
        """Return the checked plan; options replace the values of the table in the file."""
        if self._table is not None:
            self.file = read_table(self._plan, self._table, tables.get(self._table, {}))
        values = {**self.file, **self.options}
        for one in self._declared.values():
            if one.is_mapping and (one.is_required or one.name in values):
                values[one.name] = self._entries(one.name)
            elif one.is_list and one.is_required:
                values.setdefault(one.name, ())
        build: Callable[..., PlanT] = self._plan
        return build(scenario=scenario, **values)

    def check(self) -> None:
        """Check each option, before any file is read."""
        for name, value in self.options.items():
            one = self._declared[name]
            # A mapping is still a list of texts.
            if not one.is_mapping:
                one.check(value)

    def _entries(self, argument: str) -> dict[str, Any]:
        """Return the entries of a mapping: those of the file that options do not replace, first."""
        texts = self.options.get(argument, ())
        session.warn_of_bytes(*texts)
        given = [_entry(argument, text) for text in texts]
        session.note_queues(*session.queues_in(dict(given)))
        own = [_paths(key) for key, _ in given]
        replacing = {path for paths in own for path in paths}
        found: dict[str, Any] = {}
        for key, values in self.file.get(argument, {}).items():
            paths = _paths(key)
            kept = [path for path in paths if path not in replacing]
            if kept and len(kept) < len(paths):
                replaced = next(path for path in paths if path in replacing)
                rule = (
                    "[{table}] changes it together with {kept}; expected values for all of them, "
                    "such as {paths}=…, or a value for each"
                )
                raise ArgumentError(
                    argument,
                    rule=rule,
                    key=replaced,
                    table=f"{self._table}.{argument}",
                    kept=", ".join(kept),
                    paths=",".join(paths),
                )
            if kept:
                found[key] = values
        for paths, (_, values) in zip(own, given, strict=True):
            key = ",".join(paths)
            if key in found:
                rule = "given twice; expected each parameter once"
                raise ArgumentError(argument, rule=rule, key=key)
            found[key] = values
        return found

    def name(self, argument: str, beside: str | None = None) -> str:
        """Write the name of an argument as the user gave it, or could give it."""
        one = self._declared.get(argument)
        if one is None:
            return super().name(argument)
        near = beside is not None and self._is_in_file(beside) and one.argument.in_files
        is_given = argument in self.options or argument in self.file
        if self._is_in_file(argument) or (near and not is_given):
            return FileSpelling(f"{self._table}").name(argument)
        # The option may be of another plan of the command.
        return one.argument.short or one.option or super().name(argument)

    def entry(self, argument: str, key: str) -> str:
        """Write an entry of a mapping, which the file or an option has."""
        own = {_paths(text.partition("=")[0]) for text in self.options.get(argument, ())}
        given = {path for paths in own for path in paths}
        if argument in self.file and not given & set(_paths(key)):
            return FileSpelling(f"{self._table}").entry(argument, key)
        return super().entry(argument, key)

    def given(self, argument: str, value: object) -> str:
        """Write an argument with its value as the user gave it."""
        if self._is_in_file(argument):
            return FileSpelling(f"{self._table}").given(argument, value)
        return super().given(argument, value)

    def _is_in_file(self, argument: str) -> bool:
        return argument in self.file and argument not in self.options


def _entry(argument: str, text: str) -> tuple[str, str]:
    """Split ``PATH=VALUES`` into the path and the values."""
    key, sign, values = text.partition("=")
    if not sign or not key.strip():
        rule = "expected path=values, such as links.up.rate=5mbit,10mbit"
        raise ArgumentError(argument, text, rule)
    return key, values


def _paths(key: str) -> tuple[str, ...]:
    """Split the key of a mapping, whose paths change together."""
    return tuple(path.strip() for path in key.split(","))


def command(
    plan: type[PlanT], *, table: str | None = None
) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Let a command have the options of a plan before its own, and its errors name them.

    Its function gets a :class:`Given`, then its own arguments; one whose type is a plan stands for
    the options of this plan. `table` is the name of the table of scenario files with values of the
    plan.
    """
    options = _options(plan)

    def decorate(function: Callable[..., int]) -> Callable[..., int]:
        own = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
        groups = {
            one.name: one.annotation
            for one in own
            if isinstance(one.annotation, type) and issubclass(one.annotation, Plan)
        }

        def wrapped(context: typer.Context, **values: Any) -> int:
            given: Given[PlanT] = Given(plan, _given(context, options, values), table)
            with spelled(given):
                given.check()
                for name, group in groups.items():
                    values[name] = group(**_given(context, _options(group), values))
                return function(given, **values)

        context = inspect.Parameter(
            "context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context
        )
        words = [
            *(one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in own if _is_argument(one)),
            *(_argument(one) for one in options if not one.option.startswith("-")),
        ]
        parameters = [
            *words,
            *(_option(one) for one in options if one.option.startswith("-")),
        ]
        for one in own:
            if one.name in groups:
                parameters += map(_option, _options(groups[one.name]))
            elif not _is_argument(one):
                parameters.append(one)
        wrapped.__name__, wrapped.__doc__ = function.__name__, function.__doc__
        wrapped.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [context, *parameters], return_annotation=int
        )
        return wrapped

    return decorate


def _options(plan: type[Plan]) -> list[Declared]:
    """Return the arguments of a plan that are options or words of the command line."""
    return [one for one in declared(plan) if one.option.startswith("-") or one.is_words]


def _given(
    context: typer.Context, options: list[Declared], values: dict[str, Any]
) -> dict[str, Any]:
    """Move the values of options of a plan that the user gave out of all values."""
    found = {}
    for one in options:
        value = values.pop(one.name)
        source = context.get_parameter_source(one.name)
        if source is not None and source.name != "DEFAULT" and value is not None:
            found[one.name] = value
    return found


def _is_argument(parameter: inspect.Parameter) -> bool:
    """Whether a parameter is an argument of the command line, not an option."""
    metadata = getattr(parameter.annotation, "__metadata__", ())
    return any(isinstance(one, typer.models.ArgumentInfo) for one in metadata)


def _argument(one: Declared) -> inspect.Parameter:
    """Return the words of the command line that are the items of an argument of a plan."""
    argument = one.argument
    default = ", ".join(one.default or ())
    word = typer.Argument(
        metavar=one.option,
        help=argument.help,
        show_default=argument.unset or default or True,
        autocompletion=_completion(one),
    )
    return inspect.Parameter(
        one.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[list[str] | None, word],
    )


def _completion(one: Declared) -> Any:
    name = one.argument.completion
    return getattr(completion, name) if name else None


def _option(one: Declared) -> inspect.Parameter:
    """Return the option of an argument, as a parameter of the function of its command."""
    argument = one.argument
    kind: Any = str
    if one.is_list or one.is_mapping:
        kind = list[str]
    elif one.number is not None:
        kind = one.number
    elif one.members[0] is Path:
        kind = Path
    elif bool in one.members:
        kind = bool
    names = [one.option] if argument.short is None else [one.option, argument.short]
    option = typer.Option(
        *names,
        metavar=argument.metavar,
        help=_help(one),
        rich_help_panel=argument.heading,
        hidden=argument.rare,
        show_default=_with_options(argument.unset or "") or True,
        parser=path if kind is Path else None,
        autocompletion=_completion(one),
    )
    # The table of the file may have values that no option gives, and the plan checks lists.
    is_required = one.is_required and not (argument.in_files or one.is_list)
    # A list that is left out has no items: Typer would show an empty one as the default.
    default = None if kind == list[str] else one.default
    if not is_required and default is None:
        kind = kind | None
    return inspect.Parameter(
        one.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if is_required else default,
        annotation=Annotated[kind, option],
    )


def _with_options(text: str) -> str:
    return PLACEHOLDER.sub(lambda found: f"--{found[1].replace('_', '-')}", text)


def _help(one: Declared) -> str:
    text = _with_options(one.argument.help)
    if one.is_list or one.is_mapping:
        text += " Repeatable."
    # Brackets would be markup of rich.
    return text.replace("[", "\\[")
