"""Lines to copy: ``tc`` commands, the configuration of OpenWrt's SQM, and cake-autorate."""

import re
from dataclasses import dataclass

from sojourn import _core
from sojourn.advice.access import Access
from sojourn.advice.candidates import Candidate
from sojourn.advice.shaping import Shaping, rate
from sojourn.arguments import ArgumentError
from sojourn.scenario.link import ETHERNET_HEADER, Layer

# Queues of Linux that OpenWrt's scripts can use below `htb`.
LINUX = ("cake", "fq_codel", "codel", "pie", "fq_pie", "sfq", "red", "pfifo", "bfifo")
# A device name that Linux accepts and that needs no quoting.
DEVICE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,14}")
LONGEST = 15
# Share of the rate of a PTM line that remains after its 64/65-octet encapsulation.
PTM = 64 / 65
# cake-autorate may go down to this share of the lowest rate of the line [R].
LEAST = 0.8


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines to copy."""

    title: str
    text: str


def lines(access: Access, chosen: Candidate, device: str = "wan") -> list[Lines]:
    """Write the configuration of a candidate."""
    check_device(device)
    if not _is_for_linux(chosen):
        return []
    found = [Lines("tc, on any Linux router", _tc(chosen, device))]
    if access.subscribers == 1:
        ptm = " (rates are 64/65 of those of tc, for the encapsulation of PTM)"
        is_reduced = _shaped(chosen.up) != chosen.up.bits_per_s
        title = f"OpenWrt, package sqm-scripts{ptm if is_reduced else ''}"
        found.append(Lines(title, _sqm(chosen, device)))
        if chosen.up.is_cake and access.dip:
            title = "cake-autorate, file config.primary.sh"
            found.append(Lines(title, _autorate(access, chosen, device)))
    return found


def in_words(access: Access, chosen: Candidate) -> str:
    """Write the configuration of a candidate in a sentence."""
    if chosen.kind == "none":
        return "Use no shaper: none improves a grade."
    if not _is_for_linux(chosen) or access.subscribers > 1:
        return f"Use {chosen.name}."
    options = _options_of_sqm(chosen, "")
    return (
        f"Set SQM to {options['qdisc']}: download {options['download']} kbit/s, upload "
        f"{options['upload']} kbit/s, overhead {options['overhead']}."
    )


def in_luci(access: Access, chosen: Candidate, device: str = "wan") -> list[list[str]]:
    """Return the fields of OpenWrt's page "SQM QoS" with their values; none without SQM."""
    if not _is_for_linux(chosen) or access.subscribers > 1:
        return []
    options = _options_of_sqm(chosen, device)
    layers = {"none": "none", "ethernet": "Ethernet with overhead", "atm": "ATM"}
    fields = {
        "Basic Settings: Interface name": "interface",
        "Basic Settings: Download speed (kbit/s)": "download",
        "Basic Settings: Upload speed (kbit/s)": "upload",
        "Queue Discipline: Queuing discipline": "qdisc",
        "Queue Discipline: Queue setup script": "script",
        "Queue Discipline: option string, ingress": "iqdisc_opts",
        "Queue Discipline: option string, egress": "eqdisc_opts",
        "Link Layer Adaptation: Which link layer to account for": "linklayer",
        "Link Layer Adaptation: Per Packet Overhead (byte)": "overhead",
    }
    return [
        [label, layers[options[key]] if key == "linklayer" else options[key]]
        for label, key in fields.items()
    ]


def _is_for_linux(chosen: Candidate) -> bool:
    """Whether Linux has the queue, if there is one."""
    return chosen.kind != "none" and chosen.queue.split()[0] in LINUX


def check_device(device: str) -> None:
    """Check the name of a network device."""
    if not DEVICE.fullmatch(device):
        rule = "not a device name; expected a name such as wan or eth0"
        raise ArgumentError("interface", device, rule)


def intermediate(device: str) -> str:
    """Return the name of the intermediate device, as in OpenWrt's scripts.

    Examples
    --------
    >>> intermediate("pppoe-wan"), intermediate("a-long-device")
    ('ifb4pppoe-wan', 'ifb4long-device')
    """
    room = LONGEST - len("ifb4")
    return f"ifb4{device[-room:]}"


def _tc(chosen: Candidate, device: str) -> str:
    other = intermediate(device)
    redirect = f"matchall action mirred egress redirect dev {other}"
    return "\n".join(
        [
            *_root(chosen.up, device),
            f"ip link add name {other} type ifb",
            f"ip link set dev {other} up",
            f"tc qdisc replace dev {device} handle ffff: ingress",
            f"tc filter replace dev {device} parent ffff: protocol all prio 10 {redirect}",
            *_root(chosen.down, other),
        ]
    )


def _root(shaping: Shaping, device: str) -> list[str]:
    queue = _core.tc_line(shaping.queue, shaping.bits_per_s)
    if shaping.is_cake:
        return [f"tc qdisc replace dev {device} root {queue}"]
    stab = "" if shaping.layer is None else f"stab {_stab(shaping.layer)} "
    text = rate(_shaped(shaping))
    return [
        f"tc qdisc replace dev {device} root handle 1: {stab}htb default 1",
        f"tc class replace dev {device} parent 1: classid 1:1 htb rate {text} ceil {text}",
        f"tc qdisc replace dev {device} parent 1:1 handle 11: {queue}",
    ]


def _stab(layer: Layer) -> str:
    """Write the size table, which counts from the Ethernet frame."""
    linklayer = "atm" if layer.framing == "atm" else "ethernet"
    overhead = layer.overhead - ETHERNET_HEADER
    return f"mtu 2047 tsize 512 mpu {layer.mpu} overhead {overhead} linklayer {linklayer}"


def _shaped(shaping: Shaping) -> float:
    """Return the rate of the shaper for tools that do not support PTM."""
    is_ptm = shaping.layer is not None and shaping.layer.framing == "ptm"
    return (shaping.bits_per_s or 0) * (PTM if is_ptm else 1.0)


def _sqm(chosen: Candidate, device: str) -> str:
    section = "sqm.advice"
    options = _options_of_sqm(chosen, device)
    return "\n".join(
        [
            f"uci set {section}=queue",
            *(f"uci set {section}.{key}='{value}'" for key, value in options.items()),
            "uci commit sqm",
            "/etc/init.d/sqm restart",
        ]
    )


def _options_of_sqm(chosen: Candidate, device: str) -> dict[str, str]:
    """Return the options of a section of ``/etc/config/sqm``."""
    layer = chosen.up.layer
    is_cake = chosen.up.is_cake
    overhead = 0 if layer is None else layer.overhead - (0 if is_cake else ETHERNET_HEADER)
    linklayer = "none"
    if layer is not None:
        linklayer = "atm" if layer.framing == "atm" else "ethernet"
    mpu = 0 if layer is None else layer.mpu
    kind = chosen.queue.split()[0]
    return {
        "enabled": "1",
        "interface": device,
        "download": f"{_shaped(chosen.down) / 1e3:.0f}",
        "upload": f"{_shaped(chosen.up) / 1e3:.0f}",
        "qdisc": kind,
        "script": "piece_of_cake.qos" if is_cake else "simplest.qos",
        "linklayer": linklayer,
        "linklayer_adaptation_mechanism": "default",
        "overhead": f"{overhead}",
        "tcMPU": f"{mpu}",
        "qdisc_advanced": "1",
        "qdisc_really_really_advanced": "1",
        **_of_direction("e", "egress", chosen.up),
        **_of_direction("i", "ingress", chosen.down),
    }


def _of_direction(letter: str, name: str, shaping: Shaping) -> dict[str, str]:
    """Return the options of a direction.

    Below ``htb``, the scripts set a limit, a target and ECN of their own unless these are given.
    """
    words = _options(shaping)
    options = {f"{letter}qdisc_opts": " ".join(words)}
    if shaping.is_cake:
        return options
    return {
        f"{letter}limit": words[words.index("limit") + 1],
        f"{letter}target": "default",
        f"{name}_ecn": "ECN" if "ecn" in words else "NOECN",
        **options,
    }


def _options(shaping: Shaping) -> list[str]:
    """Return the parameters of a queue as ``tc`` writes them, except those that the scripts set."""
    if not shaping.is_cake:
        return _core.tc_line(shaping.queue, shaping.bits_per_s).split()[1:]
    words = shaping.queue.split()[3:]  # behind the bandwidth
    own = [] if shaping.layer is None else shaping.layer.keywords.split()
    kept = words[: len(words) - len(own)] if own else words
    line = _core.tc_line(" ".join(["cake", *kept])).replace(" raw noatm mpu 0", "")
    mpu = [] if shaping.layer is None or not shaping.layer.mpu else ["mpu", f"{shaping.layer.mpu}"]
    return [*(word for word in line.split()[2:] if word != "besteffort"), *mpu]


def _autorate(access: Access, chosen: Candidate, device: str) -> str:
    found = [f"dl_if={intermediate(device)}", f"ul_if={device}"]
    for short, shaping, highest in (
        ("dl", chosen.down, access.down),
        ("ul", chosen.up, access.up),
    ):
        base = shaping.bits_per_s or highest
        least = min(highest * (1.0 - access.dip) * LEAST, base)
        found += [
            f"adjust_{short}_shaper_rate=1",
            f"min_{short}_shaper_rate_kbps={least / 1e3:.0f}",
            f"base_{short}_shaper_rate_kbps={base / 1e3:.0f}",
            f"max_{short}_shaper_rate_kbps={highest / 1e3:.0f}",
        ]
    return "\n".join(found)
