"""Environments of Gymnasium: one simulation, or many that are advanced together."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from sojourn.gym.simulations import Simulations, Task, task_for
from sojourn.gym.tasks import HIGHEST, AqmTask, WindowTask

__all__ = ["AqmEnv", "AqmVectorEnv", "WindowEnv", "WindowVectorEnv"]

Observations = NDArray[np.float32]
#: Numbers of the link in ``info``.
INFORMATION = ("time_s", "rate_bits_per_s", "sent_bytes", "drops", "marks", "backlog_packets")


def spaces(task: Task, agents: int) -> tuple[Any, Any]:
    """Return the spaces of observations and actions of ``agents`` agents together."""
    shape = (task.observations,) if agents == 1 else (agents, task.observations)
    observation = gymnasium.spaces.Box(-1, HIGHEST, shape, np.float32)
    return observation, gymnasium.spaces.Box(-1, 1, (agents,), np.float32)


class _Env(gymnasium.Env[Observations, NDArray[np.float32]]):
    """One simulation."""

    def __init__(self, task: Task, kind: type[Task]) -> None:
        task_for(self, task, kind)
        self.task = task
        self.metadata = {"render_modes": []}
        self._simulations = Simulations(task, 1)
        self.observation_space, self.action_space = spaces(task, task.agents)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observations, dict[str, Any]]:
        """Start an episode at the end of the warm-up.

        Parameters
        ----------
        seed
            Seed of the environment, from which those of episodes are drawn; ``None`` draws the next
            one.
        options
            Not used.

        Returns
        -------
        tuple
            The observation, and numbers of the link.
        """
        super().reset(seed=seed, options=options)
        self._simulations.reset(0, self.np_random)
        return self._observe(), self._simulations.information(0, INFORMATION)

    def step(
        self, action: NDArray[np.float32]
    ) -> tuple[Observations, float, bool, bool, dict[str, Any]]:
        """Apply an action and advance by a step.

        Parameters
        ----------
        action
            Numbers from -1 to 1; NaN leaves everything as it is.

        Returns
        -------
        tuple
            Observation, reward, ``False`` since no state is terminal, whether the episode has
            reached its duration, and numbers of the link.
        """
        self._simulations.step(np.asarray(action, dtype=np.float64))
        observations, rewards = self._simulations.outcome()
        ended = bool(self._simulations.ended[0])
        information = self._simulations.information(0, INFORMATION)
        shape = self.observation_space.shape or ()
        return observations.reshape(shape), float(np.mean(rewards[0])), False, ended, information

    def _observe(self) -> Observations:
        observations, _ = self._simulations.outcome()
        return observations.reshape(self.observation_space.shape or ())


class AqmEnv(_Env):
    """A queue, as :class:`AqmTask` describes it.

    Parameters
    ----------
    task
        By default four uploads over CUBIC on a link of 20 Mbit/s, whose drop probability is set
        every 10 ms.

    Examples
    --------
    >>> env = AqmEnv(AqmTask(duration="2s", action="target", qdisc="codel"))
    >>> _ = env.reset(seed=1)
    >>> _, reward, _, truncated, _ = env.step(np.array([0.0], np.float32))
    >>> truncated
    False
    """

    def __init__(self, task: AqmTask | None = None) -> None:
        super().__init__(task or AqmTask(), AqmTask)


class WindowEnv(_Env):
    """The congestion window of one flow, as :class:`WindowTask` describes it.

    Parameters
    ----------
    task
        By default one flow beside three of CUBIC on a link of 20 Mbit/s. With several agents,
        observations and actions have one row and one number per flow, and the reward is the mean of
        theirs.
    """

    def __init__(self, task: WindowTask | None = None) -> None:
        super().__init__(task or WindowTask(), WindowTask)


class _VectorEnv(VectorEnv[Observations, NDArray[np.float32], Any]):
    """Simulations that are advanced together, outside of the interpreter's lock.

    A simulation that has ended starts its next episode in the next step, which ignores its action
    (``AutoresetMode.NEXT_STEP``).
    """

    def __init__(self, num_envs: int, task: Task, kind: type[Task], threads: int) -> None:
        task_for(self, task, kind)
        self.num_envs = num_envs
        self.task = task
        self.metadata = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}
        self._simulations = Simulations(task, num_envs, threads)
        self.single_observation_space, self.single_action_space = spaces(task, task.agents)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._random = [np.random.default_rng() for _ in range(num_envs)]
        self._ended = np.zeros(num_envs, dtype=np.bool_)

    def reset(
        self,
        *,
        seed: int | list[int | None] | None = None,
        options: dict[str, Any] | None = None,  # noqa: ARG002 - of the interface
    ) -> tuple[Observations, dict[str, Any]]:
        """Start an episode in each simulation.

        Parameters
        ----------
        seed
            Seeds of the simulations; of one number, simulation ``n`` gets ``seed + n``.
        options
            Not used.

        Returns
        -------
        tuple
            The observations, and times by name.
        """
        seeds = (
            [None if seed is None else seed + n for n in range(self.num_envs)]
            if seed is None or isinstance(seed, int)
            else seed
        )
        for number, own in enumerate(seeds):
            if own is not None:
                self._random[number] = np.random.default_rng(own)
            self._simulations.reset(number, self._random[number])
        self._ended = np.zeros(self.num_envs, dtype=np.bool_)
        return self._observe(), self._information()

    def step(
        self, actions: NDArray[np.float32]
    ) -> tuple[
        Observations,
        NDArray[np.float64],
        NDArray[np.bool_],
        NDArray[np.bool_],
        dict[str, Any],
    ]:
        """Apply an action to each simulation and advance all by a step.

        Parameters
        ----------
        actions
            A row per simulation.

        Returns
        -------
        tuple
            Observations, rewards, and which simulations were terminated (none) and truncated.
        """
        restarted = self._ended
        self._simulations.step(np.asarray(actions, dtype=np.float64))
        if restarted.any():
            for number in np.flatnonzero(restarted):
                self._simulations.reset(int(number), self._random[number])
        observations, each = self._simulations.outcome()
        rewards = each if each.ndim == 1 else each.mean(axis=1)
        rewards[restarted] = 0
        self._ended = self._simulations.ended
        never = np.zeros(self.num_envs, dtype=np.bool_)
        shape = self.observation_space.shape or ()
        information = self._information()
        return observations.reshape(shape), rewards, never, self._ended.copy(), information

    def _observe(self) -> Observations:
        observations, _ = self._simulations.outcome()
        return observations.reshape(self.observation_space.shape or ())

    def _information(self) -> dict[str, Any]:
        return {"time_s": self._simulations.numbers["time_s"].copy()}


class AqmVectorEnv(_VectorEnv):
    """Queues that are advanced together, as :class:`AqmTask` describes them.

    Parameters
    ----------
    num_envs
        Number of simulations.
    task
        As of :class:`AqmEnv`.
    threads
        Threads on which they run.

    Examples
    --------
    >>> envs = AqmVectorEnv(3, AqmTask(duration="2s"))
    >>> observations, _ = envs.reset(seed=1)
    >>> observations.shape
    (3, 6)
    """

    def __init__(self, num_envs: int, task: AqmTask | None = None, *, threads: int = 1) -> None:
        super().__init__(num_envs, task or AqmTask(), AqmTask, threads)


class WindowVectorEnv(_VectorEnv):
    """Windows of flows in simulations that are advanced together: see :class:`WindowTask`.

    Parameters
    ----------
    num_envs
        Number of simulations.
    task
        As of :class:`WindowEnv`.
    threads
        Threads on which they run.
    """

    def __init__(self, num_envs: int, task: WindowTask | None = None, *, threads: int = 1) -> None:
        super().__init__(num_envs, task or WindowTask(), WindowTask, threads)
