//! Budgets, and what other simulators reach on the same work: `benches/reference.json`.
//!
//! Absolute figures hold on that machine only; `peers/run.sh` measures ns-3 and ns-2 again beside
//! Sojourn.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

/// The contents of `reference.json`.
pub static REFERENCE: LazyLock<Reference> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../reference.json"))
        .expect("benches/reference.json is valid")
});

/// Budgets and peers.
#[derive(Debug, Deserialize)]
pub struct Reference {
    /// What Sojourn must reach.
    pub budgets: Budgets,
    /// The other simulators.
    pub peers: Peers,
}

/// What Sojourn must reach.
#[derive(Debug, Deserialize)]
pub struct Budgets {
    /// The budget and the goal of each of S1 to S5, in thousand packets per CPU second.
    pub k_per_s: BTreeMap<String, (f64, f64)>,
    /// What an idle flow may take at most.
    pub idle_flow_bytes: f64,
    /// What many web connections may take at most, over HTTP/1.1 (`web`) and HTTP/3 (`web3`).
    pub web_bytes: BTreeMap<String, u64>,
    /// What the end of a slot of Predict may take at most, in percent of a core at a slot per
    /// millisecond.
    pub slot_percent: f64,
    /// What a packet of a worst case may take at most, in ns, by case.
    pub worst_ns: BTreeMap<String, f64>,
    /// How many times the instructions of a packet of another case one of a worst case may take, by case.
    pub worst_ratio: BTreeMap<String, (String, f64)>,
}

/// All simulators that were measured.
#[derive(Debug, Deserialize)]
pub struct Peers {
    /// When the figures were measured.
    pub date: String,
    /// On what class of machine.
    pub machine: String,
    /// Their speed.
    pub simulators: Vec<Peer>,
    /// The cost of queues in one of them.
    pub queue_ns: QueueCosts,
}

/// One simulator.
#[derive(Debug, Deserialize)]
pub struct Peer {
    /// Name and version.
    pub name: String,
    /// Thousand data packets delivered per CPU second, S1 to S5; `None`: it does not finish.
    pub k_per_s: [Option<f64>; 5],
}

/// What an enqueue and a dequeue cost (S6).
#[derive(Debug, Deserialize)]
pub struct QueueCosts {
    /// In which simulator.
    pub simulator: String,
    /// In ns, by queue.
    pub values: BTreeMap<String, f64>,
}
