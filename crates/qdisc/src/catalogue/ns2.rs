//! What may be set in the disciplines that come from ns-2.

use super::parameters::{ECN, INTERVAL, TARGET, count, packets, size};
use crate::parameter::Parameter;

pub(super) const SFQ_CODEL: &[Parameter] = &[
    packets("limit", 1, 100_000_000, "packets all bins hold"),
    count("flows", 1, 65_536, "", "bins that flows are hashed to"),
    TARGET,
    INTERVAL,
    size(
        "quantum",
        1,
        1 << 20,
        "one packet",
        "bytes a bin sends in its turn",
    ),
    ECN,
];
