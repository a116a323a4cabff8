//! Packets of a path: their headers, the handle that queues see, and the bytes that wait for the end of the path.

use std::net::{IpAddr, SocketAddr};

use sojourn_net::{Bytes, Dscp, Duration, Ecn, FlowKey, Instant, IpVersion, Packet, Transport};
use sojourn_qdisc::MarkReason;

use crate::ip::{ETHERNET_HEADER, Parsed, UDP};
use crate::links::Carried;

/// The number of a packet: its place among all packets that were offered to its path, from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PacketId(pub u64);

/// What the bytes of a packet begin with. Queues and links count the Ethernet frame without its check sequence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Layer {
    /// The payload of a UDP datagram, as QUIC stacks produce it. 42 bytes of headers are added over IPv4, 62 over IPv6.
    #[default]
    UdpPayload,
    /// An IPv4 or IPv6 header. 14 bytes are added.
    Ip,
    /// An Ethernet header of 14 bytes. Nothing is added.
    Ethernet,
}

/// What a queue may know of a packet besides its size.
///
/// ```
/// use sojourn_path::{Dscp, Ecn, Headers, udp_flow};
///
/// let voice = Headers { dscp: Dscp::EF, ..Headers::udp(Ecn::NotEct, udp_flow(1)) };
/// assert_eq!(voice.size(160).0, 202);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Headers {
    /// The ECN field of the IP header.
    pub ecn: Ecn,
    /// The class that the sender asks for.
    pub dscp: Dscp,
    /// The flow: queues that are fair to flows serve each of them in turn.
    pub flow: FlowKey,
    /// The version of IP.
    pub ip: IpVersion,
    /// What follows the IP header; only ACK filters and `floq` read it.
    pub transport: Transport,
    /// What the bytes begin with.
    pub layer: Layer,
}

impl Headers {
    /// Those of a UDP datagram over IPv4 of which the caller has the payload.
    pub const fn udp(ecn: Ecn, flow: FlowKey) -> Self {
        Self {
            ecn,
            dscp: Dscp::DEFAULT,
            flow,
            ip: IpVersion::V4,
            transport: Transport::Udp,
            layer: Layer::UdpPayload,
        }
    }

    /// Those of an IP packet; `None` if the bytes are not a complete IPv4 or IPv6 packet.
    pub fn of_ip(packet: &[u8]) -> Option<Self> {
        let parsed = Parsed::of(packet)?;
        Some(Self {
            ecn: Ecn::from_bits(parsed.tos),
            dscp: Dscp::new(parsed.tos >> 2).unwrap_or_default(),
            flow: parsed.flow,
            ip: parsed.ip,
            transport: parsed.transport,
            layer: Layer::Ip,
        })
    }

    /// The size that queues and links count, for a packet of this number of bytes.
    pub fn size(&self, bytes: usize) -> Bytes {
        let added = match self.layer {
            Layer::UdpPayload => ETHERNET_HEADER + u64::from(self.ip.header()) + 8,
            Layer::Ip => ETHERNET_HEADER,
            Layer::Ethernet => 0,
        };
        Bytes(added + bytes as u64)
    }
}

/// The key of UDP flow number `number`, from 10.0.0.1 to port 443 of 10.0.0.2. Flows differ in the source port.
pub const fn udp_flow(number: u16) -> FlowKey {
    FlowKey {
        source: 0x0A00_0001,
        destination: 0x0A00_0002,
        ports: ((number as u32) << 16) + 443,
        protocol: UDP,
    }
}

/// The key of the flow from `source` to `destination` with this IP protocol number: 6 is TCP, 17 UDP.
///
/// ```
/// use sojourn_path::{flow_between, udp_flow};
///
/// let [client, server] = ["10.0.0.1:7", "10.0.0.2:443"].map(|text| text.parse().unwrap());
/// assert_eq!(flow_between(client, server, 17), udp_flow(7));
/// ```
pub fn flow_between(source: SocketAddr, destination: SocketAddr, protocol: u8) -> FlowKey {
    let host = |address: SocketAddr| match address.ip() {
        IpAddr::V4(ip) => u64::from(u32::from(ip)),
        IpAddr::V6(ip) => FlowKey::folded(ip.octets()),
    };
    FlowKey {
        source: host(source),
        destination: host(destination),
        ports: u32::from(source.port()) << 16 | u32::from(destination.port()),
        protocol,
    }
}

/// A packet as queues and links see it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Handle {
    stamp: Instant,
    flow: FlowKey,
    /// The place of its bytes.
    pub(super) slot: u32,
    size: u32,
    ip: IpVersion,
    /// DSCP and ECN.
    pub(super) tos: u8,
}

impl Handle {
    pub(super) fn new(now: Instant, slot: u32, size: Bytes, headers: &Headers) -> Self {
        Self {
            stamp: now,
            flow: headers.flow,
            slot,
            size: u32::try_from(size.0).unwrap_or(u32::MAX),
            ip: headers.ip,
            tos: headers.dscp.number() << 2 | headers.ecn.bits(),
        }
    }
}

impl Packet for Handle {
    #[inline]
    fn size(&self) -> Bytes {
        Bytes(self.size.into())
    }

    #[inline]
    fn ecn(&self) -> Ecn {
        Ecn::from_bits(self.tos)
    }

    #[inline]
    fn set_ecn(&mut self, ecn: Ecn) {
        self.tos = self.tos & !0b11 | ecn.bits();
    }

    #[inline]
    fn dscp(&self) -> Dscp {
        Dscp::new(self.tos >> 2).unwrap_or_default()
    }

    #[inline]
    fn set_dscp(&mut self, dscp: Dscp) {
        self.tos = self.tos & 0b11 | dscp.number() << 2;
    }

    #[inline]
    fn ip(&self) -> IpVersion {
        self.ip
    }

    #[inline]
    fn flow(&self) -> FlowKey {
        self.flow
    }
}

/// A packet in a queue.
pub(super) trait Queued: Carried {
    fn new(handle: Handle, transport: Transport) -> Self;

    fn handle(&self) -> &Handle;
}

impl Queued for Handle {
    #[inline]
    fn new(handle: Handle, _transport: Transport) -> Self {
        handle
    }

    #[inline]
    fn handle(&self) -> &Handle {
        self
    }
}

/// A packet in a queue that reads what follows the IP header.
#[derive(Clone, Copy, Debug)]
pub(super) struct WithTransport {
    handle: Handle,
    transport: Transport,
}

impl Packet for WithTransport {
    fn size(&self) -> Bytes {
        self.handle.size()
    }

    fn ecn(&self) -> Ecn {
        self.handle.ecn()
    }

    fn set_ecn(&mut self, ecn: Ecn) {
        self.handle.set_ecn(ecn);
    }

    fn dscp(&self) -> Dscp {
        self.handle.dscp()
    }

    fn set_dscp(&mut self, dscp: Dscp) {
        self.handle.set_dscp(dscp);
    }

    fn ip(&self) -> IpVersion {
        self.handle.ip()
    }

    fn transport(&self) -> Transport {
        self.transport
    }

    fn flow(&self) -> FlowKey {
        self.handle.flow()
    }
}

impl Carried for WithTransport {
    const NONE: Self = Self {
        handle: Handle::NONE,
        transport: Transport::Other,
    };

    fn stamp(&self) -> Instant {
        self.handle.stamp()
    }

    fn onward(&self, stamp: Instant) -> Self {
        Self {
            handle: self.handle.onward(stamp),
            ..*self
        }
    }
}

impl Queued for WithTransport {
    fn new(handle: Handle, transport: Transport) -> Self {
        Self { handle, transport }
    }

    fn handle(&self) -> &Handle {
        &self.handle
    }
}

impl Carried for Handle {
    const NONE: Self = Self {
        stamp: Instant::ZERO,
        flow: FlowKey {
            source: 0,
            destination: 0,
            ports: 0,
            protocol: 0,
        },
        slot: 0,
        size: 0,
        ip: IpVersion::V4,
        tos: 0,
    };

    #[inline]
    fn stamp(&self) -> Instant {
        self.stamp
    }

    #[inline]
    fn onward(&self, stamp: Instant) -> Self {
        Self { stamp, ..*self }
    }
}

/// The bytes of a packet inside a path.
#[derive(Debug)]
pub(super) struct Stored<B> {
    pub(super) bytes: B,
    pub(super) id: PacketId,
    pub(super) layer: Layer,
    /// DSCP and ECN in the bytes.
    pub(super) tos: u8,
    /// Writes DSCP and ECN into the bytes, if these contain an IP header.
    pub(super) write: Option<fn(&mut B, u8)>,
    /// Time in the queue.
    pub(super) waited: Duration,
    /// The queue marked it.
    pub(super) mark: Option<MarkReason>,
    /// The inner queue that it was offered to, if packets are captured.
    pub(super) queue: Option<u32>,
    /// How often it will arrive.
    pub(super) copies: u32,
}

/// The packets inside a path.
#[derive(Debug)]
pub(super) struct Store<B> {
    slots: Vec<Option<Stored<B>>>,
    free: Vec<u32>,
}

impl<B> Store<B> {
    pub(super) const fn new() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
        }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.slots.len() == self.free.len()
    }

    /// Stores a packet; returns its slot.
    #[inline]
    pub(super) fn insert(&mut self, packet: Stored<B>) -> u32 {
        if let Some(slot) = self.free.pop() {
            self.slots[slot as usize] = Some(packet);
            return slot;
        }
        let slot = u32::try_from(self.slots.len()).expect("memory for 2^32 packets");
        self.slots.push(Some(packet));
        slot
    }

    #[inline]
    pub(super) fn get(&mut self, slot: u32) -> &mut Stored<B> {
        let stored = self.slots[slot as usize].as_mut();
        stored.expect("a handle belongs to a packet")
    }

    #[inline]
    pub(super) fn remove(&mut self, slot: u32) -> Stored<B> {
        self.free.push(slot);
        let stored = self.slots[slot as usize].take();
        stored.expect("a handle belongs to a packet")
    }
}
