//! What may be set in the disciplines that share a link among others.

use super::parameters::{PROFILE, count, number, packets, size};
use crate::parameters::{Parameter, Unit};

pub(super) const DRR: &[Parameter] = &[
    count("classes", 1, 16_384, "", "classes that flows are hashed to"),
    size(
        "quantum",
        256,
        1 << 20,
        "the MTU",
        "bytes a class may send in its turn",
    ),
    leaves(16_384, "the queue of each class; one stands for all"),
];

pub(super) const PRIO: &[Parameter] = &[
    count("bands", 2, 16, "", "how many bands there are"),
    number(
        "priomap",
        Unit::Numbers,
        (0, 15),
        "",
        "the band of each of the 16 priorities",
    ),
    leaves(16, "the queue of each band; one stands for all"),
];

pub(super) const PFIFO_FAST: &[Parameter] = &[
    packets(
        "limit",
        1,
        100_000_000,
        "packets each band holds; linux-3.14: all bands",
    ),
    PROFILE,
];

const fn leaves(most: u64, meaning: &'static str) -> Parameter {
    number("leaf", Unit::Leaves, (1, most), "pfifo", meaning)
}
