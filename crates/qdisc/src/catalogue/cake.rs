//! What may be set in CAKE, under the names of `tc -j`.

use super::parameters::{flag, number, size, time};
use crate::fair::cake::{AckFilter, Diffserv, FlowMode};
use crate::parameters::{Parameter, Unit};
use crate::parts::framing::Framing;

/// The longest that microseconds in 32 bits tell, which is how `tc` hands a time on.
const LONGEST: u64 = 4_294_967_295_000;

pub(super) const CAKE: &[Parameter] = &[
    number(
        "bandwidth",
        Unit::Rate,
        (1, u64::MAX),
        "unlimited",
        "rate of the shaper",
    ),
    choice("diffserv", Diffserv::WORDS, "classes: into which tins"),
    choice("flowmode", FlowMode::WORDS, "who gets fair shares"),
    flag("nat", "accepted: flows here bear their own addresses"),
    flag("wash", "clear the class of packets"),
    choice("ack_filter", AckFilter::WORDS, "drop superfluous TCP ACKs"),
    time(
        "rtt",
        1_000,
        LONGEST,
        "",
        "round-trip time that COBALT is tuned for",
    ),
    choice("framing", Framing::WORDS, "how the link packs bytes"),
    size(
        "overhead",
        0,
        256,
        "raw",
        "what the link adds to an IP packet",
    ),
    size("mpu", 0, 256, "", "what the smallest packet counts"),
    size(
        "memlimit",
        1,
        1 << 32,
        "4 MiB, or 4 bandwidth rtt; at most 10240 MTU",
        "bytes the buffer holds",
    ),
    flag("ingress", "count what is dropped as sent"),
];

const fn choice(
    key: &'static str,
    words: &'static [&'static str],
    meaning: &'static str,
) -> Parameter {
    number(key, Unit::Choice(words), (0, 0), "", meaning)
}
