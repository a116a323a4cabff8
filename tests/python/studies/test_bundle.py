"""Bundles of the output of a study: complete, checked, the same bytes each time, and no more."""

import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import polars as pl
import pytest

import sojourn as sj
from sojourn import _core, files
from sojourn.studies import bundle as bundles
from sojourn.studies.bundle import bundle
from support import manifests
from support.saved import names
from support.shell import Command, shell

KINDS = ["zip", "tar.gz", "tgz"]
ADDED = {"Dockerfile", "README.txt", "SHA256SUMS", "environment.json", "repeat.sh"}


@pytest.fixture(scope="module")
def study(result: sj.Result, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The output directory of a study with two results and another file."""
    folder = tmp_path_factory.mktemp("results") / "my study"
    for name in ("one", "two"):
        result.save(folder / "scenarios" / name)
    (folder / "verdicts.json").write_text("{}\n")
    (folder / "scenarios" / ".sojourn-lock").touch()
    return folder


def below(folder: Path) -> dict[str, bytes]:
    """The files in a directory, without those that Sojourn keeps for itself."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not path.name.startswith(".sojourn-")
    }


def extracted(archive: Path, folder: Path) -> Path:
    """Extract an archive and return its only directory."""
    shutil.unpack_archive(archive, folder)
    (root,) = folder.iterdir()
    return root


@pytest.mark.parametrize("kind", KINDS)
def test_a_bundle_has_the_files_the_scenarios_and_valid_sums(
    kind: str, study: Path, result: sj.Result, tmp_path: Path
) -> None:
    archive = tmp_path / f"a.{kind}"
    listed = bundle(study, archive)
    root = extracted(archive, tmp_path / "out")
    assert root.name == "my study"
    found = below(root)
    assert sorted(found) == listed
    output = {f"output/{name}": content for name, content in below(study).items()}
    scenarios = {f"scenarios/{name}.toml" for name in ("one", "two")}
    assert set(found) == {*output, *scenarios, *ADDED}
    assert found.items() >= output.items()
    for name in scenarios:
        assert sj.Scenario.from_file(root / name).hash == result.scenario.hash
    done = shell("sha256sum --check --strict SHA256SUMS", root)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == len(found) - 1
    (root / "output" / "verdicts.json").write_text("{ }\n")
    assert shell("sha256sum --check SHA256SUMS", root).returncode == 1


@pytest.mark.parametrize("kind", KINDS)
def test_two_bundles_of_a_directory_are_identical(kind: str, study: Path, tmp_path: Path) -> None:
    first, second = tmp_path / f"first.{kind}", tmp_path / "other" / f"second.{kind}"
    second.parent.mkdir()
    bundle(study, first)
    # Neither times, permissions nor the order in the directory matter.
    copy = tmp_path / "copy" / study.name
    for name, content in sorted(below(study).items(), reverse=True):
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        (copy / name).write_bytes(content)
        (copy / name).chmod(0o600)
        os.utime(copy / name, (1_000_000_000, 1_000_000_000))
    bundle(copy, second)
    assert first.read_bytes() == second.read_bytes()


def test_files_in_an_archive_have_no_times_and_owners(study: Path, tmp_path: Path) -> None:
    bundle(study, tmp_path / "a.zip")
    with zipfile.ZipFile(tmp_path / "a.zip") as packed:
        entries = packed.infolist()
    assert [entry.filename for entry in entries] == sorted(entry.filename for entry in entries)
    assert {entry.date_time for entry in entries} == {(1980, 1, 1, 0, 0, 0)}
    modes = {entry.filename: entry.external_attr >> 16 for entry in entries}
    script = modes.pop("my study/repeat.sh")
    assert stat.S_ISREG(script)
    assert stat.S_IMODE(script) == 0o755
    assert {stat.S_IMODE(mode) for mode in modes.values()} == {0o644}
    bundle(study, tmp_path / "a.tar.gz")
    with tarfile.open(tmp_path / "a.tar.gz") as archive:
        members = archive.getmembers()
    assert {(one.mtime, one.uid, one.gid, one.uname, one.gname) for one in members} == {
        (0, 0, 0, "", "")
    }
    assert (tmp_path / "a.tar.gz").read_bytes()[4:8] == bytes(4)


def test_the_environment_names_versions_and_results_but_no_user(
    study: Path, result: sj.Result, tmp_path: Path
) -> None:
    bundle(study, tmp_path / "a.zip")
    root = extracted(tmp_path / "a.zip", tmp_path / "out")
    text = (root / "environment.json").read_text(encoding="utf-8")
    environment = json.loads(text)
    assert environment["sojourn"] == {"version": _core.version(), "commit": _core.commit()}
    assert environment["python"]["version"].count(".") == 2
    assert {"system", "release", "machine"} <= set(environment["platform"])
    assert environment["cpu"]["count"] == os.cpu_count()
    assert {"polars", "numpy"} <= set(environment["dependencies"])
    assert "pytest" not in environment["dependencies"]
    (one, two) = environment["results"]
    assert (one["directory"], two["directory"]) == ("output/scenarios/one", "output/scenarios/two")
    assert one["sojourn"] == result.build
    assert one["scenario_hash"] == result.scenario.hash
    assert (one["finished_runs"], one["total_runs"]) == (6, 6)
    assert os.uname().nodename not in text
    assert str(tmp_path) not in text


def test_the_recipe_of_the_image_has_the_version_of_the_results(
    study: Path, result: sj.Result, tmp_path: Path
) -> None:
    archive = tmp_path / "a.zip"
    bundle(study, archive)
    recipe = (extracted(archive, tmp_path / "out") / "Dockerfile").read_text(encoding="utf-8")
    assert f"# Sojourn {result.build} produced the results." in recipe
    assert f'ARG SOJOURN="sojourn=={result.build.partition(" ")[0]}"\n' in recipe
    assert f"polars=={pl.__version__}" in recipe
    assert recipe.splitlines()[-2].endswith('"$SOJOURN"')
    assert recipe.splitlines()[-1] == 'CMD ["sh", "repeat.sh"]'


def test_the_script_repeats_the_results(tmp_path: Path) -> None:
    links = {side: sj.Link(rate="1mbit", qdisc="codel") for side in ("up", "down")}
    ping = sj.Ping(direction="up", interval="100ms")
    scenario = sj.Scenario(links=links, traffic=[ping], rtt="10ms", duration="2s")
    sj.run(scenario, seed=3).save(tmp_path / "results" / "a b")
    bundle(tmp_path / "results", tmp_path / "a.zip")
    root = extracted(tmp_path / "a.zip", tmp_path / "out")
    script = (root / "repeat.sh").read_text(encoding="utf-8")
    assert "sojourn run 'scenarios/a b.toml' --out 'repeated/a b' --force\n" in script
    number = len(list((root / "output").rglob("*.parquet")))
    said = f"{number} of {number} tables are equal to those in output"
    # From another directory, and again.
    for _ in range(2):
        done = repeated(root)
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines()[-1] == said
    with (root / "output" / "a b" / "pings.parquet").open("ab") as file:
        file.write(b"x")
    done = repeated(root)
    assert done.returncode == 1
    assert done.stdout.splitlines()[-2:] == [
        "not equal: repeated/a b/pings.parquet",
        f"{number - 1} of {number} tables are equal to those in output",
    ]


def repeated(root: Path) -> subprocess.CompletedProcess[str]:
    """Run the script of an archive with this version of Sojourn, from another directory."""
    program = root.parent / "bin" / "sojourn"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m sojourn "$@"\n')
    program.chmod(0o755)
    return shell(f'PATH="{program.parent}:$PATH" sh "{root}/repeat.sh"', root.parent)


@pytest.mark.slow
def test_the_script_of_a_study_repeats_only_its_command(sojourn: Command, tmp_path: Path) -> None:
    options = ("--figure", "6", "--replications", "1", "--jobs", "2", "--out", "out")
    first = sojourn("reproduce", "predict", "--figure", "8", "--replications", "1", "--out", "out")
    assert first.returncode == 0, first.stderr
    done = sojourn("reproduce", "predict", *options, "--bundle", "a.zip")
    assert done.returncode == 0, done.stderr
    root = extracted(tmp_path / "a.zip", tmp_path / "study")
    # Nothing of the earlier figure.
    figures = names(root / "output" / "figures")
    assert figures == ["6.pdf", "6.png", "6.svg"]
    verdicts = json.loads((root / "output" / "verdicts.json").read_text(encoding="utf-8"))
    assert names(root / "output" / "scenarios") == sorted(verdicts["replications"])
    script = (root / "repeat.sh").read_text(encoding="utf-8").splitlines()
    command = "sojourn reproduce predict --figure 6 --replications 1 --out repeated --force"
    assert [line for line in script if line.startswith("sojourn")] == [command]
    assert "compares each Parquet table" in (root / "README.txt").read_text(encoding="utf-8")
    again = repeated(root)
    assert again.returncode == 0, again.stdout + again.stderr
    assert re.search(r"^(\d+) of \1 tables are equal", again.stdout, re.MULTILINE)


def test_the_command_of_a_study_comes_first(study: Path, tmp_path: Path) -> None:
    bundle(study, tmp_path / "a.zip", command="sojourn reproduce mine --full\nrm x")
    with zipfile.ZipFile(tmp_path / "a.zip") as packed:
        lines = packed.read("my study/repeat.sh").decode().splitlines()
    assert lines[:3] == ["#!/bin/sh", lines[1], "set -e"]
    command = r"sojourn reproduce mine --full\nrm x --out repeated --force"
    begin, end = lines.index(command), lines.index("# Compare the tables.")
    assert all(line.startswith("# ") for line in lines[begin + 1 : end - 1])
    assert "# sojourn run scenarios/one.toml --out repeated/scenarios/one --force" in lines


def test_values_of_a_manifest_are_no_commands_of_the_script(study: Path, tmp_path: Path) -> None:
    folder = tmp_path / "study"
    shutil.copytree(study, folder)
    build = sj.Result.load(folder / "scenarios/one").provenance["sojourn"]
    injected = {"version": "1\ntouch a #", "commit": "x\r\ntouch b #"}
    for name in ("one", "two"):
        manifests.edit(folder / "scenarios" / name, {"sojourn": build | injected})
    bundle(folder, tmp_path / "a.zip")
    with zipfile.ZipFile(tmp_path / "a.zip") as packed:
        script = packed.read("study/repeat.sh").decode()
    (comment,) = [line for line in script.splitlines() if "touch" in line]
    assert comment.startswith("# Sojourn 1\\ntouch a")


def test_a_single_result_is_a_bundle_too(result: sj.Result, tmp_path: Path) -> None:
    result.save(tmp_path / "one")
    listed = bundle(tmp_path / "one", tmp_path / "one.zip")
    assert {"output/manifest.json", "scenarios/scenario.toml"} <= set(listed)


class Mine(sj.PythonQueue):
    """A queue without a limit."""

    def __init__(self) -> None:
        self.packets: list[sj.Packet] = []

    def enqueue(self, now: float, packet: sj.Packet) -> None:  # noqa: ARG002
        self.packets.append(packet)

    def dequeue(self, now: float) -> sj.Packet | None:  # noqa: ARG002
        return self.packets.pop(0) if self.packets else None

    def __len__(self) -> int:
        return len(self.packets)


def test_a_queue_in_python_is_in_the_manifest_only(tmp_path: Path) -> None:
    links = {side: sj.Link(rate="1mbit", qdisc=Mine) for side in ("up", "down")}
    ping = sj.Ping(direction="up", interval="100ms")
    scenario = sj.Scenario(links=links, traffic=[ping], rtt="10ms", duration="1s")
    sj.run(scenario, jobs=1).save(tmp_path / "results" / "one")
    listed = bundle(tmp_path / "results", tmp_path / "a.zip")
    assert not any(name.startswith("scenarios/") for name in listed)
    with zipfile.ZipFile(tmp_path / "a.zip") as packed:
        assert b"# output/one: the source of its queue in Python" in packed.read(
            "results/repeat.sh"
        )


@pytest.mark.parametrize("kind", ["file", "directory", "dangling", "fifo"])
def test_nothing_outside_and_nothing_special_is_bundled(
    kind: str, study: Path, tmp_path: Path
) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "file").write_text("secret")
    folder = tmp_path / "study"
    subprocess.run(["/bin/cp", "-r", str(study), str(folder)], check=True)
    place = folder / "scenarios" / "link"
    if kind == "fifo":
        os.mkfifo(place)
    else:
        target = {"file": "secret/file", "directory": "secret", "dangling": "nothing"}[kind]
        place.symlink_to(tmp_path / target)
    what = "special file" if kind == "fifo" else "symbolic link"
    with pytest.raises(sj.ResultError, match=rf"link: is a {what}; a bundle contains only regular"):
        bundle(folder, tmp_path / "a.zip")
    assert names(tmp_path) == ["secret", "study"]


def test_a_link_to_the_directory_itself_is_followed(study: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(study)
    bundle(tmp_path / "link", tmp_path / "a.zip")
    bundle(study, tmp_path / "b.zip")
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()


def test_what_cannot_be_bundled_is_refused(study: Path, tmp_path: Path) -> None:
    cases = [
        (study, "a.rar", r"a\.rar: unknown archive format; expected \.zip, \.tar\.gz or \.tgz"),
        (tmp_path / "none", "a.zip", r"none: not a directory; expected the output directory"),
        (tmp_path, "../a.zip", r"no results; expected the output directory of a study"),
        (study, f"{study}/a.zip", r"cannot write .*: it is inside .*; expected a path outside"),
        (study, "none/a.zip", r"cannot write .*none/a\.zip: .*none is not a directory"),
    ]
    for folder, name, message in cases:
        with pytest.raises(sj.ResultError, match=message):
            bundle(folder, tmp_path / name)
    assert names(tmp_path) == []
    (tmp_path / "a\nb").touch()
    with pytest.raises(sj.ResultError, match="expected a name of printable characters"):
        bundle(tmp_path, tmp_path.parent / "a.zip")


def test_a_damaged_result_is_refused(study: Path, tmp_path: Path) -> None:
    folder = tmp_path / "study"
    subprocess.run(["/bin/cp", "-r", str(study), str(folder)], check=True)
    with (folder / "scenarios" / "two" / "pings.parquet").open("ab") as file:
        file.write(b"x")
    with pytest.raises(sj.DamagedResultError, match=r"two/pings\.parquet"):
        bundle(folder, tmp_path / "a.zip")
    assert names(tmp_path) == ["study"]


def test_a_file_is_replaced_only_on_request_and_as_a_whole(
    study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = tmp_path / "a.zip"
    archive.write_text("mine")
    with pytest.raises(sj.ResultError, match=r"a\.zip: it exists; force replaces it"):
        bundle(study, archive)

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(bundles, "_add", fail)
        with pytest.raises(sj.ResultError, match=r"a\.zip: No space left on device"):
            bundle(study, archive, force=True)
    assert archive.read_text() == "mine"
    assert names(tmp_path) == ["a.zip"]
    bundle(study, archive, force=True)
    assert zipfile.is_zipfile(archive)


def test_a_file_that_changes_while_it_is_read_is_refused(
    study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = bundles._digest  # noqa: SLF001 - the first of the two times that a file is read

    def digest(content: Path | bytes) -> str:
        found = original(content)
        return "0" * 64 if isinstance(content, Path) and content.name == "verdicts.json" else found

    monkeypatch.setattr(bundles, "_digest", digest)
    with pytest.raises(sj.ResultError, match=r"verdicts\.json: changed while it was read"):
        bundle(study, tmp_path / "a.zip")
    assert names(tmp_path) == []


def test_a_file_written_in_parts_is_replaced_as_a_whole(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_text("old")

    def write() -> None:
        with files.replacing(file) as stream:
            stream.write(b"new")
            stream.flush()
            assert file.read_text() == "old"
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write()
    assert file.read_text() == "old"
    assert names(tmp_path) == ["a"]
