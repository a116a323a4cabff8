//! Congestion controls.

mod bbr;
mod bbr3;
mod bbr_common;
mod bic;
mod contract;
mod copa;
mod cubic;
mod dctcp;
mod declaration;
mod highspeed;
mod htcp;
mod hybla;
mod illinois;
mod ledbat;
mod lp;
mod prague;
mod progress;
mod reno;
mod scalable;
#[cfg(test)]
#[expect(unreachable_pub, reason = "make new-cc makes a public control of it")]
mod skeleton;
mod slow_start;
pub mod spec;
mod vegas;
mod veno;
mod westwood;
mod window;
mod yeah;

use std::fmt;

use sojourn_schema::Parameters;

pub use bbr::{Bbr, BbrParams};
pub use bbr3::{Bbr3, Bbr3Params};
pub use bic::{Bic, BicParams};
pub use contract::{
    BurstSize, ModelBased, Phase, Reduction, Resume, Timeout, Transition, WindowBased,
};
pub use copa::{Copa, CopaParams};
pub use cubic::{Cubic, CubicParams};
pub use dctcp::{Dctcp, DctcpParams};
use declaration::Control;
pub use declaration::{Declaration, EcnNeed, Setup};
pub use highspeed::{HighSpeed, HighSpeedParams};
pub use htcp::{HTcp, HTcpParams};
pub use hybla::{Hybla, HyblaParams};
pub use illinois::{Illinois, IllinoisParams};
pub use ledbat::{Ledbat, LedbatParams};
pub use lp::{Lp, LpParams};
pub use prague::{Prague, PragueParams};
pub use progress::{Ack, Echo, EcnFeedback, Episode, LostSegment, Progress, RateSample, Start};
pub use reno::{Reno, RenoParams};
pub use scalable::{Scalable, ScalableParams};
pub(crate) use slow_start::{Settled, SlowStartExit};
pub use slow_start::{SlowStart, SlowStartParams};
pub use vegas::{Vegas, VegasParams};
pub use veno::{Veno, VenoParams};
pub use westwood::{Westwood, WestwoodParams};
pub use window::{Threshold, Window};
pub use yeah::{Yeah, YeahParams};

/// Chooses by the kind of controller: window-based or model-based.
macro_rules! by_kind {
    (window, $window:expr, $model:expr) => {
        $window
    };
    (model, $window:expr, $model:expr) => {
        $model
    };
}

/// Registers the controls, one line each: family, name, parameters, controller, and the parameters of slow-start
/// exit heuristics if it offers these.
macro_rules! controls {
    ($($family:ident $kind:ident($params:ty, $held:ty $(; $exit:ident: $constants:ty)?);)+) => {
        /// Which congestion control.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum CcKind {
            $(#[doc = concat!("[`", stringify!($kind), "`].")] $kind,)+
        }

        impl CcKind {
            /// Every control.
            pub const ALL: [Self; [$(stringify!($kind)),+].len()] = [$(Self::$kind),+];

            /// Whether the control sets a pacing rate from a model of the path, so that its transmissions are paced.
            pub const fn is_model_based(self) -> bool {
                match self {
                    $(Self::$kind => by_kind!($family, false, true),)+
                }
            }

            /// What the control says about itself.
            pub const fn declaration(self) -> Declaration {
                match self {
                    $(Self::$kind => <$params as Control>::DECLARATION,)+
                }
            }
        }

        /// A congestion control with its parameters.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum CcSpec {
            $(#[doc = concat!("[`", stringify!($kind), "`].")] $kind($params $(, $constants)?),)+
        }

        impl CcSpec {
            /// Which control.
            pub const fn kind(&self) -> CcKind {
                match self {
                    $(Self::$kind(..) => CcKind::$kind,)+
                }
            }

            /// The parameters of the control, and those of slow-start exit heuristics if it offers these.
            fn parts(&mut self) -> (&mut dyn Parameters, Option<&mut dyn Parameters>) {
                match self {
                    $(Self::$kind(params $(, $exit)?) => {
                        let exit: Option<&mut dyn Parameters> = None;
                        (params, exit$(.or(Some($exit)))?)
                    })+
                }
            }

            /// The constants of slow-start exit heuristics; `None`: the control offers none that has any.
            fn slow_start_params(&self) -> Option<&SlowStartParams> {
                match self {
                    $(Self::$kind(_ $(, $exit)?) => {
                        let exit: Option<&SlowStartParams> = None;
                        exit$(.or(Some($exit)))?
                    })+
                }
            }

            /// Why the values of the control contradict each other, if they do.
            fn own_conflict(&self) -> Option<String> {
                match self {
                    $(Self::$kind(params, ..) => Control::conflict(params),)+
                }
            }

            /// The slow-start exit heuristic if none is chosen, over TCP; `None`: one of the controller's own.
            pub(crate) fn usual_slow_start(&self) -> Option<SlowStart> {
                match self {
                    $(Self::$kind(params, ..) => params.usual_slow_start(),)+
                }
            }

            /// The smallest congestion window while packets are lost, in segments.
            pub fn least_window(&self) -> u32 {
                match self {
                    $(Self::$kind(params, ..) => params.least_window(),)+
                }
            }

            /// Whether the window falls by one segment per acknowledgement after losses.
            pub fn reduces_by_steps(&self) -> bool {
                match self {
                    $(Self::$kind(params, ..) => params.reduces_by_steps(),)+
                }
            }

            /// Upper bound on the packets lost after slow start, as a multiple of the excess of its window.
            pub fn excess_losses(&self) -> u32 {
                match self {
                    $(Self::$kind(params, ..) => params.excess_losses(),)+
                }
            }

            /// The slow-start threshold of a new connection.
            pub(crate) fn initial_ssthresh(&self, setup: &Setup) -> Threshold {
                match self {
                    $(Self::$kind(params, ..) => params.initial_ssthresh(setup),)+
                }
            }
        }

        impl From<CcKind> for CcSpec {
            /// The control with its default parameters.
            fn from(kind: CcKind) -> Self {
                match kind {
                    $(CcKind::$kind => <$params>::default().into(),)+
                }
            }
        }

        $(impl From<$params> for CcSpec {
            fn from(params: $params) -> Self {
                Self::$kind(params $(, <$constants>::default())?)
            }
        })+

        /// A controller, dispatched without indirection: it is called on every acknowledgement.
        #[derive(Clone, Debug)]
        pub(crate) enum Controller {
            $($kind($held),)+
        }

        impl Controller {
            /// The controller of a new connection.
            pub(crate) fn new(spec: &CcSpec, setup: &Setup) -> Self {
                match spec {
                    $(CcSpec::$kind(params, ..) => Self::$kind(params.build(setup).into()),)+
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

controls! {
    window Reno(RenoParams, Reno; slow_start: SlowStartParams);
    window Cubic(CubicParams, Cubic; slow_start: SlowStartParams);
    window HighSpeed(HighSpeedParams, HighSpeed; slow_start: SlowStartParams);
    window Dctcp(DctcpParams, Dctcp; slow_start: SlowStartParams);
    model Prague(PragueParams, Box<Prague>);
    model Bbr(BbrParams, Box<Bbr>);
    model Bbr3(Bbr3Params, Box<Bbr3>);
    window Vegas(VegasParams, Vegas);
    // Boxed, since it is larger than the others.
    window Ledbat(LedbatParams, Box<Ledbat>);
    window Westwood(WestwoodParams, Westwood; slow_start: SlowStartParams);
    window HTcp(HTcpParams, HTcp; slow_start: SlowStartParams);
    window Scalable(ScalableParams, Scalable; slow_start: SlowStartParams);
    window Veno(VenoParams, Veno; slow_start: SlowStartParams);
    window Illinois(IllinoisParams, Illinois; slow_start: SlowStartParams);
    window Bic(BicParams, Bic; slow_start: SlowStartParams);
    window Hybla(HyblaParams, Hybla);
    window Yeah(YeahParams, Yeah);
    window Lp(LpParams, Lp);
    model Copa(CopaParams, Box<Copa>);
}

impl CcKind {
    /// The name in a specification, Linux's where it has the control.
    pub const fn name(self) -> &'static str {
        self.declaration().name
    }
}

impl CcSpec {
    /// The slow-start exit heuristic of a new connection, if it is `in_use` and not part of the control.
    pub(crate) fn slow_start_exit(
        &self,
        in_use: Option<SlowStart>,
        paced: bool,
    ) -> Option<SlowStartExit> {
        SlowStartExit::new(self.slow_start_params()?, in_use?, paced)
    }
}

impl Default for CcSpec {
    fn default() -> Self {
        CcKind::default().into()
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

impl Controller {
    /// Whether it is a [`ModelBased`] controller.
    #[inline]
    pub(crate) fn is_model_based(&self) -> bool {
        dispatch!(self, cc => window false, model true)
    }

    /// [`WindowBased::on_ack`].
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "once per acknowledgement; otherwise the compiler passes `ack` in memory, for CUBIC too"
    )]
    pub(crate) fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        match self {
            Self::Cubic(cc) => cc.on_ack(window, ack),
            other if other.is_model_based() => {}
            // A copy: a reference given to an out-of-line function would force `ack` into memory, for CUBIC too.
            other => other.on_ack_out_of_line(window, *ack),
        }
    }

    /// Of a window-based control.
    #[inline(never)]
    fn on_ack_out_of_line(&mut self, window: &mut Window, ack: Ack) {
        dispatch!(self, cc => window cc.on_ack(window, &ack), model ());
    }

    /// [`WindowBased::on_ecn_feedback`]; model-based controllers have it from [`Progress`].
    #[inline]
    pub(crate) fn on_ecn_feedback(&mut self, feedback: &EcnFeedback) {
        dispatch!(self, cc => window cc.on_ecn_feedback(feedback), model ());
    }

    /// [`WindowBased::grow`].
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "once per acknowledgement; otherwise the compiler passes `ack` in memory, for CUBIC too"
    )]
    pub(crate) fn grow(&mut self, window: &mut Window, ack: &Ack, acked: u64) {
        match self {
            Self::Cubic(cc) => cc.grow(window, ack, acked),
            other if other.is_model_based() => {}
            other => other.grow_out_of_line(window, *ack, acked),
        }
    }

    /// Of a window-based control.
    #[inline(never)]
    fn grow_out_of_line(&mut self, window: &mut Window, ack: Ack, acked: u64) {
        dispatch!(self, cc => window cc.grow(window, &ack, acked), model ());
    }

    /// [`WindowBased::on_unused`].
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "once per acknowledgement; otherwise the compiler passes `ack` in memory, for CUBIC too"
    )]
    pub(crate) fn on_unused(&mut self, window: &Window, ack: &Ack) {
        match self {
            Self::Cubic(_) => {}
            other => other.on_unused_out_of_line(window, *ack),
        }
    }

    /// Of a window-based control.
    #[inline(never)]
    fn on_unused_out_of_line(&mut self, window: &Window, ack: Ack) {
        dispatch!(self, cc => window cc.on_unused(window, &ack), model ());
    }

    /// The threshold as a reduction begins.
    pub(crate) fn ssthresh(&mut self, window: &Window, tick: u64) -> Threshold {
        dispatch!(self, cc =>
            window threshold(window, cc.ssthresh(window, tick)),
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

    /// The threshold after a time-out, if it is another one.
    pub(crate) fn ssthresh_after_timeout(&mut self, window: &Window) -> Option<Threshold> {
        dispatch!(self, cc =>
            window cc.ssthresh_after_timeout(window).map(|bytes| threshold(window, bytes)),
            model cc.on_reduction(window, Reduction::Loss)
        )
    }

    /// [`WindowBased::on_phase`].
    pub(crate) fn on_phase(&mut self, transition: &Transition) {
        dispatch!(self, cc => window cc.on_phase(transition), model ());
    }

    /// [`WindowBased::on_reduced`].
    pub(crate) fn on_reduced(&mut self, window: &mut Window) {
        dispatch!(self, cc => window cc.on_reduced(window), model ());
    }

    /// The retransmission timer expired.
    pub(crate) fn on_timeout(&mut self, timeout: &Timeout) {
        dispatch!(self, cc => window cc.on_timeout(timeout), model cc.on_timeout());
    }

    /// [`CcKind::abe_percent`].
    pub(crate) const fn abe_percent(&self) -> Option<u32> {
        match self {
            Self::Reno(_) => CcKind::Reno.abe_percent(),
            Self::Cubic(_) => CcKind::Cubic.abe_percent(),
            _ => None,
        }
    }

    /// [`WindowBased::on_resume`].
    pub(crate) fn on_resume(&mut self, resume: &Resume) {
        dispatch!(self, cc => window cc.on_resume(resume), model ());
    }

    /// [`WindowBased::on_lone_resend`].
    pub(crate) fn on_lone_resend(&mut self, snd_nxt: u32) {
        dispatch!(self, cc => window cc.on_lone_resend(snd_nxt), model ());
    }

    /// The handshake is over.
    pub(crate) fn on_start(&mut self, window: &mut Window, start: &Start) {
        dispatch!(self, cc => window cc.on_start(window, start), model cc.on_start(window, start));
    }

    /// [`ModelBased::update`].
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "once per acknowledgement; the compiler calls it because of the number of controls"
    )]
    pub(crate) fn update(&mut self, window: &mut Window, ack: &Ack, progress: &Progress) -> bool {
        dispatch!(self, cc => window false, model cc.update(window, ack, progress))
    }

    /// [`ModelBased::on_lost`].
    pub(crate) fn on_lost(&mut self, window: &Window, lost: &LostSegment) {
        dispatch!(self, cc => window (), model cc.on_lost(window, lost));
    }

    /// The last reduction turned out to be spurious.
    pub(crate) fn on_undo(&mut self) {
        dispatch!(self, cc => window cc.on_undo(), model cc.on_undo());
    }

    /// [`ModelBased::on_restart`].
    pub(crate) fn on_restart(&mut self, window: &mut Window, resume: &Resume) {
        dispatch!(self, cc => window (), model cc.on_restart(window, resume));
    }

    /// [`ModelBased::pacing_rate`].
    #[inline]
    pub(crate) fn pacing_rate(&self, mss: u32) -> Option<u64> {
        dispatch!(self, cc => window None, model cc.pacing_rate(mss))
    }

    /// [`ModelBased::needs_delivery_rates`].
    pub(crate) fn needs_delivery_rates(&self) -> bool {
        dispatch!(self, cc => window false, model cc.needs_delivery_rates())
    }

    /// [`ModelBased::needs_round_without_loss`].
    pub(crate) fn needs_round_without_loss(&self) -> bool {
        dispatch!(self, cc => window false, model cc.needs_round_without_loss())
    }

    /// [`ModelBased::pacing_rate`], and how many segments leave together.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "once per acknowledgement; the compiler calls it because of the number of controls"
    )]
    pub(crate) fn pacing(&self, mss: u32) -> (Option<u64>, BurstSize) {
        dispatch!(self, cc =>
            window (None, BurstSize::DEFAULT),
            model (cc.pacing_rate(mss), cc.burst_size())
        )
    }
}

/// A threshold of `bytes`.
fn threshold(window: &Window, bytes: u64) -> Threshold {
    Threshold::of_segments(window.segments_of(bytes))
}
