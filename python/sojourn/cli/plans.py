"""Commands whose options follow from declarations.

Those of a plan are shared with the Python function; a command declares others as its parameters.
"""

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import MISSING, field
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar, get_args

import typer

from sojourn.arguments import (
    ArgumentError,
    Declared,
    FileSpelling,
    Plan,
    declared,
    read_table,
    spelled,
)
from sojourn.arguments.errors import PLACEHOLDER
from sojourn.cli import completion, session
from sojourn.cli.options import OptionSpelling
from sojourn.queues.base import queues_in
from sojourn.scenario.files import Tables

PlanT = TypeVar("PlanT", bound=Plan)


class Given(OptionSpelling, Generic[PlanT]):
    """The arguments of a plan that the user gave: as options, and in a table of the file."""

    def __init__(
        self,
        plan: type[PlanT],
        options: Mapping[str, Any],
        table: str | None,
        own: Iterable[Declared] = (),
    ) -> None:
        self._plan = plan
        self._declared = {one.name: one for one in declared(plan)}
        # Of the command; the plan lacks them.
        self._own = {one.name: one for one in own}
        # By argument; a mapping is kept as the texts KEY=VALUE of its option.
        self.options = dict(options)
        self.file: dict[str, Any] = {}
        self._table = table
        self._source: Tables | None = None

    def plan(self, tables: Tables | None = None, **others: Any) -> PlanT:
        """Return the checked plan; options replace the values of the table in the file.

        `others` are the arguments that are no options.
        """
        if self._table is not None and tables is not None:
            self._source = tables
            self.file = read_table(
                self._plan, self._table, tables.get(self._table, {}), source=tables
            )
        values = {**others, **self.file, **self.options}
        for one in self._declared.values():
            if one.is_mapping and (one.is_required or one.name in values):
                values[one.name] = self._entries(one.name)
            elif one.is_list and one.is_required:
                values.setdefault(one.name, ())
        build: Callable[..., PlanT] = self._plan
        return build(**values)

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
        session.note_queues(*queues_in(dict(given)))
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
        one = self._declared.get(argument) or self._own.get(argument)
        if one is None:
            return super().name(argument)
        near = beside is not None and self._is_in_file(beside) and one.argument.in_files
        is_given = argument in self.options or argument in self.file
        if self._is_in_file(argument) or (near and not is_given):
            return self._in_file().name(argument)
        # The option may be of another plan of the command.
        return one.argument.short or one.option or super().name(argument)

    def entry(self, argument: str, key: str) -> str:
        """Write an entry of a mapping, which the file or an option has."""
        if self._is_in_file(argument, key):
            return self._in_file().entry(argument, key)
        return super().entry(argument, key)

    def given(self, argument: str, value: object) -> str:
        """Write an argument with its value as the user gave it."""
        if self._is_in_file(argument):
            return self._in_file().given(argument, value)
        return super().given(argument, value)

    def located(self, problem: str, argument: str, key: str | None) -> str:
        """Write the file and the line of a problem of an argument in the file."""
        if self._is_in_file(argument, key):
            return self._in_file().located(problem, argument, key)
        return super().located(problem, argument, key)

    def _in_file(self) -> FileSpelling:
        return FileSpelling(f"{self._table}", self._source)

    def _is_in_file(self, argument: str, key: str | None = None) -> bool:
        """Whether the file has an argument, or an entry of a mapping, and no option replaces it."""
        if argument not in self.file or key is None:
            return argument in self.file and argument not in self.options
        own = {_paths(text.partition("=")[0]) for text in self.options.get(argument, ())}
        return not {path for paths in own for path in paths} & set(_paths(key))


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
    plan: type[Plan] = Plan, *, table: str | None = None, rare: Collection[str] = ()
) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Let a command have the options of a plan before its own, and its errors name them.

    Its function gets a :class:`Given` if it has a plan, then its own arguments, each annotated with
    its declaration; one whose type is a plan stands for the options of this plan. `table` is the
    name of the table of scenario files with values of the plan. Besides the arguments that are rare
    in all commands, those in `rare` are left out of the short help of this one.
    """
    options = _options(plan)

    def decorate(function: Callable[..., int]) -> Callable[..., int]:
        parameters = list(inspect.signature(function, eval_str=True).parameters.values())
        if plan is not Plan:
            del parameters[0]
        groups = {
            one.name: _options(one.annotation)
            for one in parameters
            if isinstance(one.annotation, type) and issubclass(one.annotation, Plan)
        }
        own = {one.name: _declared(one) for one in parameters if one.name not in groups}

        def wrapped(context: typer.Context, **values: Any) -> int:
            given: Given[Any] = Given(plan, _given(context, options, values), table, own.values())
            with spelled(given):
                given.check()
                for one in parameters:
                    if one.name in groups:
                        values[one.name] = one.annotation(
                            **_given(context, groups[one.name], values)
                        )
                    else:
                        values[one.name] = _checked(own[one.name], values[one.name])
                return function(*([] if plan is Plan else [given]), **values)

        listed = [*own.values(), *options]
        words = [_argument(one) for one in listed if one.is_word]
        members = [[own[one.name]] if one.name in own else groups[one.name] for one in parameters]
        named = [
            _option(one, rare=one.argument.rare or one.name in rare)
            for one in [*options, *chain(*members)]
            if not one.is_word
        ]
        if unknown := set(rare) - {one.name for one in named}:
            message = f"{function.__name__}: no options {', '.join(sorted(unknown))}"
            raise TypeError(message)
        context = inspect.Parameter(
            "context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context
        )
        wrapped.__name__, wrapped.__doc__ = function.__name__, function.__doc__
        wrapped.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [context, *words, *named], return_annotation=int
        )
        wrapped.arguments = [*listed, *chain(*groups.values())]  # type: ignore[attr-defined]
        return wrapped

    return decorate


def _declared(parameter: inspect.Parameter) -> Declared:
    """Return the argument that a parameter of a command declares."""
    kind, argument = get_args(parameter.annotation)
    is_required = parameter.default is inspect.Parameter.empty
    default: Any = MISSING if is_required else parameter.default
    return Declared(parameter.name, kind, argument, field(default=default))


def _checked(one: Declared, value: Any) -> Any:
    """Check the value of an argument of a command; one that is left out is the default."""
    return one.default if value is None else one.check(value)


def _options(plan: type[Plan]) -> list[Declared]:
    """Return the arguments of a plan that are options or words of the command line."""
    return [one for one in declared(plan) if one.option.startswith("-") or one.is_word]


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


def _reader(one: Declared, kind: Any) -> Callable[[Any], Any] | None:
    """Return what converts a word of the command line to a number or a path."""
    if kind not in {int, float, Path}:
        return None

    def read(text: Any) -> Any:
        with spelled(Given(Plan, {}, None, [one])):
            if kind is Path and not text:
                # It would be the working directory.
                raise ArgumentError(one.name, text, "empty; expected a path")
            try:
                return kind(text)
            except ValueError:
                rule = f"expected {one.expected}"
                raise ArgumentError(one.name, text, rule) from None

    return read


def _argument(one: Declared) -> inspect.Parameter:
    """Return the word or words of the command line of an argument of a plan."""
    argument = one.argument
    kind: Any = one.items or one.members[0]
    default = ", ".join(one.default or ()) if one.is_list else one.default
    word = typer.Argument(
        metavar=one.option,
        parser=_reader(one, kind),
        help=_text(one),
        show_default=argument.unset or (default if isinstance(default, str) else "") or True,
        autocompletion=_completion(one),
    )
    # The plan checks a list that may be empty.
    is_required = one.is_required and (not one.is_list or argument.least_items > 0)
    kind = list[kind] if one.is_list else kind
    return inspect.Parameter(
        one.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if is_required else None,
        annotation=Annotated[kind if is_required else kind | None, word],
    )


def _completion(one: Declared) -> Any:
    name = one.argument.completion
    return getattr(completion, name) if name else None


def _option(one: Declared, *, rare: bool) -> inspect.Parameter:
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
        help=f"{_text(one)} Repeatable." if one.is_list or one.is_mapping else _text(one),
        rich_help_panel=argument.heading,
        hidden=rare,
        show_default=_with_options(argument.unset or "") or True,
        parser=_reader(one, kind),
        autocompletion=_completion(one),
    )
    # The table of the file may have values that no option gives, and the plan checks lists.
    is_left_out = argument.in_files or one.is_list or argument.unset is not None
    is_required = one.is_required and not is_left_out
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


def _text(one: Declared) -> str:
    # Brackets would be markup of rich.
    return _with_options(one.help).replace("[", "\\[")
