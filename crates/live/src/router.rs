//! Two interfaces of the machine that a run connects as a router: their hosts are in different networks, and send what is
//! for the other one to the addresses of the machine.
//!
//! The run reads the frames for the machine whose destination is in the other network, and writes their packets to raw
//! sockets: the kernel finds the neighbour, as for its own packets. It also answers what is for the machine itself.
//! Where the kernel would forward packets between both interfaces, too, a table discards them. Nothing else changes, and
//! table and sockets end with the process, however it ends.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, SocketFlags, SocketType};

use crate::bridge::{existing, may_use_frames, refused};
use crate::error::LiveError;
use crate::namespace::{Port, enlarge_buffer};
use crate::netlink::{Link, Netlink, Subnet};
use crate::nftables::{Chain, Family, Hook, Rule, Table};
use crate::routed::{Gate, Routed};
use crate::sys;

/// Two interfaces, and the port of the machine that accepts connections as long as the run forwards packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Networks {
    /// The interface of the clients, and that of the servers: `up` is from the first to the second.
    pub names: [String; 2],
    /// Hosts may wait until a connection to this TCP port succeeds.
    pub ready: Option<u16>,
}

/// The router of a run.
#[derive(Debug)]
pub(crate) struct Router {
    pub(crate) ports: [Port; 2],
    /// Largest packet of both interfaces.
    pub(crate) mtu: usize,
    /// The addresses of the machine.
    pub(crate) own: Vec<IpAddr>,
    pub(crate) names: [String; 2],
    _table: Option<Table>,
    _ready: Option<TcpListener>,
}

const PRIVILEGES: &str = "a router needs root, or CAP_NET_ADMIN and CAP_NET_RAW";
const NEEDS: &str = "switch off the forwarding of the machine (sysctl net.ipv4.ip_forward, \
                     net.ipv6.conf.all.forwarding), or load nf_tables";
const ADDRESSES: &str =
    "both interfaces need addresses, in different networks; `ip address` lists them";
const USED: &str = "end the program that listens there";

impl Router {
    /// Opens both interfaces, which belong to the namespace of the calling thread.
    ///
    /// # Errors
    /// [`LiveError::Environment`] if an interface cannot be used, or something is missing or not permitted.
    pub(crate) fn open(networks: &Networks) -> Result<Self, LiveError> {
        may_use_frames(PRIVILEGES)?;
        let [a, b] = networks.names.each_ref().map(|name| existing(name));
        let links = [a?, b?];
        let fail = |what: &str, e: &io::Error| LiveError::environment(what, e, PRIVILEGES);
        let addresses = Netlink::open()
            .and_then(|mut netlink| netlink.addresses())
            .map_err(|e| fail("cannot read the addresses of the machine", &e))?;
        let own: Vec<_> = addresses.iter().map(|address| address.address).collect();
        let networks_of = |link: &Link| -> Vec<_> {
            let of_link = addresses.iter().filter(|one| one.device == link.index);
            of_link
                .filter(|one| !is_local(one.address))
                .copied()
                .collect()
        };
        let behind = links.each_ref().map(networks_of);
        for (name, behind) in networks.names.iter().zip(&behind) {
            if behind.is_empty() {
                return Err(refused(&format!("{name} has no address"), ADDRESSES));
            }
        }
        let [near, far] = &behind;
        let is_shared = |one: &Subnet| far.iter().any(|other| one.contains(other.address));
        if near.iter().any(is_shared) {
            let [a, b] = &networks.names;
            return Err(refused(
                &format!("{a} and {b} are in the same network"),
                ADDRESSES,
            ));
        }
        let table = table_between(&networks.names)?;
        let [near, far] = behind;
        let port = |n: usize, there| {
            let gate = Gate {
                hardware: links[n].hardware,
                own: own.clone(),
                there,
            };
            open_port(&links[n], gate)
                .map_err(|e| fail(&format!("cannot open {}", networks.names[n]), &e))
        };
        let ports = [port(0, far)?, port(1, near)?];
        let mtu = links.iter().map(|link| link.mtu).max().unwrap_or(0);
        // After the sockets: what a host sends when the connection succeeds is read.
        let ready = networks.ready.map(listening).transpose()?;
        Ok(Self {
            ports,
            mtu: usize::try_from(mtu).unwrap_or(usize::MAX),
            own,
            names: networks.names.clone(),
            _table: table,
            _ready: ready,
        })
    }

    /// Frames that the kernel dropped because the run did not read them in time.
    pub(crate) fn lost(&self) -> io::Result<u64> {
        self.ports.iter().filter_map(Port::dropped).sum()
    }

    /// What the packets cross.
    pub(crate) fn described(&self) -> String {
        let [near, far] = &self.names;
        format!("{near} and {far}, routed, with packet sockets")
    }
}

fn listening(port: u16) -> Result<TcpListener, LiveError> {
    TcpListener::bind((Ipv4Addr::UNSPECIFIED, port))
        .map_err(|e| LiveError::environment(&format!("cannot listen on TCP port {port}"), &e, USED))
}

/// Discards what the kernel itself would forward between both interfaces.
fn table_between([a, b]: &[String; 2]) -> Result<Option<Table>, LiveError> {
    let between = |from, to| {
        let rule = Rule::default().if_from_device(from).if_to_device(to);
        rule.discard()
    };
    let chain = Chain {
        name: "forwarded",
        hook: Hook::Forward,
        accepts: true,
        rules: vec![between(a, b), between(b, a)],
    };
    match Table::create(Family::Inet, &format!("sojourn-{a}-{b}"), &[chain]) {
        Ok(table) => Ok(Some(table)),
        Err(_) if !forwards(a) && !forwards(b) => Ok(None),
        Err(error) => {
            let what = "cannot keep the kernel from forwarding packets";
            Err(LiveError::environment(what, &error, NEEDS))
        }
    }
}

/// Whether the kernel forwards what an interface receives.
fn forwards(name: &str) -> bool {
    ["ipv4", "ipv6"].iter().any(|version| {
        let file = format!("/proc/sys/net/{version}/conf/{name}/forwarding");
        fs::read_to_string(file).is_ok_and(|value| value.trim() != "0")
    })
}

fn open_port(link: &Link, gate: Gate) -> io::Result<Port> {
    let receiver = sys::frame_socket(link.index)?;
    enlarge_buffer(&receiver);
    Ok(Port::Routed(Box::new(Routed {
        receiver,
        // A kernel may lack a version of IP.
        senders: [
            sender(AddressFamily::INET, link.index)?,
            sender(AddressFamily::INET6, link.index)?,
        ],
        device: link.index,
        mtu: usize::try_from(link.mtu).unwrap_or(usize::MAX),
        gate,
    })))
}

/// A raw socket that sends packets of IP, whose headers are given, through one interface; `None`: the kernel does not
/// have this version of IP.
fn sender(family: AddressFamily, device: u32) -> io::Result<Option<OwnedFd>> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let opened = rustix::net::socket_with(
        family,
        SocketType::RAW,
        flags,
        Some(rustix::net::ipproto::RAW),
    );
    match opened {
        Err(rustix::io::Errno::AFNOSUPPORT) => Ok(None),
        Err(error) => Err(error.into()),
        Ok(socket) => {
            sys::bind_to_device(&socket, device)?;
            Ok(Some(socket))
        }
    }
}

/// Whether an address is valid on its link only.
const fn is_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local() || address.is_loopback(),
        IpAddr::V6(address) => address.is_unicast_link_local() || address.is_loopback(),
    }
}
