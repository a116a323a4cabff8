"""Write the congestion-control vectors from the packet logs of the kernel.

``python tests/vectors/tools/windows.py`` reads ``crates/transport/tests/micro`` and writes
``tests/vectors/windows``; with ``--check`` it compares instead.
"""

import json
import re
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
LOGS = ROOT / "crates" / "transport" / "tests" / "micro"
VECTORS = ROOT / "tests" / "vectors" / "windows"
MSS = 1448
UNSET = 2147483647
STATES = ["open", "disorder", "cwr", "recovery", "loss"]

Row = list[Any]


def _microseconds(ms: str) -> int:
    return round(1000 * float(ms))


def _bytes(text: str) -> int:
    """Read ``<k>``, whole segments, or a sequence number."""
    number = int(text.strip("<>"))
    return number * MSS if text.startswith("<") else number - 1


def _sack(block: str) -> list[int]:
    """Read ``[16-18)``, whole segments, or ``[14481:14482)``, sequence numbers."""
    inner = block.strip("[)")
    if "-" in inner:
        return [int(number) * MSS for number in inner.split("-")]
    return [int(number) - 1 for number in inner.split(":")]


def frames(log: str) -> list[Row]:
    """Return the data and the acknowledgements of a log, without handshake and FIN."""
    rows: list[Row] = []
    offsets: dict[tuple[str, str], int] = {}
    following = 0
    for line in log.splitlines():
        at, way, flags, *words = line.split()
        value = dict(pairwise(words))
        lost = int("*DROP*" in words)
        if "S" in flags:
            continue
        if way == "C>S" and value["len"] != "0":
            # Segments are numbered by whole ones; the stream is contiguous at first sight.
            segment = (value["seq"], value["len"])
            if segment not in offsets:
                offsets[segment] = following
                following += int(value["len"])
            ce = int("ecn3" in words)
            rows.append([_microseconds(at), "data", offsets[segment], int(value["len"]), ce, lost])
        elif way == "S>C" and "F" not in flags:
            sacks = [_sack(word) for word in words if word.startswith("[")]
            ece = int("E" in flags)
            rows.append([_microseconds(at), "ack", _bytes(words[1]), sacks, ece, lost])
    return rows


def windows(log: str) -> list[Row]:
    """Return the windows of a log that differ from the previous one."""
    rows: list[Row] = []
    for line in log.splitlines():
        at, *words = line.split()
        if words == ["connected"]:
            continue
        value = dict(zip(words[::2], words[1::2], strict=True))
        threshold = int(value["ssth"])
        row: Row = [_microseconds(at), "window", int(value["cwnd"])]
        row += [None if threshold == UNSET else threshold, STATES[int(value["st"])]]
        if not rows or rows[-1][2:] != row[2:]:
            rows.append(row)
    return rows


def runs() -> dict[str, str]:
    """Return the arguments of each run."""
    table = (LOGS / "README.md").read_text()
    return dict(re.findall(r"^\| (\w+) \| (rate=.*?) \|$", table, re.MULTILINE))


def vector(name: str, arguments: str) -> str:
    """Return the vector of a run."""
    pairs = re.findall(r'(\w+)=(?:"([^"]*)"|(\S+))', arguments)
    value = {key: quoted or word for key, quoted, word in pairs}
    writes = [word.split(":") for word in value["writes"].split() if ":" in word]
    head = {
        "schema": "sojourn-window-vector/1",
        "name": name,
        "kernel": "Linux 6.1.192",
        "control": value.get("cc", "cubic"),
        "mss": MSS,
        "rate_bps": 1_000_000 * int(value["rate"]) or None,
        "rtt_us": 1000 * int(value["rtt"]),
        "ecn": "ECN negotiated" in arguments,
        "close": "close" in value["writes"],
        "writes": [[1000 * int(at), int(size)] for at, size in writes],
        "rules": value.get("rules", "").split(),
    }
    read = {end: (LOGS / f"{name}.{end}").read_text() for end in ("pk", "info")}
    events = sorted([*frames(read["pk"]), *windows(read["info"])], key=lambda row: row[0])
    lines = [f"{json.dumps(key)}: {json.dumps(entry)}," for key, entry in head.items()]
    rows = [json.dumps(row, separators=(",", ":")) for row in events]
    return "{\n" + "\n".join(lines) + '\n"events": [\n' + ",\n".join(rows) + "\n]\n}\n"


def main() -> None:
    """Write the vectors, or compare them with the logs."""
    check = sys.argv[1:] == ["--check"]
    VECTORS.mkdir(exist_ok=True)
    for name, arguments in runs().items():
        path, text = VECTORS / f"{name}.json", vector(name, arguments)
        if not check:
            path.write_text(text)
        elif path.read_text() != text:
            sys.exit(f"{path} differs from the log: run python tests/vectors/tools/windows.py")


if __name__ == "__main__":
    main()
