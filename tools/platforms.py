"""Run the golden corpus on the platforms that this machine can stand in for.

The records of a scenario are the same to the byte on all of them: ``make golden-platforms``. The
wheel for arm64 runs in Debian's Python for arm64, under qemu; the program without Python runs with
musl (arm64 under qemu) and as a program of Windows under Wine. ``tools/wheels.py`` builds them
first. ``python tools/platforms.py windows --quick`` tries one of them, with a part of the corpus.
"""

import argparse
import importlib.metadata
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WHEELS = ROOT / "target/wheels"
FOLDER = ROOT / "target/platforms"
GOLDEN = ROOT / "tests/golden/golden.py"
QEMU, WINE, MINGW = "qemu-aarch64-static", "/usr/lib/wine/wine64", "x86_64-w64-mingw32-gcc"
TREE, PACKAGES = FOLDER / "tree", FOLDER / "packages"
# Debian 12 has Python 3.11.
SOURCE = "deb http://deb.debian.org/debian bookworm main\n"
# Python and the libraries of its modules.
DEBIAN = (
    *(
        "libc6",
        "libgcc-s1",
        "libstdc++6",
        "zlib1g",
        "libexpat1",
        "libffi8",
        "libssl3",
        "libbz2-1.0",
    ),
    *("liblzma5", "libsqlite3-0", "libuuid1", "libcrypt1", "libtinfo6", "libncursesw6"),
    *("libpython3.11-minimal", "libpython3.11-stdlib", "python3.11-minimal"),
)
# What wheels of other projects are for; Debian 12 has glibc 2.36.
TAGS = ("manylinux_2_28_aarch64", "manylinux_2_17_aarch64", "manylinux2014_aarch64", "any")


@dataclass(frozen=True)
class Platform:
    """Where the corpus is run."""

    # The file in target/wheels, and how tools/wheels.py calls it.
    file: str
    built_as: str
    # Programs that have to be there, with their Debian packages.
    needs: dict[str, str]
    # Returns the command that runs the corpus with that file.
    command: Callable[[Path], list[str]]

    def missing(self) -> str:
        """Return what has to be there first; empty if nothing is missing."""
        for program, package in self.needs.items():
            if shutil.which(program) is None:
                return f"no {program}: apt-get install {package}"
        if not list(WHEELS.glob(self.file)):
            return f"no target/wheels/{self.file}: python tools/wheels.py {self.built_as}"
        return ""


def run(*words: str | Path, cwd: Path = ROOT) -> None:
    """Run a command, which prints only its errors."""
    subprocess.run(words, cwd=cwd, check=True, stdout=subprocess.DEVNULL)


def with_wheel(wheel: Path) -> list[str]:
    """Run the corpus in Python for arm64."""
    if not (TREE / "usr/bin/python3.11").exists():
        unpack_tree()
    installed = PACKAGES / wheel.name
    if not installed.exists() or installed.stat().st_mtime < wheel.stat().st_mtime:
        install(wheel)
        installed.touch()
    return [QEMU, "-L", str(TREE), str(TREE / "usr/bin/python3.11"), str(GOLDEN)]


def unpack_tree() -> None:
    """Unpack Debian's Python, with an apt of its own that knows only arm64."""
    apt, packages = FOLDER / "apt", FOLDER / "apt/packages"
    for folder in ("lists/partial", "cache/archives/partial", "packages"):
        (apt / folder).mkdir(parents=True, exist_ok=True)
    (apt / "sources.list").write_text(SOURCE, encoding="utf-8")
    (apt / "status").touch()
    settings = {
        "Dir::Etc::sourcelist": apt / "sources.list",
        "Dir::Etc::sourceparts": "-",
        "Dir::State::lists": apt / "lists",
        "Dir::State::status": apt / "status",
        "Dir::Cache": apt / "cache",
        "APT::Architecture": "arm64",
        "APT::Architectures": "arm64",
        # The folder may be out of reach of apt's own user.
        "APT::Sandbox::User": "root",
    }
    words = ["apt-get", "--quiet"]
    for name, value in settings.items():
        words += ["--option", f"{name}={value}"]
    run(*words, "update")
    run(*words, "download", *DEBIAN, cwd=packages)
    for package in sorted(packages.glob("*.deb")):
        run("dpkg", "--extract", package, TREE)


def install(wheel: Path) -> None:
    """Install the wheel, and of the packages that it needs the versions that are tested here."""
    words = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    words += ["--no-warn-conflicts", "--only-binary", ":all:", "--python-version", "3.11"]
    words += ["--target", str(PACKAGES)]
    for tag in TAGS:
        words += ["--platform", tag]
    names = ("numpy", "polars", "matplotlib")
    shutil.rmtree(PACKAGES, ignore_errors=True)
    run(*words, str(wheel), *(f"{name}=={importlib.metadata.version(name)}" for name in names))


def with_program(*runner: str) -> Callable[[Path], list[str]]:
    """Run the corpus in Python for this machine, and its scenarios with a program for another."""

    def command(program: Path) -> list[str]:
        return [sys.executable, str(GOLDEN), "--program", shlex.join([*runner, str(program)])]

    return command


def with_wine(program: Path) -> list[str]:
    """Give the program the library that Wine 8 lacks, in the folder where it looks first."""
    folder = FOLDER / "windows"
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(program, folder)
    library = folder / "bcryptprimitives.dll"
    source = ROOT / "tools/wine/bcryptprimitives.c"
    run(MINGW, "-shared", "-o", library, source, "-ladvapi32")
    return with_program(WINE)(folder / program.name)


PLATFORMS = {
    "arm64": Platform(
        "sojourn-*-manylinux*_aarch64*.whl",
        "linux-aarch64",
        {QEMU: "qemu-user-static", "apt-get": "apt", "dpkg": "dpkg"},
        with_wheel,
    ),
    "musl-x86_64": Platform(
        "sojourn-x86_64-unknown-linux-musl", "program-x86_64", {}, with_program()
    ),
    "musl-arm64": Platform(
        "sojourn-aarch64-unknown-linux-musl",
        "program-aarch64",
        {QEMU: "qemu-user-static"},
        with_program(QEMU),
    ),
    "windows": Platform(
        "sojourn-x86_64-pc-windows-gnu.exe",
        "program-windows",
        {WINE: "wine64", MINGW: "gcc-mingw-w64-x86-64"},
        with_wine,
    ),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the corpus on each platform.

    Returns
    -------
    int
        The exit status: 1 if a record differs, 3 if a program or a file is missing.
    """
    parser = argparse.ArgumentParser(description="Run the golden corpus on other platforms.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(PLATFORMS))
    parser.add_argument("--quick", action="store_true", help="a part of the corpus")
    given = parser.parse_args(arguments)
    names: list[str] = given.names or list(PLATFORMS)
    if unknown := [name for name in names if name not in PLATFORMS]:
        parser.error(f"no platform {unknown[0]!r}; expected {', '.join(PLATFORMS)}")
    absent = [f"{name}: {why}" for name in names if (why := PLATFORMS[name].missing())]
    if absent:
        print("\n".join(absent), file=sys.stderr)
        return 3
    quiet = os.environ | {
        "PYTHONPATH": str(PACKAGES),
        "PYTHONDONTWRITEBYTECODE": "1",
        "WINEPREFIX": str(FOLDER / "wine"),
        "WINEDEBUG": "-all",
    }
    differ = False
    for name in names:
        platform = PLATFORMS[name]
        (file, *_) = sorted(WHEELS.glob(platform.file))
        words = [*platform.command(file), *(["--quick"] if given.quick else [])]
        variables = quiet if name == "arm64" else quiet | {"PYTHONPATH": ""}
        print(f"{name}: ", end="", flush=True)
        differ |= subprocess.run(words, check=False, env=variables).returncode != 0
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
