"""The command in a process that is forked from one that has imported it already.

Importing takes about half a second, which is most of the time of most commands under test. The fork
server of ``multiprocessing`` starts the process. Its standard streams are files instead of pipes.
Tests of signals, of closed streams and of the start itself start the command as a shell does.
"""

import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from sojourn.cli import main
from sojourn.cli.app import COMMANDS

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(
    [
        "preloaded",
        *(f"sojourn.cli.{module}" for group in COMMANDS.values() for _, module, _ in group),
    ]
)
_ENCODING = "utf-8"


def run(
    arguments: Sequence[str], *, folder: Path, environment: Mapping[str, str], timeout: float
) -> subprocess.CompletedProcess[str]:
    """Run the command as `subprocess.run` does, with its output as text.

    Raises
    ------
    subprocess.TimeoutExpired
        The command did not end in time.
    """
    words = ["sojourn", *arguments]
    with tempfile.TemporaryDirectory() as streams:
        process = _CONTEXT.Process(
            target=_execute, args=(words, folder, dict(environment), streams)
        )
        process.start()
        process.join(timeout)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise subprocess.TimeoutExpired(words, timeout)
        out, err = (
            (Path(streams) / name).read_text(encoding=_ENCODING, errors="replace")
            for name in ("out", "err")
        )
        return subprocess.CompletedProcess(words, process.exitcode, out, err)


def _execute(words: list[str], folder: Path, environment: Mapping[str, str], streams: str) -> None:
    """Run the command in this process."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for name, number in (("out", 1), ("err", 2)):
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        os.dup2(os.open(Path(streams) / name, flags, 0o600), number)
    with Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    sys.stdin = open(0, encoding=_ENCODING, closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding=_ENCODING, closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding=_ENCODING, closefd=False, buffering=1)  # noqa: SIM115
    sys.argv = words
    sys.exit(main())
