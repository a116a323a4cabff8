"""Scenarios: links, traffic, arms; presets and changes by path."""

from sojourn.scenario.link import (
    Bernoulli,
    Change,
    GilbertElliott,
    Jitter,
    Link,
    Station,
    Wifi,
)
from sojourn.scenario.model import Arm, Scenario

__all__ = [
    "Arm",
    "Bernoulli",
    "Change",
    "GilbertElliott",
    "Jitter",
    "Link",
    "Scenario",
    "Station",
    "Wifi",
]
