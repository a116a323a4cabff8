//! The provenance of a discipline: reconstruction, and comparison with a real implementation.

use sojourn_net::Comparison;

/// The provenance of a discipline, as reported with results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Provenance {
    /// Its name.
    pub name: &'static str,
    /// As [`Kind::reconstruction`](super::Kind::reconstruction).
    pub reconstruction: Option<&'static str>,
    /// The implementation that it was compared with.
    pub comparison: Comparison,
}
