//! The TCP connections of programs: which congestion controls they use, and whether they negotiated ECN.
//!
//! The sockets belong to the programs, so the run asks the kernel for them at intervals. It misses a connection that
//! begins and ends between two samples.

use std::collections::BTreeMap;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError};

use sojourn_net::Duration;

use crate::error::plain;
use crate::flows::flow_at;
use crate::sock_diag::{Connection, SockDiag};
use crate::space::{Addresses, End, Space};

/// Shortest time between two samples: for each sample, the kernel searches its table of all connections.
const SHORTEST: Duration = Duration::from_millis(100);

/// The connections of the programs of a run.
#[derive(Debug)]
pub(crate) struct Connections {
    /// Client and server, or why the kernel does not list connections.
    ends: Result<[AtEnd; 2], String>,
    every: std::time::Duration,
}

/// Connections at one end of the network.
#[derive(Debug)]
struct AtEnd {
    diag: SockDiag,
    addresses: Addresses,
    /// Number of built-in flows.
    flows: usize,
    seen: Seen,
}

/// The connections seen at one end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Number of connections by congestion control; a connection that changes it counts once for each.
    pub(crate) controls: BTreeMap<String, u64>,
    /// Connections that negotiated ECN.
    pub(crate) with_ecn: u64,
    /// The last congestion control of each connection, by the cookie of its socket.
    last: BTreeMap<u64, String>,
}

impl Seen {
    /// Number of connections.
    pub(crate) fn count(&self) -> u64 {
        self.last.len() as u64
    }

    /// Records a listed connection.
    pub(crate) fn add(&mut self, cookie: u64, control: &str, ecn: bool) {
        match self.last.get_mut(&cookie) {
            Some(last) if last == control => return,
            Some(last) => control.clone_into(last),
            None => {
                self.with_ecn += u64::from(ecn);
                self.last.insert(cookie, control.to_owned());
            }
        }
        *self.controls.entry(control.to_owned()).or_default() += 1;
    }
}

/// The connections seen at the client and at the server, or why the kernel does not list connections.
pub(crate) type Watched = Result<[Seen; 2], String>;

impl Connections {
    /// Watches both ends of a network with this many built-in flows, and takes a sample `every` interval.
    pub(crate) fn watch(space: &Space, every: Duration, flows: usize) -> Self {
        let opened = AtEnd::open(&space.client, flows)
            .and_then(|client| Ok([client, AtEnd::open(&space.server, flows)?]));
        Self {
            every: std::time::Duration::from_nanos(every.max(SHORTEST).as_nanos()),
            ends: opened.map_err(|error| plain(&error)),
        }
    }

    /// Takes samples until the sender of `ended` is dropped, and a last one then, before the connections of ended
    /// programs are closed. Returns the connections seen.
    pub(crate) fn run(mut self, ended: &Receiver<()>) -> Watched {
        while self.ends.is_ok() && ended.recv_timeout(self.every) == Err(RecvTimeoutError::Timeout)
        {
            self.sample();
        }
        self.sample();
        self.ends.map(|ends| ends.map(|end| end.seen))
    }

    /// Lists the connections that exist now.
    fn sample(&mut self) {
        if let Ok(ends) = &mut self.ends
            && let Err(error) = ends.iter_mut().try_for_each(AtEnd::sample)
        {
            self.ends = Err(plain(&error));
        }
    }
}

impl AtEnd {
    fn open(end: &End, flows: usize) -> io::Result<Self> {
        Ok(Self {
            diag: SockDiag::open(&end.namespace)?,
            addresses: end.addresses,
            flows,
            seen: Seen::default(),
        })
    }

    fn sample(&mut self) -> io::Result<()> {
        let Self {
            diag,
            addresses,
            flows,
            seen,
        } = self;
        diag.list(|found| {
            if crosses(&found, addresses) && !is_built_in(&found, *flows) {
                seen.add(found.cookie, found.control, found.ecn);
            }
        })
    }
}

/// Whether the packets of a connection cross the network: those from a host to itself, and those of a run around this
/// one, do not.
fn crosses(found: &Connection<'_>, addresses: &Addresses) -> bool {
    let local = found.local.0;
    (local == addresses.v4 || local == addresses.v6) && found.peer.0 != local
}

/// Whether a connection belongs to one of the first `flows` built-in flows.
fn is_built_in(found: &Connection<'_>, flows: usize) -> bool {
    [found.local.1, found.peer.1]
        .into_iter()
        .any(|port| flow_at(port, flows).is_some())
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;

    const HOST: Addresses = Addresses::of(0, 1);

    fn connection(local: (IpAddr, u16), peer: (IpAddr, u16)) -> Connection<'static> {
        Connection {
            cookie: 1,
            local,
            peer,
            control: "cubic",
            ecn: false,
        }
    }

    #[test]
    fn a_connection_counts_once_per_control() {
        let mut seen = Seen::default();
        for (cookie, control, ecn) in [
            (1, "cubic", true),
            (2, "reno", false),
            (1, "cubic", true),
            (2, "bbr", false),
            (2, "bbr", false),
            (3, "cubic", true),
        ] {
            seen.add(cookie, control, ecn);
        }
        let controls: Vec<_> = seen
            .controls
            .iter()
            .map(|(name, n)| (&**name, *n))
            .collect();
        assert_eq!(controls, [("bbr", 1), ("cubic", 2), ("reno", 1)]);
        assert_eq!((seen.count(), seen.with_ecn), (3, 2));
    }

    #[test]
    fn only_connections_of_programs_over_the_network_count() {
        let local = (HOST.v4.into(), 40_000);
        let server = |port| (IpAddr::from(Ipv4Addr::new(100, 64, 0, 2)), port);
        let counts = |found: &Connection<'_>| crosses(found, &HOST) && !is_built_in(found, 3);
        assert!(counts(&connection(local, server(80))));
        assert!(counts(&connection(local, server(20_003))));
        assert!(
            !counts(&connection(local, server(20_002))),
            "a built-in flow"
        );
        assert!(!counts(&connection(local, (local.0, 80))), "to itself");
        let loopback = IpAddr::from(Ipv4Addr::LOCALHOST);
        assert!(!counts(&connection((loopback, 40_000), (loopback, 80))));
        let around = Addresses::of(1, 1).v4.into();
        assert!(
            !counts(&connection((around, 40_000), server(80))),
            "of another run"
        );
    }
}
