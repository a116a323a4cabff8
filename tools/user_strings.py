"""List every text that a user of Sojourn may read, so that it can be reviewed in one go.

Prints one line per text: file, line, text. From Python: help of the command line, docstrings of
commands, messages, findings and notes, which are all strings of several words outside docstrings;
the headings of tables; labels and titles. From Rust: string literals of several words outside
tests, attributes and `expect`; the meanings of parameters, which are doc comments.

    python tools/user_strings.py [--docstrings] [DIRECTORY ...]
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
SEVERAL_WORDS = re.compile(r"[A-Za-z]{2,}[^A-Za-z\n]* +(?:[^\n]* )?[^A-Za-z\n]*[A-Za-z]{2,}")
# Arguments that are shown however short they are.
SHOWN_ARGUMENTS = {"label", "title"}
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
# The declarations of parameters: a doc comment above a field with a default is its meaning.
PARAMETERS = re.compile(r"^parameters! \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
MEANING = re.compile(r"((?:^ {8}///[^\n]*\n)+)^ {8}pub \w+: [^\n]*=", re.MULTILINE)
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
            command = named and node.name == Path(file).stem and Path(file).parent.name == "cli"
            if command or (docstrings and named and not node.name.startswith("_")):
                yield Text(file, node.lineno, " ".join(text.split()))
        elif isinstance(node, ast.JoinedStr):
            skipped.update(id(part) for part in node.values)
            text = "".join(
                str(part.value) if isinstance(part, ast.Constant) else "{…}" for part in node.values
            )
            if SEVERAL_WORDS.search(text):
                yield Text(file, node.lineno, " ".join(text.split()))
    for line, text in short_texts(tree):
        yield Text(file, line, text)
    for node in ast.walk(tree):
        shown = isinstance(node, ast.Constant) and id(node) not in skipped
        if shown and isinstance(node.value, str) and SEVERAL_WORDS.search(node.value):
            yield Text(file, node.lineno, " ".join(node.value.split()))


def short_texts(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Find the headings of tables, joined by ``|``, and labels and titles of one word.

    Parameters
    ----------
    tree
        A module.

    Yields
    ------
    tuple of int and str
        Line and text.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            target, value = node.targets[0], node.value
            is_head = isinstance(target, ast.Name) and target.id == "head"
        elif isinstance(node, ast.Call):
            is_head = isinstance(node.func, ast.Name) and node.func.id == "print_table"
            value = node.args[0] if node.args else None
        elif isinstance(node, ast.keyword):
            text = node.value.value if isinstance(node.value, ast.Constant) else None
            if node.arg in SHOWN_ARGUMENTS and text and not SEVERAL_WORDS.search(str(text)):
                yield node.value.lineno, str(text)
            continue
        else:
            continue
        if is_head and isinstance(value, ast.List | ast.Tuple):
            words = [part.value for part in value.elts if isinstance(part, ast.Constant)]
            yield value.lineno, " | ".join(str(word) for word in words)


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
    for block in PARAMETERS.finditer(code):
        for found in MEANING.finditer(block[1]):
            line = code.count("\n", 0, block.start(1) + found.start()) + 1
            yield Text(file, line, " ".join(found[1].replace("///", " ").split()))
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


def texts(directories: list[Path], *, docstrings: bool) -> Iterator[Text]:
    """Find the texts of all modules below some directories.

    Parameters
    ----------
    directories
        Where to look.
    docstrings
        Whether to include the docstrings of public Python.

    Yields
    ------
    Text
        Each text, by file and line.
    """
    for directory in directories:
        for path in sorted(directory.rglob("*")):
            if path.suffix not in {".py", ".rs"} or is_test(path):
                continue
            file, source = str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")
            if path.suffix == ".py":
                yield from sorted(python_texts(source, file, docstrings=docstrings))
            else:
                yield from sorted(rust_texts(source, file))


def main() -> None:
    """Print the texts."""
    parser = argparse.ArgumentParser(description="List every text that a user may read.")
    parser.add_argument("--docstrings", action="store_true", help="include public docstrings")
    parser.add_argument("directories", nargs="*", type=Path, metavar="DIRECTORY")
    options = parser.parse_args()
    directories = options.directories or [ROOT / "python" / "sojourn", ROOT / "crates"]
    found = texts([path.resolve() for path in directories], docstrings=options.docstrings)
    for text in found:
        sys.stdout.write(f"{text.file}:{text.line}: {text.text}\n")


if __name__ == "__main__":
    main()
