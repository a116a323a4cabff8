//! The declaration of BBR version 3.

use super::model::Bbr3;
use super::params::Bbr3Params;
use crate::cc::declaration::{Comparison, Control, Declaration, EcnNeed, Setup};

impl Control for Bbr3Params {
    type Controller = Bbr3;

    const DECLARATION: Declaration = Declaration {
        name: "bbr3",
        summary: "BBR version 3: bounds the data in flight using the losses and marks seen while probing",
        source: "draft-ietf-ccwg-bbr-06",
        slow_starts: &[],
        quic_slow_start: None,
        ecn: EcnNeed::Optional,
        comparison: Comparison::None,
    };

    fn build(&self, setup: &Setup) -> Bbr3 {
        Bbr3::new(*self, setup.seed)
    }
}
