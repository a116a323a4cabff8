//! Filters: which class a packet goes to.

use sojourn_net::{Dscp, FlowKey, IpVersion, Packet};

use super::params::{HtbFilter, HtbParams};
use super::values::{Address, HtbProtocol, Ports, TCP, UDP};
use crate::contract::Observer;
use crate::parameters::{FlowFacts, Leaf, LinkFacts};

/// A filter with the place of its class.
#[derive(Clone, Copy, Debug)]
struct Rule {
    to: usize,
    /// That of its addresses, if it asks for any.
    ip: Option<IpVersion>,
    source: Address,
    destination: Address,
    protocol: HtbProtocol,
    source_port: Ports,
    destination_port: Ports,
    dscp: Option<Dscp>,
    /// Only packets of some flows can match.
    of_flows: bool,
    /// The headers behind the DSCP matter.
    reads_headers: bool,
}

impl Rule {
    fn new(filter: &HtbFilter, to: usize) -> Self {
        let rule = Self {
            to,
            ip: filter.versions().flatten().next(),
            source: filter.source,
            destination: filter.destination,
            protocol: filter.protocol,
            source_port: filter.source_port,
            destination_port: filter.destination_port,
            dscp: filter.dscp.0,
            of_flows: filter.traffic.get().is_some() || filter.host.is_some(),
            reads_headers: false,
        };
        Self {
            reads_headers: rule.protocol != HtbProtocol::Any
                || rule.has_ports()
                || rule.source != Address::ANY
                || rule.destination != Address::ANY,
            ..rule
        }
    }

    fn has_ports(&self) -> bool {
        self.source_port != Ports::ANY || self.destination_port != Ports::ANY
    }

    /// Whether a packet with these headers matches, apart from its flow.
    fn matches(&self, ip: IpVersion, dscp: Dscp, headers: &FlowKey) -> bool {
        if self.ip.is_some_and(|wanted| wanted != ip)
            || self.dscp.is_some_and(|wanted| wanted != dscp)
        {
            return false;
        }
        if !self.reads_headers {
            return true;
        }
        let [a, b, c, d] = headers.ports.to_be_bytes();
        let has_ports = matches!(headers.protocol, TCP | UDP);
        self.protocol.allows(headers.protocol)
            && self.source.allows(headers.source)
            && self.destination.allows(headers.destination)
            && (has_ports || !self.has_ports())
            && self.source_port.allows(u16::from_be_bytes([a, b]))
            && self.destination_port.allows(u16::from_be_bytes([c, d]))
    }
}

/// The filters of a queue.
#[derive(Clone, Debug)]
pub(super) struct Classifier {
    rules: Box<[Rule]>,
    /// For each flow, the rules that its packets may match, in order; empty: no rule asks for the flow.
    by_flow: Box<[Box<[u32]>]>,
    /// The rules for packets of unknown flows.
    others: Box<[u32]>,
    /// A rule reads headers.
    reads_headers: bool,
}

impl Classifier {
    pub(super) fn new<L: Leaf>(params: &HtbParams<L>, link: &LinkFacts) -> Self {
        let places = params.places();
        let rule = |filter: &HtbFilter| {
            let to = places.get(filter.to.as_str());
            Rule::new(filter, *to.expect("the class of a filter exists"))
        };
        let rules: Box<[Rule]> = params.filters.0.iter().map(rule).collect();
        let numbered = || (0..).zip(rules.iter().zip(&params.filters.0));
        let others = numbered().filter(|(_, (rule, _))| !rule.of_flows);
        let others = others.map(|(number, _)| number).collect();
        let flows = link.flows.iter().flat_map(|flows| flows.iter());
        let by_flow = flows.map(|flow| {
            let own = numbered().filter(|(_, (_, filter))| includes(filter, flow));
            own.map(|(number, _)| number).collect()
        });
        Self {
            by_flow: if params.flow_conditions().next().is_some() {
                by_flow.collect()
            } else {
                Box::default()
            },
            others,
            reads_headers: rules.iter().any(|rule| rule.reads_headers),
            rules,
        }
    }

    /// The place of the class that the first matching filter selects.
    #[inline]
    pub(super) fn class_of<P: Packet>(&self, pkt: &P, obs: &mut dyn Observer<P>) -> Option<usize> {
        if self.rules.is_empty() {
            return None;
        }
        let flow = if self.by_flow.is_empty() {
            None
        } else {
            obs.flow_of(pkt)
        };
        let own = flow.and_then(|flow| self.by_flow.get(flow as usize));
        let headers = if self.reads_headers {
            pkt.headers()
        } else {
            FlowKey::default()
        };
        let (ip, dscp) = (pkt.ip(), pkt.dscp());
        let mut rules = own.unwrap_or(&self.others).iter();
        rules.find_map(|&number| {
            let rule = &self.rules[number as usize];
            rule.matches(ip, dscp, &headers).then_some(rule.to)
        })
    }
}

/// Whether packets of `flow` may match `filter`.
fn includes(filter: &HtbFilter, flow: &FlowFacts) -> bool {
    let of_traffic = filter.traffic.get().is_none_or(|name| {
        let rest = flow.traffic.strip_prefix(name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    });
    of_traffic
        && filter
            .host
            .is_none_or(|host| flow.host == Some(host.into()))
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use sojourn_schema::{Flaw, Value as _};

    use super::*;
    use crate::classful::htb::HtbIp;

    fn address(text: &str) -> Result<Address, String> {
        let mut address = Address::ANY;
        let parameter = HtbFilter::PARAMETERS.iter().find(|p| p.key == "source");
        match address.read(parameter.expect("declared"), text) {
            Ok(()) => Ok(address),
            Err(Flaw::Value(why)) => Err(why),
            Err(flaw) => panic!("{flaw:?}"),
        }
    }

    #[test]
    fn a_rule_asks_for_the_version_of_ip_and_that_of_its_addresses() {
        let matching = |filter: HtbFilter, protocol| {
            let rule = Rule::new(&filter, 0);
            let headers = FlowKey {
                source: 1,
                protocol,
                ..FlowKey::default()
            };
            IpVersion::ALL.map(|ip| rule.matches(ip, Dscp::DEFAULT, &headers))
        };
        let of = |ip| HtbFilter {
            ip,
            ..HtbFilter::default()
        };
        assert_eq!(matching(of(HtbIp::Any), TCP), [true, true]);
        assert_eq!(matching(of(HtbIp::V4), TCP), [true, false]);
        assert_eq!(matching(of(HtbIp::V6), TCP), [false, true]);
        let icmp = HtbFilter {
            protocol: HtbProtocol::Icmp,
            ..HtbFilter::default()
        };
        assert_eq!(
            [1, 58, TCP].map(|number| matching(icmp.clone(), number)[0]),
            [true, true, false]
        );
        // An IPv6 address in 64 bits may have the number of an IPv4 address.
        let from = HtbFilter {
            source: address("0.0.0.1").expect("valid"),
            ..HtbFilter::default()
        };
        assert_eq!(matching(from, TCP), [true, false]);
        let folded = |text: &str| FlowKey::folded(text.parse::<Ipv6Addr>().expect(text).octets());
        let one = address("2001:2::1").expect("valid");
        assert!(one.allows(folded("2001:2::1")) && !one.allows(folded("2001:2::2")));
        assert_eq!(one.version(), Some(IpVersion::V6));
        assert_eq!(one.to_string(), "2001:2::1");
        assert_eq!(address("2001:2::1/128"), Ok(one));
    }

    #[test]
    fn a_network_contains_the_addresses_with_its_prefix() {
        let net = address("10.1.0.0/16").expect("valid");
        let host = |text: &str| u64::from(text.parse::<Ipv4Addr>().expect(text).to_bits());
        assert!(net.allows(host("10.1.255.1")));
        assert!(!net.allows(host("10.2.0.1")));
        assert!(!net.allows(1 << 32 | host("10.1.0.1")));
        assert!(address("0.0.0.0/0").expect("valid").allows(host("1.2.3.4")));
        assert_eq!(address("1.2.3.4").expect("valid").to_string(), "1.2.3.4");
        assert_eq!(
            address("1.2.3.4/33").unwrap_err(),
            "\"1.2.3.4/33\" is not an IPv4 address"
        );
        assert_eq!(
            address("2001:db8::/32").unwrap_err(),
            "\"2001:db8::/32\" is an IPv6 network; expected one IPv6 address, or an IPv4 network"
        );
        assert_eq!(
            address("2001:db8::1/129").unwrap_err(),
            "\"2001:db8::1/129\" is not an IPv6 address"
        );
    }
}
