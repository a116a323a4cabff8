//! Disciplines that keep one queue, or one per service class: tail drop and active queue management.

pub(crate) mod blue;
pub(crate) mod choke;
pub(crate) mod cobalt;
pub(crate) mod codel;
pub(crate) mod droptail;
pub(crate) mod dualpi2;
pub(crate) mod floq;
pub(crate) mod hred;
pub(crate) mod pie;
pub(crate) mod predict;
pub(crate) mod red;
pub(crate) mod red_ns2;
