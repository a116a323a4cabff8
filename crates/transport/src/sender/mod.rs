//! The sending end of a connection.
//!
//! # Source
//!
//! Linux 6.1, from measurements and facts (`docs/tcp.md`): RFC 9293 handshake, RFC 6675-style
//! scoreboard, RFC 8985 (RACK-TLP), RFC 6937 (PRR), RFC 5682 (F-RTO), RFC 3522 and 3708 (Eifel,
//! DSACK) undo, RFC 3168 and 8511 (ECN), RFC 2861 (idle restart).
//!
//! The order of steps on an acknowledgement is in `ack`; loss detection in `rack`; states,
//! reductions and undo in `recovery`; what is sent when in `output`, spread over time in `pacing`;
//! answers to ECN in `ecn`; timers in `timers`; delivery rates in `rate` and the controllers that
//! live on them in `model`.

mod accurate;
mod ack;
mod ecn;
mod idle;
mod join;
mod model;
mod output;
mod pacing;
mod persist;
mod rack;
mod rate;
mod recovery;
mod scoreboard;
mod timers;
mod validate;

use sojourn_net::{Duration, Instant};

use crate::cc::{CcKind, Controller, HyStartPlusPlus, SlowStart, Window};
use crate::clock::Ticks;
use crate::rtt::Rtt;
use crate::segment::{Flags, MSS, Segment};
use accurate::Heard;
pub use ecn::OnCe;
pub use idle::AfterIdle;
use pacing::Pacer;
use rack::Rack;
use scoreboard::Scoreboard;
use timers::Timer;
use validate::Validation;

/// What a connection is opened with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenderParams {
    /// Congestion control.
    pub cc: CcKind,
    /// How slow start ends; `None`: the controller's own way. Those it does not know
    /// ([`CcKind::slow_starts`]) change nothing.
    pub slow_start: Option<SlowStart>,
    /// Initial window in segments (RFC 6928: 10).
    pub initial_window: u32,
    /// Offer ECN in the SYN.
    pub ecn: bool,
    /// Offer Accurate ECN (RFC 9768) in the SYN, and ECN to a peer that does not count marks.
    pub accurate_ecn: bool,
    /// The answer to an echo of CE.
    pub on_ce: OnCe,
    /// What becomes of the window in a pause.
    pub after_idle: AfterIdle,
    /// Spread transmissions over the round trip, as `sch_fq` would. Controllers that set a rate
    /// are paced anyway.
    pub pacing: bool,
    /// What the controller draws by lot comes from this.
    pub seed: u64,
}

impl SenderParams {
    /// Whether ECN is offered: when asked for, or when the controller cannot do without.
    pub const fn offers_ecn(&self) -> bool {
        self.ecn || self.accurate_ecn || self.cc.needs_ecn()
    }

    /// Whether marks are to be counted: when asked for, or when the controller cannot do without.
    pub const fn wants_accurate_ecn(&self) -> bool {
        self.accurate_ecn || self.cc.needs_accurate_ecn()
    }

    /// The ECN field of what is ECN-capable.
    pub(crate) const fn ect(&self) -> Flags {
        if self.cc.needs_accurate_ecn() {
            Flags::ECT.with(Flags::ECT1)
        } else {
            Flags::ECT
        }
    }
}

impl Default for SenderParams {
    fn default() -> Self {
        Self {
            cc: CcKind::Cubic,
            slow_start: None,
            initial_window: 10,
            ecn: false,
            accurate_ecn: false,
            on_ce: OnCe::Reduce,
            after_idle: AfterIdle::Decay,
            pacing: false,
            seed: 0,
        }
    }
}

/// Where a connection is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Not opened yet.
    Closed,
    /// A SYN is out.
    Connecting,
    /// Data may flow.
    Established,
    /// All data and the FIN are acknowledged.
    Done,
    /// Given up: too many time-outs, or aborted.
    Aborted,
}

/// The congestion state (Linux's names).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// All is well.
    Open,
    /// Something was held out of order or retransmitted, nothing deemed lost.
    Disorder,
    /// The window is being reduced for ECN.
    Cwr,
    /// Lost segments are being retransmitted.
    Recovery,
    /// The retransmission timer expired.
    Loss,
}

/// The sending end of a TCP connection.
#[derive(Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts, kept small"
)]
pub struct Sender {
    ticks: Ticks,
    state: State,
    phase: Phase,
    /// ECN was negotiated.
    ecn: bool,
    /// Everything is ECN-capable, not new data alone.
    ect_always: bool,
    /// AccECN is offered.
    wants_accurate: bool,
    /// What the peer counted, if it accepted.
    accurate: Option<Heard>,
    /// The ECN field of what is ECN-capable.
    ect: Flags,
    /// What this end counted, in all that it sends after the handshake.
    own_count: Flags,
    on_ce: OnCe,
    after_idle: AfterIdle,
    validation: Option<Box<Validation>>,
    /// Echoes of CE up to the acknowledgement of this have been answered.
    ce_answered: u32,
    /// The next new segment is to carry CWR.
    cwr_pending: bool,
    /// Close when everything written has been sent.
    fin_wanted: bool,
    fin_sent: bool,
    /// Sending was limited by the window within this round.
    cwnd_limited: bool,
    /// Early detection of a spurious time-out is under way (RFC 5682).
    frto: bool,
    /// The tail loss probe in flight was a retransmission.
    tlp_resent: bool,
    /// Time-outs without progress.
    timeouts_in_row: u8,
    backoff: u8,
    initial_window: u32,
    /// What 1.2 or 2 windows a round trip are, in bytes/s; after each acknowledgement.
    pacing_rate: u64,
    /// Bytes written and not sent.
    unsent: u64,
    board: Scoreboard,
    window: Window,
    cc: Controller,
    /// Of a connection that is paced.
    pacer: Option<Box<Pacer>>,
    /// HyStart++, until slow start first ends.
    hystart: Option<Box<HyStartPlusPlus>>,
    rtt: Rtt,
    rack: Rack,
    timer: Timer,
    /// Right edge of the peer's window, in bytes beyond `acked_bytes`.
    peer_window: u32,
    /// Bytes sent and not acknowledged.
    bytes_in_flight: u32,
    /// Last transmission.
    last_sent: Instant,
    /// Segments delivered, each once, and duplicates reported.
    delivered: u64,
    /// Segments ever deemed lost.
    lost_total: u64,
    /// Recovery, or the reduction, ends when this is acknowledged.
    high_seq: u32,
    prior_cwnd: u32,
    prior_ssthresh: u32,
    prr_delivered: u32,
    prr_out: u32,
    /// What was unacknowledged when recovery began; `None`: nothing to undo.
    undo_marker: Option<u32>,
    /// Retransmissions that no DSACK has shown to be spurious; -1: none made yet.
    undo_resent: i32,
    /// Timestamp of the first retransmission of this episode; 0: none.
    resend_stamp: u32,
    /// The tail loss probe is answered when this is acknowledged.
    tlp_high_seq: Option<u32>,
    /// Reordering seen, in segments.
    reordering: u32,
    cwnd_usage_seq: u32,
    max_outstanding: u32,
    /// When the window was last fully used, and the most used since.
    used_at: Instant,
    used: u32,
    peer_stamp: u32,
    opened: Instant,
    counters: Counters,
}

/// What a sender counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Data segments sent, retransmissions included.
    pub sent: u64,
    /// Data segments sent again.
    pub resent: u64,
    /// Retransmission time-outs.
    pub timeouts: u32,
    /// Segments that the peer said were CE-marked, where it counts them (RFC 9768).
    pub marked: u64,
    /// SYNs sent again.
    pub syn_resent: u32,
    /// Acknowledgements that told a round-trip time: of data sent once, acknowledged in order.
    pub rtt_samples: u64,
    /// Sum of these times, each from the newest of that data, in µs.
    pub rtt_micros: u64,
}

impl Sender {
    /// A connection not opened yet, on a host with this tick counter.
    pub fn new(params: &SenderParams, ticks: Ticks) -> Self {
        let mut cc = Controller::new(params.cc, params.seed);
        let known = |way: &SlowStart| params.cc.slow_starts().contains(way);
        let slow_start = params.slow_start.filter(known);
        if let Some(way) = slow_start {
            cc.select_slow_start(way);
        }
        let plus_plus = slow_start == Some(SlowStart::HyStartPlusPlus);
        let hystart = plus_plus.then(|| Box::new(HyStartPlusPlus::new(params.pacing)));
        if params.pacing {
            cc.expect_pacing();
        }
        let model = cc.is_model_based();
        let pacer = (params.pacing || model).then(|| Box::new(Pacer::new(model)));
        Self {
            ticks,
            state: State::Closed,
            phase: Phase::Open,
            ecn: params.offers_ecn(),
            ect_always: params.cc.needs_ecn(),
            wants_accurate: params.wants_accurate_ecn(),
            accurate: None,
            ect: params.ect(),
            own_count: Flags::NONE,
            on_ce: params.on_ce,
            after_idle: params.after_idle,
            validation: Self::validation_of(params.after_idle),
            ce_answered: 0,
            cwr_pending: false,
            fin_wanted: false,
            fin_sent: false,
            cwnd_limited: false,
            frto: false,
            tlp_resent: false,
            timeouts_in_row: 0,
            backoff: 0,
            initial_window: params.initial_window,
            pacing_rate: 0,
            unsent: 0,
            board: Scoreboard::new(),
            window: Window::new(params.initial_window, MSS.into()),
            cc,
            pacer,
            hystart,
            rtt: Rtt::new(),
            rack: Rack::new(),
            timer: Timer::off(),
            peer_window: 0,
            bytes_in_flight: 0,
            last_sent: Instant::ZERO,
            delivered: 0,
            lost_total: 0,
            high_seq: 0,
            prior_cwnd: 0,
            prior_ssthresh: 0,
            prr_delivered: 0,
            prr_out: 0,
            undo_marker: None,
            undo_resent: 0,
            resend_stamp: 0,
            tlp_high_seq: None,
            reordering: 3,
            cwnd_usage_seq: 0,
            max_outstanding: 0,
            used_at: Instant::ZERO,
            used: 0,
            peer_stamp: 0,
            opened: Instant::ZERO,
            counters: Counters::default(),
        }
    }

    /// Sends the SYN.
    pub fn connect(&mut self, now: Instant, out: &mut Vec<Segment>) {
        self.state = State::Connecting;
        self.opened = now;
        self.send_syn(now, out);
    }

    /// Bytes written and not yet sent for the first time.
    pub const fn unsent_bytes(&self) -> u64 {
        self.unsent
    }

    /// The application has `bytes` more to send; they go out as the window allows.
    pub fn write(&mut self, now: Instant, bytes: u64, out: &mut Vec<Segment>) {
        self.note_app_limit();
        self.unsent = self.unsent.saturating_add(bytes);
        if self.state == State::Established {
            self.restart_after_idle(now);
            self.send_new(now, out);
            if self.timer.kind().is_none() {
                self.watch_closed_window(now);
            }
        }
    }

    /// The application has nothing more to send: the last segment carries the FIN.
    pub fn close(&mut self, now: Instant, out: &mut Vec<Segment>) {
        self.fin_wanted = true;
        if self.state == State::Established {
            self.send_new(now, out);
        }
    }

    /// Gives up at once.
    pub fn abort(&mut self) {
        if !matches!(self.state, State::Done) {
            self.state = State::Aborted;
        }
        self.timer = Timer::off();
        self.pacer = None;
    }

    /// A segment from the peer arrived.
    pub fn on_segment(&mut self, now: Instant, seg: &Segment, out: &mut Vec<Segment>) {
        match self.state {
            State::Established => self.on_ack(now, seg, out),
            State::Connecting if seg.flags.has(Flags::SYN) => self.on_syn_ack(now, seg, out),
            State::Connecting | State::Closed | State::Done | State::Aborted => {}
        }
    }

    fn send_syn(&mut self, now: Instant, out: &mut Vec<Segment>) {
        let offered = self.counters.syn_resent <= u32::from(self.wants_accurate);
        let mut flags = Flags::SYN | self.ect_if_always();
        if self.ecn && offered {
            flags |= Flags::ECE | Flags::CWR;
            if self.wants_accurate {
                flags |= Flags::AE;
            }
        }
        out.push(Segment {
            ts_val: self.ticks.stamp(now),
            window: SYN_WINDOW,
            flags,
            ..Segment::EMPTY
        });
        self.arm_syn_timer(now);
    }

    fn on_syn_ack(&mut self, now: Instant, seg: &Segment, out: &mut Vec<Segment>) {
        self.state = State::Established;
        self.timer = Timer::off();
        self.backoff = 0;
        self.peer_stamp = seg.ts_val;
        self.peer_window = seg.window;
        self.conclude_ecn(seg.flags);
        let sample = if self.counters.syn_resent == 0 {
            micros(now.since(self.opened))
        } else {
            let ms = self.ticks.stamp(now).wrapping_sub(seg.ts_ecr);
            1_000 * ms.clamp(1, LONGEST / 1_000)
        };
        self.rtt.sample(sample, self.board.una, self.board.next());
        self.rtt.sample_min(now, sample);
        // Linux: more than one SYN lost says that the path is congested.
        self.window.cwnd = if self.counters.syn_resent > 1 && !self.first_syn_was_echoed(seg) {
            1
        } else {
            self.initial_window
        };
        self.used_at = now;
        // The SYN was delivered.
        self.delivered = 1;
        self.start_model(now, sample);
        self.set_pacing_rate();
        self.confirm(now, out);
        self.send_new(now, out);
    }

    /// Acknowledges the peer's SYN.
    fn confirm(&self, now: Instant, out: &mut Vec<Segment>) {
        out.push(Segment {
            flags: Flags::ACK | self.ect_if_always() | self.own_count,
            ..self.blank(now)
        });
    }

    /// Whether only SYN-ACKs were lost: then the peer echoes the SYN it saw first.
    fn first_syn_was_echoed(&self, seg: &Segment) -> bool {
        seg.ts_ecr == self.ticks.stamp(self.opened)
    }

    /// ECT for what is not new data.
    const fn ect_if_always(&self) -> Flags {
        if self.ecn && self.ect_always {
            self.ect
        } else {
            Flags::NONE
        }
    }

    /// A segment with everything but its purpose filled in.
    fn blank(&self, now: Instant) -> Segment {
        Segment {
            seq: self.board.next(),
            ts_val: self.ticks.stamp(now),
            ts_ecr: self.peer_stamp,
            window: 65_536,
            ..Segment::EMPTY
        }
    }

    /// Where the connection is in its life.
    pub const fn state(&self) -> State {
        self.state
    }

    /// Congestion window, in segments.
    pub const fn cwnd(&self) -> u32 {
        self.window.cwnd
    }

    /// Slow-start threshold, in segments; `None` until the first congestion.
    pub const fn ssthresh(&self) -> Option<u32> {
        self.window.ssthresh.segments()
    }

    /// Smoothed round-trip time; `None` before the first sample.
    pub const fn srtt(&self) -> Option<Duration> {
        self.rtt.srtt()
    }

    /// The retransmission time-out with its backoff, in ms.
    pub fn rto_ms(&self) -> u64 {
        self.current_rto_ms()
    }

    /// Segments believed to be in the network.
    pub fn in_flight(&self) -> u32 {
        self.board.in_flight()
    }

    /// What was counted.
    pub const fn counters(&self) -> Counters {
        self.counters
    }
}

/// What a SYN advertises.
const SYN_WINDOW: u32 = 64_240;

/// The longest time the estimators can tell, in µs: 35 minutes, so that two make no overflow.
const LONGEST: u32 = u32::MAX / 2;

/// A duration in µs, as the estimators keep it.
pub(crate) fn micros(d: Duration) -> u32 {
    u32::try_from(d.as_micros()).map_or(LONGEST, |micros| micros.min(LONGEST))
}
