"""Packets of a capture as tshark reads them, and captures with what tshark found in them."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import polars as pl

import sojourn as sj

# Made by tools/make_captures.py.
FOLDER = Path(__file__).parents[1] / "data/captures"
TSHARK = shutil.which("tshark")
# Payload stays data, whatever protocol has the random port of a client.
AS_DATA = ("-d", "tcp.port==1-65535,data")


def tshark(file: Path, *arguments: str) -> list[list[str]]:
    """Fields of packets, or other output of tshark, by line."""
    assert TSHARK is not None
    done = subprocess.run(
        [TSHARK, "-n", "-r", file, "-o", "ip.check_checksum:TRUE", *AS_DATA, *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return [line.split("\t") for line in done.stdout.splitlines()]


def fields(file: Path, kept: str, *names: str) -> list[list[str]]:
    """Fields of the packets that a filter keeps."""
    chosen = [word for name in names for word in ("-e", name)]
    return tshark(file, "-Y", kept, "-T", "fields", *chosen)


def at(file: Path, *points: str) -> Path:
    """The packets at these points, as Wireshark should analyse them."""
    kept = " || ".join(f'frame.interface_name == "{point}"' for point in points)
    chosen = file.with_name(f"{'-'.join(points)}.pcapng")
    tshark(file, "-Y", kept, "-w", str(chosen))
    return chosen


def figures() -> dict[str, dict[str, Any]]:
    """What tshark found in each capture of the folder, by file name."""
    text = (FOLDER / "figures.json").read_text(encoding="utf-8")
    found: dict[str, dict[str, Any]] = json.loads(text)
    return found


def by_tshark(file: Path) -> dict[str, float]:
    """Totals over all TCP streams of a capture, by tshark."""
    flags = ("retransmission", "spurious_retransmission", "out_of_order", "keep_alive", "ack_rtt")
    names = ("frame.len", "tcp.len", *(f"tcp.analysis.{flag}" for flag in flags))
    packets = fields(file, "tcp", *names)
    rtts = [float(packet[6]) * 1e3 for packet in packets if packet[6]]
    return {
        "packets": len(packets),
        "payload_bytes": sum(int(packet[1]) for packet in packets),
        "retransmissions": sum(bool(packet[2]) for packet in packets),
        "spurious": sum(bool(packet[3]) for packet in packets),
        "out_of_order": sum(bool(packet[4]) for packet in packets),
        "rtt_samples": len(rtts),
        "rtt_ms_mean": round(sum(rtts) / max(1, len(rtts)), 6),
        "rtt_ms_max": round(max(rtts, default=0.0), 6),
    }


def by_sojourn(file: Path, column: str = "wireshark_event") -> dict[str, float]:
    """The same totals by the import, by Wireshark's rule or (column ``event``) by ours."""
    packets = sj.read_capture(file)
    packets = packets.filter(~pl.col("flow").str.contains("^(udp|ping) "))
    events, rtts = packets[column], packets["rtt_ms"].drop_nulls()
    return {
        "packets": packets.height,
        "payload_bytes": float(packets["payload_bytes"].sum()),
        "retransmissions": float(events.is_in(["retransmission", "spurious"]).sum()),
        "spurious": float((events == "spurious").sum()),
        "out_of_order": float((events == "out of order").sum()),
        "rtt_samples": len(rtts),
        "rtt_ms_mean": round(float(rtts.sum()) / max(1, len(rtts)), 6),
        "rtt_ms_max": round(float(rtts.max() or 0.0), 6),  # type: ignore[arg-type]
    }
