//! Bottlenecks and changes of the wire as text, in words like those of `tc` and `netem`.

use std::fmt::Display;
use std::str::FromStr;

use sojourn_net::{Duration, Rate};

use super::builder::parse;
use super::{Bottleneck, PathError};
use crate::config::{
    Distribution, EcnRewrite, GilbertElliott, Jitter, Loss, Order, Trace, WireChange,
};

impl Bottleneck {
    /// Parses pairs of a key and a value, in any order; the queue is last.
    ///
    /// | key | value |
    /// |---|---|
    /// | `rate` | such as `20mbit`; not with a trace |
    /// | `delay` | of the wire, such as `10ms` |
    /// | `jitter` | such as `2ms` |
    /// | `distribution` | of the jitter: `uniform` (default), `normal`, `pareto` or `paretonormal` |
    /// | `order` | of packets that the jitter moves: `kept` (default) or `free` |
    /// | `loss` | such as `1%`, or as in `netem`: `gemodel` and the percentages *p*, *r*, *1-h* and *1-k*, all but the first optional |
    /// | `drop` | numbers of packets that the wire loses besides, such as `3,4,5` |
    /// | `duplicate` | such as `0.1%` |
    /// | `ecn` | what the wire writes into the ECN field: `not-ect`, `ect0`, `ect1`, `ce` or `mark` |
    /// | `qdisc` | the rest of the text, such as `fq_codel limit 1000` |
    ///
    /// Without a rate, a trace and a queue, there is [no bottleneck](Bottleneck::none).
    ///
    /// ```
    /// use sojourn_path::{Bottleneck, Duration, Loss, Rate};
    ///
    /// # fn main() -> Result<(), sojourn_path::PathError> {
    /// let parsed = Bottleneck::parse("rate 20mbit delay 10ms loss 1% qdisc fq_codel limit 1000", None)?;
    /// let built = Bottleneck::new(Rate::mbit(20), "fq_codel limit 1000")?;
    /// assert_eq!(parsed, built.delay(Duration::from_millis(10)).loss(Loss::Random(0.01)));
    ///
    /// let error = Bottleneck::parse("rate 20mbit", None).unwrap_err();
    /// assert_eq!(error.to_string(), "rate: a rate needs a queue; add, for example, \"qdisc fq_codel\"");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If a key is unknown, given twice or missing, or a value is unreadable or out of range.
    pub fn parse(text: &str, trace: Option<&Trace>) -> Result<Self, PathError> {
        let (mut rate, mut queue) = (None, None);
        let (mut drops, mut ecn) = (Vec::new(), None);
        let mut wire = Wire::default();
        let mut words = Words::of(text);
        while let Some(key) = words.key()? {
            match key {
                "rate" => rate = Some(words.parse::<Rate>(key)?),
                "drop" => drops = numbers(key, words.value(key)?)?,
                "ecn" => ecn = Some(rewrite(key, words.value(key)?)?),
                "qdisc" => queue = Some(words.rest()),
                _ => wire.read(key, &mut words, "rate, drop, ecn, qdisc")?,
            }
        }
        let of = |queue: Option<&str>, key: &str| {
            let rule = format!("a {key} needs a queue; add, for example, \"qdisc fq_codel\"");
            queue.map(str::to_owned).ok_or_else(|| wrong(key, rule))
        };
        let mut bottleneck = match (rate, trace) {
            (Some(_), Some(_)) => {
                return Err(wrong(
                    "rate",
                    "the trace states the rate; remove one of them",
                ));
            }
            (Some(rate), None) => Self::with_queue(rate, parse(&of(queue, "rate")?)?),
            (None, Some(trace)) => Self::following(trace, &of(queue, "trace")?)?,
            (None, None) if queue.is_some() => {
                let rule = "a queue needs a rate or a trace; add, for example, \"rate 20mbit\"";
                return Err(wrong("qdisc", rule));
            }
            (None, None) => Self::none(),
        };
        let change = wire.change()?;
        bottleneck.delay = change.delay.unwrap_or(Duration::ZERO);
        bottleneck.line.loss = change.loss.unwrap_or(Loss::None);
        bottleneck.line.duplicate = change.duplicate.unwrap_or(0.0);
        bottleneck.line.jitter = change.jitter.flatten();
        bottleneck.line.ecn = ecn;
        Ok(bottleneck.drop_list(drops))
    }
}

impl FromStr for Bottleneck {
    type Err = PathError;

    /// As [`Bottleneck::parse`] without a trace.
    fn from_str(text: &str) -> Result<Self, PathError> {
        Self::parse(text, None)
    }
}

impl FromStr for WireChange {
    type Err = PathError;

    /// Pairs of a key and a value: `delay`, `jitter` with `distribution` and `order`, `loss` and `duplicate`, as
    /// [`Bottleneck::parse`] has them. A jitter of `0ms` ends the variation.
    ///
    /// ```
    /// use sojourn_path::{Duration, WireChange};
    ///
    /// let change: WireChange = "delay 50ms".parse().unwrap();
    /// assert_eq!(change, WireChange { delay: Some(Duration::from_millis(50)), ..WireChange::NONE });
    /// ```
    fn from_str(text: &str) -> Result<Self, PathError> {
        let mut wire = Wire::default();
        let mut words = Words::of(text);
        while let Some(key) = words.key()? {
            wire.read(key, &mut words, "")?;
        }
        wire.change()
    }
}

/// The keys of a wire that may change.
#[derive(Default)]
struct Wire {
    delay: Option<Duration>,
    jitter: Option<Duration>,
    distribution: Option<Distribution>,
    order: Option<Order>,
    loss: Option<Loss>,
    duplicate: Option<f64>,
}

impl Wire {
    /// Reads the value of a key; the text has these keys besides.
    fn read(&mut self, key: &str, words: &mut Words<'_>, others: &str) -> Result<(), PathError> {
        match key {
            "delay" => self.delay = Some(words.parse(key)?),
            "jitter" => self.jitter = Some(words.parse(key)?),
            "distribution" => {
                let value = words.value(key)?;
                self.distribution = Some(choice(key, value, &Distribution::ALL, |one| one.name())?);
            }
            "order" => {
                let value = words.value(key)?;
                self.order = Some(choice(key, value, &Order::ALL, |one| one.name())?);
            }
            "loss" => self.loss = Some(loss(key, words)?),
            "duplicate" => self.duplicate = Some(share(key, words.value(key)?)?),
            _ => {
                let separator = if others.is_empty() { "" } else { ", " };
                let rule = format!(
                    "unknown key; expected delay, jitter, distribution, order, loss, duplicate{separator}{others}"
                );
                return Err(wrong(&shown(key), rule));
            }
        }
        Ok(())
    }

    fn change(self) -> Result<WireChange, PathError> {
        let stray = [
            ("distribution", self.distribution.is_some()),
            ("order", self.order.is_some()),
        ];
        if let Some((key, _)) = stray
            .iter()
            .find(|(_, given)| *given && self.jitter.is_none())
        {
            let rule = "there is no jitter; add, for example, \"jitter 2ms\"";
            return Err(wrong(key, rule));
        }
        let jitter = |spread| Jitter {
            spread,
            distribution: self.distribution.unwrap_or(Distribution::Uniform),
            order: self.order.unwrap_or(Order::Kept),
        };
        let varies = |spread: &Duration| *spread > Duration::ZERO;
        Ok(WireChange {
            delay: self.delay,
            loss: self.loss,
            duplicate: self.duplicate,
            jitter: self.jitter.map(|of| Some(of).filter(varies).map(jitter)),
        })
    }
}

/// The words of a text.
struct Words<'a> {
    rest: &'a str,
    seen: Vec<&'a str>,
}

impl<'a> Words<'a> {
    const fn of(text: &'a str) -> Self {
        Self {
            rest: text,
            seen: Vec::new(),
        }
    }

    fn next(&mut self) -> Option<&'a str> {
        let text = self.rest.trim_start();
        let end = text.find(char::is_whitespace).unwrap_or(text.len());
        let (word, rest) = text.split_at(end);
        self.rest = rest;
        (!word.is_empty()).then_some(word)
    }

    fn key(&mut self) -> Result<Option<&'a str>, PathError> {
        let Some(key) = self.next() else {
            return Ok(None);
        };
        if self.seen.contains(&key) {
            return Err(wrong(key, "given twice"));
        }
        self.seen.push(key);
        Ok(Some(key))
    }

    fn value(&mut self, key: &str) -> Result<&'a str, PathError> {
        self.next()
            .ok_or_else(|| wrong(key, "the value is missing"))
    }

    fn parse<T: FromStr<Err: Display>>(&mut self, key: &str) -> Result<T, PathError> {
        self.value(key)?.parse().map_err(|error| wrong(key, error))
    }

    fn rest(&mut self) -> &'a str {
        std::mem::take(&mut self.rest).trim()
    }
}

fn wrong(place: &str, rule: impl Display) -> PathError {
    PathError {
        place: place.to_owned(),
        rule: rule.to_string(),
    }
}

/// The beginning of a word, on one line.
fn shown(word: &str) -> String {
    word.chars().take(32).flat_map(char::escape_debug).collect()
}

fn choice<T: Copy>(
    key: &str,
    value: &str,
    all: &[T],
    name: fn(&T) -> &'static str,
) -> Result<T, PathError> {
    all.iter()
        .copied()
        .find(|one| name(one) == value)
        .ok_or_else(|| {
            let names: Vec<_> = all.iter().map(name).collect();
            let value = shown(value);
            wrong(
                key,
                format!("unknown value \"{value}\"; expected {}", names.join(", ")),
            )
        })
}

fn rewrite(key: &str, value: &str) -> Result<EcnRewrite, PathError> {
    choice(key, value, &EcnRewrite::ALL, |one| one.name())
}

/// A percentage as a fraction.
fn share(key: &str, value: &str) -> Result<f64, PathError> {
    let number = value
        .strip_suffix('%')
        .and_then(|number| number.parse::<f64>().ok());
    let fraction = number.map(|number| number / 100.0);
    fraction
        .filter(|fraction| (0.0..=1.0).contains(fraction))
        .ok_or_else(|| {
            let value = shown(value);
            wrong(
                key,
                format!("\"{value}\" is not a percentage; expected 0% to 100%"),
            )
        })
}

fn loss(key: &str, words: &mut Words<'_>) -> Result<Loss, PathError> {
    let value = words.value(key)?;
    if value != "gemodel" {
        return match share(key, value)? {
            0.0 => Ok(Loss::None),
            probability => Ok(Loss::Random(probability)),
        };
    }
    let Some(first) = words.percentage() else {
        let rule = "gemodel needs a percentage; write, for example, \"loss gemodel 1% 25%\"";
        return Err(wrong(key, rule));
    };
    let to_bad = share(key, first)?;
    let mut next = |default| match words.percentage() {
        Some(value) => share(key, value),
        None => Ok(default),
    };
    // The defaults are those of netem.
    Ok(Loss::GilbertElliott(GilbertElliott {
        to_bad,
        to_good: next(1.0 - to_bad)?,
        in_bad: next(1.0)?,
        in_good: next(0.0)?,
    }))
}

impl<'a> Words<'a> {
    /// The next word, if it is a percentage.
    fn percentage(&mut self) -> Option<&'a str> {
        let before = self.rest;
        let word = self.next().filter(|word| word.ends_with('%'));
        if word.is_none() {
            self.rest = before;
        }
        word
    }
}

fn numbers(key: &str, value: &str) -> Result<Vec<u64>, PathError> {
    let numbers = value.split(',').map(|text| {
        let number = text.parse().ok().filter(|number| *number > 0);
        number.ok_or_else(|| {
            let text = shown(text);
            let rule = format!(
                "\"{text}\" is not the number of a packet; expected numbers from 1, such as 3,4,5"
            );
            wrong(key, rule)
        })
    });
    numbers.collect()
}
