"""Configurations in the forms of tc, SQM, LibreQoS and systemd-networkd, imported as they are."""

import re
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import sojourn as sj
from sojourn.advice.router_config import as_scenario as routers
from support.refusals import refused
from support.shell import ROOT, Command, shell

DATA = Path(__file__).parents[1] / "data" / "configurations"
# For each file, what the links contain: path in the link, and the value or a part of it.
READ: dict[str, dict[str, str]] = {
    "simple_qos.sh": {
        "up.qdisc.default": "1:12",
        "up.qdisc.classes.0.rate": "19000kbit",
        "up.qdisc.classes.0.overhead": "44",
        "up.qdisc.classes.0.linklayer": "atm",
        "up.qdisc.classes.1.ceil": "6333kbit",
        "up.qdisc.classes.3.leaf": "fq_codel limit 1001 target 5ms interval 100ms noecn",
        "up.qdisc.filters.0.dscp": "46",
        "down.qdisc.classes.0.rate": "84000kbit",
        "down.qdisc.classes.1.leaf": "fq_codel",
    },
    "simplest_qos.sh": {
        "up.qdisc.classes.0.rate": "9500kbit",
        "up.qdisc.classes.0.leaf": "fq_codel limit 1001 noecn",
        "down.qdisc.classes.0.rate": "45mbit",
    },
    "piece_of_cake.sh": {
        "up.qdisc": "cake bandwidth 36000kbit besteffort nat overhead 34 mpu 0 ptm",
        "down.qdisc": "cake bandwidth 95000kbit besteffort nat wash ingress overhead 34",
    },
    "layer_cake.sh": {
        "up.qdisc": "cake bandwidth 18000kbit diffserv3 nat dual-srchost ack-filter docsis",
        "down.qdisc": "cake bandwidth 90000kbit diffserv4 nat dual-dsthost wash ingress docsis",
    },
    "cake_ifb_guide.sh": {
        "up.qdisc": "cake bandwidth 20Mbit pppoe-ptm ether-vlan nat",
        "down.qdisc": "cake bandwidth 75Mbit pppoe-ptm ether-vlan nat ingress",
    },
    "fq_codel_ifb.sh": {
        "up.qdisc.classes.0.rate": "4mbit",
        "up.qdisc.classes.0.leaf": "fq_codel quantum 300 target 8ms interval 100ms noecn",
        "down.qdisc.classes.0.rate": "24mbit",
    },
    "htb_guide.sh": {
        "up.qdisc.classes.1.rate": "40kbps",
        "up.qdisc.classes.2.parent": "1:2",
        "up.qdisc.classes.4.leaf": "sfq perturb 10",
        "up.qdisc.filters.0.destination_port": "80",
    },
    "htb_servers.sh": {
        "up.qdisc.classes.0.burst": "15k",
        "up.qdisc.classes.3.rate": "1kbit",
        "up.qdisc.filters.1.source_port": "25",
    },
    "wondershaper.sh": {
        "up.qdisc.classes.0.rate": "1000kbit",
        "up.qdisc.classes.2.rate": "900kbit",
        "up.qdisc.classes.3.rate": "800kbit",
        "up.qdisc.filters.1.protocol": "icmp",
    },
    # The limit is 220 kbit/s for 50 ms and the burst, as tc computes it.
    "tbf_modem.sh": {
        "up.rate": "220000bit",
        "up.burst": "1540b",
        "up.bucket": "tbf",
        "up.qdisc": "bfifo limit 2915b",
    },
    # tc reads 32kbit of burst as 4096 bytes.
    "tbf_fq_codel.sh": {
        "up.rate": "10000000bit",
        "up.burst": "4096b",
        "up.overhead": "8b",
        "up.qdisc": "fq_codel",
    },
    "prio_sfq.sh": {"up.qdisc": "prio leaf sfq / fq_codel / sfq perturb 20"},
    "flower_ipv6.sh": {
        "up.qdisc.filters.0.destination_port": "53",
        "up.qdisc.filters.1.protocol": "icmp",
        "up.qdisc.filters.1.ip": "6",
        "up.qdisc.filters.2.destination_port": "22",
        "up.qdisc.filters.2.ip": "6",
    },
    "batch.tc": {
        "up.qdisc.default": "1:20",
        "up.qdisc.classes.0.rate": "50Mbit",
        "up.qdisc.classes.1.leaf": "pfifo limit 50",
        "up.qdisc.classes.2.leaf": "cake besteffort",
    },
    "root_fq_codel.sh": {"up.qdisc": "fq_codel limit 2000 ce_threshold 1ms"},
    "listing_cake.txt": {
        "up.qdisc": "cake bandwidth 19mbit besteffort dual-srchost nat",
        "down.qdisc": "cake bandwidth 180mbit besteffort dual-dsthost nat wash",
    },
    "sqm.uci": {
        "up.qdisc": "cake bandwidth 19mbit besteffort triple-isolate nat no-ack-filter rtt 100ms "
        "noatm overhead 44b",
        "down.qdisc": "cake bandwidth 85mbit besteffort triple-isolate nat wash",
    },
    "sqm_simplest.uci": {
        "up.rate": "8000000bit",
        "up.framing": "atm",
        "up.overhead": "40b",
        "up.qdisc": "fq_codel limit 1001",
        "down.rate": "40000000bit",
    },
    "sqm_show.txt": {"up.qdisc": "cake bandwidth 5mbit diffserv3", "down.qdisc": "pfifo"},
    "cake_autorate.sh": {
        "up.qdisc": "cake bandwidth 18000kbit",
        "down.qdisc": "cake bandwidth 20000kbit",
    },
    "qosify.uci": {
        "up.qdisc": "cake bandwidth 20mbit diffserv4 egress nat dual-srchost docsis ack-filter",
        "down.qdisc": "cake bandwidth 100mbit diffserv4 ingress nat dual-dsthost docsis",
    },
    "cake.network": {
        "up.qdisc": "cake bandwidth 45000000bit rtt 50ms overhead 18 mpu 64b noatm dual-srchost "
        "nat besteffort ack-filter",
    },
    "htb.network": {
        "up.qdisc.default": "2:30",
        "up.qdisc.classes.1.ceil": "15000000bit",
        "up.qdisc.classes.1.burst": "16384b",
        "up.qdisc.classes.1.leaf": "fq_codel limit 600 target 10ms ecn",
        "up.qdisc.classes.2.rate": "19000000bit",
    },
    "network.json ShapedDevices.csv": {
        "up.qdisc.classes.1.rate": "12mbit",
        "down.qdisc.classes.2.ceil": "25mbit",
        "down.qdisc.classes.3.leaf": "fq_codel",
    },
}
REFUSED = {
    "ets.sh": 'line 1: unknown queue "ets"; use prio for strict bands',
    "drr.sh": "line 2: classes of drr are not read; expected htb",
    "hfsc.sh": 'line 1: unknown queue "hfsc"',
    "cbq.sh": 'line 1: unknown queue "cbq"',
    "netem.sh": 'line 1: unknown queue "netem"; the link does this',
    "loop.sh": "loops, conditions and functions are not read",
    "ets.network": "line 4: [EnhancedTransmissionSelection]: not read; expected one of CAKE",
}


def imported(names: str, **around: str) -> tuple[str, Sequence[str]]:
    """Import files as `sojourn import` does."""
    paths = [DATA / name for name in names.split()]
    found = routers.configuration(paths)
    assert found is not None, f"{names} is not recognized"
    return routers.scenario(found, routers.AroundPlan(**around))


def at(value: Any, path: str) -> str:
    """Return the value at a path of keys and places."""
    for key in path.split("."):
        value = value[int(key) if isinstance(value, list) else key]
    return f"{value}"


def test_every_file_has_a_row() -> None:
    rows = {name for names in (*READ, *REFUSED) for name in names.split()}
    assert rows == {path.name for path in DATA.iterdir()} - {"README.md"}


@pytest.mark.parametrize("names", READ)
def test_a_configuration_has_its_links_and_runs(names: str) -> None:
    text, _ = imported(names)
    links = tomllib.loads(text)["links"]
    for path, expected in READ[names].items():
        assert expected in at(links, path), path
    shorter = re.sub(r'(?m)^(duration = ")\d+s', r"\g<1>2s", text)
    shorter = re.sub(r'(?m)^(warmup = ")\d+s', r"\g<1>1s", shorter)
    assert sj.run(sj.Scenario.from_toml(shorter), replications=1).flows.height > 0


@pytest.mark.parametrize("name", REFUSED)
def test_a_configuration_is_refused_in_one_line(name: str) -> None:
    with pytest.raises(sj.ScenarioError) as error:
        imported(name)
    message = f"{error.value}"
    assert REFUSED[name] in message
    assert "\n" not in message


def test_filters_for_ipv6_are_read_but_for_those_by_network() -> None:
    text, notes = imported("flower_ipv6.sh")
    filters = tomllib.loads(text)["links"]["up"]["qdisc"]["filters"]
    assert [one.get("ip") for one in filters] == [None, "6", "6"]
    assert any("filters by IPv6 network are not read" in note for note in notes)
    text, same = imported("simple_qos.sh")
    assert not any("IPv6" in note for note in same)
    assert "ip =" not in text


def test_without_a_line_a_note_says_what_the_bottleneck_is(sojourn: Command) -> None:
    file = f"{DATA / 'piece_of_cake.sh'}"
    assert sojourn("import", file).stderr.splitlines()[-1] == (
        "note: nothing is behind the queues of the router, so they are the bottleneck; --preset or "
        "--link adds the line"
    )
    behind = sojourn("import", file, "--link", "40mbit")
    assert "nothing is behind" not in behind.stderr
    assert set(tomllib.loads(behind.stdout)["links"]) == {"up", "down", "line_up", "line_down"}


@pytest.mark.parametrize(
    ("line", "mbit"),
    [
        ("cake bandwidth 20Mbit", 20),
        ("tbf rate 3mbit burst 10k limit 20k", 3),
        ("fq_codel", 1000),
        ("handle 1: htb\ntc class add dev e parent 1: classid 1:1 htb rate 1mbit ceil 20mbit", 20),
    ],
)
def test_the_rate_of_a_router_is_that_of_downloads_and_is_compared_with_the_line(
    line: str, mbit: int, tmp_path: Path, sojourn: Command
) -> None:
    (tmp_path / "r.sh").write_text(f"tc qdisc add dev e root {line}\n")
    alone = sojourn("import", "r.sh", "--traffic", "household")
    down = tomllib.loads(alone.stdout)["links"]["down"]
    assert down == {"rate": f"{mbit}000000bit", "qdisc": "pfifo"}
    said = f"links.down is a pfifo at the rate of uploads, {mbit} Mbit/s; name a link or a preset"
    assert said in alone.stderr
    up = sojourn("import", "r.sh", "--traffic", "tcp_1up")
    assert tomllib.loads(up.stdout)["links"]["down"] == "unlimited"
    behind = sojourn("import", "r.sh", "--preset", "vdsl").stderr
    line = "the line behind it has 10 Mbit/s, so packets wait in links.line_up"
    said = f"r.sh: e: shapes at {mbit} Mbit/s, but {line}; lower the rate to see the effect of this"
    assert (said in behind) == (10 < mbit < 1000)
    said = f"r.sh: e: has no rate below that of the port, and {line}, not in this queue"
    assert (said in behind) == (mbit == 1000)


@pytest.mark.parametrize("names", READ)
def test_all_packets_cross_the_line_behind_the_router(names: str) -> None:
    text, _ = imported(names, link="4/2mbit", rtt="20ms")
    shorter = re.sub(r'(?m)^(duration = ")\d+s', r"\g<1>6s", text)
    shorter = re.sub(r'(?m)^(warmup = ")\d+s', r"\g<1>2s", shorter)
    links = sj.run(sj.Scenario.from_toml(shorter), replications=1).links
    sent = dict(links.select("link", "sent_packets").iter_rows())
    assert {"line_up", "line_down"} < set(sent)
    for direction in {"up", "down"} & set(sent):
        assert sent[direction] == pytest.approx(sent[f"line_{direction}"], rel=0.1)


def test_a_preset_gives_the_line_its_rates_buffers_link_layer_and_round_trip_time() -> None:
    text, _ = imported("layer_cake.sh", preset="vdsl")
    read = tomllib.loads(text)
    assert read["rtt"] == "25ms"
    # Of 10 Mbit/s for 300 ms, and of 50 Mbit/s for 100 ms.
    assert read["links"]["line_up"] == {
        "rate": "10mbit",
        "qdisc": "bfifo limit 375000b",
        "overhead": "20b",
        "mpu": "0b",
        "framing": "ptm",
    }
    assert read["links"]["line_down"]["qdisc"] == "bfifo limit 625000b"
    faster, _ = imported("layer_cake.sh", preset="vdsl", link="2gbit", rtt="9ms")
    read = tomllib.loads(faster)
    assert (read["rtt"], read["links"]["line_up"]["rate"]) == ("9ms", "2000mbit")
    # The ports of the router are not the bottleneck.
    assert read["links"]["up"]["rate"] == "20000000000bit"


def test_an_imported_configuration_has_the_named_traffic() -> None:
    text, _ = imported("sqm.uci", traffic="household")
    blocks = {one["name"]: one for one in tomllib.loads(text)["traffic"]}
    assert set(blocks) == {"tcp up", "tcp down", "web", "voip up", "voip down", "ping"}
    assert (blocks["tcp up"]["direction"], blocks["tcp up"]["host"]) == ("up", 1)
    with pytest.raises(sj.ScenarioError) as error:
        imported("sqm.uci", traffic="web+sessions")
    assert f"{error.value}" == (
        "traffic='sessions': its load is relative to the rate of the line; expected link or preset"
    )
    text, _ = imported("sqm.uci", traffic="web+sessions", link="10mbit")
    assert {"web", "sessions"} < {one["name"] for one in tomllib.loads(text)["traffic"]}


def test_options_that_a_file_has_no_use_for_are_refused(tmp_path: Path, sojourn: Command) -> None:
    for name in ("listing_cake.txt", "tbf_modem.sh"):
        (tmp_path / name).write_bytes((DATA / name).read_bytes())
    (tmp_path / "up.log").write_text("# mahimahi mm-link (uplink) [t] > up.log\n1 # 1504\n")
    refused(
        sojourn("import", "tbf_modem.sh", "--name", "x", "--force"),
        2,
        "^sojourn: tbf_modem.sh: --name, --force are only for measurements$",
    )
    refused(
        sojourn("import", "up.log", "--link", "1mbit"),
        2,
        "^sojourn: up.log: --link is only for configurations of routers$",
    )
    for files in (("tbf_modem.sh", "listing_cake.txt"), ("up.log", "tbf_modem.sh")):
        refused(
            sojourn("import", *files),
            2,
            "^sojourn: tbf_modem.sh: is the configuration of a router; expected it alone, "
            "without other files$",
        )
    refused(
        sojourn("import", "listing_cake.txt", "--traffic", "sessions"),
        2,
        "^sojourn: --traffic sessions: its load is relative to the rate of the line; expected "
        "--link or --preset$",
    )


def test_a_configuration_is_read_from_a_pipe(tmp_path: Path) -> None:
    command = f"{sys.executable} -m sojourn import"
    for name in ("listing_cake.txt", "batch.tc"):
        piped = shell(f"cat {DATA / name} | {command} -", tmp_path)
        assert piped.returncode == 0, piped.stderr
        assert "qdisc" in tomllib.loads(piped.stdout)["links"]["up"]
    for line, said in (
        (
            f"echo hello | {command} -",
            "standard input: no configuration of a router; measurements are read from files",
        ),
        (
            f"echo hello | {command} - {DATA / 'batch.tc'}",
            "standard input is read alone; expected no other file",
        ),
    ):
        done = shell(line, tmp_path)
        refused(done, 2, f"^sojourn: {said}$")


def test_help_names_every_kind_of_file(sojourn: Command) -> None:
    text = " ".join(sojourn("import", "--help").stdout.replace("│", " ").split())
    for kind in (
        "packet captures",
        "iperf3",
        "irtt",
        "flent",
        "qlog",
        "mm-link",
        "script of tc commands",
        "output of tc",
        "/etc/config/sqm",
        "/etc/config/qosify",
        "cake-autorate",
        "systemd-networkd",
        "LibreQoS",
        "HAR",
        "standard input",
    ):
        assert kind in text


def test_the_controller_of_a_configuration_of_cake_autorate_is_run_as_its_comment_says(
    tmp_path: Path,
) -> None:
    text, notes = imported("cake_autorate.sh", preset="lte")
    assert any("say how to run the controller" in note for note in notes)
    comment = [line.removeprefix("#")[1:] for line in text.splitlines() if line.startswith("#")]
    code = [line.removeprefix("    ") for line in comment if line.startswith("    ")]
    example = (ROOT / "examples" / "autorate.py").read_text(encoding="utf-8")
    (tmp_path / "autorate.py").write_text("\n".join([example, "", *code, ""]))
    assert comment[-1] == "and run this file with -s controller=./autorate.py:Router"
    fixed = sj.Scenario.from_toml(text)
    controlled = sj.Scenario.from_toml(f'controller = "./autorate.py:Router"\n{text}', tmp_path)
    delays = [
        sj.run(one, replications=1).flows.filter(group="tcp_down")["srtt_ms_mean"].item()
        for one in (fixed, controlled)
    ]
    assert delays[1] < delays[0] / 2
    assert sj.run(controlled, replications=1).link_changes["link"].unique().sort().to_list() == [
        "down",
        "up",
    ]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (
            "tbf rate 1mbit burst 1kb limit 10000",
            "burst: a tbf bucket of 1024 B never lets a full frame pass; expected at least 1514b",
        ),
        (
            "htb\ntc class add dev eth0 parent 0: classid 0:1 htb rate 100%",
            'htb: classes 1: rate "100%" is not a rate: .*',
        ),
    ],
)
def test_what_does_not_run_is_refused_before_anything_is_printed(
    line: str, why: str, tmp_path: Path, sojourn: Command
) -> None:
    (tmp_path / "r.sh").write_text(f"tc qdisc add dev eth0 root {line}\n")
    refused(sojourn("import", "r.sh"), 2, f"^sojourn: r.sh: eth0: {why}$")
