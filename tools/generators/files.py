"""Generated files and generated sections of hand-written files."""

import textwrap
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

BEGIN = "<!-- begin generated: {name}; edit the catalogue and run `make generate` -->"
WIDTH = 100
END = "<!-- end generated: {name} -->"


@dataclass(frozen=True)
class File:
    """A file as it should be.

    Parameters
    ----------
    path
        Relative to the root of the repository.
    content
        All bytes of the file; ``None`` if it should not exist.
    """

    path: str
    content: bytes | None

    def is_current(self, root: Path) -> bool:
        """Whether the file on disk is as it should be."""
        path = root / self.path
        if self.content is None:
            return not path.exists()
        return path.is_file() and path.read_bytes() == self.content

    def write(self, root: Path) -> None:
        """Write or remove the file."""
        path = root / self.path
        if self.content is None:
            path.unlink()
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self.content)


def text_file(path: str, lines: list[str]) -> File:
    """Return a file of these lines."""
    return File(path, ("\n".join(lines) + "\n").encode())


def wrapped(text: str, indent: str) -> list[str]:
    """Break a paragraph into indented lines that fit the width of Python."""
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def imports_of(module: str, names: Iterable[str]) -> list[str]:
    """Import names of a module, in the format and the order of ruff: classes, then functions."""
    ordered = sorted(names, key=lambda name: (name[0].islower(), name.lower()))
    line = f"from {module} import {', '.join(ordered)}"
    if len(line) <= WIDTH:
        return [line]
    return [f"from {module} import (", *(f"    {name}," for name in ordered), ")"]


def exported(names: Iterable[str]) -> list[str]:
    """Return ``__all__`` in the order of ruff."""
    ordered = sorted(names, key=lambda name: (name[0].islower(), name))
    return ["", "__all__ = [", *(f'    "{name}",' for name in ordered), "]"]


def deferred(package: str, modules: Mapping[str, Iterable[str]]) -> list[str]:
    """Import the classes of a package on first use, given the modules that have them."""
    static = [
        f"    {line}"
        for module, names in sorted(modules.items())
        for line in imports_of(f"{package}.{module}", names)
    ]
    names = ", ".join(f'"{package}.{module}"' for module in sorted(modules))
    getter = [f"    __getattr__ = Deferred({names}, names=__all__).__getattr__"]
    if len(getter[0]) > WIDTH:
        getter = [
            "    __getattr__ = Deferred(",
            f"        {names}, names=__all__",
            "    ).__getattr__",
        ]
    return [
        "",
        "if TYPE_CHECKING:",
        *static,
        "else:",
        "    # Most commands need no class, and creating them takes hundredths of a second.",
        *getter,
    ]


def former_modules(
    root: Path, package: str, modules: Container[str], *, header: str
) -> Iterator[File]:
    """Yield, to be removed, the modules of a package that a generator no longer writes.

    Parameters
    ----------
    root
        The repository.
    package
        The directory of the package, relative to the repository.
    modules
        The modules that the generator writes, apart from the index of the package.
    header
        What every module that the generator writes contains.
    """
    for path in sorted((root / package).glob("*.py")):
        if path.stem in modules or path.stem == "__init__":
            continue
        if header in path.read_text(encoding="utf-8"):
            yield File(f"{package}/{path.name}", None)


def replace_section(text: str, name: str, content: str, *, where: str) -> str:
    """Replace the text between the markers of a generated section.

    Parameters
    ----------
    text
        The file.
    name
        The name of the section.
    content
        The new text of the section, without a line feed at its end.
    where
        The path for the error message.

    Returns
    -------
    str
        The file with the new section.

    Raises
    ------
    SystemExit
        The markers are missing.
    """
    return replace_between(
        text, BEGIN.format(name=name), END.format(name=name), content, where=where
    )


def replace_between(text: str, begin: str, end: str, content: str, *, where: str) -> str:
    """Replace the text between two lines.

    Parameters
    ----------
    text
        The file.
    begin, end
        The lines, each of which the file has once.
    content
        The new text between them, without a line feed at its end.
    where
        The path for the error message.

    Returns
    -------
    str
        The file with the new text.

    Raises
    ------
    SystemExit
        The lines are missing.
    """
    if text.count(begin) != 1 or text.count(end) != 1:
        message = f"{where}: expected one pair of these lines\n{begin}\n{end}"
        raise SystemExit(message)
    head, rest = text.split(begin)
    tail = rest.split(end)[1]
    return f"{head}{begin}\n{content}\n{end}{tail}"
