//! Congestion controls.

mod bbr;
mod bbr3;
mod bbr_common;
mod contract;
mod cubic;
mod dctcp;
mod declaration;
mod highspeed;
mod ledbat;
mod prague;
mod progress;
mod reno;
mod slow_start;
pub mod spec;
mod vegas;
mod window;

use std::fmt;

use sojourn_schema::Parameters;

pub use bbr::{Bbr, BbrParams};
pub use bbr3::{Bbr3, Bbr3Params};
pub use contract::{BurstSize, ModelBased, Reduction, Resume, Timeout, WindowBased};
pub use cubic::{Cubic, CubicParams};
pub use dctcp::{Dctcp, DctcpParams};
use declaration::Control;
pub use declaration::{Declaration, EcnNeed, Setup};
pub use highspeed::{HighSpeed, HighSpeedParams};
pub use ledbat::{Ledbat, LedbatParams};
pub use prague::{Prague, PragueParams};
pub use progress::{Ack, EcnFeedback, Episode, LostSegment, Progress, RateSample, Start};
pub use reno::{Reno, RenoParams};
pub(crate) use slow_start::HyStartPlusPlus;
pub use slow_start::{HyStartPlusPlusParams, SlowStart};
pub use vegas::{Vegas, VegasParams};
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

/// Registers the controls, one line each: family, name, parameters, controller, and the parameters of HyStart++ if
/// it offers that.
macro_rules! controls {
    ($($family:ident $kind:ident($params:ty, $held:ty $(; $hystartpp:ident: $constants:ty)?);)+) => {
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

            /// The parameters of the control, and those of HyStart++ if it offers that.
            fn parts(&mut self) -> (&mut dyn Parameters, Option<&mut dyn Parameters>) {
                match self {
                    $(Self::$kind(params $(, $hystartpp)?) => {
                        let hystartpp: Option<&mut dyn Parameters> = None;
                        (params, hystartpp$(.or(Some($hystartpp)))?)
                    })+
                }
            }

            /// The constants of HyStart++; `None`: the control does not offer it.
            fn hystartpp_params(&self) -> Option<&HyStartPlusPlusParams> {
                match self {
                    $(Self::$kind(_ $(, $hystartpp)?) => {
                        let hystartpp: Option<&HyStartPlusPlusParams> = None;
                        hystartpp$(.or(Some($hystartpp)))?
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
    window Reno(RenoParams, Reno; hystartpp: HyStartPlusPlusParams);
    window Cubic(CubicParams, Cubic; hystartpp: HyStartPlusPlusParams);
    window HighSpeed(HighSpeedParams, HighSpeed; hystartpp: HyStartPlusPlusParams);
    window Dctcp(DctcpParams, Dctcp; hystartpp: HyStartPlusPlusParams);
    model Prague(PragueParams, Box<Prague>);
    model Bbr(BbrParams, Box<Bbr>);
    model Bbr3(Bbr3Params, Box<Bbr3>);
    window Vegas(VegasParams, Vegas);
    // Boxed, since it is larger than the others.
    window Ledbat(LedbatParams, Box<Ledbat>);
}

impl CcKind {
    /// The name in a specification, Linux's where it has the control.
    pub const fn name(self) -> &'static str {
        self.declaration().name
    }
}

impl CcSpec {
    /// HyStart++ of a new connection; `None`: another heuristic is in use.
    pub(crate) fn hystartpp(
        &self,
        in_use: Option<SlowStart>,
        paced: bool,
    ) -> Option<HyStartPlusPlus> {
        let params = self.hystartpp_params()?;
        (in_use == Some(SlowStart::HyStartPlusPlus)).then(|| HyStartPlusPlus::new(params, paced))
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
    #[inline]
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
    #[inline]
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

    /// [`ModelBased::on_start`].
    pub(crate) fn on_start(&mut self, window: &Window, start: &Start) {
        dispatch!(self, cc => window (), model cc.on_start(window, start));
    }

    /// [`ModelBased::update`].
    pub(crate) fn update(&mut self, window: &mut Window, ack: &Ack, progress: &Progress) -> bool {
        dispatch!(self, cc => window false, model cc.update(window, ack, progress))
    }

    /// [`ModelBased::on_lost`].
    pub(crate) fn on_lost(&mut self, window: &Window, lost: &LostSegment) {
        dispatch!(self, cc => window (), model cc.on_lost(window, lost));
    }

    /// [`ModelBased::on_undo`].
    pub(crate) fn on_undo(&mut self) {
        dispatch!(self, cc => window (), model cc.on_undo());
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
    #[inline]
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
