//! HTB: hierarchical token bucket.
//!
//! # Source
//!
//! Linux 6.1 `net/sched/sch_htb.c`, `tc-htb(8)`; Martin Devera, "HTB Linux queuing discipline manual" and "Hierarchical
//! token bucket theory", 2002.
//!
//! # Algorithm
//!
//! Each class has two token buckets: of its `rate` and of its `ceil`. With tokens in both it can send; without tokens of
//! its rate it may borrow from its parent; without tokens of its ceil it cannot send. A packet takes tokens from its
//! class and all classes above it, but no tokens of the rate below the class that lent them. Buckets may become
//! negative: a packet leaves while there are any tokens.
//!
//! Classes with packets that can send are served first from the lowest level (leaves), then by priority, then in turn,
//! `quantum` bytes each. A class that may borrow is served in the turn of the ancestor that can send.
//!
//! Pseudo-code: `docs/qdiscs/htb.md`.
//!
//! # Differences from Linux
//!
//! | here | Linux | effect |
//! |---|---|---|
//! | tokens of a class are counted from the start of the run | from the creation of the class | none: it is full then |
//! | events are handled without limit | at most for 2 jiffies per dequeue | none in virtual time |
//! | a packet of a class without a queue joins `pfifo` with 1000 packets | the `tx_queue_len` of the interface | none at its default |
//! | the bucket that `tc` derives is that of a clock with high-resolution timers | or of the tick of the kernel | set `burst` |
//! | no `offload`, no `hysteresis`, no rate estimator | optional | none at the defaults |

mod filter;
mod params;
mod rate;
mod tree;
mod values;

use sojourn_net::{Instant, Packet, Rate, Rng};

use crate::contract::{Backlog, ClassId, DropReason, Number, Observer, Qdisc, Statistic};
use crate::external::intern;
use crate::parameters::{Leaf, LinkFacts, OVERLIMITS};
use crate::parts::classes::Classes;
use crate::parts::fifo::Fifo;
use filter::Classifier;
use params::LEVELS;
use tree::{Node, Tree};

pub(crate) use params::HtbParams;
pub use params::{HtbClass, HtbFilter};
pub use values::LinkLayer as HtbLinkLayer;
pub use values::{Address, Code, HtbIp, HtbProtocol, Ports};

/// The list of its statistics with one entry per class.
const LIST: &str = "classes";
/// A queue without events asks again after this time, in nanoseconds.
const LONGEST_WAIT: u64 = 5_000_000_000;

/// Hierarchical token bucket.
#[derive(Clone, Debug)]
pub struct Htb<P, Q> {
    classifier: Classifier,
    /// The place of the class of packets that no filter matches.
    default: Option<usize>,
    // Boxed, since it is larger than other queues.
    tree: Box<Tree>,
    /// The queues of the leaves.
    leaves: Classes<Q, P>,
    /// The place of each leaf.
    places: Box<[usize]>,
    /// Packets in no class.
    direct: Fifo<P>,
    direct_limit: usize,
    direct_packets: u64,
    /// When a class that holds packets back may send.
    wake: Option<Instant>,
}

impl<P: Packet, Q: Qdisc<P>> Htb<P, Q> {
    /// An empty queue with full buckets.
    fn new<L: Leaf<Queue<P> = Q>>(params: &HtbParams<L>, link: &LinkFacts, rng: &Rng) -> Self {
        let parents = params.tree().expect("the parameters were checked");
        let tree = Tree::new(params, &parents);
        let is_leaf = |(place, node): (usize, &Node)| node.leaf.is_some().then_some(place);
        let places: Box<[usize]> = tree.nodes.iter().enumerate().filter_map(is_leaf).collect();
        let id =
            |&place: &usize| ClassId::named(intern(params.classes.0[place].name.as_str()), place);
        let specs = params::leaves(params);
        let queues = specs
            .iter()
            .enumerate()
            .map(|(leaf, spec)| spec.build::<P>(link, rng.fork(&format!("leaf/{leaf}"))));
        Self {
            classifier: Classifier::new(params, link),
            default: params.default_place(),
            tree: Box::new(tree),
            leaves: Classes::named(places.iter().map(id).collect(), queues.collect()),
            places,
            direct: Fifo::new(),
            direct_limit: params.direct_qlen as usize,
            direct_packets: 0,
            wake: None,
        }
    }

    /// Gives the same classes other limits and filters; packets, tokens and turns stay.
    fn change<L: Leaf>(&mut self, params: &HtbParams<L>, link: &LinkFacts) {
        self.classifier = Classifier::new(params, link);
        self.default = params.default_place();
        self.direct_limit = params.direct_qlen as usize;
        self.tree.change(params);
    }

    /// The queue of a leaf.
    fn queue(&self, place: usize) -> usize {
        self.tree.nodes[place]
            .leaf
            .expect("only leaves have packets")
    }

    /// Takes a packet from a leaf that may send with the credit of `level`.
    fn serve(
        &mut self,
        level: usize,
        prio: usize,
        now: Instant,
        obs: &mut dyn Observer<P>,
    ) -> Option<P> {
        let mut start = self.tree.lookup(level, prio)?;
        let mut place = start;
        // Each turn sends, deactivates a leaf, or goes on to the next until all have been asked.
        loop {
            let queue = self.queue(place);
            if self.leaves.is_empty(queue) {
                self.tree.deactivate(place);
                if !self.tree.is_occupied(level, prio) {
                    return None;
                }
                let next = self.tree.lookup(level, prio)?;
                if place == start {
                    start = next;
                }
                place = next;
                continue;
            }
            if let Some(pkt) = self.leaves.dequeue(queue, now, obs) {
                let bytes = pkt.size().0;
                self.tree.spend(place, level, prio, bytes);
                if self.leaves.is_empty(queue) {
                    self.tree.deactivate(place);
                }
                self.tree.charge(place, level, bytes);
                return Some(pkt);
            }
            // Its queue holds its packets back, or has dropped them all.
            self.tree.end_turn(place, level, prio);
            place = self.tree.lookup(level, prio)?;
            if place == start {
                return None;
            }
        }
    }

    /// Takes a packet that a class may send now, or notes when one may.
    fn shape(&mut self, now: Instant, obs: &mut dyn Observer<P>) -> Option<P> {
        let nanos = now.as_nanos();
        self.tree.begin(nanos);
        let mut next_event = nanos + LONGEST_WAIT;
        for level in 0..LEVELS {
            next_event = next_event.min(self.tree.run_events(level));
            for prio in self.tree.occupied(level) {
                if let Some(pkt) = self.serve(level, prio, now, obs) {
                    return Some(pkt);
                }
            }
        }
        self.wake = Some(Instant::from_nanos(next_event.max(nanos + 1)));
        None
    }

    /// The statistics of a queue inside, with the place of its class.
    fn placed(&self, of_leaves: Vec<Statistic>) -> impl Iterator<Item = Statistic> {
        of_leaves.into_iter().map(|statistic| match statistic.part {
            Some((list, leaf)) => statistic.within(list, self.places[leaf]),
            None => statistic,
        })
    }
}

impl<P: Packet, Q: Qdisc<P>> Qdisc<P> for Htb<P, Q> {
    const TIMED: bool = true;

    fn enqueue(&mut self, now: Instant, pkt: P, obs: &mut dyn Observer<P>) {
        let class = self.classifier.class_of(&pkt, obs).or(self.default);
        if let Some(place) = class {
            let queue = self.queue(place);
            self.leaves.enqueue(queue, now, pkt, obs);
            if !self.leaves.is_empty(queue) {
                self.tree.activate(place);
            }
        } else if self.direct.backlog().packets < self.direct_limit {
            self.direct.push(now, pkt);
            self.direct_packets += 1;
        } else {
            obs.on_drop(now, pkt, DropReason::Overlimit);
        }
    }

    fn dequeue(&mut self, now: Instant, obs: &mut dyn Observer<P>) -> Option<P> {
        self.wake = None;
        if let Some((pkt, _)) = self.direct.pop_stamped() {
            return Some(pkt);
        }
        if self.leaves.backlog().packets == 0 {
            return None;
        }
        self.shape(now, obs)
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        let (leaves, direct) = (self.leaves.backlog(), self.direct.backlog());
        Backlog {
            packets: leaves.packets + direct.packets,
            bytes: leaves.bytes + direct.bytes,
        }
    }

    #[inline]
    fn next_timer(&self) -> Option<Instant> {
        match (self.wake, self.leaves.next_timer()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    fn on_timer(&mut self, now: Instant) {
        self.wake = self.wake.filter(|wake| *wake > now);
        self.leaves.on_timer(now);
    }

    fn on_link_rate(&mut self, now: Instant, rate: Rate) {
        self.leaves.on_link_rate(now, rate);
    }

    fn statistics(&self) -> Vec<Statistic> {
        let own = [
            Statistic::count("direct_packets_stat", self.direct_packets),
            Statistic::count(OVERLIMITS, self.tree.overlimits),
        ];
        let mut all: Vec<_> = own.into_iter().collect();
        all.extend(self.placed(self.leaves.statistics(LIST)));
        for (place, node) in self.tree.nodes.iter().enumerate() {
            let counts = node.counts;
            if node.leaf.is_none() {
                all.extend([
                    Statistic::count("bytes", counts.bytes).within(LIST, place),
                    Statistic::count("packets", counts.packets).within(LIST, place),
                ]);
            }
            all.extend([
                Statistic::count("lended", counts.lends).within(LIST, place),
                Statistic::count("borrowed", counts.borrows).within(LIST, place),
                Statistic::count("giants", 0).within(LIST, place),
                ticks("tokens", node.tokens).within(LIST, place),
                ticks("ctokens", node.ctokens).within(LIST, place),
            ]);
        }
        all
    }

    fn state(&self, now: Instant) -> Vec<Statistic> {
        self.placed(self.leaves.state(LIST, now)).collect()
    }

    fn classes(&self) -> Vec<ClassId> {
        self.leaves.ids()
    }
}

/// Tokens in the ticks of `tc`, 64 ns.
#[expect(clippy::cast_precision_loss, reason = "below 2^53")]
fn ticks(name: &'static str, nanos: i64) -> Statistic {
    Statistic {
        part: None,
        name,
        value: Number::Real((nanos >> 6) as f64),
    }
}

#[cfg(test)]
mod tests;
