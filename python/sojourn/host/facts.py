"""Reads what this machine has: kernel, permissions, clock, processors, programs."""

import contextlib
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from sojourn import _core
from sojourn.execute import runs
from sojourn.host import kernels, probe

TOOLS = ("iperf3", "irtt", "flent", "tshark", "tc", "pasta")
# A kernel may take long to load a module.
PROBE_S = 20.0
_CONTROLS = "proc/sys/net/ipv4/tcp_available_congestion_control"
_CLOCK = "sys/devices/system/clocksource/clocksource0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """What was found on a machine; None for values that could not be read."""

    system: str
    release: str
    backends: list[str]
    is_root: bool = False
    attempts: dict[str, str | None] = field(default_factory=dict)
    probe_failure: str | None = None
    tun_exists: bool = False
    tun_writable: bool = False
    veth: bool | None = None
    controls: list[str] | None = None
    loadable: list[str] | None = None
    clock: str | None = None
    clocks: list[str] = field(default_factory=list)
    resolution_s: float | None = None
    nice_limit: int | None = None
    realtime_limit: int | None = None
    processors: int | None = None
    load: float | None = None
    default_qdisc: str | None = None
    tools: dict[str, str | None] = field(default_factory=dict)
    kernels: list[str] = field(default_factory=list)
    store: str | None = None
    store_error: str | None = None
    free_bytes: int | None = None
    memory_bytes: int | None = None


def read(root: Path = Path("/")) -> Readings:
    """Read what the machine has."""
    release = platform.release()
    found, failure = attempts()
    tun = root / "dev/net/tun"
    modules = _modules(root, release)
    nice_limit, realtime_limit = limits()
    store, store_error, free = _store()
    return Readings(
        system=platform.system(),
        release=release,
        backends=_core.backend_names(),
        is_root=getattr(os, "geteuid", lambda: -1)() == 0,
        attempts=found,
        probe_failure=failure,
        tun_exists=tun.exists(),
        tun_writable=os.access(tun, os.R_OK | os.W_OK),
        veth=_has_veth(root, modules),
        controls=_words(root / _CONTROLS),
        loadable=None if modules is None else _controls(modules),
        clock=_text(root / _CLOCK / "current_clocksource"),
        clocks=_words(root / _CLOCK / "available_clocksource") or [],
        resolution_s=time.clock_getres(time.CLOCK_MONOTONIC),
        nice_limit=nice_limit,
        realtime_limit=realtime_limit,
        processors=_processors(),
        load=_load(root),
        default_qdisc=_text(root / "proc/sys/net/core/default_qdisc"),
        tools={name: shutil.which(name) for name in TOOLS},
        kernels=[f"linux-{one.version}" for one in kernels.built(kernels.default_folder())],
        store=store,
        store_error=store_error,
        free_bytes=free,
        memory_bytes=_core.default_max_memory(),
    )


def attempts() -> tuple[dict[str, str | None], str | None]:
    """Run :mod:`sojourn.host.probe` in a separate process."""
    home = str(Path(_core.__file__).resolve().parent.parent)
    inherited = os.environ.get("PYTHONPATH")
    path = home if not inherited else os.pathsep.join((home, inherited))
    try:
        done = subprocess.run(  # noqa: S603 - this interpreter and a module of this package
            [sys.executable, "-m", probe.__name__],
            env=os.environ | {"PYTHONPATH": path},
            capture_output=True,
            text=True,
            timeout=PROBE_S,
            check=True,
        )
        found = dict(json.loads(done.stdout))
    except subprocess.TimeoutExpired:
        return {}, f"no answer within {PROBE_S:g} s"
    except subprocess.CalledProcessError as error:
        return {}, (error.stderr or "").strip().rpartition("\n")[
            2
        ] or f"exit code {error.returncode}"
    except (OSError, ValueError) as error:
        return {}, str(error)
    return {name: found[name] for name in probe.NAMES if name in found}, None


def _text(file: Path) -> str | None:
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return None


def _words(file: Path) -> list[str] | None:
    text = _text(file)
    return None if text is None else text.split()


def _modules(root: Path, release: str) -> set[str] | None:
    """Return the names of the modules of the kernel, built in or loadable; None if unknown."""
    folder = root / "lib/modules" / release
    texts = [_text(folder / name) for name in ("modules.builtin", "modules.dep")]
    if not any(texts):
        return None
    lines = [line for text in texts if text for line in text.splitlines()]
    files = (line.partition(":")[0].rpartition("/")[2] for line in lines)
    return {file.partition(".ko")[0].replace("-", "_") for file in files}


def _controls(modules: set[str]) -> list[str]:
    """Return the congestion controls among the modules."""
    prefix = "tcp_"
    return sorted(name.removeprefix(prefix) for name in modules if name.startswith(prefix))


def _has_veth(root: Path, modules: set[str] | None) -> bool | None:
    if (root / "sys/module/veth").exists() or "veth" in (modules or ()):
        return True
    return None if modules is None else False


def limits() -> tuple[int | None, int | None]:
    """Return the lowest nice value and the highest real-time priority that the limits allow."""
    try:
        import resource  # noqa: PLC0415 - not on every system
    except ImportError:
        return None, None
    nice = _limit(resource, "RLIMIT_NICE", 40)
    realtime = _limit(resource, "RLIMIT_RTPRIO", 99)
    # The limit is 20 minus the nice value (getrlimit(2)).
    return None if nice is None else min(20 - nice, 0), realtime


def _limit(resource: object, name: str, most: int) -> int | None:
    """Return a soft limit; `most` if there is none."""
    number = getattr(resource, name, None)
    if number is None:
        return None
    soft: int = resource.getrlimit(number)[0]  # type: ignore[attr-defined]
    unlimited: int = resource.RLIM_INFINITY  # type: ignore[attr-defined]
    return most if soft == unlimited else min(soft, most)


def _processors() -> int | None:
    affinity = getattr(os, "sched_getaffinity", None)
    return os.cpu_count() if affinity is None else len(affinity(0))


def _load(root: Path) -> float | None:
    words = _words(root / "proc/loadavg")
    with contextlib.suppress(ValueError, IndexError):
        return float(words[0]) if words else None
    return None


def _store() -> tuple[str | None, str | None, int | None]:
    """Return the directory of the run store, why it cannot be written, and its free space."""
    try:
        folder = runs.default_folder()
    except RuntimeError as error:
        # The user has no home directory.
        return None, str(error), None
    existing = next(one for one in (folder, *folder.parents) if one.exists())
    reason = None
    if not existing.is_dir():
        reason = f"{existing} is not a directory"
    elif not os.access(existing, os.W_OK | os.X_OK):
        reason = f"no permission to write to {existing}"
    try:
        free = shutil.disk_usage(existing).free
    except OSError:
        free = None
    return str(folder), reason, free
