//! The maximum over a sliding window, in constant space.

/// A value and when it was taken.
#[derive(Clone, Copy, Debug, Default)]
struct Reading {
    at: u32,
    value: u64,
}

/// The largest value of the last `window` rounds.
///
/// # Source
///
/// Kathleen Nichols's windowed filter, as Linux's `win_minmax` uses it: it keeps the best reading and the
/// best of later parts of the window, so that a successor is known when the best expires.
#[derive(Clone, Debug)]
pub(in crate::cc) struct MaxFilter {
    window: u32,
    best: [Reading; 3],
}

impl MaxFilter {
    pub(in crate::cc) const fn new(window: u32) -> Self {
        const NONE: Reading = Reading { at: 0, value: 0 };
        Self {
            window,
            best: [NONE; 3],
        }
    }

    pub(in crate::cc) const fn get(&self) -> u64 {
        self.best[0].value
    }

    /// Adds the reading of round `at`.
    pub(in crate::cc) fn update(&mut self, at: u32, value: u64) {
        let reading = Reading { at, value };
        let [first, second, third] = &mut self.best;
        if value >= first.value || at - third.at > self.window {
            self.best = [reading; 3];
            return;
        }
        if value >= second.value {
            (*second, *third) = (reading, reading);
        } else if value >= third.value {
            *third = reading;
        }
        let age = at - first.at;
        if age > self.window {
            // The best has expired; so may the second have.
            self.best = [*second, *third, reading];
            if at - self.best[0].at > self.window {
                self.best = [self.best[1], reading, reading];
            }
        } else if second.at == first.at && age > self.window / 4 {
            (*second, *third) = (reading, reading);
        } else if third.at == second.at && age > self.window / 2 {
            *third = reading;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_maximum_is_forgotten_after_its_window() {
        let mut f = MaxFilter::new(10);
        f.update(0, 100);
        for at in 1..=10 {
            f.update(at, 50);
            assert_eq!(f.get(), 100, "round {at}");
        }
        f.update(11, 40);
        assert_eq!(f.get(), 50);
    }

    #[test]
    fn a_larger_value_counts_at_once() {
        let mut f = MaxFilter::new(10);
        f.update(0, 10);
        f.update(3, 20);
        assert_eq!(f.get(), 20);
        // And for its own ten rounds.
        f.update(13, 1);
        assert_eq!(f.get(), 20);
        f.update(14, 1);
        assert_eq!(f.get(), 1);
    }
}
