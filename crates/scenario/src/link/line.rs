//! Impairments behind a link: `loss`, `duplicate` and `jitter`.

use sojourn_qdisc::{Framing, LinkLayer};

use crate::error::{ScenarioError, instead_of};
use crate::key::{Form, Key};
use crate::place::{Fields, Place};
use crate::plan::{Distribution, Encapsulation, GilbertElliott, Jitter, LineConfig, Loss, Order};
use crate::value::{Node, Table, Value, insert, table, time};

const CHAIN: &str = "gilbert-elliott";
pub(super) const CHAIN_KEYS: &[Key] = &[
    Key::required("model", Form::Choice(|| vec![CHAIN]), "Loss model."),
    Key::required(
        "to_bad",
        Form::PERCENT,
        "Probability, per packet, of a transition from the good state to the bad state.",
    ),
    Key::required(
        "to_good",
        Form::PERCENT,
        "Probability, per packet, of a transition from the bad state to the good state.",
    ),
    Key::optional(
        "in_bad",
        Form::PERCENT,
        "Loss probability in the bad state.",
    )
    .or("100%"),
    Key::optional(
        "in_good",
        Form::PERCENT,
        "Loss probability in the good state.",
    )
    .or("0%"),
];
pub(super) const JITTER_KEYS: &[Key] = &[
    Key::required(
        "spread",
        Form::POSITIVE_TIME,
        "Scale of the deviation: its maximum if uniform, its standard deviation if normal, a scale factor if pareto or paretonormal.",
    ),
    Key::optional(
        "distribution",
        Form::Choice(|| Distribution::ALL.map(Distribution::name).to_vec()),
        "Distribution of the deviation.",
    )
    .or("uniform"),
    Key::optional(
        "order",
        Form::Choice(|| Order::ALL.map(Order::name).to_vec()),
        "Packet order: kept, or free to reorder.",
    )
    .or("kept"),
];

/// The wire behind a link; shares are percentages, as they were written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    loss: Loss,
    duplicate: f64,
    jitter: Option<Jitter>,
}

impl Line {
    pub(super) fn read(fields: &Fields<'_>) -> Result<Self, ScenarioError> {
        Ok(Self {
            loss: fields.option("loss", read_loss)?.unwrap_or(Loss::None),
            duplicate: fields.percent("duplicate")?,
            jitter: fields.option("jitter", read_jitter)?,
        })
    }

    pub(super) fn write(&self, fields: &mut Table) {
        let loss = match self.loss {
            Loss::None => None,
            Loss::Random(share) => Some(percent(share)),
            Loss::GilbertElliott(chain) => Some(
                Value::Table(table([
                    ("model", CHAIN.into()),
                    ("to_bad", percent(chain.to_bad)),
                    ("to_good", percent(chain.to_good)),
                    ("in_bad", percent(chain.in_bad)),
                    ("in_good", percent(chain.in_good)),
                ]))
                .into(),
            ),
        };
        insert(fields, "loss", loss);
        let twice = (self.duplicate > 0.0).then(|| percent(self.duplicate));
        insert(fields, "duplicate", twice);
        let jitter = self.jitter.map(|jitter| {
            Value::Table(table([
                ("spread", time(jitter.spread)),
                ("distribution", jitter.distribution.name().into()),
                ("order", jitter.order.name().into()),
            ]))
            .into()
        });
        insert(fields, "jitter", jitter);
    }

    pub(super) fn config(&self) -> LineConfig {
        LineConfig {
            loss: match self.loss {
                Loss::None => Loss::None,
                Loss::Random(share) => Loss::Random(share / 100.0),
                Loss::GilbertElliott(chain) => Loss::GilbertElliott(GilbertElliott {
                    to_bad: chain.to_bad / 100.0,
                    to_good: chain.to_good / 100.0,
                    in_bad: chain.in_bad / 100.0,
                    in_good: chain.in_good / 100.0,
                }),
            },
            duplicate: self.duplicate / 100.0,
            jitter: self.jitter,
        }
    }
}

/// A share of all packets, or a table that names a model.
fn read_loss(place: &Place<'_>) -> Result<Loss, ScenarioError> {
    if !matches!(place.node.value, Value::Table(_)) {
        return place.percent().map(|share| match share {
            share if share > 0.0 => Loss::Random(share),
            _ => Loss::None,
        });
    }
    let fields = place.fields(CHAIN_KEYS)?;
    let model = fields.need("model", "\"gilbert-elliott\"")?;
    model.one_of("loss model", &[CHAIN])?;
    Ok(Loss::GilbertElliott(GilbertElliott {
        to_bad: fields.need("to_bad", "\"1%\"")?.percent()?,
        to_good: fields.need("to_good", "\"25%\"")?.percent()?,
        in_bad: fields.percent("in_bad")?,
        in_good: fields.percent("in_good")?,
    }))
}

/// A time, or a table.
fn read_jitter(place: &Place<'_>) -> Result<Jitter, ScenarioError> {
    let plain = |spread| Jitter {
        spread,
        distribution: Distribution::Uniform,
        order: Order::Kept,
    };
    if !matches!(place.node.value, Value::Table(_)) {
        return place.time().map(plain);
    }
    let fields = place.fields(JITTER_KEYS)?;
    Ok(Jitter {
        spread: fields.need("spread", "\"5ms\"")?.time()?,
        distribution: fields.one_of("distribution", "distribution", &Distribution::ALL)?,
        order: fields.one_of("order", "jitter order", &Order::ALL)?,
    })
}

fn percent(share: f64) -> Node {
    format!("{share}%").into()
}

/// What every packet is counted with already; names count from the IP packet.
const ETHERNET_HEADER: i16 = 14;
/// A VLAN tag of IEEE 802.1Q, which may follow the name of a link layer.
const VLAN: (&str, i16) = ("ether-vlan", 4);
/// What Mahimahi counts of a frame: an IP packet and the 4 B that precede it on its device.
const MAHIMAHI: i16 = 4 - ETHERNET_HEADER;
/// The form of `mpu`: at most a full frame.
pub(super) const MPU: Form = Form::Size(0, 1_514);

/// The link layer as it was given.
#[derive(Clone, Debug)]
pub(super) struct Layer {
    overhead: Overhead,
    mpu: Option<u16>,
    framing: Option<Framing>,
}

#[derive(Clone, Debug)]
enum Overhead {
    /// Added to an Ethernet frame without check sequence.
    Bytes(i16),
    /// By the words of `tc`.
    Named {
        words: String,
        layer: LinkLayer,
        tags: i16,
    },
}

impl Layer {
    pub(super) fn read(fields: &Fields<'_>, traced: bool) -> Result<Self, ScenarioError> {
        let usual = if traced { MAHIMAHI } else { 0 };
        let named = |name: &&str| Framing::named(name);
        let framings: Vec<_> = Framing::WORDS.iter().filter_map(named).collect();
        Ok(Self {
            overhead: fields
                .option("overhead", Overhead::read)?
                .unwrap_or(Overhead::Bytes(usual)),
            mpu: fields.option("mpu", Place::size_as)?,
            framing: fields.option("framing", |p| p.one_of("framing", &framings))?,
        })
    }

    pub(super) fn write(&self, fields: &mut Table) {
        let overhead = match &self.overhead {
            Overhead::Bytes(bytes) => format!("{bytes}b"),
            Overhead::Named { words, .. } => words.clone(),
        };
        insert(fields, "overhead", Some(overhead.into()));
        let mpu = self.mpu.map(|mpu| format!("{mpu}b").into());
        insert(fields, "mpu", mpu);
        let framing = self.framing.map(|framing| framing.word().into());
        insert(fields, "framing", framing);
    }

    pub(super) fn encapsulation(&self) -> Encapsulation {
        let named = match &self.overhead {
            Overhead::Bytes(overhead) => Encapsulation {
                overhead: *overhead,
                ..Encapsulation::ETHERNET
            },
            Overhead::Named { layer, tags, .. } => Encapsulation {
                // At most 48 B and the tags: it fits.
                overhead: layer.overhead.cast_signed() + tags - ETHERNET_HEADER,
                mpu: layer.mpu,
                framing: layer.framing,
            },
        };
        Encapsulation {
            mpu: self.mpu.unwrap_or(named.mpu),
            framing: self.framing.unwrap_or(named.framing),
            ..named
        }
    }
}

impl Overhead {
    fn bytes(place: &Place<'_>) -> Result<Self, ScenarioError> {
        let bytes = place.signed_size()?;
        if bytes < -ETHERNET_HEADER {
            return Err(place.out_of_range("at least -14b, which counts only the IP packet"));
        }
        Ok(Self::Bytes(bytes))
    }

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
}
