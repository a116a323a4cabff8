"""Create the skeleton of a queue discipline: ``make new-queue NAME=foo``.

The skeleton is three files: the discipline in ``crates/qdisc/src``, its page in ``docs/qdiscs``
and a line in ``registry.rs``. The generators write everything else.
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path
from string import Template

ROOT = Path(__file__).resolve().parent.parent
TEMPLATES = Path(__file__).resolve().parent / "templates"
REGISTRY = "crates/qdisc/src/registry.rs"
#: New disciplines are registered before this line.
ANCHOR = "    /// One that another crate, or Python, registered.\n"
FAMILIES = ("aqm", "fair", "classful")


def main() -> int:
    """Create the files of one discipline.

    Returns
    -------
    int
        The exit status: 1 if the name is not valid or taken.
    """
    parser = argparse.ArgumentParser(description="Create the skeleton of a queue discipline.")
    parser.add_argument("name", help="lower case, such as my_queue")
    parser.add_argument(
        "--family", choices=FAMILIES, default="aqm", help="folder of the discipline"
    )
    parser.add_argument("--root", type=Path, default=ROOT, help="the repository")
    arguments = parser.parse_args()
    try:
        files = create(arguments.root, arguments.name, arguments.family)
    except ValueError as error:
        print(f"new-queue: {error}", file=sys.stderr)
        return 1
    for path in files:
        print(f"wrote: {path}")
    command = [sys.executable, "tools/generate.py"]
    return subprocess.run(command, cwd=arguments.root, check=False).returncode


def create(root: Path, name: str, family: str) -> list[str]:
    """Write the hand-written files of a discipline.

    Parameters
    ----------
    root
        The repository.
    name
        The name of the discipline.
    family
        The folder in ``crates/qdisc/src``.

    Returns
    -------
    list of str
        The files, relative to ``root``.

    Raises
    ------
    ValueError
        The name is not valid or taken.
    """
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name):
        message = f"invalid name {name!r}; expected lower-case words joined by _, such as my_queue"
        raise ValueError(message)
    title = "".join(word.capitalize() for word in name.split("_"))
    source, page = f"crates/qdisc/src/{family}/{name}.rs", f"docs/qdiscs/{name}.md"
    registry = (root / REGISTRY).read_text(encoding="utf-8")
    taken = (root / source).exists() or (root / page).exists()
    if taken or re.search(rf"^    {title}: ", registry, flags=re.MULTILINE):
        message = f"the name {name!r} is taken; expected a new one"
        raise ValueError(message)
    values = {"name": name, "title": title}
    for path, template in ((source, "queue.rs.txt"), (page, "queue.md.txt")):
        text = Template((TEMPLATES / template).read_text(encoding="utf-8")).substitute(values)
        (root / path).write_text(text, encoding="utf-8")
    line = f"    /// `{name}`.\n    {title}: {family}::{name} {{ {title}Params => {title} }},\n"
    head, anchor, tail = registry.partition(ANCHOR)
    (root / REGISTRY).write_text(head + line + anchor + tail, encoding="utf-8")
    return [source, page, REGISTRY]


if __name__ == "__main__":
    sys.exit(main())
