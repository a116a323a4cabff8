"""Where the checkout is, and the environment that commands under test get."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

Command = Callable[..., subprocess.CompletedProcess[str]]

ROOT = Path(__file__).parents[2]
DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md")),
    *(
        path
        for folder in ("docs", "papers", "examples")
        for path in sorted((ROOT / folder).rglob("*.md"))
        if "generated" not in path.parts
    ),
]


def environment() -> dict[str, str]:
    """An environment that neither forces nor forbids colour, of 100 columns."""
    kept = {
        key: value for key, value in os.environ.items() if key not in {"NO_COLOR", "FORCE_COLOR"}
    }
    return {**kept, "TERM": "xterm-256color", "COLUMNS": "100"}
