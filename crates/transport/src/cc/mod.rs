//! Congestion control: how much may be in flight.

mod bbr;
mod bbr3;
mod cubic;
mod dctcp;
mod highspeed;
mod ledbat;
mod prague;
mod progress;
mod reno;
mod slow_start;
mod vegas;

use std::fmt;
use std::str::FromStr;

use sojourn_net::Instant;

pub use bbr::Bbr;
pub use bbr3::Bbr3;
pub use cubic::Cubic;
pub use dctcp::Dctcp;
pub use highspeed::HighSpeed;
pub use ledbat::Ledbat;
pub use prague::Prague;
pub use progress::{Episode, Progress, RateSample, Start};
pub use reno::Reno;
pub(crate) use slow_start::HyStartPlusPlus;
pub use slow_start::SlowStart;
pub use vegas::Vegas;

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
    /// The peer's clock less what it echoes of this host's, in ms: the delay of the way there, and
    /// a constant; `None` where nobody tells it.
    pub one_way_ms: Option<u32>,
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

    /// With ECN, each acknowledgement before anything else changes: how many segments it delivered
    /// and how many of them it says were marked.
    fn on_echo(&mut self, _snd_una: u32, _snd_nxt: u32, _delivered: u32, _marked: u32) {}

    /// The threshold after a loss met at `cwnd`, if a loss is not answered as a mark is.
    fn ssthresh_of_loss(&mut self, _cwnd: u32) -> Option<u32> {
        None
    }

    /// The retransmission timer expired; `ssthresh` has been asked before.
    fn on_timeout(&mut self, _now: Instant, _snd_nxt: u32) {}

    /// Sending resumes at tick `tick` after nothing was in flight since `last_sent`.
    fn on_resume(&mut self, _tick: u64, _last_sent: u64) {}

    /// Whether it sets window and pacing rate itself ([`CongestionControl::steer`]), from a model
    /// of the path. `grow` is not asked then, `ssthresh` only tells that congestion begins, and
    /// neither reductions nor pauses nor undoing change the window.
    fn steers(&self) -> bool {
        false
    }

    /// The handshake is over.
    fn begin(&mut self, _window: &Window, _start: &Start) {}

    /// An acknowledgement, with all it told of the path. Returns whether the controller holds
    /// sending down, so that the rates to come say nothing of the path.
    fn steer(&mut self, _window: &mut Window, _ack: &Ack, _progress: &Progress) -> bool {
        false
    }

    /// The last reduction turned out to be unfounded.
    fn on_undo(&mut self) {}

    /// The application has something to send again and nothing is in flight.
    fn on_restart(&mut self, _window: &mut Window, _now: Instant, _tick: u64) {}

    /// How fast to send, in bytes/s, if it says so itself.
    fn pacing_rate(&self) -> Option<u64> {
        None
    }

    /// What is sent together takes 2^-n s at the pacing rate.
    fn unit_shift(&self) -> u32 {
        10
    }

    /// How many segments are sent together at least.
    fn least_unit(&self) -> u32 {
        2
    }
}

/// Names the controllers, one line each: variant, name, what it holds, how it begins with a seed.
macro_rules! controllers {
    ($($(#[$doc:meta])+ $kind:ident($name:literal, $held:ty) = $new:expr;)+) => {
        /// Which controller.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum CcKind {
            $($(#[$doc])+ $kind,)+
        }

        impl CcKind {
            /// Every controller.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$kind),+];

            /// What Linux calls it.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)+
                }
            }
        }

        /// A controller, dispatched without indirection: it is asked on every acknowledgement.
        #[derive(Clone, Debug)]
        pub(crate) enum Controller {
            $($kind($held),)+
        }

        impl Controller {
            /// The controller at a connection's beginning; what it draws by lot comes from `seed`.
            pub(crate) fn new(kind: CcKind, seed: u64) -> Self {
                match kind {
                    $(CcKind::$kind => {
                        let new: fn(u64) -> $held = $new;
                        Self::$kind(new(seed))
                    })+
                }
            }
        }

        macro_rules! dispatch {
            ($self:ident, $cc:ident => $call:expr) => {
                match $self {
                    $(Controller::$kind($cc) => $call,)+
                }
            };
        }
    };
}

controllers! {
    /// RFC 5681.
    Reno("reno", Reno) = |_| Reno;
    /// RFC 9438 with HyStart, Linux's default.
    Cubic("cubic", Cubic) = |_| Cubic::default();
    /// RFC 3649.
    HighSpeed("highspeed", HighSpeed) = |_| HighSpeed::default();
    /// RFC 8257; both ends are ECN-capable throughout.
    Dctcp("dctcp", Dctcp) = |_| Dctcp::default();
    /// The L4S control of draft-briscoe-iccrg-prague-congestion-control.
    Prague("prague", Box<Prague>) = |_| Box::default();
    /// BBR, version 1.
    Bbr("bbr", Box<Bbr>) = |seed| Box::new(Bbr::new(seed));
    /// BBR, version 3.
    Bbr3("bbr3", Box<Bbr3>) = |seed| Box::new(Bbr3::new(seed));
    /// Brakmo and Peterson's, as in Linux.
    Vegas("vegas", Vegas) = |_| Vegas::default();
    /// RFC 6817. Larger than the others, which should not pay for it.
    Ledbat("ledbat", Box<Ledbat>) = |_| Box::default();
}

impl CcKind {
    /// The ways in which its slow start may end, its own first; none: no other than its own.
    pub const fn slow_starts(self) -> &'static [SlowStart] {
        use SlowStart::{HyStart, HyStartPlusPlus, Standard};
        match self {
            Self::Cubic => &[HyStart, Standard, HyStartPlusPlus],
            Self::Reno | Self::HighSpeed | Self::Dctcp => &[Standard, HyStartPlusPlus],
            Self::Bbr | Self::Bbr3 | Self::Prague | Self::Vegas | Self::Ledbat => &[],
        }
    }

    /// Whether it lives on marks: it negotiates ECN unasked, and its peer echoes each CE.
    pub const fn needs_ecn(self) -> bool {
        matches!(self, Self::Dctcp | Self::Prague)
    }

    /// Whether it must hear how many packets were marked (RFC 9768), and asks for L4S (RFC 9331).
    pub const fn needs_accurate_ecn(self) -> bool {
        matches!(self, Self::Prague)
    }
}

impl Controller {
    /// Transmissions will be paced.
    pub(crate) const fn expect_pacing(&mut self) {
        if let Self::Cubic(cubic) = self {
            cubic.expect_pacing();
        }
    }

    /// Slow start shall end in this way, which it knows.
    pub(crate) const fn end_slow_start_by(&mut self, way: SlowStart) {
        if let Self::Cubic(cubic) = self {
            cubic.use_hystart(matches!(way, SlowStart::HyStart));
        }
    }
}

impl Default for CcKind {
    /// Linux's.
    fn default() -> Self {
        Self::Cubic
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
    fn on_echo(&mut self, snd_una: u32, snd_nxt: u32, delivered: u32, marked: u32) {
        dispatch!(self, cc => cc.on_echo(snd_una, snd_nxt, delivered, marked));
    }
    fn ssthresh_of_loss(&mut self, cwnd: u32) -> Option<u32> {
        dispatch!(self, cc => cc.ssthresh_of_loss(cwnd))
    }
    fn on_timeout(&mut self, now: Instant, snd_nxt: u32) {
        dispatch!(self, cc => cc.on_timeout(now, snd_nxt));
    }
    fn on_resume(&mut self, tick: u64, last_sent: u64) {
        dispatch!(self, cc => cc.on_resume(tick, last_sent));
    }
    fn steers(&self) -> bool {
        dispatch!(self, cc => cc.steers())
    }
    fn begin(&mut self, window: &Window, start: &Start) {
        dispatch!(self, cc => cc.begin(window, start));
    }
    fn steer(&mut self, window: &mut Window, ack: &Ack, progress: &Progress) -> bool {
        dispatch!(self, cc => cc.steer(window, ack, progress))
    }
    fn on_undo(&mut self) {
        dispatch!(self, cc => cc.on_undo());
    }
    fn on_restart(&mut self, window: &mut Window, now: Instant, tick: u64) {
        dispatch!(self, cc => cc.on_restart(window, now, tick));
    }
    #[inline]
    fn pacing_rate(&self) -> Option<u64> {
        dispatch!(self, cc => cc.pacing_rate())
    }
    #[inline]
    fn unit_shift(&self) -> u32 {
        dispatch!(self, cc => cc.unit_shift())
    }
    #[inline]
    fn least_unit(&self) -> u32 {
        dispatch!(self, cc => cc.least_unit())
    }
}
