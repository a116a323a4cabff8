"""Where the checkout is, and the environment that commands under test get."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

Command = Callable[..., subprocess.CompletedProcess[str]]

ROOT = Path(__file__).parents[2]


def environment() -> dict[str, str]:
    """An environment that neither forces nor forbids colour, of 100 columns."""
    kept = {
        key: value for key, value in os.environ.items() if key not in {"NO_COLOR", "FORCE_COLOR"}
    }
    return {**kept, "TERM": "xterm-256color", "COLUMNS": "100"}
