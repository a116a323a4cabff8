"""Measures how many steps per second the environments of sojourn.gym take.

A step is 10 ms of a link of 20 Mbit/s with four flows; 64 simulations are advanced together. Exit
code 1: fewer than 100,000 steps per second.
"""

import sys
import time
from datetime import UTC, datetime

import numpy as np

from sojourn import gym

SIMULATIONS, LEAST = 64, 100_000
SECONDS = 3.0


def rate(envs: gym.AqmVectorEnv | gym.WindowVectorEnv) -> float:
    """Return the steps per second of all simulations together."""
    envs.reset(seed=1)
    random = np.random.default_rng(1)
    # Drop probabilities, targets and windows that keep the link busy.
    actions = random.uniform(-0.8, -0.6, (200, *(envs.action_space.shape or ()))).astype(np.float32)
    if isinstance(envs, gym.WindowVectorEnv):
        actions = random.uniform(-0.2, 0.2, actions.shape).astype(np.float32)
    for action in actions[:50]:
        envs.step(action)
    steps, start = 0, time.perf_counter()
    while time.perf_counter() - start < SECONDS:
        for action in actions:
            envs.step(action)
        steps += len(actions)
    return steps * SIMULATIONS / (time.perf_counter() - start)


def main() -> int:
    """Print a table; return the exit code."""
    aqm, codel = gym.AqmTask(), gym.AqmTask(action="target", qdisc="codel")
    window, all_windows = gym.WindowTask(), gym.WindowTask(agents=4)
    lowest = float("inf")
    print(f"{datetime.now(UTC):%Y-%m-%d}, {SIMULATIONS} simulations, steps per second")
    print("| environment | 1 thread | 2 threads |\n|---|---|---|")
    for name, make in (
        ("drop probability", lambda threads: gym.AqmVectorEnv(SIMULATIONS, aqm, threads=threads)),
        ("target of CoDel", lambda threads: gym.AqmVectorEnv(SIMULATIONS, codel, threads=threads)),
        ("one window", lambda threads: gym.WindowVectorEnv(SIMULATIONS, window, threads=threads)),
        (
            "four windows",
            lambda threads: gym.WindowVectorEnv(SIMULATIONS, all_windows, threads=threads),
        ),
    ):
        rates = [rate(make(threads)) for threads in (1, 2)]
        lowest = min(lowest, max(rates))
        print(f"| {name} | {rates[0]:,.0f} | {rates[1]:,.0f} |", flush=True)
    return int(lowest < LEAST)


if __name__ == "__main__":
    sys.exit(main())
