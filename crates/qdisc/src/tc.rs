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

mod line;
mod module;

use std::fmt;
use std::str::FromStr;

use sojourn_net::{Duration, instead_of};
use sojourn_schema::{split_entries, split_leaves};

use crate::external::PYTHON_PREFIX;
use crate::parameters::domain::profile;
use crate::parameters::{
    ALL_NUMBERS, Entry, Flaw, Parameter, ParameterError, Profile, Provenance, Shorthand, TcWord,
    Unit, Value, time_text,
};
use crate::registry::QdiscSpec;
use line::Dialect;
pub use module::ModuleQueue;

impl QdiscSpec {
    /// Reads a specification in the syntax of `tc`, such as `fq_codel limit 10240 target 5ms noecn`.
    ///
    /// As in `tc`, the last word of a kind counts, a time without a unit is in microseconds, and words of its
    /// output are read too. [`QdiscSpec::notes_on`] states what of this changes what a reader may expect.
    ///
    /// # Errors
    /// If a name is unknown, or a value is missing, unreadable or out of range.
    pub fn parse(text: &str) -> Result<Self, ParameterError> {
        read(text).map(|(spec, _)| spec)
    }

    /// What [`QdiscSpec::parse`] reads as `tc` does and other readers may not expect, and words without effect, one
    /// line each; nothing if it refuses the text.
    pub fn notes_on(text: &str) -> Vec<String> {
        let Ok((_, notes)) = read(text) else {
            return Vec::new();
        };
        // Of the leaves too, which begin behind the first `leaf`, also in each entry of a list.
        let entries = text.find('(').filter(|&at| !text[..at].contains(" leaf "));
        let entries = entries.and_then(|at| split_entries(only_entries(&text[at..])).ok());
        let parts = entries.unwrap_or_else(|| vec![text]);
        let leaves = parts.into_iter().filter_map(|part| {
            let (_, leaves) = part
                .split_once("leaf ")
                .filter(|(before, _)| ends_word(before))?;
            split_leaves(leaves).ok()
        });
        let inner = leaves.flatten().flat_map(Self::notes_on);
        notes.into_iter().chain(inner).collect()
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
        from_pairs(Draft::of(kind)?, pairs)
    }

    /// As [`QdiscSpec::reparsed`], of a kind and pairs of key and value.
    pub(crate) fn reset_pairs(
        &self,
        name: &str,
        pairs: impl Iterator<Item = (String, String)>,
    ) -> Result<Option<Self>, ParameterError> {
        let draft = self.draft_of(name)?;
        draft.map(|draft| from_pairs(draft, pairs)).transpose()
    }

    /// A draft of these parameters; `None` if `name` is another kind.
    ///
    /// # Errors
    /// `name` is unknown, or a preset of the kind with other values than these: which of them are meant is not clear.
    fn draft_of(&self, name: &str) -> Result<Option<Draft>, ParameterError> {
        let (kind, mut preset) = Self::at_defaults(name).ok_or_else(|| unknown_kind(name))?;
        // The name of a queue may follow from its profile.
        let page = Self::at_defaults(self.kind()).map_or(self.kind(), |(_, own)| own.kind());
        if preset.kind() != page {
            return Ok(None);
        }
        if let Some((_, mut base)) = Self::at_defaults(page).filter(|_| name != self.kind()) {
            let mut own = self.clone();
            let mut differs = |parameter: &&Parameter| {
                let text = |of: &mut Self| parameter.text(of.value(parameter.key)?);
                let wanted = text(&mut preset);
                wanted != text(&mut base) && wanted != text(&mut own)
            };
            if let Some(parameter) = kind.parameters.iter().find(|one| differs(one)) {
                let key = parameter.key;
                return Err(ParameterError::Conflict {
                    kind: page,
                    why: format!(
                        "the queue has another {key} than {name}; name {page} and what changes"
                    ),
                });
            }
        }
        Ok(Some(Draft::new(kind, self.clone())))
    }

    /// These parameters with those changed that a text names; `None` if the text names another kind.
    pub(crate) fn reparsed(&self, text: &str) -> Result<Option<Self>, ParameterError> {
        let draft = self.draft_of(text.split_whitespace().next().unwrap_or_default())?;
        let read = draft.map(|draft| read_into(draft, text)).transpose()?;
        Ok(read.map(|(spec, _)| spec))
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

/// The entries at the beginning of a text.
fn only_entries(text: &str) -> &str {
    let mut depth = 0_u32;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            c if depth == 0 && !c.is_whitespace() => return &text[..at],
            _ => {}
        }
    }
    text
}

/// Whether a word may begin after `text`.
fn ends_word(text: &str) -> bool {
    text.ends_with(char::is_whitespace) || text.is_empty()
}

/// Reads pairs into a draft of their kind.
fn from_pairs(
    mut draft: Draft,
    mut pairs: impl Iterator<Item = (String, String)>,
) -> Result<QdiscSpec, ParameterError> {
    if let QdiscSpec::External(spec) = &mut draft.spec
        && spec.keep_words(|| {
            let words = pairs.by_ref().map(|(key, value)| format!("{key} {value}"));
            words.collect::<Vec<_>>().join(" ")
        })
    {
        return Ok(draft.spec);
    }
    // Presets first: the parameters that they set may follow in any order of the keys.
    let is_on = |value: &str| matches!(value, "true" | "on");
    let (presets, others): (Vec<_>, Vec<_>) =
        pairs.partition(|(key, value)| is_on(value) && draft.shorthand(key).is_some());
    let profile = others.iter().find(|(key, _)| key == PROFILE.key);
    draft.follow(profile.map(|(_, value)| value.as_str()));
    for (key, value) in presets.into_iter().chain(others) {
        if is_on(&value) && draft.take_alone(&key)? {
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
        if let Some(value) = draft.as_kernel(parameter, value)? {
            draft.set(parameter, &value)?;
        }
    }
    draft.finish().map(|(spec, _)| spec)
}

/// Reads a text, and what to note about it.
fn read(text: &str) -> Result<(QdiscSpec, Vec<String>), ParameterError> {
    let name = text.split_whitespace().next().unwrap_or_default();
    read_into(Draft::of(name)?, text)
}

/// Reads a text into a draft of its kind.
fn read_into(mut draft: Draft, text: &str) -> Result<(QdiscSpec, Vec<String>), ParameterError> {
    let mut words = text.split_whitespace().skip(1).peekable();
    draft.notes = Some(Vec::new());
    if let QdiscSpec::External(spec) = &mut draft.spec
        && spec.keep_words(|| words.by_ref().collect::<Vec<_>>().join(" "))
    {
        return draft.finish();
    }
    // The last one counts.
    let mut before = text.split_whitespace().rev();
    let last = before.position(|word| word == PROFILE.key);
    let last = last.and_then(|behind| text.split_whitespace().nth_back(behind.checked_sub(1)?));
    draft.follow(last);
    while let Some(word) = words.next() {
        let mut word = word;
        match draft.tc_word(word) {
            Some(TcWord::Means(other)) => word = other,
            Some(TcWord::WithoutEffect(values, why)) => {
                let mut left = values;
                while left > 0
                    && words
                        .next_if(|word| values != ALL_NUMBERS || !starts_name(word))
                        .is_some()
                {
                    left -= 1;
                }
                draft.note(&format!("{word}: no effect: {why}"));
                continue;
            }
            Some(TcWord::NotModelled(why)) => {
                return Err(ParameterError::Conflict {
                    kind: draft.kind.name,
                    why: format!("{word} is not modelled: {why}"),
                });
            }
            None => {}
        }
        if draft.take_alone(word)? {
            continue;
        }
        let (parameter, negated) = draft.parameter(word)?;
        if let Unit::Entries(_) = parameter.unit {
            let mut entries = Vec::new();
            let mut depth = 0;
            while let Some(word) = words.next_if(|word| depth > 0 || word.starts_with('(')) {
                depth += word.matches('(').count();
                depth = depth.saturating_sub(word.matches(')').count());
                entries.push(word);
            }
            draft.set(parameter, &entries.join(" "))?;
        } else if parameter.unit == Unit::Leaves {
            let rest: Vec<_> = words.by_ref().collect();
            draft.set(parameter, &rest.join(" "))?;
        } else if parameter.unit == Unit::Numbers {
            let mut numbers = Vec::new();
            while let Some(number) = words.next_if(|word| !starts_name(word)) {
                numbers.push(number);
            }
            draft.set(parameter, &numbers.join(" "))?;
        } else if !parameter.is_flag() {
            let given = words.next().unwrap_or_default();
            let text = draft.tc_value(parameter, given)?;
            if let Some(text) = draft.as_kernel(parameter, text)? {
                draft.set(parameter, &text)?;
            }
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

fn unknown_kind(name: &str) -> ParameterError {
    let elsewhere = KINDS_OF_TC.iter().find(|(kind, _)| *kind == name);
    let instead = if let Some((_, instead)) = elsewhere {
        (*instead).to_owned()
    } else {
        let entries = QdiscSpec::entries();
        let names = entries.iter().map(|entry| entry.name);
        instead_of(name, names).to_string()
    };
    ParameterError::UnknownKind {
        what: "queue",
        given: name.into(),
        instead,
    }
}

/// Kinds of `tc` that are no queues here, and what does the same.
const KINDS_OF_TC: &[(&str, &str)] = &[
    (
        "tbf",
        "the link does this: set its rate, burst and bucket = \"tbf\", and name the queue inside",
    ),
    (
        "hfsc",
        "not modelled: for a single class, set rate and burst of the link, and name the queue of the class",
    ),
    (
        "cbq",
        "not modelled: for a single class, set rate and burst of the link, and name the queue of the class",
    ),
    (
        "netem",
        "the link does this: set its delay, jitter, loss, duplicate and rate",
    ),
    (
        "mq",
        "a link has one queue; name the queue inside, such as fq_codel",
    ),
    (
        "mqprio",
        "a link has one queue; name the queue inside, such as fq_codel",
    ),
    (
        "multiq",
        "a link has one queue; name the queue inside, such as fq_codel",
    ),
    ("taprio", "gates with a schedule are not modelled"),
    ("etf", "send times of packets are not modelled"),
    (
        "cbs",
        "credit-based shapers are not modelled; a link has rate and burst",
    ),
    (
        "ets",
        "use prio for strict bands, or drr in a scenario for shares",
    ),
    (
        "qfq",
        "use drr, which shares the link in the same proportions",
    ),
    ("gred", "use red, which is one of its virtual queues"),
    (
        "hhf",
        "heavy-hitter filters are not modelled; sfq, drr and fq_codel share by flow",
    ),
    ("skbprio", "use prio or pfifo_fast"),
    ("plug", "queues that are opened by hand are not modelled"),
    (
        "ingress",
        "a filter, not a queue: name the queue of the device that it redirects to",
    ),
    (
        "clsact",
        "a filter, not a queue: name the queue of the device that it redirects to",
    ),
    (
        "noqueue",
        "use an unlimited link, or bfifo with a small limit",
    ),
    ("blackhole", "use loss = \"100%\" on the link"),
    (
        "fifo",
        "use pfifo, with a limit in packets, or bfifo, with a limit in bytes",
    ),
    (
        "sqm",
        "scripts that set up cake or fq_codel: use one of these, or 'sojourn import /etc/config/sqm'",
    ),
    (
        "droptail",
        "use pfifo, with a limit in packets, or bfifo, with a limit in bytes",
    ),
];

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
        if let Self::External(spec) = self
            && !spec.words().is_empty()
        {
            return write!(f, " {}", spec.words());
        }
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
    /// The shorthands.
    shorthands: Vec<&'static str>,
    /// What to note about a text, in which the last word counts; `None`: a table, which has no order.
    notes: Option<Vec<String>>,
    /// What `tc` and the kernel change.
    dialect: Option<&'static Dialect>,
}

impl Draft {
    fn of(name: &str) -> Result<Self, ParameterError> {
        let (kind, spec) = QdiscSpec::at_defaults(name).ok_or_else(|| unknown_kind(name))?;
        Ok(Self::new(kind, spec))
    }

    const fn new(kind: Entry, spec: QdiscSpec) -> Self {
        Self {
            kind,
            spec,
            given: Vec::new(),
            preset: Vec::new(),
            shorthands: Vec::new(),
            notes: None,
            dialect: None,
        }
    }

    fn note(&mut self, text: &str) {
        let kind = self.kind.name;
        self.notes
            .iter_mut()
            .for_each(|notes| notes.push(format!("{kind}: {text}")));
    }

    fn tc_word(&self, word: &str) -> Option<TcWord> {
        let mut words = self.spec.tc_words().iter();
        words
            .find(|(known, _)| *known == word)
            .map(|(_, meaning)| *meaning)
    }

    fn shorthand(&self, word: &str) -> Option<&'static Shorthand> {
        let mut shorthands = self.spec.shorthands().iter().copied().flatten();
        shorthands.find(|(name, _)| *name == word)
    }

    /// The value of `parameter` that `tc` reads in `text`, in a form that [`Parameter::set`] reads.
    fn tc_value(&mut self, parameter: &Parameter, text: &str) -> Result<String, ParameterError> {
        let key = parameter.key;
        match parameter.unit {
            Unit::Time | Unit::Millis | Unit::Micros => {
                let text = without_exponent(text);
                if !is_plain_number(&text) {
                    return Ok(text);
                }
                // `tc` keeps whole microseconds, rounded down.
                let whole = text.split_once('.').map_or(&*text, |(whole, _)| whole);
                let given = match parameter.plain {
                    Some(unit) => format!("{text}{unit}"),
                    None => format!("0{whole}us"),
                };
                let time = given
                    .parse()
                    .map_or(given, |time: Duration| time_text(time));
                if parameter.plain.is_none() {
                    self.note(&format!(
                        "{key} {text}: tc reads {text} as {whole}us; write {time}"
                    ));
                }
                Ok(time)
            }
            Unit::Rate => {
                let text = without_exponent(text);
                if !is_plain_number(&text) {
                    return Ok(text);
                }
                self.note(&format!("{key} {text}: tc reads {text} as {text}bit"));
                Ok(format!("{text}bit"))
            }
            Unit::Size | Unit::SignedSize(_) => Ok(without_exponent(text)),
            Unit::Packets | Unit::Count(_) | Unit::CountOrOff(_) => {
                let digits = text.strip_suffix("pps").unwrap_or(text);
                if let Some(hex) = digits
                    .strip_prefix("0x")
                    .and_then(|hex| u64::from_str_radix(hex, 16).ok())
                {
                    return Ok(hex.to_string());
                }
                match octal(digits) {
                    Some(number) => Err(self.flaw(
                        parameter,
                        format!("{text} is octal in tc: {number}; write {number}"),
                    )),
                    None => Ok(digits.to_owned()),
                }
            }
            _ => Ok(text.to_owned()),
        }
    }

    /// Takes numbers as `tc` and the kernel do if this profile, or else the default, is one of Linux.
    fn follow(&mut self, profile: Option<&str>) {
        let default = self
            .spec
            .value(PROFILE.key)
            .and_then(|value| value.text(Unit::Profile));
        let profile = profile.map(str::to_owned).or(default);
        let linux = profile.is_none_or(|profile| profile != Profile::Rfc.word());
        self.dialect = Dialect::named(self.spec.kind()).filter(|_| linux);
    }

    /// Notes what `tc` or the kernel changes of a text; in a table it is an error.
    fn note_kernel(&mut self, change: &str) -> Result<(), ParameterError> {
        if self.notes.is_none() {
            return Err(ParameterError::Conflict {
                kind: self.kind.name,
                why: format!("{change}; write that value"),
            });
        }
        self.note(change);
        Ok(())
    }

    /// A value as `tc` and the kernel take it; `None` if `tc` ignores it, which resets the parameter.
    fn as_kernel(
        &mut self,
        parameter: &'static Parameter,
        text: String,
    ) -> Result<Option<String>, ParameterError> {
        let (Some(dialect), Some(whole)) = (self.dialect, parameter.whole(&text)) else {
            return Ok(Some(text));
        };
        let key = parameter.key;
        if whole == 0 && dialect.ignores_zero.contains(&key) {
            let default = QdiscSpec::at_defaults(self.kind.name)
                .and_then(|(_, mut spec)| parameter.text(spec.value(key)?));
            let shown = default.as_deref().unwrap_or(parameter.unset);
            self.note_kernel(&format!(
                "{key} {text}: no effect: tc takes the default, {shown}"
            ))?;
            if default.is_none()
                && let Some(value) = self.spec.value(key)
            {
                value.clear();
            }
            return Ok(default);
        }
        let clamp = dialect.clamps.iter().find(|(known, ..)| *known == key);
        let Some(&(_, min, max)) = clamp.filter(|(_, min, max)| !(*min..=*max).contains(&whole))
        else {
            return Ok(Some(text));
        };
        let clamped = parameter.unit.text(whole.clamp(min, max));
        self.note_kernel(&format!("{key}: {clamped}, not {text}: as in the kernel"))?;
        Ok(Some(clamped))
    }

    /// Takes a word that needs no value after it: a choice or a shorthand; says whether it is one.
    fn take_alone(&mut self, word: &str) -> Result<bool, ParameterError> {
        let mut choices = self.kind.parameters.iter();
        let chosen = choices.find(|p| matches!(p.unit, Unit::Choice(all) if all.contains(&word)));
        if let Some(parameter) = chosen {
            return self.set(parameter, word).map(|()| true);
        }
        let Some((name, meaning)) = self.shorthand(word) else {
            return Ok(false);
        };
        for (key, value) in *meaning {
            let (parameter, _) = self.parameter(key)?;
            let is_given = self.given.contains(key);
            if self.notes.is_none() && (is_given || self.preset.contains(key)) {
                return Err(self.twice(parameter, Some(word.into())));
            }
            let before = self.text_of(parameter);
            match value.strip_prefix('+') {
                Some(more) => {
                    let sum = whole(before.as_deref()) + whole(Some(more));
                    self.assign(parameter, &sum.to_string())?;
                }
                None if value.is_empty() => {
                    if let Some(value) = self.spec.value(key) {
                        value.clear();
                    }
                }
                None => self.assign(parameter, value)?,
            }
            if is_given && !value.starts_with('+') {
                self.note_change(parameter, before);
            }
        }
        self.preset.extend(meaning.iter().map(|(key, _)| *key));
        self.shorthands.push(name);
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
        // In a text, the choices are words of their own, as in `tc`.
        let in_text = self.notes.is_some();
        let all = parameters.iter().flat_map(move |parameter| {
            let hidden = in_text && !parameter.choices().is_empty();
            parameter.words().skip(usize::from(hidden))
        });
        let shorthands = self
            .spec
            .shorthands()
            .iter()
            .copied()
            .flatten()
            .map(|(name, _)| *name);
        let words = self.spec.tc_words().iter().map(|(name, _)| *name);
        let words = words.filter(|_| in_text);
        let instead = match parameters.first() {
            None if self.kind.name.starts_with(PYTHON_PREFIX) => {
                "a Python queue takes no parameters; set class attributes instead".into()
            }
            None => "this queue takes no parameters".into(),
            Some(_) if !starts_name(word) => "expected a parameter name before the value".into(),
            _ => instead_of(word, all.chain(shorthands).chain(words)).to_string(),
        };
        Err(ParameterError::UnknownKey {
            kind: self.kind.name,
            given: word.into(),
            instead,
        })
    }

    fn set(&mut self, parameter: &'static Parameter, text: &str) -> Result<(), ParameterError> {
        if !self.given.contains(&parameter.key) {
            self.given.push(parameter.key);
            return self.assign(parameter, text);
        }
        if self.notes.is_none() {
            return Err(self.twice(parameter, None));
        }
        let before = self.text_of(parameter);
        self.assign(parameter, text)?;
        self.note_change(parameter, before);
        Ok(())
    }

    fn text_of(&mut self, parameter: &Parameter) -> Option<String> {
        let value = self.spec.value(parameter.key)?;
        parameter.text(value)
    }

    /// Notes that a parameter no longer has the value that an earlier word gave it.
    fn note_change(&mut self, parameter: &Parameter, before: Option<String>) {
        let after = self.text_of(parameter);
        if after != before {
            let word = |text: Option<String>| text.unwrap_or_else(|| parameter.unset.to_owned());
            let (key, after, before) = (parameter.key, word(after), word(before));
            self.note(&format!(
                "{key}: {after}, not {before}: as in tc, the last one counts"
            ));
        }
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

    /// The specification and the notes on it.
    fn finish(mut self) -> Result<(QdiscSpec, Vec<String>), ParameterError> {
        let kind = self.kind.name;
        let fail = |why| ParameterError::Conflict { kind, why };
        let changes = self.spec.settle(&self.shorthands).map_err(fail)?;
        for change in changes {
            self.note_kernel(&change)?;
        }
        match self.spec.conflict() {
            None => Ok((self.spec, self.notes.unwrap_or_default())),
            Some(why) => Err(fail(why)),
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

/// Whether `text` is a number without a unit.
fn is_plain_number(text: &str) -> bool {
    text.parse::<f64>().is_ok()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.')
}

/// `1e+03s`, as `tc` writes long times, as `1000s`.
fn without_exponent(text: &str) -> String {
    let end = text.find(|c: char| !(c.is_ascii_digit() || ".eE+-".contains(c)));
    let (number, unit) = text.split_at(end.unwrap_or(text.len()));
    match number.parse::<f64>() {
        Ok(value) if number.contains(['e', 'E']) && value.is_finite() => format!("{value}{unit}"),
        _ => text.to_owned(),
    }
}

/// The number that `digits` are in octal, if a zero before them makes `tc` read them so.
fn octal(digits: &str) -> Option<u64> {
    let rest = digits.strip_prefix('0').filter(|rest| !rest.is_empty())?;
    u64::from_str_radix(rest, 8).ok()
}

/// The whole number at the start of a canonical text; 0 if there is none.
fn whole(text: Option<&str>) -> i64 {
    let text = text.unwrap_or_default();
    text.strip_suffix('b').unwrap_or(text).parse().unwrap_or(0)
}
