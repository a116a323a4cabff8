//! Congestion control: how much may be in flight.

mod cubic;
mod highspeed;
mod reno;

use std::fmt;
use std::str::FromStr;

use sojourn_net::Instant;

pub use cubic::Cubic;
pub use highspeed::HighSpeed;
pub use reno::Reno;

/// The window a controller steers, in segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Congestion window.
    pub cwnd: u32,
    /// Slow-start threshold; [`Window::UNSET`] until the first congestion.
    pub ssthresh: u32,
    /// Segments acknowledged towards the next increase in congestion avoidance.
    pub cnt: u32,
}

impl Window {
    /// The threshold of a connection that has met no congestion.
    pub const UNSET: u32 = 0x7fff_ffff;

    /// A window of `cwnd` segments that has met no congestion.
    pub const fn new(cwnd: u32) -> Self {
        Self {
            cwnd,
            ssthresh: Self::UNSET,
            cnt: 0,
        }
    }

    /// Whether the window is below the threshold.
    #[inline]
    pub const fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Slow start: one segment for each acknowledged one, up to the threshold. Returns what is
    /// left of `acked`.
    #[inline]
    pub fn slow_start(&mut self, acked: u32) -> u32 {
        let cwnd = (self.cwnd + acked).min(self.ssthresh);
        let left = acked - (cwnd - self.cwnd);
        self.cwnd = cwnd;
        left
    }

    /// Additive increase: one segment for each `per` acknowledged.
    #[inline]
    pub fn additive_increase(&mut self, per: u32, acked: u32) {
        if self.cnt >= per {
            self.cnt = 0;
            self.cwnd += 1;
        }
        self.cnt += acked;
        if self.cnt >= per {
            let steps = self.cnt / per;
            self.cnt -= steps * per;
            self.cwnd += steps;
        }
    }
}

/// What an acknowledgement told the sender, beyond the window.
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    /// When it arrived.
    pub now: Instant,
    /// The host's 1 ms tick then.
    pub tick: u64,
    /// RTT of the newest segment it acknowledged, in µs; `None` if only retransmitted data was.
    pub rtt_micros: Option<u32>,
    /// First segment not acknowledged.
    pub snd_una: u32,
    /// Next segment to be sent for the first time.
    pub snd_nxt: u32,
    /// The rate 1.2 or 2 windows a round trip would be, in bytes/s.
    pub pacing_rate: u64,
}

/// Decides how much may be in flight; knows nothing of segments, timers or losses.
///
/// The sender calls `on_acked` for each acknowledgement before anything changes, `grow` when
/// the window limited sending and no reduction is under way, `ssthresh` when congestion begins.
pub trait CongestionControl {
    /// An acknowledgement arrived; slow start may be ended here by lowering `window.ssthresh`.
    fn on_acked(&mut self, window: &mut Window, ack: &Ack);

    /// Lets the window grow by what `acked` segments earn.
    fn grow(&mut self, window: &mut Window, ack: &Ack, acked: u32);

    /// The threshold after congestion met at `cwnd`.
    fn ssthresh(&mut self, cwnd: u32) -> u32;

    /// The retransmission timer expired; `ssthresh` has been asked before.
    fn on_timeout(&mut self, _now: Instant, _snd_nxt: u32) {}

    /// Sending resumes at tick `tick` after nothing was in flight since `last_sent`.
    fn on_resume(&mut self, _tick: u64, _last_sent: u64) {}
}

/// Which controller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CcKind {
    /// RFC 5681.
    Reno,
    /// RFC 9438 with HyStart, Linux's default.
    #[default]
    Cubic,
    /// RFC 3649.
    HighSpeed,
}

impl CcKind {
    /// Every controller.
    pub const ALL: [Self; 3] = [Self::Reno, Self::Cubic, Self::HighSpeed];

    /// What Linux calls it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reno => "reno",
            Self::Cubic => "cubic",
            Self::HighSpeed => "highspeed",
        }
    }
}

impl fmt::Display for CcKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that is no congestion control.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownCc(String);

impl fmt::Display for UnknownCc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is no congestion control; there are ", self.0)?;
        for (n, kind) in CcKind::ALL.iter().enumerate() {
            write!(f, "{}{kind}", if n > 0 { ", " } else { "" })?;
        }
        Ok(())
    }
}

impl std::error::Error for UnknownCc {}

impl FromStr for CcKind {
    type Err = UnknownCc;
    fn from_str(name: &str) -> Result<Self, UnknownCc> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.name() == name)
            .ok_or_else(|| UnknownCc(name.to_owned()))
    }
}

/// A controller, dispatched without indirection: it is asked on every acknowledgement.
#[derive(Clone, Debug)]
pub(crate) enum Controller {
    Reno(Reno),
    Cubic(Cubic),
    HighSpeed(HighSpeed),
}

impl Controller {
    pub(crate) fn new(kind: CcKind) -> Self {
        match kind {
            CcKind::Reno => Self::Reno(Reno),
            CcKind::Cubic => Self::Cubic(Cubic::default()),
            CcKind::HighSpeed => Self::HighSpeed(HighSpeed::default()),
        }
    }
}

macro_rules! dispatch {
    ($self:ident, $cc:ident => $call:expr) => {
        match $self {
            Controller::Reno($cc) => $call,
            Controller::Cubic($cc) => $call,
            Controller::HighSpeed($cc) => $call,
        }
    };
}

impl CongestionControl for Controller {
    #[inline]
    fn on_acked(&mut self, window: &mut Window, ack: &Ack) {
        dispatch!(self, cc => cc.on_acked(window, ack));
    }
    #[inline]
    fn grow(&mut self, window: &mut Window, ack: &Ack, acked: u32) {
        dispatch!(self, cc => cc.grow(window, ack, acked));
    }
    fn ssthresh(&mut self, cwnd: u32) -> u32 {
        dispatch!(self, cc => cc.ssthresh(cwnd))
    }
    fn on_timeout(&mut self, now: Instant, snd_nxt: u32) {
        dispatch!(self, cc => cc.on_timeout(now, snd_nxt));
    }
    fn on_resume(&mut self, tick: u64, last_sent: u64) {
        dispatch!(self, cc => cc.on_resume(tick, last_sent));
    }
}
