//! Congestion controls with parameters, as text and as values.
//!
//! ```
//! use sojourn_transport::CcSpec;
//!
//! let spec: CcSpec = "cubic beta 0.8 fast_convergence off".parse().unwrap();
//! assert_eq!(spec.to_string(), "cubic beta 819/1024 fast_convergence off");
//! assert_eq!("cubic beta 717/1024".parse::<CcSpec>().unwrap().to_string(), "cubic");
//!
//! let wrong = "cubic beta 2".parse::<CcSpec>().unwrap_err();
//! assert_eq!(
//!     wrong.to_string(),
//!     "cubic: beta 2 is out of range; expected 1/1024 to 1023/1024"
//! );
//! ```

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use sojourn_net::instead_of;
use sojourn_schema::{Flaw, Parameter, ParameterError, ParameterInfo, Value};

use super::declaration::EcnNeed;
use super::{CcKind, CcSpec, SlowStart};

impl CcSpec {
    /// The value of parameter `key`.
    pub fn value(&mut self, key: &str) -> Option<&mut dyn Value> {
        let (own, exit) = self.parts();
        own.value(key).or_else(|| exit?.value(key))
    }

    /// Every parameter with its value as text.
    pub fn pairs(&self) -> Vec<(&'static str, String)> {
        let mut values = *self;
        let parameters = self.kind().parameters();
        parameters
            .filter_map(|p| Some((p.key, p.text(values.value(p.key)?)?)))
            .collect()
    }

    /// The parameters whose values differ from the defaults, as text.
    fn changed(&self) -> impl Iterator<Item = (&'static str, String)> {
        let defaults = Self::from(self.kind()).pairs();
        let both = self.pairs().into_iter().zip(defaults);
        both.filter_map(|(pair, default)| (pair != default).then_some(pair))
    }

    /// This control with the parameter `key` set to `value`, written as in a specification.
    ///
    /// # Errors
    /// If the control has no such parameter, the value is out of range, or values contradict each other.
    pub fn with(&self, key: &str, value: &str) -> Result<Self, ParameterError> {
        let mut changed = *self;
        changed.set(key, value)?;
        changed.finish()
    }

    /// The first constant that differs from its default and belongs to another slow-start exit heuristic than
    /// `in_use`; and that heuristic.
    pub fn unused_slow_start(&self, in_use: SlowStart) -> Option<(&'static str, SlowStart)> {
        let mut spec = *self;
        let constants = spec.parts().1.map_or(&[][..], |part| part.table());
        let is_one = |key: &&str| constants.iter().any(|p| p.key == *key);
        let keys = self.changed().map(|(key, _)| key).filter(is_one);
        keys.filter_map(|key| Some((key, SlowStart::of_parameter(key)?)))
            .find(|&(_, owner)| owner != in_use)
    }

    /// The window that Careful Resume has saved, in segments.
    pub fn saved_cwnd(&self) -> Option<NonZeroU32> {
        self.slow_start_params()?.saved_cwnd
    }

    fn set(&mut self, key: &str, text: &str) -> Result<(), ParameterError> {
        let kind = self.kind();
        let parameter = kind.parameter(key)?;
        let set = self.value(key).map(|value| parameter.set(value, text));
        set.transpose()
            .map(drop)
            .map_err(|flaw| flaw.at(kind.name(), parameter.key, parameter.range()))
    }

    /// Checks parameters that were set as typed values, as reading a text does.
    ///
    /// # Errors
    /// If a value is out of range, or values contradict each other.
    pub fn validate(&self) -> Result<(), ParameterError> {
        let mut checked = *self;
        for (key, text) in self.changed() {
            checked.set(key, &text)?;
        }
        checked.finish().map(drop)
    }

    fn finish(self) -> Result<Self, ParameterError> {
        let conflict = self.own_conflict();
        match conflict.or_else(|| self.slow_start_params()?.conflict()) {
            None => Ok(self),
            Some(why) => Err(ParameterError::Conflict {
                kind: self.kind().name(),
                why,
            }),
        }
    }
}

impl fmt::Display for CcSpec {
    /// The canonical text: the name, then every parameter that is not at its default.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind().name())?;
        self.changed()
            .try_for_each(|(key, text)| write!(f, " {key} {text}"))
    }
}

impl FromStr for CcSpec {
    type Err = ParameterError;

    /// Reads a specification such as `cubic beta 0.7 fast_convergence off`.
    fn from_str(text: &str) -> Result<Self, ParameterError> {
        let mut words = text.split_whitespace();
        let kind: CcKind = words.next().unwrap_or_default().parse()?;
        let (mut spec, mut given) = (Self::from(kind), Vec::new());
        while let Some(word) = words.next() {
            let parameter = kind.parameter(word)?;
            if given.contains(&parameter.key) {
                return Err(ParameterError::Twice {
                    kind: kind.name(),
                    key: parameter.key,
                    shorthand: None,
                });
            }
            given.push(parameter.key);
            let Some(value) = words.next() else {
                let flaw = Flaw::Value("needs a value".into());
                return Err(flaw.at(kind.name(), parameter.key, parameter.range()));
            };
            spec.set(parameter.key, value)?;
        }
        spec.finish()
    }
}

impl CcKind {
    /// What may be set.
    pub fn parameters(self) -> impl Iterator<Item = &'static Parameter> + Clone {
        let mut spec = CcSpec::from(self);
        let (own, exit) = spec.parts();
        let shared = exit.map_or(&[][..], |part| part.table());
        own.table().iter().chain(shared)
    }

    fn parameter(self, key: &str) -> Result<&'static Parameter, ParameterError> {
        let found = self.parameters().find(|p| p.key == key);
        found.ok_or_else(|| ParameterError::UnknownKey {
            kind: self.name(),
            given: key.into(),
            instead: instead_of(key, self.parameters().map(|p| p.key)).to_string(),
        })
    }

    /// The slow-start exit heuristics it offers, its default first; empty: there is no choice.
    pub const fn slow_starts(self) -> &'static [SlowStart] {
        self.declaration().slow_starts
    }

    /// Whether it depends on marks: it negotiates ECN in any case, and its peer echoes each CE.
    pub const fn needs_ecn(self) -> bool {
        !matches!(self.declaration().ecn, EcnNeed::Optional)
    }

    /// What Alternative Backoff with ECN leaves of the window at a mark, in per cent; `None`: RFC 8511 has no value for
    /// it.
    pub const fn abe_percent(self) -> Option<u32> {
        match self {
            Self::Reno => Some(80),
            Self::Cubic => Some(85),
            _ => None,
        }
    }

    /// Whether it depends on counts of marks (RFC 9768), and asks for L4S (RFC 9331).
    pub const fn needs_accurate_ecn(self) -> bool {
        matches!(self.declaration().ecn, EcnNeed::Accurate)
    }
}

/// How a control of one's own is made. Queues may be classes in Python; controls may not.
const OWN: &str = "a control cannot be a class in Python; `make new-cc NAME=foo` in the source tree makes one in Rust";

/// Whether `name` is that of a file in Python, with the name of a class or without.
fn is_python(name: &str) -> bool {
    let file = name.rsplit_once(':').map_or(name, |(file, _)| file);
    file.to_ascii_lowercase().ends_with(".py")
}

impl FromStr for CcKind {
    type Err = ParameterError;

    fn from_str(name: &str) -> Result<Self, ParameterError> {
        let found = Self::ALL.into_iter().find(|kind| kind.name() == name);
        found.ok_or_else(|| ParameterError::UnknownKind {
            what: "congestion control",
            given: name.to_owned(),
            instead: if is_python(name) {
                OWN.to_owned()
            } else {
                instead_of(name, Self::ALL.iter().map(|kind| kind.name())).to_string()
            },
        })
    }
}

/// Description of a congestion control.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CcInfo {
    /// The name in a specification.
    pub name: &'static str,
    /// The name of its class in Python.
    pub class: String,
    /// What it does, in one line.
    pub summary: &'static str,
    /// Where it is specified.
    pub source: &'static str,
    /// The slow-start exit heuristics it offers, its default first.
    pub slow_starts: Vec<&'static str>,
    /// The slow-start exit heuristic over QUIC, where its default differs.
    pub quic_slow_start: Option<&'static str>,
    /// Which ECN it needs.
    pub ecn: EcnNeed,
    /// What may be set.
    pub parameters: Vec<ParameterInfo>,
}

/// Every congestion control, in the order in which to read about them.
pub fn catalogue() -> Vec<CcInfo> {
    CcKind::ALL.into_iter().map(info).collect()
}

fn info(kind: CcKind) -> CcInfo {
    let declaration = kind.declaration();
    let mut defaults = CcSpec::from(kind);
    let parameters = kind.parameters().map(|parameter| {
        let value = defaults.value(parameter.key);
        ParameterInfo::of(parameter, value.map(|value| &*value))
    });
    CcInfo {
        name: declaration.name,
        class: format!("{kind:?}"),
        summary: declaration.summary,
        source: declaration.source,
        slow_starts: declaration.slow_starts.iter().map(|s| s.name()).collect(),
        quic_slow_start: declaration.quic_slow_start.map(SlowStart::name),
        ecn: declaration.ecn,
        parameters: parameters.collect(),
    }
}

/// Every congestion control as a JSON array of objects:
///
/// `name`, `class`, `summary`, `source`, `slow_starts`, `quic_slow_start`, `ecn` (`optional`, `required` or
/// `accurate`) and `parameters`, each of which has `key`, `unit`, `of`, `default`, `derived`, `min`, `max`,
/// `range`, `choices`, `meaning` and `provenance`, as those of a queue have. `of` is the unit of a
/// count or the denominator of a ratio. A count whose `range` begins with `off` may be that too. `min` and
/// `max` are in nanoseconds or plain numbers. No control has derived defaults or choices yet.
#[cfg(feature = "json")]
pub fn catalogue_json() -> String {
    serde_json::Value::Array(catalogue().iter().map(control).collect()).to_string()
}

#[cfg(feature = "json")]
fn control(info: &CcInfo) -> serde_json::Value {
    let parameters: Vec<_> = info.parameters.iter().map(parameter).collect();
    serde_json::json!({
        "name": info.name,
        "class": info.class,
        "summary": info.summary,
        "source": info.source,
        "slow_starts": info.slow_starts,
        "quic_slow_start": info.quic_slow_start,
        "ecn": info.ecn.name(),
        "parameters": parameters,
    })
}

#[cfg(feature = "json")]
fn parameter(info: &ParameterInfo) -> serde_json::Value {
    use sojourn_schema::Unit;
    let of = match info.unit {
        Unit::Count(what) | Unit::CountOrOff(what) => what.to_owned(),
        Unit::Ratio(whole) | Unit::Ratios(whole) => whole.to_string(),
        _ => String::new(),
    };
    let mut entry = sojourn_schema::json::entry(info);
    entry["of"] = of.into();
    entry
}

#[cfg(test)]
mod tests;
