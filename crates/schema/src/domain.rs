//! The allowed values of a parameter, as a row declares them.

use crate::{Parameter, Unit};

/// The longest time in nanoseconds: sums of this and a time of the simulation stay far below 2^64 ns.
pub const LONGEST: u64 = 1_000_000_000_000_000;

/// The unit and range of a parameter, and what it means to leave it unset.
#[derive(Clone, Copy, Debug)]
pub struct Domain {
    unit: Unit,
    min: u64,
    max: u64,
    unset: &'static str,
    plain: Option<&'static str>,
}

impl Domain {
    const fn new(unit: Unit, min: u64, max: u64) -> Self {
        let unset = "";
        Self {
            unit,
            min,
            max,
            unset,
            plain: None,
        }
    }

    /// `tc` takes a time as a plain number of this unit, and knows no other form.
    #[must_use]
    pub const fn plain(self, unit: &'static str) -> Self {
        let plain = Some(unit);
        Self { plain, ..self }
    }

    /// States the value that applies if none is given.
    #[must_use]
    pub const fn unset(self, unset: &'static str) -> Self {
        Self { unset, ..self }
    }

    /// A number of packets, after which `p` is accepted.
    #[must_use]
    pub const fn in_packets(self) -> Self {
        let unit = Unit::Packets;
        Self { unit, ..self }
    }

    /// The unit of a count, such as `rounds`, as the documentation names it.
    #[must_use]
    pub const fn of(self, what: &'static str) -> Self {
        let unit = Unit::Count(what);
        Self { unit, ..self }
    }

    /// The parameter `key` with these values; `meaning` is its doc comment.
    pub const fn declare(
        self,
        key: &'static str,
        meaning: &'static str,
        provenance: &'static str,
    ) -> Parameter {
        Parameter {
            key,
            unit: self.unit,
            min: self.min,
            max: self.max,
            unset: self.unset,
            plain: self.plain,
            meaning: without_full_stop(meaning.trim_ascii()),
            provenance,
        }
    }
}

const fn without_full_stop(sentence: &str) -> &str {
    match sentence.as_bytes() {
        [.., b'.'] => sentence.split_at(sentence.len() - 1).0,
        _ => sentence,
    }
}

/// A time in nanoseconds.
pub const fn time(min: u64, max: u64) -> Domain {
    Domain::new(Unit::Time, min, max)
}

/// A time that is a whole number of milliseconds.
pub const fn millis(min: u64, max: u64) -> Domain {
    Domain::new(Unit::Millis, min, max)
}

/// A time that is a whole number of microseconds.
pub const fn micros(min: u64, max: u64) -> Domain {
    Domain::new(Unit::Micros, min, max)
}

/// A bit rate.
pub const fn rate() -> Domain {
    Domain::new(Unit::Rate, 1, u64::MAX)
}

/// A number of bytes.
pub const fn size(min: u64, max: u64) -> Domain {
    Domain::new(Unit::Size, min, max)
}

/// A number of bytes from -`below`, kept as the sum with `below`; `max` is without it.
pub const fn signed_size(below: u32, max: u32) -> Domain {
    Domain::new(Unit::SignedSize(below), 0, below as u64 + max as u64)
}

/// A number of packets.
pub const fn packets(min: u64, max: u64) -> Domain {
    Domain::new(Unit::Packets, min, max)
}

/// A whole number.
pub const fn count(min: u64, max: u64) -> Domain {
    Domain::new(Unit::Count(""), min, max)
}

/// A whole number of these, or `off`, kept as 0; a `min` of 0 makes that another way to write `off`.
pub const fn count_or_off(what: &'static str, min: u64, max: u64) -> Domain {
    Domain::new(Unit::CountOrOff(what), min, max)
}

/// Whole numbers in a row.
pub const fn numbers(min: u64, max: u64) -> Domain {
    Domain::new(Unit::Numbers, min, max)
}

/// A real number above 0; a `min` of 0 is excluded.
pub const fn fraction(min: u64, max: u64) -> Domain {
    Domain::new(Unit::Fraction, min, max)
}

/// A real number from 0.
pub const fn weight(max: u64) -> Domain {
    Domain::new(Unit::Weight, 0, max)
}

/// A percentage.
pub const fn percent(min: u64, max: u64) -> Domain {
    Domain::new(Unit::Percent, min, max)
}

/// A fraction such as `717/1024` or `0.7`, kept as the number of parts of `whole`.
pub const fn ratio(whole: u32, min: u64, max: u64) -> Domain {
    Domain::new(Unit::Ratio(whole), min, max)
}

/// Fractions with commas between them, each kept as the number of parts of `whole`.
pub const fn ratios(whole: u32, min: u64, max: u64) -> Domain {
    Domain::new(Unit::Ratios(whole), min, max)
}

/// A number with at most `places` decimal places, kept as a multiple of the last.
pub const fn decimal(places: u32, min: u64, max: u64) -> Domain {
    Domain::new(Unit::Decimal(places), min, max)
}

/// A byte and a mask, such as `0x1/0x3`, kept as 256 times the byte plus the mask.
pub const fn masked() -> Domain {
    Domain::new(Unit::Masked, 0, 0xFFFF)
}

/// On or off.
pub const fn flag() -> Domain {
    Domain::new(Unit::Flag, 0, 1)
}

/// The specification or implementation to follow.
pub const fn profile() -> Domain {
    Domain::new(Unit::Profile, 0, 0)
}

/// One of a few words.
pub const fn choice(words: &'static [&'static str]) -> Domain {
    Domain::new(Unit::Choice(words), 0, 0)
}

/// A text without spaces and parentheses, described by `what`.
pub const fn word(what: &'static str) -> Domain {
    Domain::new(Unit::Word(what), 0, 0)
}

/// Up to `max` entries with these parameters.
pub const fn entries(parameters: &'static [Parameter], max: u64) -> Domain {
    Domain::new(Unit::Entries(parameters), 0, max)
}

/// Up to `max` specifications inside.
pub const fn leaves(max: u64) -> Domain {
    Domain::new(Unit::Leaves, 1, max)
}
