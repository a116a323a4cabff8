//! Two interfaces of the machine that a run connects, as a bridge with a queue in each direction.
//!
//! The run reads the frames of both and writes them to the other one. For the hosts behind them, the machine is not
//! there: a table per interface ([`Table`]) discards what the machine itself would receive or send there. Packet sockets
//! read frames before that table, which accepts the frames that they write by a mark. Nothing else changes, and tables, sockets and the promiscuous mode
//! end with the process, however it ends.

use std::path::Path;
use std::{fs, io};

use crate::error::LiveError;
use crate::namespace::{Port, enlarge_buffer};
use crate::netlink::{Link, Netlink};
use crate::nftables::{Chain, Family, Hook, Rule, Table};
use crate::sys;

/// Two interfaces, and the queues between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interfaces {
    /// The interface of the clients, and that of the servers: `up` is from the first to the second.
    pub names: [String; 2],
    /// Also one that carries the default route of the machine, which is then cut off.
    pub takes_default_route: bool,
}

/// The bridge of a run.
#[derive(Debug)]
pub(crate) struct Bridge {
    pub(crate) ports: [Port; 2],
    /// Largest packet of both interfaces.
    pub(crate) mtu: usize,
    pub(crate) names: [String; 2],
    _tables: [Table; 2],
}

/// The mark of the frames of bridges: `SJbr` in ASCII.
const MARK: u32 = 0x534A_6272;
const PRIVILEGES: &str = "a bridge needs root, or CAP_NET_ADMIN and CAP_NET_RAW";
const NEEDS: &str = "a bridge needs Linux 5.16 or later with nf_tables for devices (CONFIG_NF_TABLES_NETDEV, CONFIG_NETFILTER_EGRESS)";
const IN_USE: &str = "end the other bridge first";
const ETHERNET: &str = "expected an Ethernet interface; `ip link` lists them";

impl Bridge {
    /// Opens both interfaces, which belong to the namespace of the calling thread.
    ///
    /// # Errors
    /// [`LiveError::Environment`] if an interface cannot be bridged, or something is missing or not permitted.
    pub(crate) fn open(interfaces: &Interfaces) -> Result<Self, LiveError> {
        may_use_frames(PRIVILEGES)?;
        let [near, far] = interfaces.names.each_ref().map(|name| existing(name));
        let (near, far) = (near?, far?);
        for (name, link) in interfaces.names.iter().zip([&near, &far]) {
            check(name, link, interfaces.takes_default_route)?;
        }
        if near.index == far.index {
            return Err(refused(
                "both interfaces are the same",
                "name two interfaces",
            ));
        }
        if near.mtu != far.mtu {
            let [a, b] = &interfaces.names;
            let problem = format!("the MTU of {a} is {}, that of {b} is {}", near.mtu, far.mtu);
            return Err(refused(
                &problem,
                "set the same MTU with `ip link set dev NAME mtu N`",
            ));
        }
        let [a, b] = &interfaces.names;
        let tables = [silence(a)?, silence(b)?];
        Ok(Self {
            ports: [port(a, &near)?, port(b, &far)?],
            mtu: usize::try_from(near.mtu).unwrap_or(usize::MAX),
            names: interfaces.names.clone(),
            _tables: tables,
        })
    }

    /// Frames that the kernel dropped because the run did not read them in time.
    pub(crate) fn lost(&self) -> io::Result<u64> {
        self.ports.iter().filter_map(Port::dropped).sum()
    }

    /// What the packets cross.
    pub(crate) fn described(&self) -> String {
        let [near, far] = &self.names;
        format!("{near} and {far} with packet sockets")
    }
}

pub(crate) fn refused(problem: &str, remedy: &'static str) -> LiveError {
    LiveError::Environment {
        problem: problem.to_owned(),
        remedy,
    }
}

/// Checks that the process may read and write frames; `remedy` is what it needs for that.
pub(crate) fn may_use_frames(remedy: &'static str) -> Result<(), LiveError> {
    use rustix::thread::{CapabilitySet, capabilities};
    let needed = CapabilitySet::NET_RAW | CapabilitySet::NET_ADMIN;
    if capabilities(None).is_ok_and(|sets| sets.effective.contains(needed)) {
        return Ok(());
    }
    Err(refused(
        "no permission to read and write the frames of interfaces",
        remedy,
    ))
}

/// An Ethernet interface that is up.
pub(crate) fn existing(name: &str) -> Result<Link, LiveError> {
    let link = Netlink::open().and_then(|mut netlink| netlink.link(name));
    let link = match link {
        Err(error)
            if error.kind() == io::ErrorKind::NotFound
                || error.raw_os_error() == Some(libc::ENODEV) =>
        {
            return Err(refused(&format!("there is no interface {name}"), ETHERNET));
        }
        link => link
            .map_err(|e| LiveError::environment(&format!("cannot read {name}"), &e, PRIVILEGES))?,
    };
    let refuse = |what: &str, remedy| Err(refused(&format!("{name} {what}"), remedy));
    if !link.is_ethernet {
        return refuse(
            "is not an Ethernet interface",
            "`ip link` lists those as link/ether",
        );
    }
    if !link.is_up {
        return refuse("is down", "set it up with `ip link set dev NAME up`");
    }
    Ok(link)
}

/// Checks that an interface can be bridged.
fn check(name: &str, link: &Link, takes_default_route: bool) -> Result<(), LiveError> {
    let refuse = |what: &str, remedy| Err(refused(&format!("{name} {what}"), remedy));
    if is_wireless(name) {
        let remedy =
            "a station sends only frames with its own hardware address; use a wired interface";
        return refuse("is wireless", remedy);
    }
    if link.has_master {
        return refuse(
            "belongs to a bridge, bond or VRF",
            "take it out with `ip link set dev NAME nomaster`",
        );
    }
    if !takes_default_route && let Some(via) = carries_default_route(name) {
        let remedy =
            "the bridge would cut the machine off: use another interface, or --default-route";
        let by = if via == name {
            String::new()
        } else {
            format!(", through {via}")
        };
        return refuse(
            &format!("carries the default route of the machine{by}"),
            remedy,
        );
    }
    Ok(())
}

fn is_wireless(name: &str) -> bool {
    let folder = Path::new(INTERFACES).join(name);
    folder.join("phy80211").exists() || folder.join("wireless").exists()
}

/// The interface with a default route of IPv4 or IPv6 whose packets pass an interface: itself or one above it.
fn carries_default_route(name: &str) -> Option<String> {
    let read =
        |file| fs::read_to_string(format!("/proc/thread-self/net/{file}")).unwrap_or_default();
    let (v4, v6) = (read("route"), read("ipv6_route"));
    let (v4, v6) = (
        v4.lines().filter_map(default_v4),
        v6.lines().filter_map(default_v6),
    );
    let routed: Vec<_> = v4.chain(v6).collect();
    let mut found = with_above(name).into_iter();
    found.find(|name| routed.contains(&name.as_str()))
}

/// The interface of a line of `/proc/net/route`, if it is that of a default route.
fn default_v4(line: &str) -> Option<&str> {
    let mut columns = line.split_whitespace();
    let interface = columns.next()?;
    let is_default = columns.next() == Some("00000000") && columns.nth(5) == Some("00000000");
    is_default.then_some(interface)
}

/// The same of `/proc/net/ipv6_route`.
fn default_v6(line: &str) -> Option<&str> {
    let mut columns = line.split_whitespace();
    (columns.nth(1) == Some("00")).then(|| columns.next_back())?
}

/// An interface and those whose frames pass it, such as its VLANs, macvlans, and bridges with them.
fn with_above(name: &str) -> Vec<String> {
    let mut all = vec![name.to_owned()];
    let mut next = 0;
    // Ends: each interface is listed once.
    while let Some(below) = all.get(next) {
        let entries = fs::read_dir(Path::new(INTERFACES).join(below));
        let names = entries.into_iter().flatten().flatten().filter_map(|entry| {
            let file = entry.file_name();
            file.to_str()?.strip_prefix("upper_").map(str::to_owned)
        });
        let new: Vec<_> = names.filter(|name| !all.contains(name)).collect();
        all.extend(new);
        next += 1;
    }
    all
}

const INTERFACES: &str = "/sys/class/net";

/// Discards what the machine itself would receive or send on an interface.
fn silence(name: &str) -> Result<Table, LiveError> {
    let chain = |label, hook, rules| Chain {
        name: label,
        hook,
        accepts: false,
        rules,
    };
    let devices = [name];
    let own = Rule::default().if_marked(MARK).accept();
    let chains = [
        chain("received", Hook::Ingress(&devices), Vec::new()),
        chain("sent", Hook::Egress(&devices), vec![own]),
    ];
    let what = format!("cannot take {name} from the machine");
    Table::create(Family::Device, &format!("sojourn-{name}"), &chains).map_err(|e| {
        let is_in_use = matches!(
            e.raw_os_error(),
            Some(libc::EEXIST | libc::EPERM | libc::EBUSY)
        );
        LiveError::environment(&what, &e, if is_in_use { IN_USE } else { NEEDS })
    })
}

fn port(name: &str, link: &Link) -> Result<Port, LiveError> {
    let open = || {
        let receiver = sys::frame_socket(link.index)?;
        enlarge_buffer(&receiver);
        Ok::<_, io::Error>(Port::Frames {
            receiver,
            sender: sys::frame_sender(link.index, MARK)?,
            mtu: usize::try_from(link.mtu).unwrap_or(usize::MAX),
        })
    };
    open().map_err(|e| LiveError::environment(&format!("cannot open {name}"), &e, PRIVILEGES))
}
