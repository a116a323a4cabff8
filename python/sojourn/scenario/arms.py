"""Names of arms as users write them."""

from sojourn import _core
from sojourn.scenario.model import Scenario


def check_arm(scenario: Scenario, name: str, place: str = "--arm") -> None:
    """Check that a scenario has an arm.

    Examples
    --------
    >>> from sojourn import Arm, Link, Ping, Scenario
    >>> scenario = Scenario(
    ...     links={"up": Link(rate="10mbit", qdisc="codel"), "down": "unlimited"},
    ...     traffic=[Ping(direction="up")],
    ...     arms=[Arm(name="a", set={}), Arm(name="b", set={"rtt": "9ms"})],
    ...     rtt="5ms",
    ...     duration="3s",
    ...     warmup="1s",
    ... )
    >>> check_arm(scenario, "c")
    Traceback (most recent call last):
    sojourn._core.ScenarioError: --arm c: unknown arm; expected one of a, b
    """
    names = scenario.checked.arms
    if name in names:
        return
    rule = "the scenario has no arms"
    if scenario.arms:
        rule = f"unknown arm; expected one of {', '.join(names)}"
    message = f"{place} {name}: {rule}"
    raise _core.ScenarioError(message)
