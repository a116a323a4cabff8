"""Sweeps: a scenario with many combinations of parameter values."""

from sojourn.sweeps.result import SweepResult
from sojourn.sweeps.run import SweepInterrupted, sweep

__all__ = ["SweepInterrupted", "SweepResult", "sweep"]
