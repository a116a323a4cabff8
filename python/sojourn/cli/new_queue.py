"""``sojourn new-queue``: write a file with a queue to start from."""

import importlib.util
import keyword
import re
import sys
from pathlib import Path
from typing import Annotated

from sojourn import _core
from sojourn.arguments import Argument, ArgumentError
from sojourn.cli.plans import command
from sojourn.cli.process import say

TEMPLATE = '''"""The queue {name}: a FIFO that drops the packets that arrive when it is full."""

from collections import deque

import sojourn as sj


class {name}(sj.PythonQueue):
    limit = 100

    def __init__(self):
        self.packets = deque()

    def enqueue(self, now, packet):
        if len(self.packets) < self.limit:
            self.packets.append(packet)
        else:
            packet.drop("overlimit")

    def dequeue(self, now):
        # The first packet has waited for now - self.packets[0].arrival seconds. Here, an AQM
        # decides whether to return it, to mark it by packet.mark(), or to drop it by packet.drop().
        return self.packets.popleft() if self.packets else None


if __name__ == "__main__":
    sj.testing.check_qdisc({name})
    print("{name} passes the contract checks")
'''


@command()
def new_queue(
    *,
    name: Annotated[
        str, Argument(help="Name of the queue, such as ramp; its file is ramp.py.", option="NAME")
    ],
) -> int:
    """Write a queue in Python to start from, which works, and print what to do with it."""
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) or keyword.iskeyword(name):
        rule = "not a name; expected letters, digits and _, such as ramp"
        raise ArgumentError("name", name, rule)
    cls = "".join(part[:1].upper() + part[1:] for part in name.split("_"))
    if keyword.iskeyword(cls):
        rule = "its class would be {cls}, a keyword; expected another name, such as my_queue"
        raise ArgumentError("name", name, rule, cls=cls)
    if _is_module(name):
        rule = "the name of a module, which the file would hide; expected another, such as my_queue"
        raise ArgumentError("name", name, rule)
    file = Path(f"{name}.py")
    try:
        with file.open("x", encoding="utf-8") as stream:
            stream.write(TEMPLATE.format(name=cls))
    except FileExistsError:
        rule = "{file} exists; expected another name"
        raise ArgumentError("name", name, rule, file=file) from None
    except OSError as error:
        message = f"cannot write {file}: {error.strerror}"
        raise _core.ResultError(message) from None
    say(f"wrote {file}")
    queue = f"./{file}:{cls}"
    lines = {
        f"python {file}": "run the contract checks",
        f"sojourn compare fq_codel {queue}": "compare it with FQ-CoDel",
        f"sojourn rfc7928 {queue}": "run the scenarios of RFC 7928",
    }
    width = max(map(len, lines))
    print("Next:")
    for line, purpose in lines.items():
        print(f"  {line:{width}}  {purpose}")
    return 0


def _is_module(name: str) -> bool:
    """Whether Python finds a module of this name outside the working directory."""
    if name in sys.stdlib_module_names:
        return True
    spec = importlib.util.find_spec(name)
    if spec is None:
        return False
    places = spec.submodule_search_locations or [f"{spec.origin}"]
    return any(Path(place).resolve().parent != Path.cwd() for place in places)
