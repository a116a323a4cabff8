"""``sojourn advise --present``: the configurations that are read."""

import re

import pytest

import sojourn as sj
from sojourn.advice.router_config import present
from sojourn.advice.shaping import Shaping
from support.router_files import SQM, TC_CAKE, TC_CAKE_LAN, TC_HTB, UCI


def shapers(text: str, place: str, device: str | None = None) -> tuple[Shaping, Shaping]:
    """The up and down shapers of a configuration."""
    found = present(text, place, device)
    return found.up, found.down


def test_sqm_and_tc_read_the_same_configuration() -> None:
    shown = "\n".join(
        "sqm.eth1." + re.sub(r"\s*option (\S+) ", r"\1=", line)
        for line in SQM.splitlines()
        if "option" in line
    )
    up, down = shapers(SQM, "sqm")
    assert (up.bits_per_s, down.bits_per_s) == (900_000, 14_400_000)
    assert "dual-srchost nat" in up.queue
    assert "atm overhead 40b" in up.queue
    assert shapers(shown, "shown") == (up, down)
    from_tc = shapers(TC_CAKE, "tc")
    assert [one.queue for one in from_tc] == [up.queue, down.queue]


def test_the_options_of_sqm_override_those_of_its_script() -> None:
    text = SQM.replace("nat dual-srchost", "diffserv4 overhead 44 mpu 96 ptm")
    up, down = shapers(text, "sqm")
    assert "diffserv4 triple-isolate no-ack-filter rtt 100ms ptm overhead 44b mpu 96b" in up.queue
    assert "besteffort triple-isolate" in down.queue


def test_htb_is_read_with_its_class_and_its_size_table() -> None:
    up, down = shapers(TC_HTB, "tc")
    assert up.bits_per_s == 900_000
    assert up.queue.startswith("fq_codel")
    assert up.layer is not None
    # The size table counts from the Ethernet frame.
    assert (up.layer.overhead, up.layer.framing) == (40, "atm")
    assert up.of_link("x")["links.x.overhead"] == "26b"
    assert down.bits_per_s is None


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("hello", ["F: no shaper found", "expected /etc/config/sqm"]),
        ("qdisc fq_codel 0: dev eth0 root refcnt 2", ["no queue with a rate"]),
        ("qdisc htb 1: dev eth0 root refcnt 2 r2q 10", ["eth0", "tc class show dev eth0"]),
        ("qdisc cake 1: dev eth0 root bandwidth 1Mbit colour red", ["F: cake", "colour"]),
        ("config queue 'a'\n option enabled '0'", ["no queue is enabled", "a", "enabled '1'"]),
        ("config queue 'a'\n option enabled '1", ["line 2", "not closed"]),
        ("config queue 'a'\n option enabled 1\n option upload x", ["queue a: upload", '"x"']),
        (
            UCI.format("a", 9) + " option download 0\n option linklayer fdi",
            ['linklayer "fdi"', "none, ethernet or atm"],
        ),
        (
            UCI.format("a", 9) + " option download 0\n option qdisc fq_kodel",
            ["queue a", "fq_kodel"],
        ),
        (UCI.format("a", 9), ["queue a: download: missing", "0 for no shaper"]),
        (
            "config queue 'a'\n option enabled 1\n option download 9",
            ["queue a: upload: missing", "0 for no shaper"],
        ),
        (
            "qdisc frob 8015: dev eth1 root refcnt 2 bandwidth 18Mbit",
            ["frob at eth1", "htb or cake"],
        ),
        (TC_CAKE + TC_CAKE_LAN, ["several devices: eth1, eth0", "interface"]),
        (TC_CAKE + TC_CAKE, ["another queue at the root of eth1"]),
        (
            f"{UCI.format('a', 1)} option download 1\n{UCI.format('b', 2)} option download 2\n",
            ["several devices: a, b", "interface"],
        ),
    ],
)
def test_a_wrong_configuration_is_refused_with_its_place(text: str, parts: list[str]) -> None:
    with pytest.raises(sj.ScenarioError) as caught:
        present(text, "F")
    for part in parts:
        assert part in str(caught.value)


@pytest.mark.parametrize(
    ("device", "up", "down"), [("eth1", 900_000, 14_400_000), ("eth0", 5_000_000, 50_000_000)]
)
def test_the_shapers_of_the_interface_are_read(device: str, up: int, down: int) -> None:
    found = shapers(TC_CAKE_LAN + TC_CAKE, "tc", device)
    assert tuple(one.bits_per_s for one in found) == (up, down)


def test_shapers_of_different_devices_are_not_paired() -> None:
    text = "".join(line for line in TC_CAKE.splitlines(keepends=True) if "ifb4" not in line)
    both = text + "qdisc cake 1: dev ifb4eth0 root bandwidth 9Mbit besteffort\n"
    for device, rates in (("eth1", (900_000, None)), ("eth0", (None, 9_000_000))):
        assert tuple(one.bits_per_s for one in shapers(both, "tc", device)) == rates
    with pytest.raises(sj.ScenarioError, match="several devices: eth1, eth0"):
        present(both, "tc")
    with pytest.raises(
        sj.ScenarioError, match=r"interface='eth2': .* has no shaper of it; expected one of"
    ):
        present(both, "tc", "eth2")
    numbered = text + "qdisc cake 1: dev ifb0 root bandwidth 9Mbit besteffort\n"
    assert present(numbered, "tc").description == (
        "read from tc: up cake 900 kbit/s, down cake 9000 kbit/s"
    )


def test_the_section_of_the_interface_is_read_and_unknown_options_are_noted() -> None:
    a = f"{UCI.format('a', 1)} option download 0\n option ovrhead 44\n option colour red\n"
    found = present(f"{UCI.format('b', 10000)} option download 0\n{a}", "sqm", "a")
    assert found.description == "read from sqm: up fq_codel 1 kbit/s, down none"
    assert found.notes == (
        'sqm: queue a: unknown option ovrhead; did you mean "overhead"?',
        "sqm: queue a: unknown option colour; it is not read",
    )


def test_a_rate_of_an_unknown_queue_is_not_read_as_no_shaper() -> None:
    frob = "qdisc frob 8015: dev {} root refcnt 2 bandwidth 18Mbit\n"
    down = "qdisc cake 1: dev ifb4eth0 root bandwidth 9Mbit besteffort\n"
    with pytest.raises(sj.ScenarioError, match="frob at eth0 has a rate and is not read"):
        present(frob.format("eth0") + down, "tc")
    assert "frob at eth2" in present(frob.format("eth2") + down, "tc").notes[0]
