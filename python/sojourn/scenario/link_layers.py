"""Link layers: the bytes that a line adds to a packet, in the syntax of ``cake``."""

import re
from dataclasses import dataclass
from typing import Literal, cast

from sojourn import _core

Framing = Literal["noatm", "atm", "ptm"]

# Bytes of the Ethernet header, which queues see and `cake` subtracts.
ETHERNET_HEADER = 14
# The keyword of `tc` for a VLAN tag, which Sojourn's `cake` does not have, and its bytes.
_VLAN, _TAG = "ether-vlan", 4
# Names that `tc` does not have.
_OWN = {
    "ip": "overhead 0 mpu 0 noatm",
    "ethernet-l2": "overhead 18 mpu 64 noatm",
    "pppoe-atm": "pppoe-llcsnap",
    "pppoa-atm": "pppoa-vcmux",
    "pppoe-ptm-vlan": "pppoe-ptm ether-vlan",
}
# The other names of `tc` that `--layer` suggests; any keyword of `cake` is accepted.
NAMES = ("docsis", "ethernet", "pppoe-ptm", "bridged-ptm", "pppoe-vcmux", "conservative", *_OWN)
_CANONICAL = re.compile(
    r"\b(?P<framing>noatm|atm|ptm)(?: overhead (?P<overhead>\d+)b)? mpu (?P<mpu>\d+)b"
)
_KEYWORDS = re.compile(
    r"(?:(?:ethernet|docsis|conservative|noatm|atm|ptm|(?:overhead|mpu) \d+"
    r"|(?:pppoe|pppoa|ipoa|bridged)-[a-z]+)(?: |$))+"
)


@dataclass(frozen=True, slots=True)
class Layer:
    """A link layer."""

    overhead: int
    mpu: int
    framing: Framing
    keywords: str

    @property
    def of_link(self) -> dict[str, str]:
        """The keys of a link in a scenario, which count from the Ethernet frame."""
        return {
            "overhead": f"{self.overhead - ETHERNET_HEADER}b",
            "mpu": f"{self.mpu}b",
            "framing": self.framing,
        }


def layer(name: str) -> Layer:
    """Read a link layer.

    Examples
    --------
    >>> layer("docsis")
    Layer(overhead=18, mpu=64, framing='noatm', keywords='docsis')
    """
    words = _OWN.get(" ".join(name.split()), name).split()
    tags = words.count(_VLAN)
    keywords = " ".join(word for word in words if word != _VLAN)
    message = (
        f'layer "{name}": unknown; expected a link layer such as {", ".join(NAMES)}, or '
        '"overhead 44 mpu 84"'
    )
    if not _KEYWORDS.fullmatch(keywords):
        raise _core.ScenarioError(message)
    try:
        canonical = _core.parse_qdisc(f"cake bandwidth 1mbit {keywords}")
    except _core.ScenarioError:
        raise _core.ScenarioError(message) from None
    found = _CANONICAL.search(canonical)
    if found is None or found["overhead"] is None:
        raise _core.ScenarioError(message)
    framing = cast("Framing", found["framing"])
    overhead, mpu = int(found["overhead"]) + tags * _TAG, int(found["mpu"])
    if tags:
        keywords = f"overhead {overhead} mpu {mpu} {framing}"
    return Layer(overhead, mpu, framing, keywords)
