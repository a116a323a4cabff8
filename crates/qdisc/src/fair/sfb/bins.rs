//! The bins of SFB: how long the queue of a flow is, and with which probability it is signalled.

use sojourn_net::Rng;

/// A probability of 1, nearly: the kernel counts in 2^-16 and has 16 bits.
pub(super) const CERTAIN: u32 = 0xFFFF;
const LEVELS: usize = 8;
/// Four bits of the hash name a bin in each level.
const BINS: usize = 16;
/// Bins of a set.
pub(super) const ALL_BINS: f64 = 128.0;

#[derive(Clone, Copy, Debug)]
pub(super) struct Law {
    pub(super) target: u32,
    pub(super) increment: u32,
    pub(super) decrement: u32,
}

impl Law {
    /// Bins of `target` packets are full; each step is a probability.
    pub(super) fn new(target: u32, increment: f64, decrement: f64) -> Self {
        Self {
            target,
            increment: q16(increment),
            decrement: q16(decrement),
        }
    }
}

/// The bins under one hash.
#[derive(Clone, Debug)]
pub(super) struct Set {
    pub(super) perturbation: u64,
    pub(super) bins: [[Bin; BINS]; LEVELS],
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bin {
    pub(super) packets: u32,
    pub(super) p: u32,
}

impl Bin {
    /// The bin is empty or full.
    #[inline]
    fn adapt(&mut self, law: &Law) {
        self.p = if self.packets == 0 {
            self.p.saturating_sub(law.decrement)
        } else {
            (self.p + law.increment).min(CERTAIN)
        };
    }
}

/// What the bins of a flow say of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Flow {
    pub(super) shortest: u32,
    pub(super) p: u32,
}

impl Set {
    pub(super) fn new(rng: &mut Rng) -> Self {
        Self {
            perturbation: rng.next_u64(),
            bins: [[Bin::default(); BINS]; LEVELS],
        }
    }

    #[inline]
    pub(super) fn bins_of(&mut self, hash: u32) -> impl Iterator<Item = &mut Bin> {
        let levels = self.bins.iter_mut().zip(0..);
        levels.map(move |(bins, level): (_, u32)| &mut bins[(hash >> (4 * level)) as usize % BINS])
    }

    /// Adapts the probabilities of the bins of a flow with this hash to the arrival of a packet.
    #[inline]
    pub(super) fn judge(&mut self, hash: u32, law: &Law) -> Flow {
        let (mut shortest, mut p) = (u32::MAX, CERTAIN);
        for bin in self.bins_of(hash) {
            // One test for both: an empty bin wraps to the largest number.
            if bin.packets.wrapping_sub(1) >= law.target - 1 {
                bin.adapt(law);
            }
            shortest = shortest.min(bin.packets);
            p = p.min(bin.p);
        }
        Flow { shortest, p }
    }

    #[inline]
    pub(super) fn count(&mut self, hash: Option<u32>, change: impl Fn(&mut u32)) {
        if let Some(hash) = hash {
            self.bins_of(hash).for_each(|bin| change(&mut bin.packets));
        }
    }
}

/// A probability in units of 2^-16.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float saturates; a probability is not negative"
)]
pub(super) fn q16(probability: f64) -> u32 {
    (probability * f64::from(CERTAIN)).round() as u32
}
