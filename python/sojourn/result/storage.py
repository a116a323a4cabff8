"""Check that result directories and report files are writable before a run."""

import tempfile
from pathlib import Path

from sojourn import _core

MANIFEST = "manifest.json"


def claim_folder(path: str | Path) -> Path:
    """Check that a result can be saved in a directory.

    Parameters
    ----------
    path
        The directory. It need not exist; the check does not leave one behind.

    Returns
    -------
    pathlib.Path
        The directory.

    Raises
    ------
    ResultError
        The directory cannot be created or written, or is neither empty nor a result.
    """
    folder = Path(path)
    new = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
        occupied = any(folder.iterdir()) and not (folder / MANIFEST).exists()
        if new:
            folder.rmdir()
    except FileExistsError:
        message = f"cannot write to {folder}: it is a file; expected a directory"
        raise _core.ResultError(message) from None
    except OSError as error:
        message = f"cannot write to {folder}: {error.strerror}"
        raise _core.ResultError(message) from None
    if occupied:
        message = (
            f"{folder}: not empty and not a Sojourn result; expected an empty or new directory"
        )
        raise _core.ResultError(message)
    return folder


def claim_file(path: str | Path) -> Path:
    """Check that a file can be written.

    Parameters
    ----------
    path
        The file. Its directory is created if needed.

    Returns
    -------
    pathlib.Path
        The file.

    Raises
    ------
    ResultError
        The directory of the file cannot be created or written, or the file is a directory.
    """
    file = Path(path)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=file.parent):
            pass
    except (FileExistsError, NotADirectoryError):
        message = f"cannot write {file}: {file.parent} is not a directory"
        raise _core.ResultError(message) from None
    except OSError as error:
        message = f"cannot write {file}: {error.strerror}"
        raise _core.ResultError(message) from None
    if file.is_dir():
        message = f"cannot write {file}: it is a directory"
        raise _core.ResultError(message)
    return file
