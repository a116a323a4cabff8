"""Sojourn: compare queue disciplines in simulated networks.

A :class:`Scenario` describes the network and its traffic, :func:`run` simulates it, and a
:class:`Result` holds the measurements as polars frames.

Examples
--------
>>> import sojourn as sj
>>> scenario = sj.Scenario(
...     links={
...         "up": sj.Link(rate="10mbit", qdisc="pfifo"),
...         "down": sj.Link(rate="10mbit", qdisc="pfifo"),
...     },
...     traffic=[sj.Tcp(direction="up", count=2), sj.Ping(direction="up", interval="100ms")],
...     rtt="50ms",
...     duration="10s",
...     warmup="2s",
...     replications=2,
...     arms=[
...         sj.Arm(name="fifo", set={"links.up.qdisc": sj.Pfifo(limit=127)}),
...         sj.Arm(name="codel", set={"links.up.qdisc": sj.CoDel()}),
...     ],
... )
>>> result = sj.run(scenario, seed=1)
>>> result.summary().columns
['arm', 'metric', 'unit', 'n', 'mean', 'low', 'high']
"""

from typing import TYPE_CHECKING, Any

from sojourn import _core, testing
from sojourn._core import Packet, QueueError, ResultError, ScenarioError, SojournError
from sojourn.cc import (
    Bbr,
    Bbr3,
    CongestionControl,
    Cubic,
    Dctcp,
    HighSpeed,
    Ledbat,
    Prague,
    Reno,
    Vegas,
)
from sojourn.qdisc import (
    Afcd,
    AfcdKernel2012,
    Afd,
    AfqKernel2012,
    Ared,
    Bfifo,
    Blue,
    Cake,
    Choke,
    Cobalt,
    Cocoa,
    CoDel,
    Drr,
    DualPi2,
    Floq,
    FloqFixed,
    FloqProtect,
    FloqShare,
    Fq,
    FqCoDel,
    FqNoCoDel,
    FqPie,
    Hred,
    Nlred,
    Ns2Red,
    Pfifo,
    PfifoFast,
    PfifoHeadDrop,
    Pie,
    Predict,
    Prio,
    Queue,
    Red,
    Sfb,
    Sfq,
    SfqCodel,
    qdisc,
)
from sojourn.qdisc.python_queue import PythonQueue
from sojourn.result import Result, run
from sojourn.result.validity import Finding, Severity, Validity
from sojourn.scenario import (
    Arm,
    Bernoulli,
    Change,
    GilbertElliott,
    Jitter,
    Link,
    Scenario,
    Station,
    Wifi,
)
from sojourn.scenario.presets import parking_lot
from sojourn.scenario.units import gbit, kbit, mbit, ms, s, us
from sojourn.traffic import (
    Application,
    Dash,
    Exponential,
    Incast,
    Lognormal,
    Page,
    PageObject,
    Pareto,
    Ping,
    Quic,
    Request,
    RequestRounds,
    Responsiveness,
    Sessions,
    Tcp,
    TcpSender,
    Traffic,
    TrafficBlock,
    Udp,
    Voip,
    Web,
)

if TYPE_CHECKING:
    from sojourn.plot.figures import plot_cdf, plot_ellipse, plot_series

__version__ = _core.version()


_FIGURES = frozenset({"plot_cdf", "plot_ellipse", "plot_series"})


def __getattr__(name: str) -> Any:
    """Import the figures on first use, since matplotlib dominates the import time."""
    if name in _FIGURES:
        from sojourn.plot import figures  # noqa: PLC0415 - imported on first use

        return getattr(figures, name)
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)


def __dir__() -> list[str]:
    """List the figures too, for completion."""
    return sorted({*globals(), *_FIGURES})


__all__ = [
    "Afcd",
    "AfcdKernel2012",
    "Afd",
    "AfqKernel2012",
    "Application",
    "Ared",
    "Arm",
    "Bbr",
    "Bbr3",
    "Bernoulli",
    "Bfifo",
    "Blue",
    "Cake",
    "Change",
    "Choke",
    "CoDel",
    "Cobalt",
    "Cocoa",
    "CongestionControl",
    "Cubic",
    "Dash",
    "Dctcp",
    "Drr",
    "DualPi2",
    "Exponential",
    "Finding",
    "Floq",
    "FloqFixed",
    "FloqProtect",
    "FloqShare",
    "Fq",
    "FqCoDel",
    "FqNoCoDel",
    "FqPie",
    "GilbertElliott",
    "HighSpeed",
    "Hred",
    "Incast",
    "Jitter",
    "Ledbat",
    "Link",
    "Lognormal",
    "Nlred",
    "Ns2Red",
    "Packet",
    "Page",
    "PageObject",
    "Pareto",
    "Pfifo",
    "PfifoFast",
    "PfifoHeadDrop",
    "Pie",
    "Ping",
    "Prague",
    "Predict",
    "Prio",
    "PythonQueue",
    "Queue",
    "QueueError",
    "Quic",
    "Red",
    "Reno",
    "Request",
    "RequestRounds",
    "Responsiveness",
    "Result",
    "ResultError",
    "Scenario",
    "ScenarioError",
    "Sessions",
    "Severity",
    "Sfb",
    "Sfq",
    "SfqCodel",
    "SojournError",
    "Station",
    "Tcp",
    "TcpSender",
    "Traffic",
    "TrafficBlock",
    "Udp",
    "Validity",
    "Vegas",
    "Voip",
    "Web",
    "Wifi",
    "gbit",
    "kbit",
    "mbit",
    "ms",
    "parking_lot",
    "plot_cdf",
    "plot_ellipse",
    "plot_series",
    "qdisc",
    "run",
    "s",
    "testing",
    "us",
]
