//! The values of the parameters of HTB.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use sojourn_net::{Dscp, FlowKey, IpVersion};
use sojourn_schema::{Flaw, Parameter, Unit, Value};

use crate::parameters::choice;

choice! {
    /// The version of IP that a filter asks for.
    HtbIp {
        /// Any.
        Any = "any",
        /// IPv4.
        V4 = "4",
        /// IPv6.
        V6 = "6",
    }
}

impl HtbIp {
    pub(super) const fn version(self) -> Option<IpVersion> {
        match self {
            Self::Any => None,
            Self::V4 => Some(IpVersion::V4),
            Self::V6 => Some(IpVersion::V6),
        }
    }
}

choice! {
    /// The protocol that a filter asks for.
    HtbProtocol {
        /// Any.
        Any = "any",
        /// TCP.
        Tcp = "tcp",
        /// UDP.
        Udp = "udp",
        /// ICMP or `ICMPv6`.
        Icmp = "icmp",
    }
}

impl HtbProtocol {
    /// Whether a packet of the protocol with this number matches.
    pub(super) const fn allows(self, number: u8) -> bool {
        match self {
            Self::Any => true,
            Self::Tcp => number == TCP,
            Self::Udp => number == UDP,
            Self::Icmp => matches!(number, ICMP | ICMP_V6),
        }
    }
}

pub(super) const TCP: u8 = 6;
pub(super) const UDP: u8 = 17;
const ICMP: u8 = 1;
const ICMP_V6: u8 = 58;

choice! {
    /// How a class counts bytes.
    LinkLayer {
        /// As they are.
        Ethernet = "ethernet",
        /// In cells of 48 bytes that take 53.
        Atm = "atm",
    }
}

/// A condition on an address: an IPv4 network, an IPv6 address, or any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Address(Option<Network>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Network {
    /// The addresses with this prefix.
    V4(Ipv4Addr, u8),
    /// One address: packets have a digest of theirs, without its prefixes.
    V6(Ipv6Addr),
}

impl Address {
    /// Any address.
    pub const ANY: Self = Self(None);

    /// The version of IP of the packets that match; `None`: both.
    pub(super) const fn version(self) -> Option<IpVersion> {
        match self.0 {
            None => None,
            Some(Network::V4(..)) => Some(IpVersion::V4),
            Some(Network::V6(_)) => Some(IpVersion::V6),
        }
    }

    /// Whether a packet of the condition's version matches that has this address.
    pub(super) fn allows(self, host: u64) -> bool {
        match self.0 {
            None => true,
            Some(Network::V4(network, length)) => {
                let free = 32 - u32::from(length);
                u32::try_from(host)
                    .is_ok_and(|host| u64::from(host ^ network.to_bits()) >> free == 0)
            }
            Some(Network::V6(address)) => host == FlowKey::folded(address.octets()),
        }
    }
}

impl Value for Address {
    fn text(&self, _unit: Unit) -> Option<String> {
        self.0.map(|network| match network {
            Network::V4(address, 32) => address.to_string(),
            Network::V4(address, length) => format!("{address}/{length}"),
            Network::V6(address) => address.to_string(),
        })
    }

    fn read(&mut self, _parameter: &Parameter, text: &str) -> Result<(), Flaw> {
        let (address, length) = text.split_once('/').unzip();
        let address = address.unwrap_or(text);
        let is_ipv6 = address.contains(':');
        let most = if is_ipv6 { 128 } else { 32 };
        let length = length.map_or(Some(most), |length| length.parse().ok());
        let length = length.filter(|length| *length <= most);
        let network = if is_ipv6 {
            address.parse().ok().map(Network::V6)
        } else {
            let address = address.parse().ok();
            address
                .zip(length)
                .map(|(address, length)| Network::V4(address, length))
        };
        let (Some(network), Some(length)) = (network, length) else {
            let version = if is_ipv6 { 6 } else { 4 };
            return Err(format!("\"{text}\" is not an IPv{version} address").into());
        };
        if is_ipv6 && length < most {
            return Err(format!(
                "\"{text}\" is an IPv6 network; expected one IPv6 address, or an IPv4 network"
            )
            .into());
        }
        self.0 = Some(network);
        Ok(())
    }

    fn clear(&mut self) {
        self.0 = None;
    }
}

/// A condition on a port: a range, or any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ports(Option<(u16, u16)>);

impl Ports {
    /// Any port.
    pub const ANY: Self = Self(None);

    pub(super) fn allows(self, port: u16) -> bool {
        self.0
            .is_none_or(|(first, last)| (first..=last).contains(&port))
    }
}

impl Value for Ports {
    fn text(&self, _unit: Unit) -> Option<String> {
        self.0.map(|(first, last)| match last {
            same if same == first => first.to_string(),
            last => format!("{first}-{last}"),
        })
    }

    fn read(&mut self, _parameter: &Parameter, text: &str) -> Result<(), Flaw> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        match (first.parse(), last.parse()) {
            (Ok(first), Ok(last)) if first <= last => self.0 = Some((first, last)),
            _ => return Err(format!("\"{text}\" is not a port or a range of ports").into()),
        }
        Ok(())
    }

    fn clear(&mut self) {
        self.0 = None;
    }
}

/// A condition on the DSCP: a code point, or any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Code(pub(super) Option<Dscp>);

impl Code {
    /// Any code point.
    pub const ANY: Self = Self(None);
}

impl Value for Code {
    fn text(&self, _unit: Unit) -> Option<String> {
        self.0.map(|dscp| dscp.to_string())
    }

    fn read(&mut self, _parameter: &Parameter, text: &str) -> Result<(), Flaw> {
        self.0 = Some(text.parse().map_err(|_| Flaw::unknown(text))?);
        Ok(())
    }

    fn clear(&mut self) {
        self.0 = None;
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(Unit::Flag).unwrap_or_default())
    }
}
