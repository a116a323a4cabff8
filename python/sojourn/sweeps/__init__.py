"""Sweeps: a scenario at many points of its parameters."""

from sojourn.sweeps.result import SweepResult
from sojourn.sweeps.run import SweepInterrupted, sweep

__all__ = ["SweepInterrupted", "SweepResult", "sweep"]
