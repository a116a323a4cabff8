"""Candidates: the shapers that are compared on an access link."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from sojourn.advice.access import Access
from sojourn.advice.shaping import NONE, Shaping, cake, shaped
from sojourn.arguments import ArgumentError, in_argument
from sojourn.queues import qdisc
from sojourn.queues.queue_file import named

Kind = Literal["none", "candidate", "uncompensated", "present"]

QUEUES = ("cake", "fq_codel")
SHARES = (100.0, 95.0, 90.0, 85.0, 80.0)
NO_SHAPER = "no shaper"
PRESENT = "present configuration"
# Ratio of the rates from which `cake` filters acknowledgements in the slow direction [R].
ASYMMETRY = 10
LOWEST_SHARE, STEP = 20.0, 10.0
# If the rate of the line varies, the lowest share is this part of the lowest rate.
MARGIN = 0.9
# Lowest rate of a shaper in bit/s, which is printed in kbit/s.
LOWEST_RATE = 1000
# The link layer in the canonical form of `cake`.
_LAYER = re.compile(r"\b(?:noatm|atm|ptm)\b.*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A configuration of the router."""

    name: str
    kind: Kind
    up: Shaping
    down: Shaping
    queue: str = ""
    percent: float | None = None

    @property
    def changes(self) -> dict[str, str]:
        """The settings of the links of the router."""
        return {**self.up.of_link("router_up"), **self.down.of_link("router_down")}


def candidates(
    access: Access,
    *,
    queues: Sequence[str] = QUEUES,
    shares: Sequence[float] | None = None,
    present: tuple[Shaping, Shaping] | None = None,
) -> list[Candidate]:
    """List the candidates for a link."""
    found = [Candidate(name=NO_SHAPER, kind="none", up=NONE, down=NONE)]
    if present is not None:
        up, down = present
        found.append(Candidate(name=PRESENT, kind="present", up=up, down=down))
    chosen = _shares(access, shares)
    for name, queue in named(_queues(queues)).items():
        for percent in chosen:
            found += [
                _candidate(access, name, queue, percent, is_right=is_right)
                for is_right in (True, False)
            ]
    return found


def _queues(queues: Sequence[str]) -> list[str]:
    names = [" ".join(queue.split()) for queue in queues]
    if not names:
        raise ArgumentError("queues", rule="empty; expected at least one queue, such as cake")
    for name in names:
        if names.count(name) > 1:
            raise ArgumentError("queues", name, "given twice; expected each queue once")
        with in_argument("queues", name):
            qdisc(name)
        if name.startswith("cake ") and "bandwidth" in name.split():
            rule = "it has a bandwidth; expected none, because {shares} sets it"
            raise ArgumentError("queues", name, rule)
        if name.startswith("cake ") and _sets_layer(name):
            rule = "the link layer is not part of a queue; expected {layer}"
            raise ArgumentError("queues", name, rule)
    return names


def _sets_layer(cake: str) -> bool:
    """Whether the keywords of `cake` contain those of a link layer."""
    found, default = (_LAYER.search(qdisc(text).spec) for text in (cake, "cake"))
    differs = found is not None and default is not None and found[0] != default[0]
    # The default framing, which the given one would contradict.
    return differs or "noatm" in cake.split()


def _shares(access: Access, given: Sequence[float] | None) -> list[float]:
    if given is None:
        lowest = max(100.0 * (1.0 - access.dip) * (MARGIN if access.dip else 1.0), LOWEST_SHARE)
        below = SHARES[-1] - STEP
        more = []
        while below >= lowest - STEP / 2:
            more.append(below)
            below -= STEP
        return [*SHARES, *more]
    for share in given:
        if not 1.0 <= share <= 100.0:  # noqa: PLR2004 - per cent
            raise ArgumentError("shares", share, "out of range; expected 1 to 100, in percent")
        if given.count(share) > 1:
            raise ArgumentError("shares", share, "given twice; expected each share once")
        if share / 100 * min(access.down, access.up) < LOWEST_RATE:
            rule = "this share of the rate is too low; expected at least 1kbit"
            raise ArgumentError("shares", share, rule)
    if not given:
        raise ArgumentError("shares", rule="empty; expected percent of the rate, such as 90")
    return sorted(given, reverse=True)


def _candidate(
    access: Access, name: str, queue: str, percent: float, *, is_right: bool
) -> Candidate:
    layer = access.layer if is_right else None
    up, down = (round(rate * percent / 100.0) for rate in (access.up, access.down))
    name = f"{name} {percent:g} %" + ("" if is_right else " without overhead")
    if queue.split(maxsplit=1)[0] == "cake":
        shaping = [
            cake(bits, layer, _cake_options(access, queue, direction))
            for bits, direction in ((up, "up"), (down, "down"))
        ]
    else:
        shaping = [shaped(queue, bits, layer) for bits in (up, down)]
    return Candidate(
        name=name,
        kind="candidate" if is_right else "uncompensated",
        up=shaping[0],
        down=shaping[1],
        queue=queue,
        percent=percent,
    )


def _cake_options(access: Access, queue: str, direction: str) -> str:
    """Return the keywords besides the rate and the overhead.

    A line with one household is behind address translation, so that ``cake`` sees its devices only
    with ``nat``.
    """
    options = ["besteffort"]
    if access.subscribers == 1:
        options.append("nat")
    options.append("dual-srchost" if direction == "up" else "dual-dsthost")
    if direction == "down":
        options.append("ingress")
    fast, slow = max(access.down, access.up), min(access.down, access.up)
    is_slow = (access.up if direction == "up" else access.down) == slow
    if is_slow and fast >= ASYMMETRY * slow:
        options.append("ack-filter")
    # The keywords of the user come last and take precedence.
    return " ".join([*options, *queue.split()[1:]])
