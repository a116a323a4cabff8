//! The headers of captured packets: link layers, IPv4, IPv6, TCP, UDP and ICMP.
//!
//! # Source
//!
//! Link types: the list of LINKTYPE values (draft-ietf-opsawg-pcaplinktype). VLAN tags: IEEE 802.1Q and 802.1ad.
//! `PPPoE`: RFC 2516. IPv4: RFC 791. IPv6 and its extension headers: RFC 8200. TCP: RFC 9293.
//!
//! A packet may be cut after any byte. Lengths come from the IP header. A length of 0 there, of a packet whose
//! segmentation was left to the network card, is that of the frame.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The parts of an IP packet that an analysis needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers {
    /// The address of the sender.
    pub source: IpAddr,
    /// The address of the receiver.
    pub destination: IpAddr,
    /// The two bits of the ECN field.
    pub ecn: u8,
    /// Bytes of the IP packet.
    pub length: u32,
    /// The transport header.
    pub transport: Transport,
    /// The device of a Linux cooked capture, version 2.
    pub device: Option<u32>,
}

/// A transport header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// TCP.
    Tcp(TcpHeader),
    /// UDP.
    Udp {
        /// Of the sender and of the receiver.
        ports: [u16; 2],
        /// Bytes after the header.
        payload: u32,
    },
    /// An ICMP or `ICMPv6` echo.
    Echo {
        /// A request; otherwise a reply.
        is_request: bool,
        /// The same in all requests of a program.
        identifier: u16,
        /// The number of the request.
        sequence: u16,
        /// Bytes after the header.
        payload: u32,
    },
    /// Anything else.
    Other,
}

/// A TCP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpHeader {
    /// Of the sender and of the receiver.
    pub ports: [u16; 2],
    /// The sequence number.
    pub seq: u32,
    /// The acknowledgement number.
    pub ack: u32,
    /// The flags FIN, SYN, RST, PSH, ACK, URG, ECE and CWR, from the lowest bit on.
    pub flags: u8,
    /// The receive window as it is sent.
    pub window: u16,
    /// Bytes after the header.
    pub payload: u32,
}

impl TcpHeader {
    /// The flag FIN.
    pub const FIN: u8 = 1;
    /// The flag SYN.
    pub const SYN: u8 = 2;
    /// The flag RST.
    pub const RST: u8 = 4;
    /// The flag ACK.
    pub const ACK: u8 = 16;

    /// Whether one of these flags is set.
    pub const fn has(&self, flags: u8) -> bool {
        self.flags & flags != 0
    }
}

/// Why a packet has no headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unread {
    /// The link type is not supported.
    LinkType(u16),
    /// It is no IP packet, such as one of ARP.
    NotIp,
    /// It was cut within its headers.
    Cut,
    /// It is a fragment of a packet; ports are in the first fragment alone.
    Fragment,
    /// A header contradicts itself.
    Malformed,
}

/// The numbers of link types.
mod link {
    pub(super) const NULL: u16 = 0;
    pub(super) const ETHERNET: u16 = 1;
    /// Raw IP as BSD numbers it, and Linux.
    pub(super) const RAW_BSD: u16 = 12;
    pub(super) const RAW_OPENBSD: u16 = 14;
    pub(super) const RAW: u16 = 101;
    pub(super) const LOOP: u16 = 108;
    pub(super) const LINUX_SLL: u16 = 113;
    pub(super) const IPV4: u16 = 228;
    pub(super) const IPV6: u16 = 229;
    pub(super) const LINUX_SLL2: u16 = 276;
}

const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86DD;
const ETHERTYPE_PPPOE: u16 = 0x8864;
/// Tags of VLANs: IEEE 802.1Q, 802.1ad, and as switches numbered the outer tag before.
const VLAN_TAGS: [u16; 3] = [0x8100, 0x88A8, 0x9100];
const PPP_IPV4: u16 = 0x0021;
const PPP_IPV6: u16 = 0x0057;

const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;
const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const ICMP_V6: u8 = 58;
const DESTINATION_OPTIONS: u8 = 60;
/// More fragments, and the offset of this one.
const IS_FRAGMENT: u16 = 0x3FFF;

impl Headers {
    /// Reads the headers of a packet of a link type with `length` bytes on the wire.
    ///
    /// # Errors
    /// Why there are none.
    pub fn of(link_type: u16, data: &[u8], length: u32) -> Result<Self, Unread> {
        let (offset, device) = ip_offset(link_type, data)?;
        let bytes = data.get(offset..).ok_or(Unread::Cut)?;
        let on_wire = length.saturating_sub(u32::try_from(offset).unwrap_or(u32::MAX));
        let first = bytes.first().ok_or(Unread::Cut)?;
        let headers = match first >> 4 {
            4 => ipv4(bytes, on_wire)?,
            6 => ipv6(bytes, on_wire)?,
            _ => return Err(Unread::NotIp),
        };
        Ok(Self { device, ..headers })
    }
}

/// The offset of the IP header, and the device of a cooked capture.
fn ip_offset(link_type: u16, data: &[u8]) -> Result<(usize, Option<u32>), Unread> {
    Ok(match link_type {
        link::RAW | link::RAW_BSD | link::RAW_OPENBSD | link::IPV4 | link::IPV6 => (0, None),
        // The address family, whose numbers differ among systems.
        link::NULL | link::LOOP => (4, None),
        link::ETHERNET => (after_type(data, 12)?, None),
        link::LINUX_SLL => (after_type(data, 14)?, None),
        link::LINUX_SLL2 => {
            is_ip(u16_at(data, 0)?)?;
            let device = data.get(4..8).and_then(<[u8]>::first_chunk);
            (20, device.map(|field| u32::from_be_bytes(*field)))
        }
        other => return Err(Unread::LinkType(other)),
    })
}

/// The offset after an Ethernet type, VLAN tags and `PPPoE`.
fn after_type(data: &[u8], mut offset: usize) -> Result<usize, Unread> {
    let mut kind = u16_at(data, offset)?;
    while VLAN_TAGS.contains(&kind) {
        offset += 4;
        kind = u16_at(data, offset)?;
    }
    offset += 2;
    if kind == ETHERTYPE_PPPOE {
        // Version, code, session and length, then the protocol of PPP.
        return match u16_at(data, offset + 6)? {
            PPP_IPV4 | PPP_IPV6 => Ok(offset + 8),
            _ => Err(Unread::NotIp),
        };
    }
    is_ip(kind)?;
    Ok(offset)
}

const fn is_ip(kind: u16) -> Result<(), Unread> {
    match kind {
        ETHERTYPE_IPV4 | ETHERTYPE_IPV6 => Ok(()),
        _ => Err(Unread::NotIp),
    }
}

fn u16_at(data: &[u8], offset: usize) -> Result<u16, Unread> {
    let field = data.get(offset..).and_then(<[u8]>::first_chunk);
    field.map_or(Err(Unread::Cut), |field| Ok(u16::from_be_bytes(*field)))
}

fn ipv4(bytes: &[u8], on_wire: u32) -> Result<Headers, Unread> {
    let fixed: &[u8; 20] = bytes.first_chunk().ok_or(Unread::Cut)?;
    let header = usize::from(fixed[0] & 0xF) * 4;
    let length = match u16::from_be_bytes([fixed[2], fixed[3]]) {
        0 => on_wire,
        stated => stated.into(),
    };
    if u16::from_be_bytes([fixed[6], fixed[7]]) & IS_FRAGMENT != 0 {
        return Err(Unread::Fragment);
    }
    let address = |at: usize| Ipv4Addr::new(fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]);
    Ok(Headers {
        source: address(12).into(),
        destination: address(16).into(),
        ecn: fixed[1] & 3,
        length,
        transport: transport(fixed[9], bytes, header, length)?,
        device: None,
    })
}

fn ipv6(bytes: &[u8], on_wire: u32) -> Result<Headers, Unread> {
    const FIXED: usize = 40;
    let fixed: &[u8; FIXED] = bytes.first_chunk().ok_or(Unread::Cut)?;
    let length = match u16::from_be_bytes([fixed[4], fixed[5]]) {
        0 => on_wire,
        stated => u32::from(stated) + 40,
    };
    let mut next = fixed[6];
    let mut offset = FIXED;
    // Each extension header has at least 8 bytes, so the loop ends with the packet.
    loop {
        let size = match next {
            HOP_BY_HOP | ROUTING | DESTINATION_OPTIONS => 8,
            AUTHENTICATION => 4,
            FRAGMENT => return Err(Unread::Fragment),
            _ => break,
        };
        let [following, extra] = u16_at(bytes, offset)?.to_be_bytes();
        next = following;
        offset += 8 + usize::from(extra) * size;
    }
    let address = |at: usize| {
        let octets = fixed[at..at + 16].first_chunk().copied();
        Ipv6Addr::from(octets.unwrap_or_default())
    };
    Ok(Headers {
        source: address(8).into(),
        destination: address(24).into(),
        ecn: fixed[1] >> 4 & 3,
        length,
        transport: transport(next, bytes, offset, length)?,
        device: None,
    })
}

/// Reads the transport header at `offset` of an IP packet of `length` bytes.
fn transport(protocol: u8, ip: &[u8], offset: usize, length: u32) -> Result<Transport, Unread> {
    let after = |header: usize| {
        let used = u32::try_from(offset + header).ok();
        used.and_then(|used| length.checked_sub(used))
            .ok_or(Unread::Malformed)
    };
    let bytes = ip.get(offset..).unwrap_or_default();
    let ports = || Ok([u16_at(bytes, 0)?, u16_at(bytes, 2)?]);
    match protocol {
        TCP => {
            let fixed: &[u8; 20] = bytes.first_chunk().ok_or(Unread::Cut)?;
            let word = |at: usize| {
                u32::from_be_bytes([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]])
            };
            let header = usize::from(fixed[12] >> 4) * 4;
            if header < fixed.len() {
                return Err(Unread::Malformed);
            }
            Ok(Transport::Tcp(TcpHeader {
                ports: ports()?,
                seq: word(4),
                ack: word(8),
                flags: fixed[13],
                window: u16_at(bytes, 14)?,
                payload: after(header)?,
            }))
        }
        UDP => Ok(Transport::Udp {
            ports: ports()?,
            payload: after(8)?,
        }),
        ICMP | ICMP_V6 => {
            let is_request = match (protocol, bytes.first().ok_or(Unread::Cut)?) {
                (ICMP, 8) | (ICMP_V6, 128) => true,
                (ICMP, 0) | (ICMP_V6, 129) => false,
                _ => return Ok(Transport::Other),
            };
            Ok(Transport::Echo {
                is_request,
                identifier: u16_at(bytes, 4)?,
                sequence: u16_at(bytes, 6)?,
                payload: after(8)?,
            })
        }
        _ => Ok(Transport::Other),
    }
}
