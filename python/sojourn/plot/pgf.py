"""Figures as PGF, which LaTeX typesets with the fonts of the document."""

import contextlib
import shutil
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

from matplotlib import rc_context, rcParams
from matplotlib.backends import backend_pgf
from matplotlib.figure import Figure

from sojourn import _core
from sojourn.result import latex

# Programs that can measure text, in the order in which they are tried.
_PROGRAMS = ("pdflatex", "lualatex", "xelatex")
_NEEDS_TEX = (
    "PGF needs TeX to measure text; install TeX Live with pdflatex and the LaTeX packages pgf and "
    "underscore, or save the figure as .pdf and include it with \\includegraphics"
)


def written(figure: Figure, path: str | Path, origin: str) -> bytes:
    r"""Write a figure as PGF."""
    failures = []
    for program in _programs():
        try:
            picture = _picture(figure, program)
        except (RuntimeError, ValueError, OSError, backend_pgf.LatexError) as error:
            failures.append(_first_line(error, program))
            continue
        comment = f"% Figure by Sojourn: {_core.printable(origin)}\n"
        return comment.encode() + picture
    message = f"cannot write {path}: {'; '.join([*failures[:1], _NEEDS_TEX])}"
    raise _core.ResultError(message)


def _programs() -> list[str]:
    """List the installed programs; the one that matplotlib is set to comes last."""
    names = dict.fromkeys((*_PROGRAMS, rcParams["pgf.texsystem"]))
    return [name for name in names if shutil.which(name) is not None]


def _picture(figure: Figure, program: str) -> bytes:
    data = BytesIO()
    # Without the fonts of matplotlib, text takes those of the document.
    with rc_context({"pgf.texsystem": program, "pgf.rcfonts": False}), _escaping():
        figure.savefig(data, format="pgf")
    return data.getvalue()


@contextlib.contextmanager
def _escaping() -> Iterator[None]:
    """Escape texts for LaTeX, which the backend of matplotlib leaves to its user."""
    original = backend_pgf._tex_escape  # noqa: SLF001 - there is no other place

    def escape(text: str) -> str:
        # Tick labels are formulas of matplotlib; dollar signs of users are escaped.
        if text.startswith(r"$\mathdefault{"):
            return text.replace("−", r"\ensuremath{-}")
        return latex.escaped(text.replace(r"\$", "$"))

    backend_pgf._tex_escape = escape  # noqa: SLF001
    try:
        yield
    finally:
        backend_pgf._tex_escape = original  # noqa: SLF001


def _first_line(error: Exception, program: str) -> str:
    """Summarise the failure of a program: the line that TeX marks as an error."""
    lines = str(error).splitlines()
    marked = (line[1:].strip() for line in lines if line.startswith("!"))
    text = next(marked, lines[0] if lines else type(error).__name__)
    return f"{program}: {_core.printable(text)}"
