//! What happens to packets at the end of their link in the scenarios of the QUIC network simulator: loss, corruption,
//! rebinding and blackholes.
//!
//! # Source
//!
//! The descriptions of the scenarios in `sim/scenarios` of
//! [quic-network-simulator](https://github.com/quic-interop/quic-network-simulator), whose error models act where a
//! packet is received. UDP: RFC 768; its pseudo header over IPv6: RFC 8200 §8.1; Version Negotiation: RFC 8999 §6;
//! incremental update of checksums: RFC 1624.
//!
//! # Differences
//!
//! | here | quic-network-simulator |
//! |---|---|
//! | IPv4 and IPv6 | the addresses of corrupted and rebound packets are of IPv4 |
//! | at most `burst` packets in a row are lost or corrupted, as its pages say | one more |
//! | a corrupted packet is delivered, as its pages say | some versions discard it |
//! | a rebinding translates the addresses of all hosts on the left, each to an address of its own | of one client |
//!
//! The bytes come from other machines and are not trusted: no sequence of bytes panics or reads beyond its end.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use sojourn_net::{Duration, Instant, Rng};
use sojourn_path::ip::updated_checksum;

use crate::flows::Side;

/// What happens to packets at the end of their link. Of two values, the first is for packets to the client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Impairment {
    /// Nothing.
    #[default]
    None,
    /// UDP packets are lost at random.
    Drop([Chance; 2]),
    /// A byte of UDP packets is changed at random.
    Corrupt([Chance; 2]),
    /// The UDP packets with these numbers are lost; the first one has number 1.
    DropList([BTreeSet<u64>; 2]),
    /// A NAT, on the side of the server, changes the addresses of clients.
    Rebind(Rebind),
    /// All packets are lost for some time.
    Blackhole(Blackhole),
}

/// How often something happens to a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chance {
    /// Of a million packets.
    pub per_million: u32,
    /// Most packets in a row; `None`: no limit.
    pub burst: Option<u32>,
}

/// When a NAT changes the addresses of clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rebind {
    /// The first time.
    pub first: Duration,
    /// Time from one change to the next; `None`: there is only one.
    pub every: Option<Duration>,
    /// Also the addresses of IP; otherwise only the ports.
    pub address: bool,
}

/// When all packets are lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blackhole {
    /// Time before it begins.
    pub on: Duration,
    /// How long it lasts.
    pub off: Duration,
    /// How many times.
    pub repeat: u32,
    /// In these directions.
    pub toward: [bool; 2],
}

impl Blackhole {
    fn is_active(&self, now: Instant, to: Side) -> bool {
        let period = (self.on.as_nanos() + self.off.as_nanos()).max(1);
        let since = now.as_nanos();
        self.toward[to as usize]
            && since / period < self.repeat.into()
            && since % period >= self.on.as_nanos()
    }
}

/// An impairment and its state.
#[derive(Debug)]
pub(crate) struct Impaired {
    impairment: Impairment,
    rng: Rng,
    nat: Nat,
    /// The next rebinding.
    rebinds_at: Option<Instant>,
    /// To the client and to the server.
    directions: [Direction; 2],
    rebindings: u64,
}

/// What was done to the packets of a direction.
#[derive(Clone, Copy, Debug, Default)]
struct Direction {
    /// Packets that the impairment applies to.
    seen: u64,
    /// Those that were lost or corrupted.
    struck: u64,
    in_a_row: u32,
}

impl Impaired {
    /// An impairment at its beginning. Rebinding leaves addresses of the machine out.
    pub(crate) fn new(impairment: Impairment, own: Vec<IpAddr>, rng: Rng) -> Self {
        let rebinds_at = match impairment {
            Impairment::Rebind(rebind) => Some(Instant::ZERO + rebind.first),
            _ => None,
        };
        Self {
            impairment,
            rng,
            nat: Nat {
                own,
                ..Nat::default()
            },
            rebinds_at,
            directions: [Direction::default(); 2],
            rebindings: 0,
        }
    }

    /// A packet of IP has crossed its link and may be changed; false: it is lost.
    pub(crate) fn pass(&mut self, now: Instant, to: Side, packet: &mut [u8]) -> bool {
        let direction = &mut self.directions[to as usize];
        if let Impairment::Blackhole(blackhole) = &self.impairment {
            let is_lost = blackhole.is_active(now, to);
            direction.seen += 1;
            direction.struck += u64::from(is_lost);
            return !is_lost;
        }
        let Some(udp) = Udp::of(packet) else {
            return true;
        };
        direction.seen += 1;
        let passes = match &self.impairment {
            Impairment::None | Impairment::Blackhole(_) => true,
            Impairment::Drop(chances) => !direction.strikes(chances[to as usize], &mut self.rng),
            Impairment::DropList(numbers) => !numbers[to as usize].contains(&direction.seen),
            Impairment::Corrupt(chances) => {
                let chance = chances[to as usize];
                if udp.is_version_negotiation(packet) {
                    direction.in_a_row = 0;
                } else if direction.strikes(chance, &mut self.rng) {
                    direction.struck += 1;
                    udp.corrupt(packet, &mut self.rng);
                }
                return true;
            }
            Impairment::Rebind(rebind) => {
                let rebind = *rebind;
                self.rebind(now, rebind);
                match to {
                    Side::Server => self.nat.outward(&udp, packet, &mut self.rng),
                    Side::Client => self.nat.inward(&udp, packet),
                }
            }
        };
        self.directions[to as usize].struck += u64::from(!passes);
        passes
    }

    /// Changes the bindings, if that is due: bindings matter only when a packet arrives.
    fn rebind(&mut self, now: Instant, rebind: Rebind) {
        let Some(due) = self.rebinds_at.filter(|due| *due <= now) else {
            return;
        };
        self.nat.rebind(rebind.address, &mut self.rng);
        self.rebindings += 1;
        let every = rebind.every.filter(|every| every.as_nanos() > 0);
        self.rebinds_at = every.map(|every| {
            let passed = now.since(due).as_nanos() / every.as_nanos();
            due + every.times(passed + 1)
        });
    }

    /// What was done to packets; `None`: there is no impairment.
    pub(crate) fn described(&self) -> Option<String> {
        let what = match &self.impairment {
            Impairment::None => return None,
            Impairment::Drop(_) | Impairment::DropList(_) => "UDP packets lost",
            Impairment::Corrupt(_) => "UDP packets corrupted",
            Impairment::Blackhole(_) => "packets lost",
            Impairment::Rebind(_) => "UDP packets lost without a binding",
        };
        let [client, server] = self
            .directions
            .map(|one| format!("{} of {}", one.struck, one.seen));
        let rebindings = match &self.impairment {
            Impairment::Rebind(_) => format!("{} rebindings; ", self.rebindings),
            _ => String::new(),
        };
        Some(format!(
            "{rebindings}{what}: {client} to the client, {server} to the server"
        ))
    }
}

impl Direction {
    /// Whether a random event happens to this packet.
    fn strikes(&mut self, chance: Chance, rng: &mut Rng) -> bool {
        const MILLION: u64 = 1_000_000;
        let may = chance.burst.is_none_or(|burst| self.in_a_row < burst);
        let strikes = may && rng.below(MILLION) < chance.per_million.into();
        self.in_a_row = if strikes { self.in_a_row + 1 } else { 0 };
        strikes
    }
}

/// Where the parts of a UDP packet are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Udp {
    is_ipv6: bool,
    /// The header of UDP.
    header: usize,
    /// The end of the packet.
    end: usize,
}

/// The parts of the header of UDP.
const SOURCE_PORT: usize = 0;
const DESTINATION_PORT: usize = 2;
const CHECKSUM: usize = 6;
const HEADER: usize = 8;

impl Udp {
    /// Of a packet of IP; `None`: it is not one of UDP, or has no complete header of UDP.
    fn of(packet: &[u8]) -> Option<Self> {
        const PROTOCOL: u8 = 17;
        const FRAGMENT_OFFSET: u16 = 0x1FFF;
        let (is_ipv6, header, end) = match packet.first()? >> 4 {
            4 => {
                let header = usize::from(packet[0] & 0xF) * 4;
                let offset = word(packet, 6)? & FRAGMENT_OFFSET;
                let is_udp = *packet.get(9)? == PROTOCOL && offset == 0 && header >= 20;
                is_udp.then_some((false, header, usize::from(word(packet, 2)?)))?
            }
            6 => {
                let is_udp = *packet.get(6)? == PROTOCOL;
                is_udp.then_some((true, 40, 40 + usize::from(word(packet, 4)?)))?
            }
            _ => return None,
        };
        (header + HEADER <= end && end <= packet.len()).then_some(Self {
            is_ipv6,
            header,
            end,
        })
    }

    fn payload<'a>(&self, packet: &'a [u8]) -> &'a [u8] {
        &packet[self.header + HEADER..self.end]
    }

    /// Whether it has a packet of QUIC with a list of versions: clients ignore one with the version that they use, and a
    /// corrupted one would make them choose another.
    fn is_version_negotiation(&self, packet: &[u8]) -> bool {
        const LONG_HEADER: u8 = 0x80;
        match self.payload(packet) {
            [first, 0, 0, 0, 0, _, ..] => first & LONG_HEADER != 0,
            _ => false,
        }
    }

    /// Gives one of the first 51 bytes of its payload another value, and updates the checksum: the packet reaches the
    /// program, and the change is often in the header of QUIC.
    fn corrupt(&self, packet: &mut [u8], rng: &mut Rng) {
        const FURTHEST: usize = 50;
        let Some(last) = self.payload(packet).len().checked_sub(1) else {
            return;
        };
        let below = last.min(FURTHEST) as u64 + 1;
        let at = HEADER + usize::try_from(rng.below(below)).unwrap_or(0);
        // Any value but its own.
        let by = u8::try_from(1 + rng.below(255)).unwrap_or(1);
        let even = at & !1;
        let before = self.word_of_segment(packet, even);
        packet[self.header + at] ^= by;
        let after = self.word_of_segment(packet, even);
        self.update(packet, before, after);
    }

    /// The word at an offset from the header of UDP, as checksums see it: with a zero behind the last byte.
    fn word_of_segment(&self, packet: &[u8], at: usize) -> u16 {
        let byte = |at: usize| packet[..self.end].get(self.header + at).copied();
        u16::from_be_bytes([byte(at).unwrap_or(0), byte(at + 1).unwrap_or(0)])
    }

    /// Updates the checksum of UDP after a change of a word that it covers; 0 means that the packet has none.
    fn update(&self, packet: &mut [u8], before: u16, after: u16) {
        let field = &mut packet[self.header + CHECKSUM..][..2];
        let sum = u16::from_be_bytes([field[0], field[1]]);
        if sum == 0 {
            return;
        }
        let sum = match updated_checksum(sum, before, after) {
            0 => u16::MAX,
            sum => sum,
        };
        field.copy_from_slice(&sum.to_be_bytes());
    }

    fn port(&self, packet: &[u8], at: usize) -> u16 {
        self.word_of_segment(packet, at)
    }

    fn set_port(&self, packet: &mut [u8], at: usize, port: u16) {
        let before = self.port(packet, at);
        packet[self.header + at..][..2].copy_from_slice(&port.to_be_bytes());
        self.update(packet, before, port);
    }

    /// Where an address is: that of the source or that of the destination.
    fn place(&self, is_source: bool) -> std::ops::Range<usize> {
        let (length, first) = if self.is_ipv6 { (16, 8) } else { (4, 12) };
        let start = if is_source { first } else { first + length };
        start..start + length
    }

    fn address(&self, packet: &[u8], is_source: bool) -> IpAddr {
        let bytes = &packet[self.place(is_source)];
        match bytes.first_chunk::<16>() {
            Some(octets) => Ipv6Addr::from(*octets).into(),
            None => Ipv4Addr::from(*bytes.first_chunk().unwrap_or(&[0; 4])).into(),
        }
    }

    /// Changes an address and both checksums that cover it; one of the other version of IP changes nothing.
    fn set_address(&self, packet: &mut [u8], is_source: bool, address: IpAddr) {
        let octets = match address {
            IpAddr::V4(address) => address.octets().to_vec(),
            IpAddr::V6(address) => address.octets().to_vec(),
        };
        let place = self.place(is_source);
        if octets.len() != place.len() {
            return;
        }
        for (at, new) in place.step_by(2).zip(octets.chunks_exact(2)) {
            let before = u16::from_be_bytes([packet[at], packet[at + 1]]);
            let after = u16::from_be_bytes([new[0], new[1]]);
            packet[at..at + 2].copy_from_slice(new);
            self.update(packet, before, after);
            if !self.is_ipv6 {
                let sum = u16::from_be_bytes([packet[10], packet[11]]);
                let sum = updated_checksum(sum, before, after);
                packet[10..12].copy_from_slice(&sum.to_be_bytes());
            }
        }
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    let field = bytes.get(at..at + 2)?;
    Some(u16::from_be_bytes([field[0], field[1]]))
}

/// An address and a port.
type Endpoint = (IpAddr, u16);

/// The bindings of a NAT between the clients and the servers.
#[derive(Debug, Default)]
struct Nat {
    /// The address under which the servers see each client.
    addresses: BTreeMap<IpAddr, IpAddr>,
    /// The port under which they see each endpoint of a client.
    ports: BTreeMap<Endpoint, u16>,
    /// The endpoint of a client behind each that the servers see.
    clients: BTreeMap<Endpoint, Endpoint>,
    /// Addresses that are not given to clients.
    own: Vec<IpAddr>,
}

/// Ports that are given to clients are not below this one: those below are for services.
const FIRST_PORT: u16 = 1_024;

impl Nat {
    /// A packet of a client gets the source that servers see. An endpoint without a binding keeps its port, if it is
    /// free.
    fn outward(&mut self, udp: &Udp, packet: &mut [u8], rng: &mut Rng) -> bool {
        let client = (udp.address(packet, true), udp.port(packet, SOURCE_PORT));
        let address = *self.addresses.entry(client.0).or_insert(client.0);
        let port = match self.ports.get(&client) {
            Some(port) => *port,
            None => self.bind(client, address, client.1, rng),
        };
        udp.set_address(packet, true, address);
        udp.set_port(packet, SOURCE_PORT, port);
        true
    }

    /// A packet of a server gets the endpoint of the client as its destination; false: there is no binding.
    fn inward(&self, udp: &Udp, packet: &mut [u8]) -> bool {
        let seen = (
            udp.address(packet, false),
            udp.port(packet, DESTINATION_PORT),
        );
        let Some(&(address, port)) = self.clients.get(&seen) else {
            return false;
        };
        udp.set_address(packet, false, address);
        udp.set_port(packet, DESTINATION_PORT, port);
        true
    }

    /// Binds an endpoint to a port of an address: to `wanted`, or to a random one if that is in use.
    fn bind(&mut self, client: Endpoint, address: IpAddr, wanted: u16, rng: &mut Rng) -> u16 {
        let choices = u64::from(u16::MAX - FIRST_PORT) + 1;
        let mut port = wanted;
        // Ends: a run has fewer endpoints than ports, and the attempts are limited if it has not.
        for _ in 0..choices {
            if !self.clients.contains_key(&(address, port)) {
                break;
            }
            port = FIRST_PORT + u16::try_from(rng.below(choices)).unwrap_or(0);
        }
        self.clients.insert((address, port), client);
        self.ports.insert(client, port);
        port
    }

    /// Gives all endpoints other ports, and all clients other addresses if `change_address`.
    fn rebind(&mut self, change_address: bool, rng: &mut Rng) {
        if change_address {
            let clients: Vec<_> = self.addresses.keys().copied().collect();
            for client in clients {
                let address = self.other_address(client, rng);
                self.addresses.insert(client, address);
            }
        }
        let before = std::mem::take(&mut self.clients);
        for (seen, client) in before.iter().map(|(seen, client)| (*seen, *client)) {
            let address = self.addresses.get(&client.0).copied().unwrap_or(client.0);
            let choices = u64::from(u16::MAX - FIRST_PORT) + 1;
            let mut wanted = seen.1;
            // Another port than any before this change, so that late packets to the old ones are lost.
            for _ in 0..choices {
                wanted = FIRST_PORT + u16::try_from(rng.below(choices)).unwrap_or(0);
                if !before.contains_key(&(address, wanted)) && wanted != seen.1 {
                    break;
                }
            }
            self.bind(client, address, wanted, rng);
        }
    }

    /// An address in the network of a client that differs from it in the last byte, and is not in use.
    fn other_address(&self, client: IpAddr, rng: &mut Rng) -> IpAddr {
        const CHOICES: u64 = 254;
        let mut found = client;
        for _ in 0..CHOICES * 16 {
            let last = u8::try_from(1 + rng.below(CHOICES)).unwrap_or(1);
            let address: IpAddr = match client {
                IpAddr::V4(address) => {
                    let [a, b, c, _] = address.octets();
                    Ipv4Addr::from([a, b, c, last]).into()
                }
                IpAddr::V6(address) => {
                    let mut octets = address.octets();
                    octets[15] = last;
                    Ipv6Addr::from(octets).into()
                }
            };
            let is_used = self.own.contains(&address)
                || self.addresses.contains_key(&address)
                || self.addresses.values().any(|used| *used == address);
            if !is_used {
                found = address;
                break;
            }
        }
        found
    }
}

#[cfg(test)]
mod tests;
