"""An access link: values of a preset or of the user, with their sources."""

from collections.abc import Mapping
from dataclasses import dataclass

from sojourn import _core
from sojourn.advice.shaping import bits_per_s
from sojourn.arguments import ArgumentError, in_argument
from sojourn.scenario.link import Layer, layer
from sojourn.scenario.presets import (
    LinkPreset,
    Sourced,
    check_link,
    link_preset,
    link_presets,
    link_rates,
)
from sojourn.scenario.quantities import in_base_units

GIVEN = "given"
# The preset that provides buffers and delay if only the link layer is known.
_BY_FRAMING = {"atm": "adsl", "ptm": "vdsl", "noatm": "pon"}
_BY_LAYER = {"docsis": "docsis"}
_OPTIONAL = {
    "dip": Sourced("0%", "the rate of the line is constant", assumed=True),
    "period": Sourced("10s", "no effect without a dip", assumed=True),
    "subscribers": Sourced(1, "one household"),
}
# Rates of lines that the model represents.
LOWEST_RATE, HIGHEST_RATE = "10kbit", "100gbit"
# Limit of `bfifo`.
MOST_BUFFER = 1 << 32


@dataclass(frozen=True, slots=True)
class Access:
    """An access link."""

    title: str
    sourced: Mapping[str, Sourced]
    wifi: bool = False

    @property
    def layer(self) -> Layer:
        """The link layer."""
        return layer(self.sourced["layer"].value)

    @property
    def down(self) -> int:
        """The highest rate towards the home, in bit/s."""
        return bits_per_s(self.sourced["down"].value, "down")

    @property
    def up(self) -> int:
        """The highest rate from the home, in bit/s."""
        return bits_per_s(self.sourced["up"].value, "up")

    @property
    def rtt_s(self) -> float:
        """Round-trip time of the idle line, in seconds."""
        return self._number("rtt")

    @property
    def dip(self) -> float:
        """Largest reduction of the rate, as a share of it."""
        return self._number("dip")

    @property
    def period_s(self) -> float:
        """Time between two changes of the rate, in seconds."""
        return self._number("period")

    @property
    def subscribers(self) -> int:
        """Number of households on the line."""
        return int(self.sourced["subscribers"].value)

    def buffer_bytes(self, direction: str) -> int:
        """Return the size of the buffer in front of the line, in bytes."""
        rate = self.down if direction == "down" else self.up
        return max(round(rate / 8 * self._number(f"{direction}_buffer")), 3 * 1514)

    def _number(self, key: str) -> float:
        return in_base_units(self.sourced[key].value)


def access(
    *,
    preset: str | None = None,
    link: str | None = None,
    rtt: str | None = None,
    layer_name: str | None = None,
    buffer: str | None = None,
    wifi: bool = False,
) -> Access:
    """Describe an access link."""
    given: dict[str, Sourced] = {}
    if layer_name is not None:
        with in_argument("layer", layer_name):
            layer(layer_name)
        given["layer"] = Sourced(layer_name, GIVEN)
    check_link(link)
    base = _base(preset, link, given.get("layer"))
    if link is not None:
        rates = link_rates(link)
        given |= {"down": Sourced(rates.down, GIVEN), "up": Sourced(rates.up, GIVEN)}
    if rtt is not None:
        given["rtt"] = Sourced(_time(rtt, "rtt"), GIVEN)
    if buffer is not None:
        given |= _buffers(buffer)
    title = base.title if preset is not None else "your line"
    described = Access(title, {**_OPTIONAL, **base.values, **given}, wifi)
    _check(described, link)
    return described


def _check(described: Access, link: str | None) -> None:
    """Check the ranges of rates and buffers."""
    lowest, highest = (bits_per_s(text, "link") for text in (LOWEST_RATE, HIGHEST_RATE))
    if not all(lowest <= rate <= highest for rate in (described.down, described.up)):
        rule = f"out of range; expected {LOWEST_RATE} to {HIGHEST_RATE}"
        raise ArgumentError("link", link, rule)
    for direction in ("down", "up"):
        size = described.buffer_bytes(direction)
        if size > MOST_BUFFER:
            given = described.sourced[f"{direction}_buffer"].value
            rate = described.sourced[direction].value
            rule = f"at {rate} it is {size} bytes; expected at most {MOST_BUFFER} bytes"
            raise ArgumentError("buffer", given, rule)


def _base(preset: str | None, link: str | None, given: Sourced | None) -> LinkPreset:
    if preset is not None:
        return link_preset(preset)
    known = ", ".join(link_presets())
    if link is None:
        both = "" if given is not None else " and {layer}, such as docsis"
        rule = (
            f"missing; expected rates such as 100/20mbit{both}, or {{preset}} with one of {{known}}"
        )
        raise ArgumentError("link", rule=rule, known=known)
    if given is None:
        rule = "missing; expected one such as docsis, or {preset} with one of {known}"
        raise ArgumentError("layer", rule=rule, known=known)
    name = _BY_LAYER.get(given.value, _BY_FRAMING[layer(given.value).framing])
    return link_preset(name)


def _time(text: str, argument: str) -> str:
    """Check that a time is > 0."""
    with in_argument(argument, text):
        seconds = _core.parse_time_s(text)
    if seconds <= 0:
        raise ArgumentError(argument, text, "out of range; expected a time > 0")
    return text


def _buffers(text: str) -> dict[str, Sourced]:
    """Read ``100/300ms``, ``100ms/1s`` or one time."""
    down, slash, up = text.strip().partition("/")
    if slash and down and down[-1].isdigit():
        down += up.lstrip("0123456789.")
    up = up if slash else down
    return {
        "down_buffer": Sourced(_time(down, "buffer"), GIVEN),
        "up_buffer": Sourced(_time(up, "buffer"), GIVEN),
    }
