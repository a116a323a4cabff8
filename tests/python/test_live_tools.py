"""Measurements of irtt and flent in live runs, compared with the configuration and the result."""

import gzip
import json
import statistics
from pathlib import Path

import pytest

import flent_program
from live_probe import SERVER, folder, link, measured, needed, parsed, program, saved

__all__ = ["folder"]

RESULT = ("--out", "result", "--force")
IRTT_SERVER = ("--server", "irtt server")


def test_irtt_measures_the_rtt_and_half_of_it_in_each_direction(folder: Path) -> None:
    user = needed()
    program("irtt")
    client = "irtt client -d 1s -i 10ms -q -o irtt.json $SOJOURN_SERVER"
    words = ("live", "--rtt", "30ms", "--link", "100mbit", *RESULT, *IRTT_SERVER)

    def delays_ms() -> tuple[float, float, float]:
        done = user.run(*words, "--", "sh", "-c", client, folder=folder)
        assert done.returncode == 0, done.stderr
        stats = parsed(folder, "irtt.json")["stats"]
        assert stats["packets_received"] == stats["packets_sent"] >= 90
        names = ("rtt", "send_delay", "receive_delay")
        rtt, send, receive = (stats[name]["median"] / 1e6 for name in names)
        return rtt, send, receive

    rtt, send, receive = measured(delays_ms, lambda ms: ms[0] < 31)
    assert 30 < rtt < 31
    assert 15 < send < 15.7
    assert 15 < receive < 15.7
    # Two packets open and close the session.
    assert 90 <= link(saved(folder), "up")["sent_packets"] <= 110


def test_flent_measures_the_rtt_with_ping_and_irtt(folder: Path) -> None:
    user = needed()
    program("irtt", "ping")
    flent = [flent_program.program(), "ping", "-l", "2", "-s", "0.1", "-d", "0", "-H", SERVER]
    words = ("live", "--rtt", "30ms", *IRTT_SERVER, "--")
    variables = (f"HOME={folder}", "MPLBACKEND=agg")

    def medians_ms() -> dict[str, float]:
        done = user.run(*words, "env", *variables, *flent, "-D", str(folder), folder=folder)
        assert done.returncode == 0, done.stderr
        assert "ERROR" not in done.stdout + done.stderr
        newest = max(folder.glob("*.flent.gz"), key=lambda file: file.stat().st_mtime)
        with gzip.open(newest, "rt") as file:
            results = json.load(file)["results"]
        return {
            name: statistics.median(value for value in values if value is not None)
            for name, values in results.items()
        }

    found = measured(medians_ms, lambda ms: max(ms.values()) < 32)
    assert sorted(found) == ["Ping (ms) ICMP", "Ping (ms) UDP"]
    for delay in found.values():
        assert delay == pytest.approx(31, abs=1)
