"""Build the kernel modules of ``kernel`` and test them in a User-Mode Linux: ``make modules``.

    python tools/kernel_modules.py LINUX… --iproute2 FOLDER [--packets N]

LINUX is a User-Mode Linux with virtual time and modules, in the folder in which it was built. The
modules and the plug-ins of ``tc`` are compiled for it; what they do with the traces of
``tests/vectors/tools/modules.py`` is compared with the Rust queues, packet for packet; and each
queue gets random packets while ``tc`` changes it. The reports of KASAN, lockdep and kmemleak count
as failures, if the kernel has them.
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
)


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
    tests = "\n".join(
        f"""
echo "== {queue}"
{folder}/replay load {folder}/{module}.ko ''
tc qdisc add dev v0 root handle 1: htb default 1
tc class add dev v0 parent 1: classid 1:1 htb rate 50mbit
tc qdisc add dev v0 parent 1:1 handle 10: {queue}
sed -n 's/^{queue} /qdisc change dev v0 parent 1:1 handle 10: {queue} /p' {KERNEL}/test/changes >c
echo 'qdisc replace dev v0 parent 1:1 handle 11: {queue} limit 500' >>c
echo 'qdisc replace dev v0 parent 1:1 handle 10: {queue}' >>c
echo 'qdisc show dev v0' >>c
{folder}/stress v0 {seed + n} {packets // 2} c 500 2>sent | tc -force -batch - >/dev/null 2>&1
cat sent; tc -s qdisc show dev v0
ip link set v0 down; ip link set v0 up
{folder}/stress v0 {seed + n + 50} {packets // 2} c 500 2>sent | tc -force -batch - >/dev/null 2>&1
cat sent; tc -s qdisc show dev v0; tc -j -s qdisc show dev v0 >json
tc qdisc del dev v0 root
tc qdisc add dev v0 root {queue}; tc qdisc del dev v0 root
{folder}/replay unload {module}"""
        for n, (queue, module) in enumerate(QUEUES.items())
    )
    return f"""#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin TC_LIB_DIR={folder}/tc
export GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX2,-AVX512F,-AVX512VL,-AVX2_Usable
mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t debugfs debugfs /sys/kernel/debug
cd {run}; exec >log 2>&1
ip link add v0 type veth peer name v1; ip link set v0 up; ip link set v1 up
{tests}
sleep 10
if test -e /sys/kernel/debug/kmemleak; then
  echo scan >/sys/kernel/debug/kmemleak; sleep 10; echo scan >/sys/kernel/debug/kmemleak
  cat /sys/kernel/debug/kmemleak >leaks
fi
dmesg >messages
echo complete >status
{folder}/replay off
"""


def stress(build: Path, folder: Path, packets: int, seed: int) -> list[str]:
    """Send random packets through all queues; return the errors of the kernel."""
    run = Path(tempfile.mkdtemp(prefix="modules-"))
    init = run / "init.sh"
    init.write_text(stress_script(folder, run, packets, seed))
    init.chmod(0o755)
    record.start(build / "linux", run, init, seconds=36_000)
    if not (run / "status").exists():
        return [f"the machine stopped early, see {run}"]
    print((run / "log").read_text())
    printed = (run / "messages", run / "console", run / "leaks")
    lines = [line for file in printed if file.exists() for line in file.read_text().splitlines()]
    if found := [line for line in lines if ERRORS.search(line)]:
        return [f"{line}, see {run}" for line in found]
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
