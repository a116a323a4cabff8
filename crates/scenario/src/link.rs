//! Links: decoding and encoding `links.<name>`, and conversion to the plan.

mod change;
mod line;
mod medium;
mod series;
mod series_file;
mod trace;

use sojourn_net::{Bytes, Duration, Rate};
use sojourn_qdisc::{Framing, QdiscSpec};

use crate::declare::{KeyValue, Keys, Percent, keys, one_of, words};
use crate::error::ScenarioError;
use crate::key::Form;
use crate::place::{Fields, Place};
use crate::plan::{self, EcnRewrite, LinkConfig, RateTrace, RingConfig, Shaper, Trace, WireChange};
use crate::value::{Node, Table, Value, size};
use change::{Change, Changes};
pub use change::{changed_keys, controlled_change, with_controlled_changes};
use line::{Chain, Deviation, DropList, Jitter, LAST_DROP, Loss, MPU, Mpu, Overhead};
use medium::Medium;
use series::{Delays, Points, Rates, SeriesKeys, Shares};
use trace::Traced;
pub(crate) use trace::embed;
pub use trace::trace_mean_rate;

keys! {
    /// The keys of a link.
    #[derive(Clone, Debug)]
    pub(crate) struct LinkKeys {
        /// Bit rate, over Ethernet frames (14 B header, no FCS) plus link-layer overhead.
        rate: Option<Rate> = Form::RATE;
        /// Path of a Mahimahi capacity trace, relative to the scenario file; replaces rate.
        trace: Option<Traced> = Form::Either(&[Form::Def("text"), Form::Table(Traced::KEYS)]);
        /// Path of a file with the rate over time, relative to the scenario file; replaces rate.
        rate_trace: Option<Rates> = Form::Either(&[Form::Def("text"), Form::Table(SeriesKeys::KEYS)]);
        /// Queue of the link.
        qdisc: QdiscSpec = Form::QDISC, required "\"fq_codel\"";
        /// Propagation delay after the transmitter.
        delay: Duration = Form::TIME, default "0s";
        /// Path of a file with the delay over time, relative to the scenario file; replaces delay.
        delay_trace: Option<Delays> = Form::Either(&[Form::Def("text"), Form::Table(SeriesKeys::KEYS)]);
        /// Bytes added to each frame, or a link layer by its tc name.
        overhead: Option<Overhead> = Form::Def("overhead");
        /// Minimum size of a frame, overhead included.
        mpu: Option<Mpu> = MPU;
        /// Framing of the link layer.
        framing: Option<Framing> = Form::Choice(|| Framing::WORDS.to_vec());
        /// Enforce the rate with a token bucket of this size; htb: 1 ms at the rate plus 1600 B.
        burst: Option<Burst> = Form::Either(&[Form::Choice(|| vec![HTB]), Form::Size(1, LARGEST_BURST)]);
        /// With burst: a packet leaves while there are tokens (htb, the default), or once there are enough for it (tbf).
        bucket: Option<Bucket> = one_of::<Bucket>();
        /// Packets that the transmit ring of the device holds below the queue; by default, the device takes a packet
        /// when it can send it.
        tx_ring: Option<u32> = Form::Integer(1, LARGEST_RING as i64);
        /// With tx_ring: byte queue limits (BQL) bound the bytes in the ring.
        bql: bool = Form::Flag, usual "true";
        /// With tx_ring: time from a transmission to the interrupt that reports it and those that follow.
        tx_coalesce: Duration = Form::TIME, usual "0s";
        /// Share of packets lost on the wire, or a Gilbert-Elliott model.
        loss: Option<Loss> = Form::Either(&[Form::PERCENT, Form::Table(Chain::KEYS)]);
        /// Path of a file with the loss over time, relative to the scenario file; replaces loss.
        loss_trace: Option<Shares> = Form::Either(&[Form::Def("text"), Form::Table(SeriesKeys::KEYS)]);
        /// Numbers of packets that the wire loses, counted from 1 in the order in which the link sends them.
        drop: Option<DropList> = Form::List(1, &Form::Integer(1, LAST_DROP));
        /// Share of packets duplicated on the wire.
        duplicate: Percent = Form::PERCENT, usual "0%";
        /// IP ECN field that the wire writes into every packet, or mark: CE into every ECN-capable packet.
        ecn: Option<EcnRewrite> = one_of::<EcnRewrite>();
        /// Jitter: variation of the propagation delay.
        jitter: Option<Jitter> = Form::Either(&[Form::POSITIVE_TIME, Form::Table(Deviation::KEYS)]);
        /// Changes during the run: of the rate, the wire or the queue.
        changes: Option<Changes> = Form::List(1, &Form::Table(Change::KEYS));
        /// Makes the link wireless; links whose medium has the same name share it.
        medium: Option<Medium> = Form::Table(Medium::KEYS);
    }
}

/// A bottleneck.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    pub(crate) name: String,
    pub(crate) keys: LinkKeys,
}

/// The bucket of an `htb` class.
const HTB: &str = "htb";

words! {
    /// When a packet may leave a token bucket, by the Linux name of the discipline.
    enum Bucket: "token bucket" { Htb = "htb", Tbf = "tbf" }
}

/// More descriptors than any device has.
const LARGEST_RING: u32 = 65_536;

/// An idle link may gather this much credit; beyond, a bucket is no shaper.
const LARGEST_BURST: u64 = 1 << 30;

/// The size of a bucket.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Burst {
    /// What `tc` gives an `htb` class under a 1000 Hz clock: 1 ms of the rate and 1600 B.
    Htb,
    /// This much.
    Bytes(Bytes),
}

impl KeyValue for Burst {
    fn read(place: &Place<'_>) -> Result<Self, ScenarioError> {
        match &place.node.value {
            Value::Text(text) if text == HTB => Ok(Self::Htb),
            _ => place.size().map(Self::Bytes),
        }
    }

    fn write(&self) -> Option<Node> {
        Some(match self {
            Self::Htb => HTB.into(),
            Self::Bytes(bytes) => size(*bytes),
        })
    }
}

impl Burst {
    fn bytes(self, rate: Rate) -> Bytes {
        match self {
            Self::Htb => rate.carries(Duration::from_millis(1)) + Bytes(1_600),
            Self::Bytes(bytes) => bytes,
        }
    }
}

/// The links of a scenario, in the order of their names.
#[derive(Clone, Debug, Default)]
pub(crate) struct Links {
    pub(crate) real: Vec<Link>,
    /// Names of links that take no time and drop nothing.
    pub(crate) unlimited: Vec<String>,
}

/// The value that replaces a link that is not simulated.
pub(crate) const UNLIMITED: &str = "unlimited";

/// A link or [`UNLIMITED`].
pub(crate) const FORM: Form = Form::Either(&[Form::Def("link"), Form::Choice(|| vec![UNLIMITED])]);

/// Reads all links.
pub(crate) fn read(top: &Fields<'_>) -> Result<Links, ScenarioError> {
    let example = "{ up = { rate = \"10mbit\", qdisc = \"fq_codel\" } }";
    let place = top.need("links", example)?;
    let (mut links, mut opportunities) = (Links::default(), 0);
    for (name, place) in place.open_table()?.all() {
        check_name(name, &place)?;
        match &place.node.value {
            Value::Text(text) if text == UNLIMITED => links.unlimited.push(name.clone()),
            Value::Text(_) => {
                let given = place.node.shown();
                let rule = format!("{given} is not a link; expected a table or \"{UNLIMITED}\"");
                return Err(place.fail(rule));
            }
            _ => {
                let link = Link::read(name, &place)?;
                opportunities += link.opportunities();
                if opportunities > trace::MOST_OF_ALL {
                    return Err(place.fail(trace::too_many()));
                }
                links.real.push(link);
            }
        }
    }
    if links.real.is_empty() {
        return Err(place.fail(format!(
            "empty; expected at least one link, such as {example}"
        )));
    }
    Ok(links)
}

impl Links {
    /// The names of all links, those without a limit included.
    pub(crate) fn names(&self) -> Vec<&str> {
        let real = self.real.iter().map(|link| link.name.as_str());
        let mut names: Vec<_> = real
            .chain(self.unlimited.iter().map(String::as_str))
            .collect();
        names.sort_unstable();
        names
    }

    /// Their canonical table.
    pub(crate) fn table(&self) -> Table {
        let real = self
            .real
            .iter()
            .map(|link| (link.name.clone(), link.node()));
        let unlimited = self
            .unlimited
            .iter()
            .map(|name| (name.clone(), UNLIMITED.into()));
        real.chain(unlimited).collect()
    }
}

fn check_name(name: &str, place: &Place<'_>) -> Result<(), ScenarioError> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || NAME_MARKS.contains(&c);
    if !name.is_empty() && name.len() <= LONGEST_NAME && name.chars().all(allowed) {
        return Ok(());
    }
    let [one, other] = NAME_MARKS;
    Err(place.fail(format!(
        "invalid link name; expected 1 to {LONGEST_NAME} of the characters a-z, A-Z, 0-9, {one} and {other}"
    )))
}

/// The longest name of a link.
const LONGEST_NAME: usize = 64;
/// The characters of the name of a link besides letters and digits.
const NAME_MARKS: [char; 2] = ['_', '-'];

/// The pattern of the names of links.
pub(crate) fn name_pattern() -> String {
    let [one, other] = NAME_MARKS;
    format!("^[A-Za-z0-9{one}{other}]{{1,{LONGEST_NAME}}}$")
}

impl Link {
    fn read(name: &str, place: &Place<'_>) -> Result<Self, ScenarioError> {
        let fields = place.fields(LinkKeys::KEYS)?;
        check_pace(&fields)?;
        let mut keys = LinkKeys::read(&fields)?;
        check_traces(&fields, &keys)?;
        let usual = Overhead::usual(keys.trace.is_some());
        keys.overhead.get_or_insert(usual);
        if let (Some(place), None) = (fields.get("bucket"), &keys.burst) {
            return Err(place.fail("needs the size of the bucket; set burst"));
        }
        check_ring(&fields, &keys)?;
        keys.bucket = keys.bucket.filter(|bucket| *bucket != Bucket::Htb);
        if let (Some(place), Some(changes)) = (fields.get("changes"), &keys.changes) {
            changes.check(&place, &keys.qdisc)?;
        }
        if let Some(traced) = &mut keys.trace {
            traced.file.get_or_insert_default();
        }
        let name = name.to_owned();
        Ok(Self { name, keys })
    }

    /// The times of its traces, which the link holds in memory.
    pub(crate) fn opportunities(&self) -> usize {
        let keys = &self.keys;
        let series = [
            keys.rate_trace.as_ref().map(|trace| &trace.points),
            keys.delay_trace.as_ref().map(|trace| &trace.points),
            keys.loss_trace.as_ref().map(|trace| &trace.points),
        ];
        let points = series
            .into_iter()
            .flatten()
            .map(|points| points.points.len());
        let trace = keys.trace.as_ref();
        trace.map_or(0, |traced| traced.gaps_ms.times_ms().len()) + points.sum::<usize>()
    }

    /// The trace of delay or loss with more points up to the end of a run than the other, and their number in all.
    pub(crate) fn repeated_points(&self, end: Duration) -> (&'static str, u64) {
        let count = |points: Option<&Points>| points.map_or(0, |points| points.count_until(end));
        let delays = count(self.keys.delay_trace.as_ref().map(|trace| &trace.points));
        let losses = count(self.keys.loss_trace.as_ref().map(|trace| &trace.points));
        let key = if delays < losses {
            "loss_trace"
        } else {
            "delay_trace"
        };
        (key, delays.saturating_add(losses))
    }

    /// Whether a packet takes no time on its wire.
    pub(crate) fn is_immediate(&self) -> bool {
        self.keys.delay == Duration::ZERO && self.keys.delay_trace.is_none()
    }

    /// Its canonical table.
    pub(crate) fn node(&self) -> Node {
        let mut fields = Table::new();
        self.keys.write(&mut fields);
        Value::Table(fields).into()
    }

    /// The queues that it has during the run.
    pub(crate) fn queues(&self) -> Vec<QdiscSpec> {
        self.config(Duration::ZERO).queues().cloned().collect()
    }

    /// The link in the plan of a run that ends at `end`.
    pub(crate) fn config(&self, end: Duration) -> LinkConfig {
        let keys = &self.keys;
        let trace = keys.trace.as_ref().map(|traced| traced.gaps_ms.clone());
        let rates = keys
            .rate_trace
            .as_ref()
            .and_then(|rates| rates.config().ok());
        let mean = || trace.as_ref().map(Trace::mean_rate);
        let mean = || mean().or_else(|| rates.as_ref().map(RateTrace::mean_rate));
        let rate = keys.rate.or_else(mean);
        let rate = rate.expect("a link has a rate or a trace");
        let changes = keys
            .changes
            .as_ref()
            .map(|changes| changes.configs(&keys.qdisc));
        let changes = changes.and_then(Result::ok).unwrap_or_default();
        let mut config = LinkConfig {
            shaper: match (keys.burst.map(|burst| burst.bytes(rate)), keys.bucket) {
                (None, _) => keys.tx_ring.map_or(Shaper::Serial, |packets| {
                    Shaper::Ring(RingConfig {
                        packets,
                        bql: keys.bql,
                        coalesce: keys.tx_coalesce,
                    })
                }),
                (Some(burst), Some(Bucket::Tbf)) => Shaper::Tbf { burst },
                (Some(burst), _) => Shaper::Bucket { burst },
            },
            encapsulation: keys.encapsulation(),
            delay: keys.delay,
            line: keys.line(),
            changes,
            radio: keys.medium.as_ref().map(Medium::config),
            trace,
            rates,
            ..LinkConfig::new(self.name.clone(), rate, keys.qdisc.clone())
        };
        if keys.delay_trace.is_some() || keys.loss_trace.is_some() {
            self.follow_traces(&mut config, end);
        }
        config
    }

    /// Adds the points of traces to the changes of the link.
    fn follow_traces(&self, config: &mut LinkConfig, end: Duration) {
        let (_, points) = self.repeated_points(end);
        let points = usize::try_from(points).unwrap_or(0);
        let mut changes = Vec::with_capacity(config.changes.len() + points);
        changes.append(&mut config.changes);
        let change = |at, wire| plan::Change {
            at,
            wire,
            ..plan::Change::default()
        };
        let delays = self.keys.delay_trace.iter();
        let delays = delays.flat_map(|trace| trace.points.until(end));
        changes.extend(delays.map(|(at, nanos)| {
            let delay = Some(Duration::from_nanos(nanos));
            let wire = WireChange::default();
            change(at, WireChange { delay, ..wire })
        }));
        let losses = self.keys.loss_trace.iter();
        let losses = losses.flat_map(|trace| trace.points.until(end));
        changes.extend(losses.map(|(at, value)| {
            let loss = Some(Loss::Random(Shares::share(value)).config());
            let wire = WireChange::default();
            change(at, WireChange { loss, ..wire })
        }));
        changes.sort_by_key(|change| change.at);
        changes.dedup_by(|later, one| {
            let is_same = later.at == one.at;
            if is_same {
                one.wire.delay = later.wire.delay.or(one.wire.delay);
                one.wire.loss = later.wire.loss.or(one.wire.loss);
            }
            is_same
        });
        // What holds from the beginning is no change.
        if changes.first().is_some_and(|one| one.at == Duration::ZERO) {
            let first = changes.remove(0);
            config.delay = first.wire.delay.unwrap_or(config.delay);
            config.line.loss = first.wire.loss.unwrap_or(config.line.loss);
        }
        config.changes = changes;
    }
}

/// Refuses the keys of a ring without a ring, and a ring where packets do not leave one after the other.
fn check_ring(fields: &Fields<'_>, keys: &LinkKeys) -> Result<(), ScenarioError> {
    let given = |key: &&str| fields.get(key).is_some();
    if keys.tx_ring.is_some() {
        let shapers = ["burst", "trace"];
        return match shapers.into_iter().find(given) {
            Some(key) => alone(fields, key, &["tx_ring"]),
            None => Ok(()),
        };
    }
    let of_ring = ["bql", "tx_coalesce"]
        .into_iter()
        .find_map(|key| fields.get(key));
    match of_ring {
        Some(place) => Err(place.fail("needs the size of the ring; set tx_ring")),
        None => Ok(()),
    }
}

/// Requires a rate, or a trace and nothing that is for rates only.
fn check_pace(fields: &Fields<'_>) -> Result<(), ScenarioError> {
    let traces = ["trace", "rate_trace"];
    let Some(trace) = traces.into_iter().find(|key| fields.get(key).is_some()) else {
        return fields.need("rate", "\"10mbit\"").map(drop);
    };
    alone(fields, trace, &["rate", "burst", "bucket", "rate_trace"])
}

/// Refuses the keys that `trace` replaces.
fn alone(fields: &Fields<'_>, trace: &str, replaced: &[&str]) -> Result<(), ScenarioError> {
    let beside = replaced.iter().filter(|key| **key != trace);
    match beside
        .into_iter()
        .find_map(|key| Some((key, fields.get(key)?)))
    {
        Some((key, place)) => Err(place.fail(format!(
            "cannot be combined with {trace}; remove {key} or {trace}"
        ))),
        None => Ok(()),
    }
}

/// Refuses what a trace replaces, and a rate trace without capacity.
fn check_traces(fields: &Fields<'_>, keys: &LinkKeys) -> Result<(), ScenarioError> {
    let traces = [
        ("delay_trace", "delay", keys.delay_trace.is_some()),
        ("loss_trace", "loss", keys.loss_trace.is_some()),
    ];
    for (trace, replaced, _) in traces.into_iter().filter(|(.., is_given)| *is_given) {
        // A canonical scenario writes the delay, even if it is zero.
        if replaced != "delay" || keys.delay > Duration::ZERO {
            alone(fields, trace, &[replaced])?;
        }
        if let Some(place) = fields.get("changes") {
            for change in place.list()? {
                let fields = change.fields(Change::KEYS)?;
                alone(&fields, trace, &[replaced])?;
            }
        }
    }
    match (fields.get("rate_trace"), &keys.rate_trace) {
        (Some(place), Some(rates)) => rates.config().map(drop).map_err(|rule| place.fail(rule)),
        _ => Ok(()),
    }
}
