"""TeX, where it is installed."""

import shutil
import subprocess
from pathlib import Path

import pytest


def tex(*packages: str) -> str:
    """Return the program that typesets; skip where it or a package is missing."""
    program = shutil.which("pdflatex")
    finder = shutil.which("kpsewhich")
    if program is None or finder is None:
        pytest.skip("TeX is not installed")
    for package in packages:
        found = subprocess.run([finder, f"{package}.sty"], capture_output=True, check=False)
        if found.returncode:
            pytest.skip(f"the LaTeX package {package} is not installed")
    return program


def typeset(program: str, folder: Path, packages: str, body: str) -> None:
    """Typeset a document, and fail if TeX refuses it."""
    document = rf"\documentclass{{article}}\usepackage{{{packages}}}\begin{{document}}"
    (folder / "all.tex").write_text(f"{document}\n{body}\n\\end{{document}}\n", encoding="utf-8")
    options = ["-interaction=nonstopmode", "-halt-on-error", "-draftmode"]
    done = subprocess.run(
        [program, *options, "all.tex"],
        cwd=folder,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:]
