"""flent, where it is installed, run as a program of its own."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.shell import environment


def program() -> str:
    """Return the program; skip where it is missing."""
    beside = str(Path(sys.executable).parent)
    found = shutil.which("flent", path=os.pathsep.join([beside, os.environ.get("PATH", "")]))
    if found is None:
        pytest.skip("flent is not installed")
    return found


def flent(*arguments: str, folder: Path) -> str:
    """Run flent on data files, check that it finds no fault with them, and return its output."""
    done = subprocess.run(
        [program(), *arguments],
        cwd=folder,
        env=environment() | {"HOME": str(folder), "MPLBACKEND": "agg"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert "ERROR" not in said, said
    assert "WARNING" not in said, said
    return said
