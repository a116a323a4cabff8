//! The declaration of a congestion control: its name, its source, and how it is built.

pub(super) use sojourn_net::Comparison;

use sojourn_net::IpVersion;

use super::slow_start::SlowStart;
use super::window::Threshold;
use crate::profile::SenderProfile;

/// The name, source and needs of a congestion control.
#[derive(Clone, Copy, Debug)]
pub struct Declaration {
    /// The name in a specification, Linux's where it has the control.
    pub name: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// Where it is specified.
    pub source: &'static str,
    /// The slow-start exit heuristics it offers, its default first; empty: there is no choice.
    pub slow_starts: &'static [SlowStart],
    /// The default over QUIC, where it differs.
    pub quic_slow_start: Option<SlowStart>,
    /// Which ECN it needs.
    pub ecn: EcnNeed,
    /// Whether it sends more until it loses packets, whatever the delay.
    pub fills_buffers: bool,
    /// The implementation that its behaviour was compared with.
    pub comparison: Comparison,
}

/// Which ECN a congestion control needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EcnNeed {
    /// ECN is negotiated if the connection asks for it.
    Optional,
    /// It depends on marks: ECN is negotiated in any case, and the peer echoes each CE.
    Required,
    /// It depends on counts of marks (RFC 9768), and asks for L4S (RFC 9331).
    Accurate,
}

impl EcnNeed {
    /// The name in the catalogue.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Optional => "optional",
            Self::Required => "required",
            Self::Accurate => "accurate",
        }
    }
}

/// What a controller is built for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Setup {
    /// Starts its random draws.
    pub seed: u64,
    /// Transmissions are paced.
    pub paced: bool,
    /// The slow-start exit heuristic, one of those it offers; `None`: its default.
    pub slow_start: Option<SlowStart>,
    /// The implementation that it belongs to.
    pub profile: SenderProfile,
    /// The version of IP below.
    pub ip: IpVersion,
}

/// The parameters of one congestion control, and what they build.
pub(crate) trait Control {
    /// The controller.
    type Controller;

    /// The name, source and needs of the control.
    const DECLARATION: Declaration;

    /// The controller of a new connection.
    fn build(&self, setup: &Setup) -> Self::Controller;

    /// The slow-start threshold of a new connection.
    fn initial_ssthresh(&self, _setup: &Setup) -> Threshold {
        Threshold::UNSET
    }

    /// The slow-start exit heuristic if none is chosen, over TCP.
    fn usual_slow_start(&self) -> Option<SlowStart> {
        Self::DECLARATION.slow_starts.first().copied()
    }

    /// The smallest congestion window while packets are lost, in segments.
    fn least_window(&self) -> u32 {
        2
    }

    /// Whether the window falls by one segment per acknowledgement after losses, without the proportional rate reduction
    /// (RFC 6937) that other senders do.
    fn reduces_by_steps(&self) -> bool {
        false
    }

    /// Upper bound on the packets lost after slow start, as a multiple of the excess of its window: with a window that
    /// losses reduce to β of itself in each round trip, 1 / (2 (1 - β)); 1 for a half.
    fn excess_losses(&self) -> u32 {
        1
    }

    /// Why these values contradict each other, if they do.
    fn conflict(&self) -> Option<String> {
        None
    }
}
