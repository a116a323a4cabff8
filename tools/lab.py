"""Build the simulator as WebAssembly and write what the lab of the documentation loads.

The page may be opened from a file, where a browser loads no module and no text: the module is in
a script, in base64.
"""

import argparse
import base64
import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
TARGET = "wasm32-unknown-unknown"
MODULE = ROOT / "target" / TARGET / "wasm" / "sojourn_wasm.wasm"
STUDIES = ROOT / "docs" / "_lab" / "studies.toml"
# The script of a site that was built on a machine that cannot build the module.
NO_SCRIPT = "(globalThis.lab ??= {}).generated = null;\n"
NAMES_FILE = "SOJOURN_SKIPPED"


def has_target() -> bool:
    """Whether the standard library for WebAssembly is installed; installs it if rustup can."""
    words = ["rustc", "--print", "target-libdir", "--target", TARGET]
    folder = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    if Path(folder.strip()).is_dir():
        return True
    if shutil.which("rustup") is None:
        return False
    words = ["rustup", "target", "add", TARGET]
    return subprocess.run(words, cwd=ROOT, capture_output=True, check=False).returncode == 0


def build() -> Path | None:
    """Build the module; None if the machine cannot."""
    if not has_target():
        MODULE.unlink(missing_ok=True)
        return None
    words = ["cargo", "build", "--quiet", "--profile", "wasm", "--target", TARGET]
    subprocess.run([*words, "-p", "sojourn-wasm"], cwd=ROOT, check=True)
    return MODULE


def studies() -> dict[str, dict[str, object]]:
    """Read the figures of studies that the lab begins with, with their scenarios."""
    read = tomllib.loads(STUDIES.read_text(encoding="utf-8"))
    return {
        name: {**study, "toml": (ROOT / f"papers/{study['scenario']}.toml").read_text("utf-8")}
        for name, study in read.items()
    }


def script(module: Path) -> str:
    """Write the script that contains the module and the scenarios of studies."""
    encoded = base64.b64encode(module.read_bytes()).decode()
    content = json.dumps({"studies": studies(), "module": encoded})
    return f"(globalThis.lab ??= {{}}).generated = {content};\n"


def main() -> int:
    """Build the module, and say where it is."""
    argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0]).parse_args()
    module = build()
    if module is None:
        reason = f"the lab of the documentation: run rustup target add {TARGET}"
        print(f"skipped: {reason}")
        if NAMES_FILE in os.environ:
            with Path(os.environ[NAMES_FILE]).open("a", encoding="utf-8") as skipped:
                skipped.write(f"{reason}\n")
        return 0
    print(f"{module.relative_to(ROOT)}: {module.stat().st_size / 1e6:.2f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
