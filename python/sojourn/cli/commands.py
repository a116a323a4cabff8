"""Typer commands that are imported when they are used, and whose help has two lengths.

``--help`` leaves out the options that are declared as hidden, those that few users need;
``--help-all`` shows all of them.
"""

import ast
import copy
import gc
import re
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption
from typer.main import get_command_from_info
from typer.models import CommandInfo

from sojourn import _core
from sojourn.cli import process
from sojourn.cli.process import tolerated
from sojourn.errors import NOT_UTF_8, invalid, undecoded

# The heading of the options that print a help page.
HELP = "Help"
HELP_ALL = "--help-all"
# The headings at the end, in their order.
# An address that an option may have after it, and what stands for it if it is left out.
MAYBE_ADDRESS, NO_ADDRESS = "[ADDRESS:PORT]", "terminal"
# A port alone, and one that is no number, are meant as one, and refused with what is accepted.
_ADDRESS = re.compile(r"(?:\[[^\]\s]*\]|[^\s:/]*):[^\s:/]*|\d+")
LAST = ("Runs", "Execution", "Output", "LaTeX table", "Checks")


def rare(command: Any) -> list[TyperOption]:
    """List the options of a command that only ``--help-all`` shows."""
    return [one for one in command.params if isinstance(one, TyperOption) and one.hidden]


def show_rare(command: Any) -> None:
    """Show all options of a command in its help."""
    for option in rare(command):
        option.hidden = False


def _described(parameters: list[Any], panel: str | None = None) -> list[Any]:
    """Remove the types of flags and arguments, which say nothing; describe ``--help``.

    Defaults in words look as other defaults; Typer would put them in parentheses.
    """
    for parameter in parameters:
        if isinstance(getattr(parameter, "show_default", None), str):
            parameter._get_default_string = partial(_default, parameter.show_default)  # noqa: SLF001
        if isinstance(parameter, TyperArgument):
            parameter.type = copy.copy(parameter.type)
            parameter.type.get_metavar = _no_type  # type: ignore[method-assign]
            parameter.get_usage_pieces = partial(_usage, parameter)  # type: ignore[method-assign]
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
        if "--help" in parameter.opts:
            parameter.rich_help_panel = panel
            parameter.help = "Print this help and exit."
    return parameters


def _order(parameter: Any) -> int:
    """Return the order of a parameter in the help: arguments, then options by their headings."""
    heading = getattr(parameter, "rich_help_panel", None)
    if isinstance(parameter, TyperArgument):
        return -2
    if heading == "Scenario":
        return -1
    return 1 + LAST.index(heading) if heading in LAST else 0


def _default(text: str, **_: Any) -> str:
    """Return a default in words."""
    return text


def _no_type(param: Any, ctx: Any) -> str:  # noqa: ARG001 - the names are those of Typer
    """Show no type."""
    return ""


def _usage(argument: TyperArgument, ctx: Any) -> list[str]:
    """Return the word of an argument in the line of usage."""
    word = argument.make_metavar(ctx, usage=True)
    return [word if argument.nargs == 1 else f"{word}..."]


class Command(TyperCommand):
    """A subcommand."""

    _help_all: Any = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params.sort(key=_order)
        # Typer would keep the line breaks of all paragraphs but the first.
        self.help = "\n\n".join(" ".join(one.split()) for one in (self.help or "").split("\n\n"))

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, with ``--help`` and ``--help-all``."""
        parameters = _described(super().get_params(ctx), HELP)
        if self._help_all is None:
            self._help_all = _help_all(parameters[-1], hidden=not rare(self))
        return [*parameters, self._help_all]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments; those that are not UTF-8 are refused before a file is read."""
        args = _with_addresses(self, ctx, args)
        if not ctx.resilient_parsing:
            _check_quotes(self, ctx, args)
            given, _, _ = self.make_parser(ctx).parse_args(args=list(args))
            for parameter in self.params:
                found = given.get(parameter.name or "")
                for text in found if isinstance(found, list | tuple) else (found,):
                    _check_encoding(parameter, text)
        return list(super().parse_args(ctx, args))

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help; its last line says how many options it leaves out."""
        number = len(rare(self))
        options = "option" if number == 1 else "options"
        self.epilog = f"{number} more {options}: {ctx.command_path} {HELP_ALL}" if number else None
        super().format_help(ctx, formatter)

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        """Complete all options."""
        show_rare(self)
        return super().shell_complete(ctx, incomplete)


def _with_addresses(command: Any, context: Any, args: list[str]) -> list[str]:
    """Give options whose address is left out what stands for it."""
    options = {name: one for one in command.params for name in one.opts if name.startswith("-")}
    found, left = [], list(args)
    while left:
        word = left.pop(0)
        found.append(word)
        if word == "--" or not (word.startswith("-") or context.allow_interspersed_args):
            # What follows belongs to a program.
            break
        option = options.get(word)
        if option is None or getattr(option, "is_flag", False):
            continue
        if option.metavar == MAYBE_ADDRESS:
            is_given = bool(left) and _ADDRESS.fullmatch(left[0])
            found[-1] = f"{word}={left.pop(0) if is_given else NO_ADDRESS}"
        elif left:
            found.append(left.pop(0))
    return found + left


def _check_quotes(command: Any, context: Any, args: list[str]) -> None:
    """Refuse options behind a word that has options of its own, and is quoted with them."""
    declared = getattr(command.callback, "arguments", ())
    for one in (one for one in declared if one.argument.has_options):
        parser = command.make_parser(context)
        parser.ignore_unknown_options = True
        given, others, _ = parser.parse_args(args=list(args))
        word = given.get(one.name)
        if not (isinstance(word, str) and others and others[0].startswith("--")):
            continue
        if re.fullmatch(r"[^-\s]\S*", word):
            problem = f"is an option of the {one.name}; quote the {one.name} with its options"
            text = " ".join([word, *others])
            raise invalid(others[0].partition("=")[0], f'{problem}: "{text}"')


def _check_encoding(parameter: Any, text: object) -> None:
    shown = undecoded(text) if isinstance(text, str) else None
    if shown is not None:
        is_word = isinstance(parameter, TyperArgument)
        name = (
            parameter.metavar or parameter.name.upper() if is_word else max(parameter.opts, key=len)
        )
        place = f"{name} {shown}"
        raise invalid(place, NOT_UTF_8)


def _help_all(help_option: Any, *, hidden: bool) -> Any:
    """Return the option ``--help-all``, made from ``--help``; hidden if it prints the same."""
    found = copy.copy(help_option)
    found.name = "help_all"
    found.opts = [HELP_ALL]
    found.help = "Print this help with all options and exit."
    found.hidden = hidden
    found.callback = _print_all
    return found


def _print_all(context: Any, _parameter: Any, asked: bool) -> None:  # noqa: FBT001 - of Typer
    if asked and not context.resilient_parsing:
        show_rare(context.command)
        typer.echo(context.get_help(), color=context.color)
        context.exit()


class Group(TyperGroup):
    """The command ``sojourn`` itself."""

    _help_all: Any = None

    def invoke(self, ctx: Any) -> Any:
        """Run the command; neither a closed pipe nor a signal ends it with a traceback."""
        try:
            # Not earlier: outside, Typer exits with code 130 whatever the signal was.
            process.ready()
            with tolerated():
                return super().invoke(ctx)
        except (_core.ScenarioError, _core.ResultError) as error:
            from sojourn.cli.options import spell_options  # noqa: PLC0415 - slow to import

            spell_options(error)
            raise
        except KeyboardInterrupt:
            # Typer would exit with code 130 and print nothing.
            raise process.Stopped from None

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, with ``--help`` and ``--help-all``."""
        parameters = _described(super().get_params(ctx))
        if self._help_all is None:
            self._help_all = _help_all(parameters[-1], hidden=True)
        return [*parameters, self._help_all]


class LazyCommand(Command):
    """A subcommand whose module is imported when it runs, or when its parameters are needed.

    The modules of all subcommands take half a second to import. The list of subcommands needs only
    their summaries, which are read from the source.
    """

    def __init__(
        self, name: str, module: str, function: str, panel: str, settings: dict[str, Any]
    ) -> None:
        self._module = f"sojourn.cli.{module}"
        self._function = function
        self._settings = settings
        self._loaded: TyperCommand | TyperGroup | None = None
        super().__init__(name, rich_help_panel=panel)

    @property
    def help(self) -> str:
        """The summary for the list of subcommands, which most commands do not need."""
        return _summary(self._module, self._function)

    @help.setter  # noqa: A003 - the name is that of the base class
    def help(self, value: object) -> None:
        """Ignore what the base class sets."""

    def load(self) -> TyperCommand | TyperGroup:
        """Import the command."""
        if self._loaded is None:
            found = getattr(import_module(self._module), self._function)
            if isinstance(found, typer.Typer):
                loaded: Any = typer.main.get_group(found)
            else:
                info = CommandInfo(
                    self.name, cls=Command, callback=found, context_settings=self._settings
                )
                loaded = get_command_from_info(
                    info, pretty_exceptions_short=False, rich_markup_mode=self.rich_markup_mode
                )
            self._loaded = loaded
            # :func:`sojourn.cli.main` disables the garbage collector; `freeze` excludes the
            # imported modules from collections.
            if not gc.isenabled():
                gc.freeze()
                gc.enable()
        return self._loaded

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        """Parse the arguments of the command; the context is that of the imported command."""
        return self.load().make_context(*args, **kwargs)


def _summary(module: str, function: str) -> str:
    """Read the first line of the docstring of a function, or the help of a :class:`typer.Typer`."""
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        message = f"no module {module}"
        raise ImportError(message)
    tree = ast.parse(Path(spec.origin).read_bytes())
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == function:
            return (ast.get_docstring(node) or "").partition("\n\n")[0]
        if isinstance(node, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == function for target in node.targets
        ):
            given = {one.arg: one.value for one in getattr(node.value, "keywords", ())}
            return str(ast.literal_eval(given["help"]))
    message = f"{module} has no {function}"
    raise ImportError(message)
