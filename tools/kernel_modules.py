"""Build the kernel modules of ``kernel`` and test them in a User-Mode Linux: ``make modules``.

    python tools/kernel_modules.py LINUX… --iproute2 FOLDER [--packets N]

LINUX is a User-Mode Linux with virtual time and modules, in the folder in which it was built. The
modules and the plug-ins of ``tc`` are compiled for it; what they do with the traces of
``tests/vectors/tools/modules.py`` is compared with the Rust queues, packet for packet; and each
queue gets random packets while ``tc`` changes it, at the root and below HTB, DRR and HFSC: all
packets must have been sent or dropped, and nobody may count any as waiting at the end. The reports
of KASAN, lockdep and kmemleak count as failures, if the kernel has them.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests/vectors/tools"))

import record

ROOT = Path(__file__).resolve().parent.parent
KERNEL = ROOT / "kernel"
VECTORS = ROOT / "tests/vectors"
REPLAY = VECTORS / "tools/replay.c"
# The module of each queue.
QUEUES = {
    "cocoa": "sch_cocoa",
    "afcd": "sch_afcd",
    "afq": "sch_afcd",
    "floq": "sch_floq",
    "predict": "sch_predict",
}
# What a kernel prints of an error.
ERRORS = re.compile(
    r"KASAN|BUG:|WARNING:|Oops|suspicious RCU|possible .*deadlock|unreferenced object|lock held"
    r"|non-work-conserving"
)
# How a queue comes below each parent, with a sibling for SCTP where siblings can be stopped.
FILTER = "tc filter add dev v0 parent 1:"
SIBLING = f"""tc qdisc add dev v0 parent 1:2 handle 20: pfifo limit 1000 || fail
{FILTER} protocol ip prio 1 u32 match ip protocol 132 0xff classid 1:2 || fail
{FILTER} protocol all prio 2 matchall classid 1:1 || fail"""
PARENTS = {
    "root": "",
    "htb": """tc qdisc add dev v0 root handle 1: htb default 1 || fail
tc class add dev v0 parent 1: classid 1:1 htb rate 50mbit || fail""",
    "drr": f"""tc qdisc add dev v0 root handle 2: htb default 1 || fail
tc class add dev v0 parent 2: classid 2:1 htb rate 50mbit || fail
tc qdisc add dev v0 parent 2:1 handle 1: drr || fail
tc class add dev v0 parent 1: classid 1:1 drr quantum 1500 || fail
tc class add dev v0 parent 1: classid 1:2 drr quantum 300 || fail
{SIBLING}""",
    "hfsc": f"""tc qdisc add dev v0 root handle 1: hfsc default 1 || fail
tc class add dev v0 parent 1: classid 1:1 hfsc sc rate 40mbit || fail
tc class add dev v0 parent 1: classid 1:2 hfsc sc rate 10mbit || fail
{SIBLING}""",
}
# Parents that look at a packet before they take it. It counts as sent, and if a lower limit drops
# it as dropped, too.
PEEKING = {"drr", "hfsc"}


def compile_modules(build: Path, iproute2: Path, folder: Path) -> None:
    """Compile modules, plug-ins and the programs of the test."""
    compiler = os.environ.get("CC", "cc")
    folder.mkdir(parents=True, exist_ok=True)
    words = ["make", "--silent", "-C", str(KERNEL / "modules"), "out", "ARCH=um", f"KDIR={build}"]
    subprocess.run([*words, f"OUT={folder}"], check=True)
    shutil.copytree(KERNEL / "tc", folder / "tc", dirs_exist_ok=True)
    shutil.copytree(KERNEL / "modules", folder / "modules", dirs_exist_ok=True)
    words = ["make", "--silent", "-C", str(folder / "tc"), f"IPROUTE2={iproute2}"]
    subprocess.run(words, check=True)
    for name, source in (("stress", KERNEL / "test/stress.c"), ("replay", REPLAY)):
        words = [compiler, "-O2", "-static", "-o", str(folder / name), str(source)]
        subprocess.run(words, check=True)


def vectors(build: Path, folder: Path) -> list[str]:
    """Record the traces; return an error if the Rust queues do otherwise."""
    out = folder / "vectors"
    out.mkdir(parents=True, exist_ok=True)
    words = [sys.executable, str(VECTORS / "tools/record.py"), "--kernel", str(build / "linux")]
    subprocess.run([*words, "--modules", str(folder), "--out", str(out)], check=True)
    words = ["cargo", "test", "--quiet", "-p", "sojourn-qdisc", "--test", "module_vectors"]
    done = subprocess.run(
        [*words, "--", "--nocapture"],
        check=False,
        cwd=ROOT,
        env=os.environ | {"SOJOURN_MODULE_VECTORS": str(out)},
    )
    return [f"the Rust queues do otherwise than {out}"] if done.returncode else []


def stress_script(folder: Path, run: Path, packets: int, seed: int) -> str:
    """Return the first process of a machine that tests all queues."""
    share = packets // (len(PARENTS) + 1)
    modules = sorted(set(QUEUES.values()))
    # Each once: KASAN of User-Mode Linux takes the memory of a module that was removed for its own.
    tests = [f"{folder}/replay load {folder}/{one}.ko '' || fail" for one in modules]
    for n, queue in enumerate(QUEUES):
        for k, (parent, setup) in enumerate(PARENTS.items()):
            name = f"{queue}-{parent}"
            at = "root" if parent == "root" else "parent 1:1"
            tests.append(f"""
now={name}
{setup}
tc qdisc add dev v0 {at} handle 10: {queue} || fail
sed -n 's/^{queue} /qdisc change dev v0 {at} handle 10: {queue} /p' {KERNEL}/test/changes >changes
{folder}/stress v0 {seed + 10 * n + k} {share} changes 100 2>{name}.sent |
  tc -force -batch - >{name}.answers 2>&1
sleep 10; tc -s qdisc show dev v0 >{name}.qdiscs
tc qdisc del dev v0 root || fail""")
        tests.append(f"""
now={queue}-replaced
{PARENTS["htb"]}
tc qdisc add dev v0 parent 1:1 handle 10: {queue} || fail
sed -n 's/^{queue} /qdisc change dev v0 parent 1:1 handle 10: {queue} /p' {KERNEL}/test/changes >c
echo 'qdisc replace dev v0 parent 1:1 handle 11: {queue} limit 500' >>c
echo 'qdisc replace dev v0 parent 1:1 handle 10: {queue}' >>c
echo 'qdisc show dev v0' >>c
{folder}/stress v0 {seed + 10 * n + 8} {share // 2} c 100 2>$now.sent |
  tc -force -batch - >$now.answers 2>&1
ip link set v0 down; ip link set v0 up
{folder}/stress v0 {seed + 10 * n + 9} {share // 2} c 100 2>$now.sent |
  tc -force -batch - >$now.answers 2>&1
sleep 10; tc -s qdisc show dev v0 >$now.qdiscs; tc -j -s qdisc show dev v0 >json || fail
tc qdisc del dev v0 root || fail""")
    return f"""#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin TC_LIB_DIR={folder}/tc
export GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX2,-AVX512F,-AVX512VL,-AVX2_Usable
mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t debugfs debugfs /sys/kernel/debug
cd {run}; exec >log 2>&1
fail() {{ echo "$now: a command failed" >>failures; }}
# The stack itself sends nothing.
echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6
echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6
ip link add v0 type veth peer name v1; ip link set v0 up; ip link set v1 up
{chr(10).join(tests)}
sleep 10
if test -e /sys/kernel/debug/kmemleak; then
  echo scan >/sys/kernel/debug/kmemleak; sleep 10; echo scan >/sys/kernel/debug/kmemleak
  cat /sys/kernel/debug/kmemleak >leaks
fi
now=unload
{chr(10).join(f"{folder}/replay unload {one} || fail" for one in modules)}
dmesg >messages
echo complete >status
{folder}/replay off
"""


def counted(run: Path, queue: str, parent: str) -> list[str]:
    """Compare what was sent through a queue with what was counted; return what does not fit."""
    name = f"{queue}-{parent}"
    packets, refused, offered, lines = map(
        int, re.findall(r"\d+", (run / f"{name}.sent").read_text())
    )
    failed = (run / f"{name}.answers").read_text().count("Command failed")
    accepted = lines - failed
    text = (run / f"{name}.qdiscs").read_text()
    blocks = re.findall(
        r"qdisc (\S+) (\w+):.*?Sent \d+ bytes (\d+) pkt \(dropped (\d+),.*?backlog (\S+) (\d+)p",
        text,
        re.DOTALL,
    )
    faults = [
        f"{name}: {kind} counts {waiting}, {bytes_} as waiting"
        for kind, _, _, _, bytes_, waiting in blocks
        if (bytes_, waiting) != ("0b", "0")
    ]
    leaves = {
        kind: (int(out), int(dropped))
        for kind, handle, out, dropped, _, _ in blocks
        if handle in ("10", "11", "20")
    }
    if not accepted:
        faults.append(f"{name}: tc changed nothing, {lines} changes were tried")
    # A queue that was replaced counts from then on.
    if parent == "replaced":
        return faults
    if queue not in leaves or not leaves[queue][0]:
        return [*faults, f"{name}: nothing was sent:\n{text}"]
    done = sum(out + dropped for out, dropped in leaves.values())
    twice = done - offered
    if not 0 <= twice <= (accepted if parent in PEEKING else 0):
        faults.append(f"{name}: {offered} packets came, {done} were sent or dropped")
    if parent in PEEKING and not leaves.get("pfifo", (0, 0))[0]:
        faults.append(f"{name}: the sibling sent nothing")
    out, dropped = leaves[queue]
    print(
        f"{name}: {packets} sent, {refused} refused, {offered} with segments: {out} left, "
        f"{dropped} dropped; {accepted} changes, {failed} refused",
        flush=True,
    )
    return faults


def stress(build: Path, folder: Path, packets: int, seed: int) -> list[str]:
    """Send random packets through all queues; return the errors of the kernel."""
    run = Path(tempfile.mkdtemp(prefix="modules-"))
    init = run / "init.sh"
    init.write_text(stress_script(folder, run, packets, seed))
    init.chmod(0o755)
    record.start(build / "linux", run, init, seconds=36_000)
    if not (run / "status").exists():
        return [f"the machine stopped early, see {run}"]
    print((run / "log").read_text(), end="")
    faults = [
        fault
        for queue in QUEUES
        for parent in (*PARENTS, "replaced")
        for fault in counted(run, queue, parent)
    ]
    if (run / "failures").exists():
        faults += (run / "failures").read_text().splitlines()
    printed = (run / "messages", run / "console", run / "leaks")
    lines = [line for file in printed if file.exists() for line in file.read_text().splitlines()]
    faults += [line for line in lines if ERRORS.search(line)]
    if faults:
        return [f"{fault}, see {run}" for fault in faults]
    shutil.rmtree(run)
    return []


def main(arguments: Sequence[str] | None = None) -> int:
    """Build and test for each kernel.

    Returns
    -------
    int
        The exit status: 1 if a test fails.
    """
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("kernels", nargs="+", type=Path, metavar="LINUX")
    parser.add_argument("--iproute2", type=Path, required=True, help="the sources of tc")
    parser.add_argument("--packets", type=int, default=100_000, help="for each queue")
    parser.add_argument("--seed", type=int, default=1, help="of the random packets")
    given = parser.parse_args(arguments)
    wrong = []
    for kernel in given.kernels:
        build = kernel.resolve().parent
        release = (build / "include/config/kernel.release").read_text().strip()
        print(f"Linux {release}", flush=True)
        folder = ROOT / "target/modules" / release
        compile_modules(build, given.iproute2.resolve(), folder)
        found = vectors(build, folder)
        if given.packets:
            found += stress(build, folder, given.packets, given.seed)
        wrong += [f"Linux {release}: {fault}" for fault in found]
    print("\n".join(wrong), end="\n" if wrong else "", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
