//! Addresses and ports of simulated hosts and flows.
//!
//! | host in [`FlowKey`] | who | IPv4 address | IPv6 address |
//! |---|---|---|---|
//! | below 2^17 | 1: sender and 2: receiver of flows without a client; 256 + n: client n | 198.18.0.0/15 plus the number (RFC 2544) | `2001:2::/48` plus the number (RFC 5180) |
//! | 2^32 + flow | the server of one flow of a client | 10.0.0.0/8 plus the flow (RFC 1918) | `fd53:6f6a:6f75:726e::/64` plus the flow (RFC 4193) |
//!
//! Host 2 and the servers have the port [`SERVER_PORT`], with QUIC 443, plus the flow divided by 16,384; all
//! other hosts have the port 49,152 plus the remainder. Different flows have different five-tuples, and
//! Wireshark assigns no protocol to the ports of clients. Hosts that are not in the table have no address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use sojourn_net::{FlowKey, IpVersion};

/// The port of servers except for QUIC: the port of iperf, whose payload also has no content.
pub const SERVER_PORT: u16 = 5_001;
const QUIC_PORT: u16 = 443;
/// The dynamic ports (RFC 6335 §6).
const FIRST_CLIENT_PORT: u16 = 49_152;
const CLIENT_PORTS: u32 = 16_384;

/// Benchmarking of network devices (RFC 2544, RFC 5180), 17 bits.
const HOSTS: Networks = Networks {
    v4: Ipv4Addr::new(198, 18, 0, 0),
    v6: Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 0, 0),
};
const HOST_BITS: u32 = 17;
/// Private use (RFC 1918, RFC 4193), 24 bits.
const SERVERS: Networks = Networks {
    v4: Ipv4Addr::new(10, 0, 0, 0),
    v6: Ipv6Addr::new(0xFD53, 0x6F6A, 0x6F75, 0x726E, 0, 0, 0, 0),
};
const SERVER_BITS: u32 = 24;

/// A network of each version of IP.
struct Networks {
    v4: Ipv4Addr,
    v6: Ipv6Addr,
}

/// The address of a simulated host; `None`: its number is not in the table of this module.
pub fn address(host: u64, ip: IpVersion) -> Option<IpAddr> {
    let (networks, number, bits) = match host >> 32 {
        0 => (HOSTS, host, HOST_BITS),
        1 => (SERVERS, host & 0xFFFF_FFFF, SERVER_BITS),
        _ => return None,
    };
    let number = u32::try_from(number).ok().filter(|n| n >> bits == 0)?;
    Some(match ip {
        IpVersion::V4 => Ipv4Addr::from_bits(networks.v4.to_bits() | number).into(),
        IpVersion::V6 => Ipv6Addr::from_bits(networks.v6.to_bits() | u128::from(number)).into(),
    })
}

/// The endpoints of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoints {
    /// The sender.
    pub source: SocketAddr,
    /// The receiver.
    pub destination: SocketAddr,
}

impl Endpoints {
    /// The endpoints of a simulated packet, whose `ports` are the number of its flow, below 2^24; `quic`: it is a QUIC
    /// datagram. `None`: a host has no address, or the number is too large.
    pub fn of(key: &FlowKey, ip: IpVersion, quic: bool) -> Option<Self> {
        let server_port = if quic { QUIC_PORT } else { SERVER_PORT };
        if key.ports >> SERVER_BITS != 0 {
            return None;
        }
        let [turn, place] = [key.ports / CLIENT_PORTS, key.ports % CLIENT_PORTS];
        let socket = |host: u64| {
            let (first, number) = if host == 2 || host >> 32 != 0 {
                (server_port, turn)
            } else {
                (FIRST_CLIENT_PORT, place)
            };
            let port = first.checked_add(u16::try_from(number).ok()?)?;
            Some(SocketAddr::new(address(host, ip)?, port))
        };
        Some(Self {
            source: socket(key.source)?,
            destination: socket(key.destination)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(source: u64, destination: u64, ports: u32, quic: bool) -> Option<(String, String)> {
        over(IpVersion::V4, source, destination, ports, quic)
    }

    fn over(
        ip: IpVersion,
        source: u64,
        destination: u64,
        ports: u32,
        quic: bool,
    ) -> Option<(String, String)> {
        let key = FlowKey {
            source,
            destination,
            ports,
            protocol: 6,
        };
        let Endpoints {
            source,
            destination,
        } = Endpoints::of(&key, ip, quic)?;
        Some((source.to_string(), destination.to_string()))
    }

    #[test]
    fn endpoints_follow_the_table() {
        let pair = |a: &str, b: &str| Some((a.to_owned(), b.to_owned()));
        let server = (1 << 32) + 70_000;
        assert_eq!(
            of(1, 2, 7, false),
            pair("198.18.0.1:49159", "198.18.0.2:5001")
        );
        assert_eq!(
            of(2, 1, 7, false),
            pair("198.18.0.2:5001", "198.18.0.1:49159")
        );
        assert_eq!(
            of(server, 258, 70_000, false),
            pair("10.1.17.112:5005", "198.18.1.2:53616")
        );
        assert_eq!(
            of(1, 2, 16_384, true),
            pair("198.18.0.1:49152", "198.18.0.2:444")
        );
        assert!(of(1, 2, (1 << 24) - 1, false).is_some());
        assert_eq!(of(1, 2, 1 << 24, false), None);
        assert_eq!(of(1 << 17, 2, 0, false), None);
        assert_eq!(of(1 << 32 | 1 << 24, 2, 0, false), None);
        assert_eq!(of(2 << 32, 2, 0, false), None);
        assert_eq!(
            over(IpVersion::V6, 1, 2, 7, false),
            pair("[2001:2::1]:49159", "[2001:2::2]:5001")
        );
        assert_eq!(
            over(IpVersion::V6, server, 258, 70_000, false),
            pair("[fd53:6f6a:6f75:726e::1:1170]:5005", "[2001:2::102]:53616")
        );
    }
}
