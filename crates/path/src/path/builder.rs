//! The parameters of a path.

use std::fmt;
use std::io::Write;

use sojourn_net::{Bytes, Duration, Rate};
use sojourn_qdisc::QdiscSpec;

use super::{Direction, Path};
use crate::config::{
    EcnRewrite, Encapsulation, Jitter, LineConfig, Loss, RateTrace, Shaper, Trace, TraceError,
    TransmitterConfig,
};

/// The largest Ethernet frame, 14 B of header included.
const FULL_FRAME: Bytes = Bytes(1_514);

/// One direction of a path: a bottleneck and the wire behind it.
///
/// ```
/// use sojourn_path::{Bottleneck, Duration, Loss, Rate};
///
/// # fn main() -> Result<(), sojourn_path::PathError> {
/// let lossy = Bottleneck::new(Rate::mbit(50), "cake bandwidth 45mbit")?
///     .delay(Duration::from_millis(20))
///     .loss(Loss::Random(0.001))
///     .drop_list([3, 4, 5]);
///
/// let error = Bottleneck::new(Rate::mbit(50), "codel tarqet 5ms").unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "qdisc: codel: unknown parameter \"tarqet\"; did you mean \"target\"?",
/// );
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Bottleneck {
    pub(super) link: Option<(TransmitterConfig, QdiscSpec)>,
    pub(super) delay: Duration,
    pub(super) line: LineConfig,
}

impl Bottleneck {
    /// A link of `rate` behind a queue in the syntax of `tc`, such as `fq_codel limit 1000`: what follows
    /// `tc qdisc add dev …`, and what `sojourn live --qdisc` takes.
    ///
    /// # Errors
    /// If the queue is unknown, or a parameter is missing, unreadable or out of range.
    pub fn new(rate: Rate, qdisc: &str) -> Result<Self, PathError> {
        Ok(Self::of(TransmitterConfig::new(rate), parse(qdisc)?))
    }

    /// The same with a queue that has been parsed.
    pub const fn with_queue(rate: Rate, qdisc: QdiscSpec) -> Self {
        Self::of(TransmitterConfig::new(rate), qdisc)
    }

    /// A link that sends at the delivery opportunities of a [trace](Trace) of Mahimahi, such as one of a cellular link.
    ///
    /// # Errors
    /// As [`Bottleneck::new`].
    pub fn following(trace: &Trace, qdisc: &str) -> Result<Self, PathError> {
        let transmitter = TransmitterConfig {
            trace: Some(trace.clone()),
            ..TransmitterConfig::new(trace.mean_rate())
        };
        Ok(Self::of(transmitter, parse(qdisc)?))
    }

    /// A link whose rate changes over time.
    ///
    /// # Errors
    /// As [`Bottleneck::new`].
    pub fn varying(rates: &RateTrace, qdisc: &str) -> Result<Self, PathError> {
        let transmitter = TransmitterConfig {
            rates: Some(rates.clone()),
            ..TransmitterConfig::new(rates.mean_rate())
        };
        Ok(Self::of(transmitter, parse(qdisc)?))
    }

    /// No bottleneck: packets enter the wire at once.
    pub const fn none() -> Self {
        Self {
            link: None,
            delay: Duration::ZERO,
            line: LineConfig::PERFECT,
        }
    }

    const fn of(transmitter: TransmitterConfig, qdisc: QdiscSpec) -> Self {
        Self {
            link: Some((transmitter, qdisc)),
            delay: Duration::ZERO,
            line: LineConfig::PERFECT,
        }
    }

    /// Delay of the wire, from the last bit sent to its arrival; 0 by default.
    #[must_use]
    pub const fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Variation of the delay of the wire, with the distributions of `netem`.
    #[must_use]
    pub const fn jitter(mut self, jitter: Jitter) -> Self {
        self.line.jitter = Some(jitter);
        self
    }

    /// Random losses on the wire.
    #[must_use]
    pub const fn loss(mut self, loss: Loss) -> Self {
        self.line.loss = loss;
        self
    }

    /// Packets that the wire loses besides: their numbers among the packets that leave the bottleneck, from 1.
    #[must_use]
    pub fn drop_list(mut self, numbers: impl IntoIterator<Item = u64>) -> Self {
        self.line.drops = numbers.into_iter().collect();
        self.line.drops.sort_unstable();
        self.line.drops.dedup();
        self
    }

    /// Share of packets that arrive twice, 0 to 1.
    #[must_use]
    pub const fn duplicate(mut self, share: f64) -> Self {
        self.line.duplicate = share;
        self
    }

    /// What the wire does to the ECN field, as middleboxes do that clear it.
    #[must_use]
    pub const fn rewrite_ecn(mut self, ecn: EcnRewrite) -> Self {
        self.line.ecn = Some(ecn);
        self
    }

    /// How the rate is enforced; [`Shaper::Serial`] by default. Not for traces.
    #[must_use]
    pub fn shaper(mut self, shaper: Shaper) -> Self {
        if let Some((transmitter, _)) = &mut self.link {
            transmitter.shaper = shaper;
        }
        self
    }

    /// What a packet counts at the rate, such as the cells of a DSL link; the Ethernet frame by default.
    #[must_use]
    pub fn encapsulation(mut self, encapsulation: Encapsulation) -> Self {
        if let Some((transmitter, _)) = &mut self.link {
            transmitter.encapsulation = encapsulation;
        }
        self
    }

    /// The key that is out of its range, and the rule.
    fn fault(&self) -> Option<(&'static str, String)> {
        if self.delay > Duration::YEAR {
            return Some(("delay", "must be at most one year".to_owned()));
        }
        if let Some(fault) = self.line.fault() {
            return Some(fault);
        }
        if self.line.drops.first() == Some(&0) {
            return Some(("drop_list", "numbers must be >= 1".to_owned()));
        }
        let (transmitter, qdisc) = self.link.as_ref()?;
        if !qdisc.flow_filters().is_empty() {
            let rule = "filters by traffic and host need a scenario; expected filters by address, port or DSCP";
            return Some(("qdisc", rule.to_owned()));
        }
        let frame = transmitter.encapsulation.charged(FULL_FRAME);
        match transmitter.shaper {
            Shaper::Serial => None,
            _ if transmitter.follows_trace() => {
                let rule = "a link that follows a trace has no shaper; remove it";
                Some(("shaper", rule.to_owned()))
            }
            Shaper::Tbf { burst } if burst < frame => {
                let (Bytes(burst), Bytes(frame)) = (burst, frame);
                let rule = format!(
                    "a tbf bucket of {burst} B never lets a full frame pass; expected at least {frame} B"
                );
                Some(("shaper", rule))
            }
            Shaper::Ring(ring) if ring.packets == 0 => {
                Some(("shaper", "a ring must hold >= 1 packet".to_owned()))
            }
            Shaper::Bucket { .. } | Shaper::Tbf { .. } | Shaper::Ring(_) => None,
        }
    }
}

/// Where a capture goes.
pub(super) struct Output(pub(super) Box<dyn Write + Send>);

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Output").finish_non_exhaustive()
    }
}

pub(super) fn parse(qdisc: &str) -> Result<QdiscSpec, PathError> {
    QdiscSpec::parse(qdisc).map_err(|error| PathError {
        place: "qdisc".to_owned(),
        rule: error.to_string(),
    })
}

/// Why a path cannot be built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathError {
    /// The parameter at fault, such as `forward.loss`.
    pub place: String,
    /// What is wrong and what is accepted.
    pub rule: String,
}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.rule)
    }
}

impl std::error::Error for PathError {}

/// So that `?` does for traces what it does for queues.
impl From<TraceError> for PathError {
    fn from(error: TraceError) -> Self {
        Self {
            place: "trace".to_owned(),
            rule: error.to_string(),
        }
    }
}

/// Sets the parameters of a [`Path`].
#[derive(Debug, Default)]
pub struct PathBuilder {
    pub(super) seed: u64,
    forward: Option<Bottleneck>,
    reverse: Option<Bottleneck>,
    pub(super) records_events: bool,
    pub(super) is_strict: bool,
    pub(super) capture: Option<Output>,
}

impl PathBuilder {
    /// The forward direction. By default, packets pass it in no time.
    #[must_use]
    pub fn forward(mut self, bottleneck: Bottleneck) -> Self {
        self.forward = Some(bottleneck);
        self
    }

    /// The reverse direction. By default, it has the delay of the forward direction and no bottleneck.
    #[must_use]
    pub fn reverse(mut self, bottleneck: Bottleneck) -> Self {
        self.reverse = Some(bottleneck);
        self
    }

    /// The seed of every random number; 0 by default.
    #[must_use]
    pub const fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Records [events](Path::events).
    #[must_use]
    pub const fn events(mut self) -> Self {
        self.records_events = true;
        self
    }

    /// Lets [`Path::poll`] panic if it returns a packet after its arrival.
    ///
    /// A late call does not change what the queues do, but the receiver gets its packets late, as if the path were
    /// slower. A test that forgets [`Path::deadline`] then fails instead of measuring its own loop.
    #[must_use]
    pub const fn strict(mut self) -> Self {
        self.is_strict = true;
        self
    }

    /// Writes all packets to `out` in the format pcapng, where they are offered to a queue, leave it and are lost, with
    /// the reasons of drops and marks as comments. Wireshark reads it; see [`sojourn_capture`] for the points.
    ///
    /// Each packet is one call of [`Write::write_all`], so `out` should be buffered. Call [`Path::finish_capture`] for
    /// errors.
    #[must_use]
    pub fn capture(mut self, out: impl Write + Send + 'static) -> Self {
        self.capture = Some(Output(Box::new(out)));
        self
    }

    /// Builds the path, at time zero. `B` is the type of the bytes of a packet, such as `Vec<u8>`.
    ///
    /// # Errors
    /// If a parameter is out of its range.
    pub fn build<B: AsRef<[u8]> + Clone>(mut self) -> Result<Path<B>, PathError> {
        let forward = self.forward.take().unwrap_or(Bottleneck::none());
        let reverse = self.reverse.take();
        let reverse = reverse.unwrap_or(Bottleneck::none().delay(forward.delay));
        for (direction, bottleneck) in Direction::BOTH.into_iter().zip([&forward, &reverse]) {
            if let Some((key, rule)) = bottleneck.fault() {
                let place = format!("{direction}.{key}");
                return Err(PathError { place, rule });
            }
        }
        Ok(Path::new(self, &[forward, reverse]))
    }
}
