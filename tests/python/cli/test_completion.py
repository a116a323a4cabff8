"""What the shell completes, asked as bash asks."""

import subprocess
import sys
from pathlib import Path

import pytest

from sojourn.studies import study as studies
from support.shell import ROOT, completed, environment

SCENARIO = """
duration = "10s"
rtt = "20ms"
links.up = {rate = "10mbit", qdisc = "codel"}
links.down = {rate = "10mbit", qdisc = "pfifo"}
links.lan = "unlimited"
traffic = [
    {type = "tcp", direction = "up", name = "bulk"},
    {type = "ping", path = ["up"], return = ["lan"], name = "ping"},
]
"""

WORDS = [
    (("compare", "fq_co"), ["fq_codel"]),
    (("compare", "pfifo", "dualp"), ["dualpi2"]),
    (("compare", "./"), ["./mine.py:"]),
    (("compare", "./mine.py:"), ["./mine.py:Ramp"]),
    (("compare", "./absent.py:"), []),
    (("compare", "--cc", "bb"), ["bbr", "bbr3"]),
    (("compare", "--traffic", "rrul"), ["rrul", "rrul_be"]),
    (("compare", "--traffic", "web+tcp_1u"), ["web+tcp_1up", "web+tcp_1up_1down"]),
    (("sweep", "rrul"), ["rrul", "rrul_be"]),
    (("sweep", "a"), ["a.toml"]),
    (("tune", "absent/"), []),
    (("live", "--qdisc", "dualp"), ["dualpi2"]),
    (("qdiscs", "sfq"), ["sfq", "sfq_codel"]),
    (("ccs", "pra"), ["prague"]),
    (("rfc9743", "bb"), ["bbr", "bbr3"]),
    (("rfc9743", "bbr3", "--against", "cu"), ["cubic"]),
    (("cc-cases", "bb"), ["bbr", "bbr3"]),
    (("reproduce", "res"), ["residential"]),
    (("reproduce", ""), studies.names(ROOT / "papers")),
    (("run", "a.toml", "-s", "links.up.qdisc.ta"), ["links.up.qdisc.target="]),
    (("run", "a.toml", "-s", "links.do"), None),
    (("run", "a.toml", "-s", "links.up.qdisc.ce_"), ["links.up.qdisc.ce_threshold="]),
    (("run", "a.toml", "-s", "links.nowhere."), []),
    (("run", "a.toml", "-s", "traffic.bulk.co"), ["traffic.bulk.count="]),
    (("run", "a.toml", "-s", "traffic.bulk.cc.be"), ["traffic.bulk.cc.beta="]),
    (("run", "a.toml", "-s", "traffic.ping.cc"), []),
    (("run", "a.toml", "-s", "du"), ["duration="]),
]


@pytest.mark.parametrize(("words", "expected"), WORDS)
def test_the_shell_completes_names(
    words: tuple[str, ...], expected: list[str] | None, tmp_path: Path
) -> None:
    (tmp_path / "a.toml").write_text(SCENARIO)
    # Completion reads it only.
    text = "raise SystemExit\nclass Ramp(sj.PythonQueue):\n    pass\nclass Part:\n    pass\n"
    (tmp_path / "mine.py").write_text(text)
    found = completed(*words, cwd=tmp_path)
    if expected is None:
        assert "links.down.rate=" in found
        assert all(word.startswith("links.down.") for word in found)
    else:
        assert found == expected


@pytest.mark.parametrize("text", [None, "duration =", "\x00"])
def test_nothing_is_completed_from_what_is_no_scenario(text: str | None, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / "a.toml").write_text(text)
    assert completed("run", "a.toml", "-s", "links.", cwd=tmp_path) == []
    assert completed("reproduce", "--papers", "nowhere", "r", cwd=tmp_path) == []


def test_the_completion_script_is_that_of_the_command(tmp_path: Path) -> None:
    # The script is for the shell that asks.
    asked = subprocess.run(
        ["/bin/bash", "-c", '"$0" -m sojourn --show-completion; exit "$?"', sys.executable],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert " _SOJOURN_COMPLETE=complete_bash " in asked.stdout
    assert asked.stdout.rstrip().endswith("_sojourn_completion sojourn")
    parsed = subprocess.run(["/bin/bash", "-n"], input=asked.stdout, text=True, check=False)
    assert parsed.returncode == 0
