//! The implementation that a connection follows, and the rules in which the implementations differ.
//!
//! # Source
//!
//! `docs/explanation/senders.md` has a table of every rule with its source: kernel version, file and function, or
//! file of ns-2. The rules state facts about these programs; none of their code is used.

use std::fmt;

/// The implementation that both ends of a TCP connection follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SenderProfile {
    /// Linux 6.1.
    #[default]
    Linux,
    /// Linux 4.19.
    Linux419,
    /// Linux 3.14 with segmentation offloads off.
    Linux314,
    /// Linux 2.6.34 with segmentation offloads off.
    Linux2634,
    /// The one-way agents `TCP/Sack1` and `TCPSink/Sack1` of ns-2.
    Ns2,
}

impl SenderProfile {
    /// Every profile.
    pub const ALL: [Self; 5] = [
        Self::Linux,
        Self::Linux419,
        Self::Linux314,
        Self::Linux2634,
        Self::Ns2,
    ];

    /// Its name in scenarios.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Linux => "linux",
            Self::Linux419 => "linux-4.19",
            Self::Linux314 => "linux-3.14",
            Self::Linux2634 => "linux-2.6.34",
            Self::Ns2 => "ns-2",
        }
    }

    /// The initial window in segments, unless another one is set.
    pub const fn initial_window(self) -> u32 {
        self.rules().initial_window
    }

    /// Whether it can pace transmissions.
    pub const fn paces(self) -> bool {
        self.rules().pacing.is_some()
    }

    /// Whether it has what model-based controls need: pacing by a timer of its own, and delivery-rate samples.
    pub const fn supports_models(self) -> bool {
        matches!(self, Self::Linux | Self::Linux419)
    }

    /// Whether its receiver acknowledges each segment, at least above a hole.
    pub const fn acknowledges_each(self) -> bool {
        matches!(self.rules().compression, Compression::None)
    }

    #[inline]
    pub(crate) const fn is_default(self) -> bool {
        matches!(self, Self::Linux)
    }

    #[inline]
    pub(crate) const fn rules(self) -> &'static SenderRules {
        match self {
            Self::Linux => &LINUX,
            Self::Linux419 => &LINUX_4_19,
            Self::Linux314 => &LINUX_3_14,
            Self::Linux2634 => &LINUX_2_6_34,
            Self::Ns2 => &NS_2,
        }
    }
}

impl fmt::Display for SenderProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The rules of one implementation, read where they apply.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent rules")]
pub(crate) struct SenderRules {
    /// Segments.
    pub(crate) initial_window: u32,
    /// The time-out of the first SYN and SYN-ACK, in ms.
    pub(crate) syn_timeout_ms: u32,
    /// Segments leave in bursts; otherwise one by one.
    pub(crate) bursts: Option<Bursts>,
    /// `None`: it does not pace.
    pub(crate) pacing: Option<PacingRules>,
    pub(crate) rtt: RttRule,
    pub(crate) detection: Detection,
    /// Retransmit early when few segments are in flight (RFC 5827).
    pub(crate) early_retransmit: bool,
    pub(crate) probe: Probe,
    pub(crate) reduction: Reduction,
    /// Detects spurious retransmissions (RFC 3522, 3708, 5682) and undoes their reduction.
    pub(crate) undo: bool,
    /// Slow start adds one segment per acknowledgement, not per segment.
    pub(crate) slow_start_per_ack: bool,
    pub(crate) cubic: CubicRules,
    /// The receiver acknowledges every segment at once.
    pub(crate) ack_each: bool,
    /// The receiver answers a full segment with PSH at once.
    pub(crate) ack_push: bool,
    /// The receiver's quick ACKs after a first CE mark.
    pub(crate) quick_acks_of_mark: u8,
    /// How the receiver acknowledges segments above a hole.
    pub(crate) compression: Compression,
}

/// How segments leave in bursts.
#[derive(Debug)]
pub(crate) struct Bursts {
    /// The last segment of a burst carries PSH.
    pub(crate) pushed: bool,
    /// Bursts are longer on paths with a short minimum RTT.
    pub(crate) longer_on_short_paths: bool,
    /// A burst is deferred only if the next acknowledgement is expected within 1 ms, if that is less than half a round
    /// trip.
    pub(crate) deferred_1ms: bool,
}

/// How transmissions are paced.
#[derive(Debug)]
pub(crate) struct PacingRules {
    /// Windows per 100 round trips below half of the slow-start threshold, and above.
    pub(crate) percent: (u8, u8),
    /// Of BBR, where a queue paces: it counts the TCP and IP headers of a segment.
    pub(crate) with_headers: bool,
    /// Segments sent before pacing begins.
    pub(crate) unpaced: u8,
    /// A late departure shortens the next gap by half at most.
    pub(crate) credit: bool,
}

/// How RTT samples are taken and made a time-out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RttRule {
    /// Send times in µs.
    Micros,
    /// Send times in whole ticks of 1 ms.
    Ticks,
    /// Echoed timestamps, of 1 ms; none from SACK blocks.
    Timestamps,
    /// Send times in µs; none from SACK blocks.
    NoSacks,
}

/// Which segments are lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detection {
    /// By time (RFC 8985).
    Rack,
    /// Three or more below the highest one sacked (FACK); with reordering, as many sacked above it as packets are
    /// reordered by (RFC 6675). A retransmission: when a segment sent later for the first time is sacked. After a
    /// time-out: all.
    Fack,
    /// After three duplicate acknowledgements, all below the highest one sacked. A retransmission: never. After a
    /// time-out: all. Lost segments count as in flight until they are repaired.
    Sack1,
}

/// Tail loss probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Probe {
    None,
    /// draft-dukkipati-tcpm-tcp-loss-probe-01: max(2 RTT, 10 ms), alone max(2 RTT, 1.5 RTT + 200 ms); in Open only.
    Draft,
    /// RFC 8985 section 7: 2 RTT + 2 ms, alone 2 RTT + 200 ms.
    Rfc8985,
}

/// How the window comes down to the threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reduction {
    /// Proportional rate reduction (RFC 6937) with this bound below the threshold.
    Prr(Bound),
    /// By one segment on each second acknowledgement, and to what is in flight plus one.
    RateHalving,
    /// At once.
    Immediate,
}

/// What may be sent during proportional rate reduction while less than the threshold is in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bound {
    /// One more than was delivered if an acknowledgement advanced and nothing more was found lost.
    NoNewLoss,
    /// One more if it acknowledged a retransmission and none was found lost; otherwise what it delivered.
    Repaired,
    /// Always one more.
    SlowStart,
}

/// CUBIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent rules")]
pub(crate) struct CubicRules {
    /// The Reno-friendly region counts acknowledgements.
    pub(crate) count_acks: bool,
    /// An idle period does not count as time since the last reduction.
    pub(crate) skips_idle: bool,
    /// At least 5 % growth per round trip before the first loss.
    pub(crate) least_growth: bool,
    /// HyStart computes ACK trains in whole ms, and without the slack for bursts.
    pub(crate) whole_ms: bool,
    /// HyStart: shift of the minimum RTT that is the increase in delay, and its least value in ms.
    pub(crate) delay_shift: u8,
    pub(crate) delay_least_ms: u8,
}

/// How a receiver acknowledges segments above a hole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compression {
    /// Each at once.
    None,
    /// Together after 1 ms or a twentieth of a round trip, from the fourth on.
    Prompt,
    /// The same with a timer that may be 100 µs late.
    Slack,
}

const LINUX: SenderRules = SenderRules {
    initial_window: 10,
    syn_timeout_ms: 1_000,
    bursts: Some(Bursts {
        pushed: true,
        longer_on_short_paths: true,
        deferred_1ms: true,
    }),
    pacing: Some(PacingRules {
        percent: (200, 120),
        unpaced: 10,
        credit: true,
        with_headers: false,
    }),
    rtt: RttRule::Micros,
    detection: Detection::Rack,
    early_retransmit: false,
    probe: Probe::Rfc8985,
    reduction: Reduction::Prr(Bound::NoNewLoss),
    undo: true,
    slow_start_per_ack: false,
    cubic: CubicRules::LINUX,
    ack_each: false,
    ack_push: true,
    quick_acks_of_mark: 2,
    compression: Compression::Slack,
};

const LINUX_4_19: SenderRules = SenderRules {
    bursts: Some(Bursts {
        pushed: false,
        longer_on_short_paths: false,
        deferred_1ms: false,
    }),
    pacing: Some(PacingRules {
        percent: (200, 120),
        unpaced: 0,
        credit: false,
        with_headers: true,
    }),
    reduction: Reduction::Prr(Bound::Repaired),
    cubic: CubicRules {
        whole_ms: true,
        ..CubicRules::LINUX
    },
    ack_push: false,
    compression: Compression::Prompt,
    ..LINUX
};

const LINUX_3_14: SenderRules = SenderRules {
    bursts: None,
    pacing: Some(PacingRules {
        percent: (200, 200),
        unpaced: 10,
        credit: false,
        with_headers: false,
    }),
    rtt: RttRule::Ticks,
    detection: Detection::Fack,
    early_retransmit: true,
    probe: Probe::Draft,
    reduction: Reduction::Prr(Bound::SlowStart),
    cubic: CubicRules {
        count_acks: true,
        skips_idle: false,
        delay_shift: 4,
        ..LINUX_4_19.cubic
    },
    quick_acks_of_mark: 16,
    compression: Compression::None,
    ..LINUX_4_19
};

const LINUX_2_6_34: SenderRules = SenderRules {
    initial_window: 3,
    syn_timeout_ms: 3_000,
    pacing: None,
    rtt: RttRule::Timestamps,
    early_retransmit: false,
    probe: Probe::None,
    reduction: Reduction::RateHalving,
    slow_start_per_ack: true,
    cubic: CubicRules {
        least_growth: false,
        delay_least_ms: 2,
        ..LINUX_3_14.cubic
    },
    ..LINUX_3_14
};

const NS_2: SenderRules = SenderRules {
    syn_timeout_ms: 3_000,
    bursts: None,
    pacing: Some(PacingRules {
        percent: (100, 100),
        unpaced: 0,
        credit: false,
        with_headers: false,
    }),
    rtt: RttRule::NoSacks,
    detection: Detection::Sack1,
    probe: Probe::None,
    reduction: Reduction::Immediate,
    undo: false,
    ack_each: true,
    compression: Compression::None,
    ..LINUX
};

impl CubicRules {
    pub(crate) const LINUX: Self = Self {
        count_acks: false,
        skips_idle: true,
        least_growth: true,
        whole_ms: false,
        delay_shift: 3,
        delay_least_ms: 4,
    };
}
