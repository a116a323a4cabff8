//! The way out of a run: packets that leave the server's side reach the network of the machine.
//!
//! A veth pair connects the server's namespace to that of the machine. Both translate addresses: the server's namespace,
//! because all runs have the same addresses, and the machine, because its network has no route to the run. The machine
//! forwards packets between the pair and its interface with the default route, and nothing else that it did not forward
//! before.
//!
//! The pair ends with the server's namespace, and the tables with this process ([`Table`]). [`Forwarding`] restores the
//! setting of the interface.
//!
//! Without root, `pasta` is in the place of pair and machine: it ends the connections and opens new ones as a program.

use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::AsRawFd as _;
use std::process::{Command, Stdio};
use std::time::Duration;
use std::{fs, io, thread};

use crate::error::{LiveError, plain};
use crate::forwarding::Forwarding;
use crate::kept::Kept;
use crate::namespace::{self, Namespace, index_of, is_own_user_namespace};
use crate::netlink::{Destination, Netlink, Via};
use crate::nftables::{Chain, Family, Hook, Rule, Table};
use crate::sys;

/// The device of the pair in the server's namespace.
const INNER: &str = "sojourn-out";
/// Names of the devices of pairs in the namespace of the machine begin like this; a number follows.
const OUTER: &str = "sojourn-n";
/// Most runs with a way out at a time.
const MOST: u8 = 250;

const NO_ROUTE: &str = "connect the machine to a network, or leave --internet out";
const NEEDS: &str = "it needs root, Linux 5.12 or later with nf_tables, nft_masq, nft_ct and veth, and a writable /proc/sys";

/// A way out.
#[derive(Debug)]
pub(crate) struct WayOut {
    means: Means,
    /// The text of `/etc/resolv.conf` for programs; `None`: the machine has no name server that they can reach.
    resolver: Option<String>,
}

/// How packets leave.
#[derive(Debug)]
enum Means {
    /// The machine forwards them.
    Machine {
        /// The interface through which they leave.
        interface: String,
        /// Ends before the table that restricts it, which [`Forwarding`] has.
        _pair: Pair,
        _forwarding: Forwarding,
        _inside: Table,
    },
    /// A program sends their content.
    Pasta { _process: Kept, _table: Table },
}

impl WayOut {
    /// Connects the namespace of the server to that of the calling thread.
    ///
    /// # Errors
    /// [`LiveError::Environment`] if something is missing or not permitted.
    pub(crate) fn open(server: &Namespace) -> Result<Self, LiveError> {
        let means = if is_own_user_namespace() {
            Means::pasta(server)
        } else {
            Means::machine(server)
        };
        Ok(Self {
            means: means?,
            resolver: resolver_of(|file| fs::read_to_string(file).ok()),
        })
    }

    /// What packets pass on their way out.
    pub(crate) fn described(&self) -> String {
        match &self.means {
            Means::Machine { interface, .. } => format!("{interface}, masquerading by the kernel"),
            Means::Pasta { .. } => "pasta".to_owned(),
        }
    }

    /// What limits the result.
    pub(crate) fn limits(&self) -> Vec<&'static str> {
        let is_pasta = matches!(self.means, Means::Pasta { .. });
        let ends = is_pasta.then_some(ENDS_IN_PASTA);
        let unnamed = self.resolver.is_none().then_some(NO_NAMES);
        ends.into_iter().chain(unnamed).collect()
    }

    /// The text of `/etc/resolv.conf` for programs, if they can look up names.
    pub(crate) fn resolver(&self) -> Option<String> {
        self.resolver.clone()
    }
}

impl Means {
    fn machine(server: &Namespace) -> Result<Self, LiveError> {
        let fail = |what: &str| {
            let what = format!("cannot connect the run to the network: {what}");
            move |error: io::Error| LiveError::environment(&what, &error, NEEDS)
        };
        let routes = Routes::read().map_err(fail("routes"))?;
        let Some(interface) = routes.default_interface() else {
            return Err(LiveError::Environment {
                problem: "the machine has no IPv4 default route".to_owned(),
                remedy: NO_ROUTE,
            });
        };
        let pair = Pair::create(server, &routes).map_err(fail("veth pair"))?;
        let inside = server.inside(|| pair.set_up_inside());
        let inside = inside.map_err(fail("masquerading in the server's namespace"))?;
        pair.set_up_outside()
            .map_err(fail("address of the veth pair"))?;
        let restrict = |was_on| {
            let table = pair.masquerade(&interface, was_on)?;
            pair.forward()?;
            Ok(table)
        };
        let forwarding = Forwarding::enable(&interface, restrict)
            .map_err(fail("forwarding and masquerading"))?;
        Ok(Self::Machine {
            interface,
            _pair: pair,
            _forwarding: forwarding,
            _inside: inside,
        })
    }

    fn pasta(server: &Namespace) -> Result<Self, LiveError> {
        let refused = |problem: String, remedy| LiveError::Environment { problem, remedy };
        namespace::open_tun()
            .map_err(|e| LiveError::environment("pasta cannot open /dev/net/tun", &e, TUN))?;
        let mut said = memory_file().map_err(|e| LiveError::environment(PASTA, &e, INSTALL))?;
        let mut process = Kept::start(pasta_command(&said, server), None)
            .map_err(|e| LiveError::environment("cannot start pasta", &e, INSTALL))?;
        wait_for_device(server, &mut process).map_err(|e| {
            let mut text = String::new();
            let _ = said.rewind().and_then(|()| said.read_to_string(&mut text));
            let last = text.lines().last().unwrap_or_default();
            refused(format!("{PASTA}: {} {last}", plain(&e)), TUN)
        })?;
        let table = server.inside(|| {
            fs::write("/proc/sys/net/ipv4/ip_forward", "1")?;
            masquerade_inside()
        });
        let table = table.map_err(|e| LiveError::environment(PASTA, &e, NEEDS))?;
        Ok(Self::Pasta {
            _process: process,
            _table: table,
        })
    }
}

/// The command that gives the namespace of the server a device [`INNER`] and opens no port. It stays in the foreground,
/// so that it ends with this process, and writes its messages to `said`.
fn pasta_command(said: &File, server: &Namespace) -> Command {
    const OPTIONS: &str = "--foreground --stderr --quiet --config-net --ipv4-only --mtu 1500 --no-map-gw --no-dhcp \
                           --no-ra --no-ndp --no-dhcpv6 --tcp-ports none --udp-ports none --tcp-ns none --udp-ns none \
                           --netns-only --no-netns-quit";
    let mut command = Command::new("pasta");
    command.args(OPTIONS.split_whitespace());
    let [machine, inside] = [1, 2].map(|host| address(0, host).to_string());
    command.args([
        "--address",
        &inside,
        "--netmask",
        "30",
        "--gateway",
        &machine,
    ]);
    command.args(["--ns-ifname", INNER, "--netns", sys::NAMESPACE_FILE]);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    if let Ok(said) = said.try_clone() {
        command.stderr(said);
    }
    sys::show_namespace(&mut command, server.handle().as_raw_fd());
    command
}

fn memory_file() -> io::Result<File> {
    Ok(File::from(rustix::fs::memfd_create(
        "pasta",
        rustix::fs::MemfdFlags::CLOEXEC,
    )?))
}

/// Waits until pasta has given the namespace its device, for 5 s at most.
#[expect(clippy::disallowed_methods, reason = "pasta starts in real time")]
fn wait_for_device(server: &Namespace, process: &mut Kept) -> io::Result<()> {
    for _ in 0..100 {
        if server.inside(has_default_route)? {
            return Ok(());
        }
        if let Some(status) = process.ended()? {
            return Err(io::Error::other(format!("it ended with {status}:")));
        }
        thread::sleep(Duration::from_millis(50));
    }
    Err(io::ErrorKind::TimedOut.into())
}

fn has_default_route() -> io::Result<bool> {
    Ok(Routes::read()?.default_interface().is_some())
}

/// Packets leave the server's namespace with the address of its device.
fn masquerade_inside() -> io::Result<Table> {
    let chain = Chain {
        name: "out",
        hook: Hook::SourceNat,
        accepts: true,
        rules: vec![Rule::default().if_to_device(INNER).masquerade()],
    };
    Table::create(Family::Ipv4, "sojourn", &[chain])
}

const PASTA: &str = "pasta does not connect the run to the network";
const INSTALL: &str = "install pasta (package passt), or run as root";
const TUN: &str = "make /dev/net/tun readable and writable, or run as root";
const ENDS_IN_PASTA: &str =
    "TCP ends in pasta: the congestion control behind the queue is not the server's";
const NO_NAMES: &str =
    "programs cannot look up names: /etc/resolv.conf has no name server outside this machine";

/// A veth pair between the namespace of the machine and that of the server.
#[derive(Debug)]
struct Pair {
    number: u8,
}

impl Pair {
    /// Creates the pair with the first number that is free: neither another run nor a route has it.
    fn create(server: &Namespace, routes: &Routes) -> io::Result<Self> {
        let mut netlink = Netlink::open()?;
        let is_free = |number: &u8| !routes.cover(address(*number, 0));
        for number in (0..MOST).filter(is_free) {
            let hardware = |device| [0x02, b'S', b'J', 0xFF, device, number];
            let ends = [(&*outer(number), hardware(1)), (INNER, hardware(2))];
            match netlink.add_pair(ends, server.handle()) {
                Ok(()) => return Ok(Self { number }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::other("all numbers from 0 to 249 are in use"))
    }

    fn outer(&self) -> String {
        outer(self.number)
    }

    const fn address(&self, host: u8) -> Ipv4Addr {
        address(self.number, host)
    }

    /// In the server's namespace: packets leave it with the address of the pair.
    fn set_up_inside(&self) -> io::Result<Table> {
        const PREFIX: u8 = 30;
        let device = index_of(INNER)?;
        let _ = fs::write(format!("/proc/sys/net/ipv6/conf/{INNER}/disable_ipv6"), "1");
        let mut netlink = Netlink::open()?;
        netlink.add_address(device, self.address(2).into(), PREFIX)?;
        netlink.up(device)?;
        let machine = Via::Router(self.address(1).into());
        netlink.add_route(device, Destination::DEFAULT_V4, machine)?;
        fs::write("/proc/sys/net/ipv4/ip_forward", "1")?;
        masquerade_inside()
    }

    fn set_up_outside(&self) -> io::Result<()> {
        const PREFIX: u8 = 30;
        let name = self.outer();
        let device = index_of(&name)?;
        let _ = fs::write(format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6"), "1");
        let mut netlink = Netlink::open()?;
        netlink.add_address(device, self.address(1).into(), PREFIX)?;
        netlink.up(device)
    }

    /// What the run sends is forwarded, as the table of the run permits.
    fn forward(&self) -> io::Result<()> {
        let name = self.outer();
        fs::write(format!("/proc/sys/net/ipv4/conf/{name}/forwarding"), "1")
    }

    /// In the namespace of the machine: the packets of the run leave it by `interface` only, with its address. If the
    /// interface did not forward packets before, it forwards nothing else now.
    fn masquerade(&self, interface: &str, forwarded_before: bool) -> io::Result<Table> {
        let outer = self.outer();
        let rule = Rule::default;
        let mut rules = vec![
            rule()
                .if_from_device(&outer)
                .if_to_device(interface)
                .accept(),
            rule().if_from_device(&outer).discard(),
            rule()
                .if_to_device(&outer)
                .if_from_device(interface)
                .if_of_known_connection()
                .accept(),
            rule().if_to_device(&outer).discard(),
        ];
        if !forwarded_before {
            rules.push(
                rule()
                    .if_from_device(interface)
                    .if_not_to_devices(OUTER)
                    .discard(),
            );
        }
        let chains = [
            Chain {
                name: "forward",
                hook: Hook::Forward,
                accepts: true,
                rules,
            },
            Chain {
                name: "out",
                hook: Hook::SourceNat,
                accepts: true,
                rules: vec![
                    rule()
                        .if_from_address(self.address(2))
                        .if_to_device(interface)
                        .masquerade(),
                ],
            },
        ];
        // The process that restores the setting after a run keeps its table longer than the pair has its number.
        let name = format!("{outer}-{}", std::process::id());
        Table::create(Family::Ipv4, &name, &chains)
    }
}

/// The device of pair number `number` in the namespace of the machine.
fn outer(number: u8) -> String {
    format!("{OUTER}{number}")
}

/// Host 0 is the network of the pair, 1 the machine, and 2 the server's namespace. 100.64.0.0/10 is shared address space
/// (RFC 6598); the hosts of runs have other parts of it.
const fn address(number: u8, host: u8) -> Ipv4Addr {
    Ipv4Addr::new(100, 127, number, host)
}

/// The kernel would remove the pair some time after the namespace of the server.
impl Drop for Pair {
    fn drop(&mut self) {
        let index = index_of(&self.outer());
        let _ = index.and_then(|index| Netlink::open()?.remove(index));
    }
}

/// The routes of IPv4 in the main table: `/proc/net/route`.
#[derive(Debug, Default)]
struct Routes(Vec<Route>);

/// A route.
#[derive(Debug)]
struct Route {
    interface: String,
    destination: u32,
    mask: u32,
    metric: u32,
}

impl Routes {
    /// Those of the calling thread's namespace.
    fn read() -> io::Result<Self> {
        Ok(Self::of(&fs::read_to_string(
            "/proc/thread-self/net/route",
        )?))
    }

    /// Of the text of the file: addresses are hexadecimal, in the byte order of the network as the host reads it.
    fn of(text: &str) -> Self {
        const REJECTS: u32 = 0x200;
        let route = |line: &str| {
            let columns: Vec<_> = line.split_whitespace().collect();
            let number = |n: usize| u32::from_str_radix(columns.get(n)?, 16).ok();
            Some(Route {
                interface: (*columns.first()?).to_owned(),
                destination: number(1)?.to_be(),
                mask: number(7)?.to_be(),
                metric: columns.get(6)?.parse().ok()?,
            })
        };
        // The first line is the header.
        let leads = |line: &&str| {
            let flags = line.split_whitespace().nth(3);
            flags
                .is_some_and(|flags| u32::from_str_radix(flags, 16).is_ok_and(|f| f & REJECTS == 0))
        };
        Self(
            text.lines()
                .skip(1)
                .filter(leads)
                .filter_map(route)
                .collect(),
        )
    }

    /// The interface of the default route that the kernel prefers.
    fn default_interface(&self) -> Option<String> {
        let defaults = self.0.iter().filter(|route| route.mask == 0);
        let best = defaults.min_by_key(|route| route.metric)?;
        Some(best.interface.clone())
    }

    /// Whether a route other than the default leads to an address.
    fn cover(&self, address: Ipv4Addr) -> bool {
        let leads =
            |route: &Route| route.mask != 0 && address.to_bits() & route.mask == route.destination;
        self.0.iter().any(leads)
    }
}

/// Files with name servers, in the order in which they are tried: resolvers on the machine itself, which a run cannot
/// reach, keep those that they ask in another file.
const RESOLVERS: [&str; 3] = [
    "/etc/resolv.conf",
    "/run/systemd/resolve/resolv.conf",
    "/run/NetworkManager/no-stub-resolv.conf",
];

/// The text of `/etc/resolv.conf` for programs: name servers that a run can reach; `None`: the machine has none.
fn resolver_of(read: impl Fn(&str) -> Option<String>) -> Option<String> {
    RESOLVERS.iter().find_map(|file| {
        let text = read(file)?;
        let server = |line: &str| {
            let mut words = line.split_whitespace();
            (words.next() == Some("nameserver")).then(|| words.next()?.parse::<IpAddr>().ok())
        };
        let reachable = |line: &&str| match server(line) {
            Some(address) => {
                matches!(address, Some(IpAddr::V4(v4)) if !v4.is_loopback() && !v4.is_unspecified())
            }
            None => true,
        };
        let kept: Vec<_> = text.lines().filter(reachable).collect();
        let has_server = kept.iter().any(|line| server(line).is_some());
        has_server.then(|| kept.join("\n") + "\n")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUTES: &str = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n\
        *\t00000000\t00000000\t0200\t0\t0\t0\t00000000\t0\t0\t0\n\
        wlan0\t00000000\t0100A8C0\t0003\t0\t0\t600\t00000000\t0\t0\t0\n\
        eth0\t00000000\t010200C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n\
        eth0\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n\
        wg0\t00007F64\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0\n";

    #[test]
    fn packets_leave_by_the_default_route_of_the_lowest_metric() {
        let routes = Routes::of(ROUTES);
        assert_eq!(routes.default_interface().as_deref(), Some("eth0"));
        assert_eq!(Routes::of("").default_interface(), None);
    }

    #[test]
    fn an_address_to_which_a_route_leads_is_not_free() {
        let routes = Routes::of(ROUTES);
        assert!(routes.cover(Ipv4Addr::new(192, 0, 2, 77)));
        assert!(routes.cover(Ipv4Addr::new(100, 127, 3, 1)));
        assert!(!routes.cover(Ipv4Addr::new(100, 126, 3, 1)));
    }

    #[test]
    fn a_resolver_on_the_machine_is_replaced_by_those_that_it_asks() {
        let stub = "nameserver 127.0.0.53\noptions edns0\n";
        let real = "nameserver 10.0.0.1\nnameserver fe80::1%eth0\nsearch example.org\n";
        let file_of =
            |file: &str| Some(if file.starts_with("/etc") { stub } else { real }.to_owned());
        let expected = "nameserver 10.0.0.1\nsearch example.org\n";
        assert_eq!(resolver_of(file_of).as_deref(), Some(expected));
        assert_eq!(resolver_of(|_| Some(stub.to_owned())), None);
        assert_eq!(resolver_of(|_| None), None);
    }
}
