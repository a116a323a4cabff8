"""Shapers: the queue and rate of one direction of an access link."""

from dataclasses import dataclass

from sojourn import _core
from sojourn.errors import invalid
from sojourn.queues import qdisc
from sojourn.scenario.link import Bucket, Layer

# Rate of the router's ports without a shaper: at least this, and this many times the line rate.
LAN_BITS_PER_S = 1_000_000_000
LAN_FACTOR = 10
# Bytes of a full frame with preamble and gap.
FULL_FRAME = 1538
# Defaults of CoDel: RFC 8289.
TARGET_MS = 5.0
INTERVAL_MS = 100.0


@dataclass(frozen=True, slots=True)
class Shaping:
    """The shaper of one direction: `burst` and `bucket` are those of a link of a scenario."""

    queue: str
    bits_per_s: int | None = None
    layer: Layer | None = None
    burst: str = "htb"
    bucket: Bucket = "htb"

    @property
    def is_cake(self) -> bool:
        """Whether the queue shapes itself."""
        kind, *words = self.queue.split()
        return kind == "cake" and "bandwidth" in words

    def of_link(self, link: str) -> dict[str, str]:
        """Return the settings of a link of the router, by their paths in the scenario."""
        place = f"links.{link}"
        changes = {f"{place}.qdisc": self.queue}
        if self.bits_per_s is not None and not self.is_cake:
            changes |= {f"{place}.rate": f"{self.bits_per_s}bit", f"{place}.burst": self.burst}
            if self.bucket != "htb":
                changes[f"{place}.bucket"] = self.bucket
            if self.layer is not None:
                changes |= {f"{place}.{key}": text for key, text in self.layer.of_link.items()}
        return changes


NONE = Shaping("pfifo limit 1000")


def cake(bits_per_s: int, layer: Layer | None, options: str) -> Shaping:
    """Compose ``cake`` with its own shaper."""
    overhead = "" if layer is None else f" {layer.keywords}"
    return Shaping(f"cake bandwidth {rate(bits_per_s)} {options}{overhead}", bits_per_s, layer)


def shaped(queue: str, bits_per_s: int, layer: Layer | None) -> Shaping:
    """Compose a queue below ``htb``."""
    name = " ".join(queue.split())
    if name == "fq_codel":
        name = _fq_codel(bits_per_s)
    qdisc(name)
    return Shaping(name, bits_per_s, layer)


def _fq_codel(bits_per_s: int) -> str:
    """Set a target of at least one full packet (RFC 8290, section 5.2.2)."""
    packet_ms = FULL_FRAME * 8e3 / bits_per_s
    target = max(TARGET_MS, packet_ms)
    interval = INTERVAL_MS - TARGET_MS + target
    return f"fq_codel target {target:.0f}ms interval {interval:.0f}ms"


def rate(bits_per_s: float) -> str:
    """Write a rate as ``tc`` does.

    Examples
    --------
    >>> rate(19_000_000), rate(950_000)
    ('19mbit', '950kbit')
    """
    thousands = round(bits_per_s / 1000)
    return f"{thousands}kbit" if thousands % 1000 else f"{thousands // 1000}mbit"


def bits_per_s(text: str, place: str) -> int:
    """Read a rate."""
    try:
        return _core.parse_rate_bits_per_s(text)
    except _core.ScenarioError as error:
        raise invalid(place, f"{error}") from None
