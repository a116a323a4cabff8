//! Sets of indices, kept as runs.

use std::collections::VecDeque;

/// A set of indices, of segments, packets or bytes, as sorted, disjoint, non-adjacent half-open
/// runs.
///
/// The operations of a connection touch its ends (new data arrives above, acknowledged data
/// leaves below), where they cost O(1); elsewhere a binary search finds the run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RangeSet<T = u32> {
    runs: VecDeque<(T, T)>,
}

impl<T: Copy + Ord> RangeSet<T> {
    /// Adds `[start, end)`, calling `added` with each part that was not there before, in order.
    /// Returns the run that now contains it.
    pub(crate) fn insert(&mut self, start: T, end: T, mut added: impl FnMut(T, T)) -> (T, T) {
        debug_assert!(start < end, "an empty run");
        // The usual case.
        if let Some(run) = self.extend(start, end) {
            added(start, end);
            return run;
        }
        // The first run that touches [start, end] from the right.
        let first = match self.runs.back() {
            None => 0,
            Some(&(_, last_end)) if last_end < start => self.runs.len(),
            Some(&(last_start, _)) if last_start <= start => self.runs.len() - 1,
            Some(_) => self.runs.partition_point(|&(_, e)| e < start),
        };
        let (mut low, mut high, mut covered) = (start, end, start);
        let mut last = first;
        while let Some(&(s, e)) = self.runs.get(last)
            && s <= end
        {
            if covered < s {
                added(covered, s);
            }
            covered = covered.max(e);
            low = low.min(s);
            high = high.max(e);
            last += 1;
        }
        if covered < end {
            added(covered, end);
        }
        if last == first {
            self.runs.insert(first, (low, high));
        } else {
            self.runs[first] = (low, high);
            if last > first + 1 {
                self.runs.drain(first + 1..last);
            }
        }
        (low, high)
    }

    /// Adds `[start, end)` if it begins in the highest run or where that ends, and ends above it; returns the part
    /// that was not there before. `None`: it does not, and nothing is added.
    #[inline]
    pub(crate) fn extend_highest(&mut self, start: T, end: T) -> Option<(T, T)> {
        let highest = self.runs.back_mut();
        let run = highest.filter(|run| run.0 <= start && start <= run.1 && run.1 < end)?;
        Some((std::mem::replace(&mut run.1, end), end))
    }

    /// Adds `[start, end)` if it continues the highest run, which is returned.
    #[inline]
    pub(crate) fn extend(&mut self, start: T, end: T) -> Option<(T, T)> {
        let run = self.runs.back_mut().filter(|run| run.1 == start)?;
        run.1 = end;
        Some(*run)
    }

    /// The run, if there is only one.
    #[inline]
    pub(crate) fn only(&self) -> Option<(T, T)> {
        let run = self.runs.front()?;
        (self.runs.len() == 1).then_some(*run)
    }

    /// Removes everything below `floor`.
    pub(crate) fn remove_below(&mut self, floor: T) {
        while let Some(run) = self.runs.front_mut() {
            if run.1 <= floor {
                self.runs.pop_front();
            } else {
                run.0 = run.0.max(floor);
                return;
            }
        }
    }

    /// Removes and returns the lowest run.
    pub(crate) fn pop_first(&mut self) -> Option<(T, T)> {
        self.runs.pop_front()
    }

    /// The lowest run.
    pub(crate) fn first(&self) -> Option<(T, T)> {
        self.runs.front().copied()
    }

    /// The index after the highest member; `None` if the set is empty.
    #[inline]
    pub(crate) fn end(&self) -> Option<T> {
        self.runs.back().map(|&(_, e)| e)
    }

    /// The run that contains `index`.
    #[inline]
    pub(crate) fn run_of(&self, index: T) -> Option<(T, T)> {
        // The usual case: it is new.
        if self.end().is_none_or(|end| end <= index) {
            return None;
        }
        let at = self.runs.partition_point(|&(_, e)| e <= index);
        self.runs.get(at).copied().filter(|&(s, _)| s <= index)
    }

    /// The number of runs.
    pub(crate) fn len(&self) -> usize {
        self.runs.len()
    }

    /// The runs, the highest first.
    pub(crate) fn runs_down(&self) -> impl Iterator<Item = (T, T)> {
        self.runs.iter().rev().copied()
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_net::Rng;

    #[test]
    fn behaves_as_a_set_of_numbers() {
        let mut rng = Rng::new(1);
        let mut draw = |n: u64| u32::try_from(rng.below(n)).unwrap();
        let mut extended = 0;
        for _ in 0..200 {
            let (mut set, mut want) = (RangeSet::default(), std::collections::BTreeSet::new());
            for _ in 0..60 {
                if draw(8) == 0 {
                    let floor = draw(100);
                    set.remove_below(floor);
                    want.retain(|&i| i >= floor);
                } else {
                    let start = draw(100);
                    let end = start + 1 + draw(12);
                    let (mut new, highest) = (Vec::new(), set.runs.back().copied());
                    // `insert` does the same.
                    let tries = draw(2) == 0;
                    if tries && let Some((s, e)) = set.extend_highest(start, end) {
                        extended += 1;
                        new.extend(s..e);
                    } else {
                        let continues = |(s, e)| s <= start && start <= e && e < end;
                        assert!(!(tries && highest.is_some_and(continues)));
                        let run = set.insert(start, end, |s, e| new.extend(s..e));
                        assert!(run.0 <= start && end <= run.1);
                        assert_eq!(set.run_of(start), Some(run));
                    }
                    let fresh: Vec<u32> = (start..end).filter(|i| want.insert(*i)).collect();
                    assert_eq!(new, fresh);
                }
                let members: Vec<u32> = set.runs.iter().flat_map(|&(s, e)| s..e).collect();
                assert_eq!(members, want.iter().copied().collect::<Vec<_>>());
                assert!(
                    set.runs
                        .iter()
                        .zip(set.runs.iter().skip(1))
                        .all(|(a, b)| a.1 < b.0),
                    "runs touch: {set:?}"
                );
            }
        }
        assert!(extended > 100, "{extended}");
    }
}
