"""Match the locked dependencies against a dated snapshot of published advisories, without network.

``python tools/advisories.py`` reads ``Cargo.lock``, ``requirements-dev.lock`` and
``tools/advisories.json``. It exits with status 1 if a locked version is yanked, has an advisory or
is not covered by the snapshot, unless ``tools/advisories_ignored.toml`` says so, or if an entry of
that file is expired or matches nothing. It warns about a snapshot older than 180 days and an
unmaintained crate.

``--update`` writes the snapshot again: for crates from the RustSec advisory database, which git
clones unless ``--rustsec`` names a copy, and from the index of crates.io, which cargo downloads;
for Python from the vulnerabilities that PyPI lists for each locked version. A part whose source
cannot be reached stays as it is.
"""

import argparse
import datetime as dt
import http.client
import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SNAPSHOT = "tools/advisories.json"
IGNORED = "tools/advisories_ignored.toml"
RUSTSEC = "https://github.com/rustsec/advisory-db"
CRATES = "https://index.crates.io"
PYPI = "pypi.org"
OLD = dt.timedelta(days=180)
TIMEOUT = 30
# The name of a finding that is not an advisory.
YANKED = "yanked"
PARTS = ("crates", "python", YANKED)

Locked = list[tuple[str, str]]


def locked_crates(root: Path) -> Locked:
    """Return the name and version of each crate of ``Cargo.lock`` that comes from a registry."""
    lock = tomllib.loads((root / "Cargo.lock").read_text(encoding="utf-8"))
    return sorted((p["name"], p["version"]) for p in lock["package"] if "source" in p)


def locked_python(root: Path) -> Locked:
    """Return the name and version of each pin of ``requirements-dev.lock``."""
    text = (root / "requirements-dev.lock").read_text(encoding="utf-8")
    return sorted(re.findall(r"^([a-z0-9.-]+)==([^\s;\\]+)", text, flags=re.MULTILINE))


def ordered(version: str) -> tuple[tuple[int, ...], bool]:
    """Return a key by which versions are compared; a pre-release precedes its release."""
    numbers, _, pre = version.partition("+")[0].partition("-")
    parts = [int(part) for part in numbers.split(".")]
    return (*parts, *[0] * (3 - len(parts))), not pre


def bounds(comparator: str) -> Iterator[tuple[str, str]]:
    """Yield the operators and versions that a comparator of Cargo stands for."""
    match = re.fullmatch(r"(<=|>=|<|>|=|\^|~)?\s*([0-9][^\s]*)", comparator.strip())
    if match is None:
        message = f"{comparator!r} is not a version requirement"
        raise ValueError(message)
    operator, version = match[1] or "^", match[2]
    if operator not in "^~":
        yield operator, version
        return
    parts = [int(part) for part in version.partition("-")[0].split(".")]
    fixed = 1 if operator == "~" else next((i for i, n in enumerate(parts) if n), len(parts) - 1)
    fixed = min(fixed, len(parts) - 1)
    yield ">=", version
    yield "<", ".".join(map(str, [*parts[:fixed], parts[fixed] + 1]))


def satisfies(version: str, requirement: str) -> bool:
    """Whether a version satisfies all comparators of a requirement of Cargo."""
    compare = {
        "<": lambda a, b: a < b,
        "<=": lambda a, b: a <= b,
        "=": lambda a, b: a == b,
        ">=": lambda a, b: a >= b,
        ">": lambda a, b: a > b,
    }
    return all(
        compare[operator](ordered(version), ordered(bound))
        for comparator in requirement.split(",")
        for operator, bound in bounds(comparator)
    )


def crate_findings(
    snapshot: dict[str, Any], locked: Locked
) -> Iterator[tuple[str, str, str, bool]]:
    """Yield crate, version, advisory, and whether it is a warning only."""
    for name, version in locked:
        for advisory in snapshot["advisories"].get(name, []):
            safe = [*advisory["patched"], *advisory["unaffected"]]
            if not any(satisfies(version, requirement) for requirement in safe):
                yield name, version, advisory["id"], advisory.get("informational") == "unmaintained"


def yanked_findings(
    snapshot: dict[str, Any], locked: Locked
) -> Iterator[tuple[str, str, str, bool]]:
    """Yield crate, version, "yanked", and that it is not a warning only."""
    for name, version in locked:
        if snapshot["crates"].get(f"{name} {version}"):
            yield name, version, YANKED, False


def python_findings(
    snapshot: dict[str, Any], locked: Locked
) -> Iterator[tuple[str, str, str, bool]]:
    """Yield package, version, advisory, and whether it is a warning only."""
    for name, version in locked:
        for advisory in snapshot["advisories"].get(f"{name} {version}", []):
            yield name, version, advisory, False


def exceptions(root: Path, today: dt.date) -> tuple[dict[str, set[tuple[str, str]]], list[str]]:
    """Return the exceptions of each kind, and what is wrong with their list.

    An ignored advisory is a package and an identifier; an unchecked dependency is a package and a
    version.
    """
    tables = tomllib.loads((root / IGNORED).read_text(encoding="utf-8"))
    found: dict[str, set[tuple[str, str]]] = {}
    wrong = []
    for kind, key in (("ignored", "id"), ("unchecked", "version")):
        entries = tables.get(kind, [])
        found[kind] = {(entry["package"], entry[key]) for entry in entries}
        for entry in entries:
            place = f"{IGNORED}: {entry[key]} of {entry['package']}"
            if entry["until"] < today:
                wrong.append(f"{place} was {kind} until {entry['until']}")
            if not entry["reason"].strip():
                wrong.append(f"{place} has no reason")
    return found, wrong


def uncovered(snapshot: dict[str, Any], crates: Locked, python: Locked) -> Locked:
    """List the locked dependencies of which the snapshot says nothing."""
    advised, checked = snapshot["crates"]["advisories"], snapshot[YANKED]["crates"]
    listed = snapshot["python"]["advisories"]
    return [
        *(one for one in crates if one[0] not in advised or " ".join(one) not in checked),
        *(one for one in python if " ".join(one) not in listed),
    ]


def check(root: Path, today: dt.date) -> tuple[list[str], list[str]]:
    """Return the errors and the warnings about the dependencies that are locked in `root`."""
    snapshot = json.loads((root / SNAPSHOT).read_text(encoding="utf-8"))
    crates, python = locked_crates(root), locked_python(root)
    allowed, errors = exceptions(root, today)
    warnings = []
    for part in PARTS:
        dated = dt.date.fromisoformat(snapshot[part]["date"])
        if today - dated > OLD:
            warnings.append(f"{SNAPSHOT}: {part} is of {dated}: run make advisories-update")
    unknown = uncovered(snapshot, crates, python)
    errors += [
        f"{SNAPSHOT} does not cover {name} {version}: run make advisories-update"
        for name, version in unknown
        if (name, version) not in allowed["unchecked"]
    ]
    found = [
        *crate_findings(snapshot["crates"], crates),
        *yanked_findings(snapshot[YANKED], crates),
        *python_findings(snapshot["python"], python),
    ]
    for name, version, advisory, warns in found:
        if (name, advisory) not in allowed["ignored"]:
            (warnings if warns else errors).append(f"{name} {version}: {advisory}")
    matched = {"ignored": {(name, advisory) for name, _, advisory, _ in found}}
    matched["unchecked"] = set(unknown)
    for kind, entries in allowed.items():
        for name, of in sorted(entries - matched[kind]):
            errors.append(f"{IGNORED}: {of} of {name} is {kind}, but matches no locked dependency")
    return errors, warnings


def yanked_crates(locked: Locked, home: Path) -> dict[str, bool]:
    """Return whether each locked crate is yanked, as far as the index that cargo keeps says so.

    Each file of a crate has the JSON documents of its versions, separated by zero bytes.
    """
    found: dict[str, bool] = {}
    for name, version in locked:
        short = {1: "1", 2: "2", 3: f"3/{name[0]}"}.get(len(name), f"{name[:2]}/{name[2:4]}")
        for path in home.glob(f"registry/index/*/.cache/{short}/{name}".lower()):
            for part in path.read_bytes().split(b"\0"):
                if part.startswith(b"{"):
                    entry = json.loads(part)
                    if entry["vers"] == version:
                        found[f"{name} {version}"] = entry["yanked"]
    return found


def rustsec_advisories(copy: Path, names: Iterable[str]) -> dict[str, list[dict[str, Any]]]:
    """Return the advisories on crates that a copy of the RustSec database has not withdrawn."""
    found: dict[str, list[dict[str, Any]]] = {}
    for name in sorted(set(names)):
        found[name] = []
        for path in sorted((copy / "crates" / name).glob("RUSTSEC-*.md")):
            front = path.read_text(encoding="utf-8").split("```toml\n", 1)[1].split("\n```", 1)[0]
            entry = tomllib.loads(front)
            about, versions = entry["advisory"], entry["versions"]
            if "withdrawn" in about:
                continue
            kept = {"id": about["id"], "patched": versions.get("patched", [])}
            kept["unaffected"] = versions.get("unaffected", [])
            if "informational" in about:
                kept["informational"] = about["informational"]
            found[name].append(kept)
    return found


def pypi_advisories(locked: Locked) -> dict[str, list[str]]:
    """Return the vulnerabilities that PyPI lists for each locked version, as far as it answers."""
    connection = http.client.HTTPSConnection(PYPI, timeout=TIMEOUT)

    def answer(path: str) -> dict[str, Any] | None:
        connection.request("GET", f"/pypi/{path}/json")
        response = connection.getresponse()
        body = response.read()
        return json.loads(body) if response.status == http.HTTPStatus.OK else None

    found = {}
    for name, version in locked:
        # Mirrors may serve the page of the project alone, which describes the newest version.
        page = answer(f"{name}/{version}") or answer(name)
        if page is None or page["info"]["version"] != version:
            continue
        live = [v["id"] for v in page["vulnerabilities"] if not v.get("withdrawn")]
        live += [YANKED] if page["info"].get("yanked") else []
        found[f"{name} {version}"] = sorted(live)
    return found


def update(root: Path, copy: Path | None, dated: str | None) -> None:
    """Write the snapshot again; a part whose source cannot be reached stays as it is."""
    path = root / SNAPSHOT
    snapshot = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    names = [name for name, _ in locked_crates(root)]
    with tempfile.TemporaryDirectory() as folder:
        try:
            if copy is None:
                copy = Path(folder) / "advisory-db"
                clone = ["git", "clone", "--quiet", "--depth", "1", RUSTSEC, str(copy)]
                subprocess.run(clone, check=True)
            if dated is None:
                show = ["git", "-C", str(copy), "log", "-1", "--format=%cs"]
                shown = subprocess.run(show, check=True, capture_output=True, text=True)
                dated = shown.stdout.strip()
            advisories = rustsec_advisories(copy, names)
            snapshot["crates"] = {"source": RUSTSEC, "date": dated, "advisories": advisories}
        except subprocess.CalledProcessError as e:
            print(f"{RUSTSEC}: {e}; the advisories on crates stay as they are", file=sys.stderr)
    today = dt.datetime.now(tz=dt.UTC).date().isoformat()
    try:
        # Cargo downloads the files of all locked crates.
        refresh = ["cargo", "update", "--dry-run", "--quiet"]
        subprocess.run(refresh, cwd=root, check=True)
        home = Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo")
        yanked = yanked_crates(locked_crates(root), home)
        snapshot[YANKED] = {"source": CRATES, "date": today, "crates": yanked}
    except (subprocess.CalledProcessError, OSError) as e:
        print(f"{CRATES}: {e}; the yanked crates stay as they are", file=sys.stderr)
    try:
        listed = pypi_advisories(locked_python(root))
        source = f"https://{PYPI}"
        snapshot["python"] = {"source": source, "date": today, "advisories": listed}
    except OSError as e:
        print(f"{PYPI}: {e}; the advisories on Python stay as they are", file=sys.stderr)
    path.write_text(json.dumps(snapshot, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--update", action="store_true", help="write the snapshot again")
    parser.add_argument("--rustsec", type=Path, help="a copy of the RustSec database")
    parser.add_argument("--date", help="the date of a copy that is not a git clone")
    arguments = parser.parse_args()
    if arguments.update:
        update(ROOT, arguments.rustsec, arguments.date)
    today = dt.datetime.now(tz=dt.UTC).date()
    errors, warnings = check(ROOT, today)
    for warning in warnings:
        print(f"warning: {warning}", file=sys.stderr)
    for error in errors:
        print(error, file=sys.stderr)
    return bool(errors)


if __name__ == "__main__":
    sys.exit(main())
