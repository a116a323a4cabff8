//! The sending end of a TCP connection.
//!
//! # Source
//!
//! Linux 6.1, from measurements and facts (`docs/explanation/tcp.md`): RFC 9293 handshake, RFC 6675-style
//! scoreboard, RFC 8985 (RACK-TLP), RFC 6937 (PRR), RFC 5682 (F-RTO), RFC 3522 and 3708 (Eifel,
//! DSACK) undo, RFC 3168 and 8511 (ECN), RFC 2861 (idle restart).
//!
//! # Layout
//!
//! [`Sender`] (in `connection`) is a set of parts. Each part lives in a file of `state`, keeps its
//! fields private and knows none of the others. The remaining files are the steps that connect
//! them:
//!
//! | file | step |
//! |---|---|
//! | `handshake` | opening the connection, or joining the other half of a two-way connection |
//! | `ack`, `sack` | the order of steps for each acknowledgement |
//! | `plain_ack` | the same for an acknowledgement that reports nothing but progress, as most do |
//! | `loss_detection` | RACK: which segments are lost |
//! | `recovery` | congestion states: entering, reducing, undoing, leaving |
//! | `ecn` | the response to CE |
//! | `idle`, `validate` | the window of a connection that does not use it |
//! | `output`, `pacing` | what is sent, and when |
//! | `limit` | why no more is sent |
//! | `timers`, `persist` | what happens when a timer expires |
//! | `model` | model-based controllers and their delivery-rate samples |

mod ack;
pub(crate) mod handshake;
mod idle;
mod limit;
mod model;
mod output;
mod params;
mod plain_ack;
#[cfg(test)]
mod profile_tests;
mod recovery;
mod sack;
mod state;
mod timers;
mod validate;

use std::num::NonZeroU64;

use sojourn_net::{Duration, Instant};

use crate::cc::{Controller, Setup, SlowStart, SlowStartExit, Threshold, Window};
use crate::clock::Ticks;
use crate::delivery_rate::DeliveryRateSampler;
use crate::profile::{SenderProfile, SenderRules};
use crate::rtt::RttEstimator;
use state::cwnd_usage::CwndUsage;
use state::ecn::Ecn;
use state::pacing::Pacing;
use state::rack::Rack;
use state::recovery::Recovery;
use state::recovery::Undo;
use state::scoreboard::Scoreboard;
use state::send_buffer::SendBuffer;
use state::timer::RetransmitTimer;
use state::timer::TailLossProbe;
use state::timestamps::Timestamps;

pub use params::{AfterIdle, BurstLimits, OnCe, SenderParams, Writer};

/// The state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Not opened yet.
    Closed,
    /// A SYN was sent.
    Connecting,
    /// Data may flow.
    Established,
    /// All data and the FIN are acknowledged.
    Done,
    /// Given up after too many time-outs, or aborted.
    Aborted,
}

/// The sending end of a TCP connection.
///
/// The parts lie in memory in this order: what every acknowledgement reads or writes comes first and
/// together, what only losses, marks and the handshake need last.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Sender {
    board: Scoreboard,
    timestamps: Timestamps,
    window: Window,
    recovery: Recovery,
    ecn: Ecn,
    buffer: SendBuffer,
    timer: RetransmitTimer,
    rtt: RttEstimator,
    rack: Rack,
    pacing: Pacing,
    usage: CwndUsage,
    cc: Controller,
    /// HyStart++ or SEARCH, until slow start first ends.
    slow_start: Option<Box<SlowStartExit>>,
    counters: Counters,
    /// When the connection was opened.
    opened: Instant,
    probe: Option<TailLossProbe>,
    undo: Undo,
    state: State,
    profile: SenderProfile,
    /// The profile, the bursts and the writer are the default.
    is_default: bool,
    /// Short segments wait for each other, since the application writes blocks without `TCP_NODELAY`.
    nagle: bool,
}

const _: () = assert!(
    size_of::<Sender>() <= 528,
    "connections are many: padding between the parts costs memory"
);

/// Counters of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Data segments sent, retransmissions included.
    pub sent: u64,
    /// Of these, those sent ECN-capable.
    pub ect: u64,
    /// Data segments retransmitted.
    pub resent: u64,
    /// Retransmission time-outs.
    pub timeouts: u32,
    /// Segments that the peer reported as CE-marked, if it counts them (RFC 9768).
    pub marked: u64,
    /// SYNs retransmitted.
    pub syn_resent: u32,
    /// Acknowledgements with an RTT sample: of data sent once, acknowledged in order.
    pub rtt_samples: u64,
    /// Sum of these samples, each of the newest segment acknowledged, in µs.
    pub rtt_micros: u64,
}

impl Sender {
    /// A connection not opened yet, on a host with this tick counter.
    pub fn new(params: &SenderParams, ticks: Ticks) -> Self {
        let known = |way: &SlowStart| params.cc.kind().slow_starts().contains(way);
        let slow_start = params.slow_start.filter(known);
        let setup = Setup {
            seed: params.seed,
            paced: params.pacing,
            slow_start,
            profile: params.profile,
            ip: params.ip,
        };
        let cc = Controller::new(&params.cc, &setup);
        let exit = params.cc.slow_start_exit(slow_start, params.pacing);
        let sampler = cc.is_model_based().then(|| {
            if cc.needs_delivery_rates() {
                DeliveryRateSampler::default()
            } else {
                DeliveryRateSampler::without_samples()
            }
        });
        let pacing = Pacing::new(
            params.pacing,
            sampler,
            params.profile.rules().pacing.as_ref(),
        );
        Self {
            board: Scoreboard::new(),
            timestamps: Timestamps::new(ticks),
            window: Window::new(params.initial_window, params.mss.into())
                .with_ssthresh(params.cc.initial_ssthresh(&setup)),
            recovery: Recovery::new(),
            buffer: SendBuffer::new(params.ip, params.mss, params.bursts),
            rtt: RttEstimator::new(),
            timer: RetransmitTimer::new(),
            rack: Rack::new(),
            usage: CwndUsage::new(params),
            pacing,
            cc,
            slow_start: exit.map(Box::new),
            ecn: Ecn::new(params),
            probe: None,
            state: State::Closed,
            profile: params.profile,
            is_default: params.profile.is_default()
                && params.bursts == BurstLimits::default()
                && params.writer.is_none(),
            nagle: params.writer.is_some(),
            counters: Counters::default(),
            undo: Undo::new(),
            opened: Instant::ZERO,
        }
    }

    /// Asks the processor to load what the next acknowledgement needs beside the sender itself.
    #[inline]
    pub fn prefetch_segments(&self) {
        self.board.prefetch();
    }

    /// The rules of the implementation that it follows.
    #[inline]
    const fn rules(&self) -> &'static SenderRules {
        self.profile.rules()
    }

    /// The same where the caller may know that profile and bursts are the default: most connections have that, and its rules then
    /// cost nothing.
    #[inline]
    const fn rules_of<const DEFAULT: bool>(&self) -> &'static SenderRules {
        if DEFAULT {
            SenderProfile::Linux.rules()
        } else {
            self.rules()
        }
    }

    /// The rate at which a queue may pace, whether or not this end paces itself, in bytes/s; `None` before the first.
    pub fn pacing_rate(&self) -> Option<NonZeroU64> {
        let rules = self.rules().pacing.as_ref()?;
        let (rate, mss) = (self.pacing.rate(), u64::from(self.window.mss()));
        NonZeroU64::new(if rules.with_headers && self.cc.is_model_based() {
            rate.saturating_mul(mss + self.buffer.headers()) / mss
        } else {
            rate
        })
    }

    /// Gives up at once.
    pub fn abort(&mut self) {
        if !matches!(self.state, State::Done) {
            self.state = State::Aborted;
        }
        self.timer.cancel();
        self.pacing.stop();
    }

    /// The state of the connection.
    pub const fn state(&self) -> State {
        self.state
    }

    /// Bytes written and not yet sent for the first time.
    pub const fn unsent_bytes(&self) -> u64 {
        self.buffer.unsent()
    }

    /// Whether the application has closed its side.
    pub fn is_closed(&self) -> bool {
        self.buffer.is_closed()
    }

    /// Congestion window, in segments.
    pub const fn cwnd(&self) -> u32 {
        self.window.cwnd
    }

    /// Sets the congestion window and the slow-start threshold in segments, at least to 2; the control goes on from
    /// there.
    pub fn set_window(&mut self, segments: u32) {
        let segments = segments.max(2);
        self.window.cwnd = segments;
        self.window.ssthresh = Threshold::of_segments(segments);
        self.window.cnt = 0;
    }

    /// The receive window that the peer announced last, in bytes; `None` before the handshake is over.
    pub const fn peer_window(&self) -> Option<u32> {
        match self.state {
            State::Closed | State::Connecting => None,
            _ => Some(self.buffer.peer_window()),
        }
    }

    /// Slow-start threshold, in segments; `None` while it is unset, by default until the first congestion.
    pub const fn ssthresh(&self) -> Option<u32> {
        self.window.ssthresh.segments()
    }

    /// Smoothed round-trip time; `None` before the first sample.
    pub fn srtt(&self) -> Option<Duration> {
        self.rtt.srtt()
    }

    /// The retransmission time-out with its back-off, in ms.
    pub fn rto_ms(&self) -> u64 {
        self.current_rto_ms()
    }

    /// Segments believed to be in the network.
    pub fn in_flight(&self) -> u32 {
        self.board.in_flight()
    }

    /// The largest RTT of data that was acknowledged, also selectively, and sent once, since
    /// [`Self::reset_max_rtt`]; in µs, 0 without samples.
    pub const fn max_rtt_micros(&self) -> u32 {
        self.rtt.max_micros()
    }

    /// The largest RTT sample counts from now.
    pub const fn reset_max_rtt(&mut self) {
        self.rtt.reset_max();
    }

    /// The counters of the sender.
    pub const fn counters(&self) -> Counters {
        self.counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hystart_plus_plus_has_the_constants_of_the_control() {
        let counted = |slow_start, pacing| {
            let params = SenderParams {
                cc: "reno hystartpp_l 3 hystartpp_l_paced 20".parse().unwrap(),
                slow_start,
                pacing,
                ..SenderParams::default()
            };
            let sender = Sender::new(&params, Ticks::new(Duration::ZERO));
            sender.slow_start.map(|mut exit| exit.counts(44))
        };
        let chosen = Some(SlowStart::HyStartPlusPlus);
        assert_eq!(
            [false, true].map(|paced| counted(chosen, paced)),
            [Some(3), Some(20)]
        );
        assert_eq!(counted(None, false), None);
    }
}
