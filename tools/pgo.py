"""Build a wheel or the benchmark with profile-guided optimisation (PGO).

``python tools/pgo.py wheel`` writes a wheel into ``target/wheels``, and ``bench`` builds
``sojourn-bench`` and prints its path. ``make setup`` builds without a profile.

A build with a profile takes three steps: build with counters, run the scenarios of
``benches/training.toml`` and others (``TRAINING``), and build again with what was counted.
``bench`` keeps the profile in ``target/pgo`` and uses it again until the compiler, the training or
the sources change; ``wheel`` always counts again. Merging the counters takes ``llvm-profdata`` of
the same version of LLVM as the compiler: ``rustup component add llvm-tools``. Without it ``bench``
builds without a profile and says so, and ``wheel`` fails.
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "target/pgo"
BUILD = FOLDER / "build"
# What the extension runs while it counts, and what the benchmark runs, with seconds of each.
# All queues, links and transports: code that never runs while it is counted is optimised for size.
TRAINING = (
    "benches/training.toml",
    *sorted(f"{file.relative_to(ROOT)}" for file in ROOT.glob("tests/golden/scenarios/*.toml")),
)
BENCH_TRAINING = {
    "S1": 10,
    "S2": 40,
    "S3": 3,
    "S4": 1,
    "S5": 10,
    "quic": 5,
    "bbr": 5,
    "prague": 5,
    "wifi": 5,
    "series": 1,
    "thousand": 1,
    "many_codel": 1,
    "many_fq_codel": 1,
}
# The queues of S6, and packets through each of them.
QUEUES = tuple(json.loads((ROOT / "benches/measured.json").read_text("utf-8"))["queues"]["values"])
QUEUE_PACKETS = 50_000


class UnavailableError(Exception):
    """Nothing here can merge counters."""


def compiler() -> dict[str, str]:
    """Return the fields of ``rustc -vV``, such as ``release``, ``host`` and ``LLVM version``."""
    command = ["rustc", "-vV"]
    printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return dict(line.split(": ", 1) for line in printed.splitlines() if ": " in line)


def tool(name: str) -> Path:
    """Return where a program of ``rustup component add llvm-tools`` is, or would be."""
    command = ["rustc", "--print", "target-libdir"]
    printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return Path(printed.strip()).parent / "bin" / name


def profdata(of: dict[str, str]) -> Path:
    """Return the program that merges counters.

    Parameters
    ----------
    of
        The compiler, from :func:`compiler`.

    Raises
    ------
    UnavailableError
        It is not installed.
    """
    ours = tool("llvm-profdata")
    if ours.exists():
        return ours
    # Compilers of distributions use the LLVM of the distribution.
    major = of["LLVM version"].split(".")[0]
    for name in (f"llvm-profdata-{major}", "llvm-profdata"):
        found = shutil.which(name)
        if found is None:
            continue
        # Proxies of rustup print errors.
        ask = [found, "--version"]
        printed = subprocess.run(ask, check=False, capture_output=True).stdout
        version = re.search(rb"LLVM version (\d+)", printed)
        if version and version[1].decode() == major:
            return Path(found)
    message = (
        f"no llvm-profdata of LLVM {major}; expected: rustup component add llvm-tools, or the "
        f"package llvm-{major} of the distribution"
    )
    raise UnavailableError(message)


def key(product: str, of: dict[str, str]) -> str:
    """Return a digest of what makes a profile stale: the compiler and the training.

    The benchmark, whose figures are published, also needs a profile of the same sources: a function
    that has changed since it was counted is compiled without its counts.
    """
    digest = hashlib.sha256(json.dumps([of, BENCH_TRAINING, QUEUES, QUEUE_PACKETS]).encode())
    read = [ROOT / name for name in TRAINING]
    if product == "bench":
        read += sorted((ROOT / "crates").rglob("*.rs")) + sorted((ROOT / "benches").rglob("*.rs"))
    for path in read:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def environment(flags: str) -> dict[str, str]:
    """Return the environment of a build with flags for the compiler."""
    if not flags:
        return dict(os.environ)
    given = os.environ.get("RUSTFLAGS", "")
    return os.environ | {"RUSTFLAGS": f"{given} {flags}".strip(), "CARGO_TARGET_DIR": f"{BUILD}"}


def using(profile: Path) -> str:
    """Return the flags that make the compiler use a profile."""
    # The linker's plug-in warns of functions that have changed since they were counted.
    return f"-Cprofile-use={profile} -Cllvm-args=-no-pgo-warn-mismatch"


def target(flags: str, host: str) -> list[str]:
    """Return the options that keep flags from procedural macros and build scripts."""
    return ["--target", host] if flags else []


def maturin(*options: str, flags: str, host: str) -> None:
    """Build a wheel."""
    words = [sys.executable, "-m", "maturin", "build", "--release", "--quiet"]
    subprocess.run(
        [*words, *target(flags, host), *options],
        cwd=ROOT,
        check=True,
        stdout=subprocess.DEVNULL,
        env=environment(flags) | {"VIRTUAL_ENV": sys.prefix},
    )


def benchmark(flags: str, host: str) -> Path:
    """Build the benchmark and return its path."""
    words = ["cargo", "build", "--release", "--quiet", "--package", "sojourn-bench", "--bins"]
    words += target(flags, host)
    subprocess.run(words, cwd=ROOT, check=True, env=environment(flags))
    folder = BUILD / host if flags else ROOT / "target"
    return folder / "release/sojourn-bench"


def train_extension(raw: Path, host: str) -> None:
    """Build the extension with counters and run the training scenarios."""
    folder = FOLDER / "counting"
    shutil.rmtree(folder, ignore_errors=True)
    maturin("--out", str(folder), flags=f"-Cprofile-generate={raw}", host=host)
    for wheel in folder.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder)
    program = (
        "import sys, sojourn\n"
        f"assert sojourn.__file__.startswith({str(folder)!r}), sojourn.__file__\n"
        "for name in sys.argv[1:]: sojourn.run(sojourn.Scenario.from_file(name), jobs=1)\n"
    )
    subprocess.run(
        [sys.executable, "-c", program, *(str(ROOT / name) for name in TRAINING)],
        cwd=folder,
        check=True,
        env={**os.environ, "PYTHONPATH": str(folder)},
    )
    shutil.rmtree(folder)


def train_benchmark(raw: Path, host: str) -> None:
    """Build the benchmark with counters and run its scenarios."""
    program = benchmark(f"-Cprofile-generate={raw}", host)
    for name, seconds in BENCH_TRAINING.items():
        subprocess.run([program, "--profile", name, "--seconds", str(seconds)], check=True)
    for kind in QUEUES:
        words = ["--one", f"S6:{kind}", "--packets", str(QUEUE_PACKETS)]
        subprocess.run([program, *words], check=True, stdout=subprocess.DEVNULL)


def profile(product: str, of: dict[str, str], *, fresh: bool) -> Path:
    """Return the profile of a product, which is counted first if there is none.

    Parameters
    ----------
    product
        ``"extension"`` or ``"bench"``. Each has its own profile, because the names of functions
        depend on the features with which a crate is built.
    of
        The compiler, from :func:`compiler`.
    fresh
        Count even if there is a profile.

    Raises
    ------
    UnavailableError
        The counters cannot be merged.
    """
    merge = profdata(of)
    file = FOLDER / f"{product}-{key(product, of)}.profdata"
    if file.exists() and not fresh:
        return file
    raw = FOLDER / f"{product}-raw"
    shutil.rmtree(raw, ignore_errors=True)
    raw.mkdir(parents=True)
    train = train_extension if product == "extension" else train_benchmark
    train(raw, of["host"])
    partial = file.with_suffix(".partial")
    subprocess.run([merge, "merge", "-o", partial, raw], check=True)
    partial.rename(file)
    shutil.rmtree(raw)
    return file


def main() -> int:
    """Build.

    Returns
    -------
    int
        The exit status: 3 if a wheel cannot have a profile.
    """
    parser = argparse.ArgumentParser(description="Build with profile-guided optimisation.")
    parser.add_argument("product", choices=("wheel", "bench"))
    product: str = parser.parse_args().product
    of = compiler()
    flags = ""
    try:
        found = profile(
            "bench" if product == "bench" else "extension", of, fresh=product == "wheel"
        )
        flags = using(found)
    except UnavailableError as error:
        if product == "wheel":
            print(f"a wheel needs a profile: {error}", file=sys.stderr)
            return 3
        print(
            f"building without a profile (about 15 % more instructions): {error}", file=sys.stderr
        )
    if product == "bench":
        print(benchmark(flags, of["host"]))
    else:
        maturin("--out", str(ROOT / "target/wheels"), flags=flags, host=of["host"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
