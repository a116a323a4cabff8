//! The link of a bottleneck, whose packets have what its queue reads of them.

use sojourn_net::Rng;
use sojourn_qdisc::{LinkFacts, QdiscSpec};

use super::packet::{Handle, WithTransport};
use crate::config::TransmitterConfig;
use crate::links::Link;

/// Queues that do not read what follows the IP header, and have no other queue inside.
const READ_NO_TRANSPORT: [&str; 13] = [
    "pfifo",
    "bfifo",
    "pfifo_head_drop",
    "pfifo_fast",
    "blue",
    "choke",
    "codel",
    "cobalt",
    "pie",
    "fq_pie",
    "fq_codel",
    "sfq",
    "dualpi2",
];

/// A link. A TCP header is larger than the rest of a packet, and a packet is copied several times on its way.
#[derive(Debug)]
pub(super) enum AnyLink {
    Brief(Link<Handle>),
    Full(Link<WithTransport>),
}

impl AnyLink {
    /// An idle link.
    pub(super) fn new(
        queue: &QdiscSpec,
        facts: (&LinkFacts, Rng),
        transmitter: &TransmitterConfig,
    ) -> Self {
        if READ_NO_TRANSPORT.contains(&queue.kind()) {
            Self::Brief(Link::new(queue, facts, transmitter))
        } else {
            Self::Full(Link::new(queue, facts, transmitter))
        }
    }
}

/// Does the same with either kind of link.
macro_rules! with_link {
    ($any:expr, $link:ident => $what:expr) => {
        match $any {
            AnyLink::Brief($link) => $what,
            AnyLink::Full($link) => $what,
        }
    };
}

pub(super) use with_link;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_listed_queues_exist_and_have_no_leaf() {
        for name in READ_NO_TRANSPORT {
            let queue = QdiscSpec::parse(name).expect(name);
            assert_eq!(queue.kind(), name);
            assert!(!queue.keys().contains(&"leaf"), "{name}");
        }
    }
}
