"""What ``new_queue.py`` and ``new_cc.py`` share: names, templates and registration lines."""

import argparse
import keyword
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from string import Template

ROOT = Path(__file__).resolve().parent.parent
TEMPLATES = Path(__file__).resolve().parent / "templates"
NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
#: Names that no module of Rust or Python can have, and those of hand-written modules and pages
#: beside the new one.
RESERVED = frozenset(
    {*keyword.kwlist, *keyword.softkwlist, "base", "identity", "index", "python_queue"}
    | {"box", "const", "crate", "dyn", "enum", "extern", "false", "fn", "impl", "let", "loop"}
    | {"macro", "mod", "move", "mut", "override", "priv", "pub", "ref", "self", "static", "struct"}
    | {"abstract", "become", "do", "final", "gen", "match", "type"}
    | {"super", "trait", "true", "typeof", "union", "unsafe", "unsized", "use", "virtual", "where"}
)


def title_of(name: str) -> str:
    """Return the name of the type, such as ``MyQueue`` for ``my_queue``.

    Raises
    ------
    ValueError
        The name is not valid.
    """
    if not NAME.fullmatch(name) or name in RESERVED:
        message = (
            f"invalid name {name!r}; expected lower-case words joined by _, such as my_queue, "
            "and no keyword"
        )
        raise ValueError(message)
    return "".join(word.capitalize() for word in name.split("_"))


def write_templates(root: Path, files: dict[str, str], name: str) -> None:
    """Write each file from its template.

    Raises
    ------
    ValueError
        A file exists, or the name is that of a queue or control.
    """
    if name in names(root) or any((root / path).exists() for path in files):
        message = f"the name {name!r} is taken; expected a new one"
        raise ValueError(message)
    values = {"name": name, "title": title_of(name)}
    for path, template in files.items():
        text = Template((TEMPLATES / template).read_text(encoding="utf-8")).substitute(values)
        (root / path).write_text(text, encoding="utf-8")


def names(root: Path) -> set[str]:
    """Return the queues and controls that have a page: its heading names them."""
    pages = [*(root / "docs/qdiscs").glob("*.md"), *(root / "docs/controls").glob("*.md")]
    headings = [page.read_text(encoding="utf-8").split("\n", maxsplit=1)[0] for page in pages]
    return {name for heading in headings for name in re.findall(r"[a-z]\w*", heading)}


def insert_before(text: str, anchor: str, line: str, *, after: str = "") -> str:
    """Insert a line before the first ``anchor`` that follows ``after``.

    Raises
    ------
    LookupError
        The text does not hold them: it has changed, and this tool has to follow.
    """
    at = text.find(anchor, text.find(after) + len(after)) if after in text else -1
    if at < 0:
        message = f"no {anchor!r} after {after!r} in the registry; correct this tool"
        raise LookupError(message)
    return text[:at] + line + text[at:]


def insert_sorted(text: str, item: str, name: str, line: str) -> str:
    """Insert a line in the order of rustfmt: before the first item with a greater name, or last.

    Parameters
    ----------
    text
        A Rust source file.
    item
        Regular expression of the items from the start of a line; its group is the name.
    name
        The name in the line.
    line
        The line, with its end.

    Raises
    ------
    LookupError
        No item matches: the file has changed, and this tool has to follow.
    """
    items = list(re.finditer(item, text, re.MULTILINE))
    if not items:
        message = f"nothing matches {item!r} in the registry; correct this tool"
        raise LookupError(message)
    starts = (found.start() for found in items if found[1] > name)
    at = next(starts, text.index("\n", items[-1].end()) + 1)
    return text[:at] + line + text[at:]


def main(kind: str, create: Callable[[Path, str], list[str]]) -> int:
    """Create a skeleton and run the generators.

    Returns
    -------
    int
        The exit status: 2 if the name is not valid or taken.
    """
    parser = argparse.ArgumentParser(description=f"Create the skeleton of a {kind}.")
    parser.add_argument("name", help="lower case, such as my_queue")
    parser.add_argument("--root", type=Path, default=ROOT, help="the repository")
    arguments = parser.parse_args()
    try:
        files = create(arguments.root, arguments.name)
    except ValueError as error:
        print(f"new {kind}: {error}", file=sys.stderr)
        return 2
    for path in files:
        print(f"wrote: {path}")
    command = [sys.executable, "tools/generate.py"]
    return subprocess.run(command, cwd=arguments.root, check=False).returncode
