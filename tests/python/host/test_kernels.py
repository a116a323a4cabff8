"""Building kernels: the file system of the guest, the folder of kernels, the command."""

import contextlib
import os
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

import sojourn as sj
from sojourn.host import kernels
from support.shell import ROOT, Command


def test_the_folder_is_that_of_the_variable(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("SOJOURN_KERNELS", raising=False)
    assert kernels.default_folder() == tmp_path / "sojourn" / "kernels"
    monkeypatch.setenv("SOJOURN_KERNELS", str(tmp_path / "mine"))
    assert kernels.default_folder() == tmp_path / "mine"


def test_a_build_that_has_not_ended_is_not_listed(tmp_path: Path) -> None:
    (tmp_path / "6.1").mkdir()
    (tmp_path / "6.1" / "linux").touch()
    assert kernels.built(tmp_path) == []
    (tmp_path / "6.1" / "about").write_text("release=6.1.192\nseeded=yes\n")
    (found,) = kernels.built(tmp_path)
    assert (found.version, found.release) == ("6.1", "6.1.192")
    assert (found.seeded, found.modules) == (True, False)


def test_the_queues_of_sojourn_become_a_part_of_the_source(tmp_path: Path) -> None:
    source = tmp_path / "net/sched"
    source.mkdir(parents=True)
    (source / "Makefile").write_text("obj-y := sch_generic.o\n")
    kernels._add_modules(ROOT / "kernel/modules", tmp_path)  # noqa: SLF001 - without a build
    assert (source / "Makefile").read_text().endswith("\nobj-$(SOJOURN_QUEUES) += sojourn/\n")
    rules = (source / "sojourn/Kbuild").read_text()
    assert "obj-y := sch_cocoa.o" in rules
    assert "obj-m" not in rules


def test_the_guest_has_its_programs_and_their_libraries(tmp_path: Path) -> None:
    for name in ("gcc", "cpio", "ip", "tc"):
        if kernels._which(name) is None:  # noqa: SLF001 - as the build finds it
            pytest.skip(f"no program {name} for the file system of a guest")

    def run(words: Sequence[str]) -> None:
        subprocess.run(words, check=True)

    kernels.install_guest(ROOT, tmp_path, run)
    archive = tmp_path / "guest.cpio"
    listed = subprocess.run(
        ["cpio", "-it", "--quiet"],  # noqa: S607 - in PATH
        input=archive.read_bytes(),
        capture_output=True,
        check=True,
    )
    names = listed.stdout.decode().splitlines()
    assert {"init", "sbin/ip", "sbin/tc", "dev/console", "host", "proc"} <= set(names)
    assert any("libc.so" in name for name in names)
    # A directory comes before its files.
    assert all(
        names.index(name.rpartition("/")[0]) < n for n, name in enumerate(names) if "/" in name
    )
    # Without arguments, the launcher says so by its exit code.
    assert subprocess.run([tmp_path / "launch"], check=False).returncode == 2


# A machine with a second process, which the kernel does not end with the first.
MACHINE = ("/bin/sh", "-c", "sleep 1000 & echo $!; wait")


@pytest.fixture
def launcher(tmp_path: Path) -> Path:
    """The program that starts kernels."""
    if kernels._which("gcc") is None:  # noqa: SLF001 - as the build finds it
        pytest.skip("no gcc for the launcher of kernels")
    source = ROOT / "crates/kernel/guest/launch.c"
    program = tmp_path / "launch"
    subprocess.run(["gcc", "-o", program, source], check=True)  # noqa: S607 - in PATH
    return program


def wait_for_end(process: int) -> None:
    state = Path(f"/proc/{process}/stat")
    for _ in range(100):
        if not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z":
            return
        time.sleep(0.05)
    pytest.fail("the child of the machine still runs")


def test_the_launcher_kills_its_group_when_its_input_closes(launcher: Path) -> None:
    words = [launcher, *MACHINE]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, process_group=0
    ) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        sleeper = int(running.stdout.readline())
        # As Ctrl-C, which reaches the whole group of the command: only its end counts.
        os.killpg(running.pid, signal.SIGINT)
        assert Path(f"/proc/{sleeper}").exists()
        running.stdin.close()
        assert running.wait(10) == 130
    wait_for_end(sleeper)


CALLER = """
import subprocess, sys

subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE).wait()
"""


def test_a_machine_ends_when_the_group_of_its_caller_is_killed(launcher: Path) -> None:
    words = [sys.executable, "-c", CALLER, launcher, *MACHINE]
    with subprocess.Popen(words, stdout=subprocess.PIPE, process_group=0) as caller:
        assert caller.stdout is not None
        sleeper = int(caller.stdout.readline())
        os.killpg(caller.pid, signal.SIGKILL)
        try:
            wait_for_end(sleeper)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(sleeper, signal.SIGKILL)


def test_a_version_without_a_source_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(kernels, "TOOLS", {})
    monkeypatch.chdir(ROOT)
    (tmp_path / "mine.toml").touch()
    with tarfile.open(tmp_path / "mine.tar", "w") as packed:
        packed.add(tmp_path / "mine.toml", "mine.toml")
    (tmp_path / "torn.tar").write_bytes(b"torn")
    folder = tmp_path / "kernels"
    expected = "expected 6.1, 6.12, or a directory or .tar file with the source"
    no_source = "not the source of Linux: it has no directory arch/um"
    for source, problem in (
        ("5.4", "no such file or directory"),
        ("", "empty"),
        (f"{tmp_path}", no_source),
        (f"{tmp_path / 'mine.toml'}", "not a .tar file"),
        (f"{tmp_path / 'torn.tar'}", "not a .tar file"),
        (f"{tmp_path / 'mine.tar'}", no_source),
    ):
        with pytest.raises(sj.ScenarioError) as refused:
            kernels.build(source, folder, keep=False, say=lambda _: None)
        assert f"{refused.value}" == f"source={source!r}: {problem}; {expected}"
        assert not folder.exists()


def test_an_archive_that_tar_refuses_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(kernels, "TOOLS", {})
    monkeypatch.chdir(ROOT)
    torn = tmp_path / "torn.tar.xz"
    torn.write_bytes(b"torn")
    with pytest.raises(sj.ResultError, match=r"torn\.tar\.xz: (xz|tar): "):
        kernels.build(f"{torn}", tmp_path / "kernels", keep=False, say=lambda _: None)
    assert list(tmp_path.iterdir()) == [torn]


def test_a_package_that_debian_lacks_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(kernels, "TOOLS", {})
    monkeypatch.setattr(kernels, "DEBIAN_TOOLS", {})
    monkeypatch.chdir(ROOT)
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "apt-cache").write_text("#!/bin/sh\nexit 100\n")
    (programs / "apt-cache").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}")
    with pytest.raises(sj.UnavailableError) as refused:
        kernels.build("6.12", tmp_path / "kernels", keep=False, say=lambda _: None)
    assert f"{refused.value}" == (
        "apt-get finds no package linux-source-6.12; expected Debian 12, or a directory or .tar "
        "file with the source"
    )
    assert not (tmp_path / "kernels").exists()


def test_patches_that_do_not_apply_to_a_source_are_left_out(tmp_path: Path) -> None:
    if kernels._which("patch") is None:  # noqa: SLF001 - as the build finds it
        pytest.skip("no program patch")
    tree = tmp_path / "linux-9.9"
    for name, text in {
        "arch/um/Kconfig": "\n\n\nconfig HZ\n\tint\n\tdefault 100\n\nconfig NR_CPUS\n\tint\n\n",
        # A timer that has another name in this version.
        "net/sched/sch_red.c": "\ttimer_delete(&q->adapt_timer);\n",
    }.items():
        (tree / name).parent.mkdir(parents=True)
        (tree / name).write_text(text)
    archive = tmp_path / "linux.tar"
    with tarfile.open(archive, "w") as packed:
        packed.add(tree, "linux-9.9")
    work = tmp_path / "work"
    work.mkdir()
    said: list[str] = []
    steps = kernels._Steps(work / "log")  # noqa: SLF001 - without the rest of a build
    source = kernels._source(str(archive), ROOT, work, steps, said.append)  # noqa: SLF001
    assert "default 1000" in (source / "arch/um/Kconfig").read_text()
    assert (source / "net/sched/sch_red.c").read_text() == "\ttimer_delete(&q->adapt_timer);\n"
    reason = "which does not apply to this source"
    assert said[1:] == [
        f"leaving out 0001-um-seed-random-numbers.patch, {reason}: runs will not be deterministic",
        f"leaving out 0003-sch-red-adaptive.patch, {reason}",
    ]


def test_a_package_that_an_interrupted_build_left_is_removed(tmp_path: Path) -> None:
    (tmp_path / "linux-source-6.12_6.12.1-1_all.deb").touch()
    new = tmp_path / "linux-source-6.12_6.12.2-1_all.deb"

    class Steps(kernels._Steps):  # noqa: SLF001 - without a network
        def run(self, words: Sequence[str], *, cwd: Path | None = None) -> None:
            if words[0] == "apt-get" and cwd == tmp_path:
                new.touch()
            else:
                raise sj.ResultError(" ".join(words[:3]))

    steps = Steps(tmp_path / "log")
    with pytest.raises(sj.ResultError, match=f"^dpkg -x {new}$"):
        kernels._source("6.12", ROOT, tmp_path, steps, lambda _: None)  # noqa: SLF001


def test_missing_programs_are_named_with_their_packages(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(kernels, "TOOLS", {"no-such-compiler": "gcc-none", "sh": "dash"})
    monkeypatch.chdir(ROOT)
    with pytest.raises(sj.UnavailableError, match=r"install the Debian packages gcc-none$"):
        kernels.build("6.1", tmp_path, keep=False, say=lambda _: None)


def test_the_command_says_where_kernels_are(
    sojourn: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SOJOURN_KERNELS", str(tmp_path))
    done = sojourn("kernel", "ls")
    assert done.stdout == f"no kernel in {tmp_path}; to build one: sojourn kernel build 6.12\n"
    (tmp_path / "6.12").mkdir()
    (tmp_path / "6.12" / "about").write_text("release=6.12.117\nseeded=no\n")
    assert "linux-6.12" in sojourn("kernel", "ls").stdout
    assert sojourn("kernel", "build", "6.12").stdout.startswith("linux-6.12 exists in ")


def test_without_a_kernel_a_run_says_how_to_build_one(
    sojourn: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if "linux-6.12" not in sj._core.backend_names():  # noqa: SLF001 - the names of all places
        pytest.skip("no place linux-6.12: User-Mode Linux needs Linux on x86-64")
    monkeypatch.setenv("SOJOURN_KERNELS", str(tmp_path))
    done = sojourn("compare", "pfifo", "codel", "--on", "linux-6.12", "--replications", "1")
    assert done.returncode == 3, done.stderr
    assert "to build it: sojourn kernel build 6.12" in done.stderr


def need_kernel() -> None:
    """Skip the test if no kernel 6.12 was built."""
    if "6.12" not in {one.version for one in kernels.built(kernels.default_folder())}:
        pytest.skip("no kernel: `sojourn kernel build 6.12` builds one")


SHORT = """
name = "short"
duration = "5s"
warmup = "1s"
rtt = "20ms"
replications = 2
[links.down]
rate = "10mbit"
qdisc = "fq_codel"
[links.up]
rate = "5mbit"
qdisc = "fq_codel"
[[traffic]]
type = "tcp"
direction = "down"
[[traffic]]
type = "ping"
direction = "up"
interval = "20ms"
"""


def test_agree_shows_the_kernel_beside_the_simulator(sojourn: Command, tmp_path: Path) -> None:
    need_kernel()
    (tmp_path / "a.toml").write_text(SHORT)
    done = sojourn("agree", "a.toml", "--on", "sim,linux-6.12", "--out", "both")
    assert done.returncode == 0, done.stderr
    assert "Simulated and linux-6.12: " in done.stdout
    compared = sj.Agreement(*(sj.Result.load(tmp_path / "both" / n) for n in ("sim", "linux-6.12")))
    assert compared.place == "linux-6.12"
    assert compared.measured.provenance["backend"]["kernel"].startswith("6.12.")
    judged = compared.table.filter(metric="goodput_down_mbit_per_s")
    assert judged["verdict"].item() == "agrees"


@pytest.mark.slow
def test_a_result_of_the_kernel_repeats(sojourn: Command, tmp_path: Path) -> None:
    need_kernel()
    (tmp_path / "a.toml").write_text(SHORT)
    for name in ("one", "two"):
        done = sojourn("run", "a.toml", "--on", "linux-6.12", "--fresh", "--out", name)
        assert done.returncode == 0, done.stderr
    one, two = (sj.Result.load(tmp_path / name) for name in ("one", "two"))
    assert one.flows.equals(two.flows)
    assert one.links.equals(two.links)
