"""The control sockets of running runs: where they are, what they answer, and who asks."""

import asyncio
import json
import os
import secrets
import socket
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sojourn import _core
from sojourn.live import server
from sojourn.live.links import Links, Settings
from sojourn.live.server import Server, Streams, received
from sojourn.scenario.paths import Value

SUFFIX = ".sock"
# Bytes of the longest path of a socket (`sun_path` of unix(7), with its final NUL).
MOST_PATH = 107
# Runs in several PID namespaces that may have the same number.
MOST_RUNS = 99
# Of a program that asks: a run answers between two packets, unless it waits for its server.
PATIENCE_S = 15.0
_LARGEST = 1 << 20


class NoSocketError(Exception):
    """There can be no control socket, for the reason in the message."""


def folders() -> list[Path]:
    """List the directories where the runs of this user have their sockets, the usual one first."""
    user = os.getuid()
    found = []
    given = os.environ.get("XDG_RUNTIME_DIR", "")
    with suppress(OSError):
        # With `sudo -E`, it is that of another user.
        if given.startswith("/") and Path(given).stat().st_uid == user:
            found.append(Path(given) / "sojourn")
    return [*found, Path(f"/tmp/sojourn-{user}")]  # noqa: S108 - checked by `_private`


def _private(folder: Path) -> None:
    """Create a directory that only this user can enter; refuse one that others own or can enter."""
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        message = f"{folder} is not a directory of this user"
        raise NoSocketError(message)
    if found.st_mode & 0o077:
        message = f"other users may enter {folder}; expected mode 0700"
        raise NoSocketError(message)


def _listening() -> tuple[Path, socket.socket]:
    """Listen at the socket of this process, which only this user can open."""
    problem = "no directory"
    for folder in folders():
        place = folder / f"{os.getpid()}-{MOST_RUNS}{SUFFIX}"
        if len(os.fsencode(place)) > MOST_PATH:
            problem = f"{folder} has a name that is too long for a socket"
            continue
        try:
            _private(folder)
            # Removes those of runs that were killed.
            running(folder)
            return _bound(folder)
        except NoSocketError as error:
            problem = f"{error}"
        except OSError as error:
            problem = f"{place}: {error.strerror}"
    raise NoSocketError(problem)


def _bound(folder: Path) -> tuple[Path, socket.socket]:
    """Listen at a socket in a private directory."""
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    # Not at its place: a socket there at which nobody listens yet counts as left by a killed run.
    new = folder / f"new-{secrets.token_hex(4)}"
    try:
        listening.bind(f"{new}")
        new.chmod(0o600)
        listening.listen()
        return _placed(new), listening
    except OSError:
        listening.close()
        raise
    finally:
        new.unlink(missing_ok=True)


def _placed(new: Path) -> Path:
    """Name a socket after this process; in another PID namespace, a process may have its number."""
    pid = os.getpid()
    for name in (f"{pid}", *(f"{pid}-{n}" for n in range(2, MOST_RUNS + 1))):
        with suppress(FileExistsError):
            place = new.with_name(f"{name}{SUFFIX}")
            os.link(new, place)
            return place
    message = f"{new.parent} has {MOST_RUNS} runs with the number of this one"
    raise NoSocketError(message)


class ControlSocket:
    """Answers those who ask a run for its settings and for changes: a line of JSON for each."""

    def __init__(self, links: Links, about: Mapping[str, Any]) -> None:
        self._links = links
        self._about = dict(about)
        self._streams = Streams()
        self.path, listening = _listening()
        busy = _line({"error": f"{server.MOST_CONNECTIONS} others are asking; try again"})
        self._server = Server(listening, self._answer, full=busy)

    async def _answer(self, client: socket.socket) -> None:
        async with asyncio.timeout(server.TIMEOUT_S):
            asked = await received(client, b"\n")
        if _is_to_watch(asked):
            await asyncio.to_thread(self._links.watch)
            await self._streams.follow(client, _line(self._about), b"\n")
            return
        # A change waits for the thread that moves packets.
        answer = await asyncio.to_thread(self._reply, asked)
        async with asyncio.timeout(server.TIMEOUT_S):
            await asyncio.get_running_loop().sock_sendall(client, _line(answer))

    def show(self, links: Sequence[Mapping[str, Any]]) -> None:
        """Send a view to those who watch."""
        self._server.call(lambda: self._streams.send(_line({"view": links})))

    def _reply(self, line: bytes) -> dict[str, Any]:
        """Answer one question."""
        try:
            asked = json.loads(line)
            changes = [(f"{path}", value) for path, value in asked["set"]]
        except (ValueError, KeyError, TypeError):
            return {"error": 'expected a line of JSON such as {"set": [[PATH, VALUE]]}'}
        try:
            time_s, links = self._links.change(changes) if changes else self._links.now()
        except _core.SojournError as error:
            return {"error": _core.message(f"{error}")}
        return {**self._about, "time_s": time_s, "links": links}

    def close(self) -> None:
        """Stop answering, and remove the socket."""
        self._server.close()
        self.path.unlink(missing_ok=True)


def _is_to_watch(line: bytes) -> bool:
    """Whether a client asks to be shown the run."""
    try:
        return bool(json.loads(line).get("watch"))
    except (ValueError, AttributeError):
        return False


def _line(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document).encode() + b"\n"


@dataclass(frozen=True, slots=True)
class Run:
    """A run that has a control socket."""

    path: Path

    @property
    def number(self) -> str:
        """The number that names it: that of its process, with a suffix if several have it."""
        return self.path.stem

    def ask(self, *changes: tuple[str, Any]) -> dict[str, Any]:
        """Ask for changes, and for the settings afterwards."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.settimeout(PATIENCE_S)
            try:
                client.connect(f"{self.path}")
                client.sendall(_line({"set": changes}))
                with client.makefile("rb") as stream:
                    answer = json.loads(stream.readline(_LARGEST))
            except (OSError, ValueError) as error:
                message = f"run {self.number} does not answer: {error}"
                raise _core.ScenarioError(message) from None
        if "error" in answer:
            raise _core.ScenarioError(answer["error"])
        return dict(answer)


class Watched:
    """A run of another process, for the full-screen view."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)

    def now(self) -> tuple[float, Settings]:
        """Return the time of the run in seconds and the settings of its links."""
        return self.change([])

    def change(self, assignments: Sequence[tuple[str, Value]]) -> tuple[float, Settings]:
        """Change paths such as ``links.down.qdisc``: all at the same time, or none."""
        answer = self._run.ask(*assignments)
        return answer["time_s"], answer["links"]

    def views(self) -> Iterator[list[dict[str, Any]]]:
        """Yield the views of the run until it or this watcher ends."""
        with self._client as client, suppress(OSError, ValueError):
            client.connect(f"{self._run.path}")
            client.sendall(_line({"watch": True}))
            with client.makefile("rb") as stream:
                for line in stream:
                    document = json.loads(line) if line.strip() else {}
                    if "error" in document:
                        raise _core.ScenarioError(document["error"])
                    if "view" in document:
                        yield document["view"]

    def end(self) -> None:
        """Let :meth:`views` end."""
        with suppress(OSError):
            self._client.shutdown(socket.SHUT_RDWR)


def running(*places: Path) -> list[Run]:
    """List the runs of this user; sockets of runs that were killed are removed."""
    found: list[Run] = []
    for folder in places or folders():
        with suppress(NoSocketError, OSError):
            if not folder.exists():
                continue
            _private(folder)
            found += map(Run, filter(_is_alive, sorted(folder.glob(f"*{SUFFIX}"))))
    return found


def _is_alive(path: Path) -> bool:
    """Whether somebody listens at a socket; if not, it is removed."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(1)
        try:
            client.connect(f"{path}")
        except (ConnectionRefusedError, FileNotFoundError):
            path.unlink(missing_ok=True)
            return False
        except OSError:
            # It is busy.
            return True
    return True
