//! Comparisons of models with real implementations.

/// The real implementation that the behaviour of a model was compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Comparison {
    /// There was no comparison.
    None,
    /// A part of the behaviour was compared: the implementation, and the part.
    Partial(&'static str),
    /// The behaviour was compared with this implementation.
    With(&'static str),
}
