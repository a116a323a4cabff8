//! Access to the fields of parameter structs by key.

use sojourn_net::{Bytes, Duration, Rate};

use super::choice::Choice;
use super::leaves::{Leaf, LeafList};
use super::profile::Profile;
use super::row::Row;

/// A place where a value is kept, lent by the parameters of a discipline.
#[derive(Debug)]
pub enum Field<'a> {
    /// A length of time.
    Time(&'a mut Duration),
    /// A length of time, or none.
    OptionalTime(&'a mut Option<Duration>),
    /// A bit rate, or none.
    OptionalRate(&'a mut Option<Rate>),
    /// A number of bytes.
    Size(&'a mut Bytes),
    /// A number of bytes, or none.
    OptionalSize(&'a mut Option<Bytes>),
    /// A number of packets.
    Packets(&'a mut usize),
    /// A whole number.
    Count(&'a mut u32),
    /// Numbers in a row, or none.
    Numbers(&'a mut dyn Row),
    /// A whole number, or none.
    OptionalCount(&'a mut Option<u32>),
    /// A real number.
    Fraction(&'a mut f64),
    /// A real number, or none.
    OptionalFraction(&'a mut Option<f64>),
    /// On or off.
    Flag(&'a mut bool),
    /// The specification or implementation to follow.
    Profile(&'a mut Profile),
    /// One of a few words.
    Choice(&'a mut dyn Choice),
    /// The queues inside.
    Leaves(&'a mut dyn LeafList),
}

/// The type of a parameter, which decides how its field is read and written.
pub trait Value {
    /// The field as one of the kinds that [`Field`] knows.
    fn lend(&mut self) -> Field<'_>;
}

macro_rules! values {
    ($($type:ty => $field:ident,)*) => {
        $(impl Value for $type {
            fn lend(&mut self) -> Field<'_> {
                Field::$field(self)
            }
        })*
    };
}

values! {
    Duration => Time,
    Option<Duration> => OptionalTime,
    Option<Rate> => OptionalRate,
    Bytes => Size,
    Option<Bytes> => OptionalSize,
    usize => Packets,
    u32 => Count,
    Option<u32> => OptionalCount,
    [u8; 16] => Numbers,
    Option<[u8; 16]> => Numbers,
    Option<[u32; 3]> => Numbers,
    f64 => Fraction,
    Option<f64> => OptionalFraction,
    bool => Flag,
    Profile => Profile,
}

impl<L: Leaf> Value for Vec<L> {
    fn lend(&mut self) -> Field<'_> {
        Field::Leaves(self)
    }
}

impl Field<'_> {
    /// The value as it is read back; nothing if there is none.
    pub fn text(&self) -> Option<String> {
        Some(match self {
            Field::Time(time) => time_text(**time),
            Field::OptionalTime(time) => time_text((**time)?),
            Field::OptionalRate(rate) => (**rate)?.to_string(),
            Field::Size(size) => size_text(**size),
            Field::OptionalSize(size) => size_text((**size)?),
            Field::Packets(n) => n.to_string(),
            Field::Count(n) => n.to_string(),
            Field::OptionalCount(n) => (**n)?.to_string(),
            Field::Numbers(numbers) => numbers.text()?,
            Field::Fraction(x) => x.to_string(),
            Field::OptionalFraction(x) => (**x)?.to_string(),
            Field::Flag(flag) => (if **flag { "on" } else { "off" }).into(),
            Field::Profile(profile) => profile.to_string(),
            Field::Choice(choice) => choice.word().into(),
            Field::Leaves(leaves) => leaves.text()?,
        })
    }
}

/// `5ms`, `12500us`: the largest unit that leaves a whole number.
pub fn time_text(time: Duration) -> String {
    match time.as_nanos() {
        ns if ns % 1_000_000_000 == 0 && ns > 0 => format!("{}s", ns / 1_000_000_000),
        ns if ns % 1_000_000 == 0 => format!("{}ms", ns / 1_000_000),
        ns if ns % 1_000 == 0 => format!("{}us", ns / 1_000),
        ns => format!("{ns}ns"),
    }
}

fn size_text(size: Bytes) -> String {
    format!("{}b", size.0)
}
