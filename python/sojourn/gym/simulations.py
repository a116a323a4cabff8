"""Simulations of a task that are advanced together."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from sojourn import _core
from sojourn.errors import invalid
from sojourn.gym.tasks import NO_ACTION, AqmTask, Floats, Numbers, WindowTask

Task = AqmTask | WindowTask


def task_for(environment: object, task: object, kind: type[Task]) -> None:
    """Refuse a task that is not of the kind that an environment simulates."""
    if not isinstance(task, kind):
        given = type(task).__name__
        problem = f"{given} is not for {type(environment).__name__}; expected {kind.__name__}"
        raise invalid("task", problem)


class Simulations:
    """``size`` simulations of a task on ``threads`` threads, without the interpreter's lock."""

    def __init__(self, task: Task, size: int, threads: int = 1) -> None:
        scenarios = task.checked()
        self.task = task
        self._times = (task.step_s, task.rtt_s)
        self.number_of_scenarios = len(scenarios)
        self._batch = _core.Batch(
            scenarios, size, link=task.link, step=task.step, threads=threads, **task.core()
        )
        self._steers = not (isinstance(task, AqmTask) and task.action == NO_ACTION)
        self._rows = np.zeros((size, self._batch.columns))
        self.numbers = Numbers(self._rows)
        self.actions = np.zeros((size, task.agents))

    def reset(self, number: int, random: np.random.Generator) -> None:
        """Start an episode in a simulation, with a scenario and a seed that are drawn."""
        scenario = int(random.integers(self.number_of_scenarios))
        seed = int(random.integers(2**32))
        self._batch.reset(number, scenario, seed, self._rows[number])
        self.actions[number] = 0

    def step(self, actions: Floats) -> None:
        """Advance by a step with actions between -1 and 1; NaN: none."""
        if actions.size != self.actions.size:
            problem = f"{actions.size} numbers; expected {self.actions.size}"
            raise invalid("action", problem)
        # A comparison with NaN is false.
        if (beyond := actions[np.abs(actions) > 1]).size:
            raise invalid("action", f"{beyond[0]:g} is out of range; expected -1 to 1")
        self.actions = np.reshape(actions, self.actions.shape)
        settings = self.task.settings(self.actions, self.numbers) if self._steers else np.zeros(0)
        self._batch.step(np.ascontiguousarray(settings), self._rows)

    def outcome(self) -> tuple[NDArray[np.float32], Floats]:
        """Return the observations, and the rewards of the last step by agent."""
        return self.task.outcome(self.numbers, self.actions, *self._times)

    @property
    def ended(self) -> NDArray[np.bool_]:
        """Which simulations have reached their end."""
        return self.numbers["ended"] > 0

    def information(self, number: int, names: Iterable[str]) -> dict[str, float]:
        """Return numbers of the link of a simulation."""
        return {name: float(self.numbers[name][number]) for name in names}
