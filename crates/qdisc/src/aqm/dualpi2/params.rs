//! The parameters of DualPI2 and what derives from them.

use sojourn_net::{Bytes, Duration, Rate};

use super::{Scheduler, signed};
use crate::parameters::{LinkFacts, Profile, choice, parameters};

choice! {
    /// When the base probability is applied to a packet.
    DropEarly {
        /// On departure.
        Dequeue = "drop_dequeue",
        /// On arrival.
        Enqueue = "drop_enqueue",
    }
}

choice! {
    /// Which packets go to the L queue.
    EcnMask {
        /// ECT(1) and CE.
        L4s = "l4s_ect",
        /// ECT(0), ECT(1) and CE.
        Any = "any_ect",
    }
}

parameters! {
    /// Parameters of [`DualPi2`](super::DualPi2); unset ones have the profile's own values.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct DualPi2Params {
        /// Maximum number of packets in both queues together.
        pub limit: usize = 10_000 => packets(1, 100_000_000),
            "net/sched/sch_dualpi2.c: dualpi2_reset_default, sch->limit";
        /// Maximum kernel memory of both queues together; rfc: bytes of packets.
        pub memlimit: Option<Bytes> = None
            => size(1_514, 1 << 40).unset("250 ms at the link rate; linux: limit * 2 MTU"),
            "RFC 9332 appendix A.1: limit; net/sched/sch_dualpi2.c: dualpi2_sched_data.memory_limit";
        /// Target queueing delay of the Classic queue.
        pub target: Duration = Duration::from_millis(15) => time(1, LONGEST),
            "RFC 9332 appendix A.1: target; net/sched/sch_dualpi2.c: pi2_target";
        /// Longest round-trip time at which control is stable; profile linux: sets target, tupdate, alpha and beta.
        pub max_rtt: Option<Duration> = None
            => time(1_000, LONGEST).unset("100ms; linux: 6 * typical_rtt if that is set"),
            "RFC 9332 appendix A.1: RTT_max; iproute2 tc/q_dualpi2.c";
        /// Typical round-trip time: sets target, tupdate, alpha and beta; profile linux.
        pub typical_rtt: Option<Duration> = None
            => time(1_000, LONGEST).unset("max_rtt / 6 if that is set"),
            "iproute2 tc/q_dualpi2.c";
        /// Time between updates of the probability.
        pub tupdate: Option<Duration> = None
            => time(1_000, LONGEST).unset("min(target, max_rtt / 3); linux: 16ms"),
            "RFC 9332 appendix A.1: Tupdate; net/sched/sch_dualpi2.c: pi2_tupdate";
        /// Gain on the deviation from target, in 1/s.
        pub alpha: Option<f64> = None
            => fraction(0, 1_000_000).unset("0.1 * tupdate / max_rtt^2; linux: 41/256"),
            "RFC 9332 appendix A.1: alpha; net/sched/sch_dualpi2.c: pi2_alpha";
        /// Gain on the change of the delay, in 1/s.
        pub beta: Option<f64> = None => fraction(0, 1_000_000).unset("0.3 / max_rtt; linux: 819/256"),
            "RFC 9332 appendix A.1: beta; net/sched/sch_dualpi2.c: pi2_beta";
        /// Ratio of the L4S marking probability to the base probability.
        pub coupling_factor: u32 = 2 => count(1, 255),
            "RFC 9332 section 2.1 and appendix A.1: k; net/sched/sch_dualpi2.c: coupling_factor";
        /// Sojourn time above which L4S packets are marked regardless of the probability.
        pub step_thresh: Option<Duration> = None => time(0, LONGEST).unset("800us; linux: 1ms"),
            "RFC 9332 appendix A.1: minTh; net/sched/sch_dualpi2.c: step_thresh";
        /// Width of the ramp above `step_thresh` over which the L4S marking probability rises to 1; profile rfc.
        pub range: Option<Duration> = None
            => time(0, LONGEST).unset("0 if step_thresh is given, else 400us"),
            "RFC 9332 appendix A.1: range";
        /// Number of queued L4S packets up to which `step_thresh` does not apply; profile rfc.
        pub th_len: Option<u32> = None => count(0, 100_000_000).unset("1"),
            "RFC 9332 appendix A.1: Th_len";
        /// Minimum number of L4S packets queued on arrival of a packet for `step_thresh` to apply to it; profile linux.
        pub min_qlen_step: Option<u32> = None => count(0, 100_000_000).in_packets().unset("0"),
            "net/sched/sch_dualpi2.c: min_qlen_step";
        /// When the probability is applied: on departure of a packet or, profile linux, on arrival.
        pub drop_early: DropEarly = DropEarly::Dequeue => choice(DropEarly::WORDS),
            "net/sched/sch_dualpi2.c: drop_early; iproute2 tc/q_dualpi2.c";
        /// Packets that go to the L4S queue: ECT(1) and CE, or also ECT(0).
        pub ecn_mask: EcnMask = EcnMask::L4s => choice(EcnMask::WORDS),
            "RFC 9332 section 2.3; net/sched/sch_dualpi2.c: ecn_mask; iproute2 tc/q_dualpi2.c";
        /// Packets with the DSCP of NQB (45) go to the L4S queue, whatever their ECN field.
        pub nqb: bool = false => flag(),
            "RFC 9956; RFC 9332 section 2.3 and 2.5.1.1";
        /// Redirect packets of flows that build the L4S queue to the Classic queue.
        pub queue_protection: bool = false => flag(),
            "RFC 9957 section 4: QPROTECT_ON";
        /// Delay of the L4S queue below which queue protection redirects no packet.
        pub qp_latency_threshold: Option<Duration> = None
            => time(1_000, LONGEST).unset("step_thresh + range"),
            "RFC 9957 section 4.1: CRITICALqL, MAXTH";
        /// Queuing score of a flow from which its packets are redirected at `qp_latency_threshold`.
        pub qp_queuing_score_threshold: Option<Duration> = None
            => time(1_000, 5_000_000_000).unset("4ms"),
            "RFC 9957 section 4.1: CRITICALqLSCORE";
        /// Rate at which queuing scores fall: 2 to the power of this, in bytes per 2^30 ns.
        pub qp_drain_rate_exponent: Option<u32> = None => count(1, 30).unset("19"),
            "RFC 9957 section 4.1: LG_AGING";
        /// Share of the link for the Classic queue while both queues hold packets, in percent.
        pub classic_protection: Option<f64> = None => percent(0, 100).unset("6.25; linux: 10"),
            "RFC 9332 section 4.2.2 and appendix A.2: scheduler weight 1/16; net/sched/sch_dualpi2.c: c_protection_wc";
        /// Serve the older head packet, with this much subtracted from the age of Classic packets; profile rfc.
        pub tshift: Option<Duration> = None => time(0, LONGEST).unset("off"),
            "RFC 9332 section 4.2.2 and appendix A.2: tshift of the time-shifted FIFO";
        /// Drop L4S packets in overload instead of letting the buffer overflow.
        pub drop_on_overload: bool = true => flag(),
            "RFC 9332 section 4.2.3; net/sched/sch_dualpi2.c: drop_overload";
        /// RFC or version of Linux to follow.
        pub profile: Profile = Profile::Linux => profile(),
            "Sojourn parameter";
    }
}

/// The gains of the kernel in 2^-8 Hz: 0.16 and 3.2 Hz, nearly.
pub(super) const LINUX_ALPHA: u32 = 41;
pub(super) const LINUX_BETA: u32 = 819;

/// The gains that the kernel takes, in Hz: 1/256, and below 2^24/256.
const LEAST_GAIN: f64 = 1.0 / 256.0;
const MOST_GAIN: f64 = 65_536.0;

impl DualPi2Params {
    /// The time between updates.
    pub fn tupdate(&self) -> Duration {
        self.tupdate.unwrap_or(match self.profile {
            Profile::Rfc | Profile::Paper | Profile::Kernel => {
                let third = Duration::from_nanos(self.max_rtt().as_nanos() / 3);
                self.target.min(third).max(Duration::from_micros(1))
            }
            Profile::Linux | Profile::Linux314 | Profile::Linux612 => Duration::from_millis(16),
        })
    }

    /// Sets what iproute2 derives of `max_rtt` and `typical_rtt`, which it does not pass on, and says what that overrides.
    pub(super) fn derive_of_rtt(&mut self) -> Result<Option<String>, String> {
        if self.profile == Profile::Rfc || (self.max_rtt, self.typical_rtt) == (None, None) {
            return Ok(None);
        }
        let micros = |time: Option<Duration>| time.map(|time| time.as_nanos() / 1_000);
        let (max, typical) = match (micros(self.max_rtt), micros(self.typical_rtt)) {
            (max, Some(typical)) => (max.unwrap_or(6 * typical), typical),
            (max, None) => (max.unwrap_or(0), (max.unwrap_or(0) / 6).max(1)),
        };
        if typical > max {
            return Err("typical_rtt must not exceed max_rtt".into());
        }
        let tupdate = typical.min(max / 3).max(1);
        // Single precision, as there: 0.3 / 100 ms is 768/256 and not 767/256.
        let (tenth, three_tenths) = (f64::from(0.1_f32), f64::from(0.3_f32));
        let (rtt, update) = (
            Duration::from_micros(max).as_secs_f64(),
            Duration::from_micros(tupdate).as_secs_f64(),
        );
        let gain = |hertz: f64| (hertz * 256.0).floor() / 256.0;
        let (alpha, beta) = (gain(update / rtt / rtt * tenth), gain(three_tenths / rtt));
        if beta >= MOST_GAIN {
            return Err(format!(
                "max_rtt {} makes beta too large, as in tc; raise it",
                crate::parameters::time_text(Duration::from_micros(max))
            ));
        }
        if alpha == 0.0 || beta == 0.0 {
            return Err(format!(
                "max_rtt {} makes alpha or beta less than 1/256, as in tc; lower it or raise typical_rtt",
                crate::parameters::time_text(Duration::from_micros(max))
            ));
        }
        let overrides = self.target != Self::default().target
            || self.tupdate.is_some()
            || self.alpha.is_some()
            || self.beta.is_some();
        self.target = Duration::from_micros(typical);
        self.tupdate = Some(Duration::from_micros(tupdate));
        (self.alpha, self.beta) = (Some(alpha), Some(beta));
        (self.max_rtt, self.typical_rtt) = (None, None);
        let note = "max_rtt and typical_rtt override target, tupdate, alpha and beta, as in tc";
        Ok(overrides.then(|| note.into()))
    }

    /// Rounds a share to whole percent, as iproute2 does; refuses gains that the kernel refuses.
    pub(super) fn round_as_tc(&mut self) -> Result<Option<String>, String> {
        if self.profile == Profile::Rfc {
            return Ok(None);
        }
        for (key, gain) in [("alpha", self.alpha), ("beta", self.beta)] {
            if let Some(gain) = gain.filter(|gain| !(LEAST_GAIN..MOST_GAIN).contains(gain)) {
                return Err(format!(
                    "{key} {gain} is out of range in the kernel; expected {LEAST_GAIN} to {MOST_GAIN}"
                ));
            }
        }
        let Some(share) = self.classic_protection.filter(|share| share.fract() != 0.0) else {
            return Ok(None);
        };
        let whole = share.round_ties_even();
        if whole == 0.0 {
            return Err(format!(
                "tc rounds classic_protection {share} to 0; expected 1 to 100"
            ));
        }
        self.classic_protection = Some(whole);
        Ok(Some(format!(
            "classic_protection: {whole}, not {share}: tc takes a whole percentage"
        )))
    }

    pub(super) fn max_rtt(&self) -> Duration {
        self.max_rtt.unwrap_or(Duration::from_millis(100))
    }

    pub(super) fn memlimit(&self, rate: Option<Rate>, mtu: Bytes) -> Bytes {
        self.memlimit.unwrap_or(match (self.profile, rate) {
            (Profile::Rfc, Some(rate)) => rate
                .carries(Duration::from_millis(250))
                .max(Bytes(2 * mtu.0)),
            (Profile::Rfc, None) => Bytes(u64::MAX),
            // In 32 bits.
            _ => Bytes(
                (self.limit as u64)
                    .saturating_mul(2 * mtu.0)
                    .min(u32::MAX.into()),
            ),
        })
    }

    /// The gains of the controller, in Hz.
    pub(super) fn gains(&self) -> (f64, f64) {
        let (alpha, beta) = match self.profile {
            Profile::Rfc | Profile::Paper | Profile::Kernel => {
                let rtt_max = self.max_rtt().as_secs_f64();
                let tupdate = self.tupdate().as_secs_f64();
                (0.1 * tupdate / (rtt_max * rtt_max), 0.3 / rtt_max)
            }
            Profile::Linux | Profile::Linux314 | Profile::Linux612 => (
                f64::from(LINUX_ALPHA) / 256.0,
                f64::from(LINUX_BETA) / 256.0,
            ),
        };
        (self.alpha.unwrap_or(alpha), self.beta.unwrap_or(beta))
    }

    pub(super) fn step_thresh(&self) -> Duration {
        self.step_thresh.unwrap_or(match self.profile {
            Profile::Rfc | Profile::Paper | Profile::Kernel => Duration::from_micros(800),
            Profile::Linux | Profile::Linux314 | Profile::Linux612 => Duration::from_millis(1),
        })
    }

    /// The delay of L below which no packet is sanctioned.
    pub(super) fn qp_latency_threshold(&self) -> Duration {
        self.qp_latency_threshold.unwrap_or(match self.profile {
            Profile::Rfc | Profile::Paper | Profile::Kernel => self.step_thresh() + self.range(),
            Profile::Linux | Profile::Linux314 | Profile::Linux612 => self.step_thresh(),
        })
    }

    pub(super) fn qp_queuing_score_threshold(&self) -> Duration {
        self.qp_queuing_score_threshold
            .unwrap_or(Duration::from_millis(4))
    }

    pub(super) fn qp_drain_rate_exponent(&self) -> u32 {
        self.qp_drain_rate_exponent.unwrap_or(19)
    }

    fn classic_protection(&self) -> f64 {
        self.classic_protection.unwrap_or(match self.profile {
            Profile::Rfc | Profile::Paper | Profile::Kernel => 6.25,
            Profile::Linux | Profile::Linux314 | Profile::Linux612 => 10.0,
        })
    }

    /// Sets what both profiles have to its value on `link`.
    pub(super) fn set_derived(&mut self, link: &LinkFacts) {
        let (alpha, beta) = self.gains();
        let memlimit = self.memlimit(link.rate, link.mtu);
        self.memlimit = (memlimit.0 < u64::MAX).then_some(memlimit);
        if self.queue_protection {
            self.qp_latency_threshold = Some(self.qp_latency_threshold());
            self.qp_queuing_score_threshold = Some(self.qp_queuing_score_threshold());
            self.qp_drain_rate_exponent = Some(self.qp_drain_rate_exponent());
        }
        self.tupdate = Some(self.tupdate());
        (self.alpha, self.beta) = (Some(alpha), Some(beta));
        if self.profile == Profile::Rfc {
            // A threshold that is given makes the default of the ramp a step.
            self.range = Some(self.range());
        } else {
            self.min_qlen_step = Some(self.min_qlen_step.unwrap_or(0));
        }
        self.step_thresh = Some(self.step_thresh());
        if self.tshift.is_none() {
            self.classic_protection = Some(self.classic_protection());
        }
    }

    /// The width of the ramp of profile rfc.
    pub(super) fn range(&self) -> Duration {
        self.range.unwrap_or(match self.step_thresh {
            // A threshold of one's own is a step unless a width is given too.
            Some(_) => Duration::ZERO,
            None => Duration::from_micros(400),
        })
    }

    pub(super) fn scheduler(&self, mtu: Bytes) -> Scheduler {
        if let Some(shift) = self.tshift {
            return Scheduler::TimeShifted { shift };
        }
        let classic = hundredths(self.classic_protection());
        let l4s = 10_000 - classic;
        let start = signed(mtu) * (classic - l4s);
        Scheduler::RoundRobin {
            classic,
            l4s,
            start,
            credit: start,
        }
    }
}

/// `per_cent` in hundredths of it; between 0 and 10000.
#[expect(clippy::cast_possible_truncation, reason = "a float saturates")]
fn hundredths(per_cent: f64) -> i64 {
    ((per_cent * 100.0).round() as i64).clamp(0, 10_000)
}
