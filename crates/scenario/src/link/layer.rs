//! The link layer: `overhead`, `mpu` and `framing`.

use crate::plan::Encapsulation;
use sojourn_qdisc::{Framing, LinkLayer};

use crate::error::{ScenarioError, instead_of};
use crate::key::Form;
use crate::place::{Fields, Place};
use crate::value::{Table, Value};
use crate::write::insert;

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
