//! Named, seeded random numbers.
//!
//! # Source
//!
//! The generator is xoshiro256++ 1.0 (Blackman and Vigna, ACM TOMS 47, 2021), seeded with
//! `SplitMix64` as its authors recommend.
//!
//! A stream is named, not numbered: `Rng::new(seed).fork("pie/bottleneck")` depends on the seed
//! and the name alone, never on how many streams exist or what they have drawn. So adding a
//! component changes nobody else's draws, and two queues compared under one seed see the same
//! traffic.

use crate::packet::mix;

/// A deterministic stream of random numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rng {
    /// What this stream is named by; its forks derive from it, its draws do not change it.
    key: u64,
    state: [u64; 4],
}

impl Rng {
    /// The root stream of `seed`.
    pub const fn new(seed: u64) -> Self {
        let mut state = [0; 4];
        let mut word = seed;
        let mut i = 0;
        while i < 4 {
            state[i] = mix(word);
            word = word.wrapping_add(0x9E37_79B9_7F4A_7C15);
            i += 1;
        }
        Self { key: seed, state }
    }

    /// The seed of which this stream, if it has drawn nothing, is the root.
    pub const fn seed(&self) -> u64 {
        self.key
    }

    /// The stream called `name` below this one.
    #[must_use]
    pub fn fork(&self, name: &str) -> Self {
        // FNV-1a over the name, then mixed with the key of the parent.
        let hash = name.bytes().fold(0xCBF2_9CE4_8422_2325_u64, |h, b| {
            (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01B3)
        });
        Self::new(mix(mix(self.key) ^ hash))
    }

    /// 64 uniform random bits.
    #[inline]
    pub const fn next_u64(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// 32 uniform random bits.
    #[inline]
    pub const fn next_u32(&mut self) -> u32 {
        (self.next_u64() >> 32) as u32
    }

    /// A uniform number in `[0, 1)`, a multiple of 2^-53.
    #[inline]
    #[expect(clippy::cast_precision_loss, reason = "53 bits are exact")]
    pub const fn uniform(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0)
    }

    /// A uniform integer in `[0, n)`; 0 if `n` is 0.
    ///
    /// The bias of the multiply-shift method is below `n / 2^64`.
    #[inline]
    pub const fn below(&mut self, n: u64) -> u64 {
        ((self.next_u64() as u128 * n as u128) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_xoshiro256_plus_plus() {
        // First outputs of the authors' reference code for the state {1, 2, 3, 4}.
        let mut rng = Rng {
            key: 0,
            state: [1, 2, 3, 4],
        };
        let want = [
            41_943_041,
            58_720_359,
            3_588_806_011_781_223,
            3_591_011_842_654_386,
            9_228_616_714_210_784_205,
        ];
        for w in want {
            assert_eq!(rng.next_u64(), w);
        }
    }

    #[test]
    fn a_fork_depends_on_the_name_alone() {
        let root = Rng::new(1);
        let mut used = root.clone();
        for _ in 0..100 {
            used.next_u64();
            let _ = used.fork("other");
        }
        assert_eq!(root.fork("flow/3"), used.fork("flow/3"));
        assert_ne!(root.fork("flow/3"), root.fork("flow/4"));
        assert_ne!(root.fork("flow/3"), Rng::new(2).fork("flow/3"));
        assert_ne!(root.fork("a").fork("b"), root.fork("b").fork("a"));
    }

    #[test]
    fn uniform_numbers_are_uniform() {
        let mut rng = Rng::new(3);
        let n = 100_000;
        let (mut sum, mut below) = (0.0, [0_u32; 10]);
        for _ in 0..n {
            let x = rng.uniform();
            assert!((0.0..1.0).contains(&x));
            sum += x;
            below[usize::try_from(rng.below(10)).expect("below 10")] += 1;
        }
        assert!((sum / f64::from(n) - 0.5).abs() < 0.005, "mean {sum}");
        // 10,000 expected; 5 standard deviations are 475.
        assert!(
            below.iter().all(|&c| (9_525..10_475).contains(&c)),
            "{below:?}"
        );
    }
}
