"""``network.json`` and ``ShapedDevices.csv`` of LibreQoS."""
# ruff: noqa: E501 - lines of files

from pathlib import Path

import polars as pl
import pytest

import sojourn as sj
from sojourn.exchange import configuration, libreqos
from support.refusals import refused
from support.shell import Command

NETWORK = """
{"Tower A": {"downloadBandwidthMbps": 20, "uploadBandwidthMbps": 10, "type": "Site", "children": {
    "AP_1": {"downloadBandwidthMbps": 12, "uploadBandwidthMbps": 6, "type": "AP"},
    "AP_2": {"downloadBandwidthMbps": 15, "uploadBandwidthMbps": 6, "type": "AP", "children": {}}}}}
"""
DEVICES = """\
#LibreQoS
Circuit ID,Circuit Name,Device ID,Device Name,Parent Node,MAC,IPv4,IPv6,Download Min Mbps,Upload Min Mbps,Download Max Mbps,Upload Max Mbps,Comment,sqm
1,"968 Circle St., Gurnee",1,Router,AP_1,,"100.64.0.1, 100.64.0.2",,1,1,10,5,,
1,"968 Circle St., Gurnee",2,Second,AP_1,,100.64.0.3,,1,1,10,5,,
2,Smith,3,Router,AP_2,,100.64.0.4,,2.5,1,8,4,,fq_codel
3,Jones,4,Router,,,100.64.0.5,,1,1,5,5,,cake/none
"""


def written(folder: Path, network: str = NETWORK, devices: str = DEVICES) -> list[Path]:
    """Write both files."""
    paths = [folder / "network.json", folder / "ShapedDevices.csv"]
    for path, text in zip(paths, (network, devices), strict=True):
        path.write_text(text)
    return paths


def test_nodes_and_circuits_become_classes(tmp_path: Path) -> None:
    text, notes = configuration.scenario(libreqos.configuration(written(tmp_path)))
    assert '{ name = "AP_1", parent = "Tower_A", rate = "12mbit" },' in text
    assert (
        '{ name = "968_Circle_St._Gurnee", parent = "AP_1", rate = "1mbit", ceil = "10mbit", '
        'prio = "3", leaf = "cake diffserv4" },'
    ) in text
    assert (
        '{ name = "Smith", parent = "AP_2", rate = "2.5mbit", ceil = "8mbit", prio = "3", leaf = "fq_codel" },'
        in text
    )
    assert (
        '{ name = "Jones", parent = "no_parent_node", rate = "1mbit", ceil = "5mbit", prio = "3", leaf = "pfifo" },'
        in text
    )
    assert notes == ["circuits without a parent node are below a class that does not limit them"]


def test_no_node_or_circuit_is_faster_than_its_parent(tmp_path: Path) -> None:
    network = NETWORK.replace('"downloadBandwidthMbps": 12', '"downloadBandwidthMbps": 40')
    devices = DEVICES.replace("2.5,1,8,4", "30,1,50,4")
    files = written(tmp_path, network, devices)
    text, notes = configuration.scenario(libreqos.configuration(files))
    assert '{ name = "AP_1", parent = "Tower_A", rate = "20mbit" },' in text
    assert '{ name = "Smith", parent = "AP_2", rate = "15mbit", ceil = "15mbit",' in text
    assert "node AP_1: download is limited to the 20 Mbit/s of its parent Tower_A" in notes
    assert (
        "circuit Smith: download maximum 50 Mbit/s is limited to the 15 Mbit/s of its parent AP_2"
    ) in notes


def test_devices_of_a_circuit_that_differ_give_a_note(tmp_path: Path) -> None:
    devices = DEVICES.replace("100.64.0.3,,1,1,10,5", "100.64.0.3,,1,1,11,5")
    text, notes = configuration.scenario(
        libreqos.configuration(written(tmp_path, NETWORK, devices))
    )
    assert 'rate = "1mbit", ceil = "10mbit"' in text
    assert notes[0] == (
        "circuit 968_Circle_St._Gurnee: line 4 has another rate, parent node or sqm than line 3, which counts"
    )


def test_an_unknown_parent_and_a_minimum_above_the_maximum_give_notes(tmp_path: Path) -> None:
    devices = DEVICES.replace("AP_2", "AP_3").replace("2.5,1,8,4", "25,1,8,4")
    found = libreqos.configuration(written(tmp_path, devices=devices))
    text, notes = configuration.scenario(found)
    assert '{ name = "Smith", parent = "no_parent_node", rate = "25mbit", ceil = "8mbit",' in text
    assert notes[:2] == [
        "circuit Smith: parent node AP_3 is not in network.json, so it is read as one without a parent",
        "circuit Smith: download minimum 25 Mbit/s is above its maximum 8 Mbit/s, which limits it",
    ]
    text = text.replace('"30s"', '"6s"').replace('"5s"', '"2s"')
    smith = sj.run(sj.Scenario.from_toml(text)).classes.filter(pl.col("class") == "Smith")
    (sent,) = smith.filter(link="down")["sent_bytes"]
    assert 8 * sent / 4e6 == pytest.approx(8, rel=0.03)


def test_a_run_reports_on_each_subscriber(tmp_path: Path, sojourn: Command) -> None:
    written(tmp_path)
    imported = sojourn("import", "ShapedDevices.csv", "network.json")
    assert imported.returncode == 0, imported.stderr
    result = sj.run(
        sj.Scenario.from_toml(imported.stdout.replace('"30s"', '"8s"').replace('"5s"', '"3s"'))
    )
    down = result.classes.filter(link="down")
    rates = {row["class"]: 8 * row["sent_bytes"] / 5e6 for row in down.iter_rows(named=True)}
    assert rates["Smith"] == pytest.approx(8, rel=0.03)
    assert rates["Jones"] == pytest.approx(5, rel=0.03)
    assert rates["968_Circle_St._Gurnee"] == pytest.approx(10, rel=0.03)


@pytest.mark.parametrize(
    ("network", "devices", "problem"),
    [
        (
            NETWORK.replace("12", '"x"'),
            DEVICES,
            "node AP_1: downloadBandwidthMbps is not a number > 0",
        ),
        (NETWORK.replace("AP_2", "AP 1"), DEVICES, 'two nodes have the name "AP 1"'),
        ("[", DEVICES, "not valid JSON"),
        (
            NETWORK,
            DEVICES.replace("2.5", "fast"),
            'line 5: Download Min Mbps "fast" is not a rate in Mbit/s',
        ),
        (
            NETWORK,
            DEVICES.replace("fq_codel", "red"),
            'line 5: sqm "red" is unknown; expected cake, fq_codel or none',
        ),
        (NETWORK, "a,b\n1,2\n", "line 1: no column Circuit ID"),
        (
            NETWORK,
            DEVICES.replace("Download Max Mbps", "Download Max"),
            "line 2: no column Download Max Mbps; expected those of ShapedDevices.csv: Circuit ID,",
        ),
    ],
)
def test_what_is_wrong_is_named_with_its_file(
    network: str, devices: str, problem: str, tmp_path: Path
) -> None:
    with pytest.raises(sj.ScenarioError) as error:
        libreqos.configuration(written(tmp_path, network, devices))
    assert problem in f"{error.value}"


def test_files_are_printed_without_options(tmp_path: Path, sojourn: Command) -> None:
    written(tmp_path)
    refused(
        sojourn("import", "ShapedDevices.csv", "network.json", "--json"),
        2,
        "^sojourn: ShapedDevices.csv: --json is only for measurements$",
    )


def test_one_of_both_files_asks_for_the_other(tmp_path: Path, sojourn: Command) -> None:
    for path in written(tmp_path):
        refused(
            sojourn("import", path.name),
            4,
            f"{path.name}: LibreQoS needs two files; expected sojourn import network.json Shaped",
        )


def test_each_circuit_has_the_traffic_and_crosses_the_line(
    tmp_path: Path, sojourn: Command
) -> None:
    written(tmp_path)
    options = ("--link", "15mbit", "--traffic", "tcp_1down")
    imported = sojourn("import", "ShapedDevices.csv", "network.json", *options)
    assert imported.returncode == 0, imported.stderr
    result = sj.run(
        sj.Scenario.from_toml(imported.stdout.replace('"30s"', '"9s"').replace('"5s"', '"6s"'))
    )
    groups = result.flows["group"].unique().to_list()
    assert {"Smith/tcp down", "Smith/ping", "Jones/tcp down"} <= set(groups)
    down = result.classes.filter(link="down")
    rates = {row["class"]: 8 * row["sent_bytes"] / 3e6 for row in down.iter_rows(named=True)}
    # The line of 15 Mbit/s is the bottleneck of 10, 8 and 5 Mbit/s.
    assert sum(rates.values()) == pytest.approx(15, rel=0.03)
