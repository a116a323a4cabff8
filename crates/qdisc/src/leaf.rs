//! The disciplines inside a classful one, as text and at work.
//!
//! `leaf codel target 5ms` puts that queue into every class, `leaf codel / sfq limit 50 / pfifo` one into
//! each. The leaves are the last of the parameters: all that follows belongs to them. Parentheses keep
//! the leaves of a leaf together: `prio leaf (drr leaf codel / sfq) / pfifo`.

use crate::registry::QdiscSpec;

/// Reads at most `most` leaves; says what is wrong with `text`.
pub(crate) fn parse(text: &str, most: u64) -> Result<Vec<QdiscSpec>, String> {
    let parts = split(text)?;
    if parts.len() as u64 > most {
        return Err(format!("{} given", parts.len()));
    }
    let read = |part: &&str| QdiscSpec::parse(part).map_err(|e| format!("\"{part}\": {e}"));
    parts.iter().map(read).collect()
}

/// As [`parse`] reads it.
pub(crate) fn text(leaves: &[QdiscSpec]) -> String {
    let alone = leaves.len() == 1;
    let texts = leaves.iter().map(|leaf| match leaf.to_string() {
        text if alone || !text.contains(" / ") => text,
        text => format!("({text})"),
    });
    texts.collect::<Vec<_>>().join(" / ")
}

/// The parts between those `/` that no parentheses enclose; a part in parentheses loses them.
fn split(text: &str) -> Result<Vec<&str>, String> {
    let mut parts = Vec::new();
    let (mut depth, mut from) = (0_u32, 0);
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.checked_sub(1).ok_or("has a ) without its (")?,
            '/' if depth == 0 => {
                parts.push(&text[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    if depth > 0 {
        return Err("has a ( without its )".into());
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
            ("codel / ", "no queue discipline"),
            ("codel) / pfifo", "without its ("),
            ("(codel / pfifo", "without its )"),
            ("codel / pfifo / sfq", "3 given"),
            ("codel target 0s", "target"),
        ] {
            let flaw = parse(wrong, 2).expect_err(wrong);
            assert!(flaw.contains(why), "{wrong}: {flaw}");
        }
    }

    #[test]
    fn leaves_read_back() {
        let leaves = parse("codel target 7ms / pfifo limit 5", 2).unwrap_or_default();
        assert_eq!(parse(&text(&leaves), 2), Ok(leaves));
    }
}
