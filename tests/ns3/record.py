"""Run the cases of ``wifi.cc`` on ns-3 and record the results in ``wifi.json``.

``python tests/ns3/record.py`` installs Debian's packages of ns-3 where they are missing, as root.
``--case NAME`` runs one case and prints its result.
"""

import argparse
import datetime as dt
import json
import os
import shutil
import statistics
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
RECORD = HERE / "wifi.json"
BUILT = HERE.parents[1] / "target" / "ns3"
PACKAGES = ["g++", "ns3", "libns3-dev"]
MODULES = ["applications", "internet", "mobility", "network", "point-to-point", "propagation"]
MODULES += ["traffic-control", "wifi", "core"]
SECONDS, WARMUP, RUNS = 15, 5, 3

Case = dict[str, Any]


def _case(name: str, mcs: list[int], **settings: object) -> Case:
    return {"name": name, "mcs": mcs, **settings}


CASES = [
    *(
        _case(f"MCS {mcs}, {guard} GI", [mcs], **({"short": 1} if guard == "short" else {}))
        for mcs in (0, 3, 7, 8, 11, 15)
        for guard in ("long", "short")
    ),
    *(_case(f"MCS {mcs}, no A-MPDU", [mcs], packets=1) for mcs in (0, 7)),
    *(_case(f"MCS 7, {loss} % loss", [7], loss=loss / 100) for loss in (10, 30)),
    _case("MCS 7 and 0, down", [7, 0]),
    _case("MCS 7 and 0, down, no A-MPDU", [7, 0], packets=1),
    _case("MCS 7 and 0, up", [7, 0], up=1),
    _case("MCS 7 and 0, up, no A-MPDU", [7, 0], up=1, packets=1),
    _case("2 of MCS 7, up", [7] * 2, up=1),
    _case("5 of MCS 7, up", [7] * 5, up=1),
    _case("5 of MCS 7, up, no A-MPDU", [7] * 5, up=1, packets=1),
    _case("TCP, MCS 7, down", [7], tcp=1),
    _case("TCP, MCS 7, up", [7], tcp=1, up=1),
    _case("TCP, MCS 15, down", [15], tcp=1),
    _case("TCP, MCS 7 and 0, down", [7, 0], tcp=1),
    # Variants of ns-3 only, which show why the cases above differ.
    _case("MCS 7 and 0, up, no BAR in ns-3", [7, 0], up=1, bar=0),
    _case("5 of MCS 7, up, no BAR in ns-3", [7] * 5, up=1, bar=0),
    _case("5 of MCS 7, up, no A-MPDU, EIFS in ns-3", [7] * 5, up=1, packets=1, eifs=1),
    _case("TCP, MCS 7, down, ns-3: 14 segments per ACK", [7], tcp=1, ack=14),
    _case("TCP, MCS 7, up, ns-3: 14 segments per ACK", [7], tcp=1, up=1, ack=14),
]


def build(name: str = "wifi", modules: list[str] = MODULES) -> Path:
    """Install ns-3 where it is missing, and compile a program of this folder."""
    if not Path("/usr/include/ns3/wifi-module.h").exists():
        root = [] if os.geteuid() == 0 else ["sudo"]
        for what in (["update", "-q"], ["install", "-y", "-q", "--no-install-recommends"]):
            packages = PACKAGES if "install" in what else []
            # The output of this script is a table.
            subprocess.run([*root, "apt-get", *what, *packages], check=True, stdout=sys.stderr)
    source, program = HERE / f"{name}.cc", BUILT / name
    BUILT.mkdir(parents=True, exist_ok=True)
    if not program.exists() or program.stat().st_mtime < source.stat().st_mtime:
        libraries = [f"-lns3-{module}" for module in modules]
        command = ["g++", "-std=c++17", "-O2", f"{source}", "-o", f"{program}", *libraries]
        subprocess.run(command, check=True)
    return program


def version() -> str:
    """Return the version of the package."""
    command = ["dpkg-query", "--show", "--showformat", "${Version}", "libns3-dev"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def run(program: Path, case: Case) -> dict[str, Any]:
    """Return the means of the runs of a case, and the largest deviation from them."""
    options = {key: value for key, value in case.items() if key not in {"name", "mcs"}}
    options |= {"mcs": ",".join(map(str, case["mcs"])), "time": SECONDS, "warmup": WARMUP}
    runs = []
    for number in range(1, RUNS + 1):
        arguments = [f"--{key}={value}" for key, value in {**options, "run": number}.items()]
        done = subprocess.run([program, *arguments], check=True, capture_output=True, text=True)
        runs.append(json.loads(done.stdout))
    columns = list(zip(*(one["goodput_mbit_per_s"] for one in runs), strict=True))
    means = [statistics.mean(column) for column in columns]
    totals = [sum(one["goodput_mbit_per_s"]) for one in runs]
    return {
        "goodput_mbit_per_s": [round(mean, 3) for mean in means],
        "total_min_max": [round(min(totals), 3), round(max(totals), 3)],
        "mpdus_per_aggregate": round(
            statistics.mean(one["mpdus_per_aggregate"] for one in runs), 3
        ),
        # Of the first run: PPDUs by type and rate.
        "sent": runs[0]["sent"],
    }


def main() -> None:
    """Record all cases, or print one."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--case", help="run this case only and print its result")
    wanted = parser.parse_args().case
    if wanted is not None and wanted not in (names := [case["name"] for case in CASES]):
        parser.error(f"--case {wanted!r}: no such case; expected one of {', '.join(names)}")
    if shutil.which("dpkg-query") is None:
        sys.exit("record.py: needs the packages of Debian or Ubuntu")
    program = build()
    if wanted is not None:
        (case,) = (case for case in CASES if case["name"] == wanted)
        print(json.dumps(run(program, case)))
        return
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lambda case: run(program, case), CASES))
    lines = [
        json.dumps({**case, "ns3": result}) for case, result in zip(CASES, results, strict=True)
    ]
    head = {
        "program": "tests/ns3/wifi.cc",
        "package": f"libns3-dev {version()}",
        "date": dt.datetime.now(tz=dt.UTC).date().isoformat(),
        "seconds": SECONDS,
        "warmup": WARMUP,
        "runs": RUNS,
    }
    body = ",\n".join(f"    {line}" for line in lines)
    opening = json.dumps(head, indent=2).removesuffix("\n}")
    RECORD.write_text(f'{opening},\n  "cases": [\n{body}\n  ]\n}}\n', encoding="utf-8")
    print(f"wrote {RECORD}")


if __name__ == "__main__":
    main()
