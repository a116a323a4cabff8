"""Create the skeleton of a queue (``make new-queue NAME=foo``) or a control (``make new-cc``).

A skeleton is three files of the author: the algorithm with its parameters and a test, its page, and
its registration. ``make generate`` writes everything else.
"""

import argparse
import keyword
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from string import Template

ROOT = Path(__file__).resolve().parent.parent
PAGES = Path(__file__).resolve().parent / "templates"
NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
#: Names that no module of Rust or Python can have, and that of the page which lists the others.
RESERVED = frozenset(
    {*keyword.kwlist, *keyword.softkwlist, "index"}
    | {"box", "const", "crate", "dyn", "enum", "extern", "false", "fn", "impl", "let", "loop"}
    | {"macro", "mod", "move", "mut", "override", "priv", "pub", "ref", "self", "static", "struct"}
    | {"abstract", "become", "do", "final", "gen", "match", "type"}
    | {"super", "trait", "true", "typeof", "union", "unsafe", "unsized", "use", "virtual", "where"}
)


@dataclass(frozen=True)
class Kind:
    """What can be created.

    Parameters
    ----------
    code, page
        The path of the file with the algorithm and of its page; ``{}`` is the name.
    skeleton
        The algorithm of a queue or control named ``skeleton``: a module that tests compile.
    page_template
        The page, with ``$name`` and ``$title``.
    registry
        The file that registers it.
    register
        Adds name and title to the text of the registry.
    """

    code: str
    page: str
    skeleton: str
    page_template: str
    registry: str
    register: Callable[[str, str, str], str]

    def create(self, root: Path, name: str) -> list[str]:
        """Write the files of the author and return their paths.

        Raises
        ------
        ValueError
            The name is not valid or taken.
        LookupError
            The registry has changed, and this tool has to follow.
        """
        title = title_of(name)
        paths = [self.code.format(name), self.page.format(name)]
        if name in names(root) or any((root / path).exists() for path in paths):
            message = f"the name {name!r} is taken; expected a new one"
            raise ValueError(message)
        registry = (root / self.registry).read_text(encoding="utf-8")
        registered = self.register(registry, name, title)
        code = renamed((root / self.skeleton).read_text(encoding="utf-8"), name, title)
        template = Template((PAGES / self.page_template).read_text(encoding="utf-8"))
        texts = [code, template.substitute(name=name, title=title)]
        for path, text in zip(paths, texts, strict=True):
            (root / path).write_text(text, encoding="utf-8")
        (root / self.registry).write_text(registered, encoding="utf-8")
        return [*paths, self.registry]


def register_queue(text: str, name: str, title: str) -> str:
    """Add the line of a queue to the registry, before what comes from outside."""
    anchor = "    /// A class of Python or a plug-in.\n"
    line = f"    /// `{name}`.\n    {title}: aqm::{name} {{ {title}Params => {title} }},\n"
    return insert_before(text, anchor, line)


def register_control(text: str, name: str, title: str) -> str:
    """Add the module, the export and the line of a control."""
    module = r"^(?:#\[.*\]\n)*(?:pub(?:\([a-z]+\))? )?mod (\w+);$"
    text = insert_sorted(text, module, name, f"mod {name};\n")
    # `use std::…` stands before the modules of the crate.
    head, std, uses = text.partition("use std::fmt;\n")
    item = r"^(?:pub(?:\([a-z]+\))? )?use ([a-z]\w*)::\w*\{?"
    export = f"pub use {name}::{{{title}, {title}Params}};\n"
    text = head + std + insert_sorted(uses, item, name, export)
    line = f"    window {title}({title}Params, {title}; slow_start: SlowStartParams);\n"
    return insert_before(text, "}\n", line, after="controls! {\n")


KINDS = {
    "queue": Kind(
        code="crates/qdisc/src/aqm/{}.rs",
        page="docs/qdiscs/{}.md",
        skeleton="crates/qdisc/src/skeleton.rs",
        page_template="queue.md.txt",
        registry="crates/qdisc/src/registry.rs",
        register=register_queue,
    ),
    "control": Kind(
        code="crates/transport/src/cc/{}.rs",
        page="docs/controls/{}.md",
        skeleton="crates/transport/src/cc/skeleton.rs",
        page_template="control.md.txt",
        registry="crates/transport/src/cc/mod.rs",
        register=register_control,
    ),
}


def renamed(skeleton: str, name: str, title: str) -> str:
    """Return the source of the skeleton with another name."""
    return re.sub("[Ss]keleton", lambda found: title if found[0] == "Skeleton" else name, skeleton)


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


def main() -> int:
    """Create a skeleton and say which files are the author's.

    Returns
    -------
    int
        The exit status: 2 if the name is not valid or taken.
    """
    parser = argparse.ArgumentParser(description="Create the skeleton of a queue or a control.")
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("name", help="lower case, such as my_queue")
    parser.add_argument("--root", type=Path, default=ROOT, help="the repository")
    arguments = parser.parse_args()
    try:
        code, page, registry = KINDS[arguments.kind].create(arguments.root, arguments.name)
    except ValueError as error:
        print(f"new {arguments.kind}: {error}", file=sys.stderr)
        return 2
    print("Three files are yours; all others are generated:")
    print(f"  {code}: the algorithm, its parameters, a test")
    print(f"  {page}: its page, but the table of parameters")
    print(f"  {registry}: its registration, which needs no change")
    return 0


if __name__ == "__main__":
    sys.exit(main())
