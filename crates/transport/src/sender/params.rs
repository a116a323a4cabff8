//! Configuration of a sender.

use std::fmt;

use sojourn_net::{IpVersion, Rate};

use crate::cc::{CcSpec, SlowStart};
use crate::profile::SenderProfile;
use crate::reception::{PeerEcn, ReceiverParams};
use crate::segment::{Flags, MSS};

/// The configuration of one sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenderParams {
    /// The implementation that both ends follow.
    pub profile: SenderProfile,
    /// Congestion control.
    pub cc: CcSpec,
    /// Slow-start exit heuristic; `None`: the control's default. A heuristic that the control does not offer
    /// has no effect.
    pub slow_start: Option<SlowStart>,
    /// The version of IP below.
    pub ip: IpVersion,
    /// Payload of a full-sized segment in bytes, of both directions of a connection.
    pub mss: u16,
    /// Initial window in segments (RFC 6928: 10).
    pub initial_window: u32,
    /// Offer ECN in the SYN.
    pub ecn: bool,
    /// Offer Accurate ECN (RFC 9768) in the SYN; fall back to classic ECN if the peer supports
    /// only that.
    pub accurate_ecn: bool,
    /// The ECN of the end that receives; `None`: what the sender offers.
    pub peer_ecn: Option<PeerEcn>,
    /// The response to an echo of CE.
    pub on_ce: OnCe,
    /// The window after an idle period.
    pub after_idle: AfterIdle,
    /// Pace transmissions, as `sch_fq` would. Controllers that set a pacing rate are always paced.
    pub pacing: bool,
    /// How many segments leave together.
    pub bursts: BurstLimits,
    /// When the application writes; `None`: it always has more. Its driver writes, not the sender.
    pub writer: Option<Writer>,
    /// The end that receives.
    pub receiver: ReceiverParams,
    /// Seed of the controller's random numbers.
    pub seed: u64,
}

impl SenderParams {
    /// The slow-start exit heuristic in use; `None`: one of the controller's own.
    pub fn slow_start(&self) -> Option<SlowStart> {
        let known = self.cc.kind().slow_starts();
        let chosen = self.slow_start.filter(|way| known.contains(way));
        chosen.or_else(|| self.cc.usual_slow_start())
    }

    /// Whether ECN is offered: it is configured, or the controller requires it.
    pub const fn offers_ecn(&self) -> bool {
        self.ecn || self.accurate_ecn || self.cc.kind().needs_ecn()
    }

    /// Whether Accurate ECN is offered: it is configured, or the controller requires it.
    pub const fn wants_accurate_ecn(&self) -> bool {
        self.accurate_ecn || self.cc.kind().needs_accurate_ecn()
    }

    /// The IP ECN field of ECN-capable segments.
    pub(crate) const fn ect(&self) -> Flags {
        if self.cc.kind().needs_accurate_ecn() {
            Flags::ECT1
        } else {
            Flags::ECT0
        }
    }
}

impl SenderParams {
    /// Whether transmissions are paced.
    pub const fn is_paced(&self) -> bool {
        self.pacing || self.cc.kind().is_model_based()
    }
}

impl Default for SenderParams {
    fn default() -> Self {
        Self {
            profile: SenderProfile::Linux,
            cc: CcSpec::default(),
            slow_start: None,
            ip: IpVersion::V4,
            mss: MSS,
            initial_window: 10,
            ecn: false,
            accurate_ecn: false,
            peer_ecn: None,
            on_ce: OnCe::Reduce,
            after_idle: AfterIdle::Decay,
            pacing: false,
            bursts: BurstLimits::default(),
            writer: None,
            receiver: ReceiverParams::default(),
            seed: 0,
        }
    }
}

/// An application that writes at a rate: a block whenever it has written less than the rate permits, as `iperf3 -b` does,
/// without `TCP_NODELAY`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Writer {
    /// The rate.
    pub rate: Rate,
    /// Bytes of a block.
    pub block: u32,
}

impl Writer {
    /// The block of `iperf3` over TCP.
    pub const BLOCK: u32 = 131_072;
    /// The largest block.
    pub const LARGEST: u32 = 1 << 26;
}

/// Bounds of the segments that leave together (segmentation offload).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BurstLimits {
    /// At least this many, if the window allows them (`net.ipv4.tcp_min_tso_segs`); controls that set a pacing rate have
    /// a minimum of their own.
    pub least: u8,
    /// At most this many (`gso_max_segs` of the device); [`BurstLimits::UNLIMITED`]: 64 kB.
    pub most: u8,
}

impl BurstLimits {
    /// No limit.
    pub const UNLIMITED: u8 = u8::MAX;

    /// The segments of a burst that may have `whole` of them, and should have `least`.
    #[inline]
    pub(crate) fn of(self, whole: u32, least: u32) -> u32 {
        let segments = whole.max(least);
        if self.most == Self::UNLIMITED {
            segments
        } else {
            segments.min(self.most.into())
        }
    }
}

impl Default for BurstLimits {
    /// Linux.
    fn default() -> Self {
        Self {
            least: 2,
            most: Self::UNLIMITED,
        }
    }
}

/// The response of a sender to CE marks, at most once per window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnCe {
    /// The same as to a loss (RFC 3168).
    #[default]
    Reduce,
    /// Alternative Backoff with ECN (RFC 8511): in congestion avoidance reduce the window by less than at a loss, to the
    /// share that [`CcKind::abe_percent`](crate::CcKind::abe_percent) has; in slow start as [`OnCe::Reduce`].
    Abe,
    /// End slow start at the current window; in congestion avoidance reduce it to 0.8 (RFC 8511).
    EndSlowStart,
    /// End slow start at the current window; ignore CE in congestion avoidance.
    EndSlowStartOnly,
}

impl OnCe {
    /// Every response.
    pub const ALL: [Self; 4] = [
        Self::Reduce,
        Self::Abe,
        Self::EndSlowStart,
        Self::EndSlowStartOnly,
    ];

    /// Its name in scenarios.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reduce => "reduce",
            Self::Abe => "abe",
            Self::EndSlowStart => "end-slow-start",
            Self::EndSlowStartOnly => "end-slow-start-only",
        }
    }
}

impl fmt::Display for OnCe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The congestion window after an idle period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AfterIdle {
    /// It halves for each time-out that passes (RFC 2861), as in Linux.
    #[default]
    Decay,
    /// It becomes the initial window after one time-out (RFC 5681).
    Restart,
    /// It stays, as in Linux with `tcp_slow_start_after_idle` off.
    Keep,
    /// It stays for five minutes, but does not count as validated (RFC 7661).
    Validate,
}

impl AfterIdle {
    /// Every policy.
    pub const ALL: [Self; 4] = [Self::Decay, Self::Restart, Self::Keep, Self::Validate];

    /// Its name in scenarios.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Decay => "decay",
            Self::Restart => "restart",
            Self::Keep => "keep",
            Self::Validate => "validate",
        }
    }
}

impl fmt::Display for AfterIdle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
