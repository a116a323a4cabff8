//! Builds the child queues of a classful discipline and checks that they are allowed.

use sojourn_net::{Packet, Rng};

use crate::parameters::{Leaf, LeafList, LinkFacts};
use crate::parts::classes::Classes;

/// How deep queues may be nested, as in Linux.
const MAX_DEPTH: usize = 8;
/// How many queues one may consist of; each may take its memory.
const MAX_QUEUES: u64 = 65_536;
/// Maximum number of table entries for flows in all queues: each entry occupies about 100 B, used or not.
const MAX_SLOTS: u64 = 10_000_000;

/// Why a queue with `classes` classes cannot have these leaves.
pub(crate) fn conflict<L: Leaf>(leaves: &Vec<L>, classes: u32) -> Option<String> {
    let given = leaves.len();
    if given as u64 > u64::from(classes) {
        return Some(format!(
            "leaf has {given} queues; expected at most {classes}"
        ));
    }
    if leaves.depth() >= MAX_DEPTH {
        return Some(format!(
            "leaf is nested too deeply; expected at most {MAX_DEPTH} levels"
        ));
    }
    let queues = leaves.queues(classes);
    if queues > MAX_QUEUES {
        return Some(format!(
            "leaf creates {queues} queues; expected at most {MAX_QUEUES}"
        ));
    }
    let slots = leaves.footprint(classes).slots;
    (slots > MAX_SLOTS).then(|| {
        format!("leaf creates queues for {slots} flows in all; expected at most {MAX_SLOTS}")
    })
}

/// Builds the queue of each class, at the start or when it is first used: the queue is the same.
#[derive(Clone, Debug)]
pub(crate) struct Leaves<L> {
    /// Those of the first classes.
    given: Vec<L>,
    /// That of each other class.
    rest: L,
    link: LinkFacts,
    rng: Rng,
}

impl<L: Leaf> Leaves<L> {
    pub(crate) fn new(leaves: &[L], link: &LinkFacts, rng: &Rng) -> Self {
        let (given, rest) = match leaves {
            [all] => (Vec::new(), all.clone()),
            each => (each.to_vec(), L::plain_fifo()),
        };
        Self {
            given,
            rest,
            link: link.clone(),
            rng: rng.clone(),
        }
    }

    /// An empty queue of `class`.
    pub(crate) fn build<P: Packet>(&self, class: usize) -> L::Queue<P> {
        let spec = self.given.get(class).unwrap_or(&self.rest);
        spec.build(&self.link, self.rng.fork(&format!("leaf/{class}")))
    }

    /// How many of the `classes`, from the first on, are needed before a packet arrives: those with a leaf of their
    /// own, and all if the leaf of the others may have a timer without packets or is external.
    pub(crate) fn needed_from_start(&self, classes: usize) -> usize {
        match self.rest.footprint().timers_per_s {
            0 => self.given.len().min(classes),
            _ => classes,
        }
    }
}

/// The queues of the classes.
pub(crate) fn build<L: Leaf, P: Packet>(
    leaves: &[L],
    classes: u32,
    link: &LinkFacts,
    rng: &Rng,
) -> Vec<L::Queue<P>> {
    let leaves = Leaves::new(leaves, link, rng);
    (0..classes as usize)
        .map(|class| leaves.build(class))
        .collect()
}

/// The one queue inside a discipline that otherwise has a buffer of its own.
pub(crate) fn only<L: Leaf, P: Packet>(
    leaves: &[L],
    link: &LinkFacts,
    rng: &Rng,
) -> Option<Classes<L::Queue<P>, P>> {
    (!leaves.is_empty()).then(|| Classes::new(None, build(leaves, 1, link, rng)))
}
