//! Where a discipline comes from, for a reader of results.

use sojourn_net::Comparison;

/// What a reader of results must know of a discipline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Provenance {
    /// Its name.
    pub name: &'static str,
    /// As [`Kind::reconstruction`](super::Kind::reconstruction).
    pub reconstruction: Option<&'static str>,
    /// The implementation that it was compared with.
    pub comparison: Comparison,
}
