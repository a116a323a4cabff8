"""Train an AQM with PPO in a minute, and compare it with PIE and CoDel.

Needs ``pip install '.[gym]' stable-baselines3``, in a checkout.

The policy sets the drop probability of a FIFO every 10 ms. Printed are the mean rewards per step
in 10 episodes that were not trained with; more is better, and 1 is a full link without delay.
"""

import argparse
import sys
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv

from sojourn import gym

EPISODES, SEED = 10, 10_000


def main() -> None:
    """Train and compare."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--steps", type=int, default=200_000, help="number of steps to train")
    steps = options.parse_args().steps

    # Networks this small are faster on one thread.
    torch.set_num_threads(1)
    task = gym.AqmTask(duration="15s")
    environments = DummyVecEnv([lambda: gym.AqmEnv(task)] * 8)
    model = PPO(
        "MlpPolicy", environments, n_steps=512, batch_size=512, gamma=0.98, seed=1, device="cpu"
    )

    def policy(observations: NDArray[np.float32]) -> NDArray[np.float32]:
        return model.predict(observations, deterministic=True)[0]

    def show(name: str, returns: NDArray[np.float64]) -> None:
        print(f"{name} {returns.mean():.3f}", flush=True)

    def progress(_locals: dict[str, Any], _globals: dict[str, Any]) -> bool:
        if model.num_timesteps % 20_000 == 0:
            print(f"{model.num_timesteps:,} of {steps:,} steps", file=sys.stderr, flush=True)
        return True

    show("untrained", gym.evaluate(task, policy, episodes=EPISODES, seed=SEED))
    model.learn(steps, callback=progress)
    show("trained", gym.evaluate(task, policy, episodes=EPISODES, seed=SEED))
    for queue in ("pie", "codel", "pfifo"):
        show(queue, gym.baseline(task, queue, episodes=EPISODES, seed=SEED))


if __name__ == "__main__":
    main()
