"""The windows of several flows on one link, with the methods of ``ParallelEnv`` of PettingZoo."""

from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from sojourn.gym.environments import spaces
from sojourn.gym.simulations import Simulations, task_for
from sojourn.gym.tasks import WindowTask

__all__ = ["WindowParallelEnv"]

ByAgent = dict[str, Any]


class WindowParallelEnv:
    """The congestion windows of several flows that share a link: an agent each.

    It has the methods and attributes of ``ParallelEnv`` of PettingZoo and does not need that
    package. The agents are ``flow_0``, ``flow_1`` and so on; all act until the episode ends.

    Parameters
    ----------
    task
        By default four flows, all of which are agents; :class:`WindowTask` describes observations,
        actions and rewards.

    Examples
    --------
    >>> env = WindowParallelEnv(WindowTask(agents=2, flows=2, duration="2s"))
    >>> observations, _ = env.reset(seed=1)
    >>> actions = {agent: env.action_space(agent).sample() for agent in env.agents}
    >>> sorted(env.step(actions)[1])
    ['flow_0', 'flow_1']
    """

    metadata: dict[str, Any] = {"name": "sojourn_window_v0", "render_modes": []}  # noqa: RUF012
    render_mode = None

    def __init__(self, task: WindowTask | None = None) -> None:
        self.task = task or WindowTask(agents=4)
        task_for(self, self.task, WindowTask)
        self.possible_agents = [f"flow_{n}" for n in range(self.task.agents)]
        self.agents: list[str] = []
        self._simulations = Simulations(self.task, 1)
        observation, action = spaces(self.task, 1)
        self.observation_spaces = dict.fromkeys(self.possible_agents, observation)
        self.action_spaces = dict.fromkeys(self.possible_agents, action)
        self._random = np.random.default_rng()

    @property
    def num_agents(self) -> int:
        """Number of agents that act."""
        return len(self.agents)

    @property
    def max_num_agents(self) -> int:
        """Number of agents of an episode."""
        return len(self.possible_agents)

    @property
    def unwrapped(self) -> "WindowParallelEnv":
        """The environment itself."""
        return self

    def observation_space(self, agent: str) -> gymnasium.spaces.Space[Any]:
        """Return the space of observations of an agent.

        Parameters
        ----------
        agent
            Name of the agent.

        Returns
        -------
        gymnasium.spaces.Space
            The space.
        """
        space: gymnasium.spaces.Space[Any] = self.observation_spaces[agent]
        return space

    def action_space(self, agent: str) -> gymnasium.spaces.Space[Any]:
        """Return the space of actions of an agent.

        Parameters
        ----------
        agent
            Name of the agent.

        Returns
        -------
        gymnasium.spaces.Space
            The space.
        """
        space: gymnasium.spaces.Space[Any] = self.action_spaces[agent]
        return space

    def reset(
        self,
        seed: int | None = None,
        options: dict[str, Any] | None = None,  # noqa: ARG002 - of the interface
    ) -> tuple[ByAgent, ByAgent]:
        """Start an episode at the end of the warm-up.

        Parameters
        ----------
        seed
            Seed from which those of episodes are drawn; ``None`` draws the next one.
        options
            Not used.

        Returns
        -------
        tuple of dict
            Observations and information by agent.
        """
        if seed is not None:
            self._random = np.random.default_rng(seed)
        self.agents = list(self.possible_agents)
        self._simulations.reset(0, self._random)
        observations, _ = self._simulations.outcome()
        by_agent = dict(zip(self.agents, observations[0], strict=True))
        return by_agent, {agent: {} for agent in self.agents}

    def step(
        self, actions: dict[str, NDArray[np.float32]]
    ) -> tuple[ByAgent, ByAgent, ByAgent, ByAgent, ByAgent]:
        """Apply an action of each agent and advance by a step.

        Parameters
        ----------
        actions
            By agent; the window of an agent without one is left as it is.

        Returns
        -------
        tuple of dict
            Observations, rewards, terminations (none), truncations and information by agent.
        """
        none = np.array([np.nan])
        together = np.array([actions.get(agent, none)[0] for agent in self.possible_agents])
        self._simulations.step(together.astype(np.float64))
        observations, rewards = self._simulations.outcome()
        ended = bool(self._simulations.ended[0])
        agents, self.agents = self.agents, [] if ended else self.agents
        return (
            dict(zip(agents, observations[0], strict=True)),
            dict(zip(agents, map(float, rewards[0]), strict=True)),
            dict.fromkeys(agents, False),
            dict.fromkeys(agents, ended),
            {agent: {} for agent in agents},
        )

    def render(self) -> None:
        """Do nothing: there are no render modes."""

    def close(self) -> None:
        """Do nothing: an environment holds no resources beyond its memory."""
