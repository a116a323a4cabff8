"""Create the skeleton of a congestion control: ``make new-cc NAME=foo``.

The skeleton is three files: the control in ``crates/transport/src/cc``, its page in
``docs/controls`` and three lines in ``mod.rs``. The generators write everything else.
"""

import sys
from pathlib import Path

from skeletons import insert_before, insert_sorted, title_of, write_templates

REGISTRY = "crates/transport/src/cc/mod.rs"
MODULE = r"^(?:#\[.*\]\n)?(?:pub(?:\([a-z]+\))? )?mod (\w+);$"
EXPORT = r"^(?:pub(?:\([a-z]+\))? )?use ([a-z]\w*)::\w*\{?"
TABLE, END = "controls! {\n", "}\n"


def create(root: Path, name: str) -> list[str]:
    """Write the hand-written files of a control.

    Parameters
    ----------
    root
        The repository.
    name
        The name of the control.

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
        f"crates/transport/src/cc/{name}.rs": "control.rs.txt",
        f"docs/controls/{name}.md": "control.md.txt",
    }
    write_templates(root, files, name)
    registry = insert_sorted(registry, MODULE, name, f"mod {name};\n")
    # `use std::…` stands before the modules of the crate.
    head, std, uses = registry.partition("use std::fmt;\n")
    export = f"pub use {name}::{{{title}, {title}Params}};\n"
    registry = head + std + insert_sorted(uses, EXPORT, name, export)
    line = f"    window {title}({title}Params, {title}; hystartpp: HyStartPlusPlusParams);\n"
    registry = insert_before(registry, END, line, after=TABLE)
    (root / REGISTRY).write_text(registry, encoding="utf-8")
    return [*files, REGISTRY]


if __name__ == "__main__":
    from skeletons import main

    sys.exit(main("congestion control", create))
