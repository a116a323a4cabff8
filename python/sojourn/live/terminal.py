"""The terminal of a command that shows a run full-screen: its keys, and what programs print."""

import fcntl
import os
import pty
import re
import select
import struct
import sys
import termios
import threading
import tty
from collections import deque
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rich.console import Console, Group
from rich.live import Live

from sojourn.live.screen import BARS, PLAIN_BARS, Screen

# Bytes of output that are printed again at the end, and lines that are shown.
KEPT_BYTES = 1 << 20
KEPT_LINES = 200
UNKNOWN_SIZE = 80, 24
# Time without a key or news after which the size of the terminal is looked at.
TICK_S = 0.5
_SEQUENCE = re.compile(
    r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07]*(?:\x07|\x1b\\)|.)|[\x00-\x08\x0b-\x1f]"
)


def is_possible() -> bool:
    """Whether the command has a terminal that can show a screen."""
    return os.isatty(0) and os.isatty(2) and os.environ.get("TERM", "dumb") != "dumb"


def bars() -> str:
    """Return characters for sparklines that the terminal has."""
    encoding = (sys.__stderr__.encoding if sys.__stderr__ else "") or ""
    try:
        BARS.encode(encoding)
    except (UnicodeError, LookupError):
        return PLAIN_BARS
    return BARS


class Output:
    """What programs print meanwhile: its last lines, and its last bytes for later."""

    def __init__(self) -> None:
        self._whole: deque[bytes] = deque()
        self._size = 0
        self._lines: deque[str] = deque(maxlen=KEPT_LINES)
        self._open = ""
        self.lost = 0

    def add(self, part: bytes) -> None:
        """Add bytes that were printed."""
        self._whole.append(part)
        self._size += len(part)
        while self._size > KEPT_BYTES:
            gone = len(self._whole.popleft())
            self._size -= gone
            self.lost += gone
        *whole, self._open = (self._open + part.decode(errors="replace")).split("\n")
        self._lines += map(_shown, whole)

    def lines(self) -> list[str]:
        """Return the last lines, without control characters."""
        return [*self._lines, *([_shown(self._open)] if self._open else [])]

    def whole(self) -> bytes:
        """Return the last bytes."""
        return b"".join(self._whole)


def _shown(line: str) -> str:
    """Return what a terminal would show of a line: a carriage return overwrites it."""
    return _SEQUENCE.sub("", line.rstrip("\r").rpartition("\r")[2]).expandtabs()


class Terminal:
    """Shows a screen on the terminal while the block lasts.

    What this process and its programs print meanwhile is shown on the screen, and printed when the
    block ends: to standard output, or with `to_stderr` to standard error. Their standard input is
    empty, since the screen has the keys.
    """

    def __init__(self, screen: Screen, *, to_stderr: bool = False) -> None:
        self._screen = screen
        self._to_stderr = to_stderr
        self._output = Output()
        self._ended = False

    def show(self, links: list[dict[str, Any]]) -> None:
        """Add a view to the screen."""
        self._screen.show(links)
        self._wake()

    def __enter__(self) -> Self:
        """Take the terminal."""
        self._standard = [os.dup(n) for n in range(3)]
        self._keys, self._out = self._standard[0], self._standard[2]
        self._before = termios.tcgetattr(self._keys)
        tty.setcbreak(self._keys)
        mode = termios.tcgetattr(self._keys)
        # A stopped command would leave its screen behind.
        mode[6][termios.VSUSP] = b"\0"
        termios.tcsetattr(self._keys, termios.TCSADRAIN, mode)
        self._wakes = os.pipe()
        self._master, slave = pty.openpty()
        sys.stdout.flush()
        with Path(os.devnull).open("rb") as nothing:
            os.dup2(nothing.fileno(), 0)
        for n in (1, 2):
            os.dup2(slave, n)
        os.close(slave)
        self._file = os.fdopen(os.dup(self._out), "w", encoding="utf-8", errors="replace")
        self._console = Console(file=self._file, force_terminal=True, highlight=False, markup=False)
        self._live = Live(
            console=self._console,
            screen=True,
            auto_refresh=False,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._live.start()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Give the terminal back, and print what was printed meanwhile."""
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        for n, kept in enumerate(self._standard):
            os.dup2(kept, n)
        self._ended = True
        self._wake()
        self._thread.join()
        self._live.stop()
        self._file.close()
        termios.tcsetattr(self._keys, termios.TCSADRAIN, self._before)
        for one in (*self._standard, *self._wakes, self._master):
            os.close(one)
        if self._output.lost:
            print(f"… {self._output.lost} bytes of output are left out", file=sys.stderr)
        left = memoryview(self._output.whole().replace(b"\r\n", b"\n"))
        while left:
            left = left[os.write(2 if self._to_stderr else 1, left) :]

    def _wake(self) -> None:
        os.write(self._wakes[1], b".")

    def _run(self) -> None:
        """Draw when there is something new; read keys and output."""
        while True:
            self._draw()
            ready, _, _ = select.select([self._keys, self._master, self._wakes[0]], [], [], TICK_S)
            if self._wakes[0] in ready:
                os.read(self._wakes[0], 1024)
            if self._keys in ready:
                self._press(os.read(self._keys, 64))
            # At the end, until all that was printed has been read.
            if not (self._master in ready and self._read()) and self._ended:
                return

    def _press(self, keys: bytes) -> None:
        text = keys.decode(errors="replace")
        # An arrow, for example.
        for key in () if text.startswith("\x1b") else text:
            self._screen.press(key)

    def _read(self) -> bool:
        """Read output; False: no process has the other end any longer."""
        try:
            self._output.add(os.read(self._master, 1 << 16))
        except OSError:
            return False
        return True

    def _draw(self) -> None:
        width, height = os.get_terminal_size(self._out)
        if not width or not height:
            # A terminal that does not know its size.
            width, height = UNKNOWN_SIZE
        self._console.size = (width, height)
        size = struct.pack("HHHH", height, width, 0, 0)
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, size)
        lines = self._screen.lines(width, height, self._output.lines())
        self._live.update(Group(*lines), refresh=True)
