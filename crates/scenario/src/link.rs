//! Links: decoding and encoding `links.<name>`, and conversion to the plan.

mod line;
mod medium;
mod trace;

use crate::key::{Form, Key};
use crate::plan::{Change, LinkConfig, RadioConfig, Shaper};
use sojourn_net::{Bytes, Duration, Rate};
use sojourn_qdisc::{Framing, QdiscSpec};

use crate::error::ScenarioError;
use crate::place::{Fields, Place};
use crate::specification::qdisc;
use crate::value::{Node, Table, Value, insert, size, table, time};
use line::Layer;
use line::Line;
use trace::Traced;
pub(crate) use trace::embed;
pub use trace::trace_mean_rate;

pub(crate) const KEYS: &[Key] = &[
    Key::optional(
        "rate",
        Form::RATE,
        "Bit rate, over Ethernet frames (14 B header, no FCS) plus link-layer overhead.",
    ),
    Key::optional(
        "trace",
        Form::Either(&[Form::Def("text"), Form::Table(trace::KEYS)]),
        "Path of a Mahimahi capacity trace, relative to the scenario file; replaces rate.",
    ),
    Key::required("qdisc", Form::QDISC, "Queue of the link."),
    Key::optional(
        "delay",
        Form::TIME,
        "Propagation delay after the transmitter.",
    )
    .or("0s"),
    Key::optional(
        "overhead",
        Form::Def("overhead"),
        "Bytes added to each frame, or a link layer by its tc name.",
    ),
    Key::optional(
        "mpu",
        line::MPU,
        "Minimum size of a frame, overhead included.",
    ),
    Key::optional(
        "framing",
        Form::Choice(|| Framing::WORDS.to_vec()),
        "Framing of the link layer.",
    ),
    Key::optional(
        "burst",
        Form::Either(&[Form::Choice(|| vec![HTB]), Form::Size(1, LARGEST_BURST)]),
        "Enforce the rate with a token bucket of this size; htb: 1 ms at the rate plus 1600 B.",
    ),
    Key::optional(
        "bucket",
        Form::Choice(|| DISCIPLINES.to_vec()),
        "With burst: a packet leaves while there are tokens (htb, the default), or once there are enough for it (tbf).",
    ),
    Key::optional(
        "loss",
        Form::Either(&[Form::PERCENT, Form::Table(line::CHAIN_KEYS)]),
        "Share of packets lost on the wire, or a Gilbert-Elliott model.",
    ),
    Key::optional(
        "duplicate",
        Form::PERCENT,
        "Share of packets duplicated on the wire.",
    )
    .or("0%"),
    Key::optional(
        "jitter",
        Form::Either(&[Form::POSITIVE_TIME, Form::Table(line::JITTER_KEYS)]),
        "Jitter: variation of the propagation delay.",
    ),
    Key::optional(
        "changes",
        Form::List(1, &Form::Table(trace::CHANGE_KEYS)),
        "Changes of rate and delay during the run.",
    ),
    Key::optional(
        "medium",
        Form::Table(medium::KEYS),
        "Makes the link wireless; links whose medium has the same name share it.",
    ),
];

/// The bucket of an `htb` class.
const HTB: &str = "htb";

/// The token bucket disciplines, by their Linux names.
const DISCIPLINES: [&str; 2] = [HTB, TBF];
const TBF: &str = "tbf";

/// An idle link may gather this much credit; beyond, a bucket is no shaper.
const LARGEST_BURST: u64 = 1 << 30;

/// A bottleneck.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    pub(crate) name: String,
    pace: Pace,
    pub(crate) qdisc: QdiscSpec,
    delay: Duration,
    layer: Layer,
    bucket: Option<Bucket>,
    line: Line,
    changes: Vec<Change>,
    radio: Option<RadioConfig>,
}

/// How fast a link is.
#[derive(Clone, Debug)]
enum Pace {
    Rate(Rate),
    Trace(Traced),
}

/// The bucket of a link that is a shaper and no wire.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    burst: Burst,
    discipline: Discipline,
}

/// When a packet may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Discipline {
    Htb,
    Tbf,
}

/// The size of a bucket.
#[derive(Clone, Copy, Debug)]
enum Burst {
    /// What `tc` gives an `htb` class under a 1000 Hz clock: 1 ms of the rate and 1600 B.
    Htb,
    /// This much.
    Bytes(Bytes),
}

impl Bucket {
    fn read(fields: &Fields<'_>) -> Result<Option<Self>, ScenarioError> {
        let burst = fields.option("burst", |p| match &p.node.value {
            Value::Text(text) if text == HTB => Ok(Burst::Htb),
            _ => p.size().map(Burst::Bytes),
        })?;
        let all = [Discipline::Htb, Discipline::Tbf];
        let discipline = fields.option("bucket", |p| p.one_of("token bucket", &all))?;
        if let (Some(place), None) = (fields.get("bucket"), &burst) {
            return Err(place.fail("needs the size of the bucket; set burst"));
        }
        Ok(burst.map(|burst| Self {
            burst,
            discipline: discipline.unwrap_or(Discipline::Htb),
        }))
    }

    fn write(self, fields: &mut Table) {
        let burst = match self.burst {
            Burst::Htb => HTB.into(),
            Burst::Bytes(bytes) => size(bytes),
        };
        insert(fields, "burst", Some(burst));
        let named = self.discipline == Discipline::Tbf;
        insert(fields, "bucket", named.then(|| TBF.into()));
    }

    fn shaper(self, rate: Rate) -> Shaper {
        let burst = self.burst.bytes(rate);
        match self.discipline {
            Discipline::Htb => Shaper::Bucket { burst },
            Discipline::Tbf => Shaper::Tbf { burst },
        }
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
        let fields = place.fields(KEYS)?;
        let speed = Pace::read(&fields)?;
        Ok(Self {
            name: name.to_owned(),
            qdisc: qdisc(&fields.need("qdisc", "\"fq_codel\"")?)?,
            delay: fields.time("delay")?,
            layer: Layer::read(&fields, matches!(speed, Pace::Trace(_)))?,
            pace: speed,
            bucket: Bucket::read(&fields)?,
            line: Line::read(&fields)?,
            changes: fields.option("changes", trace::read)?.unwrap_or_default(),
            radio: fields.option("medium", medium::read)?,
        })
    }

    /// The times of its trace, which the link holds in memory.
    pub(crate) fn opportunities(&self) -> usize {
        match &self.pace {
            Pace::Rate(_) => 0,
            Pace::Trace(traced) => traced.trace.times_ms().len(),
        }
    }

    /// Whether a packet takes no time on its wire.
    pub(crate) fn is_immediate(&self) -> bool {
        self.delay == Duration::ZERO
    }

    /// Its canonical table.
    pub(crate) fn node(&self) -> Node {
        let mut fields = table([
            self.pace.entry(),
            ("qdisc", self.qdisc.to_string().into()),
            ("delay", time(self.delay)),
        ]);
        self.layer.write(&mut fields);
        if let Some(bucket) = self.bucket {
            bucket.write(&mut fields);
        }
        self.line.write(&mut fields);
        if !self.changes.is_empty() {
            insert(&mut fields, "changes", Some(trace::node(&self.changes)));
        }
        insert(&mut fields, "medium", self.radio.as_ref().map(medium::node));
        Value::Table(fields).into()
    }

    /// The link in a plan.
    pub(crate) fn config(&self) -> LinkConfig {
        let (rate, trace) = match &self.pace {
            Pace::Rate(rate) => (*rate, None),
            Pace::Trace(traced) => (traced.trace.mean_rate(), Some(traced.trace.clone())),
        };
        LinkConfig {
            shaper: self
                .bucket
                .map_or(Shaper::Serial, |bucket| bucket.shaper(rate)),
            encapsulation: self.layer.encapsulation(),
            delay: self.delay,
            line: self.line.config(),
            changes: self.changes.clone(),
            trace,
            radio: self.radio.clone(),
            ..LinkConfig::new(self.name.clone(), rate, self.qdisc.clone())
        }
    }
}

impl Pace {
    fn read(fields: &Fields<'_>) -> Result<Self, ScenarioError> {
        let Some(trace) = fields.get("trace") else {
            let rate = fields.need("rate", "\"10mbit\"")?.rate()?;
            return Ok(Self::Rate(rate));
        };
        for key in ["rate", "burst", "bucket"] {
            if let Some(place) = fields.get(key) {
                let rule = format!("cannot be combined with trace; remove {key} or trace");
                return Err(place.fail(rule));
            }
        }
        Traced::read(&trace).map(Self::Trace)
    }

    fn entry(&self) -> (&'static str, Node) {
        match self {
            Self::Rate(rate) => ("rate", rate.to_string().into()),
            Self::Trace(traced) => ("trace", traced.node()),
        }
    }
}
