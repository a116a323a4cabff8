//! Queue specifications in the syntax of `tc`: parsing and formatting.
//!
//! ```
//! use sojourn_qdisc::QdiscSpec;
//!
//! let spec = QdiscSpec::parse("fq_codel target 5ms noecn profile linux").unwrap();
//! assert_eq!(QdiscSpec::parse(&spec.to_string()), Ok(spec));
//!
//! let wrong = QdiscSpec::parse("codel tarqet 5ms").unwrap_err();
//! assert_eq!(
//!     wrong.to_string(),
//!     "codel: unknown parameter \"tarqet\"; did you mean \"target\"?"
//! );
//! ```

use std::fmt;
use std::str::FromStr;

use sojourn_net::instead_of;

use crate::external::PYTHON_PREFIX;
use crate::parameters::domain::profile;
use crate::parameters::{Entry, Flaw, Parameter, ParameterError, Profile, Provenance, Unit, Value};
use crate::registry::QdiscSpec;

impl QdiscSpec {
    /// Reads a specification such as `fq_codel limit 10240p target 5ms noecn`.
    ///
    /// # Errors
    /// If a name is unknown or given twice, or a value is missing, unreadable or out of range.
    pub fn parse(text: &str) -> Result<Self, ParameterError> {
        let mut words = text.split_whitespace().peekable();
        let name = words.next().unwrap_or_default();
        let mut draft = Draft::of(name)?;
        while let Some(word) = words.next() {
            if draft.take_alone(word)? {
                continue;
            }
            let (parameter, negated) = draft.parameter(word)?;
            if parameter.unit == Unit::Leaves {
                let rest: Vec<_> = words.by_ref().collect();
                draft.set(parameter, &rest.join(" "))?;
            } else if parameter.unit == Unit::Numbers {
                let mut numbers = Vec::new();
                while let Some(number) = words.next_if(|word| !starts_name(word)) {
                    numbers.push(number);
                }
                draft.set(parameter, &numbers.join(" "))?;
            } else if !parameter.is_flag() {
                draft.set(parameter, words.next().unwrap_or_default())?;
            } else if let Some(value) = words.next_if(|word| is_switch(word)) {
                let flaw = format!("is a flag and does not take the value \"{value}\"");
                return Err(draft.flaw(parameter, flaw));
            } else if negated {
                draft.set(parameter, "off")?;
            } else {
                draft.set(parameter, "on")?;
            }
        }
        draft.finish()
    }

    /// Builds a specification from its kind and pairs of key and value; the value of a flag is
    /// `true` or `false`.
    ///
    /// # Errors
    /// As [`QdiscSpec::parse`].
    pub fn from_pairs(
        kind: &str,
        pairs: impl Iterator<Item = (String, String)>,
    ) -> Result<Self, ParameterError> {
        let mut draft = Draft::of(kind)?;
        for (key, value) in pairs {
            if matches!(&*value, "true" | "on") && draft.take_alone(&key)? {
                continue;
            }
            let (parameter, negated) = draft.parameter(&key)?;
            if negated {
                return Err(ParameterError::UnknownKey {
                    kind: draft.kind.name,
                    given: key,
                    instead: format!("set {} = false", parameter.key),
                });
            }
            draft.set(parameter, &value)?;
        }
        draft.finish()
    }

    /// The parameters by key, those that have a value, as text.
    ///
    /// [`QdiscSpec::from_pairs`] reads them back.
    pub fn pairs(&self) -> Vec<(&'static str, String)> {
        let mut values = self.clone();
        let entry = self.entry().map(|(entry, _)| entry);
        let parameters = entry.iter().flat_map(|entry| entry.parameters);
        parameters
            .filter_map(|p| Some((p.key, p.text(values.value(p.key)?)?)))
            .collect()
    }

    /// The keys of all parameters, in the catalogue's order.
    pub fn keys(&self) -> Vec<&'static str> {
        let entry = self.entry().map(|(entry, _)| entry);
        let parameters = entry.iter().flat_map(|entry| entry.parameters);
        parameters.map(|parameter| parameter.key).collect()
    }

    /// This queue with the parameter `key` set to `value`; the value of a flag is `true` or
    /// `false`.
    ///
    /// # Errors
    /// As [`QdiscSpec::parse`].
    pub fn with(&self, key: &str, value: &str) -> Result<Self, ParameterError> {
        let kept = self.pairs().into_iter().filter(|(known, _)| *known != key);
        let kept = kept.map(|(known, text)| (known.to_owned(), text));
        let changed = (key.to_owned(), value.to_owned());
        Self::from_pairs(self.kind(), kept.chain([changed]))
    }

    /// This discipline and those inside it.
    pub fn provenance(&self) -> Vec<Provenance> {
        let own = self.entry().map(|(entry, _)| Provenance {
            name: entry.name,
            reconstruction: entry.reconstruction,
            comparison: self.comparison(),
        });
        let inner = self.inner().map(|(leaves, _)| leaves.provenance());
        own.into_iter().chain(inner.unwrap_or_default()).collect()
    }

    /// Checks parameters that were set as typed values, as [`QdiscSpec::parse`] would.
    ///
    /// # Errors
    /// As [`QdiscSpec::parse`].
    pub fn validate(&self) -> Result<(), ParameterError> {
        let pairs = self.pairs().into_iter();
        Self::from_pairs(self.kind(), pairs.map(|(key, value)| (key.into(), value))).map(drop)
    }
}

fn unknown_kind(name: &str) -> ParameterError {
    let entries = QdiscSpec::entries();
    let names = entries.iter().map(|entry| entry.name);
    ParameterError::UnknownKind {
        what: "queue",
        given: name.into(),
        instead: instead_of(name, names).to_string(),
    }
}

/// `profile` of a discipline that follows one law only: asking for that law is no error.
const PROFILE: Parameter = profile().declare(
    "profile",
    "Description or implementation to follow",
    "Sojourn parameter",
);

/// Whether `word` is what a table says of a flag.
fn is_switch(word: &str) -> bool {
    matches!(word, "on" | "true" | "yes" | "off" | "false" | "no")
}

/// Whether `word` is the name of a parameter rather than a number.
fn starts_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphabetic())
}

impl FromStr for QdiscSpec {
    type Err = ParameterError;

    fn from_str(text: &str) -> Result<Self, ParameterError> {
        Self::parse(text)
    }
}

impl fmt::Display for QdiscSpec {
    /// The canonical text: every parameter that has a value, in the catalogue's order.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind())?;
        let Some((entry, mut defaults)) = self.entry() else {
            return Ok(());
        };
        let mut values = self.clone();
        for parameter in entry.parameters {
            let Parameter { key, unit, .. } = parameter;
            let text = |spec: &mut Self| spec.value(key).and_then(|value| parameter.text(value));
            let default = text(&mut defaults);
            match (unit, text(&mut values)) {
                (_, None) => {}
                // What `tc` does not know stays unsaid unless it matters.
                (Unit::Flag, Some(flag)) if flag == "on" => match *key {
                    "derandomise" | "cap" => {}
                    _ => write!(f, " {key}")?,
                },
                (Unit::Flag, flag) if flag != default => write!(f, " no{key}")?,
                (Unit::Flag, _) => {}
                (Unit::Profile, value) if value == default => {}
                (Unit::Choice(_), Some(word)) => write!(f, " {word}")?,
                (_, Some(value)) => write!(f, " {key} {value}")?,
            }
        }
        Ok(())
    }
}

/// A specification while it is read.
struct Draft {
    kind: Entry,
    spec: QdiscSpec,
    given: Vec<&'static str>,
    /// What shorthands set: a parameter by its own name may follow and say otherwise.
    preset: Vec<&'static str>,
}

impl Draft {
    fn of(name: &str) -> Result<Self, ParameterError> {
        let (kind, spec) = QdiscSpec::at_defaults(name).ok_or_else(|| unknown_kind(name))?;
        Ok(Self {
            kind,
            spec,
            given: Vec::new(),
            preset: Vec::new(),
        })
    }

    /// Takes a word that needs no value after it: a choice or a shorthand; says whether it is one.
    fn take_alone(&mut self, word: &str) -> Result<bool, ParameterError> {
        let mut choices = self.kind.parameters.iter();
        let chosen = choices.find(|p| matches!(p.unit, Unit::Choice(all) if all.contains(&word)));
        if let Some(parameter) = chosen {
            return self.set(parameter, word).map(|()| true);
        }
        let mut shorthands = self.spec.shorthands().iter().copied().flatten();
        let Some((_, meaning)) = shorthands.find(|(name, _)| *name == word) else {
            return Ok(false);
        };
        for (key, value) in *meaning {
            let (parameter, _) = self.parameter(key)?;
            if self.preset.contains(key) || self.given.contains(key) {
                return Err(self.twice(parameter, Some(word.into())));
            }
            if !value.is_empty() {
                self.assign(parameter, value)?;
            }
        }
        self.preset.extend(meaning.iter().map(|(key, _)| *key));
        Ok(true)
    }

    /// The parameter called `word`, or the flag that `no…` switches off.
    fn parameter(&self, word: &str) -> Result<(&'static Parameter, bool), ParameterError> {
        let parameters = self.kind.parameters;
        if let Some(parameter) = parameters.iter().find(|p| p.key == word) {
            return Ok((parameter, false));
        }
        let negated = word.strip_prefix("no");
        let flag = parameters
            .iter()
            .find(|p| p.is_flag() && Some(p.key) == negated);
        if let Some(flag) = flag {
            return Ok((flag, true));
        }
        // A discipline with one law has no such parameter; asking for that law is no error.
        if word == PROFILE.key && !self.kind.profiles.is_empty() {
            return Ok((&PROFILE, false));
        }
        let all = parameters.iter().flat_map(Parameter::words);
        let shorthands = self
            .spec
            .shorthands()
            .iter()
            .copied()
            .flatten()
            .map(|(name, _)| *name);
        let instead = match parameters.first() {
            None if self.kind.name.starts_with(PYTHON_PREFIX) => {
                "a Python queue takes no parameters; set class attributes instead".into()
            }
            None => "this queue takes no parameters".into(),
            Some(_) if !starts_name(word) => "expected a parameter name before the value".into(),
            _ => instead_of(word, all.chain(shorthands)).to_string(),
        };
        Err(ParameterError::UnknownKey {
            kind: self.kind.name,
            given: word.into(),
            instead,
        })
    }

    fn set(&mut self, parameter: &'static Parameter, text: &str) -> Result<(), ParameterError> {
        if self.given.contains(&parameter.key) {
            return Err(self.twice(parameter, None));
        }
        self.given.push(parameter.key);
        self.assign(parameter, text)
    }

    fn assign(&mut self, parameter: &'static Parameter, text: &str) -> Result<(), ParameterError> {
        if text.is_empty() {
            return Err(self.flaw(parameter, "needs a value".into()));
        }
        let mut only = Profile::default();
        let value: &mut dyn Value = match self.spec.value(parameter.key) {
            Some(value) => value,
            None => &mut only,
        };
        let known = parameter.unit != Unit::Profile || self.kind.choices(parameter).contains(&text);
        let set = if known {
            parameter.set(value, text)
        } else {
            Err(Flaw::unknown(text))
        };
        set.map_err(|flaw| {
            let expected = match parameter.unit {
                Unit::Flag => parameter.range(),
                _ => self.kind.expected(parameter),
            };
            flaw.at(self.kind.name, parameter.key, expected)
        })
    }

    fn finish(self) -> Result<QdiscSpec, ParameterError> {
        match self.spec.conflict() {
            None => Ok(self.spec),
            Some(why) => Err(ParameterError::Conflict {
                kind: self.kind.name,
                why,
            }),
        }
    }

    fn twice(&self, parameter: &Parameter, shorthand: Option<String>) -> ParameterError {
        ParameterError::Twice {
            kind: self.kind.name,
            key: parameter.key,
            shorthand,
        }
    }

    fn flaw(&self, parameter: &Parameter, flaw: String) -> ParameterError {
        let expected = self.kind.expected(parameter);
        Flaw::Value(flaw).at(self.kind.name, parameter.key, expected)
    }
}
