//! Suggestions for misspelt names.

use core::fmt;

/// The longest name that is compared; of a longer one only the start.
const LONGEST: usize = 64;

/// What an error about `given` says is accepted: `did you mean "codel"?`, or
/// `expected one of pfifo, codel` if no name is near.
pub fn instead_of<'a>(
    given: &str,
    names: impl Iterator<Item = &'a str> + Clone,
) -> impl fmt::Display {
    Instead {
        nearest: nearest(given, names.clone()),
        names,
    }
}

struct Instead<'a, I> {
    nearest: Option<&'a str>,
    names: I,
}

impl<'a, I: Iterator<Item = &'a str> + Clone> fmt::Display for Instead<'a, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(name) = self.nearest {
            return write!(f, "did you mean \"{name}\"?");
        }
        f.write_str("expected one of ")?;
        self.names.clone().enumerate().try_for_each(|(n, name)| {
            let comma = if n == 0 { "" } else { ", " };
            write!(f, "{comma}{name}")
        })
    }
}

/// The name that somebody who wrote `given` may have meant, if one is near.
pub fn nearest<'a>(given: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let distances = names.map(|name| (edits(given, name), name));
    let (distance, name) = distances.min_by_key(|(distance, _)| *distance)?;
    // A third of the letters, rounded to the nearest.
    (distance <= (given.chars().count() + 1) / 3).then_some(name)
}

/// How many insertions, deletions, substitutions and exchanges of neighbours lead from `a` to `b`
/// (optimal string alignment), whatever their case.
fn edits(a: &str, b: &str) -> usize {
    let (a, b) = (letters(a), letters(b));
    let mut row: [usize; LONGEST + 1] = core::array::from_fn(|n| n);
    // The row before `above`, and the letter of `above`.
    let mut two_above = row;
    let mut last_x = None;
    for (i, x) in a.enumerate() {
        let above = row;
        let mut last_y = None;
        row[0] = i + 1;
        for (j, y) in b.clone().enumerate() {
            let substituted = above[j] + usize::from(x != y);
            row[j + 1] = substituted.min(row[j] + 1).min(above[j + 1] + 1);
            if last_x == Some(y) && last_y == Some(x) {
                row[j + 1] = row[j + 1].min(two_above[j - 1] + 1);
            }
            last_y = Some(y);
        }
        two_above = above;
        last_x = Some(x);
    }
    row[b.count()]
}

/// The first letters of a name, in lower case.
fn letters(name: &str) -> impl Iterator<Item = char> + Clone {
    name.chars()
        .take(LONGEST)
        .map(|letter| letter.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use std::string::ToString;

    #[test]
    fn edits_are_those_of_levenshtein_and_exchanges() {
        assert_eq!(edits("kitten", "sitting"), 3);
        assert_eq!(edits("", "abc"), 3);
        assert_eq!(edits("abc", ""), 3);
        assert_eq!(edits("rate", "rate"), 0);
        assert_eq!(edits("codle", "codel"), 1);
        assert_eq!(edits("down", "dwon"), 1);
        assert_eq!(edits("ba", "abc"), 2);
        let long = "x".repeat(1_000);
        assert_eq!(edits(&long, "rate"), LONGEST);
        assert_eq!(edits("rate", &long), LONGEST);
    }

    #[test]
    fn only_a_near_name_is_proposed() {
        let nearest = |given| nearest(given, ["rate", "delay"].into_iter());
        assert_eq!(nearest("rat"), Some("rate"));
        assert_eq!(nearest("colour"), None);
        // One edit for four letters, two for five.
        assert_eq!(nearest("ra"), None);
        assert_eq!(nearest("rt"), None);
        assert_eq!(nearest("ray"), None);
        assert_eq!(nearest("rtae"), Some("rate"));
        assert_eq!(nearest("relays"), Some("delay"));
        assert_eq!(nearest("raters"), Some("rate"));
        assert_eq!(nearest("RATE"), Some("rate"));
    }

    #[test]
    fn a_word_that_is_another_name_gets_no_proposal() {
        let nearest = |given| nearest(given, ["ared", "blue", "codel", "cubic", "sfb"].into_iter());
        for far in ["htb", "true", "target", "hfsc", ""] {
            assert_eq!(nearest(far), None, "{far}");
        }
        assert_eq!(nearest("codle"), Some("codel"));
        assert_eq!(nearest("kodel"), Some("codel"));
        assert_eq!(nearest("cubci"), Some("cubic"));
    }

    #[test]
    fn without_a_near_name_all_are_listed() {
        let instead = |given| instead_of(given, ["rate", "delay"].into_iter()).to_string();
        assert_eq!(instead("rat"), "did you mean \"rate\"?");
        assert_eq!(instead("colour"), "expected one of rate, delay");
    }
}
