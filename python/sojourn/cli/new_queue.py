"""``sojourn new-queue``: write a file, or a crate, with a queue to start from."""

import importlib.util
import json
import keyword
import os
import re
import sys
from pathlib import Path
from string import Template
from typing import Annotated

from sojourn import files
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

# By file of a crate.
CRATE = {
    "Cargo.toml": """[package]
name = "$name"
version = "0.1.0"
edition = "2024"

[lib]
crate-type = ["cdylib"]

[dependencies]
sojourn-plugin = $sojourn

# A workspace of its own, wherever it is.
[workspace]
""",
    "src/lib.rs": """//! The queue `$name`: a FIFO that drops what arrives when it is full.

use sojourn_plugin::parameters::{Kind, Params, parameters};
use sojourn_plugin::{
    Backlog, DropReason, Fifo, Instant, LinkFacts, Observer, Packet, Qdisc, Rng, plugin,
};

plugin!(${cls}Params);

parameters! {
    /// The parameters: name, type, default, allowed values, and where they come from.
    #[derive(Clone, Debug)]
    pub struct ${cls}Params {
        /// Maximum number of packets.
        pub limit: usize = 100 => packets(1, 1_000_000), "this queue";
    }
}

impl Params for ${cls}Params {
    type Queue<P: Packet> = $cls<P>;

    const KINDS: &'static [Kind<Self>] = &[Kind {
        name: "$name",
        summary: "A FIFO that drops what arrives when it is full",
        source: "none yet",
        class: None,
        reconstruction: None,
        profiles: &[],
        start: Self::default,
        parameters: Self::PARAMETERS,
    }];

    fn build<P: Packet>(&self, _link: &LinkFacts, _rng: Rng) -> $cls<P> {
        $cls { limit: self.limit, fifo: Fifo::new() }
    }
}

/// The queue of one link.
#[derive(Clone, Debug)]
pub struct $cls<P> {
    limit: usize,
    fifo: Fifo<P>,
}

impl<P: Packet> Qdisc<P> for $cls<P> {
    fn enqueue(&mut self, now: Instant, packet: P, obs: &mut dyn Observer<P>) {
        if self.fifo.backlog().packets < self.limit {
            self.fifo.push(now, packet);
        } else {
            obs.on_drop(now, packet, DropReason::Overlimit);
        }
    }

    fn dequeue(&mut self, now: Instant, _obs: &mut dyn Observer<P>) -> Option<P> {
        // The packet has waited for `sojourn`. Here, an AQM decides whether to return it, to mark
        // it by `mark_ce` and `obs.on_mark`, or to pass it to `obs.on_drop` and take the next one.
        let (packet, _sojourn) = self.fifo.pop(now)?;
        Some(packet)
    }

    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_keeps_the_contract() {
        sojourn_plugin::check(&super::${cls}Params::default());
    }
}
""",
    "README.md": """# $name

A queue for Sojourn, in `src/lib.rs`:

```sh
cargo test
cargo build --release
sojourn compare fq_codel './$library limit 50'
```
""",
    ".gitignore": "/target\n",
}
# Words that a crate cannot be called, besides those of Python.
_RESERVED = (
    " abstract become box const crate do dyn enum extern final fn impl let loop match macro mod "
    "move mut override priv pub ref self static struct super test trait type typeof unsafe unsized "
    "use virtual where core std alloc "
)


@command()
def new_queue(
    *,
    name: Annotated[
        str, Argument(help="Name of the queue, such as ramp; its file is ramp.py.", option="NAME")
    ],
    rust: Annotated[
        bool, Argument(help="Write a Rust crate, which builds a plug-in, instead of a Python file.")
    ] = False,
    sojourn: Annotated[
        str | None,
        Argument(
            help="With {rust}, the sources of Sojourn that the crate builds with: a directory, or "
            "the URL of a Git repository.",
            unset="those of this installation, if it is a checkout",
            metavar="SOURCES",
        ),
    ] = None,
) -> int:
    """Write a queue to start from, which works, and print what to do with it."""
    if sojourn is not None and not rust:
        raise ArgumentError("sojourn", sojourn, "expected with {rust} only")
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) or keyword.iskeyword(name):
        rule = "not a name; expected a letter, then letters, digits and _, such as ramp"
        raise ArgumentError("name", name, rule)
    cls = "".join(part[:1].upper() + part[1:] for part in name.split("_"))
    if keyword.iskeyword(cls):
        rule = "its class would be {cls}, a keyword; expected another name, such as my_queue"
        raise ArgumentError("name", name, rule, cls=cls)
    if rust:
        return _crate(name.lower(), cls, sojourn)
    if _is_module(name):
        rule = "the name of a module, which the file would hide; expected another, such as my_queue"
        raise ArgumentError("name", name, rule)
    file = Path(f"{name}.py")
    files.write_new(file, TEMPLATE.format(name=cls), "name")
    say(f"wrote {file}")
    queue = f"./{file}:{cls}"
    return _next(
        {
            f"python {file}": "run the contract checks",
            f"sojourn compare fq_codel {queue}": "compare it with FQ-CoDel",
            f"sojourn rfc7928 {queue}": "run the scenarios of RFC 7928",
        }
    )


def _crate(name: str, cls: str, sojourn: str | None) -> int:
    """Write a crate that builds a plug-in."""
    if f" {name} " in _RESERVED:
        rule = "a reserved word; expected a valid name of a crate, such as my_queue"
        raise ArgumentError("name", name, rule)
    start, end = {"darwin": ("lib", "dylib"), "win32": ("", "dll")}.get(sys.platform, ("lib", "so"))
    library = f"target/release/{start}{name}.{end}"
    words = {"name": name, "cls": cls, "sojourn": _source(sojourn), "library": library}
    texts = {file: Template(text).substitute(words) for file, text in CRATE.items()}
    files.write_new(Path(name), texts, "name")
    say(f"wrote {name}{os.sep}")
    return _next(
        {
            f"cd {name} && cargo build --release": "build the plug-in",
            f"sojourn compare fq_codel ./{library}": "compare it with FQ-CoDel",
            "cargo test": "run the contract checks",
        }
    )


def _source(sojourn: str | None) -> str:
    """Write the dependency on the sources of Sojourn as Cargo does."""
    if sojourn is not None and re.match(r"[a-z+]+://|git@", sojourn):
        return f"{{ git = {json.dumps(sojourn)} }}"
    # Of a checkout in which this package is installed.
    place = Path(__file__).parents[3] if sojourn is None else Path(sojourn)
    crate = place.resolve() / "crates" / "plugin"
    if not (crate / "Cargo.toml").is_file():
        rule = "no sources of Sojourn; expected a checkout, or the URL of a Git repository"
        if sojourn is None:
            rule = (
                "required, because this installation has no Rust sources: expected a checkout of "
                "Sojourn, or the URL of a Git repository"
            )
        raise ArgumentError("sojourn", sojourn, rule)
    return f"{{ path = {json.dumps(f'{crate}')} }}"


def _next(lines: dict[str, str]) -> int:
    """Print commands with their purposes."""
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
