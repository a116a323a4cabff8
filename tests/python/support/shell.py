"""Where the checkout is, and the environment that commands under test get."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

Command = Callable[..., subprocess.CompletedProcess[str]]

ROOT = Path(__file__).parents[3]
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


def shell(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a line of bash; it fails if a part of a pipeline does."""
    return subprocess.run(
        ["/bin/bash", "-o", "pipefail", "-c", line],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def completed(*words: str, cwd: Path) -> list[str]:
    """Complete the last word as bash would ask the installed command to."""
    code = "import sys; sys.argv[0] = 'sojourn'; from sojourn.cli import main; sys.exit(main())"
    asked = {
        "_SOJOURN_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(("sojourn", *words)),
        "COMP_CWORD": str(len(words)),
    }
    listed = subprocess.run(
        [sys.executable, "-c", code],
        cwd=cwd,
        env=environment() | asked,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert not listed.stderr
    return listed.stdout.split()
