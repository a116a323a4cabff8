"""Live runs of real programs: delay, rate, ECN, IPv6 and what the command prints.

The values are those of the configuration: a round trip takes the RTT and the time to send the
packets, and TCP reaches the share of the rate that headers leave.
"""

import json
import os
import re
import statistics
from pathlib import Path
from typing import Any

import pytest

import sojourn as sj
from support.live_probe import (
    SERVER,
    SERVER6,
    User,
    folder,
    link,
    measured,
    needed,
    parsed,
    program,
    saved,
    unprivileged,
    with_interpreter,
)
from support.stored import COMMAND

__all__ = ["folder"]

# What a link carries of a full packet: 1448 bytes of payload, the headers of TCP and IP, and
# 14 bytes of Ethernet, which queues count as in Linux.
PAYLOAD = 1448 / 1514
PING_MS = re.compile(r"time=([\d.]+) ms")
RESULT = ("--out", "result", "--force")
# A buffer of 230 ms at 10 Mbit/s with datagrams of 1442 bytes.
LARGE = "pfifo limit 200"
LINKS = """
duration = "5s"
rtt = "20ms"
links.up = { rate = "20mbit", qdisc = "fq_codel" }
links.down = { rate = "20mbit", qdisc = "fq_codel" }
"""
SCENARIO = f"""{LINKS}
traffic = [
    {{ type = "tcp", name = "tcp", direction = "down" }},
    {{ type = "ping", name = "ping", direction = "up" }},
    {{ type = "voip", name = "voip", direction = "up" }},
    {{ type = "web", name = "web", direction = "down", page = "small", think = "200ms" }},
    {{ type = "dash", name = "dash", direction = "down", segment = "1s" }},
    {{ type = "sessions", name = "sessions", direction = "down", bytes = "20kb", every = "200ms" }},
    {{ type = "request", name = "request", direction = "down", bytes = "2kb" }},
    {{ type = "incast", name = "incast", direction = "down", bytes = "2kb", servers = 4 }},
    {{ type = "responsiveness", name = "responsiveness", direction = "down", connections = 2 }},
    {{ type = "udp", name = "udp", direction = "up", rate = "200kbit" }},
]
"""


def rtts_ms(text: str) -> list[float]:
    """Round-trip times that ping has printed."""
    return [float(time) for time in PING_MS.findall(text)]


def ping(user: User, folder: Path, *options: str, server: str = SERVER) -> float:
    """Median round-trip time of 20 pings, in ms, after the first, which fills the caches."""
    words = ("live", *options, "--", "ping", "-c", "21", "-i", "0.02", server)
    done = user.run(*words, folder=folder)
    assert done.returncode == 0, done.stderr
    times = rtts_ms(done.stdout)
    assert len(times) == 21, done.stdout
    return statistics.median(times[1:])


@pytest.mark.parametrize(("server", "size"), [(SERVER, 98), (SERVER6, 118)])
def test_a_ping_takes_the_rtt_and_the_time_to_send_it(folder: Path, server: str, size: int) -> None:
    user = needed()
    program("ping")
    sending = size * 8 / 10e6 * 1e3 + size * 8 / 1e6 * 1e3
    expected = 40 + sending
    found = measured(
        lambda: ping(user, folder, "--link", "10/1mbit", "--rtt", "40ms", server=server),
        lambda ms: ms < expected + 2,
    )
    assert expected - 0.1 < found < expected + 2


def transfer(user: User, folder: Path, rate: int, *options: str) -> dict[str, Any]:
    """Download with iperf3 for 2 s; return the measurements."""
    words = ("--link", f"{rate}mbit", "--rtt", "20ms", *options, *RESULT)
    client = "iperf3 -c $SOJOURN_SERVER -R -t 2 -i 0.5 -J > iperf3.json"
    done = user.run(
        "live", *words, "--server", "iperf3 -s -1", "--", "sh", "-c", client, folder=folder
    )
    assert done.returncode == 0, done.stderr
    iperf3 = parsed(folder, "iperf3.json")
    # Without slow start.
    rates = [interval["sum"]["bits_per_second"] for interval in iperf3["intervals"][1:4]]
    return {
        "share": statistics.mean(rates) / (rate * 1e6 * PAYLOAD),
        "down": link(saved(folder), "down"),
        "retransmits": iperf3["end"]["sum_sent"]["retransmits"],
    }


@pytest.mark.parametrize(
    ("qdisc", "least_ms", "most_ms"),
    [(LARGE, 200, 270), ("fq_codel", 20, 30), ("cake", 20, 30)],
)
def test_the_queue_decides_on_the_delay_under_load(
    folder: Path, qdisc: str, least_ms: float, most_ms: float
) -> None:
    user = needed()
    program("iperf3", "ping")
    load = "iperf3 -c $SOJOURN_SERVER -R -u -b 20M -l 1400 -t 2 > load.txt 2>&1 &"
    pings = f"{load} sleep 1; ping -i 0.05 -w 1 {SERVER}; kill $!"
    words = ("--rtt", "20ms", "--qdisc", qdisc, "--server", "iperf3 -s -1", "--", "sh", "-c")

    def delay_ms() -> float:
        done = user.run("live", *words, pings, folder=folder)
        times = rtts_ms(done.stdout)
        assert times, done.stdout + done.stderr
        return statistics.median(times)

    found = measured(delay_ms, lambda ms: least_ms < ms < most_ms)
    assert least_ms < found < most_ms


def test_ecn_marks_instead_of_dropping(folder: Path) -> None:
    user = needed()
    program("iperf3")
    options = ("--qdisc", "fq_codel", "--qdisc-up", "pfifo", "--ecn")
    found = transfer(user, folder, 20, *options)
    down = found["down"]
    assert down["marks_aqm"] > 0
    assert (down["drops_aqm"], down["drops_overlimit"]) == (0, 0)
    # A mark changes the header: a wrong checksum would look like a loss.
    assert found["retransmits"] == 0
    assert found["share"] > 0.8


def test_curl_fetches_a_file_over_both_protocols(folder: Path) -> None:
    user = needed()
    program("curl", "python3")
    (folder / "file").write_bytes(os.urandom(300_000))
    server = f"python3 -m http.server 80 --bind :: --directory {folder}"
    get = "curl -sS -g --retry 9 --retry-connrefused --retry-delay 1 -w '%{remote_ip}\\n'"
    line = f"{get} -o 4 http://$SOJOURN_SERVER/file; {get} -o 6 http://[$SOJOURN_SERVER6]/file"
    done = user.run("live", "--ecn", "--server", server, "--", "sh", "-c", line, folder=folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [SERVER, SERVER6]
    for name in ("4", "6"):
        assert (folder / name).read_bytes() == (folder / "file").read_bytes()


def facts(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the facts of the saved run, by name."""
    return {fact["name"]: fact for fact in saved(folder).provenance["validity"]}


def test_the_controls_and_the_ecn_of_programs_are_those_of_their_sockets(folder: Path) -> None:
    _check_sockets(needed(), folder)


def _check_sockets(user: User, folder: Path) -> None:
    """Transfer with a control that is not the default, beside a connection with the default."""
    program("iperf3")
    default = Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text(encoding="ascii").strip()
    control = "cubic" if default == "reno" else "reno"
    client = ("iperf3", "-c", SERVER, "-R", "-t", "1", "-C", control)
    done = user.run(
        *("live", "--ecn", *RESULT, "--server", "iperf3 -s -1", "--", *client), folder=folder
    )
    assert done.returncode == 0, done.stderr
    found = facts(folder)
    # iperf3 has a connection with the default for its parameters and results. The other one counts
    # for both controls if it is sampled before iperf3 sets its own.
    counts = {default: r"\((1 connection|2 connections)\)", control: r"\(1 connection\)"}
    both = ", ".join(f"{name} {counts[name]}" for name in sorted(counts))
    value = found["program_congestion_control"]["value"]
    assert re.fullmatch(f"client: {both}; server: {both}", value), value
    ecn = "2 of 2 connections"
    assert found["program_ecn_negotiated"]["value"] == f"client: {ecn}; server: {ecn}"


def test_packets_that_a_socket_has_no_room_for_are_lost_outside_the_queue(folder: Path) -> None:
    program("python3")
    socket = "import socket, time; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM);"
    small = "s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)"
    serve = f"{socket} {small}; s.bind(('', 80)); time.sleep(9)"
    send = f"{socket} [s.sendto(bytes(900), ('{SERVER}', 80)) for n in range(50)]; time.sleep(0.5)"
    words = (*RESULT, "--server", f'python3 -c "{serve}"', "--", "python3", "-c", send)
    done = needed().run("live", *words, folder=folder)
    assert done.returncode == 0, done.stderr
    lost = facts(folder)["lost_outside_queue"]
    assert not lost["passed"]
    assert re.fullmatch(r"(4\d) of \d+ packets: \1 at UDP receive buffers", lost["value"]), lost
    assert "error: failed check lost_outside_queue: 4" in done.stderr


EXITS: list[tuple[tuple[str, ...], tuple[str, ...], int, str]] = [
    ((), ("sh", "-c", "exit 7"), 7, ""),
    ((), ("sh", "-c", "kill -9 $$"), 137, ""),
    (("--duration", "1s"), ("sleep", "60"), 0, ""),
    ((), ("no-such-program",), 3, "cannot start no-such-program: no such program in PATH"),
    ((), ("ping x",), 3, "cannot start ping x: no such program in PATH; write its arguments as "),
    ((), ("/usr",), 3, "cannot start /usr: it is a directory"),
    ((), ("/no/such/program",), 3, "cannot start /no/such/program: no such file"),
    (("--server", "no-such-server"), ("true",), 3, "cannot start no-such-server"),
    (("--server", '"'), ("true",), 2, '--server ": no closing quotation'),
    (("--prometheus", "nine"), ("true",), 2, "--prometheus nine: no port; expected ADDRESS:PORT"),
]


def test_exit_codes(folder: Path) -> None:
    user = needed()
    # All at once: nothing is measured.
    processes = [
        user.popen("live", *options, "--", *words, folder=folder) for options, words, _, _ in EXITS
    ]
    errors = [process.communicate(timeout=100)[1] for process in processes]
    for process, err, (_, words, code, said) in zip(processes, errors, EXITS, strict=True):
        assert process.returncode == code, f"{words}: {err}"
        assert "Traceback" not in err
        if said:
            (line,) = err.splitlines()
            assert line.startswith(f"sojourn: {said}")


def test_a_run_without_packets_names_the_server(folder: Path) -> None:
    done = needed().run("live", *RESULT, "--strict", "--", "sleep", "0.1", folder=folder)
    failed = [line for line in done.stderr.splitlines() if re.match("error|warning|note", line)]
    # Other processes may delay the datapath.
    said = "note: no packet crossed the links; use $SOJOURN_SERVER as the server"
    assert [line for line in failed if "datapath" not in line] == [said]
    found = facts(folder)
    assert found["ended_by"]["value"] == "the program"
    assert "no connection seen, default" in found["program_congestion_control"]["value"]
    assert "server" not in found


def test_a_server_that_fails_during_the_run_is_an_error(folder: Path) -> None:
    listens = "import socket, time; s = socket.create_server(('', 80)); time.sleep(0.3); exit(5)"
    server = ("--server", f'python3 -c "{listens}"')
    done = needed().run("live", *RESULT, *server, "--", "sleep", "1", folder=folder)
    assert done.returncode == 0, done.stderr
    assert re.search(
        r"^error: failed check server: ended with exit code 5 after 0\.\d s\.$",
        done.stderr,
        re.MULTILINE,
    ), done.stderr


def test_json_is_one_document_whatever_the_program_prints(folder: Path) -> None:
    program("ping")
    ping = ("ping", "-c", "5", "-i", "0.3", SERVER)
    done = needed().run("live", "--json", *RESULT, "--view", "--", *ping, folder=folder)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["scenario"] == "ping"
    assert len(rtts_ms(done.stderr)) == 5
    # Standard error is no terminal: a line per link and second.
    lines = re.findall(r"^ +1 s +(down|up) +[\d.]+ Mbit/s +backlog", done.stderr, re.MULTILINE)
    assert lines == ["down", "up"]
    assert "\x1b" not in done.stderr
    result = saved(folder)
    assert result.complete
    assert result.provenance["backend"]["name"] == "live"
    assert link(result, "down")["sent_packets"] == 5
    shown = needed().run("report", "result", folder=folder)
    assert shown.returncode == 0, shown.stderr
    assert "<html" in (folder / "result" / "report.html").read_text(encoding="utf-8")


def test_the_view_shows_the_flows_of_each_link(folder: Path) -> None:
    program("ping")
    ping = ("ping", "-c", "8", "-i", "0.2", SERVER)
    done = needed().run("live", *RESULT, "--view-flows", "2", "--", *ping, folder=folder)
    assert done.returncode == 0, done.stderr
    flows = re.findall(r"^ +icmp id (\d+) +[\d.]+ Mbit/s +sojourn", done.stderr, re.MULTILINE)
    # A line per link and second; the run may last longer than two seconds.
    assert len(flows) >= 2
    assert len(set(flows)) == 1


@pytest.mark.parametrize("server", [SERVER, SERVER6])
def test_a_run_within_a_run_adds_its_link_to_the_path(folder: Path, server: str) -> None:
    _check_nested(needed(), folder, server)


def _check_nested(user: User, folder: Path, server: str) -> None:
    """Three runs, each of which is the program of the one before it."""
    program("ping")
    inner = ("--rtt", "20ms", "--", *COMMAND, "live", "--rtt", "30ms", "--", *COMMAND, "live")
    found = measured(
        lambda: ping(user, folder, *inner, "--rtt", "40ms", server=server), lambda ms: ms < 95
    )
    assert 90 < found < 95


def test_a_run_within_a_run_has_the_server_of_the_outermost_one(folder: Path) -> None:
    program("ping")
    inner = (*COMMAND, "live", "--server", "sleep 9", "--", "true")
    done = needed().run("live", "--", *inner, folder=folder)
    assert done.returncode == 3
    assert "a nested run uses the server of the outermost run" in done.stderr


def test_a_scenario_of_the_simulator_runs_with_real_sockets(folder: Path) -> None:
    (folder / "all.toml").write_text(SCENARIO, encoding="utf-8")
    _check_applications(needed(), folder)


def _check_applications(user: User, folder: Path) -> None:
    done = user.run("run", "all.toml", "--on", "live", *RESULT, folder=folder)
    assert done.returncode == 0, done.stderr
    result = saved(folder)
    flows = {row["group"]: row for row in result.flows.to_dicts()}
    assert flows["tcp"]["goodput_mbit_per_s"] > 1
    assert flows["tcp"]["srtt_ms_mean"] > 20
    assert 20 < flows["ping"]["ping_ms_median"] < 60
    assert flows["ping"]["ping_loss"] < 0.05
    assert flows["udp"]["goodput_mbit_per_s"] == pytest.approx(0.2, rel=0.05)
    for group in ("web", "dash", "sessions", "request", "incast", "responsiveness", "voip"):
        assert flows[group]["received_packets"] > 0, group
    applications = {row["group"]: row for row in result.applications.to_dicts()}
    assert applications["voip"]["mos"] > 3
    assert applications["responsiveness"]["rpm"] > 0
    for group in ("web", "dash", "sessions", "request", "incast"):
        assert applications[group]["completed"] > 0, group


TRAFFIC = 'type = "tcp", direction = "down"'


def test_a_wireless_link_is_refused(folder: Path) -> None:
    wireless = ("-s", 'links.up.medium={ type = "wifi", name = "home" }')
    (folder / "one.toml").write_text(f"{LINKS}traffic = [{{ {TRAFFIC} }}]\n", encoding="utf-8")
    done = needed().run("run", "one.toml", *wireless, "--on", "live", folder=folder)
    assert done.returncode == 2, done.stderr
    assert "links.up.medium" in done.stderr
    assert "a wireless link" in done.stderr


@pytest.mark.parametrize(
    ("traffic", "said"),
    [
        ('{ type = "quic", direction = "down" }', "QUIC"),
        (
            f'{{ {TRAFFIC}, cc = "bbr3" }}',
            r"has not loaded \(as root: modprobe tcp_bbr3; `sojourn doctor`",
        ),
        (f"{{ {TRAFFIC}, mss = 500 }}", "a segment size other than 1448 bytes"),
        (
            ", ".join(['{ type = "program", direction = "down", command = ["true"] }'] * 2),
            "program",
        ),
    ],
)
def test_what_real_sockets_do_not_have_is_refused(traffic: str, said: str) -> None:
    with pytest.raises(sj.ScenarioError, match=said):
        sj.run(sj.Scenario.from_toml(f"{LINKS}traffic = [{traffic}]\n"), on="live")


class TestUnprivileged:
    """The same without privileges, in a user namespace."""

    def test_ping(self, folder: Path) -> None:
        user = unprivileged()
        program("ping")
        found = measured(lambda: ping(user, folder, "--rtt", "40ms"), lambda ms: ms < 42.2)
        assert 40 < found < 42.2

    def test_runs_within_runs(self, folder: Path) -> None:
        _check_nested(with_interpreter(unprivileged()), folder, SERVER)

    def test_tcp(self, folder: Path) -> None:
        user = unprivileged()
        program("iperf3")
        found = measured(
            lambda: transfer(user, folder, 10, "--qdisc", "fq_codel"),
            lambda value: abs(value["share"] - 1) < 0.05,
        )
        assert found["share"] == pytest.approx(1, abs=0.05)

    def test_sockets(self, folder: Path) -> None:
        _check_sockets(unprivileged(), folder)

    def test_applications(self, folder: Path) -> None:
        text = SCENARIO.replace('"5s"', '"3s"')
        (folder / "all.toml").write_text(text, encoding="utf-8")
        _check_applications(unprivileged(), folder)
