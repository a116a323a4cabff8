"""Create the skeleton of a queue discipline: ``make new-queue NAME=foo``.

The skeleton is three files: the discipline in ``crates/qdisc/src/aqm``, its page in
``docs/qdiscs`` and a line in ``registry.rs``. The generators write everything else.
"""

import sys
from pathlib import Path

from skeletons import insert_before, title_of, write_templates

REGISTRY = "crates/qdisc/src/registry.rs"
#: New disciplines are registered before this line.
ANCHOR = "    /// One that another crate, or Python, registered.\n"


def create(root: Path, name: str) -> list[str]:
    """Write the hand-written files of a discipline.

    Parameters
    ----------
    root
        The repository.
    name
        The name of the discipline.

    Returns
    -------
    list of str
        The files, relative to ``root``.

    Raises
    ------
    ValueError
        The name is not valid or taken.
    """
    title = title_of(name)
    registry = (root / REGISTRY).read_text(encoding="utf-8")
    files = {
        f"crates/qdisc/src/aqm/{name}.rs": "queue.rs.txt",
        f"docs/qdiscs/{name}.md": "queue.md.txt",
    }
    write_templates(root, files, name)
    line = f"    /// `{name}`.\n    {title}: aqm::{name} {{ {title}Params => {title} }},\n"
    registry = insert_before(registry, ANCHOR, line)
    (root / REGISTRY).write_text(registry, encoding="utf-8")
    return [*files, REGISTRY]


if __name__ == "__main__":
    from skeletons import main

    sys.exit(main("queue discipline", create))
