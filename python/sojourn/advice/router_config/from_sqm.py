"""``/etc/config/sqm`` of OpenWrt: what sqm-scripts sets up for a section.

Sources, at github.com/tohojo/sqm-scripts: ``run-openwrt.sh`` names the options, ``defaults.sh``
their defaults, ``functions.sh`` and the ``.qos`` scripts the commands (commit 3928495784 of
``piece_of_cake.qos`` and ``layer_cake.qos``, 3e769d225c of the others, 88608a160f of the rest).
"""

import difflib
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sojourn.advice.router_config.from_tc import chosen
from sojourn.advice.router_config.shapers import (
    FRAMINGS,
    Notes,
    cake,
    composed,
    layer_of_table,
    token_bucket,
)
from sojourn.advice.shaping import NONE, Shaping
from sojourn.scenario.link import ETHERNET_HEADER, Layer

# Options of a section with their defaults. An option that is absent or empty has its default.
OPTIONS: Mapping[str, str] = {
    "enabled": "",
    "interface": "",
    "upload": "2302",
    "download": "14698",
    "qdisc": "fq_codel",
    "script": "",
    "linklayer_adaptation_mechanism": "default",
    "linklayer": "none",
    "overhead": "0",
    "tcMTU": "2047",
    "tcTSIZE": "512",
    "tcMPU": "0",
    "ilimit": "",
    "elimit": "",
    "itarget": "",
    "etarget": "",
    "ingress_ecn": "ECN",
    "egress_ecn": "ECN",
    "iqdisc_opts": "",
    "eqdisc_opts": "",
    "squash_dscp": "1",
    "squash_ingress": "1",
    "use_mq": "1",
    # Of the pages of LuCI, of logs, and of earlier versions.
    "target": "5ms",
    "debug_logging": "0",
    "verbosity": "5",
    "qdisc_advanced": "0",
    "qdisc_really_really_advanced": "0",
    "linklayer_advanced": "0",
    "shaper_burst": "0",
    "htb_quantum_function": "",
}
SCRIPTS = (
    "piece_of_cake.qos",
    "layer_cake.qos",
    "simple.qos",
    "simplest.qos",
    "simplest_tbf.qos",
)
# Scripts that always use cake, and their keywords.
_CAKE_SCRIPTS = ("piece_of_cake.qos", "layer_cake.qos")
_CAKE_DEFAULT = "diffserv3 nat"
_MECHANISMS = ("default", "cake", "htb_private", "tc_stab")
# Queues below htb and tbf, with the words that tc requires and the scripts do not give. It takes no
# words for pfifo_fast, but the scripts give a limit.
_LEAVES: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("fq_codel", "codel", "pie", "fq_pie", "sfq", "pfifo", "bfifo"), ()),
    **dict.fromkeys(("pfifo_head_drop", "fq", "sfb"), ()),
    "red": ("limit", "avpkt"),
    "choke": ("limit", "bandwidth"),
}
# The queue of simplest_tbf.qos, which does not support cake.
_INSTEAD_OF_CAKE = "fq_codel"
_LIMIT = "1001"
_MTU = 1500
# Bytes of a full packet on ATM with 48 bytes of overhead, the smallest bucket.
_LEAST_BURST = -(-(_MTU + 48) // 48) * 53
_BURST_US = 1000
_ON_EGRESS, _ON_INGRESS = "upload", "download"
_TARGET_UNITS = {
    **dict.fromkeys(("s", "sec", "secs"), "s"),
    **dict.fromkeys(("ms", "msec", "msecs"), "ms"),
    **dict.fromkeys(("us", "usec", "usecs"), "us"),
}
# Time in which a link of 1 kbit/s sends a full packet on ATM, in microseconds.
_PACKET_US = 33 * 53 * 8 * 1000
_TARGET_US, _INTERVAL_US = 5000, 100_000
_SQM = re.compile(r"^\s*config\s+['\"]?queue\b|^(?:uci set )?sqm\.", re.MULTILINE)
_SHOWN = re.compile(r"sqm\.([^.=]+)(?:\.(\w+))?=(.*)")


class _Section:
    """A section of type queue: its options, and which of them were read."""

    def __init__(self, name: str, options: Mapping[str, str], place: str) -> None:
        self.name = name
        self.options = options
        self.notes = Notes(f"{place}: queue {name}")
        self._read = {"enabled", "interface"}

    def get(self, key: str) -> str:
        """Return an option or its default."""
        self._read.add(key)
        return self.options.get(key, "") or OPTIONS[key]

    def is_on(self, key: str) -> bool:
        """Whether a number is 1, as the scripts test it."""
        value = self.get(key)
        if not re.fullmatch(r"\d+", value):
            self.notes.refuse(f'{key}: "{value}" is not a number; expected 0 or 1')
        return int(value) == 1

    def unused(self) -> list[str]:
        """List the known options that were not read."""
        return [key for key in self.options if key in OPTIONS and key not in self._read]

    @property
    def is_enabled(self) -> bool:
        """Whether sqm-scripts starts it."""
        return re.fullmatch(r"0*1", self.options.get("enabled", "0")) is not None


def of_text(text: str, place: str, device: str | None) -> tuple[Shaping, Shaping, tuple[str, ...]]:
    """Read the shapers of a device that sqm-scripts starts."""
    found, general = _sections(text, place)
    sections = [_Section(name, options, place) for name, options in found.items()]
    enabled = [one for one in sections if one.is_enabled]
    if not enabled:
        names = ", ".join(one.name for one in sections) or "none"
        general.refuse(f"no queue is enabled (queues: {names}); expected one with enabled '1'")
    of_device: dict[str, _Section] = {}
    for one in enabled:
        interface = one.options.get("interface", "")
        if not interface:
            one.notes.refuse("interface: missing; expected a device such as wan")
        first = of_device.setdefault(interface, one)
        if first is not one:
            general.add(f"queue {one.name} is not started: queue {first.name} is at {interface}")
    section = of_device[chosen(list(of_device), device, place)]
    for key in section.options:
        if key not in OPTIONS:
            near = difflib.get_close_matches(key, OPTIONS, n=1)
            instead = f'did you mean "{near[0]}"?' if near else "it is not read"
            section.notes.add(f"unknown option {key}; {instead}")
    script = _script(section)
    up, down = (_shaping(section, script, side) for side in (_ON_EGRESS, _ON_INGRESS))
    if section.is_on("use_mq") and "use_mq" in section.options and up.is_cake:
        section.notes.add("not modelled: use_mq, a cake per transmit queue")
    if unused := section.unused():
        section.notes.add(f"without effect on packets with {script}: {', '.join(unused)}")
    return up, down, (*general.texts, *section.notes.texts)


def _sections(text: str, place: str) -> tuple[dict[str, dict[str, str]], Notes]:
    """Read the sections of type queue of a UCI file, or of ``uci show``."""
    found: dict[str, dict[str, str]] = {}
    notes = Notes(place)
    current: dict[str, str] | None = None
    for number, words in _lines(text, notes):
        match words:
            case ["config", "queue", *name]:
                current = found.setdefault(name[0] if name else f"{len(found) + 1}", {})
            case ["config", kind, *_]:
                # A section of another type, whose options are dropped with it.
                current = {}
                notes.add(f"line {number}: section of type {kind} is not read; expected queue")
            case ["option", key, value] if current is not None:
                current[key] = value
            case ["package", _] | ["uci", "commit", *_] | ["/etc/init.d/sqm", *_]:
                continue
            case [one] | ["uci", "set", one] if shown := _SHOWN.fullmatch(one):
                section = found.setdefault(shown[1], {})
                if shown[2]:
                    section[shown[2]] = shown[3]
            case _:
                notes.refuse(f"line {number}: expected a line such as: option upload '19000'")
    return found, notes


def _lines(text: str, notes: Notes) -> Iterator[tuple[int, list[str]]]:
    """Split the lines that have words."""
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            words = shlex.split(line, comments=True)
        except ValueError:
            notes.refuse(f"line {number}: a quotation mark is not closed")
        if words:
            yield number, words


def _script(section: _Section) -> str:
    """Return the script that sets up the queues."""
    name = section.get("script")
    if name in SCRIPTS:
        return name
    known = ", ".join(SCRIPTS)
    if not name:
        section.notes.refuse(f"script: missing; expected one of: {known}")
    stems = sorted((one.removesuffix(".qos") for one in SCRIPTS), key=len, reverse=True)
    stem = next((one for one in stems if re.match(rf"{one}[_-]", name)), None)
    if stem is None:
        section.notes.refuse(f'script: "{name}" is not read; expected one of: {known}')
    section.notes.add(f"script {name} is not part of sqm-scripts: read as {stem}.qos")
    return f"{stem}.qos"


def _shaping(section: _Section, script: str, side: str) -> Shaping:
    kbit = section.get(side)
    if side not in section.options:
        section.notes.add(f"{side}: missing; sqm-scripts takes {kbit} kbit/s")
    if not re.fullmatch(r"\d+", kbit):
        text = f'{side}: "{kbit}" is not a rate; expected kbit/s, such as 19000'
        section.notes.refuse(text)
    if int(kbit) == 0:
        return NONE
    qdisc = section.get("qdisc")
    if script in _CAKE_SCRIPTS:
        if not qdisc.startswith("cake") and "qdisc" in section.options:
            section.notes.add(f"qdisc {qdisc} has no effect: {script} always uses cake")
        return _cake(section, script, side, int(kbit))
    if qdisc.startswith("cake"):
        if script != "simplest_tbf.qos":
            return _cake(section, script, side, int(kbit))
        section.notes.add(f"{script} does not support cake and uses {_INSTEAD_OF_CAKE}")
        qdisc = _INSTEAD_OF_CAKE
    return _token_bucket(section, script, side, int(kbit), qdisc)


def _cake(section: _Section, script: str, side: str, kbit: int) -> Shaping:
    """Read a direction with cake as the shaper."""
    is_egress = side == _ON_EGRESS
    words: list[str] = []
    besteffort = False
    if script == "simplest.qos":
        besteffort = True
    elif not is_egress and script != "piece_of_cake.qos":
        besteffort = section.is_on("squash_ingress")
    table = _table(section, is_cake=True)
    own = _own_layer(section)
    if script in _CAKE_SCRIPTS:
        words += [*own, *_CAKE_DEFAULT.split()]
        if besteffort or script == "piece_of_cake.qos":
            words.append("besteffort")
        if not is_egress and section.is_on("squash_dscp"):
            words.append("wash")
    else:
        words += [*(["besteffort"] if besteffort else []), *own]
    options = section.get("eqdisc_opts" if is_egress else "iqdisc_opts").split()
    return cake([*words, *options], kbit * 1000, table, section.notes)


def _own_layer(section: _Section) -> list[str]:
    """Return the words of the link layer that cake counts itself."""
    linklayer, mechanism = section.get("linklayer"), _mechanism(section)
    if mechanism not in {"default", "cake"} or linklayer == "none":
        return []
    if linklayer not in FRAMINGS:
        section.notes.add(f"linklayer {linklayer}: cake takes it as ethernet")
    elif linklayer == "adsl":
        section.notes.add("linklayer adsl: cake takes it as ethernet; atm counts cells")
    words = ["atm"] if linklayer == "atm" else []
    return [*words, "overhead", section.get("overhead"), "mpu", section.get("tcMPU")]


def _mechanism(section: _Section) -> str:
    mechanism = section.get("linklayer_adaptation_mechanism")
    if mechanism not in _MECHANISMS:
        known = ", ".join(_MECHANISMS)
        text = f'linklayer_adaptation_mechanism: "{mechanism}" is unknown; expected one of: {known}'
        section.notes.refuse(text)
    return mechanism


def _table(section: _Section, *, is_cake: bool) -> Layer | None:
    """Read the size table, or the overhead of the classes of htb."""
    linklayer, mechanism = section.get("linklayer"), _mechanism(section)
    if linklayer == "none":
        return None
    is_table = mechanism == "tc_stab" or (mechanism == "default" and not is_cake)
    is_private = mechanism == "htb_private" and not is_cake
    if not is_table and not is_private:
        if not is_cake or mechanism == "htb_private":
            section.notes.add(
                f"linklayer_adaptation_mechanism {mechanism} has no effect with this queue: the "
                "overhead does not count"
            )
        return None
    if linklayer not in FRAMINGS:
        known = ", ".join(["none", *FRAMINGS])
        section.notes.refuse(f'linklayer "{linklayer}" is unknown; expected one of: {known}')
    for key in ("tcMTU", "tcTSIZE"):
        if section.get(key) != OPTIONS[key]:
            section.notes.add(f"not modelled: {key} {section.get(key)}, the size of the table")
    overhead, mpu = section.get("overhead"), section.get("tcMPU")
    lowest = r"-?\d+" if is_table else r"\d+"
    for key, value, pattern in (("overhead", overhead, lowest), ("tcMPU", mpu, r"\d+")):
        if not re.fullmatch(pattern, value):
            section.notes.refuse(f'{key}: "{value}": expected bytes, such as 44')
    return layer_of_table(linklayer, int(overhead), int(mpu))


def _token_bucket(section: _Section, script: str, side: str, kbit: int, qdisc: str) -> Shaping:
    """Read a direction with htb or tbf as the shaper."""
    is_egress = side == _ON_EGRESS
    quantum: str | None = None
    if script == "simple.qos":
        tiers = is_egress or not section.is_on("squash_ingress")
        if tiers:
            quantum = "300" if is_egress else "1500"
            section.notes.add(
                f"not modelled: the classes 1:11 and 1:13 of {script} for {side}; all packets are "
                "in class 1:12"
            )
        if "squash_dscp" in section.options:
            section.notes.add(
                "not modelled: squash_dscp, which changes packets in front of the shaper"
            )
            section.get("squash_dscp")
    key = "eqdisc_opts" if is_egress else "iqdisc_opts"
    leaf = _Leaf(section, qdisc)
    words = [
        *leaf.limit(section.get("elimit" if is_egress else "ilimit")),
        *leaf.target(section.get("etarget" if is_egress else "itarget"), side, kbit),
        *leaf.ecn(section.get("egress_ecn" if is_egress else "ingress_ecn"), side),
        *(leaf.quantum(quantum) if quantum is not None else []),
        *leaf.flows(),
        *section.get(key).split(),
    ]
    if qdisc not in _LEAVES:
        known = ", ".join(["cake", *_LEAVES])
        section.notes.refuse(f"{script} cannot set up qdisc {qdisc}; expected one of: {known}")
    for word in _LEAVES[qdisc]:
        if word not in words:
            section.notes.refuse(f"qdisc {qdisc}: tc requires {word}; expected it in {key}")
    queue = composed(qdisc, words, section.notes)
    burst = max(_BURST_US * kbit // 8000, _LEAST_BURST)
    table = _table(section, is_cake=False)
    if script != "simplest_tbf.qos":
        return token_bucket("htb", queue, kbit * 1000, table, burst)
    if table is not None and _mechanism(section) == "htb_private":
        # tbf counts its bucket like a packet.
        burst = _on_the_wire(burst, table)
    return token_bucket("tbf", queue, kbit * 1000, table, burst)


def _on_the_wire(size: int, layer: Layer) -> int:
    """Return the size of a frame on a link layer."""
    counted = max(size + layer.overhead - ETHERNET_HEADER, layer.mpu)
    return -(-counted // 48) * 53 if layer.framing == "atm" else counted


@dataclass(frozen=True, slots=True)
class _Leaf:
    """The words that the scripts give to a queue below htb or tbf."""

    section: _Section
    qdisc: str

    def _ends(self, *names: str) -> bool:
        return self.qdisc.endswith(names)

    def limit(self, given: str) -> list[str]:
        """Return the limit; queues that the scripts do not know get none."""
        usual = self._ends("codel", "pie") or self.qdisc in {"pfifo_fast", "sfq", "pfifo"}
        if not given and usual:
            given = _LIMIT
        if not given and self.qdisc == "bfifo":
            given = f"{int(_LIMIT) * _MTU}"
        if given and self.qdisc == "bfifo" and given.isdigit():
            given += "b"
        return ["limit", given] if given else []

    def target(self, given: str, side: str, kbit: int) -> list[str]:
        """Return target and interval; slow links get longer ones unless a target is given."""
        if not self._ends("codel", "pie"):
            return []
        number, unit = re.match(r"\d+", given), re.search(r"[A-Za-z]+$", given)
        name = unit[0] if unit else ""
        if number and name in _TARGET_UNITS:
            return ["target", f"{number[0]}{_TARGET_UNITS[name]}"]
        if name in {"default", "Default", "DEFAULT"}:
            return []
        if (not number and not unit) or name in {"auto", "Auto", "AUTO"}:
            return self._slow_link(kbit)
        self.section.notes.add(f'target of {side}: "{given}" has no effect: no time such as 5ms')
        return []

    def _slow_link(self, kbit: int) -> list[str]:
        if not self._ends("codel") and self.qdisc != "pie":
            key = "etarget or itarget"
            self.section.notes.refuse(
                f"tc refuses the target that sqm-scripts compute for {self.qdisc}; set {key}, such "
                "as default"
            )
        target = max(_PACKET_US // kbit, _TARGET_US)
        words = ["target", f"{target}us"]
        if self._ends("codel"):
            words += ["interval", f"{_INTERVAL_US - _TARGET_US + target}us"]
        return words

    def ecn(self, given: str, side: str) -> list[str]:
        """Return the word for ECN."""
        if given.upper() not in {"ECN", "NOECN"}:
            key = "egress_ecn" if side == _ON_EGRESS else "ingress_ecn"
            self.section.notes.refuse(f'{key}: "{given}"; expected ECN or NOECN')
        return [given.lower()] if self._ends("codel", "pie", "red") else []

    def quantum(self, size: str) -> list[str]:
        """Return the quantum of queues per flow."""
        return (
            ["quantum", size] if self._ends("fq_codel") or self.qdisc in {"fq_pie", "drr"} else []
        )

    def flows(self) -> list[str]:
        """Return the number of queues."""
        return ["flows", "1024"] if self._ends("fq_codel") or self.qdisc == "sfq" else []


def is_sqm(text: str) -> bool:
    """Whether a text is a UCI file with a queue, output of ``uci show``, or has ``uci set``."""
    return _SQM.search(text) is not None
