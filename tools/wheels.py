"""Build what is published into ``target/wheels``: ``make wheels``.

These are the wheels of all platforms, the sdist, a file with all packages for Python on Linux, and
the program without Python.

One machine with Linux builds all of them: zig is the linker of Linux and macOS, and MinGW-w64 that
of Windows. The wheel of the machine itself is built with a profile (``tools/pgo.py``).
``python tools/wheels.py macos-arm64 sdist`` builds some of them, and ``--check FILE...`` only
checks finished files: their size, the libraries that they need, and that they hold no file under
the GPL.
"""

import argparse
import importlib.metadata
import importlib.resources
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pgo

ROOT = pgo.ROOT
FOLDER = ROOT / "target/wheels"
# A wheel has at most this many bytes.
MOST_BYTES = 12_000_000
# The library that macOS has and zig has not; the linker only needs the names of its functions.
FRAMEWORKS = ROOT / "tools/macos"
GPL = re.compile(rb"SPDX-License-Identifier:\s*[\"']?\(?GPL|GNU GENERAL PUBLIC LICENSE")


@dataclass(frozen=True)
class Platform:
    """What a wheel is built for."""

    target: str
    # The libraries that it may need beside those of its own.
    needs: re.Pattern[str]
    # The oldest C library that it runs with, as in the name of the wheel.
    libc: str = ""
    flags: str = ""

    def options(self) -> list[str]:
        """Return the options of maturin."""
        found = ["--target", self.target, "--out", str(FOLDER)]
        found += [] if is_windows(self.target) else ["--zig"]
        return found + (["--compatibility", self.libc] if self.libc else [])


_GLIBC = re.compile(r"lib(c|m|pthread|dl|rt|util|gcc_s)\.so\.\d|ld-linux-[\w-]+\.so\.\d")
_MUSL = re.compile(r"libc\.(musl-\w+\.)?so(\.1)?|libgcc_s\.so\.1")
_MACOS = re.compile(
    r"/usr/lib/lib(System\.B|iconv\.2|charset\.1)\.dylib|/System/.*/CoreFoundation|@rpath/sojourn.*"
)
_WINDOWS = re.compile(
    r"python3\.dll|api-ms-win-\S+|(kernel32|ntdll|ws2_32|userenv|bcrypt\w*|msvcrt|advapi32|ole32)\.dll",
    re.IGNORECASE,
)
_FRAMEWORK = f"-Clink-arg=-F{FRAMEWORKS}"
PLATFORMS = {
    "linux-x86_64": Platform("x86_64-unknown-linux-gnu", _GLIBC, "manylinux_2_17"),
    "linux-aarch64": Platform("aarch64-unknown-linux-gnu", _GLIBC, "manylinux_2_17"),
    "musl-x86_64": Platform("x86_64-unknown-linux-musl", _MUSL, "musllinux_1_2"),
    "musl-aarch64": Platform("aarch64-unknown-linux-musl", _MUSL, "musllinux_1_2"),
    "macos-arm64": Platform("aarch64-apple-darwin", _MACOS, flags=_FRAMEWORK),
    "macos-x86_64": Platform("x86_64-apple-darwin", _MACOS, flags=_FRAMEWORK),
    "windows-x86_64": Platform("x86_64-pc-windows-gnu", _WINDOWS),
}
# The program without Python, as one file: static for Linux. That for Windows is for tests.
PROGRAMS = {
    "program-x86_64": "x86_64-unknown-linux-musl",
    "program-aarch64": "aarch64-unknown-linux-musl",
    "program-windows": "x86_64-pc-windows-gnu",
}
# Sojourn and all packages that it needs in one file, for Python 3.11 on Linux for x86-64.
PEX = "sojourn-linux-x86_64.pex"
NAMES = [*PLATFORMS, *PROGRAMS, "sdist", "pex"]
# The ends of the names of wheels.
_TAGS = {
    "manylinux_2_17_x86_64": "linux-x86_64",
    "manylinux_2_17_aarch64": "linux-aarch64",
    "musllinux_1_2_x86_64": "musl-x86_64",
    "musllinux_1_2_aarch64": "musl-aarch64",
    "macosx_11_0_arm64": "macos-arm64",
    "macosx_10_12_x86_64": "macos-x86_64",
    "win_amd64": "windows-x86_64",
}


def is_windows(target: str) -> bool:
    """Whether MinGW-w64 links."""
    return "windows" in target


def program_name(target: str) -> str:
    """Return the name of the program in the folder."""
    return f"sojourn-{target}{'.exe' if is_windows(target) else ''}"


def missing(names: Sequence[str]) -> list[str]:
    """Return what has to be installed first, as commands."""
    found = []
    for package in ("ziglang", "cargo-zigbuild", *(["pex"] if "pex" in names else [])):
        try:
            importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found.append(f"{sys.executable} -m pip install {package}")
    if not Path(pgo.tool("llvm-readobj")).exists():
        found.append("rustup component add llvm-tools")
    if shutil.which("x86_64-w64-mingw32-gcc") is None:
        found.append("apt-get install gcc-mingw-w64-x86-64")
    return found


def build(name: str) -> None:
    """Build the wheel of a platform, the program of one, or the sdist."""
    of = pgo.compiler()
    if name in PROGRAMS:
        build_program(PROGRAMS[name])
        return
    if name == "pex":
        build_pex()
        return
    if name == "sdist":
        words = [sys.executable, "-m", "maturin", "sdist", "--out", str(FOLDER)]
        subprocess.run(words, cwd=ROOT, check=True)
        return
    platform = PLATFORMS[name]
    flags = platform.flags
    if platform.target == of["host"]:
        try:
            flags = pgo.using(pgo.profile("extension", of, fresh=True))
        except pgo.UnavailableError as error:
            print(f"{name} without a profile: {error}", file=sys.stderr)
    words = ["rustup", "target", "add", platform.target]
    subprocess.run(words, check=True, stderr=subprocess.DEVNULL)
    words = [sys.executable, "-m", "maturin", "build", "--release", "--quiet"]
    subprocess.run(
        [*words, *platform.options()],
        cwd=ROOT,
        check=True,
        stdout=subprocess.DEVNULL,
        env=pgo.environment(flags) | {"VIRTUAL_ENV": sys.prefix, "PATH": search_path()},
    )


def search_path() -> str:
    """Return where programs are looked for: first where pip installs zig."""
    return os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])


def build_program(target: str) -> None:
    """Build the program without Python for a target."""
    words = ["rustup", "target", "add", target]
    subprocess.run(words, check=True, stderr=subprocess.DEVNULL)
    words = ["cargo", "build"] if is_windows(target) else ["cargo-zigbuild", "zigbuild"]
    words += ["--release", "--quiet", "--package", "sojourn-program", "--target", target]
    found = os.environ | {"PATH": search_path(), "RUSTFLAGS": "-Cstrip=symbols"}
    subprocess.run(words, cwd=ROOT, check=True, env=found)
    FOLDER.mkdir(parents=True, exist_ok=True)
    ending = ".exe" if is_windows(target) else ""
    built = ROOT / "target" / target / f"release/sojourn{ending}"
    shutil.copy(built, FOLDER / program_name(target))


def build_pex() -> None:
    """Pack the wheel of this platform with the packages that it needs."""
    (wheel,) = FOLDER.glob("sojourn-*-manylinux*_x86_64*.whl")
    words = [sys.executable, "-m", "pex", str(wheel), "--console-script", "sojourn"]
    # Workers are started as programs of Python, which need an environment to import from.
    words += ["--venv", "--python", "python3.11", "--output-file", str(FOLDER / PEX)]
    subprocess.run(words, cwd=ROOT, check=True)


def contents(file: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the names and bytes of the files of a wheel or an sdist."""
    if file.suffix == ".whl":
        with zipfile.ZipFile(file) as archive:
            for name in archive.namelist():
                yield name, archive.read(name)
        return
    with tarfile.open(file) as archive:
        for member in archive:
            opened = archive.extractfile(member)
            if opened is not None:
                yield member.name, opened.read()


def needed_libraries(library: bytes) -> list[str]:
    """Return the libraries that the loader of the platform looks for."""
    with tempfile.NamedTemporaryFile() as copy:
        copy.write(library)
        copy.flush()
        words = [pgo.tool("llvm-readobj"), "--needed-libs", "--coff-imports", copy.name]
        printed = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout
    listed = re.search(r"NeededLibraries \[\n(.*?)^\]", printed, re.DOTALL | re.MULTILINE)
    named = re.findall(r"^(?:Delay)?Import \{\n\s+Name: (.+)$", printed, re.MULTILINE)
    return named + [line.strip() for line in (listed[1] if listed else "").splitlines()]


def unknown_symbols(library: bytes) -> list[str]:
    """Return the symbols of a library for macOS that neither Python nor its libraries have.

    Python's are looked up when the library is loaded, so the linker reports none that is missing.
    """
    zig = importlib.resources.files("ziglang") / "lib/libc/darwin/libSystem.tbd"
    known = {*re.findall(r"[\w$]+", zig.read_text("utf-8"))}
    for names in FRAMEWORKS.rglob("*.tbd"):
        known.update(re.findall(r"[\w$]+", names.read_text("utf-8")))
    with tempfile.NamedTemporaryFile() as copy:
        copy.write(library)
        copy.flush()
        words = [pgo.tool("llvm-nm"), "--undefined-only", "--format=just-symbols", copy.name]
        printed = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout
    needed = printed.split()
    return [name for name in needed if not name.startswith(("_Py", "__Py")) and name not in known]


def faults(file: Path) -> list[str]:
    """Return what is wrong with a finished file."""
    if (target := {program_name(t): t for t in PROGRAMS.values()}.get(file.name)) is not None:
        needed = needed_libraries(file.read_bytes())
        allowed = _WINDOWS if is_windows(target) else re.compile("none")
        return [f"{file.name}: needs {one}" for one in needed if not allowed.fullmatch(one)]
    if file.name == PEX:
        return []
    found = []
    if file.suffix == ".whl" and file.stat().st_size > MOST_BYTES:
        found.append(f"{file.stat().st_size} bytes; expected at most {MOST_BYTES}")
    names = dict(contents(file))
    found += [f"{name} is under the GPL" for name, text in names.items() if GPL.search(text)]
    if file.suffix == ".whl":
        libraries = [name for name in names if re.search(r"sojourn/_core[^/]*\.(so|pyd)$", name)]
        tags = file.stem.rpartition("-abi3-")[2].split(".")
        known = [_TAGS[tag] for tag in tags if tag in _TAGS]
        if len(libraries) != 1 or not known:
            found.append(f"{libraries} for {tags}; expected one library, for one of {list(_TAGS)}")
        else:
            library = names[libraries[0]]
            allowed = PLATFORMS[known[0]].needs
            found += [
                f"needs {needed}"
                for needed in needed_libraries(library)
                if not allowed.fullmatch(needed)
            ]
            if known[0].startswith("macos"):
                found += [f"needs the symbol {name}" for name in unknown_symbols(library)]
    return [f"{file.name}: {fault}" for fault in found]


def main(arguments: Sequence[str] | None = None) -> int:
    """Build and check.

    Returns
    -------
    int
        The exit status: 1 if a file is not as it should be, 3 if a tool is missing.
    """
    parser = argparse.ArgumentParser(description="Build all wheels, the sdist and the program.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(NAMES))
    parser.add_argument(
        "--check", nargs="+", type=Path, metavar="FILE", help="check, build nothing"
    )
    given = parser.parse_args(arguments)
    names: list[str] = given.names or NAMES
    if unknown := [name for name in names if name not in NAMES]:
        parser.error(f"no platform {unknown[0]!r}; expected {', '.join(NAMES)}")
    if given.check is None:
        if wanted := missing(names):
            print("make wheels needs: " + "; ".join(wanted), file=sys.stderr)
            return 3
        for name in names:
            print(f"building {name}", flush=True)
            build(name)
    files: list[Path] = given.check or sorted(FOLDER.glob("sojourn-*"))
    wrong = []
    for file in files:
        wrong += faults(file)
        print(f"{file.stat().st_size / 1e6:5.1f} MB  {file.name}")
    print("\n".join(wrong), end="\n" if wrong else "", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
