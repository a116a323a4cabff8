"""Assesses the readings of a machine: whether it supports live runs, and what to change."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from sojourn import _core
from sojourn.host.facts import Readings

# Clock sources that are read without access to a slow device or a hypervisor exit.
FAST_CLOCKS = ("tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page", "xen")
# A coarser clock cannot time packets of a link of 100 Mbit/s, 0.12 ms each.
COARSE_S = 1e-4
# The datapath asks for this nice value.
WANTED_NICE = -20
# The datapath takes one processor while it waits for packets; both hosts take another.
WANTED_PROCESSORS = 2
# A run of a minute stores some megabytes; a study thousands of runs.
WANTED_FREE_BYTES = 1 << 30
WANTED_MEMORY_BYTES = 512 << 20
GIB = 1 << 30
# Congestion controls that mainline Linux lacks under these names, and where to find them.
OUTSIDE = {
    "prague": "use the kernel of github.com/L4STeam/linux",
    "bbr3": "simulation only; the kernel of github.com/google/bbr, branch v3, provides it as bbr",
    "ledbat": "simulation only",
    "copa": "simulation only",
}
PURPOSES = {
    "iperf3": "for programs in scenarios",
    "irtt": "for programs in scenarios, and for flent",
    "flent": "to plot exported results",
    "tshark": "to read captures",
    "tc": "to compare with kernel queues",
    "pasta": "for live runs that reach the network without root",
}
PACKAGES = {"tc": "iproute2", "pasta": "passt"}


class Verdict(StrEnum):
    """What a finding means for live runs."""

    OK = "ok"
    LIMITED = "limited"
    MISSING = "missing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One line of the assessment."""

    name: str
    finding: str
    verdict: Verdict
    remedy: str = ""
    required: bool = False


def assess(readings: Readings) -> list[Check]:
    """Assess what was read."""
    return [*_checks(readings)]


def possible(checks: list[Check]) -> bool:
    """Whether live runs are possible."""
    return not any(check.required and check.verdict is Verdict.MISSING for check in checks)


def _checks(readings: Readings) -> Iterator[Check]:
    yield _system(readings)
    if readings.system == "Linux":
        yield _backend(readings)
        yield from _namespaces(readings)
        yield _tun(readings)
        yield _veth(readings)
        yield _packet_sockets(readings)
        yield from _controls(readings)
        yield _clock(readings)
    yield _resolution(readings)
    if readings.system == "Linux":
        yield _priority(readings)
    yield _processors(readings)
    if readings.system == "Linux":
        yield _qdisc(readings)
        yield _interfaces(readings)
        yield _kernels(readings)
    yield from (_tool(name, place) for name, place in readings.tools.items())
    yield _store(readings)
    yield _memory(readings)


def _check(name: str, finding: str, remedy: str = "", *, verdict: Verdict = Verdict.OK) -> Check:
    return Check(name=name, finding=finding, verdict=verdict, remedy=remedy)


def _limited(name: str, finding: str, remedy: str) -> Check:
    return _check(name, finding, remedy, verdict=Verdict.LIMITED)


def _needed(name: str, finding: str, remedy: str = "", *, missing: bool) -> Check:
    """Return a check that live runs require."""
    verdict = Verdict.MISSING if missing else Verdict.OK
    return Check(name=name, finding=finding, verdict=verdict, remedy=remedy, required=True)


def _system(readings: Readings) -> Check:
    finding = f"{readings.system} {readings.release}".strip()
    if readings.system == "Linux":
        return _needed("operating system", finding, missing=False)
    remedy = "live runs need Linux, for example in a virtual machine; simulated runs do not"
    return _needed("operating system", finding, remedy, missing=True)


def _backend(readings: Readings) -> Check:
    missing = "live" not in readings.backends
    remedy = "install a build of Sojourn for Linux" if missing else ""
    finding = f"backends of this build: {', '.join(readings.backends)}"
    return _needed("live backend", finding, remedy, missing=missing)


def _namespaces(readings: Readings) -> Iterator[Check]:
    name = "network namespaces"
    if readings.probe_failure is not None:
        remedy = "run `python -m sojourn.host.probe` to see the error"
        yield _needed(name, f"not tried: {readings.probe_failure}", remedy, missing=True)
        return
    user = readings.attempts.get("user_namespace")
    network = readings.attempts.get("network_namespace")
    if user is not None:
        # The message of the core ends with the remedy.
        finding, _, remedy = user.partition("; ")
        yield _needed(name, finding, remedy or "run as root", missing=True)
    elif network is not None:
        finding = f"cannot create a network namespace: {network}"
        remedy = "run as root; in a container, with --cap-add SYS_ADMIN --cap-add NET_ADMIN"
        yield _needed(name, finding, remedy, missing=True)
    else:
        finding = "can be created as root" if readings.is_root else "can be created as this user"
        yield _needed(name, finding, missing=False)


def _opens_tun(readings: Readings) -> bool:
    """Whether live runs use TUN devices: where ``/dev/net/tun`` can be opened."""
    if "tun_file" in readings.attempts:
        return readings.attempts["tun_file"] is None
    return readings.tun_exists and readings.tun_writable


def _has_pairs(readings: Readings) -> bool:
    """Whether live runs can do without TUN devices, as far as that is known."""
    return _lacks_veth(readings) is None and readings.attempts.get("packet_socket") is None


def _lacks_veth(readings: Readings) -> str | None:
    """Return why no pair of veth devices can be created; None if it can."""
    if "veth_pair" in readings.attempts:
        error = readings.attempts["veth_pair"]
        return None if error is None else f"cannot create a pair: {error}"
    return "no module" if readings.veth is False else None


def _tun(readings: Readings) -> Check:
    """Check the devices that live runs use if they can."""
    name, error = "/dev/net/tun", readings.attempts.get("tun_device")
    if _opens_tun(readings):
        if error is not None:
            return _needed(name, f"cannot create a device: {error}", "modprobe tun", missing=True)
        tried = "tun_device" in readings.attempts
        finding = "a device can be created" if tried else "can be opened; no device was created"
        return _needed(name, finding, missing=False)
    if not readings.tun_exists:
        finding, remedy = (
            "does not exist",
            "modprobe tun; in a container, with --device /dev/net/tun",
        )
    elif not readings.tun_writable:
        finding = "not readable and writable by this user"
        remedy = "chmod 666 /dev/net/tun as root, or run as root"
    else:
        finding, remedy = f"cannot be opened: {readings.attempts['tun_file']}", "modprobe tun"
    if _has_pairs(readings):
        return _limited(name, f"{finding}; live runs use veth devices", remedy)
    return _needed(name, finding, f"{remedy}; or allow veth devices", missing=True)


def _veth(readings: Readings) -> Check:
    name, reason = "veth devices", _lacks_veth(readings)
    if _opens_tun(readings):
        known = {True: "available", False: "no module", None: "unknown: list of modules not found"}
        return _check(name, f"{known[readings.veth]} (live runs use TUN devices)")
    if reason is not None:
        return _needed(name, reason, "modprobe veth, or provide /dev/net/tun", missing=True)
    if "veth_pair" in readings.attempts:
        return _needed(name, "a pair can be created", missing=False)
    return _needed(name, "no pair was created", missing=False)


def _packet_sockets(readings: Readings) -> Check:
    name, error = "packet sockets", readings.attempts.get("packet_socket")
    found = "available" if "packet_socket" in readings.attempts else "not tried"
    if error is not None:
        found = f"not available: {error}"
    if _opens_tun(readings):
        return _check(name, f"{found} (live runs use TUN devices)")
    remedy = "" if error is None else "modprobe af_packet, or provide /dev/net/tun"
    return _needed(name, found, remedy, missing=error is not None)


def _controls(readings: Readings) -> Iterator[Check]:
    """Compare the controls of the kernel with those of the catalogue; names are the kernel's."""
    name = "congestion controls"
    if readings.controls is None:
        remedy = "mount /proc; without it, live runs reject scenarios with TCP"
        yield _limited(name, "cannot be read", remedy)
        return
    wanted = [entry["name"] for entry in json.loads(_core.cc_catalogue())]
    found = [control for control in wanted if control in readings.controls]
    yield _check(name, f"loaded: {', '.join(found) or 'none'}")
    absent = [control for control in wanted if control not in readings.controls]
    for control in absent:
        load = f"as root: modprobe tcp_{control}"
        if control in OUTSIDE:
            said, remedy = "not in Linux", OUTSIDE[control]
        elif readings.loadable is None:
            said, remedy = "not loaded", f"{load}, or use a kernel with this module"
        elif control in readings.loadable:
            said, remedy = "not loaded", load
        else:
            said, remedy = "not in this kernel", f"use a kernel with the module tcp_{control}"
        is_limited = said == "not loaded"
        verdict = Verdict.LIMITED if is_limited else Verdict.MISSING
        yield _check(f"control {control}", said, remedy, verdict=verdict)


def _clock(readings: Readings) -> Check:
    name, clock = "clock source", readings.clock
    if clock is None:
        return _limited(name, "cannot be read", "mount /sys to see it")
    if clock in FAST_CLOCKS:
        return _check(name, clock)
    faster = next((one for one in FAST_CLOCKS if one in readings.clocks), None)
    file = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
    if faster is not None:
        remedy = f"as root: echo {faster} > {file}"
    else:
        remedy = "boot with tsc=reliable if the processor has a constant TSC"
    return _limited(name, f"{clock}: slow to read", remedy)


def _resolution(readings: Readings) -> Check:
    name, resolution = "timer resolution", readings.resolution_s
    if resolution is None:
        return _limited(name, "cannot be read", "")
    if resolution > COARSE_S:
        remedy = "use a kernel with high-resolution timers (CONFIG_HIGH_RES_TIMERS)"
        return _limited(name, f"{resolution * 1e3:g} ms", remedy)
    return _check(name, f"{resolution * 1e9:g} ns")


def _priority(readings: Readings) -> Check:
    name = "priority"
    if readings.is_root:
        return _check(name, "root: the datapath has the highest priority (nice -20)")
    if readings.nice_limit is None:
        return _limited(name, "limits cannot be read", "")
    realtime = f"real-time priority up to {readings.realtime_limit or 0}"
    finding = f"nice down to {readings.nice_limit}, {realtime}"
    if readings.nice_limit <= WANTED_NICE:
        return _check(name, finding)
    remedy = (
        "packets are late on a busy machine; allow it in /etc/security/limits.conf (USER - nice "
        "-20), or run as root"
    )
    return _limited(name, finding, remedy)


def _processors(readings: Readings) -> Check:
    name = "processors"
    if readings.processors is None:
        return _limited(name, "number unknown", "")
    load = "load unknown" if readings.load is None else f"load {readings.load:.2f}"
    finding = f"{readings.processors}, {load}"
    if readings.processors < WANTED_PROCESSORS:
        remedy = "use a machine with two processors: one for the datapath, one for both hosts"
        return _limited(name, finding, remedy)
    if readings.load is not None and readings.load > readings.processors - 1:
        return _limited(name, finding, "end other programs: the datapath needs a free processor")
    return _check(name, finding)


def _qdisc(readings: Readings) -> Check:
    found = readings.default_qdisc or "unknown"
    return _check(
        "default qdisc", f"{found} (used on host devices; links use the queues of Sojourn)"
    )


def _interfaces(readings: Readings) -> Check:
    """Check what ``sojourn bridge`` and ``sojourn interop`` need."""
    name = "bridge and interop"
    if readings.is_root:
        return _check(name, "possible as root")
    return _limited(name, "not as this user", "run them as root")


def _kernels(readings: Readings) -> Check:
    """Check what runs in the Linux kernel need."""
    name = "kernels for --on"
    if readings.kernels:
        return _check(name, ", ".join(readings.kernels))
    remedy = "optional, for runs in the Linux kernel: sojourn kernel build"
    return _check(name, "none", remedy, verdict=Verdict.MISSING)


def _tool(name: str, place: str | None) -> Check:
    if place is not None:
        return _check(name, place)
    package = PACKAGES.get(name, name)
    remedy = f"optional, {PURPOSES[name]}: install {package}"
    return _check(name, "not in PATH", remedy, verdict=Verdict.MISSING)


def _store(readings: Readings) -> Check:
    name = "run store"
    if readings.store is None:
        return _limited(name, f"no directory: {readings.store_error}", "set SOJOURN_STORE")
    if readings.store_error is not None:
        finding = f"{readings.store}: not writable ({readings.store_error})"
        remedy = "set SOJOURN_STORE to a writable directory; without it, runs cannot be resumed"
        return _limited(name, finding, remedy)
    if readings.free_bytes is None:
        return _check(name, f"{readings.store}: writable")
    finding = f"{readings.store}: writable, {readings.free_bytes / GIB:.1f} GiB free"
    if readings.free_bytes < WANTED_FREE_BYTES:
        return _limited(name, finding, "free space, or set SOJOURN_STORE to another disk")
    return _check(name, finding)


def _memory(readings: Readings) -> Check:
    name = "memory for runs"
    if readings.memory_bytes is None:
        return _check(name, "no limit known")
    finding = f"{readings.memory_bytes / GIB:.1f} GiB"
    if readings.memory_bytes < WANTED_MEMORY_BYTES:
        return _limited(name, finding, "end other programs, or raise the limit of the container")
    return _check(name, finding)
