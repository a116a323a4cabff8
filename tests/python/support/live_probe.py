"""What tests of live runs share: what the machine permits, and the command as a user runs it.

Live runs take place in real time and disturb one another, so only one that measures runs at a
time, also if pytest-xdist has several workers.
"""

import fcntl
import functools
import json
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest

import sojourn as sj
from support.live_runs import machine_lacks, not_possible
from support.shell import environment
from support.stored import COMMAND

T = TypeVar("T")
SERVER = "100.64.0.2"
SERVER6 = "fd53:6f6a:6f75:726e::2"
# Exit code of the command where the machine lacks something.
ENVIRONMENT = 3
# Runs of a measurement before the last one decides: other processes may delay a run.
ATTEMPTS = 3
_LOCK = Path(tempfile.gettempdir()) / f"sojourn-live-tests-{os.getuid()}.lock"


@dataclass(frozen=True)
class User:
    """Who runs the command.

    Parameters
    ----------
    prefix
        What is written before the command, so that this user runs it.
    """

    prefix: tuple[str, ...] = ()

    def popen(self, *arguments: object, folder: Path, **options: Any) -> subprocess.Popen[str]:
        """Start the command, in a process group of its own."""
        return subprocess.Popen(
            [*self.prefix, *COMMAND, *map(str, arguments)],
            cwd=folder,
            env=environment() | {"SOJOURN_STORE": str(folder / "store"), "HOME": str(folder)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            **options,
        )

    def run(self, *arguments: object, folder: Path) -> subprocess.CompletedProcess[str]:
        """Run the command while no other live run measures."""
        with exclusively(), self.popen(*arguments, folder=folder) as process:
            out, err = process.communicate(timeout=100)
        assert "Traceback" not in err
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)


ROOT = User()


@contextmanager
def exclusively() -> Iterator[None]:
    """Wait until no other test measures in a live run."""
    with _LOCK.open("w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@functools.cache
def _obstacle(user: User) -> str | None:
    """Return why a user cannot make live runs.

    Only what the machine does not permit is an obstacle. If the command refuses a live run where
    the machine permits one, or fails in another way, the calling test fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        done = user.run("live", "--duration", "5s", "--", "true", folder=Path(folder))
    if done.returncode == 0:
        return None
    said = done.stderr.strip() or "no message"
    if done.returncode == ENVIRONMENT and (reason := machine_lacks(user.prefix)):
        return f"{said} ({reason})"
    pytest.fail(f"sojourn live -- true ends with code {done.returncode}: {said}")


@functools.cache
def _not_importable(user: User) -> str | None:
    """Return why a user cannot start the interpreter with the package, which may be in a home."""
    done = subprocess.run(
        [*user.prefix, sys.executable, "-c", "import sojourn"],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    return (done.stderr.strip().splitlines() or ["no message"])[-1] if done.returncode else None


def needed() -> User:
    """Return the user of the tests; skip where live runs are not possible."""
    if reason := _obstacle(ROOT):
        not_possible(f"no live runs: {reason}")
    return ROOT


def unprivileged() -> User:
    """Return a user without privileges; skip where there is none who can make live runs."""
    user = ROOT
    if os.geteuid() == 0:
        try:
            nobody = pwd.getpwnam("nobody")
        except KeyError:
            pytest.skip("there is no user nobody")
        program("setpriv")
        ids = (f"--reuid={nobody.pw_uid}", f"--regid={nobody.pw_gid}")
        user = User(("setpriv", *ids, "--clear-groups", "--no-new-privs"))
    if reason := _not_importable(user):
        pytest.skip(f"a user without privileges cannot import the package: {reason}")
    if reason := _obstacle(user):
        not_possible(f"no live runs without privileges: {reason}")
    return user


_SHOW = """
set -e
kept=$(mktemp -d)
mount --bind "$2" "$kept"
mount -t tmpfs -o mode=755 none "$1"
mkdir -p "$2"
mount --move "$kept" "$2"
rmdir "$kept"
shift 2
exec "$@"
"""


def with_interpreter(user: User) -> User:
    """Return a user whose programs may start this interpreter, also if it is in a private home.

    In a mount namespace of the user, the directory that is closed to others has only the
    interpreter.
    """
    base = Path(sys.base_prefix)
    closed = [place for place in base.parents if place.stat().st_mode & 0o001 == 0]
    if not closed or os.geteuid():
        return user
    program("unshare")
    show = ("unshare", "--mount", "sh", "-c", _SHOW, "sh", str(closed[-1]), str(base))
    return User((*show, *user.prefix))


def program(*names: str) -> None:
    """Skip where one of these programs is missing."""
    for name in names:
        if shutil.which(name) is None:
            pytest.skip(f"{name} is not installed")


@pytest.fixture
def folder() -> Iterator[Path]:
    """A directory that every user may write to; those of pytest belong to one user."""
    with tempfile.TemporaryDirectory(prefix="sojourn-live-") as name:
        place = Path(name)
        place.chmod(0o777)
        yield place


def measured(measure: Callable[[], T], is_good: Callable[[T], bool]) -> T:
    """Measure until the value is good, :data:`ATTEMPTS` times at most; return the last value."""
    value = measure()
    for _ in range(ATTEMPTS - 1):
        if is_good(value):
            break
        value = measure()
    return value


def saved(folder: Path, name: str = "result") -> sj.Result:
    """Load a result that the command has saved."""
    return sj.Result.load(folder / name)


def link(result: sj.Result, name: str) -> dict[str, Any]:
    """Return the row of a link of a result with one run."""
    (row,) = (row for row in result.links.to_dicts() if row["link"] == name)
    return row


def parsed(folder: Path, name: str) -> dict[str, Any]:
    """Read JSON that a program has written."""
    document = json.loads((folder / name).read_text(encoding="utf-8"))
    assert isinstance(document, dict)
    return document
