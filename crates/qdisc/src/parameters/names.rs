//! Suggestions for misspelt names.

/// The name nearest to `given`, or all of them if none is near.
pub(crate) fn instead_of<'a>(given: &str, names: impl Iterator<Item = &'a str> + Clone) -> String {
    match nearest(given, names.clone()) {
        Some(name) => format!("did you mean \"{name}\"?"),
        None => format!("expected one of {}", names.collect::<Vec<_>>().join(", ")),
    }
}

/// Which of `names` somebody who wrote `given` may have meant, if one is near.
pub fn nearest<'a>(given: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let distances = names.map(|name| (edits(given, name), name));
    let (distance, name) = distances.min_by_key(|(distance, _)| *distance)?;
    (distance <= 1 + given.chars().count() / 3).then_some(name)
}

/// How many insertions, deletions and substitutions lead from `a` to `b` (Levenshtein).
fn edits(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, y) in b.chars().enumerate() {
            let substituted = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[row.len() - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_those_of_levenshtein() {
        assert_eq!(edits("kitten", "sitting"), 3);
        assert_eq!(edits("", "abc"), 3);
        assert_eq!(edits("abc", ""), 3);
        assert_eq!(edits("rate", "rate"), 0);
    }

    #[test]
    fn only_a_near_name_is_proposed() {
        let nearest = |given| nearest(given, ["rate", "delay"].into_iter());
        assert_eq!(nearest("rat"), Some("rate"));
        assert_eq!(nearest("colour"), None);
        // One edit for two letters, three for six.
        assert_eq!(nearest("ra"), None);
        assert_eq!(nearest("rt"), None);
        assert_eq!(nearest("ray"), Some("rate"));
        assert_eq!(nearest("relays"), Some("delay"));
        assert_eq!(nearest("raters"), Some("rate"));
    }
}
