//! Network namespaces of client and server, and the devices that connect them to the datapath.
//!
//! Packets that the hosts discard at their sockets are counted by the kernel in each network namespace:
//! `Documentation/networking/snmp_counter.rst`, and the commits that added the counters.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr, UdpSocket};
use std::os::fd::AsFd;
use std::{fs, io};

use sojourn_scenario::plan::Program as ProgramConfig;

use crate::error::LiveError;
use crate::internet::WayOut;
use crate::namespace::{self, Namespace, Port, any_socket, index_of};
use crate::netlink::{Destination, Device, Netlink, Via};
use crate::sys::{self, Offload};

/// Largest IP packet of the devices.
pub(crate) const MTU: u32 = 1_500;
/// Length of the transmit queue of a device, in packets.
const QUEUE_LENGTH: u32 = 10_000;
/// The device in each namespace.
const DEVICE: &str = "sojourn0";
/// Hosts of each network.
const CLIENT: u8 = 1;
const SERVER: u8 = 2;

/// Environment variable with the nesting level of the run that started the program.
pub(crate) const LEVEL_VARIABLE: &str = "SOJOURN_LEVEL";
pub(crate) const SERVER6_VARIABLE: &str = "SOJOURN_SERVER6";
/// Maximum nesting depth of runs.
const DEEPEST: u8 = 16;

const LOAD_DEVICES: &str = "load the module with `modprobe tun` and make /dev/net/tun readable and writable, or run \
                            `modprobe veth`";
const NEEDS_ROOT: &str = "run as root, or where unprivileged user namespaces are allowed";
const ONE_WITHIN: &str = "only one run at a time can be within another one";
const USUAL: &str = "see `sojourn doctor`";

/// One end of the network.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) namespace: Namespace,
    pub(crate) port: Port,
    pub(crate) addresses: Addresses,
    /// Name of its device.
    device: String,
    /// Packets that its sockets had discarded when the run began: a nested run shares a namespace with the outer run.
    before: SocketLosses,
}

impl End {
    /// Whether any socket listens for connections or datagrams.
    pub(crate) fn listens(&self) -> bool {
        const LISTENING: &str = " 0A ";
        let found = self.namespace.inside(|| {
            let read = |table| fs::read_to_string(format!("/proc/thread-self/net/{table}"));
            let tcp = ["tcp", "tcp6"].map(read).into_iter().flatten();
            let udp = ["udp", "udp6"].map(read).into_iter().flatten();
            let (mut tcp, mut udp) = (tcp, udp);
            // The first line of a table is its header.
            let has_sockets = |table: String| table.lines().count() > 1;
            Ok(tcp.any(|table| table.contains(LISTENING)) || udp.any(has_sockets))
        });
        found.unwrap_or(false)
    }

    /// Packets that its device dropped.
    fn lost_at_device(&self) -> io::Result<u64> {
        let of_device = || self.namespace.inside(|| dropped_packets(&self.device));
        self.port.dropped().unwrap_or_else(of_device)
    }

    /// Congestion control of connections that do not choose one.
    pub(crate) fn control(&self) -> Option<String> {
        let file = "/proc/sys/net/ipv4/tcp_congestion_control";
        let name = self.namespace.inside(|| fs::read_to_string(file));
        name.ok().map(|name| name.trim().to_owned())
    }
}

impl Lost {
    /// Packets that only devices lost.
    pub(crate) fn at_devices(count: u64) -> Self {
        Self {
            at_devices: count,
            ..Self::default()
        }
    }
}

/// Packets lost outside the links, except by the datapath.
#[derive(Debug, Default)]
pub(crate) struct Lost {
    /// Packets that the devices dropped before the datapath read them.
    pub(crate) at_devices: u64,
    /// Packets that the hosts discarded at their sockets.
    pub(crate) at_sockets: SocketLosses,
}

/// Addresses of an end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Addresses {
    pub(crate) v4: Ipv4Addr,
    pub(crate) v6: Ipv6Addr,
}

impl Addresses {
    /// Length of the prefix of a network.
    const PREFIXES: Prefixes = Prefixes { v4: 24, v6: 80 };
    /// Length of the prefix that the networks of all levels have in common.
    const ALL_LEVELS: Prefixes = Prefixes { v4: 16, v6: 64 };

    /// The addresses of host `host` in a run at nesting level `level`. 100.64.0.0/10 is shared address space for
    /// carrier-grade NAT (RFC 6598); `fd00::/8` is for unique local addresses (RFC 4193).
    pub(crate) const fn of(level: u8, host: u8) -> Self {
        let level_v6 = level as u16;
        Self {
            v4: Ipv4Addr::new(100, 64, level, host),
            v6: Ipv6Addr::new(0xFD53, 0x6F6A, 0x6F75, 0x726E, level_v6, 0, 0, host as u16),
        }
    }
}

/// Lengths of prefixes.
#[derive(Clone, Copy, Debug)]
struct Prefixes {
    v4: u8,
    v6: u8,
}

/// The network namespaces of a run; they end with the process.
#[derive(Debug)]
pub(crate) struct Space {
    pub(crate) client: End,
    pub(crate) server: End,
    /// Address of the server for programs: the peer, or the server of the outermost run.
    pub(crate) target: Addresses,
    /// Nesting level of this run.
    pub(crate) level: u8,
    /// Kind of its devices.
    pub(crate) devices: &'static str,
    /// The way to the network of the machine, if there is one. Dropped after the devices.
    pub(crate) way_out: Option<WayOut>,
}

/// Settings of the hosts of a run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HostSettings {
    /// TCP connections request ECN.
    pub(crate) ecn: bool,
    /// The hosts serve a foreground program. Its sockets have the default buffers of the machine, and if this process
    /// runs inside another run, its namespace is the server side. If false, buffers never limit a connection, as in the
    /// simulator.
    pub(crate) in_foreground: bool,
    /// The client reaches the network of the machine through the server's namespace.
    pub(crate) internet: bool,
}

impl Space {
    /// Congestion control of connections that do not choose one, at the client and at the server; `None`: unknown.
    pub(crate) fn controls(&self) -> [Option<String>; 2] {
        let server = || self.server.control();
        let is_server = self.way_out.is_none();
        [self.client.control(), is_server.then(server).flatten()]
    }

    /// Addresses of the hosts that programs know, with names for captures.
    pub(crate) const fn hosts(&self) -> [(Ipv4Addr, &'static str); 2] {
        [
            (self.client.addresses.v4, "client"),
            (self.target.v4, "server"),
        ]
    }

    /// Packets lost since the network was created and not counted by the datapath; `None` if unknown.
    pub(crate) fn lost(&self) -> Option<Lost> {
        let mut lost = Lost::default();
        for end in [&self.client, &self.server] {
            lost.at_devices += end.lost_at_device().ok()?;
            let at_sockets = SocketLosses::read(&end.namespace).ok()?;
            lost.at_sockets = lost.at_sockets.and(&at_sockets.since(&end.before));
        }
        Some(lost)
    }

    /// Creates both namespaces and their devices.
    ///
    /// # Errors
    /// [`LiveError::Environment`] if something is missing or not permitted.
    pub(crate) fn create(settings: HostSettings) -> Result<Self, LiveError> {
        let devices = Devices::available()?;
        let around = settings.in_foreground.then(Enclosing::find).flatten();
        let level = around.map_or(0, |run| run.level.saturating_add(1));
        if level > DEEPEST {
            return Err(LiveError::Environment {
                problem: format!("this run is within {level} others"),
                remedy: "at most 16 runs can be nested",
            });
        }
        if settings.internet && level > 0 {
            return Err(LiveError::Environment {
                problem: "this run is within another one".to_owned(),
                remedy: "give the outermost run the connection to the network",
            });
        }
        let client = end(CLIENT, level, settings, &devices)?;
        let addresses = Addresses::of(level, SERVER);
        let (server, target) = match around {
            None => (end(SERVER, level, settings, &devices)?, addresses),
            Some(run) => (gateway(level, addresses, &devices)?, run.server),
        };
        let way_out = settings.internet.then(|| WayOut::open(&server.namespace));
        Ok(Self {
            way_out: way_out.transpose()?,
            client,
            server,
            target,
            level,
            devices: devices.name(),
        })
    }
}

/// How namespaces are connected to the datapath.
#[derive(Debug)]
enum Devices {
    /// A TUN device in each.
    Tun,
    /// A veth pair from each to this namespace.
    Pairs(Namespace),
}

impl Devices {
    /// TUN devices if `/dev/net/tun` can be opened, otherwise veth pairs.
    fn available() -> Result<Self, LiveError> {
        if namespace::open_tun().is_ok() {
            return Ok(Self::Tun);
        }
        new_namespace().map(Self::Pairs)
    }

    const fn name(&self) -> &'static str {
        match self {
            Self::Tun => "TUN",
            Self::Pairs(_) => "veth with packet sockets",
        }
    }
}

fn new_namespace() -> Result<Namespace, LiveError> {
    Namespace::create()
        .map_err(|e| LiveError::namespace("network", "user.max_net_namespaces", &e, NEEDS_ROOT))
}

/// The live run that contains this process.
#[derive(Clone, Copy, Debug)]
struct Enclosing {
    level: u8,
    /// Address of the server for its programs.
    server: Addresses,
}

impl Enclosing {
    /// Identifies the run by the environment; the namespace must belong to that run.
    fn find() -> Option<Self> {
        let parsed = |name| std::env::var(name).ok();
        let level = parsed(LEVEL_VARIABLE)?.parse().ok()?;
        let is_here = |host| UdpSocket::bind((Addresses::of(level, host).v4, 0)).is_ok();
        if !is_here(CLIENT) && !is_here(SERVER) || index_of(DEVICE).is_err() {
            return None;
        }
        let v4 = parsed(ProgramConfig::SERVER_VARIABLE).and_then(|text| text.parse().ok());
        let v6 = parsed(SERVER6_VARIABLE).and_then(|text| text.parse().ok());
        let usual = Addresses::of(level, SERVER);
        let server = Addresses {
            v4: v4.unwrap_or(usual.v4),
            v6: v6.unwrap_or(usual.v6),
        };
        Some(Self { level, server })
    }
}

/// A new host.
fn end(host: u8, level: u8, settings: HostSettings, devices: &Devices) -> Result<End, LiveError> {
    let namespace = new_namespace()?;
    let addresses = Addresses::of(level, host);
    let port = create_device(DEVICE, addresses, &namespace, devices)?;
    let set_up = namespace.inside(|| set_up_host(host, addresses, settings));
    set_up.map_err(|e| LiveError::environment("cannot set up a network namespace", &e, USUAL))?;
    Ok(End {
        before: SocketLosses::read(&namespace).unwrap_or_default(),
        namespace,
        port,
        addresses,
        device: DEVICE.to_owned(),
    })
}

/// The namespace of this process, a host of another run, as the server side of a nested run: it forwards packets
/// between the devices of both runs.
fn gateway(level: u8, addresses: Addresses, devices: &Devices) -> Result<End, LiveError> {
    const WHAT: &str = "cannot join the enclosing run";
    let fail = |error: &io::Error| LiveError::environment(WHAT, error, USUAL);
    let namespace = Namespace::current().map_err(|e| fail(&e))?;
    let device = format!("sojourn{level}");
    let port = create_device(&device, addresses, &namespace, devices)?;
    set_up_gateway(&device, level, addresses).map_err(|e| fail(&e))?;
    Ok(End {
        before: SocketLosses::read(&namespace).unwrap_or_default(),
        namespace,
        port,
        addresses,
        device,
    })
}

fn create_device(
    name: &str,
    addresses: Addresses,
    namespace: &Namespace,
    devices: &Devices,
) -> Result<Port, LiveError> {
    let port = match devices {
        // A TUN device belongs to the namespace in which the file was opened.
        Devices::Tun => namespace.inside(|| namespace::tun(name)),
        Devices::Pairs(between) => {
            let [.., level, host] = addresses.v4.octets();
            between.inside(|| namespace::pair(name, [level, host], namespace))
        }
    };
    port.map_err(|e| {
        let remedy = match e.kind() {
            io::ErrorKind::ResourceBusy | io::ErrorKind::AlreadyExists => ONE_WITHIN,
            _ => LOAD_DEVICES,
        };
        LiveError::environment("cannot create a device", &e, remedy)
    })
}

/// Configures the namespace of the calling thread.
fn set_up_host(host: u8, addresses: Addresses, settings: HostSettings) -> io::Result<()> {
    let group = rustix::process::getgid().as_raw();
    let ecn = if settings.ecn { "1" } else { "2" };
    set_known(&[
        ("ipv4/ip_unprivileged_port_start", "0"),
        ("ipv4/ping_group_range", &format!("{group} {group}")),
        ("ipv4/tcp_ecn", ecn),
        // Connections must not inherit metrics of earlier ones.
        ("ipv4/tcp_no_metrics_save", "1"),
    ]);
    if !settings.in_foreground {
        set_known(&[
            ("ipv4/tcp_rmem", "4096 131072 67108864"),
            ("ipv4/tcp_wmem", "4096 16384 67108864"),
        ]);
    }
    let mut netlink = Netlink::open()?;
    netlink.up(index_of("lo")?)?;
    let has_v6 = set_up_device(&mut netlink, DEVICE, addresses)?;
    let device = index_of(DEVICE)?;
    if settings.internet && host == SERVER {
        // Its default route leads out; nested runs have the other addresses.
        let all = Destination::of(Addresses::of(0, 0).v4.into(), Addresses::ALL_LEVELS.v4);
        return netlink.add_route(device, all, Via::Link);
    }
    let source = Via::LinkFrom(addresses.v4.into());
    netlink.add_route(device, Destination::DEFAULT_V4, source)?;
    // The way out is one of IPv4: without a route of IPv6, programs notice that at once.
    if has_v6 && !settings.internet {
        let source = Via::LinkFrom(addresses.v6.into());
        netlink.add_route(device, Destination::DEFAULT_V6, source)?;
    }
    Ok(())
}

/// Enables forwarding between the enclosing runs and the nested runs in the namespace of the calling thread.
fn set_up_gateway(device: &str, level: u8, addresses: Addresses) -> io::Result<()> {
    set_known(&[("ipv4/ip_forward", "1"), ("ipv6/conf/all/forwarding", "1")]);
    let mut netlink = Netlink::open()?;
    let has_v6 = set_up_device(&mut netlink, device, addresses)?;
    let (outer, inner) = (index_of(DEVICE)?, index_of(device)?);
    let mut add = |device, of: Addresses, lengths: Prefixes| {
        netlink.add_route(device, Destination::of(of.v4.into(), lengths.v4), Via::Link)?;
        if has_v6 {
            netlink.add_route(device, Destination::of(of.v6.into(), lengths.v6), Via::Link)?;
        }
        Ok::<_, io::Error>(())
    };
    // Nested runs have higher levels; the network of the enclosing run already has a route.
    add(inner, Addresses::of(0, 0), Addresses::ALL_LEVELS)?;
    for lower in 0..level.saturating_sub(1) {
        add(outer, Addresses::of(lower, 0), Addresses::PREFIXES)?;
    }
    Ok(())
}

/// Configures the addresses of a device; returns whether the kernel has IPv6.
fn set_up_device(netlink: &mut Netlink, name: &str, addresses: Addresses) -> io::Result<bool> {
    let device = index_of(name)?;
    let socket = any_socket()?;
    // Packets must leave the host as they would appear on the wire: unsegmented and with checksums. TUN devices have
    // fewer offloads.
    for offload in [
        Offload::TxChecksum,
        Offload::Segmentation,
        Offload::GenericSegmentation,
        Offload::GenericReceive,
    ] {
        let _ = sys::switch_off(socket.as_fd(), name, offload);
    }
    // Before the device is up: it must neither configure addresses nor solicit routers.
    set_known(&[
        (&format!("ipv6/conf/{name}/addr_gen_mode"), "1"),
        (&format!("ipv6/conf/{name}/accept_ra"), "0"),
    ]);
    netlink.configure(
        device,
        Device {
            mtu: MTU,
            queue_length: QUEUE_LENGTH,
        },
    )?;
    let lengths = Addresses::PREFIXES;
    netlink.add_address(device, addresses.v4.into(), lengths.v4)?;
    // Fails on a kernel without IPv6.
    let v6 = netlink.add_address(device, addresses.v6.into(), lengths.v6);
    Ok(v6.is_ok())
}

/// Sets parameters of the calling thread's network namespace.
fn set_known(values: &[(&str, &str)]) {
    for (name, value) in values {
        // The kernel may lack a parameter; then there is nothing to set.
        let _ = fs::write(format!("/proc/sys/net/{name}"), value);
    }
}

/// Transmit drops of a device in the calling thread's namespace: a column of `/proc/net/dev`.
fn dropped_packets(device: &str) -> io::Result<u64> {
    const DROPPED_WHEN_SENT: usize = 11;
    let devices = fs::read_to_string("/proc/thread-self/net/dev")?;
    let line = devices
        .lines()
        .find_map(|line| line.trim().strip_prefix(device)?.strip_prefix(':'));
    let count = line.and_then(|line| line.split_whitespace().nth(DROPPED_WHEN_SENT));
    let count = count.and_then(|count| count.parse().ok());
    count.ok_or_else(|| io::ErrorKind::NotFound.into())
}

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
    use super::*;
    use proptest::prelude::*;

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
