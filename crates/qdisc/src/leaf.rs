//! The disciplines inside a classful one, as text and at work.
//!
//! `leaf codel target 5ms` puts that queue into every class, `leaf codel / sfq limit 50 / pfifo` one into
//! each. The leaves are the last of the parameters: all that follows belongs to them. Parentheses keep
//! the leaves of a leaf together: `prio leaf (drr leaf codel / sfq) / pfifo`. A class that none is left
//! for has a `pfifo`, as in Linux.

use sojourn_net::{Packet, Rng};

use crate::classes::Classes;
use crate::droptail::DropTailParams;
use crate::parameter::Flaw;
use crate::registry::{AnyQdisc, QdiscSpec};
use crate::spec::LinkFacts;

/// How deep queues may stand in each other, as in Linux.
const DEEPEST: usize = 8;
/// How many queues one may consist of; each takes its memory whether it is used or not.
const MOST_QUEUES: u64 = 65_536;
/// How many classful queues a text may name: reading one inside another takes stack.
const MOST_CLASSFUL: usize = 64;

/// Reads at most `most` leaves; says what is wrong with `text`.
pub(crate) fn parse(text: &str, most: u64) -> Result<Vec<QdiscSpec>, Flaw> {
    if text.matches("leaf").count() > MOST_CLASSFUL {
        return Err(format!("has more than {MOST_CLASSFUL} leaves with leaves").into());
    }
    let parts = split(text)?;
    if parts.len() as u64 > most {
        let given = parts.len();
        return Err(format!("has {given} queues, at most {most} find a place").into());
    }
    let mut leaves = Vec::with_capacity(parts.len());
    for (number, part) in (1..).zip(&parts) {
        if part.is_empty() {
            return Err(format!("has no queue in place {number} of {}", parts.len()).into());
        }
        let leaf = QdiscSpec::parse(part).map_err(|e| Flaw::Leaf(number, Box::new(e)))?;
        leaves.push(leaf);
    }
    Ok(leaves)
}

/// As [`parse`] reads it.
pub(crate) fn text(leaves: &[QdiscSpec]) -> String {
    let texts = leaves.iter().map(|leaf| match leaf.to_string() {
        text if !text.contains(" / ") => text,
        text => format!("({text})"),
    });
    texts.collect::<Vec<_>>().join(" / ")
}

/// What speaks against these leaves of a queue with so many classes, called `name`.
pub(crate) fn conflict(leaves: &[QdiscSpec], classes: u32, name: &str) -> Option<String> {
    let given = leaves.len();
    if given as u64 > u64::from(classes) {
        return Some(format!(
            "leaf gives {given} queues, but {name} is {classes}"
        ));
    }
    let deepest = leaves.iter().map(depth).max().unwrap_or(0);
    if deepest >= DEEPEST {
        return Some(format!("leaf stands more than {DEEPEST} deep"));
    }
    let queues = queues(leaves, classes);
    (queues > MOST_QUEUES).then(|| format!("leaf makes {queues} queues, at most are {MOST_QUEUES}"))
}

/// The queues of the classes.
pub(crate) fn build<P: Packet>(
    leaves: &[QdiscSpec],
    classes: u32,
    link: &LinkFacts,
    rng: &Rng,
) -> Vec<AnyQdisc<P>> {
    let rest = QdiscSpec::DropTail(DropTailParams::PFIFO);
    let queue = |class| {
        let spec = of_class(leaves, class).unwrap_or(&rest);
        spec.build(link, rng.fork(&format!("leaf/{class}")))
    };
    (0..classes as usize).map(queue).collect()
}

/// The one queue inside a discipline that has a buffer of its own otherwise.
pub(crate) fn only<P: Packet>(
    leaves: &[QdiscSpec],
    link: &LinkFacts,
    rng: &Rng,
) -> Option<Classes<AnyQdisc<P>, P>> {
    (!leaves.is_empty()).then(|| Classes::new(build(leaves, 1, link, rng)))
}

fn of_class(leaves: &[QdiscSpec], class: usize) -> Option<&QdiscSpec> {
    match leaves {
        [all] => Some(all),
        each => each.get(class),
    }
}

fn depth(spec: &QdiscSpec) -> usize {
    1 + spec.leaves().iter().map(depth).max().unwrap_or(0)
}

/// How many queues so many classes come to, those inside them included.
fn queues(leaves: &[QdiscSpec], classes: u32) -> u64 {
    let inside = |leaf: &QdiscSpec| 1_u64.saturating_add(queues(leaf.leaves(), leaf.classes()));
    match leaves {
        [] => classes.into(),
        [all] => u64::from(classes).saturating_mul(inside(all)),
        each => {
            let plain = u64::from(classes).saturating_sub(each.len() as u64);
            let own = each.iter().map(inside);
            own.fold(plain, u64::saturating_add)
        }
    }
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
                    .ok_or_else(|| "has a ) without its (".to_owned())?;
            }
            '/' if depth == 0 => {
                parts.push(&text[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    if depth > 0 {
        return Err("has a ( without its )".to_owned().into());
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
            ("codel / ", "no queue in place 2 of 2"),
            ("codel) / pfifo", "without its ("),
            ("(codel / pfifo", "without its )"),
            ("codel / pfifo / sfq", "has 3 queues, at most 2"),
            ("codel target 0s", "target"),
        ] {
            let flaw = match parse(wrong, 2) {
                Err(Flaw::Value(flaw)) => flaw,
                Err(Flaw::Leaf(number, error)) => format!("{number}: {error}"),
                Ok(leaves) => panic!("{wrong}: {leaves:?}"),
            };
            assert!(flaw.contains(why), "{wrong}: {flaw}");
        }
    }

    #[test]
    fn leaves_read_back() {
        let leaves = parse("codel target 7ms / pfifo limit 5", 2).unwrap_or_default();
        assert_eq!(parse(&text(&leaves), 2).unwrap_or_default(), leaves);
        assert_eq!(leaves.len(), 2);
    }
}
