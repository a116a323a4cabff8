//! The declaration of BBR version 1.

use super::Bbr;
use super::params::BbrParams;
use crate::cc::declaration::{Comparison, Control, Declaration, EcnNeed, Setup};

impl Control for BbrParams {
    type Controller = Bbr;

    const DECLARATION: Declaration = Declaration {
        name: "bbr",
        summary: "BBR version 1: paces at the measured bandwidth and ignores most losses",
        source: "draft-cardwell-iccrg-bbr-congestion-control-00; Linux 6.1 tcp_bbr",
        slow_starts: &[],
        quic_slow_start: None,
        ecn: EcnNeed::Optional,
        comparison: Comparison::With("Linux 6.1"),
    };

    fn build(&self, setup: &Setup) -> Bbr {
        Bbr::new(*self, setup.seed)
    }
}
