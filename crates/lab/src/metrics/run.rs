//! The rows of the tables that belong to one run.

use sojourn_net::Duration;

use super::columns::Identity;

/// A flow of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flow<'a> {
    pub(super) identity: Identity<'a>,
    pub(super) delivered_bytes: Option<f64>,
    pub(super) goodput_mbit_per_s: Option<f64>,
    pub(super) started_s: Option<f64>,
}

/// A link of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link<'a> {
    pub(super) name: &'a str,
    pub(super) sojourn_ms_p95: Option<f64>,
    pub(super) driver_ms_p95: Option<f64>,
    pub(super) drops: Option<f64>,
    pub(super) marks: Option<f64>,
}

/// A ping of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ping<'a> {
    pub(super) flow: &'a str,
    pub(super) t_s: f64,
    pub(super) rtt_ms: Option<f64>,
}

/// The rows of the tables that belong to one run.
#[derive(Clone, Debug, Default)]
pub(super) struct Run<'a> {
    pub(super) flows: Vec<Flow<'a>>,
    pub(super) links: Vec<Link<'a>>,
    pub(super) pings: Vec<Ping<'a>>,
}

/// The measured time of a run, in seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    /// End of the warm-up.
    pub(super) warmup: f64,
    /// From there to the end.
    pub(super) length: f64,
}

impl Window {
    /// From the end of the warm-up to the end of the run.
    pub(super) fn of(warmup: Duration, end: Duration) -> Self {
        Self {
            warmup: warmup.as_secs_f64(),
            length: end.saturating_sub(warmup).as_secs_f64(),
        }
    }
}
