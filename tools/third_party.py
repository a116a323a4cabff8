"""Write the licences of the crates that programs and wheels contain: ``THIRD-PARTY-LICENSES``.

``python tools/third_party.py`` writes the file, and ``--check`` fails if it differs. The crates are
those that the extension for Python, the program without Python and the module for browsers need on
the platforms of the wheels; what only runs while they are compiled is left out.
"""

import argparse
import json
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "THIRD-PARTY-LICENSES"
PLATFORMS = (
    "x86_64-unknown-linux-gnu",
    "aarch64-unknown-linux-musl",
    "aarch64-apple-darwin",
    "x86_64-pc-windows-gnu",
    "wasm32-unknown-unknown",
)
PRODUCTS = ("sojourn-extension", "sojourn-program", "sojourn-wasm")
TEXTS = re.compile(r"(licen[cs]e|copying|notice|unlicense)", re.IGNORECASE)
HEAD = """\
Sojourn is licensed under MIT OR Apache-2.0 (LICENSE-MIT, LICENSE-APACHE). Its wheels and programs
contain the following crates, under the licences below. tools/third_party.py writes this file.
"""


def metadata() -> dict[str, Any]:
    """Return what Cargo knows of all crates."""
    words = ["cargo", "metadata", "--format-version", "1", "--locked"]
    words += [word for name in PLATFORMS for word in ("--filter-platform", name)]
    done = subprocess.run(words, cwd=ROOT, check=True, stdout=subprocess.PIPE)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def contained(all_crates: dict[str, Any]) -> list[dict[str, Any]]:
    """List the crates from elsewhere that the products contain."""
    packages = {one["id"]: one for one in all_crates["packages"]}
    nodes = {one["id"]: one for one in all_crates["resolve"]["nodes"]}
    waiting = [at for at, one in packages.items() if one["name"] in PRODUCTS]
    seen: set[str] = set()
    while waiting:
        at = waiting.pop()
        kinds = {kind for target in packages[at]["targets"] for kind in target["kind"]}
        if at in seen or "proc-macro" in kinds:
            continue
        seen.add(at)
        waiting += [
            needed["pkg"]
            for needed in nodes[at]["deps"]
            if any(one["kind"] is None for one in needed["dep_kinds"])
        ]
    foreign = (packages[at] for at in seen if packages[at]["source"])
    return sorted(foreign, key=lambda one: (one["name"], one["version"]))


def texts(crate: dict[str, Any]) -> Iterator[str]:
    """Yield the texts of the licences in the package of a crate."""
    folder = Path(crate["manifest_path"]).parent
    for file in sorted(folder.iterdir()):
        if file.is_file() and TEXTS.search(file.stem):
            lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
            yield "\n".join(line.rstrip() for line in lines).strip()


def written() -> str:
    """Return the contents of the file."""
    owners: dict[str, list[str]] = defaultdict(list)
    without = []
    for crate in contained(metadata()):
        named = f"{crate['name']} {crate['version']}: {crate['license']}"
        found = list(texts(crate))
        for text in found:
            owners[text].append(named)
        if not found:
            by = ", ".join(crate["authors"]) or crate["repository"] or "its authors"
            without.append(f"{named}, by {by}")
    parts = [HEAD]
    if without:
        listed = "\n".join(without)
        parts.append(f"Without a text of their own:\n\n{listed}\n")
    for text, names in owners.items():
        listed = "\n".join(names)
        parts.append(f"{listed}\n\n{text}\n")
    return f"\n{'=' * 80}\n\n".join(parts)


def main(arguments: Sequence[str] | None = None) -> int:
    """Write or check the file.

    Returns
    -------
    int
        The exit status.
    """
    parser = argparse.ArgumentParser(description="Write the licences of other crates.")
    parser.add_argument("--check", action="store_true", help="only compare")
    wanted = written()
    if not parser.parse_args(arguments).check:
        FILE.write_text(wanted, encoding="utf-8")
        return 0
    if FILE.exists() and FILE.read_text(encoding="utf-8") == wanted:
        return 0
    print("THIRD-PARTY-LICENSES is out of date: python tools/third_party.py", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
