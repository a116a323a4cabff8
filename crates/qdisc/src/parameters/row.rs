//! Parameters whose value is a row of numbers, such as a band per priority.

use std::fmt;

/// A fixed count of numbers, or none.
pub trait Row: fmt::Debug {
    /// The numbers with spaces between them; nothing if there are none.
    fn text(&self) -> Option<String>;

    /// How many numbers there are.
    fn count(&self) -> usize;

    /// Takes other numbers; says whether their count is right and each fits.
    fn replace(&mut self, numbers: &[u64]) -> bool;
}

/// A number in a [`Row`].
pub trait Number: Copy + fmt::Debug + fmt::Display + TryFrom<u64> {}

impl Number for u8 {}
impl Number for u32 {}

impl<N: Number, const COUNT: usize> Row for [N; COUNT] {
    fn text(&self) -> Option<String> {
        Some(self.map(|number| number.to_string()).join(" "))
    }

    fn count(&self) -> usize {
        COUNT
    }

    fn replace(&mut self, numbers: &[u64]) -> bool {
        let read = row(numbers);
        *self = read.unwrap_or(*self);
        read.is_some()
    }
}

impl<N: Number, const COUNT: usize> Row for Option<[N; COUNT]> {
    fn text(&self) -> Option<String> {
        self.as_ref().and_then(Row::text)
    }

    fn count(&self) -> usize {
        COUNT
    }

    fn replace(&mut self, numbers: &[u64]) -> bool {
        let read = row(numbers);
        *self = read.or(*self);
        read.is_some()
    }
}

fn row<N: Number, const COUNT: usize>(numbers: &[u64]) -> Option<[N; COUNT]> {
    let numbers: Option<Vec<N>> = numbers.iter().map(|&n| N::try_from(n).ok()).collect();
    numbers?.try_into().ok()
}
