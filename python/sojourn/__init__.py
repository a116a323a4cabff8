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

if TYPE_CHECKING:
    from sojourn.public import *  # noqa: F403 - the list is there


def __getattr__(name: str) -> Any:
    """Import modules and public names on first use.

    The imports take several tenths of a second. Importing on first use lets the command install its
    signal handlers before.
    """
    if name == "__version__":
        return import_module("sojourn._core").version()
    if name == "__all__":
        return import_module("sojourn.public").__all__
    if not name.startswith("__"):
        # `from sojourn import name` calls this before it imports the submodule `name`.
        module = f"{__name__}.{name}"
        if find_spec(module) is not None:
            return import_module(module)
        public = import_module("sojourn.public")
        if name in public.__all__:
            value = globals()[name] = getattr(public, name)
            return value
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)


def __dir__() -> list[str]:
    """List the public names, imported or not."""
    return sorted({*import_module("sojourn.public").__all__, *globals()})
