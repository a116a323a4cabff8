"""The shapers that ``tc`` printed: cake, htb and tbf at the root of devices."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import ceil

from sojourn.advice.lines import intermediate
from sojourn.advice.router_config.shapers import (
    FRAMINGS,
    Notes,
    cake,
    composed,
    layer_of_table,
    pairs,
    token_bucket,
)
from sojourn.advice.router_config.tc_output import UNNAMED, Class, Listing, Queue
from sojourn.advice.shaping import NONE, Shaping, bits_per_s
from sojourn.arguments import ArgumentError
from sojourn.result.formatting import first_of
from sojourn.scenario.link import Layer
from sojourn.scenario.quantities import in_base_units

SHAPERS = ("cake", "htb", "tbf")
# CAKE with a queue per transmit queue of the device, of Linux 7 and later.
_CAKE_MQ = "cake_mq"
# A queue of another kind that has a rate.
_WITH_RATE = re.compile(r"\b(?:rate|bandwidth) \d")
_AUTORATE = "autorate-ingress"
_UNLIMITED = re.compile(r"\bbandwidth unlimited\b")
_INTERMEDIATE = "ifb"
# Not named after another device as sqm-scripts do; that of cake-autorate is ifb-wan.
_NUMBERED = re.compile(r"ifb(?:\d+|-.+)")
# Queues that do not hold packets back.
_NEITHER = frozenset({"noqueue", "ingress", "clsact"})
# What `tc` prints only when it is on, and Sojourn has on by default.
_ON_BY_DEFAULT: Mapping[str, tuple[str, str]] = {"fq_codel": ("ecn", "noecn")}
# The bands of pfifo_fast, which cannot be changed.
_PFIFO_FAST = re.compile(r"\bbands 3 priomap(?: \d){16}(?: multiqueue: off)?")
# Queues of which only `tc -d` prints some parameters: a word of these, and their names.
_ONLY_DETAILED: Mapping[str, tuple[str, str]] = {
    "sfq": ("flows", "flows is"),
    "red": ("ewma", "the weight and the probability are"),
    "choke": ("ewma", "the weight and the probability are"),
}
# Queues whose times the kernel rounds down to units of 1024 ns.
_CODELS = ("codel", "fq_codel")
_MICROSECONDS = re.compile(r"(\d+)us")
_PACKETS = re.compile(r"(\d+)(?:pps|p)")
_EXPONENT = re.compile(r"(\d+(?:\.\d+)?e[+-]?\d+)(s|ms|us|ns)")
_SIZE = re.compile(r"(?P<number>[\d.]+)(?P<unit>Kb|Mb|b)?(?:/\d+)?")
# A rate other than 0.
_RATE = re.compile(r"0*[1-9]")
_UNITS = {"Kb": 1024, "Mb": 1024 * 1024}
# Packets of the queue of a class to which no queue was added, if `tc` does not print it.
_DEFAULT_LENGTH = "1000"


def of_listing(
    found: Listing, place: str, device: str | None
) -> tuple[Shaping, Shaping, tuple[str, ...]]:
    """Read the shapers of a device and of its intermediate device for the other direction."""
    reader = _Reader(found, place)
    up, down = reader.pair(device)
    shapings = [reader.shaping(one) for one in (up, down)]
    return shapings[0], shapings[1], tuple(reader.notes())


def chosen(devices: Sequence[str], device: str | None, place: str) -> str:
    """Return the device whose shapers are read: the given one, or the only one."""
    known = ", ".join(one or UNNAMED for one in devices)
    if device is None:
        if len(devices) == 1:
            return devices[0]
        rule = "shapers of several devices: {known}; expected {interface} with one of them"
        raise ArgumentError("present", place, rule, known=known)
    if device in devices:
        return device
    if list(devices) == [""]:
        return ""
    rule = "{place} has no shaper of it; expected one of: {known}"
    raise ArgumentError("interface", device, rule, place=place, known=known)


def paired(devices: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Pair devices with the intermediate devices of their other direction."""
    named = [one for one in devices if not one.startswith(_INTERMEDIATE)]
    # `ifb4wan` is that of `wan`, also if only the download is shaped.
    prefix = intermediate("")
    of_named = {intermediate(one) for one in named}
    named += [
        one.removeprefix(prefix)
        for one in devices
        if one.startswith(prefix) and one != prefix and one not in of_named
    ]
    numbered = [one for one in devices if _NUMBERED.fullmatch(one)]
    pairs_of = {one: (one, intermediate(one)) for one in named}
    if not numbered:
        return pairs_of
    is_free = not any(other in devices for _, other in pairs_of.values())
    if len(numbered) == 1 and len(named) <= 1 and is_free:
        one = named[0] if named else numbered[0]
        return {one: (one if named else "", numbered[0])}
    return {**pairs_of, **{one: ("", one) for one in numbered}}


class _Reader:
    """Reads the shapers of a listing."""

    def __init__(self, found: Listing, place: str) -> None:
        self.queues = found.queues
        self.is_detailed = found.is_detailed
        self.is_script = found.is_script
        self.place = place
        self.general = Notes(place)
        self.collected = [self.general]
        if found.unread:
            self.general.add(f"not read, no output of tc: {first_of(found.unread)}")
        self.roots = self._roots()
        self.classes = self._classes(found.blocks)

    def notes(self) -> list[str]:
        """List what was read but is not modelled."""
        return [text for notes in self.collected for text in notes.texts]

    def _at(self, queue: Queue) -> Notes:
        notes = Notes(f"{self.place}: {queue.name}")
        self.collected.append(notes)
        return notes

    def _roots(self) -> dict[str, Queue]:
        """Return the queue at the root of each device."""
        roots: dict[str, Queue] = {}
        for queue in self.queues:
            if queue.parent or queue.kind in _NEITHER:
                continue
            if queue.device in roots:
                known = f"{roots[queue.device].kind}, {queue.kind}"
                self.general.refuse(
                    f"another queue at the root of {queue.device or UNNAMED} ({known}); expected "
                    "the output of 'tc -d qdisc show', or a line such as 'tc -d qdisc show dev "
                    "eth1' above the output for each device"
                )
            roots[queue.device] = queue
        return roots

    def pair(self, device: str | None) -> tuple[str, str]:
        """Return the devices of the upload and the download."""
        shaping = {name: root for name, root in self.roots.items() if self._shapes(root)}
        others = {name: root for name, root in self.roots.items() if self._is_foreign(root)}
        if not shaping:
            listed = "; ".join(_not_read(root) for root in others.values())
            expected = "cake, htb or tbf"
            if not self.is_script:
                expected += " in the output of 'tc -d qdisc show'"
            problem = f"no queue with a rate at the root of a device; expected {expected}"
            self.general.refuse(listed or problem)
        pairs_of = paired(list(shaping))
        up, down = pairs_of[chosen(list(pairs_of), device, self.place)]
        for name, root in others.items():
            if name in (up, down):
                self.general.refuse(_not_read(root))
            self.general.add(_not_read(root))
        for name in (up, down):
            if name in self.roots and name not in shaping:
                self.general.add(f"{self.roots[name].name} has no rate: read as no shaper")
        return up, down

    def _shapes(self, root: Queue) -> bool:
        """Whether it is a shaper that can be read."""
        is_unlimited = _UNLIMITED.search(root.options) is not None
        # CAKE finds its rate itself, which is refused with its name.
        return root.kind in {*SHAPERS, _CAKE_MQ} and (not is_unlimited or _AUTORATE in root.options)

    def _is_foreign(self, root: Queue) -> bool:
        """Whether it shapes in a way that is not read, itself or below."""
        if self._shapes(root):
            return False
        below = (
            one
            for one in self.queues
            if one.device == root.device and one.parent not in {"", "none"}
        )
        return (
            _WITH_RATE.search(root.options) is not None
            or any(
                one.kind in {"htb", "tbf", "hfsc"} or _WITH_RATE.search(one.options)
                for one in below
            )
            or root.kind == "hfsc"
        )

    def shaping(self, device: str) -> Shaping:
        """Read the shaper of a device."""
        root = self.roots.get(device)
        if root is None or not self._shapes(root):
            return NONE
        notes = self._at(root)
        if root.kind in {"cake", _CAKE_MQ}:
            return self._cake(root, notes)
        return self._tbf(root, notes) if root.kind == "tbf" else self._htb(root, notes)

    def _cake(self, root: Queue, notes: Notes) -> Shaping:
        if root.kind == _CAKE_MQ:
            notes.add("read as one cake: its queues share the rate")
        words = root.options.split()
        if "bandwidth" not in words[:-1]:
            notes.refuse("no bandwidth; expected the output of 'tc -d qdisc show'")
        at = words.index("bandwidth")
        rest = [_plain(word, root.kind) for word in (*words[:at], *words[at + 2 :])]
        composed("cake", rest, notes)  # refuses words that are not modelled, whatever the rate
        bits = bits_per_s(words[at + 1], notes.place)
        if "raw" in words and not root.table and not self.is_detailed:
            notes.add("no overhead; if it has a size table (stab), only tc -d prints it")
        return cake(rest, bits, _table(root.table, notes), notes)

    def _tbf(self, root: Queue, notes: Notes) -> Shaping:
        given = _values(root.options)
        if "rate" not in given or "burst" not in given:
            notes.refuse("no rate and burst; expected the output of 'tc -d qdisc show'")
        bits, burst = bits_per_s(given["rate"], notes.place), _bytes(given["burst"], notes)
        for key in given.keys() & {"peakrate", "minburst", "mtu"}:
            notes.add(f"not modelled: {key} {given[key]}")
        below = [one for one in self.queues if one.device == root.device and one.parent]
        below = [one for one in below if one.parent.startswith(root.handle)]
        if below:
            queue = self._leaf(below[0])
        else:
            limit = _bytes(given["limit"], notes) if "limit" in given else None
            if limit is None and "lat" in given:
                limit = round(in_base_units(given["lat"]) * bits / 8) + burst
            if limit is None:
                notes.refuse("no queue, latency or limit; expected one of them")
            queue = composed("bfifo", [f"limit {limit}b"], notes)
        layer = self._layer(root, given, notes, is_detailed="/" in given["burst"])
        return token_bucket("tbf", queue, bits, layer, burst)

    def _htb(self, root: Queue, notes: Notes) -> Shaping:
        classes = {one.handle: one for one in self.classes.get(root.device, ())}
        if not classes:
            name = root.device or "DEVICE"
            notes.refuse(
                f"its rate is missing; append the output of 'tc -d class show dev {name}' below a "
                "line with this command"
            )
        leaf = self._default(root, classes, notes)
        path = _path(leaf, classes)
        top = path[-1]
        if top.parent not in {"", root.handle}:
            notes.add(f"class {top.parent} is not listed: the rate is that of class {top.handle}")
        given = {one.handle: _values(one.options) for one in path}
        for one in path:
            if "rate" not in given[one.handle]:
                notes.refuse(f"class {one.handle} has no rate; {_EXPECTED_CLASSES}")
        own = given[top.handle]
        # No class is above the top one, which borrows from nobody.
        limits = [own[key] for key in ("rate", "ceil") if _RATE.match(own.get(key, ""))]
        bits = min(bits_per_s(limit, notes.place) for limit in limits)
        for one in path[:-1]:
            for text in _differences(given[one.handle], own, bits, notes.place):
                notes.add(f"not modelled: {text}".format(one=one.handle, top=top.handle))
        others = [one for one in classes.values() if one.handle not in {p.handle for p in path}]
        if others:
            listed = ", ".join(one.handle for one in others)
            notes.add(f"not modelled: classes {listed}; all packets are in class {leaf.handle}")
        bursts = [_bytes(own[key], notes) for key in ("burst", "cburst") if key in own]
        layer = self._layer(root, own, notes, is_detailed=" ver " in f"{root.options} ")
        queue = self._leaf_of(leaf, root)
        return token_bucket("htb", queue, bits, layer, min(bursts, default=None))

    def _default(self, root: Queue, classes: Mapping[str, Class], notes: Notes) -> Class:
        """Return the class of packets that no filter classifies."""
        default = _values(root.options).get("default", "0").removeprefix("0x")
        handle = f"{root.handle}{default}"
        parents = {one.parent for one in classes.values()}
        leaves = [one for one in classes.values() if one.handle not in parents]
        if handle in classes and classes[handle] in leaves:
            return classes[handle]
        listed = ", ".join(one.handle for one in leaves)
        if len(leaves) != 1:
            notes.refuse(f"its default {handle} is not a leaf class; expected one of: {listed}")
        notes.add(
            f"its default {handle} is no class: packets that no filter classifies are not "
            f"shaped; read as if all were in class {listed}"
        )
        return leaves[0]

    def _leaf_of(self, leaf: Class, root: Queue) -> str:
        """Return the queue of a class."""
        below = [
            one
            for one in self.queues
            if one.device == root.device
            and (one.parent == leaf.handle or (leaf.leaf and one.handle == leaf.leaf))
        ]
        if below:
            return self._leaf(below[0])
        notes = self._at(root)
        if leaf.leaf:
            notes.refuse(
                f"the queue {leaf.leaf} of class {leaf.handle} is missing; expected it in the "
                "output of 'tc -d qdisc show'"
            )
        length = _values(root.options).get("direct_qlen", _DEFAULT_LENGTH)
        return composed("pfifo", [f"limit {length}"], notes)

    def _leaf(self, queue: Queue) -> str:
        notes = self._at(queue)
        if any(one.device == queue.device and _is_below(one, queue) for one in self.queues):
            notes.refuse("it has queues below it; expected one queue below the shaper")
        words = _PFIFO_FAST.sub("", queue.options).split()
        on, off = _ON_BY_DEFAULT.get(queue.kind, ("", ""))
        if on and on not in words:
            words.append(off)
        if "bandwidth" in words[:-1] and queue.kind == "cake":
            at = words.index("bandwidth")
            if words[at + 1] != "unlimited":
                notes.refuse("a second shaper below another one; expected one of them")
            del words[at : at + 2]
        proof, hidden = _ONLY_DETAILED.get(queue.kind, ("", ""))
        if proof and proof not in words and not self.is_script:
            notes.add(f"printed without -d: {hidden} not shown, read as the default")
        words = [_plain(word, queue.kind) for word in words]
        return composed(queue.kind, words, notes)

    def _layer(
        self, root: Queue, given: Mapping[str, str], notes: Notes, *, is_detailed: bool
    ) -> Layer | None:
        """Read the size table of a shaper, or the overhead of a class."""
        table = _table(root.table, notes)
        linklayer = given.get("linklayer", "ethernet")
        # Old versions print "overhead 0b" behind the burst.
        overhead, mpu = (given.get(key, "0").removesuffix("b") for key in ("overhead", "mpu"))
        if linklayer == "unspec":
            linklayer = "ethernet"
        has_own = (linklayer, overhead, mpu) != ("ethernet", "0", "0")
        if table is not None and has_own:
            notes.refuse("a size table and an overhead of its classes; expected one of them")
        if table is None and not is_detailed and not self.is_script:
            notes.add(_WITHOUT_DETAILS)
        return _layer_of(linklayer, overhead, mpu, notes) if has_own else table

    def _classes(self, blocks: Sequence[Sequence[Class]]) -> dict[str, list[Class]]:
        """Assign the classes to devices: by name, or if they fit the queues of one device only."""
        found: dict[str, list[Class]] = {}
        for block_of in blocks:
            # Other queues, such as red and fq_codel, have classes too, which do not shape.
            listed = [one for one in block_of if one.kind == "htb"]
            if not listed:
                continue
            device = listed[0].device
            if not device and not ("" in self.roots and len(self.roots) == 1):
                device = self._device_of(listed)
            block = [replace(one, device=device) for one in listed]
            if found.setdefault(device, block) != block:
                self.general.refuse(
                    f"two lists of classes of {device or UNNAMED}; {_EXPECTED_CLASSES}"
                )
        return found

    def _device_of(self, block: Sequence[Class]) -> str:
        fitting = [name for name, root in self.roots.items() if self._fits(root, block)]
        if len(fitting) != 1:
            handles = ", ".join(one.handle for one in block)
            roots = ", ".join(
                f"{one.kind} {one.handle} at {one.device}" for one in self.roots.values()
            )
            which = (
                f"may be of {', '.join(fitting)}" if fitting else f"fit none of: {roots or 'none'}"
            )
            self.general.refuse(
                f"the classes {handles} name no device, {which}; {_EXPECTED_CLASSES}"
            )
        return fitting[0]

    def _fits(self, root: Queue, block: Sequence[Class]) -> bool:
        """Whether a device has the queues of these classes, and no others."""
        if any(one.kind != root.kind or not one.handle.startswith(root.handle) for one in block):
            return False
        leaves = {one.handle: one.leaf for one in block}
        below = {
            one.parent: one.handle
            for one in self.queues
            if one.device == root.device and one.parent.startswith(root.handle)
        }
        return below.keys() <= leaves.keys() and all(
            below.get(handle) == leaf for handle, leaf in leaves.items() if leaf
        )


_WITHOUT_DETAILS = "printed without -d: a size table (stab) or an mpu would not be shown"
_EXPECTED_CLASSES = (
    "expected a line such as 'tc -d class show dev eth1' above the classes of each device"
)


def _not_read(root: Queue) -> str:
    return f"{root.name} has a rate and is not read; expected {', '.join(SHAPERS[:-1])} or tbf"


def _plain(word: str, kind: str) -> str:
    """Return a value that ``tc`` printed in a form that it does not read itself."""
    if kind in _CODELS and (time := _MICROSECONDS.fullmatch(word)) is not None:
        # A time that the kernel rounds to the printed one.
        return f"{ceil(ceil(int(time[1]) * 1000 / 1024) * 1024 / 1000)}us"
    if (large := _EXPONENT.fullmatch(word)) is not None:
        return f"{float(large[1]):.15g}{large[2]}"
    packets = _PACKETS.fullmatch(word)
    return word if packets is None else packets[1]


def _is_below(one: Queue, queue: Queue) -> bool:
    handle = queue.handle
    return handle not in {"", "0:"} and one.parent.startswith(handle)


def _path(leaf: Class, classes: Mapping[str, Class]) -> list[Class]:
    """List a class and those above it."""
    path = [leaf]
    while path[-1].parent in classes and classes[path[-1].parent] not in path:
        path.append(classes[path[-1].parent])
    return path


def _differences(
    given: Mapping[str, str], top: Mapping[str, str], bits: float, place: str
) -> Iterator[str]:
    """Say what a class below the top one has that the shaper of the model does not."""
    limit = bits_per_s(given.get("ceil", "0bit"), place)
    if 0 < limit < bits:
        yield f"ceil {given['ceil']} of class {{one}}, below the rate of class {{top}}"
    if bits_per_s(given["rate"], place) > bits:
        # It needs no tokens of the classes above it.
        yield f"rate {given['rate']} of class {{one}}, above the rate of class {{top}}"
    if any(given.get(key) != top.get(key) for key in ("linklayer", "overhead", "mpu")):
        yield "the link layer of class {one}; that of class {top} is read"


def _values(options: str) -> dict[str, str]:
    """Return the first value of each word."""
    found: dict[str, str] = {}
    for key, *values in _grouped(options):
        found.setdefault(key, values[0] if values else "")
    return found


def _grouped(options: str) -> list[list[str]]:
    """Group the words of a class or shaper, whose link layer has a value in letters."""
    grouped = pairs(options.split())
    for at, group in enumerate(grouped[:-1]):
        if group[0] == "linklayer" and len(group) == 1:
            group.append(grouped[at + 1][0])
    return grouped


def _bytes(text: str, notes: Notes) -> int:
    """Read a size as ``tc`` prints it: ``1600b``, ``15Kb`` or ``1600b/1``."""
    found = _SIZE.fullmatch(text)
    if found is None:
        notes.refuse(f'"{text}" is not a size; expected one such as 1600b')
    return round(float(found["number"]) * _UNITS.get(found["unit"], 1))


def _table(text: str, notes: Notes) -> Layer | None:
    """Read the size table that ``tc -d`` prints below a queue."""
    if not text:
        return None
    given = _values(text)
    return _layer_of(
        given.get("linklayer", "ethernet"), given.get("overhead", "0"), given.get("mpu", "0"), notes
    )


def _layer_of(linklayer: str, overhead: str, mpu: str, notes: Notes) -> Layer:
    if linklayer not in FRAMINGS:
        known = ", ".join(FRAMINGS)
        notes.refuse(f'linklayer "{linklayer}" is unknown; expected one of: {known}')
    try:
        return layer_of_table(linklayer, int(overhead), int(mpu))
    except ValueError:
        notes.refuse(f'overhead "{overhead}", mpu "{mpu}": expected bytes, such as 44')
