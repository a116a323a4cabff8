"""Make captures of iperf3, and record what tshark and Sojourn find in them.

``python tools/make_captures.py`` runs iperf3 over 20 links of ``sojourn live`` (as root),
writes the packets to tests/python/data/captures, and the figures of tshark and of iperf3 beside
them. It then writes the table of docs/validation/captures.md, as ``--table`` does alone.
"""

import argparse
import gzip
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(f"{ROOT / 'tests/python'}")

from support import captures  # noqa: E402 - of the tests

PAGE = ROOT / "docs/validation/captures.md"
BEGIN, END = "<!-- captures -->", "<!-- end -->"
SECONDS = 3
COMMAND = (Path(sys.executable).parent / "sojourn").as_posix()


@dataclass(frozen=True)
class Setup:
    """A link, the options of iperf3, and where packets are captured.

    `at` is ``queue`` (where packets enter the queues, by ``--pcap``), ``client`` or ``server``
    (tcpdump on the device of that namespace).
    """

    name: str
    at: str
    options: str = ""
    link: str = "2mbit"
    rtt: str = "30ms"
    queue: str = "pfifo limit 15"
    values: tuple[str, ...] = ()
    ecn: bool = False


SETUPS = (
    Setup("cubic_fq_codel", "queue", "-C cubic", queue="fq_codel"),
    Setup("reno_pfifo", "queue", "-C reno"),
    Setup("cubic_loss", "queue", "-C cubic", values=("links.up.loss=2%",)),
    Setup("cubic_both", "queue", "-C cubic --bidir", queue="codel"),
    Setup("four_reno", "queue", "-C reno -P 4", queue="pfifo limit 20"),
    Setup("cubic_ecn", "queue", "-C cubic", queue="codel ecn", ecn=True),
    Setup("cubic_v6", "queue", "-6 -C cubic", queue="pie"),
    Setup("down_cake", "queue", "-C cubic -R", queue="cake"),
    Setup("ack_loss", "queue", "-C cubic", values=("links.down.loss=20%", "links.up.loss=1%")),
    Setup("client_loss", "client", "-C cubic", values=("links.up.loss=2%",)),
    Setup("client_four", "client", "-C cubic -P 4", queue="pfifo limit 20"),
    Setup("client_long", "client", "-C cubic", rtt="150ms", queue="pfifo limit 25"),
    Setup("client_short", "client", "-C cubic", rtt="2ms", values=("links.up.loss=3%",)),
    Setup("client_bytes", "client", "-C reno", queue="bfifo limit 25000"),
    Setup("client_heavy", "client", "-C cubic", values=("links.up.loss=12%",)),
    Setup("server_loss", "server", "-C cubic", values=("links.up.loss=2%",)),
    Setup("server_four", "server", "-C reno -P 4", queue="pfifo limit 20"),
    Setup("server_down", "server", "-C cubic -R", queue="codel"),
    Setup("server_jitter", "server", "-C cubic", values=("links.up.jitter=5ms",)),
    Setup("server_acks", "server", "-C cubic", values=("links.down.loss=30%",)),
)


def capture(setup: Setup, folder: Path) -> tuple[Path, dict[str, int]]:
    """Run iperf3 over a link; return its packets, and what iperf3 prints of the sender."""
    dump = "tcpdump -U -Z root --immediate-mode -i any -s 120 -w FILE tcp 2> /dev/null & "
    file, report = folder / f"{setup.name}.pcap", folder / "iperf3.json"
    client = f"iperf3 -c $SOJOURN_SERVER -t {SECONDS} {setup.options} --json > {report}"
    server = "iperf3 -s -1"
    dump = dump.replace("FILE", f"{file}") + "T=$!; sleep 1; "
    stop = "; sleep 0.5; kill -INT $T; wait $T"
    at_client = setup.at == "client"
    client = dump + client + stop if at_client else f"sleep 1.5; {client}; sleep 0.5"
    if setup.at == "server":
        server = dump + server + stop
    if "-6" in setup.options:
        client = client.replace("$SOJOURN_SERVER", "$SOJOURN_SERVER6")
    captured = folder / "queue.pcapng"
    command = [COMMAND, "live", "--link", setup.link, "--rtt", setup.rtt, "--qdisc", setup.queue]
    command += ["--ecn"] * setup.ecn + [w for v in setup.values for w in ("--set", v)]
    command += ["--pcap", f"{captured}", "--force"] if setup.at == "queue" else []
    command += ["--server", f"sh -c '{server}'", "--", "sh", "-c", client]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode:
        sys.exit(f"{setup.name}: {done.stderr}")
    if setup.at == "queue":
        file = captures.at(captured, "up.enq", "down.enq")
    streams = json.loads(report.read_text(encoding="utf-8"))["end"]["streams"]
    counts = [one["sender"].get("retransmits", 0) for one in streams]
    return file, {"retransmits": sum(counts)}


def make(names: list[str]) -> None:
    """Make the captures, and the figures of tshark."""
    captures.FOLDER.mkdir(parents=True, exist_ok=True)
    index = captures.FOLDER / "figures.json"
    known = json.loads(index.read_text(encoding="utf-8")) if index.exists() else {}
    for setup in SETUPS:
        if names and setup.name not in names:
            continue
        with tempfile.TemporaryDirectory() as folder:
            file, iperf3 = capture(setup, Path(folder))
            found = captures.by_tshark(file)
            packed = gzip.compress(file.read_bytes(), 9, mtime=0)
        suffix = ".pcapng.gz" if setup.at == "queue" else ".pcap.gz"
        (captures.FOLDER / f"{setup.name}{suffix}").write_bytes(packed)
        known[f"{setup.name}{suffix}"] = {
            "at": setup.at,
            "queue": setup.queue,
            "options": f"{setup.options}{' --ecn' * setup.ecn}".strip(),
            "values": list(setup.values),
            "rtt": setup.rtt,
            "tshark": found,
            "iperf3": iperf3,
        }
        print(f"{setup.name}: {len(packed)} bytes, {found}, {iperf3}", flush=True)
        text = json.dumps(known, indent=1, sort_keys=True)
        index.write_text(f"{text}\n", encoding="utf-8")


def rows() -> list[str]:
    """Write the table."""
    heads = ["capture", "at", "queue, options", "packets", "RTT samples", "tshark"]
    heads += ["Sojourn, by its rule", "Sojourn", "iperf3"]
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    for name, entry in captures.figures().items():
        theirs, ours = entry["tshark"], captures.by_sojourn(captures.FOLDER / name)
        kinds = ("retransmissions", "out_of_order")
        own, rule = captures.by_sojourn(captures.FOLDER / name, "event"), [ours[k] for k in kinds]
        words = [entry["queue"], entry["options"], *entry["values"]]
        cells = [
            name.split(".")[0],
            entry["at"],
            ", ".join(f"`{word}`" for word in words if word),
            f"{theirs['packets']}",
            f"{theirs['rtt_samples']}",
            f"{theirs['retransmissions']} + {theirs['out_of_order']}",
            f"{rule[0]:.0f} + {rule[1]:.0f}",
            f"{own['retransmissions']:.0f} + {own['out_of_order']:.0f}",
            f"{entry['iperf3']['retransmits']}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def main() -> None:
    """Make the captures, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("names", nargs="*", help="captures to make; all by default")
    parser.add_argument("--table", action="store_true", help="only write the table")
    arguments = parser.parse_args()
    if not arguments.table:
        make(arguments.names)
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    after = rest.split(END)[1]
    text = "\n".join(rows())
    PAGE.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
