"""Write the files that derive from the catalogues of the Rust crates.

``python tools/generate.py`` writes them; with ``--check`` it lists those that are stale and exits
with status 1. A generator is a function that yields files; add it to :data:`GENERATORS`. Generators
need Cargo and the standard library of Python, not the built extension.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from generators import columns, controls, exports, queues, scenario, traffic
from generators.files import File

ROOT = Path(__file__).resolve().parent.parent

#: In this order: what Cargo compiles comes before what reads a compiled catalogue.
GENERATORS: list[Callable[[Path], Iterator[File]]] = [
    queues.rust_modules,
    queues.python_classes,
    queues.documentation,
    queues.fuzz_seeds,
    controls.python_classes,
    controls.documentation,
    traffic.python_package,
    exports.python_module,
    exports.public_names,
    columns.python_module,
    columns.documentation,
    scenario.documentation,
]


def main() -> int:
    """Write or check all files.

    Returns
    -------
    int
        The exit status: 1 if ``--check`` found a stale file.
    """
    parser = argparse.ArgumentParser(description="Write the files that derive from the catalogues.")
    parser.add_argument("--check", action="store_true", help="write nothing, list stale files")
    check = parser.parse_args().check
    stale = []
    for generator in GENERATORS:
        for file in generator(ROOT):
            if file.is_current(ROOT):
                continue
            stale.append(file.path)
            if not check:
                file.write(ROOT)
    for path in stale:
        print(f"{'stale' if check else 'wrote'}: {path}")
    if check and stale:
        print("generated files are stale; run `make generate`", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
