"""The doctor: readings of a machine, and what they mean for live runs."""

import json
import os
import platform
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sojourn import _core
from sojourn.cli import namespaces
from sojourn.cli.app import app
from sojourn.host import checks, facts, probe
from sojourn.host.checks import Check, Verdict, assess, possible
from sojourn.host.facts import Readings
from support.live_runs import need_live_runs
from support.shell import Command, environment

GIB = 1 << 30
CATALOGUE = [entry["name"] for entry in json.loads(_core.cc_catalogue())]
# A machine without limitations.
GOOD = Readings(
    system="Linux",
    release="6.18",
    backends=["sim", "live"],
    is_root=False,
    attempts={name: None for name in probe.NAMES if name != "veth_pair"},
    tun_exists=True,
    tun_writable=True,
    veth=True,
    controls=CATALOGUE,
    loadable=[],
    clock="tsc",
    clocks=["tsc", "hpet"],
    resolution_s=1e-9,
    nice_limit=-20,
    realtime_limit=0,
    processors=4,
    load=0.5,
    default_qdisc="fq_codel",
    tools=dict.fromkeys(facts.TOOLS, "/usr/bin/tool"),
    kernels=["linux-6.12"],
    store="/home/me/runs",
    free_bytes=5 * GIB,
    memory_bytes=2 * GIB,
)


def of(found: Readings, name: str) -> Check:
    """The check of this name."""
    (one,) = [check for check in assess(found) if check.name == name]
    return one


def tried(**errors: str | None) -> dict[str, str | None]:
    """Attempts of a machine with TUN devices, with these errors."""
    return {**{name: None for name in probe.NAMES if name != "veth_pair"}, **errors}


def without_tun(**errors: str | None) -> dict[str, Any]:
    """Readings of a machine on which /dev/net/tun does not exist."""
    found = {**tried(tun_file="No such file or directory"), "veth_pair": None, **errors}
    found.pop("tun_device")
    return {"tun_exists": False, "tun_writable": False, "attempts": found}


def test_a_good_machine_has_no_remedies() -> None:
    found = assess(replace(GOOD, is_root=True))
    assert {check.verdict for check in found} == {Verdict.OK}
    assert not any(check.remedy for check in found)
    assert possible(found)
    assert len({check.name for check in found}) == len(found)


# A change of the readings, the check that it concerns, its verdict, a part of its finding, and of
# its remedy.
CASES: list[tuple[dict[str, Any], str, str, str, str]] = [
    ({"system": "Darwin"}, "operating system", "missing", "Darwin 6.18", "live runs need Linux"),
    ({"backends": ["sim"]}, "live backend", "missing", "sim", "build of Sojourn for Linux"),
    (
        {"attempts": tried(user_namespace="cannot create: no; allow it")},
        "network namespaces",
        "missing",
        "cannot create: no",
        "allow it",
    ),
    (
        {"attempts": tried(user_namespace="no")},
        "network namespaces",
        "missing",
        "no",
        "run as root",
    ),
    (
        {"attempts": tried(network_namespace="Operation not permitted")},
        "network namespaces",
        "missing",
        "Operation not permitted",
        "--cap-add SYS_ADMIN",
    ),
    (
        {"attempts": {}, "probe_failure": "exit code 1"},
        "network namespaces",
        "missing",
        "not tried: exit code 1",
        "python -m sojourn.host.probe",
    ),
    ({"is_root": True}, "network namespaces", "ok", "as root", ""),
    ({"is_root": True, "nice_limit": 0}, "priority", "ok", "root", ""),
    (without_tun(), "/dev/net/tun", "limited", "live runs use veth devices", "modprobe tun"),
    (without_tun(), "veth devices", "ok", "a pair can be created", ""),
    (without_tun(), "packet sockets", "ok", "available", ""),
    (without_tun(veth_pair="no"), "/dev/net/tun", "missing", "does not exist", "modprobe tun"),
    (without_tun(packet_socket="no"), "/dev/net/tun", "missing", "does not exist", "modprobe tun"),
    (without_tun(veth_pair="no"), "veth devices", "missing", "a pair: no", "modprobe veth"),
    (without_tun(packet_socket="no"), "packet sockets", "missing", "no", "/dev/net/tun"),
    (
        {**without_tun(), "tun_exists": True},
        "/dev/net/tun",
        "limited",
        "not readable",
        "chmod 666",
    ),
    (
        {**without_tun(tun_file="No such device"), "tun_exists": True, "tun_writable": True},
        "/dev/net/tun",
        "limited",
        "cannot be opened: No such device",
        "modprobe tun",
    ),
    # The backend uses TUN devices where it can open the file, whatever follows.
    (
        {"attempts": tried(tun_device="Device or resource busy")},
        "/dev/net/tun",
        "missing",
        "cannot create a device: Device or resource busy",
        "modprobe tun",
    ),
    (
        {"attempts": {"network_namespace": "no", "tun_file": None}},
        "/dev/net/tun",
        "ok",
        "no device was created",
        "",
    ),
    ({"attempts": {}, "probe_failure": "no"}, "/dev/net/tun", "ok", "can be opened", ""),
    ({"attempts": {}, "probe_failure": "no"}, "packet sockets", "ok", "not tried", ""),
    (
        {"attempts": {}, "probe_failure": "no", "tun_exists": False},
        "veth devices",
        "ok",
        "no pair was created",
        "",
    ),
    (
        {"attempts": {}, "probe_failure": "no", "tun_exists": False, "veth": False},
        "veth devices",
        "missing",
        "no module",
        "modprobe veth",
    ),
    ({"attempts": tried(packet_socket="no")}, "packet sockets", "ok", "not available: no", ""),
    ({"veth": False}, "veth devices", "ok", "no module", ""),
    ({"veth": None}, "veth devices", "ok", "unknown", ""),
    ({"controls": None}, "congestion controls", "limited", "cannot be read", "mount /proc"),
    ({"controls": []}, "congestion controls", "ok", "loaded: none", ""),
    (
        {"controls": ["reno"], "loadable": ["vegas"]},
        "control vegas",
        "limited",
        "not loaded",
        "modprobe tcp_vegas",
    ),
    (
        {"controls": ["reno"], "loadable": None},
        "control dctcp",
        "limited",
        "not loaded",
        "modprobe tcp_dctcp",
    ),
    (
        {"controls": ["reno"], "loadable": []},
        "control bbr",
        "missing",
        "not in this kernel",
        "a kernel with the module tcp_bbr",
    ),
    ({"controls": ["reno"]}, "control prague", "missing", "not in Linux", "L4STeam"),
    ({"clock": None}, "clock source", "limited", "cannot be read", "mount /sys"),
    ({"clock": "acpi_pm"}, "clock source", "limited", "acpi_pm: slow", "echo tsc >"),
    ({"clock": "hpet", "clocks": []}, "clock source", "limited", "hpet", "tsc=reliable"),
    ({"clock": "kvm-clock"}, "clock source", "ok", "kvm-clock", ""),
    ({"resolution_s": None}, "timer resolution", "limited", "cannot be read", ""),
    ({"resolution_s": 4e-3}, "timer resolution", "limited", "4 ms", "CONFIG_HIGH_RES_TIMERS"),
    ({"nice_limit": None}, "priority", "limited", "cannot be read", ""),
    ({"nice_limit": 0}, "priority", "limited", "nice down to 0", "limits.conf"),
    ({"processors": None}, "processors", "limited", "unknown", ""),
    ({"processors": 1}, "processors", "limited", "1, load 0.50", "two processors"),
    ({"load": 3.5}, "processors", "limited", "4, load 3.50", "end other programs"),
    ({"load": None}, "processors", "ok", "load unknown", ""),
    ({"default_qdisc": None}, "default qdisc", "ok", "unknown", ""),
    ({}, "bridge and interop", "limited", "not as this user", "as root"),
    ({"kernels": []}, "kernels for --on", "missing", "none", "sojourn kernel build"),
    ({"tools": {"tc": None}}, "tc", "missing", "not in PATH", "install iproute2"),
    ({"store": None, "store_error": "no home"}, "run store", "limited", "no home", "SOJOURN_STORE"),
    ({"store_error": "read-only"}, "run store", "limited", "read-only", "SOJOURN_STORE"),
    ({"free_bytes": None}, "run store", "ok", "writable", ""),
    ({"free_bytes": 1 << 20}, "run store", "limited", "0.0 GiB free", "another disk"),
    ({"memory_bytes": None}, "memory for runs", "ok", "no limit known", ""),
    ({"memory_bytes": 1 << 28}, "memory for runs", "limited", "0.2 GiB", "raise the limit"),
]


@pytest.mark.parametrize(("changes", "name", "verdict", "finding", "remedy"), CASES)
def test_every_limitation_has_its_verdict_and_remedy(
    changes: dict[str, Any], name: str, verdict: str, finding: str, remedy: str
) -> None:
    one = of(replace(GOOD, **changes), name)
    assert one.verdict == verdict
    assert finding in one.finding
    assert remedy in one.remedy
    assert bool(one.remedy) == bool(remedy)


@pytest.mark.parametrize(
    ("changes", "is_possible"),
    [
        ({"system": "Darwin", "backends": ["sim"]}, False),
        ({"attempts": tried(network_namespace="no")}, False),
        (without_tun(), True),
        (without_tun(veth_pair="Operation not supported"), False),
        (without_tun(packet_socket="Operation not permitted"), False),
        ({"attempts": tried(packet_socket="Operation not permitted"), "veth": False}, True),
        ({"attempts": tried(tun_device="Device or resource busy"), "veth": True}, False),
        ({"controls": ["reno"], "tools": {"tc": None}, "clock": "hpet"}, True),
    ],
)
def test_only_what_live_runs_need_makes_them_impossible(
    changes: dict[str, Any], *, is_possible: bool
) -> None:
    assert possible(assess(replace(GOOD, **changes))) is is_possible


def test_another_system_has_no_checks_of_linux() -> None:
    mac = Readings(system="Darwin", release="24.1", backends=["sim"], resolution_s=1e-9)
    names = [check.name for check in assess(mac)]
    assert "operating system" in names
    assert not {"/dev/net/tun", "clock source", "network namespaces"} & set(names)


def test_files_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {
        "proc/sys/net/ipv4/tcp_available_congestion_control": "reno cubic\n",
        "proc/sys/net/core/default_qdisc": "fq\n",
        "proc/loadavg": "0.75 0.5 0.2 1/100 4242\n",
        "sys/devices/system/clocksource/clocksource0/current_clocksource": "hpet\n",
        "sys/devices/system/clocksource/clocksource0/available_clocksource": "tsc hpet \n",
        "dev/net/tun": "",
        "lib/modules/6.1/modules.builtin": "kernel/net/ipv4/tcp_cubic.ko\n",
        "lib/modules/6.1/modules.dep": (
            "kernel/net/ipv4/tcp_vegas.ko.zst: kernel/x.ko\nkernel/drivers/net/veth.ko.xz:\n"
        ),
    }
    for name, text in texts.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    monkeypatch.setattr(platform, "release", lambda: "6.1")
    monkeypatch.setattr(facts, "attempts", lambda: ({}, "not tried"))
    found = facts.read(tmp_path)
    assert found.controls == ["reno", "cubic"]
    assert found.loadable == ["cubic", "vegas"]
    assert found.veth is True
    assert (found.clock, found.clocks) == ("hpet", ["tsc", "hpet"])
    assert (found.default_qdisc, found.load) == ("fq", 0.75)
    assert found.tun_exists
    assert found.tun_writable


def test_missing_files_are_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts, "attempts", lambda: ({}, "not tried"))
    found = facts.read(tmp_path)
    unknown = (found.controls, found.loadable, found.clock, found.load, found.veth)
    assert set(unknown) == {None}
    assert found.default_qdisc is None
    assert not found.tun_exists
    assert not possible(assess(found))


def test_a_store_that_cannot_be_written_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(facts, "attempts", lambda: ({}, None))
    monkeypatch.setenv("SOJOURN_STORE", str(tmp_path / "new" / "store"))
    found = facts.read()
    assert found.store_error is None
    assert found.free_bytes
    (tmp_path / "new").write_text("a file")
    assert "not a directory" in str(facts.read().store_error)
    (tmp_path / "new").unlink()
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert "no permission" in str(facts.read().store_error)


def test_limits_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = SimpleNamespace(
        RLIMIT_NICE=13,
        RLIMIT_RTPRIO=14,
        RLIM_INFINITY=-1,
        getrlimit=lambda n: ({13: 0, 14: -1}[n], 0),
    )
    monkeypatch.setitem(sys.modules, "resource", limits)
    assert facts.limits() == (0, 99)
    monkeypatch.setitem(
        sys.modules, "resource", SimpleNamespace(**{**vars(limits), "getrlimit": lambda _: (40, 0)})
    )
    assert facts.limits() == (-20, 40)
    # macOS has neither limit.
    monkeypatch.setitem(sys.modules, "resource", SimpleNamespace(RLIM_INFINITY=-1))
    assert facts.limits() == (None, None)
    monkeypatch.setitem(sys.modules, "resource", None)
    assert facts.limits() == (None, None)


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("import sys; sys.exit('Traceback\\nImportError: no x')", "ImportError: no x"),
        ("import sys; sys.exit(7)", "exit code 7"),
        ("print('no JSON')", "Expecting value"),
        ("import time; time.sleep(60)", "no answer within 1 s"),
    ],
)
def test_a_probe_that_fails_is_reported(
    program: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = subprocess.run

    def run(_command: list[str], **options: Any) -> Any:
        return real([sys.executable, "-c", program], **options)

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(facts, "PROBE_S", 1.0)
    found, failure = facts.attempts()
    assert not found
    assert reason in str(failure)


def test_the_probe_names_the_error_of_each_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    def not_allowed() -> None:
        raise PermissionError(1, "Operation not permitted")

    def unavailable() -> None:
        message = "live runs need Linux"
        raise _core.UnavailableError(message)

    monkeypatch.setattr(_core, "enter_user_namespace", unavailable)
    monkeypatch.setattr(probe, "network_namespace", not_allowed)
    monkeypatch.setattr(probe, "tun_file", not_allowed)
    monkeypatch.delattr(socket, "AF_PACKET", raising=False)
    monkeypatch.delattr(socket, "AF_NETLINK", raising=False)
    errors: dict[str, str | None] = {
        "user_namespace": "live runs need Linux",
        "network_namespace": "Operation not permitted",
        "tun_file": "Operation not permitted",
        "packet_socket": "not supported by this Python",
    }
    # Without a new network namespace, no device is created.
    assert probe.attempts() == errors
    monkeypatch.setattr(probe, "network_namespace", lambda: None)
    errors["network_namespace"] = None
    assert probe.attempts() == {**errors, "veth_pair": "not supported by this Python"}
    monkeypatch.setattr(probe, "tun_file", lambda: None)
    monkeypatch.setattr(probe, "tun_device", lambda: None)
    assert probe.attempts() == {**errors, "tun_file": None, "tun_device": None}


PAIR = """
import sys
from pathlib import Path
from sojourn import _core
from sojourn.host import probe

_core.enter_user_namespace()
probe.network_namespace()
probe.veth_pair()
# The file system may show the namespace of another process.
print(Path("/proc/thread-self/net/dev").read_text())
probe.veth_pair()
"""


def test_a_pair_of_devices_is_created_in_a_new_namespace() -> None:
    need_live_runs()
    done = subprocess.run(
        [sys.executable, "-c", PAIR], env=environment(), capture_output=True, text=True, check=False
    )
    if "not supported" in done.stderr:
        pytest.skip("the kernel has no veth devices")
    lines = done.stdout.splitlines()[2:]
    devices = {name.strip() for line in lines if ":" in line for name in [line.split(":")[0]]}
    assert {probe.DEVICE.decode(), "veth0"} <= devices, done.stderr
    # A second device of the same name.
    assert "File exists" in done.stderr
    assert not Path("/sys/class/net", probe.DEVICE.decode()).exists()


def test_a_file_that_is_no_tun_device_is_refused(tmp_path: Path) -> None:
    (tmp_path / "tun").touch()
    with pytest.raises(OSError, match="ioctl"):
        probe.tun_device(tmp_path / "tun")


def test_this_machine_is_assessed(sojourn: Command) -> None:
    done = sojourn("doctor", "--json")
    document = json.loads(done.stdout)
    assert all(
        set(line) == {"name", "finding", "verdict", "remedy", "required"} for line in document
    )
    lacking = [one["name"] for one in document if one["required"] and one["verdict"] == "missing"]
    assert done.returncode == (3 if lacking else 0), done.stderr
    said = f"not possible: {', '.join(lacking)}" if lacking else "are possible"
    assert done.stderr == f"live runs {said}\n"


def test_what_is_missing_ends_the_command_with_code_3(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    mac = Readings(system="Darwin", release="24.1", backends=["sim"])
    monkeypatch.setattr(facts, "read", lambda: mac)
    assert app(["doctor"], standalone_mode=False) == 3
    shown = capsys.readouterr()
    assert "live runs need Linux" in shown.out
    assert shown.err == "live runs are not possible: operating system\n"
    monkeypatch.setattr(facts, "read", lambda: GOOD)
    assert app(["doctor"], standalone_mode=False) == 0
    assert capsys.readouterr().err == "live runs are possible\n"


def test_controls_outside_linux_are_in_the_catalogue() -> None:
    assert set(checks.OUTSIDE) <= set(CATALOGUE)
    assert set(checks.PURPOSES) == set(facts.TOOLS)


def test_only_live_commands_enter_a_user_namespace(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    called: list[str] = []
    monkeypatch.setattr(_core, "enter_user_namespace", lambda: called.append("user"))
    namespaces.prepare(["run", "a.toml"])
    namespaces.prepare(["agree", "--help"])
    assert not called
    for arguments in (["agree", "a.toml"], ["live", "--", "true"], ["run", "a.toml", "--on=live"]):
        namespaces.prepare(arguments)
    assert called == ["user"] * 3

    def refused() -> None:
        message = "cannot create a user namespace: no; run as root"
        raise _core.UnavailableError(message)

    monkeypatch.setattr(_core, "enter_user_namespace", refused)
    with pytest.raises(SystemExit) as end:
        namespaces.prepare(["live"])
    assert end.value.code == 3
    assert capsys.readouterr().err == "sojourn: cannot create a user namespace: no; run as root\n"
    # The help needs no namespace; a program with this option gets the same error later.
    namespaces.prepare(["live", "--rtt", "9ms", "--help"])


@pytest.mark.parametrize(
    ("words", "is_live"),
    [
        ("live curl --help", True),
        ("live df -h", True),
        ("live --link 5mbit --view -s rtt=9ms df -h", True),
        ("live -srtt=9ms --link=5mbit df --help", True),
        ("live --qdisc --help df", True),
        ("live -- --help", True),
        ("live --view --help", True),
        ("run a.toml --on live --help", False),
        ("agree a.toml -h", False),
    ],
)
def test_all_but_the_help_of_other_commands_may_be_live(words: str, *, is_live: bool) -> None:
    assert namespaces.is_live(words.split()) is is_live
