//! Building blocks that several disciplines share: buffers, rounds, classes, framing, clocks.

pub(crate) mod classes;
pub(crate) mod fifo;
pub(crate) mod fixed;
pub(crate) mod framing;
pub(crate) mod jiffies;
pub(crate) mod leaf;
pub(crate) mod memory;
pub(crate) mod pool;
pub(crate) mod priority;
pub(crate) mod round;
pub(crate) mod shadow;
