"""Rates at which routers can shape in software."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Router:
    """A processor and the highest rate at which it was reported to shape."""

    name: str
    mbit_per_s: float
    source: str


# Reports by users and maintainers, not measurements under equal conditions.
ROUTERS = (
    Router(
        "MIPS 680 MHz (Netgear WNDR3800)",
        98.0,
        "github.com/tohojo/sqm-scripts/issues/48: 90/8 Mbit/s with CAKE and HTB",
    ),
    Router(
        "IPQ8065, 2 × 1.7 GHz (Netgear R7800)",
        150.0,
        "forum.openwrt.org/t/50368: 150 Mbit/s download with CAKE, one core saturated",
    ),
    Router(
        "Armada 385, 2 × 1.8 GHz (Linksys WRT32X)",
        480.0,
        "OpenWrt wiki, SQM: 90 % of 500/35 Mbit/s with CAKE",
    ),
    Router(
        "MT7986, 4 × 2.0 GHz (GL.iNet MT6000)",
        600.0,
        "github.com/hudra0/qosmate/issues/54: limits at about 500 to 600 Mbit/s",
    ),
)


def too_slow(bits_per_s: float) -> list[Router]:
    """List the routers that cannot shape at a rate, the sum of both directions.

    Examples
    --------
    >>> [router.mbit_per_s for router in too_slow(200e6)]
    [98.0, 150.0]
    """
    return [router for router in ROUTERS if router.mbit_per_s * 1e6 < bits_per_s]
