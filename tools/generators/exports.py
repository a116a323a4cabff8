"""Names that ``sojourn`` re-exports from its packages."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from generators.files import File

PATH = "python/sojourn/public.py"
#: Figures are imported from a module of their own.
FIGURES = "python/sojourn/__init__.py"
LIST = "tests/python/data/public_names.txt"
EXPORTED = re.compile(r"__all__ = \[\n(.*?)\n\]", re.DOTALL)


def exports(root: Path, package: str, public: Iterable[str]) -> Iterator[File]:
    """Yield ``sojourn/public.py`` with these names, and no others, from a package."""
    text = (root / PATH).read_text(encoding="utf-8")
    imported = re.compile(rf"from {re.escape(package)} import \(\n(.*?)\n\)", re.DOTALL)
    before, names = imported.search(text), EXPORTED.search(text)
    if before is None or names is None:
        message = f"{PATH}: expected a list of names from {package} and __all__"
        raise SystemExit(message)
    own = set(public)
    others = set(re.findall(r"\w+", names[1])) - set(re.findall(r"\w+", before[1]))
    lines = [f"    {name}," for name in sorted(own, key=imports_key)]
    block = "\n".join([f"from {package} import (", *lines, ")"])
    text = imported.sub(lambda _: block, text)
    lines = [f'    "{name}",' for name in sorted(others | own, key=natural)]
    text = EXPORTED.sub(lambda _: "\n".join(["__all__ = [", *lines, "]"]), text)
    yield File(PATH, text.encode())


def public_names(root: Path) -> Iterator[File]:
    """Yield the list of public names, with which tests compare the package."""
    names = EXPORTED.search((root / PATH).read_text(encoding="utf-8"))
    figures = re.findall(
        r"^    from .* as (\w+)$", (root / FIGURES).read_text("utf-8"), re.MULTILINE
    )
    if names is None or not figures:
        message = f"{PATH}, {FIGURES}: expected __all__ and the figures"
        raise SystemExit(message)
    listed = sorted([*re.findall(r"\w+", names[1]), *figures])
    yield File(LIST, "".join(f"{name}\n" for name in listed).encode())


def imports_key(name: str) -> tuple[bool, str]:
    """Return the key by which ``ruff`` sorts imported names: classes first, ignoring case."""
    return (name[0].islower(), name.lower())


def natural(name: str) -> tuple[bool, str]:
    """Return the key by which ``ruff`` sorts ``__all__``: classes before functions."""
    return (name[0].islower(), name)
