//! Captures for tests, written byte by byte: the writer of the crate knows one format.

#![allow(dead_code, reason = "each test file uses its part")]

pub(crate) const SYN: u8 = 2;
pub(crate) const ACK: u8 = 16;

/// An IP packet of a capture.
#[derive(Clone, Debug, Default)]
pub(crate) struct Packet {
    pub(crate) at_ms: u32,
    pub(crate) data: Vec<u8>,
    pub(crate) source: u32,
    pub(crate) id: Option<u64>,
    pub(crate) comment: Option<&'static str>,
}

/// The form of a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct File {
    pub(crate) big_endian: bool,
    pub(crate) nanoseconds: bool,
    pub(crate) link_type: u16,
    pub(crate) snap_length: usize,
    /// The packets have their link layer.
    pub(crate) is_framed: bool,
}

impl Default for File {
    fn default() -> Self {
        Self {
            big_endian: false,
            nanoseconds: false,
            link_type: 101,
            snap_length: usize::MAX,
            is_framed: false,
        }
    }
}

impl File {
    fn u16(&self, value: u16) -> [u8; 2] {
        if self.big_endian {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        }
    }

    fn u32(&self, value: u32) -> [u8; 4] {
        if self.big_endian {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        }
    }

    /// The bytes of a packet with its link layer, and how many of them are kept.
    fn framed(&self, packet: &Packet) -> (Vec<u8>, usize) {
        let header = match (self.is_framed, self.link_type) {
            (false, 0) => vec![2, 0, 0, 0],
            (false, 1) => [&[0; 12][..], &[8, 0]].concat(),
            (false, 113) => [&[0; 14][..], &[8, 0]].concat(),
            (false, 276) => [&[8, 0, 0, 0, 0, 0, 0, 7][..], &[0; 12]].concat(),
            _ => Vec::new(),
        };
        let kept = header.len() + packet.data.len().min(self.snap_length);
        ([header, packet.data.clone()].concat(), kept)
    }
}

/// A TCP segment between 192.0.2.1:40000 and 192.0.2.2:80; `reply`: from the latter.
pub(crate) fn tcp(at_ms: u32, reply: bool, seq: u32, ack: u32, flags: u8, payload: u16) -> Packet {
    let ends = [([192, 0, 2, 1], 40_000_u16), ([192, 0, 2, 2], 80)];
    let (from, to) = if reply {
        (ends[1], ends[0])
    } else {
        (ends[0], ends[1])
    };
    let mut data = vec![0x45, 0];
    data.extend((40 + payload).to_be_bytes());
    data.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
    data.extend(from.0);
    data.extend(to.0);
    data.extend(from.1.to_be_bytes());
    data.extend(to.1.to_be_bytes());
    data.extend(seq.to_be_bytes());
    data.extend(ack.to_be_bytes());
    data.extend([0x50, flags, 0x10, 0, 0, 0, 0, 0]);
    data.resize(data.len() + usize::from(payload), 0);
    Packet {
        at_ms,
        data,
        ..Packet::default()
    }
}

/// A UDP datagram over IPv6 behind a header of hop-by-hop options, from port 5000.
pub(crate) fn udp_v6(at_ms: u32, payload: u16, ecn: u8) -> Packet {
    let mut data = vec![0x60, ecn << 4, 0, 0];
    data.extend((16 + payload).to_be_bytes());
    data.extend([0, 64]);
    data.extend([0xFD; 16]);
    data.extend([0xFE; 16]);
    data.extend([17, 0, 1, 4, 0, 0, 0, 0]);
    data.extend(5_000_u16.to_be_bytes());
    data.extend(6_000_u16.to_be_bytes());
    data.extend((8 + payload).to_be_bytes());
    data.extend([0, 0]);
    data.resize(data.len() + usize::from(payload), 0);
    Packet {
        at_ms,
        data,
        ..Packet::default()
    }
}

/// The packet in an Ethernet frame.
pub(crate) fn ethernet(packet: &Packet, kind: u16) -> Packet {
    let data = [&[0; 12], &kind.to_be_bytes()[..], &packet.data].concat();
    Packet {
        data,
        ..packet.clone()
    }
}

/// The IPv4 packet in an Ethernet frame with two VLAN tags and `PPPoE`.
pub(crate) fn vlan(packet: &Packet) -> Packet {
    let tags = [0x88, 0xA8, 0, 5, 0x81, 0, 0, 6, 0x88, 0x64];
    let pppoe = [0x11, 0, 0, 1, 0, 0, 0, 0x21];
    let data = [&[0; 12], &tags[..], &pppoe, &packet.data].concat();
    Packet {
        data,
        ..packet.clone()
    }
}

pub(crate) fn pcap(packets: &[Packet], file: &File) -> Vec<u8> {
    let magic = if file.nanoseconds {
        0xA1B2_3C4D
    } else {
        0xA1B2_C3D4
    };
    let mut bytes = file.u32(magic).to_vec();
    bytes.extend([file.u16(2), file.u16(4)].concat());
    for field in [0, 0, 262_144, u32::from(file.link_type)] {
        bytes.extend(file.u32(field));
    }
    for packet in packets {
        let (data, kept) = file.framed(packet);
        let part = packet.at_ms % 1_000 * if file.nanoseconds { 1_000_000 } else { 1_000 };
        let lengths = [kept, data.len()].map(|length| u32::try_from(length).unwrap());
        for field in [1_000 + packet.at_ms / 1_000, part, lengths[0], lengths[1]] {
            bytes.extend(file.u32(field));
        }
        bytes.extend(&data[..kept]);
    }
    bytes
}

pub(crate) fn pcapng(packets: &[Packet], sources: &[&str], file: &File) -> Vec<u8> {
    let padded = |bytes: &[u8]| {
        let mut bytes = bytes.to_vec();
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    };
    let option = |code: u16, value: &[u8]| {
        let length = u16::try_from(value.len()).unwrap();
        [&file.u16(code)[..], &file.u16(length), &padded(value)].concat()
    };
    let block = |kind: u32, content: &[u8]| {
        let length = file.u32(u32::try_from(content.len() + 12).unwrap());
        [&file.u32(kind)[..], &length, content, &length].concat()
    };
    let section = [
        &file.u32(0x1A2B_3C4D)[..],
        &file.u16(1),
        &file.u16(0),
        &[0xFF; 8],
    ]
    .concat();
    let mut bytes = block(0x0A0D_0D0A, &section);
    for name in sources {
        let resolution: &[u8] = if file.nanoseconds { &[9] } else { &[6] };
        let content = [
            &file.u16(file.link_type)[..],
            &[0; 2],
            &file.u32(0),
            &option(2, name.as_bytes()),
            &option(9, resolution),
            &[0; 4],
        ];
        bytes.extend(block(1, &content.concat()));
    }
    for packet in packets {
        let (data, kept) = file.framed(packet);
        let unit = if file.nanoseconds { 1_000_000 } else { 1_000 };
        let time = (1_000_000 + u64::from(packet.at_ms)) * unit;
        let mut content = Vec::new();
        for field in [
            u64::from(packet.source),
            time >> 32,
            time & 0xFFFF_FFFF,
            kept as u64,
            data.len() as u64,
        ] {
            content.extend(file.u32(u32::try_from(field).unwrap()));
        }
        content.extend(padded(&data[..kept]));
        if let Some(comment) = packet.comment {
            content.extend(option(1, comment.as_bytes()));
        }
        if let Some(id) = packet.id {
            let id = if file.big_endian {
                id.to_be_bytes()
            } else {
                id.to_le_bytes()
            };
            content.extend(option(5, &id));
        }
        content.extend([0; 4]);
        bytes.extend(block(6, &content));
    }
    bytes
}
