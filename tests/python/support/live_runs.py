"""Whether this machine can do live runs, for tests that need them."""

import functools
import os
import subprocess
import sys

import pytest

from sojourn.host import checks, facts

# Set where live runs must be possible, such as in the gate of changes.
REQUIRED = "SOJOURN_REQUIRE_LIVE"
# Without the package under test. Exits with code 1 and a message if the machine does not permit
# what live runs begin with. Flags are those of sched.h.
_PROBE = """
import ctypes, os, subprocess, sys
NEWUSER, NEWNET = 0x10000000, 0x40000000
library = ctypes.CDLL(None, use_errno=True)
if library.unshare(NEWNET) != 0 and library.unshare(NEWUSER | NEWNET) != 0:
    sys.exit(f"no network namespace: {os.strerror(ctypes.get_errno())}")
try:
    os.close(os.open("/dev/net/tun", os.O_RDWR))
except OSError as error:
    pair = ["ip", "link", "add", "near", "type", "veth", "peer", "name", "far"]
    try:
        done = subprocess.run(pair, capture_output=True, text=True)
    except FileNotFoundError:
        sys.exit(0)
    if done.returncode:
        sys.exit(f"neither /dev/net/tun ({error.strerror}) nor veth ({done.stderr.strip()})")
"""


@functools.cache
def machine_lacks(prefix: tuple[str, ...] = ()) -> str | None:
    """Find out without Sojourn what the machine lacks for live runs.

    Parameters
    ----------
    prefix
        What is written before a command so that the user in question runs it.

    Returns
    -------
    str or None
        What is missing; None if the machine permits live runs.
    """
    done = subprocess.run(
        [*prefix, sys.executable, "-I", "-c", _PROBE], capture_output=True, text=True, check=False
    )
    return done.stderr.strip() or f"exit code {done.returncode}" if done.returncode else None


def not_possible(reason: str) -> None:
    """Skip the calling test; fail it where :data:`REQUIRED` is set."""
    if os.environ.get(REQUIRED) == "1":
        pytest.fail(f"{REQUIRED} is set, but {reason}")
    pytest.skip(reason)


@functools.lru_cache(maxsize=1)
def missing() -> str:
    """Name what live runs lack here as ``sojourn doctor`` does; empty if they are possible.

    A child process tries to create a network namespace and a device.
    """
    found = checks.assess(facts.read())
    lacking = [one for one in found if one.required and one.verdict is checks.Verdict.MISSING]
    return "; ".join(f"{one.name}: {one.finding}" for one in lacking)


def need_live_runs() -> None:
    """Skip the calling test where live runs are not possible, and say why."""
    if reason := missing():
        assert machine_lacks(), f"the machine permits live runs, but sojourn doctor says: {reason}"
        not_possible(f"live runs are not possible: {reason}")
