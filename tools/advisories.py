"""Match the locked dependencies against a dated snapshot of published advisories, without network.

``python tools/advisories.py`` reads ``Cargo.lock``, ``requirements-dev.lock`` and
``tools/advisories.json``. It exits with status 1 if a locked version has an advisory that
``tools/advisories_ignored.toml`` does not name, or if an entry of that file is expired or matches
nothing. It warns about a snapshot older than 180 days, an unmaintained crate, and a dependency that
the snapshot does not cover.

``--update`` writes the snapshot again: for crates from the RustSec advisory database, which git
clones unless ``--rustsec`` names a copy, and for Python from the vulnerabilities that PyPI lists
for each locked version. A part whose source cannot be reached stays as it is.
"""

import argparse
import datetime as dt
import http.client
import json
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
PYPI = "pypi.org"
OLD = dt.timedelta(days=180)
TIMEOUT = 30

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


def python_findings(
    snapshot: dict[str, Any], locked: Locked
) -> Iterator[tuple[str, str, str, bool]]:
    """Yield package, version, advisory, and whether it is a warning only."""
    for name, version in locked:
        for advisory in snapshot["advisories"].get(f"{name} {version}", []):
            yield name, version, advisory, False


def ignored(root: Path, today: dt.date) -> tuple[set[tuple[str, str]], list[str]]:
    """Return the ignored advisories with their packages, and what is wrong with the list."""
    entries = tomllib.loads((root / IGNORED).read_text(encoding="utf-8")).get("ignored", [])
    wrong = [
        f"{IGNORED}: {entry['id']} of {entry['package']} was ignored until {entry['until']}"
        for entry in entries
        if entry["until"] < today
    ]
    wrong += [
        f"{IGNORED}: {entry['id']} of {entry['package']} has no reason"
        for entry in entries
        if not entry["reason"].strip()
    ]
    return {(entry["package"], entry["id"]) for entry in entries}, wrong


def check(root: Path, today: dt.date) -> tuple[list[str], list[str]]:
    """Return the errors and the warnings about the dependencies that are locked in `root`."""
    snapshot = json.loads((root / SNAPSHOT).read_text(encoding="utf-8"))
    crates, python = locked_crates(root), locked_python(root)
    allowed, errors = ignored(root, today)
    warnings = []
    for part in ("crates", "python"):
        dated = dt.date.fromisoformat(snapshot[part]["date"])
        if today - dated > OLD:
            warnings.append(
                f"{SNAPSHOT}: the advisories on {part} are of {dated}: run make advisories-update"
            )
    covered = snapshot["crates"]["advisories"].keys(), snapshot["python"]["advisories"].keys()
    unknown = [f"{name} {version}" for name, version in crates if name not in covered[0]]
    unknown += [pin for pin in map(" ".join, python) if pin not in covered[1]]
    if unknown:
        names = ", ".join(unknown)
        warnings.append(f"{SNAPSHOT} does not cover {names}: run make advisories-update")
    found = [
        *crate_findings(snapshot["crates"], crates),
        *python_findings(snapshot["python"], python),
    ]
    for name, version, advisory, warns in found:
        if (name, advisory) not in allowed:
            (warnings if warns else errors).append(f"{name} {version}: {advisory}")
    for name, advisory in sorted(allowed - {(name, advisory) for name, _, advisory, _ in found}):
        errors.append(f"{IGNORED}: {advisory} of {name} matches no locked dependency")
    return errors, warnings


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
    try:
        listed = pypi_advisories(locked_python(root))
        today = dt.datetime.now(tz=dt.UTC).date().isoformat()
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
