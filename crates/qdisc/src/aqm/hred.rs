//! HRED: Harsh RED, which reacts within a configured round-trip time.
//!
//! # Source
//!
//! Järvinen et al., "Harsh RED" (AINA 2012), and Järvinen and Kojo (LCN 2014). The available
//! parts give the purpose of HRED: few flows at the edge of the network, to whose slow start RED with
//! the usual parameters responds too late, with tail drops or with a burst of forced drops. **They do
//! not give its parameters: those here are a reconstruction.**
//!
//! # Algorithm
//!
//! [`crate::Ns2Red`], gentle and without wait, in packets, with thresholds derived from the packets
//! in flight on a path with the given round-trip time and rate.
//!
//! Values and their reasons: `docs/qdiscs/hred.md`.

use sojourn_net::{Bytes, Duration, Instant, Packet, Rate, Rng};

use crate::aqm::red;
use crate::aqm::red_ns2::{Ns2Red, Ns2RedParams};
use crate::contract::Observer;
use crate::parameters::{Kind, LinkFacts, Params, Profile, Retention, TcStatistics, parameters};

/// The queue that HRED builds.
pub type Hred<P> = Ns2Red<P>;

parameters! {
    /// Parameters of HRED, which builds a [`Ns2Red`].
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct HredParams {
        /// Round-trip time that the queue is tuned for.
        pub rtt: Duration = Duration::from_millis(100) => time(1_000, LONGEST),
            "reconstruction";
        /// Link rate.
        pub bandwidth: Option<Rate> = None => rate().unset("the link's rate, else 10mbit"),
            "reconstruction";
        /// Maximum number of packets in the buffer.
        pub limit: Option<u32> = None => count(1, 100_000_000).unset("2 * max"),
            "reconstruction";
        /// Weight of a sample in the average.
        pub q_weight: f64 = 0.05 => fraction(0, 1),
            "reconstruction";
        /// Average backlog above which packets are signalled at random, in bandwidth-delay products.
        pub min: f64 = 0.25 => fraction(0, 1_000),
            "reconstruction";
        /// Average backlog at which the probability reaches its maximum, in bandwidth-delay products.
        pub max: f64 = 2.0 => fraction(0, 1_000),
            "reconstruction";
        /// Probability of a signal at max.
        pub probability: f64 = 0.5 => fraction(0, 1),
            "reconstruction";
        /// Mark ECN-capable packets instead of dropping them, except forced drops.
        pub ecn: bool = false => flag(),
            "ns-2 tcl/lib/ns-default.tcl: setbit_";
    }
}

impl HredParams {
    /// The RED that they come to on a link of `rate` with packets of `mtu` bytes.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a path holds far fewer than 2^32 packets, and a float saturates"
    )]
    pub fn derive(&self, rate: Option<Rate>, mtu: Bytes) -> Ns2RedParams {
        let rate = self.bandwidth.or(rate).unwrap_or(Rate::mbit(10));
        let in_flight = rate.carries(self.rtt).0 as f64 / mtu.0.max(1) as f64;
        let min = f64::max(4.0, self.min * in_flight);
        let max = f64::max(min + 8.0, self.max * in_flight);
        Ns2RedParams {
            limit: self.limit.unwrap_or((2.0 * max).ceil() as u32),
            min: Some(min),
            max: Some(max),
            q_weight: Some(self.q_weight),
            probability: self.probability,
            mean_pktsize: mtu,
            bandwidth: Some(rate),
            bytes: false,
            wait: false,
            ecn: self.ecn,
            ..Ns2RedParams::default()
        }
    }
}

impl Params for HredParams {
    type Queue<P: Packet> = Ns2Red<P>;

    const KINDS: &'static [Kind<Self>] = &[Kind {
        name: "hred",
        class: Some("Hred"),
        summary: "Harsh RED: red_ns2 tuned to react within one round trip (reconstructed)",
        source: "Järvinen et al. 2012; Järvinen and Kojo 2014",
        reconstruction: Some(
            "the available sources do not specify the weight, thresholds or probability; the \
             values here are derived from the purpose of HRED",
        ),
        profiles: &[Profile::Paper],
        start: Self::default,
        parameters: Self::PARAMETERS,
    }];

    const TC_STATISTICS: TcStatistics = TcStatistics::of(red::COUNTERS);

    fn conflict(&self) -> Option<String> {
        (self.min >= self.max).then(|| format!("min {} must be below max {}", self.min, self.max))
    }

    fn build<P: Packet>(&self, link: &LinkFacts, rng: Rng) -> Ns2Red<P> {
        Ns2Red::new(&self.derive(link.rate, link.mtu), link.rate, rng)
    }

    fn change_to(&self, _next: &Self) -> Result<Retention, String> {
        Ok(Retention::Keeps)
    }

    fn change<P: Packet>(
        &self,
        queue: &mut Ns2Red<P>,
        _now: Instant,
        link: &LinkFacts,
        _obs: &mut dyn Observer<P>,
    ) {
        queue.change(&self.derive(link.rate, link.mtu), link.rate);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thresholds_follow_the_path() {
        let params = HredParams::default();
        let red = params.derive(Some(Rate::mbit(20)), Bytes(1_500));
        // 250 kB in flight are 166.7 packets.
        let (min, max) = (red.min.unwrap_or_default(), red.max.unwrap_or_default());
        assert!((min - 41.667).abs() < 0.001, "{min}");
        assert!((max - 333.333).abs() < 0.001, "{max}");
        assert_eq!(red.limit, 667);
        assert_eq!((red.q_weight, red.probability), (Some(0.05), 0.5));
        assert!(red.gentle && !red.wait && !red.bytes && !red.nonlinear);
        assert_eq!(red.mean_pktsize, Bytes(1_500));
        assert_eq!(red.bandwidth, Some(Rate::mbit(20)));
        assert!(!red.ecn);
        let marking = HredParams {
            ecn: true,
            ..params
        };
        assert!(marking.derive(None, Bytes(1_500)).ecn);
    }

    #[test]
    fn a_short_path_leaves_room_for_a_few_packets() {
        let params = HredParams {
            rtt: Duration::from_millis(1),
            ..HredParams::default()
        };
        let red = params.derive(Some(Rate::mbit(1)), Bytes(1_500));
        assert_eq!((red.min, red.max, red.limit), (Some(4.0), Some(12.0), 24));
    }
}
