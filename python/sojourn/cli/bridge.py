"""``sojourn bridge``: a queue between two interfaces of the machine, with real packets."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

from sojourn import _core
from sojourn.arguments import Argument, ArgumentError, common
from sojourn.cli import session
from sojourn.cli.live import LinePlan, changed, follow, on_line
from sojourn.cli.options import Arms, Change, Strict
from sojourn.cli.plans import Given, command
from sojourn.cli.process import say
from sojourn.cli.run import only, opened
from sojourn.scenario import Scenario
from sojourn.traffic import Bridged

# Options for which a scenario file has keys.
OF_LINE = ("link", "rtt", "qdisc", "qdisc_up")


@dataclass(frozen=True, kw_only=True)
class BridgePlan(LinePlan):
    """Two interfaces, and the line between them."""

    near: Annotated[
        str,
        Argument(help="Interface of the clients, such as eth1.", option="NEAR"),
    ]
    far: Annotated[
        str,
        Argument(help="Interface of the servers: packets from NEAR to FAR go up.", option="FAR"),
    ]
    file: Annotated[
        Path | None,
        Argument(
            help="Scenario file that describes the links; - for standard input.",
            unset="the links of --link, --rtt and --qdisc",
            option="FILE",
        ),
    ] = None
    rtt: Annotated[str, common.RTT] = "0ms"
    default_route: Annotated[
        bool,
        Argument(
            help="Use also the interface that connects this machine to others: it is cut off."
        ),
    ] = False


@command(BridgePlan)
def bridge(
    given: Given[BridgePlan],
    *,
    change: Change = (),
    arm: Arms = (),
    output: session.Output,
    strict: Strict = False,
) -> int:
    """Bridge two Ethernet interfaces with a queue in each direction, as root.

    Frames that arrive at one interface leave through the other. Hosts on both sides, such as
    routers and phones, notice only the link. The machine itself neither receives nor sends packets
    on these interfaces during the run. Ctrl-C ends the run.
    """
    planned = given.plan()
    scenario = composed(given, planned, change, arm)
    interfaces = (planned.near, planned.far)
    run = partial(_core.run_program, bridge=interfaces, default_route=planned.default_route)
    return follow(scenario, planned, run, output=output, strict=strict)


def composed(given: Given[BridgePlan], planned: BridgePlan, change: Change, arm: Arms) -> Scenario:
    """Build the scenario: the packets of both directions on the line of the options or a file."""
    packets = [Bridged(name=name, direction=name) for name in ("down", "up")]
    if planned.file is None:
        scenario = changed(on_line(planned, "bridge", packets), planned, change)
        return only(scenario, arm) if arm else scenario
    for name in OF_LINE:
        if name in given.options:
            rule = "not allowed with FILE, which describes the links; change them with -s"
            raise ArgumentError(name, given.options[name], rule)
    scenario, _ = opened(planned.file, change)
    if any(not isinstance(block, Bridged) for block in scenario.traffic):
        say("note: the hosts behind the interfaces send the packets; the file's traffic is ignored")
        scenario = scenario.replace(traffic=packets)
    duration = scenario.duration if planned.duration is None else planned.duration
    scenario = scenario.replace(replications=1, duration=duration, warmup="0s")
    return only(scenario, arm) if arm else scenario
