//! Duration of frames on the air.
//!
//! # Source
//!
//! IEEE 802.11 (2012 for HT, ac-2013 for VHT) in the 5 GHz band: slot 9 µs, SIFS 16 µs; data bits per symbol of each MCS,
//! channel width and number of streams; symbols of 4 µs, or of 3.6 µs with the short guard interval, their sum rounded
//! up to 4 µs; 16 service and 6 tail bits; preambles with a training field of 4 µs per stream (HT-mixed 32 µs, VHT
//! 36 µs, and 1, 2, 4, 4, 6, 6, 8, 8 fields for 1 to 8 streams); a delimiter of 4 B and padding to 4 B for each MPDU of
//! an A-MPDU, 64 of them under a compressed block acknowledgement, 65,535 B (HT) or 1,048,575 B (VHT), 5.484 ms.
//!
//! An acknowledgement goes at the highest of the basic rates 6, 12 and 24 Mbit/s that is no higher than the non-HT
//! reference rate of the frame (2012, 9.7.6.5.2 and 9.7.9): the rate of its modulation and code with 802.11a. A single
//! MPDU of HT is sent outside an A-MPDU, and one of HT or VHT is answered by an ACK, not a block acknowledgement.

use sojourn_net::{Bytes, Duration, Rate};

use sojourn_scenario::plan::Standard;

/// aSlotTime.
pub(super) const SLOT: Duration = Duration::from_micros(9);
/// aSIFSTime.
pub(super) const SIFS: Duration = Duration::from_micros(16);

/// How long a sender waits for the start of an acknowledgement: `AckTimeout`, with `aRxPHYStartDelay` of 20 µs.
pub(super) const ACK_TIMEOUT: Duration = Duration::from_micros(16 + 9 + 20);
/// How much longer than AIFS those wait who received a frame with errors: EIFS, an ACK at 6 Mbit/s after SIFS.
pub(super) const EXTENDED: Duration = Duration::from_micros(16 + 44);

/// Bytes of a compressed block acknowledgement and of an ACK.
const BLOCK_ACK: u64 = 32;
const ACK: u64 = 14;
/// Preamble of 802.11a, which acknowledgements have.
const LEGACY_PREAMBLE: Duration = Duration::from_micros(20);

const SYMBOL_NANOS: u64 = 4_000;
const SHORT_SYMBOL_NANOS: u64 = 3_600;
/// Of an MPDU beyond an Ethernet frame of 14 B header: header with priority 26, CCMP 16, LLC and
/// SNAP 8, check sequence 4, less those 14.
const MPDU: u64 = 26 + 16 + 8 + 4 - 14;
const DELIMITER: u64 = 4;

/// Data bits per subcarrier and symbol of MCS 0 to 9, in sixths.
const SIXTHS: [u64; 10] = [3, 6, 9, 12, 18, 24, 27, 30, 36, 40];
/// Data subcarriers of 20, 40, 80 and 160 MHz.
const SUBCARRIERS: [u64; 4] = [52, 108, 234, 468];
/// Training fields of 1 to 8 streams.
const TRAINING: [u64; 8] = [1, 2, 4, 4, 6, 6, 8, 8];
/// Rates are written with one decimal of Mbit/s: how far the written rate may be from the exact one, in bit/s.
const ROUNDING: u64 = 50_000;

impl Limits {
    const fn of(standard: Standard) -> Self {
        match standard {
            Standard::N => Self {
                mcs: 8,
                widths: 2,
                streams: 4,
                before_training: Duration::from_micros(32),
            },
            Standard::Ac => Self {
                mcs: 10,
                widths: 4,
                streams: 8,
                before_training: Duration::from_micros(36),
            },
        }
    }
}

/// What a standard has of the tables above, and its preamble.
struct Limits {
    mcs: usize,
    widths: usize,
    streams: usize,
    before_training: Duration,
}

/// A PHY rate, and the frames that are sent at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mode {
    pub(super) rate: Rate,
    standard: Standard,
    bits_per_symbol: u64,
    symbol_nanos: u64,
    preamble: Duration,
    /// Data bits per symbol of the acknowledgement.
    response: u64,
}

impl Mode {
    /// The mode of `rate`: of those with this rate, and `mcs` if it is known, the one with the fewest streams, then the
    /// narrowest channel, then the long guard interval. A rate that the standard does not have is sent with one stream
    /// in symbols of 4 µs, with a whole number of bits.
    pub(super) fn of(standard: Standard, rate: Rate, mcs: Option<usize>) -> Self {
        let limits = Limits::of(standard);
        let all = match mcs {
            Some(mcs) => mcs..mcs + 1,
            None => 0..limits.mcs,
        };
        for streams in 1..=limits.streams {
            for subcarriers in &SUBCARRIERS[..limits.widths] {
                for symbol_nanos in [SYMBOL_NANOS, SHORT_SYMBOL_NANOS] {
                    for mcs in all.clone() {
                        let sixths = subcarriers * SIXTHS[mcs] * streams as u64;
                        let exact = sixths / 6 * 1_000_000_000 / symbol_nanos;
                        if sixths.is_multiple_of(6)
                            && exact.abs_diff(rate.bits_per_sec()) <= ROUNDING
                        {
                            let training = Duration::from_micros(4 * TRAINING[streams - 1]);
                            return Self {
                                rate,
                                standard,
                                bits_per_symbol: sixths / 6,
                                symbol_nanos,
                                preamble: limits.before_training + training,
                                response: response(SIXTHS[mcs] * 8),
                            };
                        }
                    }
                }
            }
        }
        let per_symbol = rate.bits_per_sec() / 250_000;
        Self {
            rate,
            standard,
            bits_per_symbol: per_symbol.max(1),
            symbol_nanos: SYMBOL_NANOS,
            preamble: limits.before_training + Duration::from_micros(4),
            response: response(mcs.map_or(per_symbol, |mcs| SIXTHS[mcs] * 8)),
        }
    }

    /// The largest A-MPDU, in bytes.
    pub(super) const fn max_ampdu(&self) -> u64 {
        match self.standard {
            Standard::N => 65_535,
            Standard::Ac => 1_048_575,
        }
    }

    /// Airtime of an A-MPDU of `bytes`.
    pub(super) fn airtime(&self, bytes: u64) -> Duration {
        let symbols = (16 + 8 * bytes + 6).div_ceil(self.bits_per_symbol);
        let nanos = (symbols * self.symbol_nanos).next_multiple_of(SYMBOL_NANOS);
        self.preamble + Duration::from_nanos(nanos)
    }

    /// Airtime of a single frame of this Ethernet size.
    pub(super) fn single(&self, size: Bytes) -> Duration {
        self.airtime(match self.standard {
            Standard::N => size.0 + MPDU,
            Standard::Ac => subframe(size),
        })
    }

    /// What follows `packets` before the air is idle.
    pub(super) fn acknowledgement(&self, packets: usize) -> Duration {
        let bytes = if packets > 1 { BLOCK_ACK } else { ACK };
        let symbols = (16 + 8 * bytes + 6).div_ceil(self.response);
        SIFS + LEGACY_PREAMBLE + Duration::from_nanos(symbols * SYMBOL_NANOS)
    }
}

/// Data bits per symbol of the highest basic rate up to a reference rate, given in the same way.
const fn response(reference: u64) -> u64 {
    match reference {
        96.. => 96,
        48.. => 48,
        _ => 24,
    }
}

/// What a frame of this Ethernet size adds to an A-MPDU.
pub(super) const fn subframe(size: Bytes) -> u64 {
    (size.0 + MPDU).next_multiple_of(4) + DELIMITER
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(standard: Standard, kbit: u64) -> Mode {
        let rate = Rate::from_bits_per_sec(1_000 * kbit).expect("positive");
        Mode::of(standard, rate, None)
    }

    fn micros(micros: u64) -> Duration {
        Duration::from_micros(micros)
    }

    #[test]
    fn frames_take_as_long_as_the_standard_says() {
        // 1,554 B of MPDU, padded to 1,556, and a delimiter.
        assert_eq!(subframe(Bytes(1_514)), 1_560);
        // 260 bits a symbol at 65 Mbit/s: 24,982 bits are 97 symbols, 12,454 bits of a single frame 48.
        let mcs7 = mode(Standard::N, 65_000);
        assert_eq!(mcs7.airtime(2 * 1_560), micros(36 + 97 * 4));
        assert_eq!(mcs7.single(Bytes(1_514)), micros(36 + 48 * 4));
        // VHT has no frames outside an A-MPDU.
        let vht = mode(Standard::Ac, 65_000);
        assert_eq!(vht.single(Bytes(1_514)), micros(40 + 49 * 4));
    }

    #[test]
    fn symbols_are_shorter_with_the_short_guard_interval() {
        // MCS 15 of HT20: 520 bits; 1,009 symbols of 3.6 µs are 3,632.4 µs. Two training fields.
        let mcs15 = mode(Standard::N, 144_400);
        assert_eq!(mcs15.airtime(42 * 1_560), micros(40 + 3_636));
        // MCS 0: 26 bits; 961 symbols are 3,459.6 µs.
        let mcs0 = mode(Standard::N, 7_200);
        assert_eq!(mcs0.airtime(2 * 1_560), micros(36 + 3_460));
    }

    #[test]
    fn each_rate_of_the_tables_is_found() {
        // 100 kbit/s of HT: 20 MHz, 20 MHz short, 40 MHz, 40 MHz short; IEEE 802.11-2012, tables 20-30 to 20-37.
        const ONE: [[u64; 8]; 4] = [
            [65, 130, 195, 260, 390, 520, 585, 650],
            [72, 144, 217, 289, 433, 578, 650, 722],
            [135, 270, 405, 540, 810, 1080, 1215, 1350],
            [150, 300, 450, 600, 900, 1200, 1350, 1500],
        ];
        for (row, rates) in ONE.iter().enumerate() {
            for (mcs, &tenths) in rates.iter().enumerate() {
                let rate = Rate::from_bits_per_sec(tenths * 100_000).expect("positive");
                let found = Mode::of(Standard::N, rate, Some(mcs));
                let short = row % 2 == 1;
                let nanos = if short { 3_600 } else { 4_000 };
                let exact = found.bits_per_symbol * 1_000_000 / found.symbol_nanos;
                assert_eq!(
                    (found.symbol_nanos, found.preamble),
                    (nanos, micros(36)),
                    "{tenths}"
                );
                assert!(
                    exact.abs_diff(rate.bits_per_sec() / 1_000) <= 50,
                    "{tenths}"
                );
            }
        }
        // 80 MHz, MCS 9, short; 40 MHz, MCS 15, short.
        assert_eq!(mode(Standard::Ac, 433_300).bits_per_symbol, 1_560);
        let two = mode(Standard::N, 300_000);
        assert_eq!((two.bits_per_symbol, two.preamble), (1_080, micros(40)));
        // No rate of the standard.
        let other = mode(Standard::N, 100_100);
        assert_eq!((other.bits_per_symbol, other.symbol_nanos), (400, 4_000));
    }

    #[test]
    fn acknowledgements_go_at_a_basic_rate() {
        // By MCS: 6, 12, 12 and 24 Mbit/s; 278 bits of a block acknowledgement, 134 of an ACK.
        let want = [
            (6_500, 68, 44),
            (13_000, 44, 32),
            (19_500, 44, 32),
            (26_000, 32, 28),
        ];
        for (kbit, block, single) in want {
            let mode = mode(Standard::N, kbit);
            assert_eq!(mode.acknowledgement(2), micros(16 + block), "{kbit}");
            assert_eq!(mode.acknowledgement(1), micros(16 + single), "{kbit}");
        }
        // Two streams.
        assert_eq!(mode(Standard::N, 130_000).acknowledgement(2), micros(48));
        // Of no rate of the standard: by the rate itself.
        assert_eq!(
            mode(Standard::N, 11_000).acknowledgement(2),
            micros(16 + 68)
        );
    }
}
