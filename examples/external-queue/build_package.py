"""Build the package: the Python files of Sojourn and the extension module of this crate.

maturin packs only Python files below the directory of the project, so they are copied here while it
runs. The interface is that of PEP 517.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import maturin
from maturin import get_requires_for_build_wheel

__all__ = ["build_wheel", "get_requires_for_build_wheel", "prepare_metadata_for_build_wheel"]

HERE = Path(__file__).parent
#: The checkout of Sojourn.
SOJOURN = HERE / "../.."


@contextmanager
def _python_files() -> Iterator[None]:
    """Copy the Python files of Sojourn to ``python``, the ``python-source`` of the project."""
    copy = HERE / "python"
    unwanted = shutil.ignore_patterns("*.so", "*.pyd", "__pycache__")
    try:
        shutil.copytree(SOJOURN / "python", copy, ignore=unwanted, dirs_exist_ok=True)
        yield
    finally:
        shutil.rmtree(copy, ignore_errors=True)


def build_wheel(
    wheel_directory: str,
    config_settings: dict[str, Any] | None = None,
    metadata_directory: str | None = None,
) -> str:
    """Build the wheel into `wheel_directory` and return its name."""
    with _python_files():
        return maturin.build_wheel(wheel_directory, config_settings, metadata_directory)


def prepare_metadata_for_build_wheel(
    metadata_directory: str, config_settings: dict[str, Any] | None = None
) -> str:
    """Write the metadata of the wheel into `metadata_directory` and return its name."""
    with _python_files():
        return maturin.prepare_metadata_for_build_wheel(metadata_directory, config_settings)
