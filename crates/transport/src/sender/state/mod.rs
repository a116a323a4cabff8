//! The parts of a sender's state, each with private fields and no knowledge of the others.

pub(super) mod cwnd_usage;
pub(super) mod ecn;
pub(super) mod pacing;
pub(super) mod rack;
pub(super) mod recovery;
pub(super) mod scoreboard;
pub(super) mod send_buffer;
pub(super) mod timer;
pub(super) mod timestamps;
