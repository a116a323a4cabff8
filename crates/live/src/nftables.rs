//! Tables of nftables by netlink (`linux/netfilter/nf_tables.h`), without external programs.
//!
//! A table is created with all of its chains and rules in one transaction. It belongs to the socket that created it and
//! ends with it, however the process ends: the flag `owner` of Linux 5.12 and later.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink};

use crate::netlink::{Attributes, ERROR, Message, messages, text};

/// Kinds of messages: those of the subsystem nftables, and the ends of a transaction.
const SUBSYSTEM: u16 = 10;
const NEW_TABLE: u16 = SUBSYSTEM << 8;
const NEW_CHAIN: u16 = SUBSYSTEM << 8 | 3;
const NEW_RULE: u16 = SUBSYSTEM << 8 | 6;
const BEGIN: u16 = 16;
const END: u16 = 17;

/// Marks an attribute that contains attributes.
const NESTED: u16 = 0x8000;
const APPEND: u16 = 0x800;
const CREATE: u16 = 0x400;
const EXCLUSIVE: u16 = 0x200;

/// A table in the kernel, which ends when this value is dropped.
#[derive(Debug)]
pub(crate) struct Table {
    owner: OwnedFd,
}

/// What a table sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Family {
    /// Packets of IPv4 and of IPv6.
    Inet = 1,
    /// Packets of IPv4.
    Ipv4 = 2,
    /// Frames of devices.
    Device = 5,
}

/// A chain, where packets enter it, and what happens to those that no rule decides on.
#[derive(Clone, Debug)]
pub(crate) struct Chain<'a> {
    pub(crate) name: &'static str,
    pub(crate) hook: Hook<'a>,
    pub(crate) accepts: bool,
    pub(crate) rules: Vec<Rule>,
}

/// Where packets enter a chain.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Hook<'a> {
    /// Packets that this host forwards.
    Forward,
    /// Connections whose packets leave the host, for translation of addresses.
    SourceNat,
    /// Frames that these devices have received.
    Ingress(&'a [&'a str]),
    /// Frames that these devices are to send.
    Egress(&'a [&'a str]),
}

/// Conditions, all of which must hold, and what then happens to a packet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rule(Attributes);

impl Table {
    /// Creates a table in the network namespace of the calling thread.
    ///
    /// # Errors
    /// `ENOENT` or `EOPNOTSUPP` if the kernel lacks a part; `EPERM` without the privilege.
    pub(crate) fn create(family: Family, name: &str, chains: &[Chain<'_>]) -> io::Result<Self> {
        let socket = rustix::net::socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::CLOEXEC,
            Some(netlink::NETFILTER),
        )?;
        let (bytes, sent) = transaction(family, name, chains);
        rustix::net::send(&socket, &bytes, SendFlags::empty())?;
        acknowledged(&socket, sent)?;
        Ok(Self { owner: socket })
    }
}

/// Of the socket with which the table ends.
impl AsRawFd for Table {
    fn as_raw_fd(&self) -> RawFd {
        self.owner.as_raw_fd()
    }
}

/// The bytes of the messages that create a table, and how many of them are acknowledged.
fn transaction(family: Family, name: &str, chains: &[Chain<'_>]) -> (Vec<u8>, usize) {
    let mut asked = vec![new_table(family, name)];
    for chain in chains {
        asked.push(new_chain(family, name, chain));
        let rules = chain.rules.iter();
        asked.extend(rules.map(|rule| new_rule(family, name, chain.name, rule)));
    }
    let sent = asked.len();
    let ends = [BEGIN, END].map(|kind| Message::unanswered(kind, &head(0, SUBSYSTEM)));
    let [begin, end] = ends;
    let all = std::iter::once(begin).chain(asked).chain([end]);
    let bytes = (0..)
        .zip(all)
        .flat_map(|(number, message)| message.finish(number));
    (bytes.collect(), sent)
}

/// Reads the answers to a transaction: the kernel has written all of them when the request was sent.
fn acknowledged(socket: &OwnedFd, sent: usize) -> io::Result<()> {
    let (mut reply, mut seen) = ([0; 4_096], 0);
    // Ends: the kernel sends one answer per message at most.
    while seen < sent {
        let (read, _) = match rustix::net::recv(socket, &mut reply, RecvFlags::DONTWAIT) {
            Err(Errno::AGAIN) => break,
            result => result?,
        };
        for (kind, body) in messages(&reply[..read]) {
            let code = body.first_chunk().map(|code| i32::from_ne_bytes(*code));
            match (kind, code) {
                (ERROR, Some(0)) => seen += 1,
                (ERROR, Some(code)) => return Err(io::Error::from_raw_os_error(-code)),
                _ => {}
            }
        }
    }
    if seen == sent {
        return Ok(());
    }
    Err(io::Error::other("the kernel did not answer"))
}

/// `struct nfgenmsg`.
fn head(family: u8, resource: u16) -> [u8; 4] {
    let [high, low] = resource.to_be_bytes();
    [family, 0, high, low]
}

fn new_table(family: Family, name: &str) -> Message {
    const NAME: u16 = 1;
    const FLAGS: u16 = 2;
    const OWNER: u32 = 2;
    Message::new(NEW_TABLE, CREATE | EXCLUSIVE, &head(family as u8, 0))
        .with(NAME, &text(name))
        .with(FLAGS, &OWNER.to_be_bytes())
}

fn new_chain(family: Family, table: &str, chain: &Chain<'_>) -> Message {
    const TABLE: u16 = 1;
    const NAME: u16 = 3;
    const HOOK: u16 = 4;
    const POLICY: u16 = 5;
    const TYPE: u16 = 7;
    let (hook, kind) = chain.hook.attributes();
    Message::new(NEW_CHAIN, CREATE, &head(family as u8, 0))
        .with(TABLE, &text(table))
        .with(NAME, &text(chain.name))
        .with(HOOK | NESTED, &hook.0)
        .with(POLICY, &u32::from(chain.accepts).to_be_bytes())
        .with(TYPE, &text(kind))
}

fn new_rule(family: Family, table: &str, chain: &str, rule: &Rule) -> Message {
    const TABLE: u16 = 1;
    const CHAIN: u16 = 2;
    const EXPRESSIONS: u16 = 4;
    Message::new(NEW_RULE, CREATE | APPEND, &head(family as u8, 0))
        .with(TABLE, &text(table))
        .with(CHAIN, &text(chain))
        .with(EXPRESSIONS | NESTED, &rule.0.0)
}

impl Hook<'_> {
    /// The attributes of the hook, and the type of its chain.
    fn attributes(self) -> (Attributes, &'static str) {
        const NUMBER: u16 = 1;
        const PRIORITY: u16 = 2;
        const DEVICES: u16 = 4;
        const DEVICE: u16 = 1;
        /// After the decisions of others on the source address.
        const SOURCE_NAT: u32 = 100;
        let (number, priority, kind) = match self {
            Self::Forward => (2_u32, 0, "filter"),
            Self::SourceNat => (4, SOURCE_NAT, "nat"),
            Self::Ingress(_) => (0, 0, "filter"),
            Self::Egress(_) => (1, 0, "filter"),
        };
        let mut hook = Attributes::default();
        hook.push(NUMBER, &number.to_be_bytes());
        hook.push(PRIORITY, &priority.to_be_bytes());
        if let Self::Ingress(names) | Self::Egress(names) = self {
            let mut devices = Attributes::default();
            for name in names {
                devices.push(DEVICE, &text(name));
            }
            hook.push(DEVICES | NESTED, &devices.0);
        }
        (hook, kind)
    }
}

/// The register in which a condition puts a value.
const REGISTER: u32 = 1;
const EQUAL: u32 = 0;
const NOT_EQUAL: u32 = 1;
const VALUE: u16 = 1;

impl Rule {
    /// The packet came in on this device.
    pub(crate) fn if_from_device(self, name: &str) -> Self {
        const INPUT_NAME: u32 = 6;
        self.meta(INPUT_NAME).compare(EQUAL, &whole_name(name))
    }

    /// The packet leaves on this device.
    pub(crate) fn if_to_device(self, name: &str) -> Self {
        const OUTPUT_NAME: u32 = 7;
        self.meta(OUTPUT_NAME).compare(EQUAL, &whole_name(name))
    }

    /// The packet leaves on a device whose name does not begin like this.
    pub(crate) fn if_not_to_devices(self, prefix: &str) -> Self {
        const OUTPUT_NAME: u32 = 7;
        self.meta(OUTPUT_NAME).compare(NOT_EQUAL, prefix.as_bytes())
    }

    /// The socket that sent the packet has this mark.
    pub(crate) fn if_marked(self, mark: u32) -> Self {
        const MARK: u32 = 3;
        self.meta(MARK).compare(EQUAL, &mark.to_ne_bytes())
    }

    /// The source of an IPv4 packet is this address.
    pub(crate) fn if_from_address(self, address: Ipv4Addr) -> Self {
        const BASE: u16 = 2;
        const OFFSET: u16 = 3;
        const LENGTH: u16 = 4;
        const NETWORK_HEADER: u32 = 1;
        const SOURCE: u32 = 12;
        let mut data = Attributes::default();
        for (kind, value) in [
            (1, REGISTER),
            (BASE, NETWORK_HEADER),
            (OFFSET, SOURCE),
            (LENGTH, 4),
        ] {
            data.push(kind, &value.to_be_bytes());
        }
        self.with("payload", &data)
            .compare(EQUAL, &address.octets())
    }

    /// The packet belongs to a connection that exists.
    pub(crate) fn if_of_known_connection(self) -> Self {
        const KEY: u16 = 2;
        const STATE: u32 = 0;
        /// `NF_CT_STATE_BIT` of established and related connections, in the byte order of the host.
        const KNOWN: u32 = 1 << 1 | 1 << 2;
        let mut state = Attributes::default();
        state.push(1, &REGISTER.to_be_bytes());
        state.push(KEY, &STATE.to_be_bytes());
        let mut mask = Attributes::default();
        for (kind, value) in [(1, REGISTER), (2, REGISTER), (3, 4)] {
            mask.push(kind, &value.to_be_bytes());
        }
        for (kind, value) in [(4, KNOWN), (5, 0)] {
            let mut bits = Attributes::default();
            bits.push(VALUE, &value.to_ne_bytes());
            mask.push(kind | NESTED, &bits.0);
        }
        self.with("ct", &state)
            .with("bitwise", &mask)
            .compare(NOT_EQUAL, &0_u32.to_ne_bytes())
    }

    /// The packet gets the address of the device that it leaves on as its source.
    pub(crate) fn masquerade(self) -> Self {
        self.with("masq", &Attributes::default())
    }

    /// The packet leaves the chain.
    pub(crate) fn accept(self) -> Self {
        self.verdict(1)
    }

    /// The packet is discarded.
    pub(crate) fn discard(self) -> Self {
        self.verdict(0)
    }

    fn verdict(self, code: u32) -> Self {
        const REGISTER_KEY: u16 = 1;
        const DATA: u16 = 2;
        const VERDICT: u16 = 2;
        const CODE: u16 = 1;
        const OF_VERDICTS: u32 = 0;
        let mut of = Attributes::default();
        of.push(CODE, &code.to_be_bytes());
        let mut value = Attributes::default();
        value.push(VERDICT | NESTED, &of.0);
        let mut data = Attributes::default();
        data.push(REGISTER_KEY, &OF_VERDICTS.to_be_bytes());
        data.push(DATA | NESTED, &value.0);
        self.with("immediate", &data)
    }

    fn meta(self, key: u32) -> Self {
        const KEY: u16 = 2;
        let mut data = Attributes::default();
        data.push(1, &REGISTER.to_be_bytes());
        data.push(KEY, &key.to_be_bytes());
        self.with("meta", &data)
    }

    fn compare(self, how: u32, with: &[u8]) -> Self {
        const OPERATION: u16 = 2;
        const DATA: u16 = 3;
        let mut value = Attributes::default();
        value.push(VALUE, with);
        let mut data = Attributes::default();
        data.push(1, &REGISTER.to_be_bytes());
        data.push(OPERATION, &how.to_be_bytes());
        data.push(DATA | NESTED, &value.0);
        self.with("cmp", &data)
    }

    /// Adds an expression.
    fn with(mut self, name: &str, data: &Attributes) -> Self {
        const ELEMENT: u16 = 1;
        const NAME: u16 = 1;
        const DATA: u16 = 2;
        let mut expression = Attributes::default();
        expression.push(NAME, &text(name));
        expression.push(DATA | NESTED, &data.0);
        self.0.push(ELEMENT | NESTED, &expression.0);
        self
    }
}

/// A name as the kernel compares it: with zeros to its full length.
fn whole_name(name: &str) -> [u8; 16] {
    let mut bytes = [0; 16];
    let length = name.len().min(15);
    bytes[..length].copy_from_slice(&name.as_bytes()[..length]);
    bytes
}
