"""Locked dependencies, and the check of their advisories."""

import datetime as dt
import json
import re
import subprocess
import tomllib
from pathlib import Path

import advisories
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from support.shell import ROOT

TODAY = dt.date(2026, 11, 23)
CRATES = """
[[package]]
name = "ours"
version = "0.1.0"

[[package]]
name = "lib"
version = "1.2.3"
source = "registry+https://github.com/rust-lang/crates.io-index"
"""
PINS = """tool==2.0 ; python_full_version < '3.12' \\
    --hash=sha256:00
    # via ours
"""


def root(
    path: Path,
    *,
    crate: list[dict[str, object]] | None = None,
    python: list[str] | None = None,
    dated: str = "2026-11-01",
    ignored: str = "",
    yanked: bool = False,
) -> Path:
    """Make a repository that locks ``lib 1.2.3`` and ``tool 2.0``, with these advisories."""
    (path / "tools").mkdir(exist_ok=True)
    (path / "Cargo.lock").write_text(CRATES)
    (path / "requirements-dev.lock").write_text(PINS)
    snapshot = {
        "crates": {"date": dated, "advisories": {"lib": crate or []}},
        "python": {"date": dated, "advisories": {"tool 2.0": python or []}},
        "yanked": {"date": dated, "crates": {"lib 1.2.3": yanked}},
    }
    (path / advisories.SNAPSHOT).write_text(json.dumps(snapshot))
    (path / advisories.IGNORED).write_text(ignored)
    return path


def advisory(patched: str, **more: str) -> dict[str, object]:
    return {"id": "RUSTSEC-2026-0001", "patched": [patched], "unaffected": ["< 1.0"]} | more


@pytest.mark.parametrize(
    ("version", "requirement", "satisfied"),
    [
        ("0.10.5", ">= 0.10.5", True),
        ("0.10.4", ">= 0.10.5", False),
        ("0.9.9", "^0.9.5", True),
        ("0.10.0", "^0.9.5", False),
        ("0.3.2", "^ 0.3.1", True),
        ("1.9.0", "^1.2", True),
        ("2.0.0", "1.2", False),
        ("0.0.4", "^0.0.3", False),
        ("1.2.9", "~1.2.3", True),
        ("1.3.0", "~1.2.3", False),
        ("0.9.4", "< 0.10.0, >= 0.9.3", True),
        ("0.10.0", "< 0.10.0, >= 0.9.3", False),
        ("1.0.0-rc.1", ">= 1.0.0", False),
        ("2.1.2+zstd.1.5.7", "=2.1.2", True),
        ("0.17", ">0.16", True),
    ],
)
def test_requirements_of_cargo(version: str, requirement: str, satisfied: bool) -> None:  # noqa: FBT001 (a column of the table)
    assert advisories.satisfies(version, requirement) is satisfied


def test_an_unknown_requirement_is_an_error_not_a_match() -> None:
    with pytest.raises(ValueError, match="'latest' is not a version requirement"):
        advisories.satisfies("1.0.0", "latest")


def test_a_locked_version_that_is_affected_is_an_error(tmp_path: Path) -> None:
    affected = root(tmp_path, crate=[advisory(">= 1.2.4")], python=["PYSEC-2026-1"])
    errors, warnings = advisories.check(affected, TODAY)
    assert errors == ["lib 1.2.3: RUSTSEC-2026-0001", "tool 2.0: PYSEC-2026-1"]
    assert warnings == []
    assert advisories.check(root(tmp_path, crate=[advisory(">= 1.2.3")]), TODAY) == ([], [])


def test_a_yanked_crate_is_an_error(tmp_path: Path) -> None:
    repository = root(tmp_path, yanked=True)
    assert advisories.check(repository, TODAY) == (["lib 1.2.3: yanked"], [])


def test_yanked_crates_are_read_from_the_index_that_cargo_keeps(tmp_path: Path) -> None:
    names = {"a": "1/a", "ab": "2/ab", "abc": "3/a/abc", "ABcd": "ab/cd/abcd"}
    for name, place in names.items():
        path = tmp_path / "registry/index/index.crates.io-0/.cache" / place
        path.parent.mkdir(parents=True, exist_ok=True)
        entries = [
            json.dumps({"name": name, "vers": version, "yanked": version == "1.1.0"})
            for version in ("1.0.0", "1.1.0")
        ]
        path.write_bytes(
            "\0".join(["\3\2", "etag", "1.0.0", entries[0], "1.1.0", entries[1]]).encode()
        )
    locked = [(name, version) for name in names for version in ("1.0.0", "1.1.0", "2.0.0")]
    assert advisories.yanked_crates([*locked, ("other", "1.0.0")], tmp_path) == {
        f"{name} {version}": version == "1.1.0" for name, version in locked if version != "2.0.0"
    }


def test_an_unmaintained_crate_is_a_warning(tmp_path: Path) -> None:
    crate = advisory(">= 9.0", informational="unmaintained")
    assert advisories.check(root(tmp_path, crate=[crate]), TODAY) == (
        [],
        ["lib 1.2.3: RUSTSEC-2026-0001"],
    )


def test_an_advisory_is_ignored_for_a_reason_and_a_time(tmp_path: Path) -> None:
    entry = """[[ignored]]
package = "lib"
id = "RUSTSEC-2026-0001"
reason = "{reason}"
until = {until}
"""
    crate = [advisory(">= 1.2.4")]

    def errors(reason: str, until: str, crate: list[dict[str, object]]) -> list[str]:
        text = entry.format(reason=reason, until=until)
        return advisories.check(root(tmp_path, crate=crate, ignored=text), TODAY)[0]

    assert errors("not called", "2026-12-31", crate) == []
    assert "was ignored until 2026-11-22" in errors("not called", "2026-11-22", crate)[0]
    assert "has no reason" in errors(" ", "2026-12-31", crate)[0]
    assert "matches no locked dependency" in errors("not called", "2026-12-31", [])[0]


def test_an_old_snapshot_is_a_warning(tmp_path: Path) -> None:
    errors, warnings = advisories.check(root(tmp_path, dated="2026-05-01"), TODAY)
    assert errors == []
    assert [warning.split(": ", 1)[1] for warning in warnings] == [
        f"{part} is of 2026-05-01: run make advisories-update"
        for part in ("crates", "python", "yanked")
    ]


def test_a_dependency_that_the_snapshot_does_not_cover_is_an_error(tmp_path: Path) -> None:
    repository = root(tmp_path)
    (repository / "requirements-dev.lock").write_text("tool==2.1 \\\n    --hash=sha256:00\n")
    (repository / "Cargo.lock").write_text(CRATES.replace("1.2.3", "1.2.4"))
    missing = "tools/advisories.json does not cover {}: run make advisories-update"
    assert advisories.check(repository, TODAY) == (
        [missing.format("lib 1.2.4"), missing.format("tool 2.1")],
        [],
    )
    entry = '[[unchecked]]\npackage = "{}"\nversion = "{}"\nreason = "no page"\nuntil = {}\n'
    file = repository / advisories.IGNORED
    until = "2026-12-31"
    known = entry.format("lib", "1.2.4", until) + entry.format("tool", "2.1", until)
    file.write_text(known)
    assert advisories.check(repository, TODAY) == ([], [])
    file.write_text(known.replace(until, "2026-11-22"))
    errors, _ = advisories.check(repository, TODAY)
    assert "2.1 of tool was unchecked until 2026-11-22" in errors[1]
    file.write_text(known + entry.format("tool", "2.0", until))
    (error,) = advisories.check(repository, TODAY)[0]
    assert "2.0 of tool is unchecked, but matches no locked dependency" in error


def test_advisories_of_rustsec_are_read_and_withdrawn_ones_left_out(tmp_path: Path) -> None:
    folder = tmp_path / "crates/lib"
    folder.mkdir(parents=True)
    text = (
        '```toml\n[advisory]\nid = "{id}"\npackage = "lib"\n{more}\n[versions]\n{versions}\n```\n'
    )
    patched = 'patched = [">= 1.2.4"]'
    for number, more in (("1", 'informational = "unsound"'), ("2", 'withdrawn = "2026-01-01"')):
        name = f"RUSTSEC-2026-000{number}"
        file = folder / f"{name}.md"
        file.write_text(text.format(id=name, more=more, versions=patched) + "\n# Title\n")
    (folder / "RUSTSEC-2026-0003.md").write_text(
        text.format(id="RUSTSEC-2026-0003", more="", versions="patched = []")
    )
    found = advisories.rustsec_advisories(tmp_path, ["lib", "other"])
    assert found["other"] == []
    assert [entry["id"] for entry in found["lib"]] == ["RUSTSEC-2026-0001", "RUSTSEC-2026-0003"]
    assert found["lib"][0]["patched"] == [">= 1.2.4"]
    assert found["lib"][0]["informational"] == "unsound"


def test_the_repository_has_no_live_advisory_and_covers_its_crates() -> None:
    snapshot = json.loads((ROOT / advisories.SNAPSHOT).read_text())
    dates = [dt.date.fromisoformat(snapshot[part]["date"]) for part in advisories.PARTS]
    errors, _ = advisories.check(ROOT, max(dates))
    assert errors == []
    assert len(advisories.locked_crates(ROOT)) > 100
    assert len(advisories.locked_python(ROOT)) > 100


def accepted(expression: str, allowed: set[str]) -> bool:
    """Whether allowed licences fulfil an SPDX expression; ``/`` is an old form of OR."""
    rest = re.findall(r"[()]|[^\s()]+(?: WITH [^\s()]+)?", expression.replace("/", " OR "))

    def operand() -> bool:
        word = rest.pop(0)
        if word != "(":
            return word in allowed
        value = either()
        assert rest.pop(0) == ")"
        return value

    def both() -> bool:
        value = operand()
        while rest[:1] == ["AND"]:
            rest.pop(0)
            value &= operand()
        return value

    def either() -> bool:
        value = both()
        while rest[:1] == ["OR"]:
            rest.pop(0)
            value |= both()
        return value

    value = either()
    assert rest == [], expression
    return value


@pytest.mark.parametrize(
    ("expression", "is_accepted"),
    [
        ("MIT", True),
        ("GPL-2.0-only", False),
        ("MIT OR GPL-2.0-only", True),
        ("GPL-2.0-only/MIT", True),
        ("MIT AND GPL-2.0-only", False),
        ("(MIT OR Apache-2.0) AND GPL-2.0-only", False),
        ("GPL-2.0-only AND ISC OR MIT", True),
        ("Apache-2.0 WITH LLVM-exception", True),
        ("Apache-2.0 WITH GCC-exception-3.1", False),
    ],
)
def test_licence_expressions(expression: str, *, is_accepted: bool) -> None:
    allowed = {"MIT", "ISC", "Apache-2.0", "Apache-2.0 WITH LLVM-exception"}
    assert accepted(expression, allowed) is is_accepted


def test_crates_have_the_licences_and_the_source_of_deny_toml() -> None:
    denied = tomllib.loads((ROOT / "deny.toml").read_text(encoding="utf-8"))
    asked = ["rustc", "--print", "host-tuple"]
    host = subprocess.run(asked, capture_output=True, text=True, check=True)
    command = ["cargo", "metadata", "--format-version", "1", "--locked"]
    # The crates of other platforms may not have been downloaded.
    done = subprocess.run(
        [*command, "--filter-platform", host.stdout.strip()],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    packages = json.loads(done.stdout)["packages"]
    assert len(packages) > 100
    licences = set(denied["licenses"]["allow"])
    special = {one["crate"]: set(one["allow"]) for one in denied["licenses"]["exceptions"]}
    sources = {f"registry+{place}" for place in denied["sources"]["allow-registry"]}
    for one in packages:
        allowed = licences | special.get(one["name"], set())
        assert accepted(one["license"] or "none", allowed), f"{one['name']}: {one['license']}"
        # Those of this repository have none.
        assert one["source"] is None or one["source"] in sources, one["name"]


def test_the_lock_has_what_pyproject_asks_for_with_digests() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = [*project["dependencies"]]
    for extra in project["optional-dependencies"].values():
        asked += extra
    pins: dict[str, set[str]] = {}
    for name, version in advisories.locked_python(ROOT):
        pins.setdefault(canonicalize_name(name), set()).add(version)
    for text in asked:
        requirement = Requirement(text)
        versions = pins.get(canonicalize_name(requirement.name), set())
        assert versions, f"{text} is not locked: run make lock"
        assert all(version in requirement.specifier for version in versions), text
    lock = (ROOT / "requirements-dev.lock").read_text()
    blocks = re.split(r"^(?=[a-z0-9])", lock, flags=re.MULTILINE)[1:]
    assert len(blocks) == sum(map(len, pins.values()))
    assert all("--hash=sha256:" in block for block in blocks)


@pytest.mark.parametrize("name", ["polars", "numpy"])
def test_what_computes_statistics_has_an_upper_bound(name: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found = [Requirement(text) for text in project["dependencies"]]
    bounds = next(r.specifier for r in found if r.name == name)
    assert any(bound.operator == "<" for bound in bounds)


def test_releases_check_for_overflow_where_values_of_users_are_read() -> None:
    manifest = tomllib.loads((ROOT / "Cargo.toml").read_text())
    packages = manifest["profile"]["release"]["package"]
    checked = {name for name, keys in packages.items() if keys.get("overflow-checks")}
    members = {f"sojourn-{path.parent.name}" for path in ROOT.glob("crates/*/Cargo.toml")}
    # On the path of every packet; their tests check for overflow.
    unchecked = members - checked
    assert unchecked == {"sojourn-sim", "sojourn-transport"}
    policy = (ROOT / "SECURITY.md").read_text("utf-8")
    item = next(part for part in policy.split("\n* ") if part.startswith("Integer overflow"))
    # Generic code of the queues is compiled as a part of the simulator.
    assert set(re.findall(r"`(sojourn-\w+)`", item)) == unchecked | {"sojourn-qdisc"}


def test_dependencies_of_users_have_upper_bounds() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    of_users = [one for name, of in extras.items() if name not in {"dev", "docs"} for one in of]
    for text in (*project["dependencies"], *of_users):
        operators = {one.operator for one in Requirement(text).specifier}
        assert operators == {">=", "<"}, text


def test_unsafe_code_is_only_where_the_policy_says() -> None:
    has_unsafe = re.compile(r"^\s*(?!//).*\bunsafe (?:\{|fn|impl|extern)", re.MULTILINE)
    files = [*ROOT.glob("crates/*/src/**/*.rs"), *ROOT.glob("benches/**/*.rs")]
    found = {
        f"{file.relative_to(ROOT)}" for file in files if has_unsafe.search(file.read_text("utf-8"))
    }
    assert found == {
        "crates/live/src/sys.rs",
        "crates/live/src/sys/frames.rs",
        "crates/live/src/sys/guard.rs",
        "crates/live/src/sys/packets.rs",
        "crates/path-c/src/abi.rs",
        "crates/path-c/src/functions.rs",
        "crates/plugin/src/abi.rs",
        "crates/plugin/src/guest.rs",
        "crates/plugin/src/host.rs",
        "crates/prefetch/src/lib.rs",
        "benches/tests/no_alloc.rs",
    }
    policy = (ROOT / "SECURITY.md").read_text("utf-8")
    item = next(part for part in policy.split("\n* ") if part.startswith("The crates"))
    assert set(re.findall(r"`(sojourn-[\w-]+|benches)`", item)) == {
        "sojourn-live",
        "sojourn-path-c",
        "sojourn-plugin",
        "sojourn-prefetch",
        "benches",
    }
