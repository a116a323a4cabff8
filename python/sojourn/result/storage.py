"""Save results atomically, and never replace one by accident."""

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from sojourn import _core
from sojourn.arguments import replaceable
from sojourn.files import warn_of_locks
from sojourn.result.result import Result
from sojourn.scenario import Scenario


class NotSavedError(_core.ResultError):
    """A result could not be saved where it was wanted."""

    def __init__(self, message: str, place: Path | None) -> None:
        super().__init__(message)
        self.place = place


@contextlib.contextmanager
def claimed(
    path: str | Path | None, *, force: bool = False, resumed: Scenario | None = None
) -> Iterator[_core.Claim | None]:
    """Reserve a directory for a result, and check that the result can be saved in it.

    The check creates, writes and renames files in the directory as saving does. The directory is
    created if needed, and removed again if nothing was saved in it.
    """
    if path is None:
        yield None
        return
    with replaceable():
        claim = _core.Claim(path, force, None if resumed is None else resumed.hash)
    if not claim.is_exclusive:
        warn_of_locks(path)
    try:
        yield claim
    finally:
        claim.release()


def save(result: Result, claim: _core.Claim) -> None:
    """Save a result to a reserved directory, or to a temporary directory if that fails."""
    try:
        result.save_claimed(claim)
    except _core.ResultError as error:
        place, said = _saved_elsewhere(result)
        message = f"{error}; {said}"
        raise NotSavedError(message, place) from None


def _saved_elsewhere(result: Result) -> tuple[Path | None, str]:
    """Save a result in a new directory that is not the wanted one; return it and say so."""
    reasons: dict[str, None] = {}
    # Each of them may not exist.
    parents: list[Callable[[], str | Path]] = [tempfile.gettempdir, Path.cwd, Path.home]
    for parent in parents:
        place: Path | None = None
        try:
            place = Path(tempfile.mkdtemp(prefix="sojourn-result-", dir=parent()))
            result.save(place)
        except (OSError, RuntimeError, _core.ResultError) as error:
            # RuntimeError: the user has no home directory.
            reasons[_reason(error)] = None
            if place is not None:
                with contextlib.suppress(OSError):
                    place.rmdir()
        else:
            return place, f"the result was saved to {place} instead"
    return None, f"it could not be saved elsewhere either ({'; '.join(reasons)})"


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return f"{error.strerror}" if isinstance(error, OSError) else f"{error}"
