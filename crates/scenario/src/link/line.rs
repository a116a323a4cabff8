//! Impairments behind a link: `loss`, `duplicate` and `jitter`.

use sojourn_net::{Bytes, Duration};
use sojourn_qdisc::{Framing, LinkLayer};

use super::LinkKeys;
use crate::declare::{KeyValue, Percent, choices, keys, one_of, tables, words};
use crate::error::{ScenarioError, instead_of};
use crate::key::Form;
use crate::place::{Place, choice};
use crate::plan::{
    self, Distribution, EcnRewrite, Encapsulation, GilbertElliott, LineConfig, Order,
};
use crate::value::{Node, Value};

keys! {
    /// Losses in bursts.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Chain {
        /// Loss model.
        model: Model = one_of::<Model>(), required "\"gilbert-elliott\"";
        /// Probability, per packet, of a transition from the good state to the bad state.
        to_bad: Percent = Form::PERCENT, required "\"1%\"";
        /// Probability, per packet, of a transition from the bad state to the good state.
        to_good: Percent = Form::PERCENT, required "\"25%\"";
        /// Loss probability in the bad state.
        in_bad: Percent = Form::PERCENT, default "100%";
        /// Loss probability in the good state.
        in_good: Percent = Form::PERCENT, default "0%";
    }
}

keys! {
    /// Variation of the delay.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Deviation {
        /// Scale of the deviation: its maximum if uniform, its standard deviation if normal, a scale factor if pareto or paretonormal.
        spread: Duration = Form::POSITIVE_TIME, required "\"5ms\"";
        /// Distribution of the deviation.
        distribution: Distribution = one_of::<Distribution>(), default "uniform";
        /// Packet order: kept, or free to reorder.
        order: Order = one_of::<Order>(), default "kept";
    }
}

words! {
    /// A model of losses.
    enum Model: "loss model" { GilbertElliott = "gilbert-elliott" }
}

choices! {
    Distribution: "distribution";
    EcnRewrite: "ECN field";
    Order: "jitter order";
}

tables! { Chain Deviation }

/// A share of all packets, or a table that names a model.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Loss {
    Random(Percent),
    Bursts(Chain),
}

impl KeyValue for Loss {
    fn read(place: &Place<'_>) -> Result<Self, ScenarioError> {
        match place.node.value {
            Value::Table(_) => KeyValue::read(place).map(Self::Bursts),
            _ => KeyValue::read(place).map(Self::Random),
        }
    }

    fn write(&self) -> Option<Node> {
        match self {
            Self::Random(share) if share.0 > 0.0 => share.write(),
            Self::Random(_) => None,
            Self::Bursts(chain) => chain.write(),
        }
    }
}

/// Numbers of packets, from 1 and ascending.
#[derive(Clone, Debug)]
pub(crate) struct DropList(Vec<i64>);

/// The largest number of a packet in the list of those that a wire loses.
pub(super) const LAST_DROP: i64 = 1_000_000_000_000;

impl KeyValue for DropList {
    fn read(place: &Place<'_>) -> Result<Self, ScenarioError> {
        let places = place.list()?;
        if places.is_empty() {
            return Err(place.fail("empty; expected at least one number (or omit the key)"));
        }
        let mut before = 0;
        let mut all = Vec::with_capacity(places.len());
        for place in places {
            let number = i64::read(&place)?;
            if number <= before {
                let rule = format!("{number} is not after {before}; expected ascending numbers");
                return Err(place.fail(rule));
            }
            before = number;
            all.push(number);
        }
        Ok(Self(all))
    }

    fn write(&self) -> Option<Node> {
        self.0.write()
    }
}

/// A time, or a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Jitter(Deviation);

impl KeyValue for Jitter {
    fn read(place: &Place<'_>) -> Result<Self, ScenarioError> {
        if matches!(place.node.value, Value::Table(_)) {
            return KeyValue::read(place).map(Self);
        }
        let spread = place.time()?;
        Ok(Self(Deviation {
            spread,
            distribution: Distribution::Uniform,
            order: Order::Kept,
        }))
    }

    fn write(&self) -> Option<Node> {
        if self.0.spread == Duration::ZERO {
            return self.0.spread.write();
        }
        self.0.write()
    }
}

/// A share of packets as a fraction.
fn share(percent: Percent) -> f64 {
    percent.0 / 100.0
}

impl Percent {
    /// The share of a plan, without the rounding errors of the conversion.
    pub(super) fn of(share: f64) -> Self {
        Self((share * 1e14).round() / 1e12)
    }
}

impl Loss {
    /// The loss in a plan.
    pub(super) fn config(self) -> plan::Loss {
        match self {
            Self::Random(random) if random.0 > 0.0 => plan::Loss::Random(share(random)),
            Self::Random(_) => plan::Loss::None,
            Self::Bursts(chain) => plan::Loss::GilbertElliott(GilbertElliott {
                to_bad: share(chain.to_bad),
                to_good: share(chain.to_good),
                in_bad: share(chain.in_bad),
                in_good: share(chain.in_good),
            }),
        }
    }
}

impl Loss {
    /// The loss of a plan.
    pub(super) fn of(loss: plan::Loss) -> Self {
        match loss {
            plan::Loss::None => Self::Random(Percent(0.0)),
            plan::Loss::Random(share) => Self::Random(Percent::of(share)),
            plan::Loss::GilbertElliott(chain) => Self::Bursts(Chain {
                model: Model::GilbertElliott,
                to_bad: Percent::of(chain.to_bad),
                to_good: Percent::of(chain.to_good),
                in_bad: Percent::of(chain.in_bad),
                in_good: Percent::of(chain.in_good),
            }),
        }
    }
}

impl Jitter {
    /// The jitter of a plan.
    pub(super) fn of(jitter: Option<plan::Jitter>) -> Self {
        let none = plan::Jitter {
            spread: Duration::ZERO,
            distribution: Distribution::Uniform,
            order: Order::Kept,
        };
        let jitter = jitter.unwrap_or(none);
        Self(Deviation {
            spread: jitter.spread,
            distribution: jitter.distribution,
            order: jitter.order,
        })
    }

    /// The jitter in a plan; `None` if its spread is zero.
    pub(super) fn config(self) -> Option<plan::Jitter> {
        let Self(table) = self;
        (table.spread > Duration::ZERO).then_some(plan::Jitter {
            spread: table.spread,
            distribution: table.distribution,
            order: table.order,
        })
    }
}

impl LinkKeys {
    /// What is behind the link.
    pub(super) fn line(&self) -> LineConfig {
        LineConfig {
            loss: self.loss.map_or(plan::Loss::None, Loss::config),
            duplicate: share(self.duplicate),
            jitter: self.jitter.and_then(Jitter::config),
            drops: (self.drop.iter())
                .flat_map(|DropList(numbers)| numbers)
                .map(|number| number.cast_unsigned())
                .collect(),
            ecn: self.ecn,
        }
    }

    /// What is counted of a frame.
    pub(super) fn encapsulation(&self) -> Encapsulation {
        let named = match self.overhead {
            Some(Overhead::Named { layer, tags, .. }) => Encapsulation {
                // At most 48 B and the tags: it fits.
                overhead: layer.overhead.cast_signed() + tags - ETHERNET_HEADER,
                mpu: layer.mpu,
                framing: layer.framing,
            },
            Some(Overhead::Bytes(overhead)) => Encapsulation {
                overhead,
                ..Encapsulation::ETHERNET
            },
            None => Encapsulation::ETHERNET,
        };
        Encapsulation {
            mpu: self.mpu.map_or(named.mpu, |Mpu(bytes)| bytes),
            framing: self.framing.unwrap_or(named.framing),
            ..named
        }
    }
}

/// What every packet is counted with already; names count from the IP packet.
const ETHERNET_HEADER: i16 = 14;
/// A VLAN tag of IEEE 802.1Q, which may follow the name of a link layer.
const VLAN: (&str, i16) = ("ether-vlan", 4);
/// What Mahimahi counts of a frame: an IP packet and the 4 B that precede it on its device.
const MAHIMAHI: i16 = 4 - ETHERNET_HEADER;
/// The form of `mpu`: at most a full frame.
pub(super) const MPU: Form = Form::Size(0, 1_514);

/// A size that no frame is counted below.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mpu(u16);

impl KeyValue for Mpu {
    fn read(place: &Place<'_>) -> Result<Self, ScenarioError> {
        place.size_as().map(Self)
    }

    fn write(&self) -> Option<Node> {
        Bytes(self.0.into()).write()
    }
}

impl KeyValue for Framing {
    fn read(place: &Place<'_>) -> Result<Self, ScenarioError> {
        let known = choice(place, "framing", Framing::WORDS)?;
        Framing::named(Framing::WORDS[known]).ok_or_else(|| place.fail("unknown framing"))
    }

    fn write(&self) -> Option<Node> {
        Some(self.word().into())
    }
}

/// The link layer as it was given.
#[derive(Clone, Debug)]
pub(crate) enum Overhead {
    /// Added to an Ethernet frame without check sequence.
    Bytes(i16),
    /// By the words of `tc`.
    Named {
        words: String,
        layer: LinkLayer,
        tags: i16,
    },
}

impl Overhead {
    /// That of a link that names none.
    pub(super) const fn usual(traced: bool) -> Self {
        Self::Bytes(if traced { MAHIMAHI } else { 0 })
    }

    fn bytes(place: &Place<'_>) -> Result<Self, ScenarioError> {
        let bytes = place.signed_size()?;
        if bytes < -ETHERNET_HEADER {
            return Err(place.out_of_range("at least -14b, which counts only the IP packet"));
        }
        Ok(Self::Bytes(bytes))
    }
}

impl KeyValue for Overhead {
    /// A size, or the name of a link layer with `ether-vlan` behind it or not.
    fn read(place: &Place<'_>) -> Result<Self, ScenarioError> {
        let Value::Text(text) = &place.node.value else {
            return Self::bytes(place);
        };
        let begins = |c: char| c.is_ascii_digit() || c == '-' || c == '+' || c == '.';
        if text.trim_start().starts_with(begins) {
            return Self::bytes(place);
        }
        let mut words = text.split_whitespace();
        let name = words.next().unwrap_or_default();
        let layer = LinkLayer::named(name).ok_or_else(|| {
            let known: Vec<_> = LinkLayer::names().collect();
            let instead = instead_of(name, &known);
            place.fail(format!(
                "\"{name}\" is neither a link layer nor a size such as \"4b\"; {instead}"
            ))
        })?;
        let mut tags = 0;
        for word in words {
            if word != VLAN.0 || tags > 0 {
                let rule = format!(
                    "unexpected \"{word}\" after {name}; expected at most one {}",
                    VLAN.0
                );
                return Err(place.fail(rule));
            }
            tags += VLAN.1;
        }
        let vlan = if tags > 0 { " ether-vlan" } else { "" };
        Ok(Self::Named {
            words: format!("{name}{vlan}"),
            layer,
            tags,
        })
    }

    fn write(&self) -> Option<Node> {
        match self {
            Self::Bytes(bytes) => Some(format!("{bytes}b").into()),
            Self::Named { words, .. } => words.write(),
        }
    }
}
