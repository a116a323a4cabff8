"""Packets of a capture as tshark reads them."""

import shutil
import subprocess
from pathlib import Path

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
