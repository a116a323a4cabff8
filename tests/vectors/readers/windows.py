"""Compares congestion windows with those of the kernel; ../README.md specifies the format."""

from typing import Any, NamedTuple


class Window(NamedTuple):
    """From when on, in microseconds; window and threshold of slow start in segments."""

    at: int
    cwnd: int
    ssthresh: int | None  # None: not set yet

    def __str__(self) -> str:
        return f"window {self.cwnd} with threshold {self.ssthresh or 0}"


def windows(vector: dict[str, Any]) -> list[Window]:
    """Return those of the kernel, as sampled every millisecond."""
    return [Window(at, *row[:2]) for at, kind, *row in vector["events"] if kind == "window"]


def check(vector: dict[str, Any], ours: list[Window], until: float = float("inf")) -> str | None:
    """Return the first difference up to a time; ``None``: there is none.

    ``ours`` has a window for each change, in order of time.
    """
    for row in windows(vector):
        if row.at > until:
            break
        # The times of the kernel are accurate to this.
        tolerance = 400 + row.at // 1_000
        begin, end = row.at - 1_000 - tolerance, row.at + tolerance
        before = [window for window in ours if window.at <= begin]
        in_force = before[-1:] + [window for window in ours if begin < window.at <= end]
        if row[1:] not in [window[1:] for window in in_force]:
            got = in_force[-1] if in_force else Window(0, 0, None)
            return f"at {row.at} us: expected {row}, got {got}"
    return None
