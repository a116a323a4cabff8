//! Congestion control: how much may be in flight.

mod bbr;
mod bbr3;
mod bbr_common;
mod contract;
mod cubic;
mod dctcp;
mod highspeed;
mod ledbat;
mod prague;
mod progress;
mod reno;
mod slow_start;
mod vegas;
mod window;

use std::fmt;
use std::str::FromStr;

pub use bbr::Bbr;
pub use bbr3::Bbr3;
pub use contract::{
    Ack, BurstSize, EcnFeedback, ModelBased, Reduction, Resume, Timeout, WindowBased,
};
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
pub use window::{Threshold, Window};

/// Chooses by the kind of controller: window-based or model-based.
macro_rules! by_kind {
    (window, $window:expr, $model:expr) => {
        $window
    };
    (model, $window:expr, $model:expr) => {
        $model
    };
}

/// Registers the controllers, one line each: kind, variant, name, type, construction from a seed.
macro_rules! controllers {
    ($($(#[$doc:meta])+ $family:ident $kind:ident($name:literal, $held:ty) = $new:expr;)+) => {
        /// Which controller.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum CcKind {
            $($(#[$doc])+ $kind,)+
        }

        impl CcKind {
            /// Every controller.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$kind),+];

            /// The name in a specification, Linux's where it has the control.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)+
                }
            }
        }

        /// A controller, dispatched without indirection: it is called on every acknowledgement.
        #[derive(Clone, Debug)]
        pub(crate) enum Controller {
            $($kind($held),)+
        }

        impl Controller {
            /// The controller of a new connection; `seed` starts its random draws.
            pub(crate) fn new(kind: CcKind, seed: u64) -> Self {
                match kind {
                    $(CcKind::$kind => {
                        let new: fn(u64) -> $held = $new;
                        Self::$kind(new(seed))
                    })+
                }
            }
        }

        /// Calls what a window-based, else what a model-based controller does.
        macro_rules! dispatch {
            ($self:ident, $cc:ident => window $window:expr, model $model:expr) => {
                match $self {
                    $(Controller::$kind($cc) => {
                        let _: &_ = $cc;
                        by_kind!($family, $window, $model)
                    })+
                }
            };
        }
    };
}

controllers! {
    /// RFC 5681.
    window Reno("reno", Reno) = |_| Reno;
    /// RFC 9438 with HyStart, Linux's default.
    window Cubic("cubic", Cubic) = |_| Cubic::default();
    /// RFC 3649.
    window HighSpeed("highspeed", HighSpeed) = |_| HighSpeed::default();
    /// RFC 8257; both ends are ECN-capable throughout.
    window Dctcp("dctcp", Dctcp) = |_| Dctcp::default();
    /// The L4S control of draft-briscoe-iccrg-prague-congestion-control.
    model Prague("prague", Box<Prague>) = |_| Box::default();
    /// BBR, version 1.
    model Bbr("bbr", Box<Bbr>) = |seed| Box::new(Bbr::new(seed));
    /// BBR, version 3.
    model Bbr3("bbr3", Box<Bbr3>) = |seed| Box::new(Bbr3::new(seed));
    /// Brakmo and Peterson's, as in Linux.
    window Vegas("vegas", Vegas) = |_| Vegas::default();
    /// RFC 6817. Boxed, since it is larger than the others.
    window Ledbat("ledbat", Box<Ledbat>) = |_| Box::default();
}

impl CcKind {
    /// The slow-start exit heuristics it offers, its default first; none: there is no choice.
    pub const fn slow_starts(self) -> &'static [SlowStart] {
        use SlowStart::{HyStart, HyStartPlusPlus, Standard};
        match self {
            Self::Cubic => &[HyStart, Standard, HyStartPlusPlus],
            Self::Reno | Self::HighSpeed | Self::Dctcp => &[Standard, HyStartPlusPlus],
            Self::Bbr | Self::Bbr3 | Self::Prague | Self::Vegas | Self::Ledbat => &[],
        }
    }

    /// Whether it depends on marks: it negotiates ECN in any case, and its peer echoes each CE.
    pub const fn needs_ecn(self) -> bool {
        matches!(self, Self::Dctcp | Self::Prague)
    }

    /// Whether it depends on counts of marks (RFC 9768), and asks for L4S (RFC 9331).
    pub const fn needs_accurate_ecn(self) -> bool {
        matches!(self, Self::Prague)
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

/// An unknown name of a congestion control.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownCc(String);

impl fmt::Display for UnknownCc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = CcKind::ALL.map(CcKind::name).join(", ");
        write!(
            f,
            "unknown congestion control {:?}; expected one of {names}",
            self.0
        )
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

impl Controller {
    /// Transmissions are paced.
    pub(crate) const fn expect_pacing(&mut self) {
        if let Self::Cubic(cubic) = self {
            cubic.expect_pacing();
        }
    }

    /// Selects a slow-start exit heuristic that the controller knows.
    pub(crate) const fn select_slow_start(&mut self, chosen: SlowStart) {
        if let Self::Cubic(cubic) = self {
            cubic.use_hystart(matches!(chosen, SlowStart::HyStart));
        }
    }

    /// Whether it is a [`ModelBased`] controller.
    pub(crate) fn is_model_based(&self) -> bool {
        dispatch!(self, cc => window false, model true)
    }

    /// [`WindowBased::on_ack`].
    #[inline]
    pub(crate) fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        dispatch!(self, cc => window cc.on_ack(window, ack), model ());
    }

    /// [`WindowBased::on_ecn_feedback`]; model-based controllers have it from [`Progress`].
    #[inline]
    pub(crate) fn on_ecn_feedback(&mut self, feedback: &EcnFeedback) {
        dispatch!(self, cc => window cc.on_ecn_feedback(feedback), model ());
    }

    /// [`WindowBased::grow`].
    #[inline]
    pub(crate) fn grow(&mut self, window: &mut Window, ack: &Ack, acked: u64) {
        dispatch!(self, cc => window cc.grow(window, ack, acked), model ());
    }

    /// The threshold as a reduction begins.
    pub(crate) fn ssthresh(&mut self, window: &Window) -> Threshold {
        dispatch!(self, cc =>
            window threshold(window, cc.ssthresh(window)),
            model cc.on_reduction(window, Reduction::Begins).unwrap_or(window.ssthresh)
        )
    }

    /// The threshold after a loss, if a loss is not answered like a mark.
    pub(crate) fn ssthresh_after_loss(&mut self, window: &Window) -> Option<Threshold> {
        dispatch!(self, cc =>
            window cc.ssthresh_after_loss(window).map(|bytes| threshold(window, bytes)),
            model cc.on_reduction(window, Reduction::Loss)
        )
    }

    /// The retransmission timer expired.
    pub(crate) fn on_timeout(&mut self, timeout: &Timeout) {
        dispatch!(self, cc => window cc.on_timeout(timeout), model cc.on_timeout());
    }

    /// [`WindowBased::on_resume`].
    pub(crate) fn on_resume(&mut self, resume: &Resume) {
        dispatch!(self, cc => window cc.on_resume(resume), model ());
    }

    /// [`ModelBased::on_start`].
    pub(crate) fn on_start(&mut self, window: &Window, start: &Start) {
        dispatch!(self, cc => window (), model cc.on_start(window, start));
    }

    /// [`ModelBased::update`].
    pub(crate) fn update(&mut self, window: &mut Window, ack: &Ack, progress: &Progress) -> bool {
        dispatch!(self, cc => window false, model cc.update(window, ack, progress))
    }

    /// [`ModelBased::on_undo`].
    pub(crate) fn on_undo(&mut self) {
        dispatch!(self, cc => window (), model cc.on_undo());
    }

    /// [`ModelBased::on_restart`].
    pub(crate) fn on_restart(&mut self, window: &mut Window, resume: &Resume) {
        dispatch!(self, cc => window (), model cc.on_restart(window, resume));
    }

    /// The controller's own pacing rate in bytes/s, for segments of `mss` bytes.
    #[inline]
    pub(crate) fn pacing_rate(&self, mss: u32) -> Option<u64> {
        dispatch!(self, cc => window None, model cc.pacing_rate(mss))
    }

    /// How many segments leave together.
    #[inline]
    pub(crate) fn burst_size(&self) -> BurstSize {
        dispatch!(self, cc => window BurstSize::DEFAULT, model cc.burst_size())
    }
}

/// A threshold of `bytes`.
fn threshold(window: &Window, bytes: u64) -> Threshold {
    Threshold::of_segments(window.segments_of(bytes))
}
