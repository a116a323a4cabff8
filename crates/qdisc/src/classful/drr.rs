//! DRR: deficit round robin over classes with queues of their own.
//!
//! # Source
//!
//! Linux 6.1 `net/sched/sch_drr.c`, its classes chosen by `cls_flow`; Shreedhar and Varghese,
//! "Efficient fair queuing using deficit round robin", 1995.
//!
//! # Algorithm
//!
//! The hash of a flow selects its class. Classes with packets are served round robin, `quantum`
//! bytes per turn; an unused rest is carried over while the class has packets. The paper adds the
//! quantum at the start of a turn, Linux at the end of the previous turn: the packets leave in the
//! same order.
//!
//! Pseudo-code: `docs/qdiscs/drr.md`.
//!
//! # Differences from Linux
//!
//! | here | Linux | effect |
//! |---|---|---|
//! | flows hashed with `SplitMix64` | the filter's hash | which flows collide |
//! | all classes are alike and there from the start | each is added, with a quantum of its own | no weights |
//! | a leaf that cannot show the packet that waits for its class's next turn (`codel`) has lost it | the packet still counts | at its limit such a leaf has room for one more |
//! | a leaf that holds packets back lets the next class send | nothing is sent until it does | – |

use sojourn_net::{Bytes, Comparison, Instant, Packet, Rate, Rng};

use crate::contract::{Backlog, ClassId, Observer, Qdisc, Statistic};
use crate::parameters::{
    Kind, LINUX, Leaf, LeafList, LinkFacts, Params, Retention, TcStatistics, fixed, parameters,
};
use crate::parts::classes::Classes;
use crate::parts::leaf::{self, Leaves};
use crate::parts::round::{FlowId, Round};

parameters! {
    /// Parameters of [`Drr`].
    #[derive(Clone, Debug, PartialEq)]
    pub struct DrrParams<L> {
        /// Number of classes that flows are hashed to.
        pub classes: u32 = 1_024 => count(1, 16_384),
            "Sojourn parameter; in tc, each class is added explicitly";
        /// Bytes that a class sends per turn.
        pub quantum: Option<Bytes> = None => size(256, 1 << 20).unset("the MTU"),
            "net/sched/sch_drr.c: drr_class.quantum";
        /// Queue of each class; a single queue applies to all classes.
        pub leaf: Vec<L> = Vec::new() => leaves(16_384).unset("pfifo"),
            "net/sched/sch_drr.c: drr_class.qdisc";
    }
}

impl<L: Leaf> Params for DrrParams<L> {
    type Queue<P: Packet> = Drr<P, L::Queue<P>, L>;

    const KINDS: &'static [Kind<Self>] = &[Kind {
        name: "drr",
        class: Some("Drr"),
        summary: "Deficit round robin over classes, with any queue in each class",
        source: "Linux 6.1 sch_drr and cls_flow; Shreedhar and Varghese 1995",
        reconstruction: None,
        profiles: LINUX,
        start: Self::default,
        parameters: Self::PARAMETERS,
    }];

    const COMPARISON: Comparison = Comparison::With("Linux 6.1");

    const TC_STATISTICS: TcStatistics = TcStatistics::of(&[]).with_leaves(LIST);

    fn conflict(&self) -> Option<String> {
        leaf::conflict(&self.leaf, self.classes)
    }

    fn leaves(&self) -> Option<(&dyn LeafList, u32)> {
        Some((&self.leaf, self.classes))
    }

    fn resolve(&mut self, link: &LinkFacts) {
        self.quantum.get_or_insert(link.mtu);
    }

    fn build<P: Packet>(&self, link: &LinkFacts, rng: Rng) -> Drr<P, L::Queue<P>, L> {
        let leaves = Leaves::new(&self.leaf, link, &rng);
        Drr::new(leaves, self.classes, self.quantum(link), rng)
    }

    fn change_to(&self, next: &Self) -> Result<Retention, String> {
        fixed(&[
            ("classes", self.classes == next.classes),
            ("leaf", self.leaf == next.leaf),
        ])
    }

    /// As by `tc class change` of each class: what a class may still send in its turn stays.
    fn change<P: Packet>(
        &self,
        queue: &mut Drr<P, L::Queue<P>, L>,
        _now: Instant,
        link: &LinkFacts,
        _obs: &mut dyn Observer<P>,
    ) {
        queue.quantum = self.quantum(link);
    }
}

impl<L> DrrParams<L> {
    /// A quantum of nothing would never let a packet go.
    fn quantum(&self, link: &LinkFacts) -> Bytes {
        self.quantum.unwrap_or(link.mtu).max(Bytes(1))
    }
}

/// Deficit round robin over the classes that have received a packet, and those that need none.
#[derive(Clone, Debug)]
pub struct Drr<P, Q, L> {
    quantum: Bytes,
    perturbation: u64,
    number: u32,
    /// The place of each class in `classes`, `turns` and `links`; [`FlowId::NONE`]: it has not been used.
    places: Vec<FlowId>,
    // Boxed, since it is large and seldom used.
    leaves: Box<Leaves<L>>,
    classes: Classes<Q, P>,
    turns: Vec<Turn>,
    round: Round,
    /// Links of `round`.
    links: Vec<FlowId>,
    /// How many classes are in the round.
    active: usize,
}

/// The part of the statistics with one entry per class.
const LIST: &str = "classes";

#[derive(Clone, Debug)]
struct Turn {
    in_round: bool,
    /// What the class may still send in its turn.
    deficit: Bytes,
}

impl<P: Packet, L: Leaf> Drr<P, L::Queue<P>, L> {
    fn new(leaves: Leaves<L>, number: u32, quantum: Bytes, mut rng: Rng) -> Self {
        let mut drr = Self {
            quantum,
            perturbation: rng.next_u64(),
            number,
            places: vec![FlowId::NONE; number as usize],
            leaves: Box::new(leaves),
            classes: Classes::named(Vec::new(), Vec::new()),
            turns: Vec::new(),
            round: Round::EMPTY,
            links: Vec::new(),
            active: 0,
        };
        drr.use_first(drr.leaves.needed_from_start(drr.places.len()));
        drr
    }

    /// Builds those of the first `number` classes that have not been used.
    fn use_first(&mut self, number: usize) {
        for class in 0..number {
            if self.places[class] == FlowId::NONE {
                self.use_class(class);
            }
        }
    }

    /// Builds a class that has not been used; returns its place.
    #[cold]
    fn use_class(&mut self, class: usize) -> FlowId {
        #[expect(clippy::cast_possible_truncation, reason = "as many as `number`")]
        let place = FlowId::at(self.classes.len() as u32);
        self.places[class] = place;
        let queue = self.leaves.build(class);
        self.classes.add(ClassId::numbered("class", class), queue);
        self.turns.push(Turn {
            in_round: false,
            deficit: Bytes(0),
        });
        self.links.push(FlowId::NONE);
        place
    }

    /// The statistics or the state of all classes in their order; `numbers` returns those of the class at a place, as of
    /// a class of another number. All classes that have not been used have the same.
    fn of_all(
        &self,
        numbers: impl Fn(&Classes<L::Queue<P>, P>, usize, usize) -> Vec<Statistic>,
    ) -> Vec<Statistic> {
        let unused = self.places.iter().position(|&place| place == FlowId::NONE);
        let idle = unused.map_or_else(Vec::new, |class| {
            let fresh = Classes::new(None, vec![self.leaves.build(class)]);
            numbers(&fresh, 0, class)
        });
        let mut all = Vec::with_capacity(idle.len() * self.places.len());
        for (class, &place) in self.places.iter().enumerate() {
            if place == FlowId::NONE {
                all.extend(idle.iter().map(|number| number.within(LIST, class)));
            } else {
                all.extend(numbers(&self.classes, place.index(), class));
            }
        }
        all
    }

    /// Ends the turn of the first class of the round.
    #[inline]
    fn rotate(&mut self, class: FlowId) {
        self.round.pop(&self.links);
        self.round.push(&mut self.links, class);
    }

    fn leave(&mut self, class: FlowId) {
        self.round.pop(&self.links);
        self.turns[class.index()].in_round = false;
        self.active -= 1;
    }

    /// The class that `pkt` belongs to.
    #[inline]
    fn classify(&self, pkt: &P) -> FlowId {
        let digest = pkt.flow().digest(self.perturbation);
        FlowId::scaled(digest, self.number)
    }
}

impl<P: Packet, L: Leaf> Qdisc<P> for Drr<P, L::Queue<P>, L> {
    const TIMED: bool = true;

    #[inline]
    fn enqueue(&mut self, now: Instant, pkt: P, obs: &mut dyn Observer<P>) {
        let number = self.classify(&pkt).index();
        let mut class = self.places[number];
        if class == FlowId::NONE {
            class = self.use_class(number);
        }
        self.classes.enqueue(class.index(), now, pkt, obs);
        let turn = &mut self.turns[class.index()];
        if !turn.in_round && !self.classes.is_empty(class.index()) {
            turn.in_round = true;
            turn.deficit = self.quantum;
            self.round.push(&mut self.links, class);
            self.active += 1;
        }
    }

    #[inline]
    fn dequeue(&mut self, now: Instant, obs: &mut dyn Observer<P>) -> Option<P> {
        // Classes in a row that wait but may not send yet.
        let mut held_back = 0;
        while let Some(class) = self.round.first() {
            let at = class.index();
            let Some(size) = self.classes.peek(at, now, obs) else {
                if self.classes.is_empty(at) {
                    self.leave(class);
                    continue;
                }
                held_back += 1;
                self.rotate(class);
                if held_back >= self.active {
                    return None;
                }
                continue;
            };
            held_back = 0;
            let turn = &mut self.turns[at];
            if size <= turn.deficit {
                turn.deficit -= size;
                let pkt = self.classes.dequeue(at, now, obs);
                if self.classes.is_empty(at) {
                    self.leave(class);
                }
                return pkt;
            }
            turn.deficit += self.quantum;
            self.rotate(class);
        }
        None
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.classes.backlog()
    }

    #[inline]
    fn next_timer(&self) -> Option<Instant> {
        self.classes.next_timer()
    }

    fn on_timer(&mut self, now: Instant) {
        self.classes.on_timer(now);
    }

    fn on_link_rate(&mut self, now: Instant, rate: Rate) {
        // A leaf that is built later would not know the rate.
        self.use_first(self.places.len());
        self.classes.on_link_rate(now, rate);
    }

    fn queue_of(&self, pkt: &P) -> Option<u32> {
        Some(self.classify(pkt).number())
    }

    fn statistics(&self) -> Vec<Statistic> {
        self.of_all(|classes, place, class| classes.statistics_of(place, LIST, class).collect())
    }

    fn state(&self, now: Instant) -> Vec<Statistic> {
        self.of_all(|classes, place, class| classes.state_of(place, LIST, class, now).collect())
    }
}

#[cfg(test)]
mod tests;
