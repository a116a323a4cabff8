//! Builds the child queues of a classful discipline and checks that they are allowed.

use sojourn_net::{Packet, Rng};

use crate::parameters::{Leaf, LeafList, LinkFacts};
use crate::parts::classes::Classes;

/// How deep queues may be nested, as in Linux.
const MAX_DEPTH: usize = 8;
/// How many queues one may consist of; each takes its memory whether it is used or not.
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

/// The queues of the classes.
pub(crate) fn build<L: Leaf, P: Packet>(
    leaves: &[L],
    classes: u32,
    link: &LinkFacts,
    rng: &Rng,
) -> Vec<L::Queue<P>> {
    let rest = L::plain_fifo();
    let queue = |class| {
        let spec = of_class(leaves, class).unwrap_or(&rest);
        spec.build(link, rng.fork(&format!("leaf/{class}")))
    };
    (0..classes as usize).map(queue).collect()
}

/// The one queue inside a discipline that otherwise has a buffer of its own.
pub(crate) fn only<L: Leaf, P: Packet>(
    leaves: &[L],
    link: &LinkFacts,
    rng: &Rng,
) -> Option<Classes<L::Queue<P>, P>> {
    (!leaves.is_empty()).then(|| Classes::new(None, build(leaves, 1, link, rng)))
}

fn of_class<L>(leaves: &[L], class: usize) -> Option<&L> {
    match leaves {
        [all] => Some(all),
        each => each.get(class),
    }
}
