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
    words = "diffserv4 triple-isolate nat no-ack-filter rtt 100ms ptm overhead 44b mpu 96b"
    assert words in up.queue
    assert "besteffort triple-isolate nat" in down.queue


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
        ("qdisc htb 1: dev eth0 root refcnt 2 r2q 10", ["eth0", "tc -d class show dev eth0"]),
        ("qdisc cake 1: dev eth0 root bandwidth 1Mbit colour red", ["F: cake at eth0", "colour"]),
        ("config queue 'a'\n option enabled '0'", ["no queue is enabled", "a", "enabled '1'"]),
        ("config queue 'a'\n option enabled '1", ["line 2", "not closed"]),
        (UCI.format("a", "x"), ["queue a: upload", '"x"']),
        (
            UCI.format("a", 9) + " option download 0\n option linklayer fdi",
            ['linklayer "fdi"', "none, ethernet, atm, adsl"],
        ),
        (
            UCI.format("a", 9) + " option download 0\n option qdisc fq_kodel",
            ["queue a", "fq_kodel"],
        ),
        ("config queue a\n option enabled 1", ["queue a: interface: missing"]),
        (UCI.format("a", 9).replace("simplest.qos", "''"), ["queue a: script: missing"]),
        (
            UCI.format("a", 9).replace("simplest", "my"),
            ['"my.qos" is not read', "simplest_tbf.qos"],
        ),
        (UCI.format("a", 9) + " optoin download 9", ["F: line 6: expected a line such as"]),
        (
            "qdisc frob 8015: dev eth1 root refcnt 2 bandwidth 18Mbit",
            ["frob at eth1", "cake, htb or tbf"],
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


CAKE = "qdisc cake 1: dev eth0 root refcnt 2 bandwidth 20Mbit diffserv4 {} rtt 100ms {}\n"


def test_the_options_of_a_queue_count_without_the_setting_of_luci_that_shows_them() -> None:
    text = UCI.format("wan", 19000).replace("simplest", "layer_cake") + (
        " option download 95000\n option eqdisc_opts 'dual-srchost ack-filter diffserv4'\n"
        " option iqdisc_opts 'dual-dsthost ingress'\n"
    )
    up, down = shapers(text, "sqm")
    assert up.queue.startswith("cake bandwidth 19mbit diffserv4 dual-srchost nat ack-filter")
    assert down.queue.startswith("cake bandwidth 95mbit besteffort dual-dsthost nat wash")
    assert down.queue.endswith("ingress")


def test_cake_of_sqm_has_the_smallest_size_and_the_negative_overhead_of_its_section() -> None:
    text = UCI.format("wan", 19000).replace("simplest", "piece_of_cake") + (
        " option download 0\n option linklayer ethernet\n option overhead 38\n option tcMPU 84\n"
    )
    assert shapers(text, "sqm")[0].queue.endswith("noatm overhead 38b mpu 84b")


def test_absent_options_have_the_defaults_of_sqm_scripts() -> None:
    text = "config queue\n option enabled 1\n option interface wan\n option script simple.qos\n"
    found = present(text, "sqm")
    assert (found.up.bits_per_s, found.down.bits_per_s) == (2_302_000, 14_698_000)
    assert found.up.queue.startswith("fq_codel limit 1001 ")
    assert "target 6078us interval 101078us quantum 300b" in found.up.queue
    assert "target 5ms interval 100ms drop_batch" in found.down.queue
    assert "sqm: queue 1: upload: missing; sqm-scripts takes 2302 kbit/s" in found.notes
    assert any("classes 1:11 and 1:13 of simple.qos for upload" in note for note in found.notes)


HTB = """qdisc htb 1: dev eth1 root refcnt 2 r2q 10 default 0x12 direct_packets_stat 0 ver 3.17
 linklayer ethernet overhead 18 mpu 64 mtu 2047 tsize 512
qdisc fq_codel 120: dev eth1 parent 1:12 limit 1001p flows 1024 quantum 1500 target 5ms
qdisc pfifo 110: dev eth1 parent 1:11 limit 1000p
class htb 1:11 parent 1:1 leaf 110: prio 1 rate 128Kbit ceil 3333Kbit burst 1600b cburst 1599b
class htb 1:1 root rate 10Mbit ceil 10Mbit burst 2500b cburst 2500b
class htb 1:12 parent 1:1 leaf 120: prio 2 rate 1666Kbit ceil 9984Kbit burst 1599b cburst 1598b
"""


def test_htb_has_the_rate_of_its_root_class_and_the_queue_of_its_default_class() -> None:
    found = present(HTB, "tc")
    assert (found.up.bits_per_s, found.up.burst) == (10_000_000, "2500b")
    # Without "ecn" in what tc prints, ECN is off.
    assert found.up.queue.startswith("fq_codel limit 1001 ")
    assert found.up.queue.endswith("noecn")
    assert found.notes == (
        "tc: htb at eth1: not modelled: ceil 9984Kbit of class 1:12, below the rate of class 1:1",
        "tc: htb at eth1: not modelled: classes 1:11; all packets are in class 1:12",
    )


def test_what_the_class_of_packets_has_besides_the_root_class_is_named() -> None:
    # A class sends at its own rate without tokens of the root class, whose overhead counts there.
    text = "qdisc htb 1: dev eth1 root refcnt 2 r2q 10 default 0x10 ver 3.17\n" + "".join(
        f"class htb 1:{name} {place} prio 1 quantum 1000 rate {rate} ceil {rate} linklayer {layer} "
        "burst 15Kb/1 mpu 0b cburst 15Kb/1 mpu 0b level 0\n"
        for name, place, rate, layer in (
            ("1", "root", "10Mbit", "ethernet overhead 22"),
            ("10", "parent 1:1", "20Mbit", "ethernet"),
        )
    )
    found = present(text, "tc")
    assert found.up.bits_per_s == 10_000_000
    assert found.up.layer is not None
    assert found.up.layer.overhead == 36
    assert found.notes == (
        "tc: htb at eth1: not modelled: rate 20Mbit of class 1:10, above the rate of class 1:1",
        "tc: htb at eth1: not modelled: the link layer of class 1:10; that of class 1:1 is read",
    )
    # A ceiling below the rate is the rate.
    lower = present(text.replace("rate 10Mbit ceil 10Mbit", "rate 10Mbit ceil 8Mbit"), "tc")
    assert lower.up.bits_per_s == 8_000_000


def test_classes_without_a_device_are_given_to_no_device_by_guess() -> None:
    both = HTB + HTB.replace("eth1", "ifb4eth1").replace("10Mbit", "50Mbit")
    with pytest.raises(sj.ScenarioError, match="name no device, may be of eth1, ifb4eth1"):
        present(both, "tc")
    lines = HTB.splitlines(keepends=True)
    queues, classes = "".join(lines[:4]), "".join(lines[4:])
    command = "root@OpenWrt:~# tc -d class show dev {}\n"
    named = (
        queues
        + queues.replace("eth1", "ifb4eth1")
        + command.format("eth1")
        + classes
        + command.format("ifb4eth1")
        + classes.replace("10Mbit", "50Mbit")
    )
    up, down = shapers(named, "tc")
    assert (up.bits_per_s, down.bits_per_s) == (10_000_000, 50_000_000)
    # One of the devices has no queue 110: the classes fit the other one only.
    fitting = queues.replace("eth1", "ifb4eth1").replace("110:", "111:") + HTB
    with pytest.raises(sj.ScenarioError, match="htb at ifb4eth1: its rate is missing"):
        present(fitting, "tc")


@pytest.mark.parametrize(
    ("words", "end", "queue"),
    [
        ("triple-isolate nonat nowash no-ack-filter split-gso", "raw overhead 0", "noatm mpu 0b"),
        ("dual-srchost nat nowash ack-filter split-gso", "noatm overhead 0", "noatm overhead 0b"),
        ("flows nat wash ack-filter split-gso", "ptm overhead 22 via-ethernet", "ptm overhead 22b"),
        ("hosts nat nowash ack-filter split-gso", "noatm overhead 18 mpu 64 no-sce", "mpu 64b"),
    ],
)
def test_cake_is_read_as_tc_prints_it(words: str, end: str, queue: str) -> None:
    found = present(CAKE.format(words, end), "tc")
    assert found.up.queue.endswith((queue, f"{queue} mpu 0b"))
    assert bool(found.notes) == any(word in end for word in ("via-ethernet", "no-sce", "raw"))


def test_a_rate_that_follows_the_traffic_is_refused_by_name() -> None:
    text = CAKE.format("autorate-ingress flows", "raw overhead 0")
    with pytest.raises(sj.ScenarioError, match="cake at eth0: autorate-ingress is not"):
        present(text, "tc")


def test_json_of_tc_is_read() -> None:
    text = """[{"kind":"cake","handle":"8001:","dev":"eth0","root":true,"refcnt":2,"options":{
        "bandwidth":2250000,"diffserv":"besteffort","flowmode":"dual-srchost","nat":true,
        "wash":false,"ingress":false,"ack-filter":"enabled","split_gso":true,"rtt":100000,
        "raw":false,"atm":"noatm","overhead":18,"mpu":64,"fwmark":"0"}}]"""
    found = present(text, "tc.json")
    assert (found.up.bits_per_s, found.notes) == (18_000_000, ())
    assert (
        found.up.queue
        == sj.qdisc(
            "cake bandwidth 18mbit besteffort dual-srchost nat ack-filter noatm overhead 18 mpu 64"
        ).spec
    )


def test_json_of_a_later_tc_has_the_classes_of_htb() -> None:
    classes = """[{"class":"htb","handle":"1:10","parent":"1:1","leaf":"110:","prio":0,"quantum":9,
        "rate":125000,"ceil":1250000,"linklayer":"ethernet","burst":1600,"burst_cell":1,
        "mpu_rate":64,"cburst":1600,"cburst_cell":1,"mpu_ceil":64,"level":0},{"class":"htb",
        "handle":"1:1","root":true,"rate":1250000,"ceil":1250000,"linklayer":"ethernet",
        "burst":2500,"burst_cell":1,"mpu_rate":64,"cburst":2500,"cburst_cell":1,"mpu_ceil":64,
        "level":7}]"""
    queues = """[{"kind":"htb","handle":"1:","dev":"eth0","root":true,"refcnt":2,"options":{
        "r2q":10,"default":"0x10","direct_packets_stat":0,"ver":"3.17","direct_qlen":1000}},
        {"kind":"codel","handle":"110:","dev":"eth0","parent":"1:10","options":{"limit":1000,
        "target":4999,"interval":99999,"ecn":true}}]"""
    found = present(f"{queues}\n{classes}\n", "tc")
    up = found.up
    assert (up.bits_per_s, up.burst) == (10_000_000, "2500b")
    assert up.queue == "codel limit 1000 target 5ms interval 100ms ecn"
    assert up.layer is not None
    assert (up.layer.overhead, up.layer.mpu) == (14, 64)
    assert found.notes == ()


def test_json_has_the_value_and_the_mask_of_a_selector_apart() -> None:
    text = """[{"kind":"tbf","handle":"1:","dev":"eth0","root":true,"refcnt":2,"options":{
        "rate":1250000,"burst":5000,"lat":50000}},{"kind":"fq_codel","handle":"10:","dev":"eth0",
        "parent":"1:","options":{"limit":10240,"flows":1024,"quantum":1514,"target":4999,
        "ce_threshold":999,"ce_threshold_selector":1,"ce_threshold_mask":3,"interval":99999,
        "memory_limit":33554432,"ecn":true,"drop_batch":64}}]"""
    queue = present(text, "tc").up.queue
    assert "ce_threshold 1ms ce_threshold_selector 0x1/0x3" in queue


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (
            CAKE.replace("20Mbit", "unlimited").format("autorate-ingress flows", "raw overhead 0"),
            "autorate-ingress is not modelled",
        ),
        (
            HTB.replace("fq_codel 120: dev eth1 parent 1:12", "cake 120: dev eth1 parent 1:12 {}")
            .format("bandwidth 5Mbit besteffort")
            .replace(" limit 1001p flows 1024 quantum 1500 target 5ms", ""),
            "a second shaper below",
        ),
        ("[{]", "line 1: not valid JSON"),
        ('[{"a": 1}]', "line 1: neither a queue nor a class"),
        (
            UCI.format("a", 9) + " option qdisc pfifo_fast\n",
            "simplest.qos cannot set up qdisc pfifo_fast; expected one of: cake, fq_codel",
        ),
        (UCI.format("a", 9) + " option qdisc red\n", "tc requires limit"),
        (UCI.format("a", 9) + " option egress_ecn maybe\n", 'egress_ecn: "maybe"; expected ECN'),
        (UCI.format("a", 9) + " option qdisc fq_pie\n", "set etarget or itarget"),
    ],
)
def test_what_cannot_be_modelled_is_refused_by_name(text: str, part: str) -> None:
    with pytest.raises(sj.ScenarioError, match=re.escape(part)):
        present(text, "F")


def test_classes_as_old_versions_of_tc_print_them_are_read() -> None:
    old = HTB.replace("ceil 10Mbit burst 2500b", "ceil 10Mbit burst 15Kb/8 mpu 0b overhead 0b")
    assert shapers(old, "tc")[0].burst == "2500b"
    assert shapers(old.replace("cburst 2500b", "cburst 15Kb/8"), "tc")[0].burst == "15360b"


def test_lines_that_are_no_output_of_tc_are_named() -> None:
    found = present(CAKE.format("flows", "noatm overhead 18") + " Sent 0 bytes\nhello\n", "tc")
    assert found.notes == ("tc: not read, no output of tc: line 3",)


def test_options_without_effect_are_named() -> None:
    text = UCI.format("wan", 19000).replace("simplest", "piece_of_cake") + (
        " option download 9\n option qdisc codel\n option itarget 5ms\n option verbosity 5\n"
    )
    assert present(text, "sqm").notes == (
        "sqm: queue wan: qdisc codel has no effect: piece_of_cake.qos always uses cake",
        "sqm: queue wan: without effect on packets with piece_of_cake.qos: itarget, verbosity",
    )


SCRIPT = """\
tc qdisc add dev eth1 root handle 1: stab overhead 26 linklayer atm htb default 12
tc class add dev eth1 parent 1: classid 1:1 htb rate 900kbit burst 15k
tc class add dev eth1 parent 1:1 classid 1:12 htb rate 450kbit ceil 900kbit
tc qdisc add dev eth1 parent 1:12 fq_codel limit 1001
tc qdisc add dev {} root cake bandwidth 14400kbit besteffort ingress
"""


@pytest.mark.parametrize("device", ["ifb4eth1", "ifb0", "ifb-eth1"])
def test_a_script_of_tc_commands_is_read_as_its_shapers(device: str) -> None:
    up, down = shapers(SCRIPT.format(device), "F")
    # The bucket of the ceil, which the script does not set, is smaller.
    assert (up.bits_per_s, up.burst) == (900_000, "htb")
    # Without a word, fq_codel has ECN, which is not so in output of tc.
    assert up.queue.startswith("fq_codel limit 1001 ")
    assert up.queue.endswith(" ecn")
    assert up.layer is not None
    assert (up.layer.overhead, up.layer.framing) == (40, "atm")
    assert down.bits_per_s == 14_400_000
    assert down.queue.endswith("ingress")


def test_tbf_and_other_configurations_are_read_through_their_commands() -> None:
    tbf = "tc qdisc add dev wan root tbf rate 220kbit latency 50ms burst 1540 overhead 8\n"
    up, down = shapers(tbf, "F")
    assert (up.bits_per_s, up.bucket, up.queue) == (220_000, "tbf", "bfifo limit 2915b")
    assert up.layer is not None
    assert up.layer.overhead == 22
    assert down.bits_per_s is None
    autorate = "base_dl_shaper_rate_kbps=20000\nbase_ul_shaper_rate_kbps=18000\n"
    rates = tuple(one.bits_per_s for one in shapers(autorate, "F"))
    assert rates == (18_000_000, 20_000_000)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "tc qdisc add dev e root fq_codel",
            "F: no queue with a rate at the root of a device; expected cake, htb or tbf",
        ),
        (
            "tc qdisc add dev e root hfsc default 1",
            (
                'F: line 1: unknown queue "hfsc"; not modelled: for a single class, set rate and '
                "burst of the link, and name the queue of the class"
            ),
        ),
        (
            "\n".join(f"tc qdisc add dev {one} root cake bandwidth 1mbit" for one in "ab"),
            "present='F': shapers of several devices: a, b; expected interface with one of them",
        ),
        (
            "hello",
            (
                "F: no shaper found; expected /etc/config/sqm, the output of 'uci show sqm', a "
                "script of tc commands, or the output of 'tc -d qdisc show', for htb followed by "
                "that of 'tc -d class show dev DEVICE'"
            ),
        ),
    ],
)
def test_a_script_without_a_shaper_is_refused_in_one_line(text: str, said: str) -> None:
    with pytest.raises(sj.ScenarioError) as caught:
        present(text, "F")
    assert f"{caught.value}" == said
