"""What an environment simulates, observes and rewards."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from sojourn import _core
from sojourn.errors import alternatives, invalid
from sojourn.scenario.link import Link
from sojourn.scenario.model import Scenario
from sojourn.traffic.connections import Tcp

__all__ = ["AqmTask", "WindowTask"]

Floats = NDArray[np.float64]

_LINK = {name: place for place, name in enumerate(_core.Batch.link_columns)}
_FLOW = {name: place for place, name in enumerate(_core.Batch.flow_columns)}
#: Delays are observed in units of this.
_DELAY_UNIT_S = 0.1
#: Observations are cut off here.
HIGHEST = 10.0
#: Actions of an AQM; without actions, its queue is a baseline.
ACTIONS = ("drop_probability", "target")
NO_ACTION = "none"


class Numbers:
    """What the simulations did in a step: a row per simulation, with the columns of the core."""

    def __init__(self, rows: Floats) -> None:
        self.rows = rows

    def __getitem__(self, name: str) -> Floats:
        """Return a number of the link, one per simulation."""
        return self.rows[:, _LINK[name]]

    def flows(self, name: str, most: int) -> Floats:
        """Return a number of the first flows over TCP, a row per simulation."""
        first = len(_LINK) + _FLOW[name]
        return self.rows[:, first :: len(_FLOW)][:, :most]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Task:
    """What both tasks have: the scenario or what it is made of, and the step."""

    scenarios: Sequence[Scenario] = ()
    link: str = "up"
    step: str = "10ms"
    rate: str = "20mbit"
    rtt: str = "40ms"
    flows: int = 4
    qdisc: str = "pfifo limit 1000"
    duration: str = "30s"
    warmup: str = "1s"
    delay_weight: float = 10.0

    def __post_init__(self) -> None:
        """Refuse what is no scenario, such as the name of a file."""
        if isinstance(self.scenarios, str):
            shown = json.dumps(self.scenarios)
            expected = f"expected [sj.Scenario.from_file({shown})]"
            raise invalid("scenarios", f"{shown} is not a list of scenarios; {expected}")
        for number, scenario in enumerate(self.scenarios):
            if not isinstance(scenario, Scenario):
                shown = json.dumps(f"{scenario}")
                problem = f"{shown} is not a scenario; expected sj.Scenario.from_file({shown})"
                place = f"scenarios[{number}]"
                raise invalid(place, problem)

    def checked(self) -> list[_core.Scenario]:
        """Return the scenarios of episodes."""
        return [scenario.checked for scenario in self.scenarios or (self.scenario(),)]

    def scenario(self) -> Scenario:
        """Return the scenario that the parameters describe."""
        return Scenario(
            name=type(self).__name__,
            links={self.link: Link(rate=self.rate, qdisc=self.qdisc), "down": "unlimited"},
            traffic=self.traffic(),
            rtt=self.rtt,
            duration=self.duration,
            warmup=self.warmup,
            # Episodes are not recorded.
            sample=self.duration,
        )

    def traffic(self) -> list[Tcp]:
        """Return the traffic of the scenario."""
        return [Tcp(direction="up", count=self.flows, start_jitter="200ms")]

    @property
    def step_s(self) -> float:
        """Duration of a step in seconds."""
        return _core.parse_time_s(self.step)

    @property
    def rtt_s(self) -> float:
        """Base RTT in seconds: of the first scenario, if there are any."""
        documents = (json.loads(scenario.checked.to_json()) for scenario in self.scenarios)
        first: Mapping[str, Any] = next(documents, {"rtt": self.rtt})
        if "rtt" not in first:
            raise invalid("scenarios", "the scenario has no rtt")
        return _core.parse_time_s(first["rtt"])


def _bounded(columns: Sequence[Floats]) -> NDArray[np.float32]:
    """Return observations from their columns."""
    observations = np.empty((*columns[0].shape, len(columns)), np.float32)
    for place, column in enumerate(columns):
        observations[..., place] = column
    # A comparison with NaN is false; only an action can be NaN.
    observations[..., -1][np.isnan(observations[..., -1])] = 0
    np.minimum(observations, HIGHEST, out=observations)
    return observations


@dataclass(frozen=True, slots=True, kw_only=True)
class AqmTask(_Task):
    """An AQM: what one queue does to its packets in the next step.

    Parameters
    ----------
    scenarios
        Scenarios, of which each episode draws one; by default one with the other parameters. Their
        arms and seeds are not used.
    link
        Name of the link whose queue is steered.
    step
        Time between two actions.
    rate, rtt, flows
        Rate of the link, base RTT and number of uploads over CUBIC.
    qdisc
        Queue of the link, if the action is its target.
    duration, warmup
        An episode lasts from the end of the warm-up, during which no action is taken, to the
        duration.
    delay_weight
        Utilisation that a second of queueing delay costs.
    action
        ``"drop_probability"``: a FIFO with this ``limit`` in packets, in place of the queue, marks
        arrivals with the probability, or drops those that are not ECN-capable. ``"target"``: that
        of ``qdisc``, such as ``"codel"``, ``"pie"`` or ``"fq_codel"``, as by ``tc qdisc change``.
    limit
        Limit of the FIFO.
    highest_probability
        The largest probability.

    Notes
    -----
    The action ``a`` is one number from -1 to 1; with ``u = (a + 1) / 2``, the drop probability is
    ``highest_probability * u**2`` and the target is ``1 ms * 100**u``.

    The observation has six numbers, each at most 10: mean sojourn time of the packets sent in the
    step and delay of the backlog at the rate of the link, in units of 100 ms; utilisation of the
    link; share of the arrivals that were dropped or marked; arrivals as a multiple of the rate; the
    last action.

    The reward of a step is its utilisation minus ``delay_weight`` times the mean sojourn time in
    seconds: with the default 10, one millisecond of delay costs as much as 1 % of the link.
    """

    action: Literal["drop_probability", "target", "none"] = "drop_probability"
    limit: int = 1000
    highest_probability: float = 0.25

    #: Number of observations.
    observations = 6
    #: Number of actions.
    agents = 1

    def __post_init__(self) -> None:
        """Refuse an unknown action, and what is no probability."""
        _Task.__post_init__(self)
        if self.action not in {*ACTIONS, NO_ACTION}:
            problem = f"unknown action {json.dumps(self.action)}; expected {alternatives(ACTIONS)}"
            raise invalid("action", problem)
        if not 0 <= self.highest_probability <= 1:
            problem = f"{self.highest_probability} is out of range; expected 0 to 1"
            raise invalid("highest_probability", problem)

    def core(self) -> dict[str, Any]:
        """Return the arguments of the batch."""
        action = {"target": "time"}.get(self.action, self.action)
        return {"action": action, "key": "target", "most": self.limit}

    def settings(self, actions: Floats, _: Numbers) -> Floats:
        """Return what actions between -1 and 1 set."""
        u = (actions + 1) / 2
        if self.action == "target":
            return np.asarray(0.001 * 100**u)
        return self.highest_probability * u**2

    def outcome(
        self, numbers: Numbers, actions: Floats, step_s: float, _rtt_s: float
    ) -> tuple[NDArray[np.float32], Floats]:
        """Return observations and rewards of a step, a row per simulation."""
        rate = numbers["rate_bits_per_s"] / 8
        capacity = rate * step_s
        backlog_s = numbers["backlog_bytes"] / rate
        mean_s = numbers["sojourn_s_mean"]
        # If nothing was sent, the delay of the backlog.
        delay_s = np.where(np.isnan(mean_s), backlog_s, mean_s)
        utilisation = numbers["sent_bytes"] / capacity
        drops = numbers["drops"]
        arrivals = numbers["sent_packets"] + drops
        observations = _bounded(
            [
                delay_s / _DELAY_UNIT_S,
                backlog_s / _DELAY_UNIT_S,
                utilisation,
                (drops + numbers["marks"]) / np.maximum(arrivals, 1),
                1514 * arrivals / capacity,
                actions[:, 0],
            ]
        )
        return observations, utilisation - self.delay_weight * delay_s

    def baseline(self, name: str) -> Self:
        """Return the task with that queue, without actions."""
        scenarios = [
            scenario.replace(
                links={**scenario.links, self.link: _with_queue(scenario, self.link, name)}
            )
            for scenario in self.scenarios
        ]
        return replace(self, scenarios=scenarios, qdisc=name, action="none")


def _with_queue(scenario: Scenario, name: str, queue: str) -> Link:
    link = scenario.links[name]
    if not isinstance(link, Link):
        raise invalid("link", f"{name} is unlimited; expected a link with a rate")
    return replace(link, qdisc=queue)


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowTask(_Task):
    """A congestion control: the congestion windows of the first flows over TCP.

    Parameters
    ----------
    scenarios
        Scenarios, of which each episode draws one; by default one with the other parameters. All
        have the same number of blocks and flows of TCP; the first flows are those with a window.
    link
        Name of the bottleneck.
    step
        Time between two actions.
    rate, rtt, flows
        Rate of the link, base RTT and number of uploads.
    qdisc
        Queue of the link.
    duration, warmup
        An episode lasts from the end of the warm-up, during which no action is taken, to the
        duration.
    delay_weight
        Reward that a second of queueing delay costs.
    agents
        Number of flows whose window is set. The others use ``others``.
    loss_weight
        Reward that a share of retransmissions of 1 costs.
    cc
        Control of the flows with a window between two actions. It grows the window and reduces it
        after losses as always.
    others
        Control of the other flows.

    Notes
    -----
    The action ``a`` of a flow is one number from -1 to 1: it multiplies the window that the flow
    has by ``2**a``, and sets the slow-start threshold to the same value. Losses are detected and
    repaired by the TCP of Linux.

    The observation of a flow has six numbers, each at most 10: window and segments in flight as
    multiples of the bandwidth-delay product of the link; bytes delivered as a multiple of an equal
    share of the link; RTT minus the base RTT, in units of 100 ms; share of the segments sent that
    were retransmissions; the last action.

    The reward of a step is ``log2(1 + x) - delay_weight * d - loss_weight * r``, with the goodput
    ``x`` as a multiple of an equal share of the link, the RTT minus the base RTT ``d`` in seconds,
    and the share of retransmissions ``r``. The logarithm makes the sum over the flows largest if
    all are equal.
    """

    agents: int = 1
    loss_weight: float = 1.0
    cc: str = "reno"
    others: str = "cubic"
    qdisc: str = "pfifo limit 100"

    observations = 6

    def traffic(self) -> list[Tcp]:
        """Return the traffic of the scenario."""
        if not 1 <= self.agents <= self.flows:
            raise invalid("agents", f"{self.agents} is out of range; expected 1 to {self.flows}")
        first = Tcp(direction="up", count=self.agents, cc=self.cc, start_jitter="200ms")
        others = self.flows - self.agents
        if not others:
            return [first]
        return [first, Tcp(direction="up", count=others, cc=self.others, start_jitter="200ms")]

    def core(self) -> dict[str, Any]:
        """Return the arguments of the batch."""
        return {"action": "windows", "key": "", "most": self.agents}

    def settings(self, actions: Floats, numbers: Numbers) -> Floats:
        """Return what actions between -1 and 1 set."""
        windows = numbers.flows("cwnd", self.agents)
        # A flow that has not started has no window.
        return np.where(windows > 0, windows * 2**actions, np.nan)

    def outcome(
        self, numbers: Numbers, actions: Floats, step_s: float, base_rtt_s: float
    ) -> tuple[NDArray[np.float32], Floats]:
        """Return observations and rewards of a step: a row per simulation, with each flow."""
        rate = numbers["rate_bits_per_s"][:, None] / 8
        product = rate * (base_rtt_s / 1514)
        share = numbers.flows("delivered_bytes", self.agents) / (rate * step_s / self.flows)
        # The RTT of the step, else the smoothed one; before the first one there is no delay.
        mean_s, smoothed_s = (numbers.flows(name, self.agents) for name in ("rtt_s_mean", "srtt_s"))
        rtt_s = np.where(np.isnan(mean_s), smoothed_s, mean_s)
        delay_s = np.fmax(rtt_s - base_rtt_s, 0)
        sent = numbers.flows("sent_packets", self.agents)
        resent = numbers.flows("retransmits", self.agents) / np.maximum(sent, 1)
        observations = _bounded(
            [
                numbers.flows("cwnd", self.agents) / product,
                numbers.flows("in_flight", self.agents) / product,
                share,
                delay_s / _DELAY_UNIT_S,
                resent,
                actions,
            ]
        )
        rewards = np.log2(1 + share) - self.delay_weight * delay_s - self.loss_weight * resent
        return observations, rewards

    def baseline(self, name: str) -> Self:
        """Return the task whose first flows have that control."""
        scenarios = []
        for scenario in self.scenarios:
            first, *rest = scenario.traffic
            if not isinstance(first, Tcp):
                raise invalid("scenarios", "the first block of traffic must be TCP")
            scenarios.append(scenario.replace(traffic=[replace(first, cc=name), *rest]))
        return replace(self, scenarios=scenarios, cc=name)
