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

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from sojourn.deferred import Deferred

if TYPE_CHECKING:
    from sojourn.plot.figures import plot_cdf as plot_cdf
    from sojourn.plot.figures import plot_ellipse as plot_ellipse
    from sojourn.plot.figures import plot_series as plot_series
    from sojourn.public import *  # noqa: F403 - the list is there

# Importing these modules takes several tenths of a second. The command installs its signal handlers
# before.
_PUBLIC = Deferred("sojourn.public")
_CORE = Deferred("sojourn._core")
_FIGURES = {
    name: Deferred("sojourn.plot.figures") for name in ("plot_cdf", "plot_ellipse", "plot_series")
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use."""
    if name == "__version__":
        return _CORE.version()
    if name == "__all__":
        return sorted([*_PUBLIC.__all__, *_FIGURES])
    if not name.startswith("__"):
        # `from sojourn import name` asks for a submodule before it imports it.
        if find_spec(f"{__name__}.{name}") is not None:
            return import_module(f"{__name__}.{name}")
        if name in _FIGURES or name in _PUBLIC.__all__:
            value = globals()[name] = getattr(_FIGURES.get(name, _PUBLIC), name)
            return value
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)


def __dir__() -> list[str]:
    """List the public names, imported or not."""
    return [*__getattr__("__all__"), "__version__"]
