"""Configurations of routers compared with what sqm-scripts, ``tc`` and the kernel made of them.

The expected values come from the commands and from the JSON that ``tc`` printed.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest

import sojourn as sj
from sojourn import _core
from sojourn.advice.router_config import Present, present
from sojourn.advice.shaping import Shaping

DATA = Path(__file__).parents[1] / "data" / "router_configs"
DEVICES = {"up": "wan", "down": "ifb4wan"}
Record = dict[str, Any]
TIMES = {"target", "interval", "tupdate", "ce_threshold", "rtt", "refill_delay", "rehash", "db"}
RATES = {"maxrate", "low_rate_threshold"}
# Words that the model does not have; a note names them.
NOT_MODELLED = {
    *("buckets", "timer_slack", "horizon", "horizon_cap", "horizon_drop", "multiqueue"),
    *("bands", "priomap", "fwmark", "split_gso"),
}


def records(name: str) -> list[Record]:
    """Read the recorded configurations."""
    found: list[Record] = json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))
    return found


def title(record: Record) -> str:
    """Name a record in a failure."""
    return f"{record.get('name') or record['section']}"


def section(options: dict[str, str]) -> str:
    """Write a section of SQM."""
    lines = (f"\toption {key} '{value}'\n" for key, value in options.items())
    return "".join(["config queue 'wan'\n", *lines])


def microseconds(text: str) -> float:
    """Read a time of a canonical queue."""
    number, unit = re.fullmatch(r"([\d.]+)(s|ms|us|ns)", text).groups()  # type: ignore[union-attr]
    return float(number) * {"s": 1e6, "ms": 1e3, "us": 1.0, "ns": 1e-3}[unit]


def parameters(queue: str) -> dict[str, str]:
    """Return the parameters of a canonical queue; keywords have an empty value."""
    found: dict[str, str] = {}
    key = ""
    for word in queue.split()[1:]:
        if key and re.match(r"-?\d", word) and not found[key]:
            found[key] = word
        else:
            key = word
            found[key] = ""
    return found


def is_close(read: float, printed: float) -> bool:
    """Whether two numbers are equal up to the three digits and the units that ``tc`` prints."""
    return abs(read - printed) <= 0.005 * abs(printed) + 2


def check_cake(shaping: Shaping, options: dict[str, Any], stab: dict[str, str]) -> None:
    """Compare a CAKE with its options in JSON."""
    found = parameters(shaping.queue)
    if options["bandwidth"] != "unlimited":
        assert shaping.bits_per_s is not None
        assert is_close(shaping.bits_per_s, options["bandwidth"] * 8)
    assert options["diffserv"] in found
    assert options["flowmode"] in found
    for key in ("nat", "wash", "ingress"):
        assert (key in found) == options[key], key
    words = {"enabled": "ack-filter", "aggressive": "ack-filter-aggressive"}
    assert words.get(options["ack-filter"], "no-ack-filter") in found
    assert is_close(microseconds(found["rtt"]), options["rtt"])
    # `raw` keeps the header of 14 bytes.
    overhead = options["overhead"] + (14 if options["raw"] else 0)
    framing, mpu = options.get("atm", "noatm"), options.get("mpu", 0)
    if stab:
        assert options["raw"]
        overhead, mpu = int(stab.get("overhead", 0)) + 14, int(stab.get("mpu", 0))
        framing = "atm" if stab["linklayer"] in {"atm", "adsl"} else "noatm"
    assert framing in found
    assert found.get("overhead", "14b") == f"{overhead}b"
    assert found["mpu"] == f"{mpu}b"
    assert found.get("memlimit", "") == (f"{options['memlimit']}b" if "memlimit" in options else "")


def check_leaf(queue: str, kind: str, options: dict[str, Any]) -> None:
    """Compare a queue below a shaper with its options in JSON."""
    found = parameters(queue)
    assert queue.split(maxsplit=1)[0] == kind
    for key in ("ecn", "harddrop", "headdrop", "adaptive", "bytemode"):
        assert (key in found) == bool(options.get(key, False)), key
    assert ("nopacing" in found) == (options.get("pacing") is False and "nopacing" in found)
    for key, value in options.items():
        if isinstance(value, bool) or key in NOT_MODELLED:
            continue
        if key not in found:
            # Not written, because it is the default: a full frame, or a value of the kernel.
            default = parameters(sj.qdisc(kind).spec).get(key, DEFAULTS.get((kind, key)))
            assert f"{default}".rstrip("b") == f"{value}", key
        elif key in RATES:
            assert is_close(_core.parse_rate_bits_per_s(found[key]), value * 8), key
        elif key in TIMES and (kind, key) != ("sfb", "target"):
            assert is_close(microseconds(found[key]), value), key
        else:
            assert float(found[key].rstrip("bs")) == pytest.approx(value, rel=1e-3), key


# Values that the kernel has if none is given: tupdate of pie is 15 ms, two ticks of 10 ms here.
DEFAULTS = {
    ("pie", "target"): 15000,
    ("pie", "tupdate"): 20000,
    ("fq", "quantum"): 3028,
    ("fq", "initial_quantum"): 15140,
    ("fq", "low_rate_threshold"): 68750,
} | dict.fromkeys([("fq_codel", "quantum"), ("sfq", "quantum")], 1514)


def after(words: list[str], key: str) -> str | None:
    """Return the word behind another one."""
    return words[words.index(key) + 1] if key in words else None


def stab_of(record: Record, device: str) -> dict[str, str]:
    """Return the size table that a command gave to the root of a device."""
    for command in record["commands"]:
        words = command.split()
        if words[4] == device and "stab" in words:
            keys = ("linklayer", "overhead", "mpu")
            return {key: value for key in keys if (value := after(words, key)) is not None}
    return {}


def own_layer_of(record: Record, device: str) -> dict[str, str]:
    """Return the overhead that the commands gave to tbf or to the classes of htb."""
    for command in record["commands"]:
        words = command.split()
        if words[4] == device and "stab" not in words and ("htb" in words or "tbf" in words):
            keys = ("linklayer", "overhead", "mpu")
            given = {key: value for key in keys if (value := after(words, key)) is not None}
            if given:
                return given
    return {}


def check_shaper(
    shaping: Shaping, record: Record, device: str, roots: Record, below: Record
) -> None:
    """Compare a htb or tbf with its commands, and the queue below it with JSON."""
    words = [command.split() for command in record["commands"] if command.split()[4] == device]
    is_tbf = roots["kind"] == "tbf"
    setting = next(one for one in words if "rate" in one)
    rate = _core.parse_rate_bits_per_s(after(setting, "rate") or "")
    assert shaping.bits_per_s == rate
    assert shaping.bucket == roots["kind"]
    given = {**own_layer_of(record, device), **stab_of(record, device)}
    burst = after(setting, "burst")
    if burst is not None and not (is_tbf and "atm" in setting) and not (is_tbf and given):
        size = float(burst.removesuffix("kb")) * (1024 if burst.endswith("kb") else 1)
        # The kernel keeps it as a time.
        assert abs(float(shaping.burst.removesuffix("b")) - size) <= 2 + 2e-6 * rate / 8
    if below.get("kind") == "cake":
        check_cake(shaping, below["options"], {})
    elif below:
        check_leaf(shaping.queue, below["kind"], below["options"])
    if not given:
        assert shaping.layer is None
        return
    assert shaping.layer is not None
    framing = "atm" if given.get("linklayer", "ethernet") in {"atm", "adsl"} else "noatm"
    expected = (int(given.get("overhead", 0)) + 14, int(given.get("mpu", 0)), framing)
    assert (shaping.layer.overhead, shaping.layer.mpu, shaping.layer.framing) == expected


def check_present(found: Present, record: Record, *, is_detailed: bool) -> None:
    """Compare both directions with what was recorded."""
    entries = [
        one for line in record["printed"]["-j"] if line.startswith("[") for one in json.loads(line)
    ]
    for side, device in DEVICES.items():
        shaping: Shaping = getattr(found, side)
        own = [one for one in entries if one["dev"] == device]
        root: Record = next((one for one in own if one.get("root")), {"kind": "noqueue"})
        if root["kind"] not in {"cake", "htb", "tbf"}:
            assert shaping.bits_per_s is None
            continue
        stab = stab_of(record, device)
        hidden = bool(stab) or "mpu" in own_layer_of(record, device)
        if hidden and not is_detailed:
            assert any(" -d" in note for note in found.notes)
            continue
        if root["kind"] == "cake":
            check_cake(shaping, root["options"], stab)
            continue
        default = int(root["options"].get("default", "0x0"), 16)
        parents = {f"{root['handle']}{default:x}", root["handle"]}
        leaf: Record = next((one for one in own if one.get("parent") in parents), {})
        check_shaper(shaping, record, device, root, leaf)


def read(text: str, record: Record) -> Present | None:
    """Read a configuration; None if it is refused as expected."""
    if "refused" in record:
        with pytest.raises(sj.ScenarioError, match=re.escape(record["refused"])):
            present(text, "F", "wan")
        return None
    try:
        return present(text, "F", "wan")
    except sj.ScenarioError as error:
        # What a queue of the model does not have.
        if record.get("unless_read", title(record)) not in f"{error}":
            raise
        return None


@pytest.mark.parametrize("form", ["plain", "-d", "-s", "-j"])
def test_what_tc_prints_is_read(form: str) -> None:
    checked = 0
    for record in records("tc"):
        if form not in record["printed"]:
            continue
        try:
            found = read("\n".join(record["printed"][form]), record)
            if found is not None:
                check_present(found, record, is_detailed=form == "-d")
        except Exception as error:
            raise AssertionError(title(record)) from error
        checked += 1
    assert checked >= 80


def test_sections_of_sqm_are_read_as_sqm_scripts_set_them_up() -> None:
    refused = 0
    for record in records("sqm"):
        text = section(record["section"])
        try:
            if "refused_by_tc" in record:
                with pytest.raises(sj.ScenarioError):
                    present(text, "F", "wan")
                refused += 1
                continue
            found = read(text, record)
            if found is None:
                continue
            check_present(found, record, is_detailed=True)
            for form in ("-d", "-j"):
                again = read("\n".join(record["printed"][form]), record)
                assert again is not None
                check_present(again, record, is_detailed=form == "-d")
        except Exception as error:
            raise AssertionError(title(record)) from error
    assert refused >= 5
