//! Packets that the hosts of a run discard at their sockets: counters of the kernel in each network namespace.
//!
//! Sources: `Documentation/networking/snmp_counter.rst` of the kernel, and the commits that added the counters.

use std::collections::BTreeMap;
use std::fs;
use std::io;

use crate::namespace::Namespace;

/// A counter of packets: the file of `/proc/net`, the group of lines and the column that hold it, and what it counts.
///
/// `RcvPruned` is not included: `TCPRcvQDrop` or `TCPOFODrop` also count its packets.
const COUNTERS: [(&str, &str, &str, &str); 9] = [
    ("snmp", "Udp:", "RcvbufErrors", "UDP receive buffers"),
    ("snmp", "Udp:", "SndbufErrors", "UDP send buffers"),
    ("snmp6", "Udp6RcvbufErrors", "", "UDP receive buffers"),
    ("snmp6", "Udp6SndbufErrors", "", "UDP send buffers"),
    ("netstat", "TcpExt:", "TCPBacklogDrop", "TCP backlogs"),
    ("netstat", "TcpExt:", "TCPRcvQDrop", "TCP receive buffers"),
    ("netstat", "TcpExt:", "TCPOFODrop", "TCP receive buffers"),
    ("netstat", "TcpExt:", "OfoPruned", "TCP receive buffers"),
    (
        "netstat",
        "TcpExt:",
        "TCPZeroWindowDrop",
        "closed TCP windows",
    ),
];

/// Packets discarded at the sockets of a host, by place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SocketLosses(BTreeMap<&'static str, u64>);

impl SocketLosses {
    /// The counters of a network namespace, since it was created.
    ///
    /// # Errors
    /// If the namespace cannot be entered or has no counters of TCP and UDP.
    pub(crate) fn read(namespace: &Namespace) -> io::Result<Self> {
        namespace.inside(|| {
            let file = |name: &str| fs::read_to_string(format!("/proc/thread-self/net/{name}"));
            let (snmp, netstat) = (file("snmp")?, file("netstat")?);
            // A kernel without IPv6 does not have this file.
            let snmp6 = file("snmp6").unwrap_or_default();
            Ok(Self::of(|name| match name {
                "snmp" => &snmp,
                "snmp6" => &snmp6,
                _ => &netstat,
            }))
        })
    }

    /// Adds up the counters in the text of each file; a counter that the kernel lacks is 0.
    fn of<'a>(text: impl Fn(&str) -> &'a str) -> Self {
        let mut places = BTreeMap::new();
        for (file, group, column, place) in COUNTERS {
            let count = counter(text(file), group, column).unwrap_or(0);
            *places.entry(place).or_default() += count;
        }
        Self(places)
    }

    /// The packets discarded since `before`.
    #[must_use]
    pub(crate) fn since(&self, before: &Self) -> Self {
        let earlier = |place| before.0.get(place).copied().unwrap_or(0);
        let added = self
            .0
            .iter()
            .map(|(&place, &count)| (place, count.saturating_sub(earlier(place))));
        Self(added.collect())
    }

    /// The sum of both.
    #[must_use]
    pub(crate) fn and(mut self, other: &Self) -> Self {
        for (place, count) in &other.0 {
            *self.0.entry(place).or_default() += count;
        }
        self
    }

    /// All packets.
    pub(crate) fn total(&self) -> u64 {
        self.0.values().sum()
    }

    /// The places that lost packets, with the number of lost packets.
    pub(crate) fn places(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.0
            .iter()
            .map(|(&place, &count)| (place, count))
            .filter(|&(_, count)| count > 0)
    }
}

/// The value of a counter: in the column of this name of the second line of a group, whose first line has the names; if
/// `column` is empty, beside the name `group`.
fn counter(text: &str, group: &str, column: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| {
        let (name, rest) = line.split_once(char::is_whitespace)?;
        (name == group).then_some(rest)
    });
    let first = lines.next()?;
    if column.is_empty() {
        return first.trim().parse().ok();
    }
    let place = first.split_whitespace().position(|name| name == column)?;
    lines.next()?.split_whitespace().nth(place)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SNMP: &str = "Tcp: RtoAlgorithm RtoMin InErrs\nTcp: 1 200 0\n\
        Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors\nUdp: 9 0 3 9 3 1\n\
        UdpLite: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors\nUdpLite: 0 0 0 0 70 70\n";
    const SNMP6: &str =
        "Ip6InReceives                   \t2\nUdp6RcvbufErrors                \t4\n";
    const NETSTAT: &str = "TcpExt: SyncookiesSent OfoPruned TCPBacklogDrop TCPRcvQDrop\nTcpExt: 0 5 6 7\n\
        IpExt: InNoRoutes\nIpExt: 1\n";

    fn losses(netstat: &str) -> SocketLosses {
        SocketLosses::of(|file| match file {
            "snmp" => SNMP,
            "snmp6" => SNMP6,
            _ => netstat,
        })
    }

    #[test]
    fn packets_lost_at_sockets_are_counted_by_place() {
        let found = losses(NETSTAT);
        let places: Vec<_> = found.places().collect();
        let expected = [
            ("TCP backlogs", 6),
            ("TCP receive buffers", 12),
            ("UDP receive buffers", 7),
            ("UDP send buffers", 1),
        ];
        assert_eq!(places, expected);
        assert_eq!(found.total(), 26);
        let later = losses(&NETSTAT.replace("0 5 6 7", "0 5 6 9"));
        let added: Vec<_> = later.since(&found).places().collect();
        assert_eq!(added, [("TCP receive buffers", 2)]);
        assert_eq!(found.clone().and(&later).total(), 54);
    }

    #[test]
    fn this_kernel_has_the_counters() {
        let here = Namespace::current().unwrap();
        // A kernel without IPv6 has the counters of the other groups.
        for (file, group, column, _) in COUNTERS.into_iter().filter(|(file, ..)| *file != "snmp6") {
            let text = fs::read_to_string(format!("/proc/net/{file}")).unwrap();
            assert!(counter(&text, group, column).is_some(), "{group} {column}");
        }
        assert!(SocketLosses::read(&here).is_ok() || rustix::process::geteuid().as_raw() != 0);
    }

    proptest! {
        #[test]
        fn any_text_has_a_counter_or_none(text in "(Udp:|TcpExt:|\\PC|\n| |[0-9]){0,80}") {
            for (_, group, column, _) in COUNTERS {
                let _ = counter(&text, group, column);
            }
        }
    }
}
