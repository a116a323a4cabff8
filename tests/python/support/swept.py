"""A short scenario for sweeps, and parameters as the command line writes them."""

from sojourn.sweeps.parameters import Parameter, parameters

TEXT = """
name = "swept"
duration = "3s"
warmup = "1s"
rtt = "20ms"
replications = 2
links.up = { rate = "5mbit", qdisc = "codel" }
links.down = { rate = "5mbit", qdisc = "pfifo" }
traffic = [
    { name = "bulk", type = "tcp", direction = "up" },
    { name = "ping", type = "ping", direction = "up", interval = "50ms" },
]
"""
ARMS = 'arms = [{ name = "codel" }, { name = "pie", set = { "links.up.qdisc" = "pie" } }]\n'
RATES = "links.up.rate=2mbit,4mbit"


def parameter(text: str) -> Parameter:
    """Read ``PATH=VALUES``."""
    key, _, values = text.partition("=")
    (found,) = parameters({key: values})
    return found
