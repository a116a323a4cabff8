"""Environments for reinforcement learning (Gymnasium): an AQM's decision, and congestion windows.

An environment is a simulation that stops after each step, 10 ms by default, for an action. It needs
the package Gymnasium: ``pip install 'sojourn[gym]'``.

* :class:`AqmEnv`: one queue, its drop probability or its target.
* :class:`AqmVectorEnv`: many of them, advanced together.
* :class:`WindowEnv`: the congestion window of one flow.
* :class:`WindowVectorEnv`: many of them.
* :class:`WindowParallelEnv`: the windows of several flows on one link, with the methods of
  PettingZoo.
* :func:`evaluate`: returns of a policy, for the same seeds as those of a baseline.
* :func:`baseline`: returns with PIE, CoDel, CUBIC, BBR or any other queue or control.

Examples
--------
>>> from sojourn import gym
>>> env = gym.AqmEnv(gym.AqmTask(duration="2s"))
>>> observation, _ = env.reset(seed=1)
>>> observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
>>> observation.shape, info["time_s"]
((6,), 1.01)
"""

try:
    import gymnasium as _gymnasium  # noqa: F401 - only whether it is there
except ImportError as error:
    message = "sojourn.gym needs Gymnasium: pip install 'sojourn[gym]'"
    raise ImportError(message) from error

from sojourn.gym.environments import AqmEnv, AqmVectorEnv, WindowEnv, WindowVectorEnv
from sojourn.gym.evaluation import baseline, evaluate
from sojourn.gym.parallel import WindowParallelEnv
from sojourn.gym.tasks import AqmTask, WindowTask

__all__ = [
    "AqmEnv",
    "AqmTask",
    "AqmVectorEnv",
    "WindowEnv",
    "WindowParallelEnv",
    "WindowTask",
    "WindowVectorEnv",
    "baseline",
    "evaluate",
]
