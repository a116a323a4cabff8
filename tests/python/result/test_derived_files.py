"""Where reports and figures go: what they replace, how they are written, what lists them."""

import hashlib
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

import sojourn as sj
from sojourn import _core, files, report
from sojourn.plot import figures
from sojourn.result import storage
from support.manifests import edit
from support.saved import names, refused, scenario
from support.shell import Command, environment
from support.stored import study

LIMIT_BYTES = 8192


def limited(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run the command as if the disk were full after a few kilobytes of a file."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT_BYTES, LIMIT_BYTES))

    return subprocess.run(
        [sys.executable, "-B", "-m", "sojourn", *arguments],
        cwd=cwd,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        preexec_fn=limit,
    )


def test_reports_and_figures_of_a_replaced_result_are_removed(tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = sj.run(scenario())
    first.save(out)
    report.write(first, out / "report.html")
    figures.save(sj.plot_cdf(first), out / "cdf.png", first)
    figures.save(sj.plot_cdf(first), out / "edited.png", first)
    (out / "edited.png").write_bytes(b"mine")
    (out / "notes.md").write_text("mine", encoding="utf-8")
    page = (out / "report.html").read_text(encoding="utf-8")
    assert f'<meta name="sojourn-manifest" content="{first.manifest_sha256}">' in page
    first.save(out)
    assert (out / "report.html").exists()
    sj.run(scenario(seed=2)).save(out, force=True)
    left = {name for name in names(out) if not name.endswith(".parquet")}
    # The list of reports and figures is removed with the last of them.
    assert left == {"edited.png", "manifest.json", "notes.md"}


def test_the_list_of_reports_stays_while_one_of_them_does(tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = sj.run(scenario())
    first.save(out)
    report.write(first, out / "report.html")
    first.save(out)
    assert (out / ".sojourn-derived.json").exists()
    (out / "report.html").unlink()
    first.save(out)
    assert not (out / ".sojourn-derived.json").exists()
    report.write(first, out / "report.html")
    with storage.claimed(out, force=True) as claim:
        assert claim is not None
        sj.run(scenario(seed=2)).save_claimed(claim)
    assert not (out / "report.html").exists()
    assert not (out / ".sojourn-derived.json").exists()


def test_a_report_has_no_suffix_of_another_format(sojourn: Command, file: Path) -> None:
    for name in ("r.pdf", "r.tex", "r.PNG"):
        why = f"cannot write {name}: a report is HTML; expected a name such as report.html"
        refused(sojourn("run", str(file), "--report", name), why)


@pytest.mark.parametrize("name", ["one.toml", "out/manifest.json", "out/flows.parquet", "notes"])
def test_a_report_replaces_nothing_but_a_report(
    tmp_path: Path, sojourn: Command, file: Path, name: str
) -> None:
    sj.run(scenario()).save(tmp_path / "out")
    (tmp_path / "notes").write_text("mine", encoding="utf-8")
    before = (tmp_path / name).read_bytes()
    refused(sojourn("run", str(file), "--report", name), f"cannot write {name}: ")
    refused(sojourn("report", "out", "--report", name), f"cannot write {name}: ")
    assert (tmp_path / name).read_bytes() == before
    assert sj.Result.load(tmp_path / "out").complete


def test_a_report_is_no_file_of_a_result_that_does_not_exist_yet(
    tmp_path: Path, sojourn: Command, file: Path
) -> None:
    done = sojourn("run", str(file), "--out", "out", "--report", "out/manifest.json")
    refused(done, "cannot write out/manifest.json: a report is HTML")
    assert not (tmp_path / "out" / "manifest.json").exists()


def test_reports_replace_reports_whole_or_not_at_all(tmp_path: Path, sojourn: Command) -> None:
    sj.run(scenario()).save(tmp_path / "out")
    assert sojourn("report", "out", "--report", "keep.html").returncode == 0
    before = (tmp_path / "keep.html").read_bytes()
    assert len(before) > LIMIT_BYTES
    refused(limited("report", "out", "--report", "keep.html", cwd=tmp_path), "keep.html")
    assert (tmp_path / "keep.html").read_bytes() == before
    assert names(tmp_path) == ["keep.html", "out"]
    (tmp_path / "link.html").symlink_to("keep.html")
    assert sojourn("report", "out", "--report", "link.html").returncode == 0
    assert (tmp_path / "link.html").is_symlink()


def test_reports_allow_nothing_to_be_loaded(tmp_path: Path) -> None:
    report.write(sj.run(scenario()), tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    assert policy[1] == "default-src 'none'; style-src 'unsafe-inline'"


def test_a_figure_is_not_written_to_a_device(tmp_path: Path) -> None:
    result = sj.run(scenario())
    (tmp_path / "zero.png").symlink_to("/dev/zero")
    with pytest.raises(sj.ResultError, match="not a regular file"):
        figures.save(sj.plot_cdf(result), tmp_path / "zero.png", result)


def foreign(folder: Path) -> Path:
    """Save a result as someone else might have, and return its directory."""
    sj.run(scenario()).save(folder / "foreign")
    return folder / "foreign"


def test_the_list_of_reports_follows_no_link(tmp_path: Path, sojourn: Command) -> None:
    victim = tmp_path / "victim.txt"
    victim.write_text("mine", encoding="utf-8")
    place = foreign(tmp_path)
    (place / ".sojourn-derived.json").symlink_to(victim)
    done = sojourn("report", "foreign")
    assert done.returncode == 0, done.stderr
    assert victim.read_text(encoding="utf-8") == "mine"
    index = place / ".sojourn-derived.json"
    assert not index.is_symlink()
    assert list(json.loads(index.read_text(encoding="utf-8"))) == ["report.html"]


@pytest.mark.parametrize("content", [None, "", "<!doctype html>"])
def test_a_report_in_a_foreign_directory_follows_no_link_out_of_it(
    tmp_path: Path, sojourn: Command, content: str | None
) -> None:
    place = foreign(tmp_path)
    victim = tmp_path / "victim.html"
    if content is not None:
        victim.write_text(content, encoding="utf-8")
    (place / "report.html").symlink_to(victim)
    expected = "cannot write foreign/report.html: it is a link that leads out of foreign"
    refused(sojourn("report", "foreign"), expected)
    if content is None:
        assert not victim.exists()
    else:
        assert victim.read_text(encoding="utf-8") == content


def test_reproduce_follows_no_link_out_of_its_directory(tmp_path: Path, sojourn: Command) -> None:
    study(tmp_path, replications=1)
    arguments = ("reproduce", "small", "--papers", "papers", "--out", "study")
    assert sojourn(*arguments).returncode == 0
    page = tmp_path / "study" / "scenarios" / "many" / "report.html"
    page.unlink()
    page.symlink_to(tmp_path / "new.html")
    done = sojourn(*arguments, "--force")
    assert done.returncode == 3, done.stderr
    place = "study/scenarios/many"
    assert f"{place}/report.html: it is a link that leads out of {place}" in done.stderr
    assert not (tmp_path / "new.html").exists()


def test_a_link_within_a_result_does_not_lead_to_a_file_of_it(
    tmp_path: Path, sojourn: Command
) -> None:
    place = foreign(tmp_path)
    (place / "report.html").symlink_to("new.json")
    refused(sojourn("report", "foreign"), "cannot write foreign/report.html: a report is HTML")
    assert not (place / "new.json").exists()


DEEP = b"[" * 100_000


@pytest.mark.parametrize("content", [DEEP, b"\xff", b"[]", b"{", b" " * (1 << 20) + b"{}"])
def test_a_damaged_list_of_reports_counts_as_empty(
    tmp_path: Path, sojourn: Command, content: bytes
) -> None:
    place = foreign(tmp_path)
    (place / ".sojourn-derived.json").write_bytes(content)
    done = sojourn("report", "foreign")
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    index = json.loads((place / ".sojourn-derived.json").read_text(encoding="utf-8"))
    assert list(index) == ["report.html"]


def test_json_is_read_from_small_regular_files_only(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text('{"a": 1}', encoding="utf-8")
    assert files.read_json(file, 8) == {"a": 1}
    with pytest.raises(ValueError, match="too large; expected at most 7 bytes"):
        files.read_json(file, 7)
    file.write_bytes(DEEP)
    with pytest.raises(ValueError, match="nested too deeply"):
        files.read_json(file, len(DEEP))
    (tmp_path / "link").symlink_to(file)
    os.mkfifo(tmp_path / "fifo")
    for name, problem in (("link", "symbolic link"), ("fifo", "not a regular"), (".", "directory")):
        with pytest.raises(_core.NotRegularError, match=problem):
            files.read_json(tmp_path / name, 8, follow=False)


def test_reports_are_written_at_the_same_time(tmp_path: Path) -> None:
    """Many processes write the same report and others into a directory; all of them are listed."""
    foreign(tmp_path)
    program = textwrap.dedent("""
        import sys
        import sojourn as sj
        from sojourn import report

        result = sj.Result.load("foreign")
        for turn in range(12):
            report.write(result, "foreign/report.html")
            report.write(result, f"foreign/{sys.argv[1]}-{turn}.html")
    """)
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", program, f"{number}"],
            cwd=tmp_path,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(4)
    ]
    for writer in writers:
        _, err = writer.communicate(timeout=120)
        assert writer.returncode == 0, err
    index = json.loads((tmp_path / "foreign/.sojourn-derived.json").read_text(encoding="utf-8"))
    others = {f"{number}-{turn}.html" for number in range(4) for turn in range(12)}
    assert set(index) == {"report.html", *others}
    assert not [name for name in names(tmp_path / "foreign") if ".sojourn-tmp" in name]


def test_files_of_dead_writers_are_removed_and_those_of_living_ones_stay(tmp_path: Path) -> None:
    program = textwrap.dedent("""
        import sys
        from sojourn import files
        with files.replacing("page.html") as stream:
            stream.write(b"late")
            print("writing", flush=True)
            sys.stdin.read()
    """)
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", program],
            cwd=tmp_path,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "writing\n"
    assert len(list(tmp_path.glob(".sojourn-tmp-*"))) == 2
    dead, alive = writers
    dead.kill()
    dead.communicate(timeout=60)
    files.replace(tmp_path / "page.html", b"soon")
    assert (tmp_path / "page.html").read_bytes() == b"soon"
    assert len(list(tmp_path.glob(".sojourn-tmp-*"))) == 1
    alive.communicate("", timeout=60)
    assert alive.returncode == 0
    assert (tmp_path / "page.html").read_bytes() == b"late"
    assert names(tmp_path) == ["page.html"]


def test_a_file_is_replaced_in_a_directory_that_cannot_be_listed(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir()
    program = "from sojourn import files; files.replace('closed/page.html', b'new')"
    command = [sys.executable, "-c", program]
    if os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("root may read any directory, and there is no setpriv")
        drop = "-dac_override,-dac_read_search"
        command = ["setpriv", f"--inh-caps={drop}", f"--bounding-set={drop}", *command]
    closed.chmod(0o300)
    try:
        done = subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
        )
    finally:
        closed.chmod(0o755)
    assert done.returncode == 0, done.stderr
    assert names(closed) == ["page.html"]


def test_a_report_keeps_its_permissions(tmp_path: Path, sojourn: Command) -> None:
    place = foreign(tmp_path)
    assert sojourn("report", "foreign").returncode == 0
    page = place / "report.html"
    assert page.stat().st_mode & 0o777 == 0o666 & ~_umask()
    page.chmod(0o600)
    assert sojourn("report", "foreign").returncode == 0
    assert page.stat().st_mode & 0o777 == 0o600
    page.chmod(0o640)
    assert sojourn("report", "foreign").returncode == 0
    assert page.stat().st_mode & 0o777 == 0o640


def _umask() -> int:
    umask = os.umask(0)
    os.umask(umask)
    return umask


def test_a_report_loads_only_what_fits_its_memory(sojourn: Command, tmp_path: Path) -> None:
    """A table of equal rows has a small file and needs gigabytes."""
    folder = tmp_path / "r"
    sj.run(scenario()).save(folder)
    assert sojourn("report", "r").returncode == 0
    file = folder / "link_series.parquet"
    one = parquet.read_table(file).slice(0, 1)
    part = one.take(pa.array([0] * 1_000_000))
    with parquet.ParquetWriter(file, one.schema, compression="zstd") as writer:
        for _ in range(20):
            writer.write_table(part, row_group_size=1_000_000)
    tables = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["tables"]
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    tables["link_series"] |= {"rows": 20_000_000, "sha256": digest}
    edit(folder, {"tables": tables})
    done = sojourn("report", "r")
    assert done.returncode == 4, done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("sojourn: r/link_series.parquet: has 20000000 rows; expected at most")
    assert line.endswith("a report needs 4 times the memory; see --max-memory")
    for least in ("10kb", "0b"):
        done = sojourn("report", "r", "--max-memory", least)
        assert "r/flows.parquet: " in done.stderr
        assert done.returncode == 4
    sj.sweep(scenario(), {"rtt": "10ms"}).save(tmp_path / "s")
    assert sojourn("report", "s", "--max-memory", "1gb").returncode == 0
    done = sojourn("report", "s", "--max-memory", "0b")
    assert done.returncode == 4, done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("sojourn: s/runs.parquet: damaged: has 1 rows; expected at most 0, ")
    assert line.endswith("a report needs 4 times the memory; see --max-memory")
