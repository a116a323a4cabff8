"""The catalogues of the Rust crates: queues, congestion controls, tables of a result."""

import functools
import json
import subprocess
from pathlib import Path
from typing import Any

NAMES = ("queues", "controls", "columns")


@functools.cache
def compiled(root: Path) -> Path:
    """Compile the examples that print the catalogues and return their directory.

    With the profile and the features of ``cargo test --workspace``, so that nothing is compiled
    twice.
    """
    examples = [word for name in NAMES for word in ("--example", name)]
    command = ["cargo", "build", "--quiet", "--workspace", "--profile", "test", *examples]
    subprocess.run(command, cwd=root, check=True)
    command = ["cargo", "metadata", "--format-version", "1", "--no-deps"]
    done = subprocess.run(command, cwd=root, check=True, stdout=subprocess.PIPE)
    return Path(json.loads(done.stdout)["target_directory"]) / "debug" / "examples"


@functools.cache
def catalogue(root: Path, name: str) -> list[dict[str, Any]]:
    """Return a catalogue, one of :data:`NAMES`."""
    done = subprocess.run([compiled(root) / name], check=True, stdout=subprocess.PIPE)
    entries: list[dict[str, Any]] = json.loads(done.stdout)
    return entries
