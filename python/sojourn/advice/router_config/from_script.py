"""A script of ``tc`` commands as the listing that ``tc`` would print of its queues."""

from collections.abc import Iterator, Mapping
from typing import Any

from sojourn.advice.router_config.tc_output import Class, Listing, Queue
from sojourn.exchange.tc_script import TcScript, size_bytes

_ROOT = "1:"
_SIZES = ("burst", "cburst")
_DEFAULT_BURST = 1600
# Has ECN unless it is switched off, which a listing shows by the absence of the word.
_ECN_BY_DEFAULT = "fq_codel"


def listing_of(script: TcScript) -> Listing:
    """Return the queues and classes of a script."""
    queues: list[Queue] = []
    blocks: list[tuple[Class, ...]] = []
    for device, queue in script.queues.items():
        if "classes" in queue:
            classes = tuple(_classes(device, queue))
            blocks.append(classes)
            root = f"{classes[0].handle.partition(':')[0]}:" if classes else _ROOT
            queues.append(Queue("htb", root, device, "", _of_htb(queue)))
            queues += [
                _below(device, one["name"], one["leaf"])
                for one in queue["classes"]
                if "leaf" in one
            ]
        elif "link" in queue:
            queues.append(Queue("tbf", _ROOT, device, "", _of_tbf(queue["link"])))
            queues.append(_below(device, f"{_ROOT}1", queue["text"]))
        else:
            kind, _, options = queue["text"].partition(" ")
            queues.append(Queue(kind, _ROOT, device, "", options))
    return Listing(tuple(queues), tuple(blocks), is_script=True)


def _classes(device: str, queue: Mapping[str, Any]) -> Iterator[Class]:
    for one in queue["classes"]:
        words = {key: text for key, text in one.items() if key not in {"name", "parent", "leaf"}}
        words.setdefault("ceil", words["rate"])
        sizes = {key: size_bytes(words.pop(key)) or 0 for key in _SIZES if key in words}
        # The smaller one counts, and the one that is missing has the default of tc.
        is_complete = len(sizes) == len(_SIZES)
        kept = {key: size for key, size in sizes.items() if is_complete or size < _DEFAULT_BURST}
        words |= {key: f"{size}b" for key, size in kept.items()}
        options = " ".join(f"{key} {text}" for key, text in words.items())
        yield Class("htb", one["name"], device, one.get("parent", ""), "", options)


def _of_htb(queue: Mapping[str, Any]) -> str:
    words = {key: queue[key] for key in ("r2q", "direct_qlen") if key in queue}
    if "default" in queue:
        words["default"] = f"0x{queue['default'].partition(':')[2]}"
    return " ".join(f"{key} {text}" for key, text in words.items())


def _of_tbf(link: Mapping[str, str]) -> str:
    words = [f"{key} {link[key]}" for key in ("rate", "burst", "overhead", "mpu") if key in link]
    return " ".join([*words, *(["linklayer atm"] if link.get("framing") == "atm" else [])])


def _below(device: str, parent: str, text: str) -> Queue:
    kind, *words = text.split()
    if kind == _ECN_BY_DEFAULT and not {"ecn", "noecn"} & set(words):
        words.append("ecn")
    return Queue(kind, "", device, parent, " ".join(words))
