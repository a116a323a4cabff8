//! Duration of frames on the air.
//!
//! # Source
//!
//! IEEE 802.11 (2012 for HT, ac-2013 for VHT) in the 5 GHz band: slot 9 µs, SIFS 16 µs, symbols of
//! 4 µs, 16 service and 6 tail bits, preambles of one spatial stream (HT-mixed 36 µs, VHT 40 µs); a
//! delimiter of 4 B and padding to 4 B for each MPDU of an A-MPDU, 64 of them under a compressed
//! block acknowledgement, 65,535 B (HT) or 1,048,575 B (VHT), 5.484 ms.

use sojourn_net::{Bytes, Duration, Rate};

use sojourn_scenario::plan::Standard;

/// aSlotTime.
pub(super) const SLOT: Duration = Duration::from_micros(9);
/// aSIFSTime.
pub(super) const SIFS: Duration = Duration::from_micros(16);
/// A compressed block acknowledgement, 32 B at 24 Mbit/s: preamble of 20 µs and three symbols.
const BLOCK_ACK: Duration = Duration::from_micros(32);

const SYMBOL_NANOS: u64 = 4_000;
/// Of an MPDU beyond an Ethernet frame of 14 B header: header with priority 26, CCMP 16, LLC and
/// SNAP 8, check sequence 4, less those 14.
const MPDU: u64 = 26 + 16 + 8 + 4 - 14;
const DELIMITER: u64 = 4;

const fn preamble(standard: Standard) -> Duration {
    match standard {
        Standard::N => Duration::from_micros(36),
        Standard::Ac => Duration::from_micros(40),
    }
}

/// The largest A-MPDU, in bytes.
pub(super) const fn max_ampdu(standard: Standard) -> u64 {
    match standard {
        Standard::N => 65_535,
        Standard::Ac => 1_048_575,
    }
}

/// Airtime of an A-MPDU of `bytes` at `rate`.
pub(super) fn airtime(standard: Standard, bytes: u64, rate: Rate) -> Duration {
    let bits = 16 + 8 * bytes + 6;
    // Bits per symbol are bits per second times 4 µs; the rates of the standard leave none
    // over, others lose less than a bit per symbol.
    let per_symbol = (rate.bits_per_sec() / 250_000).max(1);
    preamble(standard) + Duration::from_nanos(bits.div_ceil(per_symbol) * SYMBOL_NANOS)
}

/// What a frame of this Ethernet size adds to an A-MPDU.
pub(super) const fn subframe(size: Bytes) -> u64 {
    (size.0 + MPDU).next_multiple_of(4) + DELIMITER
}

/// What follows an A-MPDU before the air is idle.
pub(super) fn acknowledgement() -> Duration {
    SIFS + BLOCK_ACK
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_take_as_long_as_the_standard_says() {
        // 1,554 B of MPDU, padded to 1,556, and a delimiter.
        assert_eq!(subframe(Bytes(1_514)), 1_560);
        // 260 bits a symbol at 65 Mbit/s: 12,502 bits are 49 symbols.
        let single = airtime(Standard::N, 1_560, Rate::mbit(65));
        assert_eq!(single, Duration::from_micros(36 + 49 * 4));
        assert_eq!(acknowledgement(), Duration::from_micros(48));
    }
}
