"""The full-screen view of a run: what it shows, and what its keys do."""

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from rich.text import Text

from sojourn import _core
from sojourn.live.history import History, Links
from sojourn.live.links import Settings
from sojourn.scenario.paths import Value

BARS = "▁▂▃▄▅▆▇█"
PLAIN_BARS = "_.:-=+*#"
# A key changes the rate by this factor.
STEP = 1.1
_DIGITS = 3
# Columns of a name and of a number beside a sparkline, and those of a flow.
_NAME, _NUMBER, _FLOW = 9, 18, 20
# Lines with fewer lines of output have none.
_LEAST_OUTPUT = 2
# Sparklines of flows, and the columns of the rest of their lines.
_SHORT, _FLOW_NUMBERS = 12, 80
_ACCENT = "cyan"
# The keys that say most of a table: a queue, loss in bursts, jitter.
_NAMING = ("kind", "model", "spread")
ESCAPE, TAB = "\x1b", "\t"


class Changeable(Protocol):
    """Links of a run that can be changed."""

    def now(self) -> tuple[float, Settings]:
        """Return the time in seconds and the settings."""

    def change(self, assignments: Sequence[tuple[str, Value]]) -> tuple[float, Settings]:
        """Change paths such as ``links.down.qdisc``."""


def sparkline(values: Sequence[float], width: int, bars: str = BARS) -> str:
    """Draw the last values as characters, scaled to their maximum.

    Examples
    --------
    >>> sparkline([0, 1, 2, 4], 3)
    '▃▅█'
    """
    shown = values[-width:] if width > 0 else []
    highest = max(shown, default=0) or 1
    last = len(bars) - 1
    text = "".join(bars[math.ceil(value / highest * last)] for value in shown)
    return text.rjust(max(width, 0))


class Screen:
    """What the terminal shows of a run, and its keys.

    `name` is that of the run. `second` is the queue that the key b sets; without one, it sets the
    last queue that the link had besides the first. `leave` is called when the user quits.
    """

    def __init__(
        self,
        name: str,
        links: Changeable,
        *,
        second: str | None = None,
        leave: Callable[[], None],
        leaving: str = "end the run",
        bars: str = BARS,
    ) -> None:
        self._name = _core.printable(name)
        self._links = links
        self._leave = leave
        self._leaving = leaving
        self._bars = bars
        self._history = History()
        # A paused display goes on with these.
        self._waiting: list[Links] = []
        self._paused = False
        # Of the link whose settings keys change; None: of all.
        self._chosen: str | None = None
        self._message = ""
        self._first: dict[str, str] = {}
        self._second: dict[str, str] = {}
        self._given = second
        self._lock = threading.Lock()

    def show(self, links: Links) -> None:
        """Add a view."""
        with self._lock:
            for link in links:
                queue = f"{link['settings']['qdisc']}"
                first = self._first.setdefault(link["link"], queue)
                if queue != first and self._given is None:
                    self._second[link["link"]] = queue
            if self._paused:
                self._waiting = [*self._waiting, links][-self._history.kept :]
            else:
                self._history.add(links)

    def press(self, key: str) -> None:
        """Do what a key stands for."""
        actions: dict[str, Callable[[], None]] = {
            "a": lambda: self._set_queue("a", self._first),
            "b": lambda: self._set_queue("b", self._second),
            "+": lambda: self._set_rate(STEP),
            "=": lambda: self._set_rate(STEP),
            "-": lambda: self._set_rate(1 / STEP),
            TAB: self._choose,
            "p": self._pause,
            " ": self._pause,
            "q": self._leave,
        }
        if action := actions.get(key):
            action()

    def _chosen_links(self) -> list[str]:
        names = [link["link"] for link in self._history.last]
        return names if self._chosen is None else [self._chosen]

    def _choose(self) -> None:
        with self._lock:
            names = [None, *(link["link"] for link in self._history.last)]
            self._chosen = names[(names.index(self._chosen) + 1) % len(names)]
            self._message = f"keys change {self._chosen or 'all links'}"

    def _pause(self) -> None:
        with self._lock:
            self._paused = not self._paused
            for links in self._waiting if not self._paused else []:
                self._history.add(links)
            self._waiting = []
            self._message = "paused; the run continues" if self._paused else ""

    def _set_queue(self, key: str, queues: Mapping[str, str]) -> None:
        """Set the first or the second queue of the chosen links, with all of its parameters."""
        with self._lock:
            names = self._chosen_links()
            texts = {
                name: self._given if key == "b" and self._given else queues.get(name)
                for name in names
            }
        try:
            _, settings = self._links.now()
        except _core.SojournError as error:
            self._say(f"{error}")
            return
        changes = [
            (f"links.{name}.qdisc", _instead(text, f"{settings[name]['qdisc']}"))
            for name, text in texts.items()
            if text
        ]
        if not changes:
            self._say("no second queue yet; set one: sojourn live ctl set links.down.qdisc=pie")
        else:
            self._change(changes)

    def _set_rate(self, factor: float) -> None:
        try:
            _, settings = self._links.now()
            changes: list[tuple[str, Value]] = [
                (f"links.{name}.rate", _scaled(settings[name]["rate"], factor))
                for name in self._chosen_links()
                if "rate" in settings.get(name, {})
            ]
        except _core.SojournError as error:
            self._say(f"{error}")
            return
        if not changes:
            self._say("a trace determines the rate")
        else:
            self._change(changes)

    def _change(self, changes: Sequence[tuple[str, Value]]) -> None:
        try:
            time_s, _ = self._links.change(changes)
        except _core.SojournError as error:
            self._say(f"{error}")
            return
        shown = ", ".join(f"{path}={_short(value)}" for path, value in changes)
        self._say(f"{time_s:.1f} s: {shown}")

    def _say(self, message: str) -> None:
        with self._lock:
            self._message = _core.message(message)

    def lines(self, width: int, height: int, output: Sequence[str] = ()) -> list[Text]:
        """Return the lines of the screen; the last lines of the program's output fill it."""
        with self._lock:
            links = self._history.last
            time_s = links[0]["time_s"] if links else 0.0
            state = " PAUSED " if self._paused else ""
            head = [
                Text.assemble(
                    (f"sojourn  {self._name}", "bold"), f"  {time_s:.0f} s  ", (state, "reverse")
                )
            ]
            for link in links:
                head += [Text(), *self._of_link(link, width)]
            if not links:
                head.append(Text("the first numbers arrive after one second", "dim"))
            changes = list(self._history.changes)[-3:]
            if changes:
                head.append(Text())
            head += [Text(f"{at:.1f} s  {name}  {keys}", "yellow") for at, name, keys in changes]
            foot = [Text(self._message, "yellow"), self._legend()]
            room = height - len(head) - len(foot)
            if room > _LEAST_OUTPUT and output:
                head += [Text(), Text("output of the program", "dim")]
                room -= 2
                head += [Text(line) for line in output[-room:]]
            lines = head[: height - len(foot)]
            lines += [Text()] * (height - len(foot) - len(lines))
            lines += foot
        for line in lines:
            line.no_wrap = True
            line.truncate(width)
        return lines

    def _legend(self) -> Text:
        chosen = self._chosen or "all"
        keys = (
            ("a", "queue A"),
            ("b", "queue B"),
            ("+ -", "rate"),
            ("Tab", chosen),
            ("p", "pause"),
            ("q", self._leaving),
        )
        parts = [part for key, does in keys for part in ((f" {key} ", "reverse"), f" {does} ")]
        return Text.assemble(*parts)

    def _of_link(self, link: Mapping[str, Any], width: int) -> list[Text]:
        name, keys = link["link"], link["settings"]
        others = [f"{key} {_short(keys[key])}" for key in keys if key not in {"rate", "qdisc"}]
        shown = [one for one in others if not one.endswith((" 0%", " 0ms", " 0s"))]
        style = f"bold {_ACCENT}" if self._chosen in {None, name} else "bold"
        title = Text.assemble(
            (f"{_core.printable(name):<{_NAME}}", style),
            (f"{keys.get('rate', 'trace')}  {keys['qdisc']}", "bold"),
            f"  {'  '.join(shown)}",
        )
        counts = (
            f"{'':<{_NAME}}drops {_counts(link['drops'], link['dropped'])}  "
            f"marks {_counts(link['marks'], link['marked'])}  lost {link['lost']}"
        )
        delays = link["sojourn_ms"]
        p50, p95 = (delays[0], delays[1]) if delays else (0.0, 0.0)
        rows = [
            self._row(
                "rate",
                f"{link['bits_per_s'] / 1e6:.2f} Mbit/s",
                self._history.of_link(name, lambda one: one["bits_per_s"]),
                width,
            ),
            self._row(
                "backlog",
                f"{link['backlog_bytes'] / 1e3:.1f} kB",
                self._history.of_link(name, lambda one: one["backlog_bytes"]),
                width,
            ),
            self._row(
                "delay",
                f"{p50:.1f}/{p95:.1f} ms" if delays else "- ms",
                self._history.of_link(name, lambda one: (one["sojourn_ms"] or [0, 0])[1]),
                width,
            ),
        ]
        flows = [self._flow(name, flow, width) for flow in link["flows"][:4]]
        return [title, *rows, Text(counts), *flows]

    def _row(self, name: str, number: str, values: Sequence[float], width: int) -> Text:
        line = sparkline(values, width - _NAME - _NUMBER - 2, self._bars)
        return Text.assemble(f"  {name:<{_NAME - 2}}", f"{number:>{_NUMBER}}  ", (line, _ACCENT))

    def _flow(self, link: str, flow: Mapping[str, Any], width: int) -> Text:
        name = flow["name"]
        # The numbers have priority.
        length = min(max((width - _FLOW_NUMBERS) // 3, 0), _SHORT)

        def drawn(value: Callable[[dict[str, Any]], float | None]) -> tuple[str, str]:
            return sparkline(self._history.of_flow(link, name, value), length, self._bars), _ACCENT

        delay = flow["sojourn_ms"]
        return Text.assemble(
            f"  {name:<{_FLOW}} {flow['bits_per_s'] / 1e6:7.2f} Mbit/s ",
            drawn(lambda one: one["bits_per_s"]),
            f" {delay[0] if delay else 0:6.1f} ms ",
            drawn(lambda one: (one["sojourn_ms"] or [0])[0]),
            f" {flow['backlog_bytes'] / 1e3:6.1f} kB ",
            drawn(lambda one: one["backlog_bytes"]),
            f" drops {flow['drops']} marks {flow['marks']}",
        )


def _counts(total: int, reasons: Mapping[str, int]) -> str:
    why = ", ".join(f"{count} {reason.replace('_', ' ')}" for reason, count in reasons.items())
    return f"{total} ({why})" if why else f"{total}"


def _short(value: object) -> str:
    """Return a value on a line: of a table, the kind of queue, the model of loss or the spread."""
    if isinstance(value, dict):
        return next((f"{value[key]}" for key in _NAMING if key in value), f"{value}")
    return f"{value}"


def _instead(text: str, before: str) -> Value:
    """Return a queue that takes the place of another, without parameters of the other one."""
    kind = text.partition(" ")[0]
    if kind != before.partition(" ")[0]:
        return text
    # Those that are not named would stay.
    parameters = _core.parameters_at("links.x.qdisc", text)
    given = {key: value for key, value in parameters if value is not None}
    return {"kind": kind, **given} if given else text


def _scaled(rate: str, factor: float) -> str:
    bits = _core.parse_rate_bits_per_s(rate) * factor
    digits = _DIGITS - 1 - math.floor(math.log10(bits))
    return f"{max(round(bits, digits), 1):.0f}bit"
