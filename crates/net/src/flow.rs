//! The identity of a flow.

/// The five-tuple of a packet, as fair queueing sees it.
///
/// An IPv4 address fills the low 32 bits of a host; an IPv6 address is folded into 64, which
/// two hosts of one experiment share with a probability of 2^-64.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowKey {
    /// The sending host.
    pub source: u64,
    /// The receiving host.
    pub destination: u64,
    /// Source port in the high half, destination port in the low half; 0 where there are none.
    pub ports: u32,
    /// The IP protocol number: 6 is TCP, 17 UDP, 1 ICMP.
    pub protocol: u8,
}

impl FlowKey {
    /// A 32-bit digest of the five-tuple under `perturbation`; different perturbations make
    /// different flows collide.
    ///
    /// The mixing is that of `SplitMix64` (Steele et al., OOPSLA 2014), applied to each word.
    #[inline]
    pub const fn digest(&self, perturbation: u64) -> u32 {
        let a = mix(self.source ^ perturbation);
        let b = mix(self.destination ^ a);
        let c = mix(((self.ports as u64) << 8 | self.protocol as u64) ^ b);
        (c >> 32) as u32
    }
}

/// The finaliser of `SplitMix64`: every input bit reaches every output bit.
#[inline]
pub(crate) const fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_spread_evenly_and_the_perturbation_moves_them() {
        let mut counts = [0_u32; 64];
        let mut moved = 0;
        for n in 0..6_400_u32 {
            let key = FlowKey {
                source: 1,
                destination: 2,
                ports: n,
                protocol: 6,
            };
            counts[(key.digest(7) % 64) as usize] += 1;
            moved += u32::from(key.digest(7) % 64 != key.digest(8) % 64);
        }
        // 100 expected in each; 5 standard deviations are 50.
        assert!(counts.iter().all(|&c| (50..150).contains(&c)), "{counts:?}");
        assert!(moved > 6_200, "only {moved} of 6400 moved");
    }
}
