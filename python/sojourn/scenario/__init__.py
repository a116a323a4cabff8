"""Scenarios: links, traffic, arms; presets and changes by path."""

from sojourn.scenario.model import Arm, Link, Scenario

__all__ = [
    "Arm",
    "Link",
    "Scenario",
]
