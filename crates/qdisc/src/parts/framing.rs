//! Link layers: the length of a packet on the wire, with the keywords of `tc`.
//!
//! # Source
//!
//! The keywords of `tc-cake(8)` and what they stand for; CAKE's shaper and the links of the
//! simulator both read them here. ATM carries 48 bytes in a cell of 53 (ITU-T I.361), AAL5 pads
//! to whole cells (ITU-T I.363.5); PTM adds a byte to each 64 (IEEE 802.3 clause 61, 64/65-octet
//! encapsulation).

use crate::parameters::{Shorthand, choice};

choice! {
    /// How the link packs bytes.
    Framing {
        /// As they are.
        Bytes = "noatm",
        /// In cells of 48 bytes that take 53.
        Atm = "atm",
        /// In blocks of 64 bytes that take 65.
        Ptm = "ptm",
    }
}

impl Framing {
    /// What `bytes` are on the wire.
    #[inline]
    pub const fn wire(self, bytes: u64) -> u64 {
        match self {
            Self::Bytes => bytes,
            Self::Atm => bytes.div_ceil(48) * 53,
            Self::Ptm => bytes + bytes.div_ceil(64),
        }
    }
}

/// A link layer: what it adds to an IP packet, and how it packs the sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkLayer {
    /// Bytes added to an IP packet.
    pub overhead: u16,
    /// Bytes that the smallest packet counts, overhead included.
    pub mpu: u16,
    /// How they are packed.
    pub framing: Framing,
}

impl LinkLayer {
    /// What [`LinkLayer::named`] knows.
    pub fn names() -> impl Iterator<Item = &'static str> {
        presets().map(|(name, _)| *name)
    }

    /// The link layer of that name.
    pub fn named(name: &str) -> Option<Self> {
        let (_, meaning) = presets().find(|(known, _)| *known == name)?;
        let of = |key| meaning.iter().find(|(k, _)| *k == key).map(|(_, v)| *v);
        let bytes = |key| of(key).map_or(Some(0), |text| text.parse().ok());
        Some(Self {
            overhead: bytes("overhead")?,
            mpu: bytes("mpu")?,
            framing: of("framing").map_or(Some(Framing::Bytes), Framing::named)?,
        })
    }
}

fn presets() -> impl Iterator<Item = &'static Shorthand> {
    LINK_LAYERS.iter().chain(LINKS_ONLY)
}

/// The link layers that `tc` knows for CAKE. Most add to an overhead that precedes them, and Ethernet keeps the
/// framing that precedes it.
pub(crate) const LINK_LAYERS: &[Shorthand] = &[
    ("conservative", &[("framing", "atm"), ("overhead", "48")]),
    ("ipoa-vcmux", &[("framing", "atm"), ("overhead", "+8")]),
    ("ipoa-llcsnap", &[("framing", "atm"), ("overhead", "+16")]),
    ("bridged-vcmux", &[("framing", "atm"), ("overhead", "+24")]),
    (
        "bridged-llcsnap",
        &[("framing", "atm"), ("overhead", "+32")],
    ),
    ("pppoa-vcmux", &[("framing", "atm"), ("overhead", "+10")]),
    ("pppoa-llc", &[("framing", "atm"), ("overhead", "+14")]),
    ("pppoe-vcmux", &[("framing", "atm"), ("overhead", "+32")]),
    ("pppoe-llcsnap", &[("framing", "atm"), ("overhead", "+40")]),
    ("pppoe-ptm", &[("framing", "ptm"), ("overhead", "+30")]),
    ("bridged-ptm", &[("framing", "ptm"), ("overhead", "+22")]),
    ("ethernet", &[("overhead", "+38"), ("mpu", "84")]),
    (
        "docsis",
        &[("framing", "noatm"), ("overhead", "+18"), ("mpu", "64")],
    ),
];

/// Ethernet as a frame counts in a capture or a switch's counters: header, check sequence and
/// the least frame of IEEE 802.3, but neither preamble nor gap.
const LINKS_ONLY: &[Shorthand] = &[(
    "ethernet-l2",
    &[("framing", "noatm"), ("overhead", "18"), ("mpu", "64")],
)];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_can_be_read() {
        for name in LinkLayer::names() {
            let layer = LinkLayer::named(name).expect(name);
            assert!((8..=48).contains(&layer.overhead), "{name}: {layer:?}");
        }
        assert_eq!(LinkLayer::named("ether"), None);
    }

    #[test]
    fn cells_and_blocks_are_whole() {
        let atm = [0, 1, 48, 49, 1_532].map(|n| Framing::Atm.wire(n));
        assert_eq!(atm, [0, 53, 53, 106, 32 * 53]);
        let ptm = [1, 64, 65, 1_530].map(|n| Framing::Ptm.wire(n));
        assert_eq!(ptm, [2, 65, 67, 1_554]);
    }

    #[test]
    fn an_acknowledgement_over_pppoe_and_llc_takes_two_cells() {
        // 40 B of IP, 40 of encapsulation: 80 B, two cells.
        let layer = LinkLayer::named("pppoe-llcsnap").expect("known");
        let bytes = (40 + u64::from(layer.overhead)).max(layer.mpu.into());
        assert_eq!(layer.framing.wire(bytes), 106);
    }
}
