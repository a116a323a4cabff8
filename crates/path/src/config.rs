//! The parameters of links: rates, shapers, framing, traces and impairments.

mod line;
mod rates;
mod shaper;
mod trace;

pub use line::{
    Distribution, EcnRewrite, GilbertElliott, Jitter, LineConfig, Loss, Order, WireChange,
};
pub use rates::RateTrace;
pub use shaper::{Encapsulation, RingConfig, Shaper, TransmitterConfig};
pub(crate) use trace::share;
pub use trace::{Trace, TraceError};
