"""The commands of Typer, with help that shows no type for flags."""

from typing import Any

from typer.core import TyperCommand, TyperGroup


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

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, with ``--help``."""
        return _without_types(super().get_params(ctx))
