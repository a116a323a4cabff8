"""The commands of the program."""

from typing import Any

import typer

from sojourn.cli.app import app


def commands() -> dict[str, Any]:
    """All commands by their words, subcommands of `store` included."""
    found: dict[str, Any] = {}
    for name, deferred in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]
        loaded = deferred.load()
        of_group = getattr(loaded, "commands", None)
        found |= (
            {name: loaded}
            if of_group is None
            else {f"{name} {one}": command for one, command in of_group.items()}
        )
    return found
