"""Whether this machine can do live runs, for tests that need them."""

import functools

import pytest

from sojourn.machine import checks, readings


@functools.lru_cache(maxsize=1)
def missing() -> str:
    """Name what live runs lack here; empty if they are possible.

    A child process tries to create a network namespace and a TUN device.
    """
    found = checks.assess(readings.read())
    lacking = [one for one in found if one.required and one.verdict is checks.Verdict.MISSING]
    return "; ".join(f"{one.name}: {one.finding}" for one in lacking)


def need_live_runs() -> None:
    """Skip the calling test where live runs are not possible, and say why."""
    if reason := missing():
        pytest.skip(f"live runs are not possible: {reason}")
