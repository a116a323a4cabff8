//! Profiles: the specification or implementation that a discipline follows.

use std::fmt;

use sojourn_net::Comparison;

/// Which law a discipline follows, where the implementations differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Profile {
    /// The RFC.
    #[default]
    Rfc,
    /// The description of the authors, of a queue that has no RFC.
    Paper,
    /// Linux 6.1, with its fixed-point arithmetic.
    Linux,
    /// Linux 3.14, for studies of its time.
    Linux314,
    /// Linux 6.12, for queues that changed after 6.1.
    Linux612,
}

impl Profile {
    /// The name in a specification.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rfc => "rfc",
            Self::Paper => "paper",
            Self::Linux => "linux",
            Self::Linux314 => "linux-3.14",
            Self::Linux612 => "linux-6.12",
        }
    }

    /// The comparison of a discipline in this profile, of which `linux` was compared with `kernel`.
    pub(crate) const fn compared_with(self, kernel: &'static str) -> Comparison {
        match self {
            Self::Linux => Comparison::With(kernel),
            other => Comparison::OtherProfile {
                used: other.name(),
                compared: Self::Linux.name(),
                with: kernel,
            },
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
