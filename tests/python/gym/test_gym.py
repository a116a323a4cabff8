"""Environments for reinforcement learning."""

import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pytest

import sojourn as sj
from support.shell import ROOT

gymnasium = pytest.importorskip("gymnasium", reason="gymnasium is not installed")
from gymnasium.utils import env_checker  # noqa: E402

from sojourn import gym  # noqa: E402

SHORT = gym.AqmTask(duration="3s")
TARGET = gym.AqmTask(action="target", qdisc="codel", duration="3s")
WINDOW = gym.WindowTask(duration="3s")


@pytest.mark.parametrize(
    "env",
    [
        gym.AqmEnv(SHORT),
        gym.AqmEnv(TARGET),
        gym.WindowEnv(WINDOW),
        gym.WindowEnv(gym.WindowTask(agents=2, duration="3s")),
    ],
    ids=["drop probability", "target", "window", "two windows"],
)
def test_the_checker_of_gymnasium_passes(env: Any) -> None:
    with warnings.catch_warnings():
        # It advises to make environments by their registered name.
        warnings.simplefilter("ignore")
        env_checker.check_env(env, skip_render_check=True)


def rollout(env: Any, seed: int, steps: int = 100) -> list[Any]:
    observation, _ = env.reset(seed=seed)
    seen = [observation]
    actions = np.random.default_rng(3).uniform(-1, 1, (steps, *env.action_space.shape))
    for action in actions.astype(np.float32):
        observation, reward, _, truncated, _ = env.step(action)
        seen += [observation, reward, truncated]
    return seen


def equal(one: list[Any], other: list[Any]) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("make", [gym.AqmVectorEnv, gym.WindowVectorEnv])
def test_an_episode_depends_on_its_seed_and_not_on_threads(make: Any) -> None:
    task = SHORT if make is gym.AqmVectorEnv else WINDOW
    one, two, other = (
        rollout(make(5, task, threads=n), seed) for n, seed in [(1, 1), (2, 1), (1, 9)]
    )
    assert equal(one, two)
    assert not equal(one, other)


def test_a_vector_has_the_steps_of_its_environments() -> None:
    envs = gym.AqmVectorEnv(3, SHORT)
    observations, _ = envs.reset(seed=4)
    singles = [gym.AqmEnv(SHORT) for _ in range(3)]
    firsts = [env.reset(seed=4 + n)[0] for n, env in enumerate(singles)]
    assert np.array_equal(observations, np.stack(firsts))
    # From the end of the warm-up at 1 s to 3 s; the next step starts the next episode.
    action = np.zeros((3, 1), np.float32)
    for step in range(1, 202):
        observations, rewards, _, truncated, _ = envs.step(action)
        if step <= 200:
            taken = [env.step(action[0]) for env in singles]
            assert np.array_equal(observations, np.stack([each[0] for each in taken]))
            assert np.array_equal(rewards, [each[1] for each in taken])
        assert truncated.tolist() == [step == 200] * 3
    assert rewards.tolist() == [0, 0, 0]
    assert [env.reset()[0].tolist() for env in singles] == observations.tolist()


def test_rewards_are_those_of_the_documentation() -> None:
    env = gym.AqmEnv(SHORT)
    env.reset(seed=1)
    for _ in range(50):
        observation, reward, _, _, info = env.step(np.array([-0.8], np.float32))
        utilisation = 8 * info["sent_bytes"] / (info["rate_bits_per_s"] * 0.010)
        assert observation[2] == pytest.approx(utilisation)
        delay_s = 0.1 * observation[0]
        assert reward == pytest.approx(utilisation - 10 * delay_s, abs=1e-5)
    window = gym.WindowEnv(WINDOW)
    window.reset(seed=1)
    for _ in range(50):
        observation, reward, *_ = window.step(np.array([0.1], np.float32))
        _, _, share, delay, resent, _ = observation.tolist()
        if share == 10:
            continue  # More than an observation shows, as after a loss is repaired.
        assert reward == pytest.approx(np.log2(1 + share) - 10 * 0.1 * delay - resent, abs=1e-5)


def test_a_high_probability_empties_the_queue_and_a_low_one_fills_it() -> None:
    def constant(value: float) -> Any:
        return lambda seen: np.full((len(seen), 1), value, np.float32)

    task = gym.AqmTask(duration="8s", delay_weight=0)
    idle, busy = (gym.evaluate(task, constant(value), episodes=2).mean() for value in (1, -1))
    assert idle < 0.6
    assert busy > 0.95
    delayed = gym.AqmTask(duration="8s")
    assert gym.evaluate(delayed, constant(-1), episodes=2).mean() < 0


def test_baselines_are_queues_and_controls_with_the_same_traffic() -> None:
    task = gym.AqmTask(duration="8s")
    pie, codel, fifo = (gym.baseline(task, name, episodes=2) for name in ("pie", "codel", "pfifo"))
    assert (pie > fifo).all()
    assert (codel > fifo).all()
    window = gym.WindowTask(duration="8s")
    cubic, bbr = (gym.baseline(window, name, episodes=2) for name in ("cubic", "bbr"))
    assert not np.array_equal(cubic, bbr)
    # A policy that does nothing is the baseline of the control below it.
    nothing = gym.evaluate(window, None, episodes=2)
    assert np.array_equal(nothing, gym.baseline(window, "reno", episodes=2))


def test_an_episode_draws_one_of_the_scenarios() -> None:
    scenarios = [gym.AqmTask(rate=rate, duration="3s").scenario() for rate in ("10mbit", "40mbit")]
    env = gym.AqmEnv(gym.AqmTask(scenarios=scenarios))
    env.reset(seed=1)
    rates = {env.reset()[1]["rate_bits_per_s"] for _ in range(20)}
    assert rates == {10e6, 40e6}


def test_agents_of_the_parallel_environment_share_a_link() -> None:
    env = gym.WindowParallelEnv(gym.WindowTask(agents=4, duration="3s"))
    observations, _ = env.reset(seed=1)
    assert list(observations) == env.agents == [f"flow_{n}" for n in range(4)]
    up, down = np.array([0.5], np.float32), np.array([-0.5], np.float32)
    steps = 0
    while env.agents:
        actions = dict.fromkeys(env.agents, down) | {"flow_0": up}
        observations, rewards, terminations, truncations, _ = env.step(actions)
        assert list(rewards) == list(observations)
        steps += 1
    assert steps == 200
    assert not any(terminations.values())
    assert all(truncations.values())
    assert observations["flow_0"][0] > 4 * observations["flow_1"][0]


def test_the_parallel_environment_passes_the_test_of_pettingzoo() -> None:
    test = pytest.importorskip("pettingzoo.test", reason="pettingzoo is not installed")
    test.parallel_api_test(gym.WindowParallelEnv(gym.WindowTask(agents=2, duration="3s")))


@pytest.mark.parametrize(
    ("task", "message"),
    [
        (gym.AqmTask(scenarios=[SHORT.scenario()], link="down"), "link: unknown link"),
        (gym.AqmTask(action="target", qdisc="pfifo"), "pfifo has no time"),
        (gym.AqmTask(step="0s"), "step: must be > 0"),
        (gym.WindowTask(agents=5), "agents: 5 is out of range; expected 1 to 4"),
        (gym.AqmTask(qdisc="cubic"), "unknown queue"),
    ],
)
def test_a_task_that_cannot_be_run_is_an_error(task: Any, message: str) -> None:
    make = gym.AqmEnv if isinstance(task, gym.AqmTask) else gym.WindowEnv
    with pytest.raises(sj.ScenarioError, match=message):
        make(task)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: gym.AqmTask(action="targt", qdisc="codel"),  # type: ignore[arg-type]
            'action: unknown action "targt"; expected drop_probability or target',
        ),
        (
            lambda: gym.AqmTask(highest_probability=20),
            "highest_probability: 20 is out of range; expected 0 to 1",
        ),
        (
            lambda: gym.AqmTask(scenarios=["mine.toml"]),  # type: ignore[list-item]
            (
                'scenarios[0]: "mine.toml" is not a scenario; expected '
                'sj.Scenario.from_file("mine.toml")'
            ),
        ),
        (
            lambda: gym.WindowTask(scenarios="mine.toml"),  # type: ignore[arg-type]
            (
                'scenarios: "mine.toml" is not a list of scenarios; expected '
                '[sj.Scenario.from_file("mine.toml")]'
            ),
        ),
        (
            lambda: gym.AqmEnv(gym.WindowTask()),  # type: ignore[arg-type]
            "task: WindowTask is not for AqmEnv; expected AqmTask",
        ),
        (
            lambda: gym.WindowEnv(gym.AqmTask()),  # type: ignore[arg-type]
            "task: AqmTask is not for WindowEnv; expected WindowTask",
        ),
        (
            lambda: gym.AqmVectorEnv(2, gym.WindowTask()),  # type: ignore[arg-type]
            "task: WindowTask is not for AqmVectorEnv; expected AqmTask",
        ),
        (
            lambda: gym.WindowParallelEnv(gym.AqmTask()),  # type: ignore[arg-type]
            "task: AqmTask is not for WindowParallelEnv; expected WindowTask",
        ),
    ],
)
def test_a_wrong_argument_is_an_error_before_the_first_episode(make: Any, message: str) -> None:
    with pytest.raises(sj.ScenarioError) as failed:
        make()
    assert str(failed.value) == message


@pytest.mark.parametrize(
    ("action", "message"),
    [
        ([3.0], "action: 3 is out of range; expected -1 to 1"),
        ([0.1, 0.2], "action: 2 numbers; expected 1"),
    ],
)
def test_an_action_outside_of_its_space_is_an_error(action: list[float], message: str) -> None:
    env = gym.AqmEnv(SHORT)
    env.reset(seed=1)
    with pytest.raises(sj.ScenarioError, match=message):
        env.step(np.array(action, np.float32))


def test_without_gymnasium_the_message_names_the_extra() -> None:
    code = "import sys; sys.modules['gymnasium'] = None; import sojourn.gym"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1].endswith("pip install 'sojourn[gym]'")


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_example_trains_a_policy() -> None:
    pytest.importorskip("stable_baselines3", reason="stable-baselines3 is not installed")
    done = subprocess.run(
        [sys.executable, f"{ROOT / 'examples' / 'train_aqm.py'}"],
        capture_output=True,
        text=True,
        check=True,
    )
    means = dict(line.rsplit(maxsplit=1) for line in done.stdout.splitlines())
    assert float(means["trained"]) > float(means["untrained"])


TWO_THREADS = """
import threading
import numpy as np
from sojourn import gym
from sojourn.gym.simulations import Simulations

simulations = Simulations(gym.AqmTask(duration="3s"), 8)
for number in range(8):
    simulations.reset(number, np.random.default_rng(number))

def steps():
    for _ in range(100):
        simulations.step(np.full((8, 1), -0.5))

threads = [threading.Thread(target=steps) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


def test_two_threads_of_a_program_do_not_wait_for_each_other() -> None:
    subprocess.run([sys.executable, "-c", TWO_THREADS], check=True, timeout=120)
