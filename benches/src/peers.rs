//! What other simulators reach on the same work.
//!
//! Measured in November 2026 on two virtual cores of an AMD EPYC (Zen 5), one pinned core, CPU time
//! of the whole process, best of several runs, about ±5 %. Absolute figures hold on that machine
//! only; `peers/run.sh` measures ns-3 and ns-2 again beside Sojourn.

/// When and on what class of machine the figures were measured.
pub const ORIGIN: &str = "November 2026, AMD EPYC (Zen 5), one virtual core";

/// One simulator.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    /// Name and version.
    pub name: &'static str,
    /// Thousand data packets delivered per CPU second, S1 to S5; `None`: it does not finish.
    pub k_per_s: [Option<f64>; 5],
}

/// All that were measured.
pub const PEERS: [Peer; 5] = [
    Peer {
        name: "ns-3 3.37",
        k_per_s: [Some(42.0), Some(52.0), Some(37.0), None, Some(39.0)],
    },
    Peer {
        name: "ns-3 3.48 optimised",
        k_per_s: [Some(61.0), Some(76.0), Some(41.0), None, Some(60.0)],
    },
    // PI for CoDel, DRR for FQ-CoDel; S4 is window-limited, hence without loss.
    Peer {
        name: "ns-2 2.35",
        k_per_s: [
            Some(1_565.0),
            Some(1_332.0),
            Some(1_191.0),
            Some(892.0),
            Some(714.0),
        ],
    },
    // NewReno without SACK, an ACK a packet, FIFO in S5.
    Peer {
        name: "htsim, routed",
        k_per_s: [
            Some(3_313.0),
            Some(3_052.0),
            Some(2_743.0),
            Some(2_561.0),
            Some(1_640.0),
        ],
    },
    Peer {
        name: "htsim, bare",
        k_per_s: [
            Some(11_200.0),
            Some(8_700.0),
            Some(9_950.0),
            Some(10_470.0),
            Some(4_280.0),
        ],
    },
];

/// What Sojourn must reach at least, S1 to S5, and what it wants to, in thousand per CPU second.
pub const BARS: [(f64, f64); 5] = [
    (5_000.0, 10_000.0),
    (5_000.0, 10_000.0),
    (5_000.0, 10_000.0),
    (5_000.0, 10_000.0),
    (2_500.0, 6_000.0),
];

/// What an idle flow may take at most.
pub const IDLE_FLOW_BYTES: f64 = 400.0;

/// ns-3 3.48, optimised, with items reused: ns for an enqueue and a dequeue (S6).
pub const NS3_QUEUE_NS: [(&str, f64); 5] = [
    ("pfifo", 141.0),
    ("codel", 194.0),
    ("fq_codel", 371.0),
    ("pie", 190.0),
    ("red", 150.0),
];
