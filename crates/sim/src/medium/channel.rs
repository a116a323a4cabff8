//! Errors of the channel, and the rate for a station.
//!
//! # Source
//!
//! Modulations of IEEE 802.11-2016 for MCS 0 to 9. Bit errors of M-ary QAM over additive white Gaussian noise: J.
//! Proakis, "Digital Communications", with Gray coding, to the first term. Bit errors behind the convolutional code: the
//! union bound over distances d of a code of rate k/n, `sum c(d) P(d) / (2 k)` with the Chernoff bound
//! `P(d) = (4 p (1 - p))^(d/2)`; weights c(d) of P. Frenger, P. Orten, T. Ottosson, "Convolutional Codes with Optimum
//! Distance Spectrum" (IEEE Communications Letters 3, 1999) and of the punctured codes of 802.11, [R] from memory.
//! G. Pei and T. Henderson, "Validation of OFDM error rate model in ns-3" (2010), combines the same formulas.

use libm::{erfc, expm1, log1p, pow, sqrt};
use sojourn_net::{Instant, Rate, Rng};
use sojourn_scenario::plan::{ChannelConfig, RateControl, Standard};

use super::minstrel::Minstrel;
use super::phy::Mode;

/// Bits per symbol of a subcarrier, and the code.
const MCS: [(i32, &Code); 10] = [
    (1, &HALF),
    (2, &HALF),
    (2, &THREE_QUARTERS),
    (4, &HALF),
    (4, &THREE_QUARTERS),
    (6, &TWO_THIRDS),
    (6, &THREE_QUARTERS),
    (6, &FIVE_SIXTHS),
    (8, &THREE_QUARTERS),
    (8, &FIVE_SIXTHS),
];

/// A punctured convolutional code.
struct Code {
    /// Data bits per puncturing period.
    bits: f64,
    /// The smallest distance, and the step to the next.
    distance: (f64, f64),
    weights: [f64; 5],
}

const HALF: Code = Code {
    bits: 1.0,
    distance: (10.0, 2.0),
    weights: [36.0, 211.0, 1_404.0, 11_633.0, 77_433.0],
};
const TWO_THIRDS: Code = Code {
    bits: 2.0,
    distance: (6.0, 1.0),
    weights: [3.0, 70.0, 285.0, 1_276.0, 6_160.0],
};
const THREE_QUARTERS: Code = Code {
    bits: 3.0,
    distance: (5.0, 1.0),
    weights: [42.0, 201.0, 1_492.0, 10_469.0, 62_935.0],
};
const FIVE_SIXTHS: Code = Code {
    bits: 5.0,
    distance: (4.0, 1.0),
    weights: [92.0, 528.0, 8_694.0, 79_453.0, 792_114.0],
};

impl Code {
    /// The share of wrong data bits if a share `p` of coded bits is wrong.
    fn bit_errors(&self, p: f64) -> f64 {
        let root = sqrt(4.0 * p * (1.0 - p));
        let (mut distance, step) = self.distance;
        let mut sum = 0.0;
        for weight in self.weights {
            sum += weight * pow(root, distance);
            distance += step;
        }
        (sum / (2.0 * self.bits)).min(0.5)
    }
}

/// The share of wrong data bits at `mcs`, with this ratio of signal to noise.
fn bit_errors(mcs: usize, snr_db: f64) -> f64 {
    let (bits, code) = MCS[mcs];
    let snr = pow(10.0, snr_db / 10.0);
    let p = if bits == 1 {
        0.5 * erfc(sqrt(snr))
    } else {
        let points = f64::from(1 << bits);
        let share = 2.0 * (1.0 - 1.0 / sqrt(points)) / f64::from(bits);
        share * erfc(sqrt(1.5 * snr / (points - 1.0)))
    };
    code.bit_errors(p)
}

/// The way from a radio to a station.
#[derive(Clone, Debug)]
pub(super) struct Channel {
    /// Share of MPDUs that are lost whatever the rate.
    loss: f64,
    /// By MCS, or the only one.
    modes: Vec<Mode>,
    /// Share of wrong bits, by MCS.
    bit_errors: Vec<f64>,
    pub(super) control: Option<Minstrel>,
    rng: Rng,
}

impl Channel {
    /// `None`: it has neither errors nor rate control.
    pub(super) fn new(
        config: &ChannelConfig,
        control: RateControl,
        standard: Standard,
        rate: Rate,
        rng: Rng,
    ) -> Option<Self> {
        let is_fixed = control == RateControl::Fixed;
        if config.is_clear() && is_fixed {
            return None;
        }
        let control = (!is_fixed).then(|| Minstrel::new(&rates(standard, rate)));
        let modes: Vec<_> = if is_fixed {
            vec![Mode::of(standard, rate, None)]
        } else {
            let rates = rates(standard, rate).into_iter().enumerate();
            rates
                .map(|(mcs, rate)| Mode::of(standard, rate, Some(mcs)))
                .collect()
        };
        let number = modes.len();
        let errors = |mcs| config.snr_db.map_or(0.0, |snr_db| bit_errors(mcs, snr_db));
        Some(Self {
            loss: config.mpdu_loss,
            control,
            modes,
            bit_errors: (0..number).map(errors).collect(),
            rng,
        })
    }

    /// The MCS and mode of the next transmission, after `failures` that failed, and whether it is one packet that samples
    /// them.
    pub(super) fn choose(&mut self, now: Instant, failures: u32) -> (usize, Mode, bool) {
        let control = self.control.as_mut();
        let (mcs, is_sample) = control.map_or((0, false), |control| control.choose(now, failures));
        (mcs, self.modes[mcs], is_sample)
    }

    /// Whether an MPDU of `bytes` at `mcs` is lost.
    pub(super) fn loses(&mut self, mcs: usize, bytes: u64) -> bool {
        self.rng.uniform() < self.error_probability(mcs, bytes)
    }

    fn error_probability(&self, mcs: usize, bytes: u64) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "some thousands")]
        let bits = 8.0 * bytes as f64;
        let wrong = -expm1(bits * log1p(-self.bit_errors[mcs]));
        1.0 - (1.0 - self.loss) * (1.0 - wrong)
    }

    /// The mode that is best at present, and its success.
    pub(super) fn best(&self) -> Option<(Mode, f64)> {
        let (mcs, success) = self.control.as_ref()?.best();
        Some((self.modes[mcs], success))
    }
}

/// The rates of MCS 0 to the highest, which is that of `rate`.
fn rates(standard: Standard, rate: Rate) -> Vec<Rate> {
    const N: &[u64] = &[1, 2, 3, 4, 6, 8, 9, 10];
    const AC: &[u64] = &[3, 6, 9, 12, 18, 24, 27, 30, 36, 40];
    let shares = match standard {
        Standard::N => N,
        Standard::Ac => AC,
    };
    let whole = shares.last().copied().unwrap_or(1);
    let of = |share| Rate::from_bits_per_sec(rate.bits_per_sec() * share / whole);
    shares
        .iter()
        .map(|&share| of(share).unwrap_or(rate))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_net::Duration;

    fn channel(snr_db: f64, standard: Standard, top: u64) -> Channel {
        let config = ChannelConfig {
            snr_db: Some(snr_db),
            mpdu_loss: 0.0,
        };
        let rate = Rate::from_bits_per_sec(top).expect("positive");
        let control = RateControl::MinstrelHt;
        Channel::new(&config, control, standard, rate, Rng::new(1)).expect("it has errors")
    }

    /// The lowest SNR in steps of 0.1 dB with at most 10 % loss of `bytes`.
    fn needed(mcs: usize, bytes: u64) -> f64 {
        let steps = (-50..400).map(|step: i16| f64::from(step) / 10.0);
        let mut good = steps.filter(|&snr_db| {
            channel(snr_db, Standard::Ac, 86_700_000).error_probability(mcs, bytes) <= 0.1
        });
        good.next().expect("below 40 dB")
    }

    #[test]
    fn each_mcs_needs_as_much_more_as_the_standard_says() {
        // Receiver minimum sensitivity at 10 % loss of 4,096 B, 20 MHz: IEEE 802.11-2016 table 21-25, in dBm.
        const SENSITIVITY: [i8; 10] = [-82, -79, -77, -74, -70, -66, -65, -64, -59, -57];
        for mcs in 1..10 {
            let ours = needed(mcs, 4_096) - needed(mcs - 1, 4_096);
            let theirs = f64::from(SENSITIVITY[mcs] - SENSITIVITY[mcs - 1]);
            println!("MCS {mcs}: {ours:.1} dB more, in the standard {theirs:.0} dB");
            assert!(
                (ours - theirs).abs() <= 2.0,
                "{mcs}: {ours} dB, not {theirs}"
            );
        }
    }

    #[test]
    fn the_rates_are_those_of_the_standard() {
        let of = |standard, top: u64| -> Vec<u64> {
            let rates = rates(standard, Rate::from_bits_per_sec(top).expect("positive"));
            rates.into_iter().map(Rate::bits_per_sec).collect()
        };
        let n = [
            6_500, 13_000, 19_500, 26_000, 39_000, 52_000, 58_500, 65_000,
        ];
        assert_eq!(of(Standard::N, 65_000_000), n.map(|kbit| kbit * 1_000));
        let ac = of(Standard::Ac, 433_333_333);
        assert_eq!((ac[0], ac[7]), (32_499_999, 324_999_999));
    }

    #[test]
    fn as_many_mpdus_are_lost_as_the_probability_says() {
        let mut channel = channel(21.0, Standard::N, 65_000_000);
        for mcs in 0..8 {
            let want = channel.error_probability(mcs, 1_560);
            let lost = (0..10_000).filter(|_| channel.loses(mcs, 1_560)).count();
            #[expect(clippy::cast_precision_loss, reason = "10,000")]
            let got = lost as f64 / 1e4;
            assert!((got - want).abs() < 0.02, "{mcs}: {got}, not {want}");
        }
    }

    #[test]
    fn rate_control_finds_the_best_rate() {
        for (snr_db, want) in [(3.0, 0), (13.0, 2), (40.0, 7)] {
            let mut channel = channel(snr_db, Standard::N, 65_000_000);
            let (mut now, mut sent, mut at_best) = (Instant::ZERO, 0, 0);
            for _ in 0..4_000 {
                let (mcs, mode, is_sample) = channel.choose(now, 0);
                let packets = if is_sample { 1 } else { 20 };
                let lost = (0..packets).filter(|_| channel.loses(mcs, 1_560)).count();
                if let Some(control) = &mut channel.control {
                    control.report(mcs, packets, packets - u32::try_from(lost).unwrap_or(0));
                }
                let bytes = sojourn_net::Bytes(u64::from(packets) * 1_560);
                now += Duration::from_micros(200) + mode.rate.serialise(bytes);
                if now > Instant::from_millis(1_000) {
                    sent += packets;
                    at_best += if mcs == want { packets } else { 0 };
                }
            }
            println!("{snr_db} dB: {at_best} of {sent} packets at the best rate");
            // A sample that happens to arrive may make a rate the best until its next report.
            assert!(10 * at_best >= 7 * sent, "{snr_db} dB: {at_best} of {sent}");
        }
    }
}
