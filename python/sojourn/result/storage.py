"""Where results go: checked before a run, so that no run is lost to a folder."""

import tempfile
from pathlib import Path

from sojourn import _core

MANIFEST = "manifest.json"


def claim_folder(path: str | Path) -> Path:
    """Make sure that a result can be saved in a folder.

    Parameters
    ----------
    path
        The folder; one that is not there is made and removed, so that a run that leaves nothing
        leaves no folder either.

    Returns
    -------
    pathlib.Path
        The folder.

    Raises
    ------
    ResultError
        It cannot be made or written, or holds something that is not a result.
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
        message = f"cannot write to {folder}: it is a file, not a folder"
        raise _core.ResultError(message) from None
    except OSError as error:
        message = f"cannot write to {folder}: {error.strerror}"
        raise _core.ResultError(message) from None
    if occupied:
        message = f"{folder} holds files that are not a result: name an empty or a new folder"
        raise _core.ResultError(message)
    return folder


def claim_file(path: str | Path) -> Path:
    """Make sure that a file can be written.

    Parameters
    ----------
    path
        The file; its folder is made if it is not there.

    Returns
    -------
    pathlib.Path
        The file.

    Raises
    ------
    ResultError
        Its folder cannot be made or written, or it is a folder itself.
    """
    file = Path(path)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=file.parent):
            pass
    except (FileExistsError, NotADirectoryError):
        message = f"cannot write {file}: {file.parent} is not a folder"
        raise _core.ResultError(message) from None
    except OSError as error:
        message = f"cannot write {file}: {error.strerror}"
        raise _core.ResultError(message) from None
    if file.is_dir():
        message = f"cannot write {file}: it is a folder"
        raise _core.ResultError(message)
    return file
