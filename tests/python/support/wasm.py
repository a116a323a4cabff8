"""The simulator as WebAssembly, and Node, which the tests of the lab need."""

import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from support.shell import ROOT

sys.path.insert(0, str(ROOT / "tools"))
import lab

FOLDER = ROOT / "tests" / "wasm"


@cache
def module() -> Path:
    """Build the module; skip without the target."""
    built = lab.build()
    if built is None:
        pytest.skip(f"the Rust target {lab.TARGET} is not installed")
    return built


def node(script: str, *arguments: str, text: str = "") -> str:
    """Run a script of tests/wasm; skip without Node."""
    program = shutil.which("node")
    if program is None:
        pytest.skip("Node is not installed")
    done = subprocess.run(
        [program, str(FOLDER / script), *arguments],
        input=text,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
