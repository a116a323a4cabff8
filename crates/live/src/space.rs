//! Network namespaces of client and server, and the devices that join them to the datapath.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::thread;

use rustix::net::RecvFlags;
use rustix::thread::LinkNameSpaceType;

use crate::error::LiveError;
use crate::netlink::{Device, Netlink};
use crate::sys::{self, Offload};

/// Largest IP packet of the devices.
pub(crate) const MTU: u32 = 1_500;
/// Packets that a device keeps for the datapath.
const QUEUE_LENGTH: u32 = 10_000;
/// The device in each namespace.
const DEVICE: &str = "sojourn0";

/// What a packet socket may hold; the kernel grants as much as `net.core.rmem_max` permits.
const SOCKET_BUFFER: usize = 32 << 20;

const LOAD_DEVICES: &str = "load the module with `modprobe tun` and make /dev/net/tun readable and writable, or run \
                            `modprobe veth`";
const ALLOW_USERS: &str = "allow unprivileged user namespaces (sysctl user.max_user_namespaces > 0, \
                           kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0) \
                           or run as root";
const NEEDS_ROOT: &str = "run as root, or where unprivileged user namespaces are allowed";
const USUAL: &str = "see `sojourn doctor`";

/// A network namespace.
#[derive(Debug)]
pub(crate) struct Namespace {
    handle: OwnedFd,
}

impl Namespace {
    /// That of the calling thread.
    fn current() -> io::Result<Self> {
        let handle = File::open("/proc/thread-self/ns/net")?.into();
        Ok(Self { handle })
    }

    /// A new one, which ends with the last handle and process in it.
    fn create() -> io::Result<Self> {
        on_thread(|| {
            sys::unshare_network()?;
            Self::current()
        })
    }

    /// Another handle to it.
    pub(crate) fn duplicate(&self) -> io::Result<Self> {
        let handle = self.handle.try_clone()?;
        Ok(Self { handle })
    }

    /// Moves the calling thread into it. There is no way back without privileges over the namespace that it leaves.
    pub(crate) fn move_in(&self) -> io::Result<()> {
        let kind = Some(LinkNameSpaceType::Network);
        rustix::thread::move_into_link_name_space(self.handle.as_fd(), kind)?;
        Ok(())
    }

    /// Does `work` in this namespace: what it opens belongs to it.
    ///
    /// # Errors
    /// Those of `work`, or if the namespace cannot be entered.
    pub(crate) fn inside<T: Send>(
        &self,
        work: impl FnOnce() -> io::Result<T> + Send,
    ) -> io::Result<T> {
        on_thread(|| {
            self.move_in()?;
            work()
        })
    }
}

/// Does `work` on a thread of its own, which may leave its namespaces.
fn on_thread<T: Send>(work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    let done = thread::scope(|scope| scope.spawn(work).join());
    done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// One end of the network.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) namespace: Namespace,
    pub(crate) port: Port,
    pub(crate) addresses: Addresses,
}

impl End {
    /// Whether anybody waits for connections or datagrams.
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

    /// Congestion control of connections that do not choose one.
    pub(crate) fn control(&self) -> Option<String> {
        let file = "/proc/sys/net/ipv4/tcp_congestion_control";
        let name = self.namespace.inside(|| fs::read_to_string(file));
        name.ok().map(|name| name.trim().to_owned())
    }
}

/// Addresses of an end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Addresses {
    pub(crate) v4: Ipv4Addr,
    pub(crate) v6: Ipv6Addr,
}

impl Addresses {
    /// Those of host `host` of a network; 100.64.0.0/10 is for addresses behind a box of a provider (RFC 6598), and
    /// `fd00::/8` is for private use (RFC 4193).
    const fn of(host: u8) -> Self {
        Self {
            v4: Ipv4Addr::new(100, 64, 0, host),
            v6: Ipv6Addr::new(0xFD53, 0x6F6A, 0x6F75, 0x726E, 0, 0, 0, host as u16),
        }
    }
}

/// Where the datapath reads and writes the packets of an end.
#[derive(Debug)]
pub(crate) enum Port {
    /// A TUN device.
    Tun(OwnedFd),
    /// A packet socket on the other device of a pair.
    Packet {
        socket: OwnedFd,
        /// Index of the device.
        device: u32,
        /// Hardware address of the end.
        hardware: [u8; 6],
    },
}

impl Port {
    /// Reads a packet; `None`: there is none now.
    #[inline]
    pub(crate) fn read(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        let read = match self {
            Self::Tun(device) => rustix::io::read(device, buffer),
            Self::Packet { socket, .. } => {
                rustix::net::recv(socket, buffer, RecvFlags::TRUNC).map(|(_, length)| length)
            }
        };
        match read {
            Ok(length) => Ok(Some(length)),
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes a packet; false: the host did not take it.
    #[inline]
    pub(crate) fn write(&self, packet: &[u8]) -> bool {
        // Interrupted writes are repeated, which ends when the signals do.
        loop {
            let written = match self {
                Self::Tun(device) => rustix::io::write(device, packet).map_err(io::Error::from),
                Self::Packet {
                    socket,
                    device,
                    hardware,
                } => sys::send_packet(socket.as_fd(), *device, *hardware, packet).map(|()| 0),
            };
            match written {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => return other.is_ok(),
            }
        }
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tun(device) => device.as_fd(),
            Self::Packet { socket, .. } => socket.as_fd(),
        }
    }
}

/// The network namespaces of a run; they end with the process.
#[derive(Debug)]
pub(crate) struct Space {
    pub(crate) client: End,
    pub(crate) server: End,
    /// Kind of its devices.
    pub(crate) devices: &'static str,
}

/// What the hosts of a run are set to.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HostSettings {
    /// TCP connections ask for ECN.
    pub(crate) ecn: bool,
}

impl Space {
    /// Packets that the devices had no room for before the datapath read them.
    pub(crate) fn lost_at_devices(&self) -> u64 {
        let lost = |end: &End| match &end.port {
            Port::Tun(_) => end.namespace.inside(dropped_packets).unwrap_or(0),
            Port::Packet { socket, .. } => sys::packets_dropped(socket.as_fd()).unwrap_or(0),
        };
        lost(&self.client) + lost(&self.server)
    }

    /// Creates both namespaces and their devices.
    ///
    /// # Errors
    /// [`LiveError::Environment`] if something is missing or not permitted.
    pub(crate) fn create(settings: HostSettings) -> Result<Self, LiveError> {
        let devices = Devices::available()?;
        Ok(Self {
            client: end(1, settings, &devices)?,
            server: end(2, settings, &devices)?,
            devices: devices.name(),
        })
    }
}

/// Becomes root of a user namespace, unless the process may create network namespaces anyway.
///
/// # Errors
/// [`LiveError::Environment`] if the kernel does not permit it, or the process has several threads.
pub fn enter_user_namespace() -> Result<(), LiveError> {
    let what = "cannot create a user namespace";
    let fail = |error: &io::Error| {
        LiveError::namespace("user", "user.max_user_namespaces", error, ALLOW_USERS)
    };
    if may_administrate() {
        return Ok(());
    }
    let threads = fs::read_dir("/proc/self/task").map_or(1, Iterator::count);
    if threads > 1 {
        return Err(LiveError::Environment {
            problem: format!("{what}: the process has {threads} threads"),
            remedy: "use the command `sojourn`, or run as root",
        });
    }
    let (user, group) = (rustix::process::getuid(), rustix::process::getgid());
    sys::unshare_user().map_err(|e| fail(&e))?;
    let write = |file: &str, text: String| fs::write(format!("/proc/self/{file}"), text);
    write("setgroups", "deny".to_owned())
        .and_then(|()| write("uid_map", format!("{0} {0} 1", user.as_raw())))
        .and_then(|()| write("gid_map", format!("{0} {0} 1", group.as_raw())))
        .map_err(|e| fail(&e))
}

/// Whether the process has the capabilities to create namespaces and devices.
fn may_administrate() -> bool {
    use rustix::thread::{CapabilitySet, capabilities};
    let needed = CapabilitySet::SYS_ADMIN | CapabilitySet::NET_ADMIN;
    capabilities(None).is_ok_and(|sets| sets.effective.contains(needed))
}

/// How namespaces are joined to the datapath.
#[derive(Debug)]
enum Devices {
    /// A TUN device in each.
    Tun,
    /// A device in each that forms a pair with one in this namespace.
    Pairs(Namespace),
}

impl Devices {
    /// TUN devices if `/dev/net/tun` may be opened, else pairs.
    fn available() -> Result<Self, LiveError> {
        if open_tun().is_ok() {
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

fn open_tun() -> io::Result<OwnedFd> {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    options.custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC);
    Ok(options.open("/dev/net/tun")?.into())
}

fn end(host: u8, settings: HostSettings, devices: &Devices) -> Result<End, LiveError> {
    let namespace = new_namespace()?;
    let addresses = Addresses::of(host);
    let port = match devices {
        // A TUN device belongs to the namespace in which the file was opened.
        Devices::Tun => namespace.inside(|| {
            let tun = open_tun()?;
            sys::create_tun(tun.as_fd(), DEVICE)?;
            Ok(Port::Tun(tun))
        }),
        Devices::Pairs(between) => between.inside(|| pair(host, &namespace)),
    };
    let port =
        port.map_err(|e| LiveError::environment("cannot create a device", &e, LOAD_DEVICES))?;
    let set_up = namespace.inside(|| set_up_host(addresses, settings));
    set_up.map_err(|e| LiveError::environment("cannot set up a network namespace", &e, USUAL))?;
    Ok(End {
        namespace,
        port,
        addresses,
    })
}

/// Creates a pair of devices from the calling thread's namespace to that of a host, and a socket on the near one.
fn pair(host: u8, namespace: &Namespace) -> io::Result<Port> {
    // Addresses that are administered locally.
    let hardware = |device: u8| [0x02, b'S', b'J', 0, device, host];
    let name = format!("host{host}");
    let mut netlink = Netlink::open()?;
    let ends = [(&*name, hardware(1)), (DEVICE, hardware(2))];
    netlink.add_pair(ends, namespace.handle.as_fd())?;
    // Nobody talks to the near device itself.
    let _ = fs::write(format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6"), "1");
    let device = index_of(&name)?;
    // A socket on a device that is down reports that as an error once.
    netlink.up(device)?;
    let socket = sys::packet_socket(device)?;
    let _ = rustix::net::sockopt::set_socket_recv_buffer_size(&socket, SOCKET_BUFFER);
    Ok(Port::Packet {
        socket,
        device,
        hardware: hardware(2),
    })
}

/// Configures the namespace of the calling thread.
fn set_up_host(addresses: Addresses, settings: HostSettings) -> io::Result<()> {
    let device = index_of(DEVICE)?;
    let socket = any_socket()?;
    // What leaves the host is what the link carries: whole packets with checksums. TUN devices have fewer offloads.
    for offload in [
        Offload::TxChecksum,
        Offload::Segmentation,
        Offload::GenericSegmentation,
        Offload::GenericReceive,
    ] {
        let _ = sys::switch_off(socket.as_fd(), DEVICE, offload);
    }
    // Before the device is on: it must neither choose addresses nor look for routers.
    let group = rustix::process::getgid().as_raw();
    let ecn = if settings.ecn { "1" } else { "2" };
    let known = [
        (format!("ipv6/conf/{DEVICE}/addr_gen_mode"), "1".to_owned()),
        (format!("ipv6/conf/{DEVICE}/accept_ra"), "0".to_owned()),
        ("ipv4/ip_unprivileged_port_start".to_owned(), "0".to_owned()),
        (
            "ipv4/ping_group_range".to_owned(),
            format!("{group} {group}"),
        ),
        ("ipv4/tcp_ecn".to_owned(), ecn.to_owned()),
        // A connection must not know what an earlier one has measured.
        ("ipv4/tcp_no_metrics_save".to_owned(), "1".to_owned()),
    ];
    for (name, value) in known {
        // A kernel without one of them has nothing to switch.
        let _ = fs::write(format!("/proc/sys/net/{name}"), value);
    }
    let mut netlink = Netlink::open()?;
    netlink.up(index_of("lo")?)?;
    netlink.configure(
        device,
        Device {
            mtu: MTU,
            queue_length: QUEUE_LENGTH,
        },
    )?;
    let v4 = IpAddr::V4(addresses.v4);
    netlink.add_address(device, v4, 24)?;
    netlink.add_default_route(device, v4)?;
    let v6 = IpAddr::V6(addresses.v6);
    // A kernel without IPv6 refuses.
    if netlink.add_address(device, v6, 64).is_ok() {
        netlink.add_default_route(device, v6)?;
    }
    Ok(())
}

/// Packets to be sent that the device of the calling thread's namespace has dropped: a column of `/proc/net/dev`.
fn dropped_packets() -> io::Result<u64> {
    const DROPPED_WHEN_SENT: usize = 11;
    let devices = fs::read_to_string("/proc/thread-self/net/dev")?;
    let line = devices
        .lines()
        .find_map(|line| line.trim().strip_prefix(DEVICE)?.strip_prefix(':'));
    let count = line.and_then(|line| line.split_whitespace().nth(DROPPED_WHEN_SENT));
    Ok(count.and_then(|count| count.parse().ok()).unwrap_or(0))
}

/// The index of a device of the calling thread's namespace.
fn index_of(name: &str) -> io::Result<u32> {
    Ok(rustix::net::netdevice::name_to_index(any_socket()?, name)?)
}

/// A socket to name a device with.
fn any_socket() -> io::Result<OwnedFd> {
    let family = rustix::net::AddressFamily::INET;
    Ok(rustix::net::socket(
        family,
        rustix::net::SocketType::DGRAM,
        None,
    )?)
}
