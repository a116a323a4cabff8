"""Bundles: the output directory of a study in one archive, with checksums and a repeat script."""

import gzip
import hashlib
import importlib.metadata
import io
import json
import os
import platform
import re
import shlex
import stat
import tarfile
import zipfile
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from sojourn import _core, files
from sojourn.arguments import OutputError
from sojourn.errors import invalid_file
from sojourn.result import Result, derived_files

SUMS = "SHA256SUMS"
ENVIRONMENT = "environment.json"
REPEAT = "repeat.sh"
DOCKERFILE = "Dockerfile"
README = "README.txt"
# Directories of the archive: scenarios in canonical form, and the files of the output directory.
SCENARIOS = "scenarios"
OUTPUT = "output"
# Directory beside them that the script writes.
REPEATED = "repeated"
# Files that Sojourn keeps in a directory for itself, such as the list of reports.
_INTERNAL = ".sojourn-"
_BLOCK = 1 << 20
# The first time that a zip archive can state; that of every file, so that equal files give equal
# archives.
_ZIP_EPOCH = (1980, 1, 1, 0, 0, 0)
_MODE = 0o644
_EXECUTABLE = 0o755
# Compares all tables; the paths of those that are not repeated are inserted.
_COMPARE = f"""
# Compare the tables.
find {OUTPUT} -name '*.parquet'EXCLUDED | sort | {{
  equal=0
  other=0
  while IFS= read -r file; do
    if cmp -s "$file" "{REPEATED}/${{file#{OUTPUT}/}}"; then
      equal=$((equal + 1))
    else
      other=$((other + 1))
      echo "not equal: {REPEATED}/${{file#{OUTPUT}/}}"
    fi
  done
  echo "$equal of $((equal + other)) tables are equal to those in {OUTPUT}"
  test "$other" -eq 0
}}
"""
_ABOUT = f"""\
{OUTPUT}/           the output directory of the study
{SCENARIOS}/        each scenario in canonical form, with all defaults and the seed
{ENVIRONMENT}  software and machine that wrote this archive; manifest.json of each result
                  names the build that produced it
{REPEAT}         the commands that repeat the results
{DOCKERFILE}        an image with the same versions that repeats them
{SUMS}        SHA-256 of every other file

Check the files:      sha256sum --check {SUMS}
Repeat the results:   sh {REPEAT}
In a container:       docker build --tag study . && docker run --rm study
View a result:        sojourn report {OUTPUT}/DIR, for a directory with manifest.json

{REPEAT} writes to the directory {REPEATED}, compares each Parquet table with that in {OUTPUT}, and
says whether they are equal. It replaces what an earlier execution wrote to {REPEATED}.
The same version of Sojourn, with the same versions of its dependencies, gives the same tables for
the same scenario.
"""


@dataclass(frozen=True, slots=True)
class _Scenario:
    """What a bundle keeps of a result."""

    path: str
    file: str
    toml: str | None
    facts: Mapping[str, Any]


def bundle(
    folder: str | Path,
    file: str | Path,
    *,
    only: Collection[Path] | None = None,
    command: str | None = None,
    force: bool = False,
) -> list[str]:
    """Write the output directory of a study to an archive.

    The archive has one directory, of the name of `folder`: the files of `folder`, each scenario in
    canonical form, the environment, a script that repeats the results, and SHA-256 sums. The same
    files and environment give the same bytes.
    """
    source, target = Path(os.path.realpath(folder)), Path(os.path.realpath(file))
    write = _writer(file)
    if not source.is_dir():
        raise invalid_file(folder, "not a directory; expected the output directory of a study")
    check(folder, file, force=force)
    name = source.name or "study"
    chosen = [source] if only is None else [Path(os.path.realpath(path)) for path in only]
    kept = {
        f"{OUTPUT}/{path.relative_to(source).as_posix()}": path
        for path in _regular(source)
        if any(path.is_relative_to(one) for one in chosen)
    }
    scenarios = [_scenario(source, *one) for one in _results(kept, source)]
    if not scenarios:
        raise invalid_file(folder, "no results; expected the output directory of a study")
    entries = {
        **kept,
        **{one.file: one.toml.encode() for one in scenarios if one.toml is not None},
        README: f"{name}: results of Sojourn {_core.version()}\n\n{_ABOUT}".encode(),
        ENVIRONMENT: _json(_environment(scenarios)),
        REPEAT: _script(scenarios, command).encode(),
        DOCKERFILE: _recipe(scenarios).encode(),
    }
    digests = {entry: _digest(content) for entry, content in sorted(entries.items())}
    sums = "".join(f"{digest}  {entry}\n" for entry, digest in digests.items())
    complete = dict(sorted({**entries, SUMS: sums.encode()}.items()))
    digests[SUMS] = _digest(complete[SUMS])
    try:
        with files.replacing(target) as stream, write(stream, name) as add:
            for entry, content in complete.items():
                _add(add, entry, content, digests[entry])
    except OSError as error:
        message = f"cannot write {file}: {error.strerror or error}"
        raise _core.ResultError(message) from None
    return list(complete)


def check(folder: str | Path, file: str | Path, *, force: bool = False) -> None:
    """Check that a directory, which need not exist yet, can be bundled into a file."""
    source, target = Path(os.path.realpath(folder)), Path(os.path.realpath(file))
    _writer(file)
    if target.is_relative_to(source):
        message = f"cannot write {file}: it is inside {folder}; expected a path outside"
        raise _core.ResultError(message)
    if target.exists() and not force:
        message = "cannot write {file}: it exists; {force} replaces it"
        raise OutputError(message, file=file)
    if not target.parent.is_dir():
        message = f"cannot write {file}: {target.parent} is not a directory"
        raise _core.ResultError(message)


# A file of the output directory, or the content of a file that the bundle adds.
_Content = Path | bytes


def _regular(folder: Path) -> Iterator[Path]:
    """Yield the files of a directory; refuse anything but regular files and directories."""
    for entry in sorted(os.scandir(folder), key=lambda one: one.name):
        path = Path(entry.path)
        if not entry.name.isprintable() or "\\" in entry.name:
            raise invalid_file(path, "expected a name of printable characters without backslashes")
        if entry.name.startswith(_INTERNAL):
            continue
        mode = entry.stat(follow_symlinks=False).st_mode
        if stat.S_ISDIR(mode):
            yield from _regular(path)
        elif stat.S_ISREG(mode):
            yield path
        else:
            kind = "symbolic link" if stat.S_ISLNK(mode) else "special file"
            raise invalid_file(path, f"is a {kind}; a bundle contains only regular files")


def _results(kept: Mapping[str, Path], source: Path) -> list[tuple[str, str]]:
    """List the directories with a result, and the names of their scenarios in the archive."""
    manifests = (path for path in kept.values() if path.name == derived_files.MANIFEST)
    found = (path.parent.relative_to(source).as_posix() for path in manifests)
    paths = sorted("" if path == "." else path for path in found)
    # The results of a study are in a directory of that name.
    below = f"{SCENARIOS}/"
    start = below if all(path.startswith(below) for path in paths) else ""
    names = (path.removeprefix(start) or "scenario" for path in paths)
    return [(path, f"{SCENARIOS}/{name}.toml") for path, name in zip(paths, names, strict=True)]


def _scenario(source: Path, path: str, file: str) -> _Scenario:
    """Load a result, which checks its digests, and keep its scenario and provenance."""
    result = Result.load(source / path)
    checked = result.scenario.checked
    facts = {
        "directory": f"{OUTPUT}/{path}".rstrip("/"),
        "scenario": checked.name,
        "scenario_hash": checked.hash,
        "seed": result.scenario.seed,
        "sojourn": result.build,
        "finished_runs": result.finished,
        "total_runs": result.total,
    }
    return _Scenario(
        path, file, None if checked.external_queues else result.scenario.to_toml(), facts
    )


def _environment(scenarios: list[_Scenario]) -> dict[str, Any]:
    """Describe the software and the machine, without names of users, hosts and directories."""
    return {
        "sojourn": {"version": _core.version(), "commit": _core.commit()},
        "python": {
            "implementation": platform.python_implementation(),
            "version": platform.python_version(),
        },
        "platform": {
            "system": platform.system(),
            "release": platform.release(),
            "machine": platform.machine(),
            "libc": " ".join(platform.libc_ver()).strip(),
        },
        "cpu": {"model": _cpu_model(), "count": os.cpu_count()},
        "dependencies": _dependencies(),
        "results": [one.facts for one in scenarios],
    }


def _cpu_model() -> str | None:
    try:
        text = files.head("/proc/cpuinfo", _BLOCK).decode(errors="replace")
    except OSError:
        return platform.processor() or None
    found = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return found[1].strip() if found else None


def _dependencies() -> dict[str, str]:
    """Return the versions of the packages that Sojourn requires."""
    try:
        required = importlib.metadata.requires("sojourn") or []
    except importlib.metadata.PackageNotFoundError:
        return {}
    # Those of an extra are not needed to run Sojourn.
    names = (re.match(r"[\w.-]+", text) for text in required if "extra ==" not in text)
    found = {}
    for name in names:
        if name is not None:
            try:
                found[name[0]] = importlib.metadata.version(name[0])
            except importlib.metadata.PackageNotFoundError:
                continue
    return dict(sorted(found.items()))


def _script(scenarios: list[_Scenario], command: str | None) -> str:
    """Write the script that repeats the results below a directory, and compares the tables."""
    builds = "; ".join(dict.fromkeys(str(one.facts["sojourn"]) for one in scenarios))
    lines = [
        "#!/bin/sh",
        # They come from the manifests.
        f"# Sojourn {_core.printable(builds)} produced the results.",
        "set -e",
        'cd -- "$(dirname -- "$0")"',
    ]
    each, excluded = [], ""
    for one in scenarios:
        place = f"{REPEATED}/{one.path}".rstrip("/")
        if one.toml is None:
            directory = str(one.facts["directory"])
            each.append(f"# {directory}: the source of its queue in Python is in manifest.json.")
            excluded += f" ! -path {shlex.quote(f'{directory}/*')}"
        else:
            each.append(shlex.join(["sojourn", "run", one.file, "--out", place, "--force"]))
    if command is not None:
        lines += [
            f"{_core.printable(command)} --out {REPEATED} --force",
            "# Or one scenario at a time:",
        ]
        each = [line if line.startswith("#") else f"# {line}" for line in each]
        excluded = ""
    return "\n".join([*lines, *each]) + "\n" + _COMPARE.replace("EXCLUDED", excluded)


def _recipe(scenarios: list[_Scenario]) -> str:
    """Write the recipe of an image with the version that produced the results."""
    builds = list(dict.fromkeys(_core.printable(str(one.facts["sojourn"])) for one in scenarios))
    version = builds[0].partition(" ")[0]
    pinned = [f"{name}=={found}" for name, found in _dependencies().items()]
    major, minor, _ = platform.python_version_tuple()
    return (
        f"# Sojourn {'; '.join(builds)} produced the results. Of a build that is not published:\n"
        "#   docker build --build-arg SOJOURN=FILE.whl, with the wheel in this directory\n"
        f"FROM python:{major}.{minor}-slim\n"
        f'ARG SOJOURN="sojourn=={version}"\n'
        "WORKDIR /study\n"
        "COPY . .\n"
        f"RUN sha256sum --check --quiet {SUMS}\n"
        f'RUN {shlex.join(["pip", "install", "--no-cache-dir", *pinned])} "$SOJOURN"\n'
        f'CMD ["sh", "{REPEAT}"]\n'
    )


def _json(document: Mapping[str, Any]) -> bytes:
    return (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode()


@contextmanager
def _stream(content: _Content) -> Iterator[BinaryIO]:
    if isinstance(content, bytes):
        yield io.BytesIO(content)
        return
    try:
        with files.opened(content, follow=False) as stream:
            yield stream
    except _core.NotRegularError:
        raise invalid_file(content, "changed while it was read") from None


class _Digested:
    """A stream that computes the digest of what is read from it."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._sha256 = hashlib.sha256()

    def read(self, size: int = -1, /) -> bytes:
        """Read some bytes."""
        data = self._stream.read(size)
        self._sha256.update(data)
        return data

    def blocks(self) -> Iterator[bytes]:
        """Read the rest in blocks."""
        while data := self.read(_BLOCK):
            yield data

    @property
    def digest(self) -> str:
        """The digest so far."""
        return self._sha256.hexdigest()


# Adds a file: its name, size, mode and content.
_Add = Callable[[str, int, int, _Digested], None]


def _digest(content: _Content) -> str:
    with _stream(content) as stream:
        # Every binary stream that is opened here has readinto().
        return hashlib.file_digest(stream, "sha256").hexdigest()  # type: ignore[arg-type]


def _add(add: _Add, entry: str, content: _Content, digest: str) -> None:
    """Add a file whose digest has been written to the sums."""
    with _stream(content) as stream:
        size = stream.seek(0, os.SEEK_END)
        stream.seek(0)
        read = _Digested(stream)
        add(entry, size, _EXECUTABLE if entry == REPEAT else _MODE, read)
    if read.digest != digest:
        raise invalid_file(
            content if isinstance(content, Path) else entry, "changed while it was read"
        )


def _writer(file: str | Path) -> Callable[[BinaryIO, str], Any]:
    """Return the writer of an archive by the suffix of its name."""
    name = Path(file).name.lower()
    if name.endswith(".zip"):
        return _zip
    if name.endswith((".tar.gz", ".tgz")):
        return _tar
    raise invalid_file(file, "unknown archive format; expected .zip, .tar.gz or .tgz")


@contextmanager
def _zip(stream: BinaryIO, root: str) -> Iterator[_Add]:
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:

        def add(name: str, size: int, mode: int, content: _Digested) -> None:
            info = zipfile.ZipInfo(f"{root}/{name}", _ZIP_EPOCH)
            info.compress_type = zipfile.ZIP_DEFLATED
            # As on Unix, whatever system writes the archive.
            info.create_system = 3
            info.external_attr = (stat.S_IFREG | mode) << 16
            info.file_size = size
            with archive.open(info, "w") as target:
                for data in content.blocks():
                    target.write(data)

        yield add


@contextmanager
def _tar(stream: BinaryIO, root: str) -> Iterator[_Add]:
    with (
        gzip.GzipFile(filename="", mode="wb", fileobj=stream, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):

        def add(name: str, size: int, mode: int, content: _Digested) -> None:
            # Time, owner and group are 0 by default.
            info = tarfile.TarInfo(f"{root}/{name}")
            info.size, info.mode = size, mode
            archive.addfile(info, content)

        yield add
