//! TCP headers (RFC 9293) with the options of Linux, in the order of Linux.

use sojourn_net::TcpHeader;

/// The header of a TCP segment, with numbers in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tcp {
    /// Number of the first byte.
    pub seq: u32,
    /// The next byte expected.
    pub ack: u32,
    /// Control bits, as those of [`TcpHeader`].
    pub flags: u16,
    /// Receive window in bytes; rounded up to its unit, which is a byte in a SYN.
    pub window: u32,
    /// Window scale (RFC 7323), at most 14; the same in all segments of an end.
    pub window_scale: u8,
    /// The option of a SYN, which is otherwise `None`: bytes of a segment including options. A segment that
    /// has it also permits SACK and states the window scale.
    pub mss: Option<u16>,
    /// The sender's clock, and the peer's echoed.
    pub timestamps: Option<(u32, u32)>,
    /// SACK blocks `[start, end)`; unused ones are empty. At most two fit besides `accurate_ecn`.
    pub sacks: [(u32, u32); 3],
    /// The option of RFC 9768.
    pub accurate_ecn: Option<AccurateEcn>,
}

/// The option of Accurate ECN (RFC 9768 §3.2.3) with two counters.
///
/// The first counter is that of the ECT code point that the peer does not use. It has its initial value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccurateEcn {
    /// Bytes that arrived CE-marked, modulo 2^24.
    pub ce_bytes: u32,
    /// The peer sends ECT(1), not ECT(0).
    pub l4s: bool,
}

/// The most bytes of options.
const MOST_OPTIONS: usize = 40;

const NOP: u8 = 1;
const MSS: [u8; 2] = [2, 4];
const WINDOW_SCALE: [u8; 2] = [3, 3];
const SACK_PERMITTED: [u8; 2] = [4, 2];
const SACK: u8 = 5;
const TIMESTAMPS: [u8; 2] = [8, 10];
/// Counters of ECT(0) and CE.
const ACCURATE_ECN_0: [u8; 2] = [172, 8];
/// Counters of ECT(1) and CE.
const ACCURATE_ECN_1: [u8; 2] = [174, 8];
/// Counters of ECT bytes begin with 1.
const NO_BYTES: [u8; 3] = [0, 0, 1];

impl Tcp {
    /// Appends the header with a checksum of 0; the offset of the checksum is 16.
    pub(super) fn write(&self, ports: [u16; 2], out: &mut Vec<u8>) {
        let start = out.len();
        for port in ports {
            out.extend_from_slice(&port.to_be_bytes());
        }
        out.extend_from_slice(&self.seq.to_be_bytes());
        out.extend_from_slice(&self.ack.to_be_bytes());
        let offset_at = out.len();
        out.extend_from_slice(&[0; 2]);
        out.extend_from_slice(&self.window_field().to_be_bytes());
        // Checksum and urgent pointer.
        out.extend_from_slice(&[0; 4]);
        self.write_options(out);
        let words = u16::try_from((out.len() - start) / 4).unwrap_or_default();
        let offset = words << 12 | self.flags & 0xFFF;
        out[offset_at..offset_at + 2].copy_from_slice(&offset.to_be_bytes());
    }

    fn window_field(&self) -> u16 {
        let is_syn = self.flags & TcpHeader::SYN != 0;
        let shift = if is_syn { 0 } else { self.window_scale.min(14) };
        let units = self.window.div_ceil(1 << shift);
        u16::try_from(units).unwrap_or(u16::MAX)
    }

    fn write_options(&self, out: &mut Vec<u8>) {
        let start = out.len();
        if let Some(mss) = self.mss {
            out.extend_from_slice(&MSS);
            out.extend_from_slice(&mss.to_be_bytes());
            out.extend_from_slice(&SACK_PERMITTED);
        }
        if let Some((value, echo)) = self.timestamps {
            if self.mss.is_none() {
                out.extend_from_slice(&[NOP; 2]);
            }
            out.extend_from_slice(&TIMESTAMPS);
            out.extend_from_slice(&value.to_be_bytes());
            out.extend_from_slice(&echo.to_be_bytes());
        } else if self.mss.is_some() {
            out.extend_from_slice(&[NOP; 2]);
        }
        if self.mss.is_some() {
            out.push(NOP);
            out.extend_from_slice(&WINDOW_SCALE);
            out.push(self.window_scale.min(14));
        }
        if let Some(option) = self.accurate_ecn {
            let kind = if option.l4s {
                ACCURATE_ECN_0
            } else {
                ACCURATE_ECN_1
            };
            out.extend_from_slice(&kind);
            out.extend_from_slice(&NO_BYTES);
            out.extend_from_slice(&option.ce_bytes.to_be_bytes()[1..]);
        }
        let used = |(start, end): &(u32, u32)| start != end;
        let room = (MOST_OPTIONS - (out.len() - start)).saturating_sub(4) / 8;
        let count = self.sacks.iter().filter(|block| used(block)).count();
        let count = count.min(room);
        if count > 0 {
            // At most three blocks.
            let length = u8::try_from(2 + 8 * count).unwrap_or_default();
            out.extend_from_slice(&[NOP, NOP, SACK, length]);
            for (start, end) in self.sacks.iter().filter(|block| used(block)).take(count) {
                out.extend_from_slice(&start.to_be_bytes());
                out.extend_from_slice(&end.to_be_bytes());
            }
        }
    }
}
