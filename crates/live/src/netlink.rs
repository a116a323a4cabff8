//! Devices, addresses and routes by rtnetlink (`rtnetlink(7)`), without external programs, and the format of netlink
//! messages.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

const ACK: u16 = 0x4;
const REQUEST: u16 = 0x1;
const CREATE: u16 = 0x400;
const EXCLUSIVE: u16 = 0x200;

const DUMP: u16 = 0x300;

/// Kind of a message with an error, or with the acknowledgement of a request.
pub(crate) const ERROR: u16 = 2;
/// Kind of the last message of a dump.
pub(crate) const DONE: u16 = 3;
const NEW_LINK: u16 = 16;
const DELETE_LINK: u16 = 17;
const GET_LINK: u16 = 18;
const NEW_ADDRESS: u16 = 20;
const GET_ADDRESS: u16 = 22;
const NEW_ROUTE: u16 = 24;

const HEADER: usize = 16;

const UNEXPECTED: &str = "unexpected reply of the kernel to a netlink request";

/// A netlink socket for the network namespace of the thread that opened it.
#[derive(Debug)]
pub(crate) struct Netlink {
    socket: OwnedFd,
    sent: u32,
}

/// Settings of a device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Device {
    /// Largest IP packet.
    pub(crate) mtu: u32,
    /// Length of the transmit queue, in packets.
    pub(crate) queue_length: u32,
}

/// The destination of a route: addresses that match the first `prefix` bits of `address`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Destination {
    address: IpAddr,
    prefix: u8,
}

impl Destination {
    /// All of IPv4.
    pub(crate) const DEFAULT_V4: Self = Self::of(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
    /// All of IPv6.
    pub(crate) const DEFAULT_V6: Self = Self::of(IpAddr::V6(Ipv6Addr::UNSPECIFIED), 0);

    /// The addresses with a prefix.
    pub(crate) const fn of(address: IpAddr, prefix: u8) -> Self {
        Self { address, prefix }
    }
}

/// How packets leave a device.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Via {
    /// To hosts behind the device itself.
    Link,
    /// The same; sockets send from this address.
    LinkFrom(IpAddr),
    /// To a router.
    Router(IpAddr),
}

/// Properties of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) index: u32,
    /// Largest IP packet.
    pub(crate) mtu: u32,
    pub(crate) is_ethernet: bool,
    pub(crate) is_up: bool,
    /// Whether it belongs to another device, such as a bridge.
    pub(crate) has_master: bool,
    /// Its hardware address; zeros if it has none.
    pub(crate) hardware: [u8; 6],
}

/// An address of a device, and its network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Subnet {
    /// Index of the device.
    pub(crate) device: u32,
    pub(crate) address: IpAddr,
    /// Bits that the addresses of its network have in common.
    pub(crate) prefix: u8,
}

impl Subnet {
    /// Whether an address belongs to the same network.
    pub(crate) fn contains(&self, other: IpAddr) -> bool {
        let differing = match (self.address, other) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                u128::from(own.to_bits() ^ other.to_bits()) << 96
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => own.to_bits() ^ other.to_bits(),
            _ => return false,
        };
        differing.leading_zeros() >= self.prefix.into()
    }

    /// Reads the body of a message: `struct ifaddrmsg` and attributes.
    fn of(body: &[u8]) -> Option<Self> {
        const HEAD: usize = 8;
        const ADDRESS: u16 = 1;
        const LOCAL: u16 = 2;
        let attribute = |kind| {
            let (_, value) = attributes(body.get(HEAD..)?).find(|(found, _)| *found == kind)?;
            Some(value)
        };
        // At a point-to-point device, the former is that of the peer.
        let octets = attribute(LOCAL).or_else(|| attribute(ADDRESS))?;
        let address = match octets.len() {
            4 => Ipv4Addr::from(*octets.first_chunk()?).into(),
            16 => Ipv6Addr::from(*octets.first_chunk()?).into(),
            _ => return None,
        };
        Some(Self {
            device: u32::from_ne_bytes(*body.get(4..)?.first_chunk()?),
            address,
            prefix: *body.get(1)?,
        })
    }
}

impl Link {
    /// Reads the body of a message: `struct ifinfomsg` and attributes.
    fn of(body: &[u8]) -> Option<io::Result<Self>> {
        const HEAD: usize = 16;
        const HARDWARE: u16 = 1;
        const MTU: u16 = 4;
        const MASTER: u16 = 10;
        const ETHERNET: u16 = 1;
        const UP: u32 = 1;
        const LOOPBACK: u32 = 8;
        let field = |at: usize| Some(u32::from_ne_bytes(*body.get(at..)?.first_chunk()?));
        let kind = u16::from_ne_bytes(*body.get(2..)?.first_chunk()?);
        let flags = field(8)?;
        let attribute = |kind| {
            let (_, value) = attributes(body.get(HEAD..)?).find(|(found, _)| *found == kind)?;
            Some(value)
        };
        let number = |kind| {
            attribute(kind)?
                .first_chunk()
                .map(|bytes| u32::from_ne_bytes(*bytes))
        };
        Some(Ok(Self {
            index: field(4)?,
            mtu: number(MTU)?,
            is_ethernet: kind == ETHERNET && flags & LOOPBACK == 0,
            is_up: flags & UP != 0,
            has_master: number(MASTER).is_some(),
            hardware: attribute(HARDWARE)
                .and_then(<[u8]>::first_chunk)
                .copied()
                .unwrap_or_default(),
        }))
    }
}

impl Netlink {
    /// Opens a connection.
    pub(crate) fn open() -> io::Result<Self> {
        let socket = rustix::net::socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::CLOEXEC,
            None,
        )?;
        Ok(Self { socket, sent: 0 })
    }

    /// Sets a device up.
    pub(crate) fn up(&mut self, device: u32) -> io::Result<()> {
        self.request(Message::link(device))
    }

    /// Sets a device up, with settings and without ARP: the link is point-to-point.
    ///
    /// TCP sends packets of one segment: a burst that is split into segments below the host would reach the link at
    /// once.
    pub(crate) fn configure(&mut self, device: u32, settings: Device) -> io::Result<()> {
        const MTU: u16 = 4;
        const QUEUE_LENGTH: u16 = 13;
        const MAX_SEGMENTS: u16 = 40;
        const NO_ARP: u32 = 0x80;
        self.request(
            Message::link_with(device, NO_ARP)
                .with(MTU, &settings.mtu.to_ne_bytes())
                .with(QUEUE_LENGTH, &settings.queue_length.to_ne_bytes())
                .with(MAX_SEGMENTS, &1_u32.to_ne_bytes()),
        )
    }

    /// Creates a pair of virtual Ethernet devices with these names and hardware addresses; the second is in the network
    /// namespace `other`.
    pub(crate) fn add_pair(
        &mut self,
        [near, far]: [(&str, [u8; 6]); 2],
        other: BorrowedFd<'_>,
    ) -> io::Result<()> {
        const HARDWARE: u16 = 1;
        const NAME: u16 = 3;
        const INFO: u16 = 18;
        const KIND: u16 = 1;
        const DATA: u16 = 2;
        const PEER: u16 = 1;
        const NAMESPACE: u16 = 28;
        let mut peer = Attributes(vec![0; 16]);
        peer.push(NAME, &text(far.0));
        peer.push(HARDWARE, &far.1);
        peer.push(NAMESPACE, &other.as_raw_fd().to_ne_bytes());
        let mut data = Attributes::default();
        data.push(PEER, &peer.0);
        let mut info = Attributes::default();
        info.push(KIND, b"veth");
        info.push(DATA, &data.0);
        let message = Message::new(NEW_LINK, CREATE | EXCLUSIVE, &[0; 16]);
        self.request(
            message
                .with(NAME, &text(near.0))
                .with(HARDWARE, &near.1)
                .with(INFO, &info.0),
        )
    }

    /// Adds an address to a device, without duplicate address detection.
    pub(crate) fn add_address(
        &mut self,
        device: u32,
        address: IpAddr,
        prefix: u8,
    ) -> io::Result<()> {
        const ADDRESS: u16 = 1;
        const LOCAL: u16 = 2;
        const NO_DETECTION: u8 = 0x02;
        let bytes = octets(address);
        let mut head = vec![family(address), prefix, NO_DETECTION, 0];
        head.extend(device.to_ne_bytes());
        let message = Message::new(NEW_ADDRESS, CREATE | EXCLUSIVE, &head);
        self.request(message.with(LOCAL, &bytes).with(ADDRESS, &bytes))
    }

    /// Adds a route to `destination` through a device.
    pub(crate) fn add_route(
        &mut self,
        device: u32,
        destination: Destination,
        via: Via,
    ) -> io::Result<()> {
        const DESTINATION: u16 = 1;
        const OUTPUT: u16 = 4;
        const ROUTER: u16 = 5;
        const SOURCE: u16 = 7;
        const MAIN_TABLE: u8 = 254;
        const BOOT: u8 = 3;
        const UNICAST: u8 = 1;
        const LINK_SCOPE: u8 = 253;
        let Destination { address, prefix } = destination;
        let scope = if prefix == 0 { 0 } else { LINK_SCOPE };
        let [f, t] = [family(address), MAIN_TABLE];
        let head = [f, prefix, 0, 0, t, BOOT, scope, UNICAST, 0, 0, 0, 0];
        let mut message = Message::new(NEW_ROUTE, CREATE | EXCLUSIVE, &head);
        message = message.with(OUTPUT, &device.to_ne_bytes());
        if prefix > 0 {
            message = message.with(DESTINATION, &octets(address));
        }
        message = match via {
            Via::Link => message,
            Via::LinkFrom(source) => message.with(SOURCE, &octets(source)),
            Via::Router(router) => message.with(ROUTER, &octets(router)),
        };
        self.request(message)
    }

    /// Removes a device.
    pub(crate) fn remove(&mut self, device: u32) -> io::Result<()> {
        let mut head = vec![0; 4];
        head.extend(device.to_ne_bytes());
        head.extend([0; 8]);
        self.request(Message::new(DELETE_LINK, 0, &head))
    }

    /// Reads the properties of a device.
    ///
    /// # Errors
    /// `ENODEV` if there is none of this name.
    pub(crate) fn link(&mut self, name: &str) -> io::Result<Link> {
        const NAME: u16 = 3;
        self.sent += 1;
        let message = Message::unanswered(GET_LINK, &[0; 16]).with(NAME, &text(name));
        rustix::net::send(&self.socket, &message.finish(self.sent), SendFlags::empty())?;
        let mut reply = vec![0; 32 << 10];
        let (read, _) = rustix::net::recv(&self.socket, &mut *reply, RecvFlags::empty())?;
        match messages(&reply[..read]).next() {
            Some((NEW_LINK, body)) => Link::of(body),
            Some((ERROR, body)) => body
                .first_chunk()
                .map(|code| Err(io::Error::from_raw_os_error(-i32::from_ne_bytes(*code)))),
            _ => None,
        }
        .unwrap_or_else(|| Err(io::Error::other(UNEXPECTED)))
    }

    /// Reads the addresses of all devices.
    pub(crate) fn addresses(&mut self) -> io::Result<Vec<Subnet>> {
        self.sent += 1;
        let message = Message::dump(GET_ADDRESS, &[0; 8]);
        rustix::net::send(&self.socket, &message.finish(self.sent), SendFlags::empty())?;
        let (mut reply, mut found) = (vec![0; 32 << 10], Vec::new());
        // Ends: a dump ends with a message of its own.
        loop {
            let (read, _) = rustix::net::recv(&self.socket, &mut *reply, RecvFlags::empty())?;
            for (kind, body) in messages(&reply[..read]) {
                match kind {
                    NEW_ADDRESS => found.extend(Subnet::of(body)),
                    DONE => return Ok(found),
                    _ => return Err(io::Error::other(UNEXPECTED)),
                }
            }
        }
    }

    /// Sends a request and waits for its acknowledgement.
    fn request(&mut self, message: Message) -> io::Result<()> {
        self.sent += 1;
        let bytes = message.finish(self.sent);
        rustix::net::send(&self.socket, &bytes, SendFlags::empty())?;
        let mut reply = [0; 4_096];
        let (read, _) = rustix::net::recv(&self.socket, &mut reply, RecvFlags::empty())?;
        let field = |at: usize| reply.get(at..at + 2).filter(|_| at + 2 <= read);
        let kind = field(4).map(|f| u16::from_ne_bytes([f[0], f[1]]));
        let code = reply[HEADER..HEADER + 4].try_into().map(i32::from_ne_bytes);
        match (kind, code) {
            (Some(ERROR), Ok(0)) => Ok(()),
            (Some(ERROR), Ok(code)) => Err(io::Error::from_raw_os_error(-code)),
            _ => Err(io::Error::other(UNEXPECTED)),
        }
    }
}

/// A text with a final NUL.
pub(crate) fn text(name: &str) -> Vec<u8> {
    [name.as_bytes(), &[0]].concat()
}

/// A sequence of attributes, each aligned to four bytes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Attributes(pub(crate) Vec<u8>);

impl Attributes {
    pub(crate) fn push(&mut self, kind: u16, value: &[u8]) {
        let length = u16::try_from(value.len() + 4).unwrap_or(u16::MAX);
        self.0.extend(length.to_ne_bytes());
        self.0.extend(kind.to_ne_bytes());
        self.0.extend(value);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
    }
}

/// A request.
#[derive(Debug)]
pub(crate) struct Message {
    kind: u16,
    flags: u16,
    body: Attributes,
}

impl Message {
    /// A request that the kernel acknowledges.
    pub(crate) fn new(kind: u16, flags: u16, head: &[u8]) -> Self {
        Self {
            kind,
            flags: REQUEST | ACK | flags,
            body: Attributes(head.to_vec()),
        }
    }

    /// A request that the kernel does not acknowledge: it answers with what is asked for, or not at all.
    pub(crate) fn unanswered(kind: u16, head: &[u8]) -> Self {
        Self {
            kind,
            flags: REQUEST,
            body: Attributes(head.to_vec()),
        }
    }

    /// A request for all objects of a kind.
    pub(crate) fn dump(kind: u16, head: &[u8]) -> Self {
        Self {
            kind,
            flags: REQUEST | DUMP,
            body: Attributes(head.to_vec()),
        }
    }

    /// A request to set a device up.
    fn link(device: u32) -> Self {
        Self::link_with(device, 0)
    }

    /// A request to set a device up with these flags.
    fn link_with(device: u32, flags: u32) -> Self {
        const UP: u32 = 1;
        let mut head = vec![0; 4];
        head.extend(device.to_ne_bytes());
        head.extend((UP | flags).to_ne_bytes());
        head.extend((UP | flags).to_ne_bytes());
        Self::new(NEW_LINK, 0, &head)
    }

    pub(crate) fn with(mut self, kind: u16, value: &[u8]) -> Self {
        self.body.push(kind, value);
        self
    }

    /// The bytes of the request with this sequence number.
    pub(crate) fn finish(self, number: u32) -> Vec<u8> {
        let length = u32::try_from(HEADER + self.body.0.len()).unwrap_or(u32::MAX);
        let mut bytes = length.to_ne_bytes().to_vec();
        bytes.extend(self.kind.to_ne_bytes());
        bytes.extend(self.flags.to_ne_bytes());
        bytes.extend(number.to_ne_bytes());
        bytes.extend(0_u32.to_ne_bytes());
        bytes.extend(self.body.0);
        bytes
    }
}

/// The messages in a reply: the kind of each, and what follows its header. Ends at bytes that are not a message.
pub(crate) fn messages(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::try_from(u32::from_ne_bytes(*bytes.first_chunk()?)).ok()?;
        let kind = u16::from_ne_bytes(*bytes.get(4..)?.first_chunk()?);
        let body = bytes.get(HEADER..length)?;
        bytes = after(bytes, length);
        Some((kind, body))
    })
}

/// The attributes behind the head of a message: the kind and the value of each. Ends at bytes that are not an
/// attribute.
pub(crate) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    const ATTRIBUTE_HEADER: usize = 4;
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes(*bytes.first_chunk()?));
        let kind = u16::from_ne_bytes(*bytes.get(2..)?.first_chunk()?);
        let value = bytes.get(ATTRIBUTE_HEADER..length)?;
        bytes = after(bytes, length);
        Some((kind, value))
    })
}

/// What follows the first `length` bytes and their padding to a multiple of four.
fn after(bytes: &[u8], length: usize) -> &[u8] {
    bytes.get(length.next_multiple_of(4)..).unwrap_or_default()
}

fn family(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 2,
        IpAddr::V6(_) => 10,
    }
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => Ipv4Addr::octets(&address).to_vec(),
        IpAddr::V6(address) => Ipv6Addr::octets(&address).to_vec(),
    }
}
