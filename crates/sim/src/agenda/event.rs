//! What can happen in a simulation.

/// Every kind of event, in the order in which events at the same instant are processed: an interval ends before anything
/// else at that instant, and departures from links come before arrivals.
///
/// Small, `Copy`, printable: a trace is a list of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// An interval of the series ends.
    Sample,
    /// The warm-up ends.
    Measure,
    /// A link changes its rate or delay.
    Change(u32),
    /// A flow begins.
    Start(u32),
    /// A flow is aborted.
    Stop(u32),
    /// A link may send its next packet.
    Link(u32),
    /// Something happens on a medium.
    Medium(u32),
    /// The oldest packet on a wire reaches its end.
    Wire(u32),
    /// The next packet on a wire that is not perfect reaches its end.
    Line(u32),
    /// A queue's own timer may be due.
    Queue(u32),
    /// A flow's sender may have a timer due, or its next packet.
    Sender(u32),
    /// A flow's receiver may have a timer due.
    Receiver(u32),
}
