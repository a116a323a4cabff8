//! The memory footprint of a specification: waiting packets and table sizes.

use crate::fair::fq::FAST_PATH;
use crate::parameters::{Footprint, Profile, Unit};
use crate::registry::QdiscSpec;

/// Parameters that set the size of a preallocated table.
const TABLES: [&str; 6] = [
    "flows",
    "divisor",
    "orphan_mask",
    "connections",
    "shadow",
    "table",
];
/// The flow queues of CAKE: 8 tins of 1024.
const CAKE: u64 = 8 * 1_024;
/// The slots of the history of Predict at the longest round-trip time.
const PREDICT: u64 = 1 << 16;
/// Packets in a queue whose limit follows from its other parameters: the largest buffer of CAKE, in MTUs.
const DERIVED: u64 = 10_240;
const MTU: u64 = 1_514;

impl QdiscSpec {
    /// The footprint of the queue. External queues are not limited.
    pub fn footprint(&self) -> Footprint {
        let mut spec = self.clone();
        let mut number = |key| spec.value(key).and_then(|value| value.whole());
        let own = Footprint {
            slots: match self.kind() {
                "cake" => CAKE,
                "predict" => PREDICT,
                _ => TABLES.iter().filter_map(|key| number(key)).sum::<u64>() + 1,
            },
            packets: u64::MAX,
            bytes: u64::MAX,
        };
        if let Some((leaves, classes)) = self.inner()
            && (classes > 1 || leaves.depth() > 0)
        {
            let leaves = leaves.footprint(classes);
            return Footprint {
                slots: own.slots.saturating_add(leaves.slots),
                ..leaves
            };
        }
        if crate::external::is_external(self.kind()) {
            return own;
        }
        // Each band has the limit; the fast path of fq adds a few packets.
        let (bands, beside) = match self {
            Self::Fq(params) if params.profile == Profile::Linux612 => (3, u64::from(FAST_PATH)),
            Self::PfifoFast(_) => (3, 0),
            _ => (1, 0),
        };
        let entry = self.entry().map(|(entry, _)| entry);
        let mut parameters = entry.iter().flat_map(|entry| entry.parameters);
        let in_bytes = parameters.any(|p| p.key == "limit" && p.unit == Unit::Size);
        let limit = number("limit");
        let memory = number("memory_limit").or_else(|| number("memlimit"));
        match (limit, in_bytes, memory) {
            (Some(bytes), true, _) | (None, _, Some(bytes)) => Footprint { bytes, ..own },
            (Some(packets), false, memory) => Footprint {
                packets: packets.saturating_mul(bands).saturating_add(beside),
                bytes: memory.unwrap_or(u64::MAX),
                ..own
            },
            (None, _, None) => Footprint {
                packets: DERIVED,
                bytes: DERIVED * MTU,
                ..own
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Footprint {
        text.parse::<QdiscSpec>().expect(text).footprint()
    }

    #[test]
    fn a_limit_counts_packets_or_bytes() {
        assert_eq!(of("pfifo limit 7").packets, 7);
        assert_eq!(of("bfifo limit 9000b").bytes, 9_000);
        assert_eq!(of("red limit 60000b").bytes, 60_000);
        assert_eq!(of("pfifo_fast limit 5").packets, 15);
        assert_eq!(of("fq limit 5").packets, 5);
        assert_eq!(of("fq limit 5 profile linux-6.12").packets, 15 + 8);
        assert_eq!(of("hred limit 30").packets, 30);
        assert_eq!(of("hred").packets, DERIVED);
        let both = of("fq_codel limit 11 memory_limit 1000000b");
        assert_eq!((both.packets, both.bytes), (11, 1_000_000));
        assert_eq!(of("cake").bytes, DERIVED * MTU);
        assert_eq!(of("cake memlimit 1000000b").bytes, 1_000_000);
    }

    #[test]
    fn the_queues_of_all_classes_count() {
        assert_eq!(of("fq_codel flows 64").slots, 65);
        let nested = of("drr classes 10 leaf fq_codel flows 64 limit 100");
        assert_eq!((nested.slots, nested.packets), (1 + 10 * 65, 1_000));
        let mixed = of("prio bands 3 leaf pfifo limit 5 / codel limit 6");
        assert_eq!((mixed.slots, mixed.packets), (1 + 3, 5 + 6 + 1_000));
        assert_eq!(of("red leaf pfifo limit 5").packets, 5);
    }

    #[test]
    fn every_queue_has_a_bound() {
        let all = crate::catalogue().into_iter();
        for queue in all.filter(|queue| !crate::external::is_external(queue.name)) {
            let footprint = of(queue.name);
            let waiting = footprint.packets.min(footprint.bytes);
            assert!(waiting <= 1 << 32, "{}: {footprint:?}", queue.name);
            assert!(
                (1..1 << 17).contains(&footprint.slots),
                "{}: {footprint:?}",
                queue.name
            );
        }
    }

    #[test]
    fn tables_for_a_billion_flows_are_refused() {
        let text = "drr classes 16384 leaf fq_codel flows 65536";
        let refused = text.parse::<QdiscSpec>().unwrap_err().to_string();
        assert!(
            refused.contains("flows in all; expected at most 10000000"),
            "{refused}"
        );
    }
}
