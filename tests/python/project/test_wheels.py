"""What is wrong with a wheel is found before it is published."""

import io
import tarfile
import zipfile
from pathlib import Path

import pytest
import wheels

NAME = "sojourn-0.1.0-cp311-abi3-manylinux_2_17_x86_64.manylinux2014_x86_64.whl"
LIBRARY = "sojourn/_core.abi3.so"


def wheel(folder: Path, name: str = NAME, **files: bytes) -> Path:
    """Write a wheel with the library and other files."""
    file = folder / name
    with zipfile.ZipFile(file, "w") as archive:
        for path, content in {LIBRARY: b"", **files}.items():
            archive.writestr(path, content)
    return file


@pytest.fixture(autouse=True)
def _needs(monkeypatch: pytest.MonkeyPatch) -> None:
    # llvm-readobj is not on every machine; its output is read by the test of real libraries.
    monkeypatch.setattr(wheels, "needed_libraries", lambda library: library.decode().split())


def test_a_sound_wheel_has_no_fault(tmp_path: Path) -> None:
    sound = wheel(tmp_path, **{LIBRARY: b"libc.so.6 libm.so.6 ld-linux-x86-64.so.2"})
    assert wheels.faults(sound) == []
    assert wheels.main(["--check", str(sound)]) == 0


def test_the_tags_of_a_wheel_have_no_order(tmp_path: Path) -> None:
    tags = "manylinux_2_17_aarch64", "manylinux2014_aarch64"
    for order in (tags, tags[::-1]):
        name = f"sojourn-0.1.0-cp311-abi3-{'.'.join(order)}.whl"
        sound = wheel(tmp_path, name, **{LIBRARY: b"libc.so.6 ld-linux-aarch64.so.1"})
        assert wheels.faults(sound) == []


def test_a_library_that_systems_lack_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = wheels.faults(wheel(tmp_path, **{LIBRARY: b"libc.so.6 libzstd.so.1"}))
    assert found == [f"{NAME}: needs libzstd.so.1"]
    mac = NAME.replace("manylinux_2_17_x86_64.manylinux2014_x86_64", "macosx_11_0_arm64")
    linked = b"/usr/lib/libSystem.B.dylib /opt/homebrew/lib/libzstd.1.dylib"
    # The names that systems have come with zig, which only make wheels installs.
    monkeypatch.setattr(wheels, "unknown_symbols", lambda library: ["_ZSTD_x"] * bool(library))
    found = wheels.faults(wheel(tmp_path, mac, **{LIBRARY: linked}))
    assert found == [
        f"{mac}: needs /opt/homebrew/lib/libzstd.1.dylib",
        f"{mac}: needs the symbol _ZSTD_x",
    ]


def test_files_under_the_gpl_are_named(tmp_path: Path) -> None:
    notice = b"/* SPDX-License-Identifier: GPL-2.0-only */"
    found = wheels.faults(wheel(tmp_path, **{"sojourn/sch.c": notice}))
    assert found == [f"{NAME}: sojourn/sch.c is under the GPL"]
    sdist = tmp_path / "sojourn-0.1.0.tar.gz"
    with tarfile.open(sdist, "w:gz") as archive:
        member = tarfile.TarInfo("sojourn-0.1.0/sch.c")
        member.size = len(notice)
        archive.addfile(member, io.BytesIO(notice))
    assert wheels.main(["--check", str(sdist)]) == 1


def test_a_wheel_of_an_unknown_platform_or_without_a_library_is_refused(tmp_path: Path) -> None:
    (text,) = wheels.faults(wheel(tmp_path, NAME.replace("manylinux_2_17", "linux")))
    assert "expected one library" in text
    empty = tmp_path / NAME
    with zipfile.ZipFile(empty, "w"):
        pass
    assert "expected one library" in wheels.faults(empty)[0]


def test_a_large_wheel_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wheels, "MOST_BYTES", 10)
    assert "expected at most 10" in wheels.faults(wheel(tmp_path))[0]


def test_an_unknown_platform_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        wheels.main(["macos"])
    assert "expected linux-x86_64, linux-aarch64" in capsys.readouterr().err
