"""List every text that a user of Sojourn may read, so that it can be reviewed in one go.

Prints one line per text: file, line, text. From Python: help of the command line, docstrings of
commands, messages, headings, findings and notes, which are all strings of several words outside
docstrings. From Rust: string literals of several words outside tests, attributes and `expect`.

    python tools/user_strings.py [--docstrings] [FOLDER ...]
"""

import argparse
import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
# Two words of letters: shorter texts are names of columns, keys and units.
SEVERAL_WORDS = re.compile(r"[A-Za-z]{2,}[^A-Za-z\n]* +[^A-Za-z\n]*[A-Za-z]{2,}")
TESTS = re.compile(
    r"^#\[cfg\(test\)\]\n(?:#\[[^\n]*\]\n)*(?:pub(?:\([^)]*\))? )?mod ", re.MULTILINE
)
RUST = re.compile(
    r"""
      (?P<comment>//[^\n]*|/\*.*?\*/)
    | (?P<raw>\bb?r(?P<hash>\#*)"(?P<raw_text>.*?)"(?P=hash))
    | (?P<string>b?"(?P<text>(?:[^"\\]|\\.)*)")
    | (?P<char>'(?:[^'\\\n]|\\[^\n]{1,8})')
    """,
    re.VERBOSE | re.DOTALL,
)
NOT_SHOWN = re.compile(r"(?:\.expect\(|reason = |\bpanic!\(|unreachable!\(|assert\w*!\([^;]*)\s*$")


@dataclass(frozen=True, slots=True, order=True)
class Text:
    """A text and where it stands.

    Parameters
    ----------
    file
        Path below the root of the repository.
    line
        Line of its beginning, from 1.
    text
        The text on one line; ``{…}`` stands for what is filled in.
    """

    file: str
    line: int
    text: str


def python_texts(source: str, file: str, *, docstrings: bool) -> Iterator[Text]:
    """Find the texts of a Python module.

    Parameters
    ----------
    source
        The module.
    file
        What to call it.
    docstrings
        Whether to include the docstrings of public classes and functions.

    Yields
    ------
    Text
        Each text.
    """
    tree = ast.parse(source)
    skipped: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            documented = node.body and isinstance(node.body[0], ast.Expr)
            text = ast.get_docstring(node) if documented else None
            if text is None:
                continue
            skipped.add(id(node.body[0].value))  # type: ignore[attr-defined]
            named = isinstance(node, ast.ClassDef | ast.FunctionDef)
            if docstrings and named and not node.name.startswith("_"):
                yield Text(file, node.lineno, " ".join(text.split()))
        elif isinstance(node, ast.JoinedStr):
            skipped.update(id(part) for part in node.values)
            text = "".join(
                str(part.value) if isinstance(part, ast.Constant) else "{…}" for part in node.values
            )
            if SEVERAL_WORDS.search(text):
                yield Text(file, node.lineno, " ".join(text.split()))
    for node in ast.walk(tree):
        shown = isinstance(node, ast.Constant) and id(node) not in skipped
        if shown and isinstance(node.value, str) and SEVERAL_WORDS.search(node.value):
            yield Text(file, node.lineno, " ".join(node.value.split()))


def rust_texts(source: str, file: str) -> Iterator[Text]:
    """Find the texts of a Rust module, its tests left out.

    Parameters
    ----------
    source
        The module.
    file
        What to call it.

    Yields
    ------
    Text
        Each text.
    """
    tests = TESTS.search(source)
    code = source[: tests.start()] if tests else source
    for found in RUST.finditer(code):
        text = found["text"] if found["text"] is not None else found["raw_text"]
        before = code[max(found.start() - 200, 0) : found.start()]
        if text is None or NOT_SHOWN.search(before) or not SEVERAL_WORDS.search(text):
            continue
        line = code.count("\n", 0, found.start()) + 1
        joined = re.sub(r"\\\n\s*", "", text).replace('\\"', '"').replace("\\n", " ")
        yield Text(file, line, " ".join(re.sub(r"\{[^{}]*\}", "{…}", joined).split()))


def is_test(path: Path) -> bool:
    """Whether a file is code of a test, which no user runs."""
    parts = set(path.relative_to(ROOT).parts)
    return bool(parts & {"tests", "fuzz", "benches", "target"}) or path.stem in {"tests", "testing"}


def texts(folders: list[Path], *, docstrings: bool) -> Iterator[Text]:
    """Find the texts of all modules below some folders.

    Parameters
    ----------
    folders
        Where to look.
    docstrings
        Whether to include the docstrings of public Python.

    Yields
    ------
    Text
        Each text, by file and line.
    """
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.suffix not in {".py", ".rs"} or is_test(path):
                continue
            file, source = str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")
            if path.suffix == ".py":
                yield from sorted(python_texts(source, file, docstrings=docstrings))
            else:
                yield from rust_texts(source, file)


def main() -> None:
    """Print the texts."""
    parser = argparse.ArgumentParser(description="List every text that a user may read.")
    parser.add_argument("--docstrings", action="store_true", help="include public docstrings")
    parser.add_argument("folders", nargs="*", type=Path, metavar="FOLDER")
    options = parser.parse_args()
    folders = options.folders or [ROOT / "python" / "sojourn", ROOT / "crates"]
    found = texts([folder.resolve() for folder in folders], docstrings=options.docstrings)
    for text in found:
        sys.stdout.write(f"{text.file}:{text.line}: {text.text}\n")


if __name__ == "__main__":
    main()
