//! The values of the parameters of HTB.

use std::fmt;
use std::net::Ipv4Addr;

use sojourn_net::Dscp;
use sojourn_schema::{Flaw, Parameter, Unit, Value};

use crate::parameters::choice;

choice! {
    /// The protocol that a filter asks for.
    HtbProtocol {
        /// Any.
        Any = "any",
        /// TCP.
        Tcp = "tcp",
        /// UDP.
        Udp = "udp",
        /// ICMP.
        Icmp = "icmp",
    }
}

impl HtbProtocol {
    pub(super) const fn number(self) -> Option<u8> {
        match self {
            Self::Any => None,
            Self::Tcp => Some(TCP),
            Self::Udp => Some(UDP),
            Self::Icmp => Some(1),
        }
    }
}

pub(super) const TCP: u8 = 6;
pub(super) const UDP: u8 = 17;

choice! {
    /// How a class counts bytes.
    LinkLayer {
        /// As they are.
        Ethernet = "ethernet",
        /// In cells of 48 bytes that take 53.
        Atm = "atm",
    }
}

/// A condition on an address: an IPv4 network, or any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Address(Option<(Ipv4Addr, u8)>);

impl Address {
    /// Any address.
    pub const ANY: Self = Self(None);

    pub(super) fn allows(self, host: u64) -> bool {
        let Some((network, length)) = self.0 else {
            return true;
        };
        let free = 32 - u32::from(length);
        u32::try_from(host).is_ok_and(|host| u64::from(host ^ network.to_bits()) >> free == 0)
    }
}

impl Value for Address {
    fn text(&self, _unit: Unit) -> Option<String> {
        self.0.map(|(network, length)| match length {
            32 => network.to_string(),
            _ => format!("{network}/{length}"),
        })
    }

    fn read(&mut self, _parameter: &Parameter, text: &str) -> Result<(), Flaw> {
        let (address, length) = text.split_once('/').unwrap_or((text, "32"));
        if address.contains(':') {
            return Err(format!("{text} is an IPv6 address, which filters do not support").into());
        }
        let length = length.parse().ok().filter(|length| *length <= 32);
        let (Ok(address), Some(length)) = (address.parse::<Ipv4Addr>(), length) else {
            return Err(format!("\"{text}\" is not an IPv4 address").into());
        };
        self.0 = Some((address, length));
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
