//! States whether a model was compared with a real implementation.

/// The comparison of a model with a real implementation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Comparison {
    /// Not compared.
    None,
    /// Compared in part: the implementation and the part of the behaviour.
    Partial(&'static str),
    /// Another profile than the one in use was compared.
    OtherProfile {
        /// The profile in use.
        used: &'static str,
        /// The profile that was compared.
        compared: &'static str,
        /// The implementation that it was compared with.
        with: &'static str,
    },
    /// Compared with this implementation.
    With(&'static str),
}
