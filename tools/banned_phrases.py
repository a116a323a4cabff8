"""Find phrases that are not plain technical English: ``python tools/banned_phrases.py PATH…``.

``banned_phrases.txt`` lists them. Reads the files that git tracks below the given paths and prints
``file:line: phrase: what to write instead`` for each hit. The exit code is 1 if there is one.
"""

import re
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent
SUFFIXES = {".md", ".py", ".pyi", ".rs", ".toml", ".cff", ".txt"}


def banned() -> list[tuple[re.Pattern[str], str]]:
    """Return the patterns of banned_phrases.txt with what to write instead."""
    lines = (FOLDER / "banned_phrases.txt").read_text(encoding="utf-8").splitlines()
    pairs = [line.split(" => ", 1) for line in lines if line and not line.startswith("#")]
    return [(re.compile(pattern, re.IGNORECASE), instead) for pattern, instead in pairs]


def tracked(paths: list[str]) -> list[Path]:
    """Return the text files below `paths` that git tracks, without this check's own."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--", *paths],  # noqa: S607 - git is on the path of a checkout
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    files = [Path(name) for name in listed.split("\0") if name]
    return [
        file
        for file in files
        if (file.suffix in SUFFIXES or file.name == "Makefile")
        and file.is_file()
        and file.resolve().parent != FOLDER.resolve()
    ]


def main(paths: list[str]) -> int:
    """Print every hit and return the exit code."""
    patterns = banned()
    hits = 0
    for file in tracked(paths):
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            for pattern, instead in patterns:
                for hit in pattern.finditer(line):
                    hits += 1
                    print(f"{file}:{number}: {hit[0]!r}: write {instead}")
    return 1 if hits else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
