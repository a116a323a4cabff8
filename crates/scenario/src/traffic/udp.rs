//! UDP streams at a mean bit rate: `type = "udp"`.

use std::sync::Arc;

use sojourn_apps::{MAX_UDP_PAYLOAD, Spacing, UdpConfig};
use sojourn_net::{Bytes, Duration, Rate, Rng};

use super::block::{Source, TrafficProperties, TrafficType};
use crate::declare::{Keys, choices, keys, one_of};
use crate::key::Form;
use crate::plan::Traffic;
use crate::value::Table;

/// The payload of a datagram.
pub(super) const PAYLOAD: Form = Form::Size(1, MAX_UDP_PAYLOAD.0);

/// Gaps between datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gaps {
    Even,
    Poisson,
}

impl Gaps {
    const ALL: [Self; 2] = [Self::Even, Self::Poisson];

    const fn name(self) -> &'static str {
        match self {
            Self::Even => "even",
            Self::Poisson => "poisson",
        }
    }
}

choices! {
    Gaps: "spacing";
}

keys! {
    /// Settings of a UDP block.
    #[derive(Clone, Copy, Debug)]
    struct Udp {
        /// Rate of the payload.
        rate: Rate = Form::RATE, required "\"1mbit\"";
        /// Payload of a datagram.
        payload: Bytes = PAYLOAD, default "1448b";
        /// Each gap is multiplied by a random factor between 1 - spread and 1 + spread.
        spread: Option<f64> = Form::Number(0.0, 1.0), default "0";
        /// Gaps between datagrams: even, or exponential (poisson).
        spacing: Gaps = one_of::<Gaps>(), usual "even";
        /// Time from the start of a flow to its first datagram; by default random, within the mean gap.
        phase: Option<Duration> = Form::TIME;
    }
}

pub(super) const TYPE: TrafficType = TrafficType {
    name: "udp",
    keys: &[Udp::KEYS],
    properties: TrafficProperties::DATAGRAMS,
    read: |fields, _| {
        let mut udp = Udp::read(fields)?;
        if udp.spacing == Gaps::Poisson {
            if let Some(place) = fields.get("spread") {
                return Err(place.fail("not allowed with spacing = \"poisson\""));
            }
            udp.spread = None;
        }
        Ok(Arc::new(udp))
    },
};

impl Source for Udp {
    fn write(&self, fields: &mut Table) {
        Keys::write(self, fields);
    }

    fn plan(&self, _: Rng) -> Traffic {
        Traffic::datagrams(UdpConfig {
            rate: self.rate,
            payload: self.payload,
            spacing: match self.spread {
                Some(spread) => Spacing::Even { spread },
                None => Spacing::Poisson,
            },
            phase: self.phase.into(),
        })
    }
}
