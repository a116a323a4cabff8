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

use std::error::Error;
use std::fmt;
use std::str::FromStr;

use sojourn_net::instead_of;

use super::declaration::EcnNeed;
use super::parameter::{Parameter, Parameters, Slot, Unit};
use super::{CcKind, CcSpec, SlowStart};

/// Why a specification of a congestion control was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CcError {
    /// There is no such control.
    UnknownControl(String),
    /// The control has no such parameter.
    UnknownParameter {
        /// The control.
        control: CcKind,
        /// What was given.
        given: String,
    },
    /// The value is missing, unreadable or out of range.
    Value {
        /// The control.
        control: CcKind,
        /// The parameter.
        key: &'static str,
        /// What is wrong with the value given.
        flaw: String,
        /// What is accepted.
        expected: String,
    },
    /// A parameter occurs twice.
    Twice {
        /// The control.
        control: CcKind,
        /// The parameter.
        key: &'static str,
    },
    /// Values contradict each other.
    Conflict {
        /// The control.
        control: CcKind,
        /// Which, and why.
        why: String,
    },
}

impl fmt::Display for CcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownControl(given) => {
                let instead = instead_of(given, CcKind::ALL.iter().map(|kind| kind.name()));
                write!(f, "unknown congestion control \"{given}\"; {instead}")
            }
            Self::UnknownParameter { control, given } => {
                let instead = instead_of(given, control.parameters().map(|p| p.key));
                write!(f, "{control}: unknown parameter \"{given}\"; {instead}")
            }
            Self::Value {
                control,
                key,
                flaw,
                expected,
            } => write!(f, "{control}: {key} {flaw}; expected {expected}"),
            Self::Twice { control, key } => write!(f, "{control}: {key} is given twice"),
            Self::Conflict { control, why } => write!(f, "{control}: {why}"),
        }
    }
}

impl Error for CcError {}

impl CcSpec {
    /// The place of the value of parameter `key`.
    ///
    /// # Panics
    /// If the control has no such parameter.
    pub fn slot(&mut self, key: &str) -> &mut dyn Slot {
        let has = |part: &dyn Parameters| part.table().iter().any(|p| p.key == key);
        match self.parts() {
            (_, Some(hystartpp)) if has(hystartpp) => hystartpp.slot(key),
            (own, _) => own.slot(key),
        }
    }

    /// Every parameter with its value as text.
    pub fn pairs(&self) -> Vec<(&'static str, String)> {
        let mut values = *self;
        let parameters = self.kind().parameters();
        parameters
            .map(|p| (p.key, p.text(values.slot(p.key))))
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
    pub fn with(&self, key: &str, value: &str) -> Result<Self, CcError> {
        let mut changed = *self;
        changed.set(self.kind().parameter(key)?, value)?;
        changed.finish()
    }

    /// The first constant of HyStart++ that differs from its default.
    pub fn changed_hystartpp(&self) -> Option<&'static str> {
        let mut spec = *self;
        let constants = spec.parts().1.map_or(&[][..], |part| part.table());
        let is_one = |key: &str| constants.iter().any(|p| p.key == key);
        self.changed().map(|(key, _)| key).find(|key| is_one(key))
    }

    fn set(&mut self, parameter: &Parameter, text: &str) -> Result<(), CcError> {
        let slot = self.slot(parameter.key);
        parameter
            .set(slot, text)
            .map_err(|flaw| self.flaw(parameter, flaw))
    }

    fn flaw(&self, parameter: &Parameter, flaw: String) -> CcError {
        CcError::Value {
            control: self.kind(),
            key: parameter.key,
            flaw,
            expected: parameter.range_text(),
        }
    }

    /// Checks parameters that were set as typed values, as reading a text does.
    ///
    /// # Errors
    /// If a value is out of range, or values contradict each other.
    pub fn validate(&self) -> Result<(), CcError> {
        let mut checked = *self;
        for (key, text) in self.changed() {
            let parameter = self.kind().parameter(key)?;
            checked.set(parameter, &text)?;
        }
        checked.finish().map(drop)
    }

    fn finish(self) -> Result<Self, CcError> {
        let conflict = self.own_conflict();
        match conflict.or_else(|| self.hystartpp_params()?.conflict()) {
            None => Ok(self),
            Some(why) => Err(CcError::Conflict {
                control: self.kind(),
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
    type Err = CcError;

    /// Reads a specification such as `cubic beta 0.7 fast_convergence off`.
    fn from_str(text: &str) -> Result<Self, CcError> {
        let mut words = text.split_whitespace();
        let kind: CcKind = words.next().unwrap_or_default().parse()?;
        let (mut spec, mut given) = (Self::from(kind), Vec::new());
        while let Some(word) = words.next() {
            let parameter = kind.parameter(word)?;
            if given.contains(&parameter.key) {
                return Err(CcError::Twice {
                    control: kind,
                    key: parameter.key,
                });
            }
            given.push(parameter.key);
            match words.next() {
                Some(value) => spec.set(parameter, value)?,
                None => return Err(spec.flaw(parameter, "needs a value".into())),
            }
        }
        spec.finish()
    }
}

impl CcKind {
    /// What may be set.
    pub fn parameters(self) -> impl Iterator<Item = &'static Parameter> + Clone {
        let mut spec = CcSpec::from(self);
        let (own, hystartpp) = spec.parts();
        let shared = hystartpp.map_or(&[][..], |part| part.table());
        own.table().iter().chain(shared)
    }

    fn parameter(self, key: &str) -> Result<&'static Parameter, CcError> {
        let found = self.parameters().find(|p| p.key == key);
        found.ok_or_else(|| CcError::UnknownParameter {
            control: self,
            given: key.into(),
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

    /// Whether it depends on counts of marks (RFC 9768), and asks for L4S (RFC 9331).
    pub const fn needs_accurate_ecn(self) -> bool {
        matches!(self.declaration().ecn, EcnNeed::Accurate)
    }
}

impl FromStr for CcKind {
    type Err = CcError;

    fn from_str(name: &str) -> Result<Self, CcError> {
        let found = Self::ALL.into_iter().find(|kind| kind.name() == name);
        found.ok_or_else(|| CcError::UnknownControl(name.to_owned()))
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

/// Description of a parameter of a congestion control.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParameterInfo {
    /// The name in a specification.
    pub key: &'static str,
    /// How values are written.
    pub unit: Unit,
    /// The value if none is given, as text.
    pub default: String,
    /// The smallest and the largest value allowed, as kept in `unit`.
    pub bounds: (u32, u32),
    /// The values allowed, as text.
    pub range: String,
    /// What it means.
    pub meaning: &'static str,
    /// Where it comes from.
    pub provenance: &'static str,
}

/// Every congestion control, in the order in which to read about them.
pub fn catalogue() -> Vec<CcInfo> {
    CcKind::ALL.into_iter().map(info).collect()
}

fn info(kind: CcKind) -> CcInfo {
    let declaration = kind.declaration();
    let mut defaults = CcSpec::from(kind);
    let parameters = kind.parameters().map(|p| ParameterInfo {
        key: p.key,
        unit: p.unit,
        default: p.text(defaults.slot(p.key)),
        bounds: p.range,
        range: p.range_text(),
        meaning: p.meaning,
        provenance: p.source,
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

#[cfg(test)]
mod tests;
