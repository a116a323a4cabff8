//! The child queues of a classful discipline, as text and as values.
//!
//! `leaf codel target 5ms` puts that queue into every class, `leaf codel / sfq limit 50 / pfifo` one into
//! each. The leaves are the last parameter: all words that follow belong to them. Parentheses keep the
//! leaves of a leaf together: `prio leaf (drr leaf codel / sfq) / pfifo`. A class without a leaf has a
//! `pfifo`, as in Linux.
//!
//! The module does not name the disciplines: the registry implements [`Leaf`] for its enumeration of them.

use std::fmt;

use sojourn_net::{Packet, Rng};

use super::error::{Flaw, ParameterError};
use super::footprint::Footprint;
use super::provenance::Provenance;
use crate::contract::Qdisc;
use crate::link::LinkFacts;

/// How many classful queues a text may name: reading one inside another takes stack.
const MAX_CLASSFUL: usize = 64;

/// A queue that can stand inside another one, with its parameters.
pub trait Leaf: Clone + fmt::Debug + fmt::Display + PartialEq + 'static {
    /// The queue that it builds.
    type Queue<P: Packet>: Qdisc<P>;

    /// Reads one queue.
    ///
    /// # Errors
    /// As [`QdiscSpec::parse`](crate::QdiscSpec::parse).
    fn parse(text: &str) -> Result<Self, ParameterError>;

    /// The queue of a class without a leaf of its own.
    fn plain_fifo() -> Self;

    /// An empty queue on `link`.
    fn build<P: Packet>(&self, link: &LinkFacts, rng: Rng) -> Self::Queue<P>;

    /// The queues inside this one and the number of its classes.
    fn leaves(&self) -> Option<(&dyn LeafList, u32)>;

    /// Its footprint, including the inner queues.
    fn footprint(&self) -> Footprint;

    /// This queue and those inside it.
    fn provenance(&self) -> Vec<Provenance>;
}

/// The leaves of one queue, whatever type stands for them.
pub trait LeafList: fmt::Debug {
    /// Reads at most `max` leaves.
    ///
    /// # Errors
    /// What is wrong with `text`.
    fn set(&mut self, text: &str, max: u64) -> Result<(), Flaw>;

    /// The text that [`LeafList::set`] reads; `None` if there are no leaves.
    fn text(&self) -> Option<String>;

    /// How many levels of queues the leaves add.
    fn depth(&self) -> usize;

    /// How many queues `classes` classes need, those inside them included.
    fn queues(&self, classes: u32) -> u64;

    /// The footprint of the queues of `classes` classes.
    fn footprint(&self, classes: u32) -> Footprint;

    /// As [`Leaf::provenance`], of all leaves.
    fn provenance(&self) -> Vec<Provenance>;
}

impl<L: Leaf> LeafList for Vec<L> {
    fn set(&mut self, text: &str, max: u64) -> Result<(), Flaw> {
        *self = parse(text, max)?;
        Ok(())
    }

    fn text(&self) -> Option<String> {
        let texts = self.iter().map(|leaf| match leaf.to_string() {
            text if !text.contains(" / ") => text,
            text => format!("({text})"),
        });
        let texts: Vec<_> = texts.collect();
        (!texts.is_empty()).then(|| texts.join(" / "))
    }

    fn depth(&self) -> usize {
        let below = |leaf: &L| leaf.leaves().map_or(0, |(leaves, _)| leaves.depth());
        self.iter().map(|leaf| 1 + below(leaf)).max().unwrap_or(0)
    }

    fn queues(&self, classes: u32) -> u64 {
        let inside = |leaf: &L| {
            let below = leaf.leaves().map_or(0, |(leaves, n)| leaves.queues(n));
            below.saturating_add(1)
        };
        match &**self {
            [] => classes.into(),
            [all] => u64::from(classes).saturating_mul(inside(all)),
            each => {
                let plain = u64::from(classes).saturating_sub(each.len() as u64);
                each.iter().map(inside).fold(plain, u64::saturating_add)
            }
        }
    }

    fn footprint(&self, classes: u32) -> Footprint {
        let plain = || L::plain_fifo().footprint();
        match &**self {
            [] => plain().times(classes.into()),
            [all] => all.footprint().times(classes.into()),
            each => {
                let rest = u64::from(classes).saturating_sub(each.len() as u64);
                let given = each.iter().map(L::footprint);
                given.fold(plain().times(rest), Footprint::and)
            }
        }
    }

    fn provenance(&self) -> Vec<Provenance> {
        self.iter().flat_map(Leaf::provenance).collect()
    }
}

fn parse<L: Leaf>(text: &str, max: u64) -> Result<Vec<L>, Flaw> {
    if text.matches("leaf").count() > MAX_CLASSFUL {
        return Err(format!("contains too many classful queues (maximum {MAX_CLASSFUL})").into());
    }
    let parts = split(text)?;
    if parts.len() as u64 > max {
        let given = parts.len();
        return Err(format!("has {given} queues, more than the maximum of {max}").into());
    }
    let mut leaves = Vec::with_capacity(parts.len());
    for (number, part) in (1..).zip(&parts) {
        if part.is_empty() {
            return Err(format!("has no queue at position {number} of {}", parts.len()).into());
        }
        let leaf = L::parse(part).map_err(|e| Flaw::Leaf(number, Box::new(e)))?;
        leaves.push(leaf);
    }
    Ok(leaves)
}

/// The parts between those `/` that no parentheses enclose; a part in parentheses loses them.
fn split(text: &str) -> Result<Vec<&str>, Flaw> {
    let mut parts = Vec::new();
    let (mut depth, mut from) = (0_u32, 0);
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => {
                depth = depth
                    .checked_sub(1)
                    .ok_or_else(|| "has an unmatched )".to_owned())?;
            }
            '/' if depth == 0 => {
                parts.push(&text[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    if depth > 0 {
        return Err("has an unmatched (".to_owned().into());
    }
    parts.push(&text[from..]);
    Ok(parts.into_iter().map(bare).collect())
}

fn bare(part: &str) -> &str {
    let part = part.trim();
    let inner = part.strip_prefix('(').and_then(|p| p.strip_suffix(')'));
    inner.unwrap_or(part).trim()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::QdiscSpec;

    #[test]
    fn parentheses_keep_the_leaves_of_a_leaf_together() {
        let split = |text| split(text).unwrap_or_default();
        assert_eq!(split("codel"), ["codel"]);
        assert_eq!(split("a b / c/d"), ["a b", "c", "d"]);
        assert_eq!(split("(p leaf a / b) / c"), ["p leaf a / b", "c"]);
        assert_eq!(
            split("p leaf (q leaf a / b) / c"),
            ["p leaf (q leaf a / b)", "c"]
        );
    }

    #[test]
    fn what_is_not_a_list_of_queues_is_refused() {
        for (wrong, why) in [
            ("codel / ", "no queue at position 2 of 2"),
            ("codel) / pfifo", "unmatched )"),
            ("(codel / pfifo", "unmatched ("),
            (
                "codel / pfifo / sfq",
                "has 3 queues, more than the maximum of 2",
            ),
            ("codel target 0s", "target"),
        ] {
            let flaw = match parse::<QdiscSpec>(wrong, 2) {
                Err(Flaw::Value(flaw)) => flaw,
                Err(Flaw::Leaf(number, error)) => format!("{number}: {error}"),
                Ok(leaves) => panic!("{wrong}: {leaves:?}"),
            };
            assert!(flaw.contains(why), "{wrong}: {flaw}");
        }
    }

    #[test]
    fn leaves_read_back() {
        let leaves: Vec<QdiscSpec> =
            parse("codel target 7ms / pfifo limit 5", 2).unwrap_or_default();
        assert_eq!(
            parse::<QdiscSpec>(&leaves.text().unwrap_or_default(), 2).unwrap_or_default(),
            leaves
        );
        assert_eq!(leaves.len(), 2);
    }
}
