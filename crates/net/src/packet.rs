//! The view of a packet that queues are written against: its flow, its DSCP, its ECN field, and the
//! headers that they read.

use core::fmt;
use core::str::FromStr;

use crate::Bytes;

/// The ECN field of an IP header (RFC 3168 §5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Ecn {
    /// The sender does not understand ECN.
    #[default]
    NotEct,
    /// ECN-capable, classic.
    Ect0,
    /// ECN-capable, L4S (RFC 9331).
    Ect1,
    /// Congestion was experienced.
    Ce,
}

impl Ecn {
    /// The two bits of the header.
    #[inline]
    pub const fn bits(self) -> u8 {
        match self {
            Self::NotEct => 0b00,
            Self::Ect1 => 0b01,
            Self::Ect0 => 0b10,
            Self::Ce => 0b11,
        }
    }

    /// What the two lowest bits of `tos` say.
    #[inline]
    pub const fn from_bits(tos: u8) -> Self {
        match tos & 0b11 {
            0b00 => Self::NotEct,
            0b01 => Self::Ect1,
            0b10 => Self::Ect0,
            _ => Self::Ce,
        }
    }
}

/// The version of the Internet Protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum IpVersion {
    /// IPv4 (RFC 791).
    #[default]
    V4,
    /// IPv6 (RFC 8200).
    V6,
}

impl IpVersion {
    /// Every version.
    pub const ALL: [Self; 2] = [Self::V4, Self::V6];

    /// The number in the header.
    pub const fn number(self) -> u8 {
        match self {
            Self::V4 => 4,
            Self::V6 => 6,
        }
    }

    /// Bytes of a header without options (RFC 791 §3.1) or extension headers (RFC 8200 §3).
    #[inline]
    pub const fn header(self) -> u16 {
        match self {
            Self::V4 => 20,
            Self::V6 => 40,
        }
    }

    /// Bytes by which a header is longer than one of IPv4.
    #[inline]
    pub const fn more_than_v4(self) -> u16 {
        self.header() - Self::V4.header()
    }
}

/// What a queue may know of a packet, and may do to it.
///
/// A simulated packet, an owned Ethernet frame and a ring descriptor all implement it, so one
/// algorithm serves the simulator and the live datapath.
pub trait Packet {
    /// Length on the wire that the bottleneck is charged for.
    fn size(&self) -> Bytes;

    /// The ECN field as it stands.
    fn ecn(&self) -> Ecn;

    /// Overwrites the ECN field, fixing any checksum that covers it.
    fn set_ecn(&mut self, ecn: Ecn);

    /// The class that the sender asks for.
    fn dscp(&self) -> Dscp {
        Dscp::DEFAULT
    }

    /// Sets the DSCP and updates any checksum that covers it; does nothing for packets without one.
    fn set_dscp(&mut self, _dscp: Dscp) {}

    /// The box's own traffic, such as ARP, which some disciplines serve before all other (Linux:
    /// `TC_PRIO_CONTROL`).
    fn is_control(&self) -> bool {
        false
    }

    /// What can be read behind the IP header.
    fn transport(&self) -> Transport {
        Transport::Other
    }

    /// Whose packet it is; hashing and perturbation belong to the discipline.
    fn flow(&self) -> FlowKey;

    /// The version of IP.
    fn ip(&self) -> IpVersion {
        IpVersion::V4
    }

    /// Addresses and ports as in its headers, for filters; an IPv4 address fills the low 32 bits of a host.
    fn headers(&self) -> FlowKey {
        self.flow()
    }

    /// Sets CE if the packet is ECN-capable; returns whether it is.
    fn mark_ce(&mut self) -> bool {
        let capable = self.ecn() != Ecn::NotEct;
        if capable {
            self.set_ecn(Ecn::Ce);
        }
        capable
    }
}

/// What a box on the way can read behind the IP header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transport {
    /// A TCP segment (RFC 9293).
    Tcp(TcpHeader),
    /// A UDP datagram whose first byte is that of a QUIC long header (RFC 8999 §5.1): a
    /// connection that is being set up.
    QuicLong,
    /// Any other UDP datagram.
    Udp,
    /// Anything else.
    #[default]
    Other,
}

/// A TCP header as a box on the way needs it. Numbers may count segments instead of bytes: only
/// their order (RFC 9293 §3.4, modulo 2^32) and equality mean something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpHeader {
    /// First number carried.
    pub seq: u32,
    /// Next number expected.
    pub ack: u32,
    /// Bytes of payload.
    pub payload: u32,
    /// Window, unscaled or scaled; the same for all segments of a flow.
    pub window: u32,
    /// Control bits, as in the header: FIN 1, SYN 2, RST 4, PSH 8, ACK 16, URG 32, ECE 64, CWR 128, AE
    /// 256; the reserved bits above.
    pub flags: u16,
    /// Timestamps: the sender's clock, and the peer's echoed (RFC 7323).
    pub timestamps: Option<(u32, u32)>,
    /// SACK blocks `[start, end)`, newest first; unused ones are empty (RFC 2018). Four fit without timestamps.
    pub sacks: [(u32, u32); 4],
    /// There is an option other than NOP, end of list, timestamps, SACK and MD5, such as that of Accurate ECN.
    pub other_options: bool,
}

impl TcpHeader {
    /// The last data of the connection.
    pub const FIN: u16 = 1;
    /// Opens a connection.
    pub const SYN: u16 = 2;
    /// Refuses or breaks one.
    pub const RST: u16 = 4;
    /// Data for the application at once.
    pub const PSH: u16 = 8;
    /// `ack` is valid.
    pub const ACK: u16 = 16;
    /// ECN-Echo (RFC 3168).
    pub const ECE: u16 = 64;
    /// Congestion window reduced (RFC 3168).
    pub const CWR: u16 = 128;
    /// Accurate ECN (RFC 9768), formerly NS.
    pub const AE: u16 = 256;
}

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
    /// An IPv6 address in 64 bits; addresses of one experiment differ in the last 64.
    pub const fn folded(address: [u8; 16]) -> u64 {
        let all = u128::from_be_bytes(address);
        #[expect(clippy::cast_possible_truncation, reason = "the halves")]
        let [high, low] = [(all >> 64) as u64, all as u64];
        high.rotate_left(32) ^ low
    }

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

/// The class that the sender of a packet asks for: six bits of the IP header (RFC 2474).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Dscp(u8);

/// The text is neither the name nor the number of a [`Dscp`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DscpError;

impl Dscp {
    /// Best effort, also called CS0.
    pub const DEFAULT: Self = Self(0);
    /// Lower effort (RFC 8622).
    pub const LE: Self = Self(1);
    /// Expedited forwarding (RFC 3246).
    pub const EF: Self = Self(46);
    /// Admitted voice (RFC 5865).
    pub const VA: Self = Self(44);
    /// Traffic that builds no queue (RFC 9956).
    pub const NQB: Self = Self(45);

    /// The code point of this number; none above 63.
    pub const fn new(number: u8) -> Option<Self> {
        if number < 64 {
            Some(Self(number))
        } else {
            None
        }
    }

    /// Its number, 0 to 63.
    #[inline]
    pub const fn number(self) -> u8 {
        self.0
    }
}

impl FromStr for Dscp {
    type Err = DscpError;

    /// Reads `CS0` to `CS7`, `AF11` to `AF43`, `EF`, `VA`, `NQB`, `LE`, `BE` or a number up to 63.
    fn from_str(text: &str) -> Result<Self, DscpError> {
        let named = |name: &str| text.eq_ignore_ascii_case(name);
        let group = text.get(..2).unwrap_or_default();
        match *text.as_bytes() {
            _ if named("BE") => Ok(Self::DEFAULT),
            _ if named("LE") => Ok(Self::LE),
            _ if named("EF") => Ok(Self::EF),
            _ if named("VA") => Ok(Self::VA),
            _ if named("NQB") => Ok(Self::NQB),
            [_, _, class @ b'0'..=b'7'] if group.eq_ignore_ascii_case("CS") => {
                Ok(Self(8 * (class - b'0')))
            }
            [_, _, class @ b'1'..=b'4', drop @ b'1'..=b'3'] if group.eq_ignore_ascii_case("AF") => {
                Ok(Self(8 * (class - b'0') + 2 * (drop - b'0')))
            }
            _ => text.parse().ok().and_then(Self::new).ok_or(DscpError),
        }
    }
}

impl fmt::Display for Dscp {
    /// The name if it has one, else the number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (class, rest) = (self.0 / 8, self.0 % 8);
        match (*self, class, rest) {
            (Self::LE, ..) => f.write_str("LE"),
            (Self::VA, ..) => f.write_str("VA"),
            (Self::NQB, ..) => f.write_str("NQB"),
            (Self::EF, ..) => f.write_str("EF"),
            (_, class, 0) => write!(f, "CS{class}"),
            (_, 1..=4, 2 | 4 | 6) => write!(f, "AF{class}{}", rest / 2),
            _ => write!(f, "{}", self.0),
        }
    }
}

impl fmt::Display for DscpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected CS0 to CS7, AF11 to AF43, EF, VA, NQB, LE, BE or 0 to 63")
    }
}

impl core::error::Error for DscpError {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

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

    extern crate std;

    #[test]
    fn every_code_point_reads_back() {
        for number in 0..64 {
            let dscp = Dscp::new(number).ok_or(DscpError);
            assert_eq!(dscp.and_then(|d| d.to_string().parse()), dscp);
            assert_eq!(number.to_string().parse(), dscp);
        }
        assert_eq!(Dscp::new(64), None);
    }

    #[test]
    fn names_are_those_of_the_rfcs() {
        let names = [
            ("CS1", 8),
            ("af11", 10),
            ("AF43", 38),
            ("cs5", 40),
            ("EF", 46),
            ("nqb", 45),
            ("BE", 0),
        ];
        for (name, number) in names {
            assert_eq!(name.parse().map(Dscp::number), Ok(number), "{name}");
        }
        for wrong in [
            "",
            "CS8",
            "AF14",
            "AF51",
            "64",
            "-1",
            "CS",
            "e\u{301}f",
            "EFF",
        ] {
            assert_eq!(wrong.parse::<Dscp>(), Err(DscpError), "{wrong}");
        }
    }
}
