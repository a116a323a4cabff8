//! The statistics of CAKE, under the names of `tc -j -s`.

use sojourn_net::Bytes;

use super::pace::Count;
use super::tin::Tin;
use crate::contract::Statistic;

/// The range of sizes seen, without the link's header and as they were counted.
#[derive(Clone, Debug, Default)]
pub(super) struct Sizes {
    network: Option<(u64, u64)>,
    adjusted: Option<(u64, u64)>,
    /// The size that was added last.
    last: Option<Bytes>,
}

impl Sizes {
    #[inline]
    pub(super) fn add(&mut self, count: &Count, size: Bytes) {
        if self.last == Some(size) {
            return;
        }
        self.last = Some(size);
        self.network = Some(wider(self.network, count.network(size)));
        self.adjusted = Some(wider(self.adjusted, count.adjusted(size)));
    }
}

#[inline]
fn wider(range: Option<(u64, u64)>, size: u64) -> (u64, u64) {
    range.map_or((size, size), |(least, most)| {
        (least.min(size), most.max(size))
    })
}

/// The statistics of a queue: the memory used and its limit, the sizes, and the tins in `order`.
pub(super) fn of(
    (memory_used, memory_limit): (u64, u64),
    sizes: &Sizes,
    tins: &[Tin],
    order: &[usize],
) -> Vec<Statistic> {
    let mut all = vec![
        Statistic::count("memory_used", memory_used),
        Statistic::count("memory_limit", memory_limit),
        Statistic::count("capacity_estimate", tins[0].threshold),
    ];
    if let (Some(network), Some(adjusted)) = (sizes.network, sizes.adjusted) {
        all.extend([
            Statistic::count("min_network_size", network.0),
            Statistic::count("max_network_size", network.1),
            Statistic::count("min_adj_size", adjusted.0),
            Statistic::count("max_adj_size", adjusted.1),
        ]);
    }
    for (place, &at) in order.iter().enumerate() {
        let tin = of_tin(&tins[at]).into_iter();
        all.extend(tin.map(|(name, value)| Statistic::count(name, value).within("tins", place)));
    }
    all
}

fn of_tin(tin: &Tin) -> [(&'static str, u64); 20] {
    let Tin { counts, flows, .. } = tin;
    let census = &flows.census;
    [
        ("threshold_rate", tin.threshold),
        ("sent_bytes", counts.bytes),
        ("backlog_bytes", tin.backlog),
        ("target_us", tin.law.target.as_micros()),
        ("interval_us", tin.law.interval.as_micros()),
        ("peak_delay_us", counts.delay.peak / 1_000),
        ("avg_delay_us", counts.delay.average / 1_000),
        ("base_delay_us", counts.delay.base / 1_000),
        ("sent_packets", counts.packets),
        ("way_indirect_hits", flows.ways.hits),
        ("way_misses", flows.ways.misses),
        ("way_collisions", flows.ways.collisions),
        ("drops", counts.drops),
        ("ecn_mark", counts.marks),
        ("ack_drops", counts.acks),
        (
            "sparse_flows",
            u64::from(census.sparse()) + u64::from(census.decaying()),
        ),
        ("bulk_flows", census.bulk().into()),
        ("unresponsive_flows", counts.unresponsive),
        ("max_pkt_len", counts.longest),
        ("flow_quantum", flows.quantum.into()),
    ]
}
