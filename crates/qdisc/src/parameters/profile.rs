//! Profiles: the specification or implementation that a discipline follows.

use std::fmt;

/// Which law a discipline follows, where the implementations differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Profile {
    /// The RFC, or the paper where there is none.
    #[default]
    Rfc,
    /// Linux 6.1, with its fixed-point arithmetic.
    Linux,
    /// Linux 3.14, for studies of its time.
    Linux314,
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rfc => "rfc",
            Self::Linux => "linux",
            Self::Linux314 => "linux-3.14",
        })
    }
}
