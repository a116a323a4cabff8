"""Create the skeleton of a congestion control: ``python tools/new_cc.py NAME``.

Writes the control's file and its page, and registers it; ``make generate`` does the rest.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REGISTRY = "crates/transport/src/cc/mod.rs"

SOURCE = """\
//! TITLE: additive increase, multiplicative decrease. Describe the control here.
//!
//! # Source
//!
//! The RFC, draft or module.
//!
//! # Law
//!
//! ```text
//! congestion avoidance   cwnd += 1               for each cwnd segments acknowledged
//! congestion             ssthresh = max(beta cwnd, 2)
//! ```

use super::declaration::{Control, Declaration, EcnNeed, Setup};
use super::parameter::{Unit, parameters};
use super::{Ack, SlowStart, Window, WindowBased};

parameters! {
    /// Parameters of [`CLASS`].
    pub struct CLASSParams {
        beta: u16 = 512, Unit::Ratio(1_024), (1, 1_023),
            "part of the window left after a reduction",
            "section of the source";
    }
}

impl Control for CLASSParams {
    type Controller = CLASS;

    const DECLARATION: Declaration = Declaration {
        name: "NAME",
        summary: "What the control does, in one line",
        source: "The RFC, draft or module",
        slow_starts: &[SlowStart::Standard, SlowStart::HyStartPlusPlus],
        quic_slow_start: None,
        ecn: EcnNeed::Optional,
    };

    fn build(&self, _setup: &Setup) -> CLASS {
        CLASS(*self)
    }
}

/// The CLASS congestion controller.
#[derive(Clone, Copy, Debug)]
pub struct CLASS(CLASSParams);

impl WindowBased for CLASS {
    fn grow(&mut self, window: &mut Window, _ack: &Ack, acked: u64) {
        window.grow_as_reno(window.segments_of(acked));
    }

    fn ssthresh(&mut self, window: &Window) -> u64 {
        let left = u64::from(window.cwnd) * u64::from(self.0.beta) / 1_024;
        window.bytes_of(u32::try_from(left).unwrap_or(u32::MAX).max(2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn congestion_leaves_beta_of_the_window() {
        let left = |beta| CLASS(CLASSParams { beta }).ssthresh(&Window::new(100, 1));
        assert_eq!([512, 768].map(left), [50, 75]);
    }
}
"""

PAGE = """\
# `NAME`

What the control does. Source: the RFC, draft or module.

```toml
cc = "NAME beta 0.7"
```

In Python, `sojourn.CLASS(beta=0.7)`. The arithmetic and the differences from the source are
described in `crates/transport/src/cc/NAME.rs`.

## Parameters

Ratios are written as quotients or decimals and rounded to the unit in which the control computes.

<!-- begin generated: parameters; edit the catalogue and run `make generate` -->
<!-- end generated: parameters -->
"""


def main() -> int:
    """Create the files.

    Returns
    -------
    int
        The exit status: 2 if the name is missing, invalid or taken.
    """
    name = next(iter(sys.argv[1:]), "")
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name):
        print("usage: make new-cc NAME=name, in lower case with underscores", file=sys.stderr)
        return 2
    if (ROOT / f"crates/transport/src/cc/{name}.rs").exists():
        print(f"{name}: there is such a file in crates/transport/src/cc", file=sys.stderr)
        return 2
    class_name = "".join(word.capitalize() for word in name.split("_"))
    for path, text in (
        (f"crates/transport/src/cc/{name}.rs", SOURCE),
        (f"docs/controls/{name}.md", PAGE),
    ):
        filled = text.replace("TITLE", name).replace("CLASS", class_name).replace("NAME", name)
        (ROOT / path).write_text(filled, encoding="utf-8")
        print(f"wrote: {path}")
    register(name, class_name)
    print(f"registered in {REGISTRY}; now run `make generate` and edit the three files")
    return 0


def register(name: str, class_name: str) -> None:
    """Add the module, its types and the line of the registry."""
    path = ROOT / REGISTRY
    text = path.read_text(encoding="utf-8")
    text = text.replace("mod window;\n", f"mod {name};\nmod window;\n", 1)
    types = f"pub use {name}::{{{class_name}, {class_name}Params}};\n"
    text = text.replace("pub use window::", f"{types}pub use window::", 1)
    line = f"    window {class_name}({class_name}Params, {class_name});\n"
    head, tail = text.split("controls! {\n")
    body, rest = tail.split("}\n", 1)
    path.write_text(f"{head}controls! {{\n{body}{line}}}\n{rest}", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
