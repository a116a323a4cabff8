//! Controllers: code that sees measurements of each interval of a run and may change the links.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::RefUnwindSafe;
use std::sync::{Arc, LazyLock, PoisonError, RwLock, RwLockReadGuard};

use sojourn_net::{Bytes, Duration, Instant, Rate, Rng};

use super::Config;

/// A kind of controller that this process can start.
pub trait ControllerClass: fmt::Debug + Send + Sync + RefUnwindSafe {
    /// The name in a scenario.
    fn name(&self) -> &str;

    /// The program text, for the manifest of a result.
    fn source(&self) -> &str;

    /// Time between two calls.
    fn interval(&self) -> Duration;

    /// Whether it may change the wires of links (delay, jitter, loss, duplication), besides rates and queues.
    fn changes_wires(&self) -> bool;

    /// A controller for a run; `rng` is its own.
    fn start(&self, config: &Config, rng: Rng) -> Box<dyn Controller>;
}

/// A controller of one run.
pub trait Controller: fmt::Debug {
    /// Returns the changes to apply now, each with the name of its link.
    fn control(&mut self, measured: &Measured) -> Vec<Request>;

    /// Ends the run: the last call asked for a change that is not valid.
    fn refuse(&self, now: Instant, problem: String) -> !;
}

/// A change that a controller asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The number of the link.
    pub link: usize,
    /// The keys of a change without its time, as JSON.
    pub change: String,
}

/// What a controller sees of an interval.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// The end of the interval.
    pub at: Instant,
    /// One per link of the configuration.
    pub links: Vec<LinkMeasured>,
    /// Replies to pings that arrived in the interval.
    pub replies: Vec<Reply>,
}

/// What a controller sees of a link: its settings and its backlog at the end of an interval, and counts in the interval.
#[derive(Clone, Debug)]
pub struct LinkMeasured {
    /// `None`: a trace determines it, or it depends on the station.
    pub rate: Option<Rate>,
    /// The queue with its parameters.
    pub queue: String,
    /// Packets sent.
    pub sent_packets: u64,
    /// Bytes sent, without link-layer overhead.
    pub sent_bytes: u64,
    /// Share of the capacity that was used; `None` of a wireless link.
    pub utilisation: Option<f64>,
    /// Packets in the queue.
    pub backlog_packets: u64,
    /// Bytes in the queue.
    pub backlog_bytes: Bytes,
    /// Mean sojourn time of the packets sent; `None`: none were sent.
    pub sojourn_mean: Option<Duration>,
    /// Longest sojourn time of a packet sent.
    pub sojourn_max: Option<Duration>,
    /// Packets that the queue dropped.
    pub drops: u64,
    /// Packets that the queue marked.
    pub marks: u64,
    /// Packets that the wire lost.
    pub lost: u64,
}

/// The reply to a ping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The number of the flow.
    pub flow: usize,
    /// When the request was sent.
    pub sent: Instant,
    /// Delay of the request.
    pub there: Duration,
    /// Delay of the reply.
    pub back: Duration,
}

static REGISTERED: LazyLock<RwLock<BTreeMap<String, Arc<dyn ControllerClass>>>> =
    LazyLock::new(RwLock::default);

fn registered() -> RwLockReadGuard<'static, BTreeMap<String, Arc<dyn ControllerClass>>> {
    REGISTERED.read().unwrap_or_else(PoisonError::into_inner)
}

/// Adds a controller for the rest of the process; one of the same name is replaced.
pub fn register_controller(class: Arc<dyn ControllerClass>) {
    let name = class.name().to_owned();
    let mut all = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
    all.insert(name, class);
}

/// The controller of that name, if this process has it.
pub fn controller(name: &str) -> Option<Arc<dyn ControllerClass>> {
    registered().get(name).map(Arc::clone)
}
