"""Returns of policies, and of queues and congestion controls that are not learned."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from sojourn.gym.simulations import Simulations, Task

__all__ = ["baseline", "evaluate"]

#: Returns the actions for observations, a row per episode.
Policy = Callable[[NDArray[np.float32]], NDArray[np.float32]]


def evaluate(
    task: Task, policy: Policy | None, *, episodes: int = 10, seed: int = 1, threads: int = 1
) -> NDArray[np.float64]:
    """Return the mean reward per step of a policy in each of some episodes.

    Episodes with the same seed have the same scenario, traffic and random numbers of the network,
    whatever the policy.

    Parameters
    ----------
    task
        What is simulated.
    policy
        Returns the actions for observations, a row per episode; ``None``: no actions.
    episodes
        Number of episodes, which are advanced together.
    seed
        Seed of the first episode; the next ones have the next numbers.
    threads
        Threads on which the simulations run.

    Returns
    -------
    numpy.ndarray
        Mean reward per step of each episode.

    Examples
    --------
    >>> from sojourn import gym
    >>> task = gym.AqmTask(duration="2s")
    >>> evaluate(task, lambda seen: -np.ones((len(seen), 1), np.float32), episodes=2).shape
    (2,)
    """
    simulations = Simulations(task, episodes, threads)
    for number in range(episodes):
        simulations.reset(number, np.random.default_rng(seed + number))
    total, steps = np.zeros(episodes), np.zeros(episodes)
    nothing = np.full(simulations.actions.shape, np.nan)
    active = ~simulations.ended
    observations, _ = simulations.outcome()
    while active.any():
        actions = nothing if policy is None else policy(observations)
        simulations.step(np.asarray(actions, dtype=np.float64))
        observations, rewards = simulations.outcome()
        of_episode = rewards if rewards.ndim == 1 else rewards.mean(axis=1)
        total += np.where(active, of_episode, 0)
        steps += active
        active = ~simulations.ended
    return total / np.maximum(steps, 1)


def baseline(
    task: Task, name: str, *, episodes: int = 10, seed: int = 1, threads: int = 1
) -> NDArray[np.float64]:
    """Return the mean reward per step of a queue or control that is not learned.

    The episodes and rewards are those of :func:`evaluate` with the same seed.

    Parameters
    ----------
    task
        What is simulated. Of an :class:`AqmTask`, the queue replaces that of the link; of a
        :class:`WindowTask`, the control is that of the flows whose windows are set otherwise.
    name
        A queue such as ``"pie"`` or ``"codel"``, or a control such as ``"cubic"`` or ``"bbr"``,
        with parameters.
    episodes, seed, threads
        As of :func:`evaluate`.

    Returns
    -------
    numpy.ndarray
        Mean reward per step of each episode.

    Examples
    --------
    >>> from sojourn import gym
    >>> task = gym.AqmTask(duration="3s")
    >>> bool((baseline(task, "pie", episodes=2) > baseline(task, "pfifo", episodes=2)).all())
    True
    """
    return evaluate(task.baseline(name), None, episodes=episodes, seed=seed, threads=threads)
