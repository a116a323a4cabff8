"""The commands of Typer, with help that shows no type for flags."""

from typing import Any

from typer.core import TyperCommand, TyperGroup

from sojourn.cli import signals
from sojourn.cli.pipes import tolerated


def _without_types(parameters: list[Any]) -> list[Any]:
    """Remove the type of flags: Typer shows it as if the flag took a value."""
    for parameter in parameters:
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
    return parameters


class Command(TyperCommand):
    """A subcommand."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, with ``--help``."""
        return _without_types(super().get_params(ctx))


class Group(TyperGroup):
    """The command ``sojourn`` itself."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command; neither a closed pipe nor a signal ends it with a traceback."""
        try:
            # Not earlier: outside, Typer exits with code 130 whatever the signal was.
            signals.ready()
            with tolerated():
                return super().invoke(ctx)
        except KeyboardInterrupt:
            # Typer would exit with code 130 and print nothing.
            raise signals.Stopped from None

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, with ``--help``."""
        return _without_types(super().get_params(ctx))
