"""Builds User-Mode Linux kernels and the file system of their guests, for runs in virtual time."""

import contextlib
import os
import platform
import re
import shutil
import stat
import subprocess
import tarfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from sojourn._core import ResultError, UnavailableError
from sojourn.arguments import ArgumentError

# Kernels of which Debian has a package with the source.
PACKAGED = ("6.1", "6.12")
# Programs that a build calls, and the Debian packages that have them.
TOOLS = {
    "gcc": "gcc",
    "make": "make",
    "flex": "flex",
    "bison": "bison",
    "bc": "bc",
    "patch": "patch",
    "tar": "tar",
    "xz": "xz-utils",
    "ldd": "libc-bin",
    "ip": "iproute2",
    "tc": "iproute2",
}
# To get the source from Debian.
DEBIAN_TOOLS = {"apt-get": "apt", "apt-cache": "apt", "dpkg": "dpkg"}
FILES = "a directory or .tar file with the source"
EXPECTED = f"expected {', '.join(PACKAGED)}, or {FILES}"
NO_SOURCE = "not the source of Linux: it has no directory arch/um"
# Programs of the host in the file system of the guest.
GUEST_PROGRAMS = ("ip", "tc")
# Tests and root file systems may have them outside the search path of a user.
_SYSTEM = ("/usr/sbin", "/sbin")
# Written last: a build without it is incomplete.
ABOUT = "about"
# The patched sources have this variable, which holds whether random numbers are seeded.
_SEEDED = "random_is_seeded"
# Where the queues of Sojourn are in them.
_MODULES = "net/sched/sojourn"
# The variable of make that builds them into the kernel; without it, they can be loaded.
_WITH_MODULES = "SOJOURN_QUEUES"
_ANSWERS = {True: "yes", False: "no"}
_ARCHITECTURE = ("ARCH=um", "SUBARCH=x86_64")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """A kernel that was built."""

    version: str
    release: str
    seeded: bool
    modules: bool
    folder: Path


def default_folder() -> Path:
    """Return the directory of the kernels."""
    if chosen := os.environ.get("SOJOURN_KERNELS"):
        return Path(chosen)
    if cache := os.environ.get("XDG_CACHE_HOME"):
        return Path(cache) / "sojourn" / "kernels"
    return Path.home() / ".cache" / "sojourn" / "kernels"


def built(folder: Path) -> list[Kernel]:
    """List the kernels of a directory."""
    found = []
    for about in sorted(folder.glob(f"*/{ABOUT}")):
        lines = about.read_text(encoding="utf-8").splitlines()
        facts = dict(line.split("=", 1) for line in lines if "=" in line)
        kernel = Kernel(
            version=about.parent.name,
            release=facts.get("release", ""),
            seeded=facts.get("seeded") == "yes",
            modules=facts.get("modules") == "yes",
            folder=about.parent,
        )
        found.append(kernel)
    return found


def checkout() -> Path:
    """Find the checkout with the patches and the programs of the guest; packages have neither."""
    for place in (Path.cwd(), Path(__file__).resolve().parents[3]):
        if (place / "kernel" / "config").is_file() and (place / "crates" / "kernel").is_dir():
            return place
    message = "the patches of the kernel are in the checkout of Sojourn: run this command there"
    raise UnavailableError(message)


def build(wanted: str, folder: Path, *, keep: bool, say: Callable[[str], None]) -> Kernel:
    """Build a kernel and the file system of its guest.

    `wanted` is a version that Debian has, or a directory with the source or a ``.tar`` file of it;
    the source in a directory is not patched, and patches that do not apply to a ``.tar`` file are
    left out. With `keep`, the source and the objects stay. `say` is called with what is done next.
    """
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        message = "User-Mode Linux needs Linux on x86-64, and ptrace"
        raise UnavailableError(message)
    _check(wanted)
    root = checkout()
    _require(TOOLS | (DEBIAN_TOOLS if wanted in PACKAGED else {}))
    if wanted in PACKAGED:
        _require_package(_package(wanted))
    work = folder / f".build-{re.sub('[^0-9A-Za-z.]', '_', wanted)}"
    work.mkdir(parents=True, exist_ok=True)
    steps = _Steps(work / "log")
    source = _source(wanted, root, work, steps, say)
    say("compiling the kernel; this takes a few minutes")
    objects = work / "objects"
    objects.mkdir(exist_ok=True)
    make = ("make", f"-C{source}", *_ARCHITECTURE, f"O={objects}")
    steps.run([*make, f"KCONFIG_ALLCONFIG={root / 'kernel' / 'config'}", "allnoconfig"])
    steps.run([*make, f"-j{os.cpu_count() or 1}", f"{_WITH_MODULES}=y", "linux"])
    release = (objects / "include/config/kernel.release").read_text(encoding="utf-8").strip()
    version = _version(release)
    place = folder / version
    place.mkdir(exist_ok=True)
    (place / ABOUT).unlink(missing_ok=True)
    _install(objects / "linux", place / "linux")
    steps.run(["strip", str(place / "linux")])
    install_guest(root, place, steps.run)
    seeded = _SEEDED in (source / "arch/um/os-Linux/util.c").read_text(encoding="utf-8")
    modules = (source / _MODULES).is_dir()
    answers = f"seeded={_ANSWERS[seeded]}\nmodules={_ANSWERS[modules]}\n"
    (place / ABOUT).write_text(f"release={release}\n{answers}", encoding="utf-8")
    if keep:
        say(f"kept the source in {source} and the object files in {objects}")
    else:
        shutil.rmtree(work)
    return Kernel(version=version, release=release, seeded=seeded, modules=modules, folder=place)


def install_guest(root: Path, place: Path, run: Callable[[Sequence[str]], None]) -> None:
    """Compile the programs of a guest and pack its file system."""
    compiler = ("gcc", "-O2", "-static")
    for name in ("guest", "launch"):
        run([*compiler, "-o", str(place / name), str(root / "crates/kernel/guest" / f"{name}.c")])
    files = {Path("init"): place / "guest"}
    for name in GUEST_PROGRAMS:
        program = _which(name)
        if program is not None:
            files[Path("sbin") / name] = Path(program)
            files |= {library.relative_to("/"): library for library in _libraries(program)}
    (place / "guest.cpio").write_bytes(b"".join(_archive(files)))
    (place / "guest").unlink()


class _Steps:
    """Runs the commands of a build; their output goes to a log."""

    def __init__(self, log: Path) -> None:
        self._log = log
        log.write_bytes(b"")

    def run(self, words: Sequence[str], *, cwd: Path | None = None) -> None:
        code = self._code(words, cwd)
        if code != 0:
            message = f"{words[0]} failed with exit code {code}; see {self._log}"
            raise ResultError(message)

    def succeeds(self, words: Sequence[str], *, cwd: Path) -> bool:
        return self._code(words, cwd) == 0

    def _code(self, words: Sequence[str], cwd: Path | None) -> int:
        with self._log.open("ab") as log:
            log.write(f"$ {' '.join(words)}\n".encode())
            log.flush()
            done = subprocess.run(  # noqa: S603 - our own commands
                words, cwd=cwd, stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=False
            )
        return done.returncode


def _which(name: str) -> str | None:
    return shutil.which(name, path=os.pathsep.join((os.environ.get("PATH", ""), *_SYSTEM)))


def _check(wanted: str) -> None:
    """Refuse what is no source of a kernel."""
    if wanted in PACKAGED:
        return
    place = Path(wanted)
    problem = ""
    if not wanted.strip():
        problem = "empty"
    elif not place.exists():
        problem = "no such file or directory"
    elif place.is_dir():
        problem = "" if _is_source(place) else NO_SOURCE
    elif not _is_archive(place):
        problem = "not a .tar file"
    if problem:
        _refuse(wanted, problem)


def _refuse(wanted: str, problem: str) -> NoReturn:
    raise ArgumentError("source", wanted, f"{problem}; {EXPECTED}")


def _is_source(folder: Path) -> bool:
    return (folder / "arch" / "um").is_dir()


def _is_archive(file: Path) -> bool:
    """Whether tar can read a file; the standard library does not know all compressions."""
    return ".tar" in file.suffixes[:-1] or (file.is_file() and tarfile.is_tarfile(file))


def _package(version: str) -> str:
    """Name the Debian package with the source of a version."""
    return f"linux-source-{version}"


def _require_package(package: str) -> None:
    """Refuse a package that Debian lacks, before anything is written."""
    words = ("apt-cache", "show", package)
    found = subprocess.run(words, capture_output=True, check=False)  # noqa: S603 - our own command
    if found.returncode != 0:
        message = f"apt-get finds no package {package}; expected Debian 12, or {FILES}"
        raise UnavailableError(message)


def _require(tools: dict[str, str]) -> None:
    missing = sorted({package for name, package in tools.items() if _which(name) is None})
    if missing:
        message = f"to build a kernel, install the Debian packages {' '.join(missing)}"
        raise UnavailableError(message)


def _source(wanted: str, root: Path, work: Path, steps: _Steps, say: Callable[[str], None]) -> Path:
    """Return the directory with the source, patched unless it is the user's."""
    if wanted not in PACKAGED and Path(wanted).is_dir():
        return Path(wanted).resolve()
    source = work / "source"
    if (source / "patched").exists():
        return source
    archive = Path(wanted)
    if wanted in PACKAGED:
        package = _package(wanted)
        say(f"downloading {package} from Debian")
        # An interrupted build may have left an older one.
        for left in work.glob(f"{package}_*.deb"):
            left.unlink()
        steps.run(["apt-get", "download", package], cwd=work)
        (file,) = work.glob(f"{package}_*.deb")
        steps.run(["dpkg", "-x", str(file), str(work / "package")])
        file.unlink()
        archive = work / "package/usr/src" / f"{package}.tar.xz"
    say("unpacking the source")
    unpacked = work / "unpacked"
    for folder in (source, unpacked):
        shutil.rmtree(folder, ignore_errors=True)
    unpacked.mkdir()
    words = ["tar", "-xf", str(archive), "-C", str(unpacked)]
    done = subprocess.run(words, stderr=subprocess.PIPE, text=True, check=False)  # noqa: S603 - ours
    if done.returncode != 0:
        _remove(work)
        message = f"{archive}: {done.stderr.partition(chr(10))[0] or 'tar failed'}"
        raise ResultError(message)
    found = list(unpacked.iterdir())
    if len(found) != 1 or not _is_source(found[0]):
        _remove(work)
        _refuse(wanted, NO_SOURCE)
    found[0].rename(source)
    shutil.rmtree(work / "package", ignore_errors=True)
    for patch in sorted((root / "kernel/patches").glob("*.patch")):
        words = ["patch", "-p1", "-N", "-i", str(patch)]
        if wanted not in PACKAGED and not steps.succeeds([*words, "--dry-run"], cwd=source):
            seeds = _SEEDED in patch.read_text(encoding="utf-8")
            lost = ": runs will not be deterministic" if seeds else ""
            say(f"leaving out {patch.name}, which does not apply to this source{lost}")
            continue
        steps.run(words, cwd=source)
    _add_modules(root / "kernel/modules", source)
    (source / "patched").touch()
    return source


def _remove(work: Path) -> None:
    """Remove what a build made, and the directory of kernels if there is none."""
    shutil.rmtree(work)
    with contextlib.suppress(OSError):
        work.parent.rmdir()


def _add_modules(modules: Path, source: Path) -> None:
    """Make the queues of Sojourn a part of the kernel."""
    place = source / _MODULES
    shutil.copytree(modules, place, dirs_exist_ok=True)
    rules = (place / "Kbuild").read_text(encoding="utf-8")
    (place / "Kbuild").write_text(rules.replace("obj-m", "obj-y"), encoding="utf-8")
    with (place.parent / "Makefile").open("a", encoding="utf-8") as rules_of_all:
        rules_of_all.write(f"obj-$({_WITH_MODULES}) += {place.name}/\n")


def _version(release: str) -> str:
    """Return the version by which a kernel is called.

    Examples
    --------
    >>> _version("6.12.117"), _version("7.0.0-rc3")
    ('6.12', '7.0')
    """
    found = re.match(r"\d+\.\d+", release)
    return found[0] if found else release


def _install(file: Path, place: Path) -> None:
    # A running program cannot be written to, but replaced.
    place.unlink(missing_ok=True)
    shutil.copy2(file, place)


def _libraries(program: str) -> Iterator[Path]:
    """Name the libraries of a program, and its loader."""
    listed = subprocess.run(  # noqa: S603 - a program of the system
        [_which("ldd") or "ldd", program], capture_output=True, text=True, check=False
    )
    for line in listed.stdout.splitlines():
        if found := re.search(r"(/\S+) \(0x", line):
            yield Path(found[1])


def _archive(files: dict[Path, Path]) -> Iterator[bytes]:
    """Yield a file system in the format newc of cpio: the files, and their directories."""
    parents = {parent for file in files for parent in file.parents if parent != Path()}
    folders = parents | {Path(name) for name in ("dev", "host", "proc", "run", "sys")}
    for number, folder in enumerate(sorted(folders), start=1):
        yield _entry(str(folder), number, stat.S_IFDIR | 0o755)
    devices = {"dev/console": (5, 1), "dev/null": (1, 3)}
    number = len(folders)
    for name, device in devices.items():
        number += 1
        yield _entry(name, number, stat.S_IFCHR | 0o600, device=device)
    for file, place in sorted(files.items()):
        number += 1
        yield _entry(str(file), number, stat.S_IFREG | 0o755, place.read_bytes())
    yield _entry("TRAILER!!!", 0, 0)


def _entry(
    name: str, number: int, mode: int, data: bytes = b"", device: tuple[int, int] = (0, 0)
) -> bytes:
    """Write one entry; all have owner 0 and time 0, so that the archive depends on its files."""
    path = name.encode() + b"\0"
    fields = (number, mode, 0, 0, 1, 0, len(data), 0, 0, *device, len(path), 0)
    head = b"070701" + b"".join(b"%08X" % field for field in fields) + path
    return _padded(head) + _padded(data)


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % 4)
