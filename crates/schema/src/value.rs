//! Types whose values are set by text.

use std::num::NonZero;

use sojourn_net::{Bytes, Duration, Rate};

use crate::parameter::out_of_range;
use crate::{Flaw, Parameter, Unit, Value};

/// Types that are one whole number of the unit, and the same types where there may be no value.
macro_rules! whole {
    ($($type:ty: $kept:expr, $value:expr;)*) => {$(
        impl Value for $type {
            fn text(&self, unit: Unit) -> Option<String> {
                Some(unit.text($kept(*self)))
            }

            fn read(&mut self, parameter: &Parameter, text: &str) -> Result<(), Flaw> {
                *self = $value(parameter.kept(text)?).ok_or_else(|| out_of_range(text))?;
                Ok(())
            }

            fn whole(&self) -> Option<u64> {
                Some($kept(*self))
            }
        }

        impl Value for Option<$type> {
            fn text(&self, unit: Unit) -> Option<String> {
                self.as_ref()?.text(unit)
            }

            fn read(&mut self, parameter: &Parameter, text: &str) -> Result<(), Flaw> {
                *self = $value(parameter.kept(text)?);
                self.map(drop).ok_or_else(|| out_of_range(text))
            }

            fn clear(&mut self) {
                *self = None;
            }

            fn whole(&self) -> Option<u64> {
                self.map($kept)
            }
        }
    )*};
}

whole! {
    u8: u64::from, Some;
    u16: u64::from, Some;
    u32: u64::from, Some;
    usize: |n: usize| n as u64, Some;
    bool: u64::from, |kept: u64| Some(kept != 0);
    Duration: Duration::as_nanos, |kept| Some(Duration::from_nanos(kept));
    Rate: Rate::bits_per_sec, Rate::from_bits_per_sec;
    Bytes: |bytes: Bytes| bytes.0, |kept| Some(Bytes(kept));
}

impl Value for Option<i16> {
    fn text(&self, unit: Unit) -> Option<String> {
        let Unit::SignedSize(below) = unit else {
            return None;
        };
        let kept = i64::from((*self)?) + i64::from(below);
        Some(unit.text(kept.try_into().ok()?))
    }

    fn read(&mut self, parameter: &Parameter, text: &str) -> Result<(), Flaw> {
        let kept: u32 = parameter.kept(text)?;
        let below = match parameter.unit {
            Unit::SignedSize(below) => i64::from(below),
            _ => 0,
        };
        let value = i16::try_from(i64::from(kept) - below);
        *self = Some(value.map_err(|_| out_of_range(text))?);
        Ok(())
    }

    fn clear(&mut self) {
        *self = None;
    }
}

/// Numbers that may be off.
macro_rules! or_off {
    ($($type:ty)+) => {$(
        impl Value for Option<NonZero<$type>> {
            fn text(&self, unit: Unit) -> Option<String> {
                self.map_or(0, NonZero::get).text(unit)
            }

            fn read(&mut self, parameter: &Parameter, text: &str) -> Result<(), Flaw> {
                *self = NonZero::new(parameter.kept(text)?);
                Ok(())
            }

            fn whole(&self) -> Option<u64> {
                Some(self.map_or(0, NonZero::get).into())
            }
        }
    )+};
}

or_off!(u16 u32);

impl Value for f64 {
    fn text(&self, _unit: Unit) -> Option<String> {
        Some(self.to_string())
    }

    fn read(&mut self, parameter: &Parameter, text: &str) -> Result<(), Flaw> {
        *self = parameter.fraction(text)?;
        Ok(())
    }
}

impl Value for Option<f64> {
    fn text(&self, unit: Unit) -> Option<String> {
        self.as_ref()?.text(unit)
    }

    fn read(&mut self, parameter: &Parameter, text: &str) -> Result<(), Flaw> {
        *self = Some(parameter.fraction(text)?);
        Ok(())
    }
}

/// The value of a parameter that is declared at run time: one number, or none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    /// None.
    Unset,
    /// A whole number of the unit; the place of a word in a choice; 1 for on and 0 for off.
    Whole(u64),
    /// A real number.
    Real(f64),
}

impl Value for Scalar {
    fn text(&self, unit: Unit) -> Option<String> {
        match (*self, unit) {
            (Self::Unset, _) => None,
            (Self::Whole(place), Unit::Choice(words)) => {
                let word = words.get(usize::try_from(place).ok()?)?;
                Some((*word).to_owned())
            }
            (Self::Whole(kept), _) => Some(unit.text(kept)),
            (Self::Real(number), _) => Some(number.to_string()),
        }
    }

    fn read(&mut self, parameter: &Parameter, text: &str) -> Result<(), Flaw> {
        *self = match parameter.unit {
            Unit::Choice(words) => {
                let place = words.iter().position(|word| *word == text);
                Self::Whole(place.ok_or_else(|| Flaw::unknown(text))? as u64)
            }
            Unit::Fraction | Unit::Weight | Unit::Percent => Self::Real(parameter.fraction(text)?),
            _ => Self::Whole(parameter.kept(text)?),
        };
        Ok(())
    }

    fn clear(&mut self) {
        *self = Self::Unset;
    }

    fn whole(&self) -> Option<u64> {
        match *self {
            Self::Whole(kept) => Some(kept),
            Self::Unset | Self::Real(_) => None,
        }
    }
}

/// Lists of numbers, and the same where there may be none.
macro_rules! lists {
    ($($type:ty)+) => {$(
        impl<const N: usize> Value for [$type; N] {
            fn text(&self, unit: Unit) -> Option<String> {
                let numbers = self.map(|number| unit.text(number.into()));
                Some(numbers.join(if matches!(unit, Unit::Ratios(_)) { "," } else { " " }))
            }

            fn read(&mut self, parameter: &Parameter, text: &str) -> Result<(), Flaw> {
                *self = read_list(parameter, text)?;
                Ok(())
            }
        }

        impl<const N: usize> Value for Option<[$type; N]> {
            fn text(&self, unit: Unit) -> Option<String> {
                self.as_ref()?.text(unit)
            }

            fn read(&mut self, parameter: &Parameter, text: &str) -> Result<(), Flaw> {
                *self = Some(read_list(parameter, text)?);
                Ok(())
            }
        }
    )+};
}

lists!(u8 u16 u32);

fn read_list<T: TryFrom<u64>, const N: usize>(
    parameter: &Parameter,
    text: &str,
) -> Result<[T; N], Flaw> {
    let (words, what): (Vec<_>, _) = if let Unit::Ratios(_) = parameter.unit {
        (text.split(',').collect(), "values")
    } else {
        let words = text.split([' ', ',']).filter(|word| !word.is_empty());
        (words.collect(), "numbers")
    };
    let given = words.len();
    let wrong = || format!("needs {N} {what}, not {given}");
    if given != N {
        return Err(wrong().into());
    }
    let numbers = words.into_iter().map(|word| parameter.kept(word));
    let numbers = numbers.collect::<Result<Vec<T>, Flaw>>()?;
    numbers.try_into().map_err(|_| wrong().into())
}

#[cfg(test)]
#[expect(
    unreachable_pub,
    reason = "the parameters of a test are public to no one"
)]
mod tests {
    use super::*;
    use crate::{Parameters as _, parameters};

    parameters! {
        /// Parameters of this test.
        #[derive(Clone, Debug, PartialEq)]
        pub struct TestParams {
            /// A time.
            pub wait: Option<Duration> = None => time(1, LONGEST).unset("none"), "this test";
            /// Two numbers in a row.
            pub row: [u8; 2] = [1, 2] => numbers(0, 300), "this test";
            /// Two fractions.
            pub gains: [u16; 2] = [256, 512] => ratios(256, 1, 2_560), "this test";
            /// A number,
            /// or none.
            pub limit: Option<NonZero<u16>> = None => count_or_off("segments", 1, 9), "this test";
            /// A share.
            pub share: f64 = 0.5 => percent(0, 100), "this test";
        }
    }

    /// The text of parameter `key` after it was set.
    fn set(key: &str, text: &str) -> Result<String, String> {
        let mut params = TestParams::default();
        let parameter = params.table().iter().find(|p| p.key == key).expect(key);
        let value = params.value(key).expect(key);
        match parameter.set(value, text) {
            Ok(()) => Ok(parameter.text(value).unwrap_or_default()),
            Err(Flaw::Value(flaw)) => Err(flaw),
            Err(flaw @ (Flaw::Leaf(..) | Flaw::Entry(..))) => panic!("{flaw:?}"),
        }
    }

    #[test]
    fn each_type_reads_what_it_writes() {
        for (key, text, canonical) in [
            ("wait", "0.005s", "5ms"),
            ("row", "3, 4", "3 4"),
            ("gains", "0.5,3/2", "1/2,3/2"),
            ("limit", "off", "off"),
            ("limit", "9", "9"),
            ("share", "12.5%", "12.5"),
        ] {
            assert_eq!(set(key, text).as_deref(), Ok(canonical), "{key} {text}");
            assert_eq!(set(key, canonical).as_deref(), Ok(canonical), "{key}");
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for (key, text, flaw) in [
            ("wait", "0ns", "0ns is out of range"),
            // In the range that is declared, but not of the type.
            ("row", "1 256", "256 is out of range"),
            ("row", "1 2 3", "needs 2 numbers, not 3"),
            ("gains", "1", "needs 2 values, not 1"),
            ("gains", "1,11", "11 is out of range"),
            ("limit", "0", "0 is out of range"),
            ("share", "0", "0 is out of range"),
            ("share", "x", "\"x\" is not a number"),
        ] {
            assert_eq!(set(key, text), Err(flaw.to_owned()), "{key} {text}");
        }
    }

    #[test]
    fn lines_of_a_doc_comment_are_one_sentence() {
        let meaning = |key| TestParams::PARAMETERS.iter().find(|p| p.key == key);
        assert_eq!(
            meaning("limit").map(|p| p.meaning),
            Some("A number, or none")
        );
    }
}
