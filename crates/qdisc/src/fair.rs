//! Disciplines that share the link among flows, by a queue per flow or by unequal signals.

pub(crate) mod afcd;
pub(crate) mod afd;
pub(crate) mod cake;
pub(crate) mod cocoa;
pub(crate) mod fq;
pub(crate) mod fq_codel;
pub(crate) mod fq_pie;
pub(crate) mod sfb;
pub(crate) mod sfq;
pub(crate) mod sfq_codel;
