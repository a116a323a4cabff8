//! The differentiated services code point.

use core::fmt;
use core::str::FromStr;

/// The class that the sender of a packet asks for: six bits of the IP header (RFC 2474).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Dscp(u8);

/// The text is neither the name nor the number of a [`Dscp`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DscpError;

impl Dscp {
    /// Best effort, also called CS0.
    pub const DEFAULT: Self = Self(0);
    /// Lower effort (RFC 8622).
    pub const LE: Self = Self(1);
    /// Expedited forwarding (RFC 3246).
    pub const EF: Self = Self(46);
    /// Admitted voice (RFC 5865).
    pub const VA: Self = Self(44);

    /// The code point of this number; none above 63.
    pub const fn new(number: u8) -> Option<Self> {
        if number < 64 {
            Some(Self(number))
        } else {
            None
        }
    }

    /// Its number, 0 to 63.
    #[inline]
    pub const fn number(self) -> u8 {
        self.0
    }
}

impl FromStr for Dscp {
    type Err = DscpError;

    /// Reads `CS0` to `CS7`, `AF11` to `AF43`, `EF`, `VA`, `LE`, `BE` or a number up to 63.
    fn from_str(text: &str) -> Result<Self, DscpError> {
        let named = |name: &str| text.eq_ignore_ascii_case(name);
        let group = text.get(..2).unwrap_or_default();
        match *text.as_bytes() {
            _ if named("BE") => Ok(Self::DEFAULT),
            _ if named("LE") => Ok(Self::LE),
            _ if named("EF") => Ok(Self::EF),
            _ if named("VA") => Ok(Self::VA),
            [_, _, class @ b'0'..=b'7'] if group.eq_ignore_ascii_case("CS") => {
                Ok(Self(8 * (class - b'0')))
            }
            [_, _, class @ b'1'..=b'4', drop @ b'1'..=b'3'] if group.eq_ignore_ascii_case("AF") => {
                Ok(Self(8 * (class - b'0') + 2 * (drop - b'0')))
            }
            _ => text.parse().ok().and_then(Self::new).ok_or(DscpError),
        }
    }
}

impl fmt::Display for Dscp {
    /// The name if it has one, else the number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (class, rest) = (self.0 / 8, self.0 % 8);
        match (*self, class, rest) {
            (Self::LE, ..) => f.write_str("LE"),
            (Self::VA, ..) => f.write_str("VA"),
            (Self::EF, ..) => f.write_str("EF"),
            (_, class, 0) => write!(f, "CS{class}"),
            (_, 1..=4, 2 | 4 | 6) => write!(f, "AF{class}{}", rest / 2),
            _ => write!(f, "{}", self.0),
        }
    }
}

impl fmt::Display for DscpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected CS0 to CS7, AF11 to AF43, EF, VA, LE, BE or 0 to 63")
    }
}

impl core::error::Error for DscpError {}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::string::ToString;

    use super::*;

    #[test]
    fn every_code_point_reads_back() {
        for number in 0..64 {
            let dscp = Dscp::new(number).ok_or(DscpError);
            assert_eq!(dscp.and_then(|d| d.to_string().parse()), dscp);
            assert_eq!(number.to_string().parse(), dscp);
        }
        assert_eq!(Dscp::new(64), None);
    }

    #[test]
    fn names_are_those_of_the_rfcs() {
        let names = [
            ("CS1", 8),
            ("af11", 10),
            ("AF43", 38),
            ("cs5", 40),
            ("EF", 46),
            ("BE", 0),
        ];
        for (name, number) in names {
            assert_eq!(name.parse().map(Dscp::number), Ok(number), "{name}");
        }
        for wrong in [
            "",
            "CS8",
            "AF14",
            "AF51",
            "64",
            "-1",
            "CS",
            "e\u{301}f",
            "EFF",
        ] {
            assert_eq!(wrong.parse::<Dscp>(), Err(DscpError), "{wrong}");
        }
    }
}
