//! A port of a router: which frames of an interface are forwarded, and how packets leave it.
//!
//! The bytes come from other machines and are not trusted: no sequence of bytes panics or reads beyond its end.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddrV4, SocketAddrV6};
use std::os::fd::OwnedFd;

use rustix::net::SendFlags;
use sojourn_path::ip::updated_checksum;

use crate::ethernet;
use crate::netlink::Subnet;

/// What reads and writes at an interface.
#[derive(Debug)]
pub(crate) struct Routed {
    pub(crate) receiver: OwnedFd,
    /// Of IPv4 and of IPv6.
    pub(crate) senders: [Option<OwnedFd>; 2],
    /// Index of the interface.
    pub(crate) device: u32,
    /// Largest packet of the interface.
    pub(crate) mtu: usize,
    pub(crate) gate: Gate,
}

impl Routed {
    /// Writes the packet of a frame.
    ///
    /// # Errors
    /// Those of the system call.
    pub(crate) fn write(&self, frame: &[u8]) -> io::Result<()> {
        let packet = frame.get(ethernet::HEADER..).unwrap_or_default();
        let unusable = || io::Error::from(io::ErrorKind::InvalidInput);
        let destination = destination_of(packet).ok_or_else(unusable)?;
        // Not what pads a short frame.
        let length = length_of(packet).ok_or_else(unusable)?;
        let packet = packet.get(..length).ok_or_else(unusable)?;
        let socket = &self.senders[usize::from(destination.is_ipv6())];
        let socket = socket.as_ref().ok_or_else(unusable)?;
        let flags = SendFlags::empty();
        match destination {
            IpAddr::V4(address) => {
                rustix::net::sendto(socket, packet, flags, &SocketAddrV4::new(address, 0))?;
            }
            IpAddr::V6(address) => {
                let to = SocketAddrV6::new(address, 0, 0, self.device);
                rustix::net::sendto(socket, packet, flags, &to)?;
            }
        }
        Ok(())
    }
}

/// Which frames that an interface has received are forwarded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Gate {
    /// The hardware address of the interface.
    pub(crate) hardware: [u8; 6],
    /// The addresses of the machine, whose packets the kernel takes.
    pub(crate) own: Vec<IpAddr>,
    /// The networks behind the other interface.
    pub(crate) there: Vec<Subnet>,
}

impl Gate {
    /// Takes one off the hops that a packet has left; false: the frame is not one to forward.
    pub(crate) fn forward(&self, frame: &mut [u8]) -> bool {
        let Some((header, packet)) = frame.split_at_mut_checked(ethernet::HEADER) else {
            return false;
        };
        let kinds = [ethernet::IPV4, ethernet::IPV6].map(u16::to_be_bytes);
        let is_ip = kinds.iter().any(|kind| header.ends_with(kind));
        if !is_ip || !header.starts_with(&self.hardware) {
            return false;
        }
        let Some(destination) = destination_of(packet) else {
            return false;
        };
        let is_there = self
            .there
            .iter()
            .any(|network| network.contains(destination));
        is_there && !self.own.contains(&destination) && take_hop(packet)
    }
}

/// The destination of a packet of IP; `None`: it has no complete header.
fn destination_of(packet: &[u8]) -> Option<IpAddr> {
    match packet.first()? >> 4 {
        4 => Some(Ipv4Addr::from(*packet.get(16..)?.first_chunk()?).into()),
        6 => Some(Ipv6Addr::from(*packet.get(24..)?.first_chunk()?).into()),
        _ => None,
    }
}

/// The length of a packet of IP.
fn length_of(packet: &[u8]) -> Option<usize> {
    let field = |at: usize| Some(u16::from_be_bytes(*packet.get(at..)?.first_chunk()?));
    match packet.first()? >> 4 {
        4 => Some(usize::from(field(2)?)),
        _ => Some(40 + usize::from(field(4)?)),
    }
}

/// Takes one off the hops that a packet has left; false: it has no hop left.
fn take_hop(packet: &mut [u8]) -> bool {
    const HOPS_V4: usize = 8;
    const CHECKSUM_V4: usize = 10;
    const HOPS_V6: usize = 7;
    let is_v4 = packet[0] >> 4 == 4;
    let at = if is_v4 { HOPS_V4 } else { HOPS_V6 };
    let word = |packet: &[u8], at: usize| u16::from_be_bytes([packet[at], packet[at + 1]]);
    if packet[at] <= 1 {
        return false;
    }
    let before = word(packet, HOPS_V4);
    packet[at] -= 1;
    if is_v4 {
        let sum = updated_checksum(word(packet, CHECKSUM_V4), before, word(packet, HOPS_V4));
        packet[CHECKSUM_V4..CHECKSUM_V4 + 2].copy_from_slice(&sum.to_be_bytes());
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    const HARDWARE: [u8; 6] = [2, 0, 0, 0, 0, 1];

    fn a_gate() -> Gate {
        let address = |text: &str, prefix| Subnet {
            device: 3,
            address: text.parse().expect("an address"),
            prefix,
        };
        Gate {
            hardware: HARDWARE,
            own: ["193.167.0.2", "193.167.100.2", "fd00:cafe:cafe:100::2"]
                .map(|text| text.parse().expect("an address"))
                .to_vec(),
            there: vec![
                address("193.167.100.2", 24),
                address("fd00:cafe:cafe:100::2", 64),
            ],
        }
    }

    fn frame(to: [u8; 6], destination: &str, hops: u8) -> Vec<u8> {
        let mut frame = to.to_vec();
        frame.extend([2, 0, 0, 0, 0, 9]);
        match destination.parse().expect("an address") {
            IpAddr::V4(address) => {
                frame.extend([
                    8, 0, 0x45, 0, 0, 20, 0, 7, 0x40, 0, hops, 17, 0, 0, 193, 167, 0, 100,
                ]);
                frame.extend(address.octets());
                let sum = checksum(&frame[14..]);
                frame[24..26].copy_from_slice(&sum.to_be_bytes());
            }
            IpAddr::V6(address) => {
                frame.extend([0x86, 0xDD, 0x60, 0, 0, 0, 0, 0, 59, hops]);
                frame.extend([0; 16]);
                frame.extend(address.octets());
            }
        }
        frame
    }

    /// RFC 1071.
    fn checksum(header: &[u8]) -> u16 {
        let words = header
            .chunks(2)
            .map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1]));
        let sum: u32 = words.sum();
        !u16::try_from((sum & 0xFFFF) + (sum >> 16)).expect("folded")
    }

    #[test]
    fn packets_for_the_other_network_lose_a_hop() {
        for destination in ["193.167.100.100", "fd00:cafe:cafe:100::100"] {
            let mut packet = frame(HARDWARE, destination, 64);
            assert!(a_gate().forward(&mut packet));
            assert_eq!(packet, frame(HARDWARE, destination, 63));
            assert!(!a_gate().forward(&mut frame(HARDWARE, destination, 1)));
        }
    }

    #[test]
    fn other_packets_are_not_forwarded() {
        let gate = a_gate();
        for destination in [
            // The machine itself, the network of the sender, other networks, and all hosts.
            "193.167.100.2",
            "193.167.0.2",
            "193.167.0.90",
            "8.8.8.8",
            "224.0.0.251",
            "255.255.255.255",
            "fd00:cafe:cafe:100::2",
            "fd00:cafe:cafe::100",
            "fe80::1",
            "ff02::1",
        ] {
            assert!(
                !gate.forward(&mut frame(HARDWARE, destination, 64)),
                "{destination}"
            );
        }
        let other = [2, 0, 0, 0, 0, 2];
        assert!(!gate.forward(&mut frame(other, "193.167.100.100", 64)));
        let whole = frame(HARDWARE, "193.167.100.100", 64);
        for length in 0..whole.len() {
            assert!(!gate.forward(&mut whole[..length].to_vec()), "{length}");
        }
        let mut arp = whole.clone();
        arp[12..14].copy_from_slice(&[8, 6]);
        assert!(!gate.forward(&mut arp));
    }
}
