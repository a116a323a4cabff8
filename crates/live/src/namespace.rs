//! Network namespaces, the user namespace that an unprivileged process creates them in, and the devices of hosts, through
//! which the datapath reads and writes their packets.

use std::fs::{self, File, OpenOptions};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{io, thread};

use rustix::net::sockopt;
use rustix::thread::LinkNameSpaceType;

use crate::error::LiveError;
use crate::netlink::Netlink;
use crate::routed::Routed;
use crate::sys;

const ALLOW_USERS: &str = "allow unprivileged user namespaces (sysctl user.max_user_namespaces > 0, \
                           kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0) \
                           or run as root";

/// A network namespace.
#[derive(Debug)]
pub(crate) struct Namespace {
    handle: OwnedFd,
}

impl Namespace {
    /// The namespace of the calling thread.
    pub(crate) fn current() -> io::Result<Self> {
        let handle = File::open("/proc/thread-self/ns/net")?.into();
        Ok(Self { handle })
    }

    /// A new namespace, which exists until its last handle and process are gone.
    pub(crate) fn create() -> io::Result<Self> {
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

    pub(crate) fn handle(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }

    /// Moves the calling thread into the namespace. It cannot return without privileges over the namespace that it
    /// leaves.
    pub(crate) fn move_in(&self) -> io::Result<()> {
        let kind = Some(LinkNameSpaceType::Network);
        rustix::thread::move_into_link_name_space(self.handle.as_fd(), kind)?;
        Ok(())
    }

    /// Runs `work` in this namespace: sockets and devices that it opens belong to the namespace.
    ///
    /// # Errors
    /// The error of `work`, or if the namespace cannot be entered.
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

/// Runs `work` on a new thread, which may change its namespaces.
fn on_thread<T: Send>(work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    let done = thread::scope(|scope| scope.spawn(work).join());
    done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
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
    OWN_USER_NAMESPACE.store(true, Ordering::Relaxed);
    let write = |file: &str, text: String| fs::write(format!("/proc/self/{file}"), text);
    write("setgroups", "deny".to_owned())
        .and_then(|()| write("uid_map", format!("{0} {0} 1", user.as_raw())))
        .and_then(|()| write("gid_map", format!("{0} {0} 1", group.as_raw())))
        .map_err(|e| fail(&e))
}

/// Whether this process has created the user namespace that it is in.
static OWN_USER_NAMESPACE: AtomicBool = AtomicBool::new(false);

/// Whether this process has created the user namespace that it is in.
pub(crate) fn is_own_user_namespace() -> bool {
    OWN_USER_NAMESPACE.load(Ordering::Relaxed)
}

/// Whether the process has the capabilities to create namespaces and devices.
fn may_administrate() -> bool {
    use rustix::thread::{CapabilitySet, capabilities};
    let needed = CapabilitySet::SYS_ADMIN | CapabilitySet::NET_ADMIN;
    capabilities(None).is_ok_and(|sets| sets.effective.contains(needed))
}

/// What a packet socket may hold; without the privilege, the kernel grants what `net.core.rmem_max` permits.
const SOCKET_BUFFER: usize = 32 << 20;

/// The descriptor through which the datapath reads and writes the packets of a host.
#[derive(Debug)]
pub(crate) enum Port {
    /// A TUN device.
    Tun(OwnedFd),
    /// A packet socket on the datapath end of a veth pair.
    Packet {
        socket: OwnedFd,
        /// Index of the device.
        device: u32,
        /// Hardware address of the host.
        hardware: [u8; 6],
    },
    /// Packet sockets that read and write the frames of an interface.
    Frames {
        receiver: OwnedFd,
        sender: OwnedFd,
        /// Largest packet of the interface.
        mtu: usize,
    },
    /// The same, for packets that are routed to and from the hosts behind the interface.
    Routed(Box<Routed>),
}

/// Packets that could not be written.
#[derive(Debug, Default)]
pub(crate) struct Refused {
    pub(crate) count: u64,
    /// Why the last one could not.
    pub(crate) last: Option<io::Error>,
}

impl Port {
    /// Most packets of one system call: a TUN device has no call for several.
    pub(crate) const fn batch(&self) -> usize {
        match self {
            Self::Tun(_) => 1,
            Self::Packet { .. } | Self::Frames { .. } | Self::Routed(_) => sys::BATCH,
        }
    }

    /// Reads the packets that wait, at most [`Port::batch`], one into each buffer, and sets the length of each; returns
    /// how many. The length of a packet that is longer than its buffer is at least that of the buffer. The datapath reads
    /// frames itself.
    #[inline]
    pub(crate) fn read(
        &self,
        buffers: &mut [Box<[u8]>],
        lengths: &mut [usize],
    ) -> io::Result<usize> {
        let read = match (self, &mut *buffers, &mut *lengths) {
            (Self::Tun(device), [buffer, ..], [length, ..]) => {
                rustix::io::read(device, &mut **buffer)
                    .map(|read| {
                        *length = read;
                        1
                    })
                    .map_err(io::Error::from)
            }
            (Self::Tun(_) | Self::Frames { .. } | Self::Routed(_), ..) => Ok(0),
            (Self::Packet { socket, .. }, ..) => {
                sys::receive_packets(socket.as_fd(), buffers, lengths)
            }
        };
        match read.map_err(|error| (error.kind(), error)) {
            Ok(read) => Ok(read),
            Err((io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted, _)) => Ok(0),
            Err((_, error)) => Err(error),
        }
    }

    /// Writes packets, and counts those that could not be written.
    #[inline]
    pub(crate) fn write(&self, packets: &[&[u8]], refused: &mut Refused) {
        let mut rest = packets;
        // Ends: interrupted calls are repeated until the signals end, and every other call shortens the rest.
        while let [first, others @ ..] = rest {
            let written = match self {
                Self::Tun(device) => rustix::io::write(device, first)
                    .map(|_| 1)
                    .map_err(io::Error::from),
                Self::Packet {
                    socket,
                    device,
                    hardware,
                } => sys::send_packets(socket.as_fd(), Some((*device, *hardware)), rest),
                Self::Frames { sender, .. } => sys::send_packets(sender.as_fd(), None, rest),
                Self::Routed(routed) => routed.write(first).map(|()| 1),
            };
            match written {
                Ok(written) if written > 0 => rest = rest.get(written..).unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The first one was not sent; the others may be.
                written => {
                    refused.count += 1;
                    refused.last = written.err();
                    rest = others;
                }
            }
        }
    }

    /// Largest packet of its interface, if it reads and writes frames.
    pub(crate) fn mtu(&self) -> Option<usize> {
        match self {
            Self::Tun(_) | Self::Packet { .. } => None,
            Self::Frames { mtu, .. } => Some(*mtu),
            Self::Routed(routed) => Some(routed.mtu),
        }
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tun(device) => device.as_fd(),
            Self::Packet { socket, .. } => socket.as_fd(),
            Self::Frames { receiver, .. } => receiver.as_fd(),
            Self::Routed(routed) => routed.receiver.as_fd(),
        }
    }

    /// Packets that its socket has dropped since the last call; `None`: its device counts them.
    pub(crate) fn dropped(&self) -> Option<io::Result<u64>> {
        let socket = match self {
            Self::Tun(_) => return None,
            Self::Packet { socket, .. } => socket,
            Self::Frames { receiver, .. } => receiver,
            Self::Routed(routed) => &routed.receiver,
        };
        Some(sys::packets_dropped(socket.as_fd()))
    }
}

/// Creates a TUN device in the calling thread's namespace.
pub(crate) fn tun(name: &str) -> io::Result<Port> {
    let tun = open_tun()?;
    sys::create_tun(tun.as_fd(), name)?;
    Ok(Port::Tun(tun))
}

pub(crate) fn open_tun() -> io::Result<OwnedFd> {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    options.custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC);
    Ok(options.open("/dev/net/tun")?.into())
}

/// Creates a veth pair between the calling thread's namespace and a host, and a socket on the calling thread's end.
pub(crate) fn pair(far: &str, numbers: [u8; 2], namespace: &Namespace) -> io::Result<Port> {
    // Locally administered addresses.
    let [level, host] = numbers;
    let hardware = |device: u8| [0x02, b'S', b'J', level, device, host];
    let name = format!("host{host}");
    let mut netlink = Netlink::open()?;
    let ends = [(&*name, hardware(1)), (far, hardware(2))];
    netlink.add_pair(ends, namespace.handle())?;
    // The datapath end of the pair has no addresses.
    let _ = fs::write(format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6"), "1");
    let device = index_of(&name)?;
    // A socket reports once that its device was down.
    netlink.up(device)?;
    let socket = sys::packet_socket(device)?;
    enlarge_buffer(&socket);
    Ok(Port::Packet {
        socket,
        device,
        hardware: hardware(2),
    })
}

/// Lets a packet socket hold more of what has arrived.
pub(crate) fn enlarge_buffer(socket: &OwnedFd) {
    if sockopt::set_socket_recv_buffer_size_force(socket, SOCKET_BUFFER).is_err() {
        let _ = sockopt::set_socket_recv_buffer_size(socket, SOCKET_BUFFER);
    }
}

/// The index of a device of the calling thread's namespace.
pub(crate) fn index_of(name: &str) -> io::Result<u32> {
    Ok(rustix::net::netdevice::name_to_index(any_socket()?, name)?)
}

/// A socket for ioctls on a device.
pub(crate) fn any_socket() -> io::Result<OwnedFd> {
    let family = rustix::net::AddressFamily::INET;
    Ok(rustix::net::socket(
        family,
        rustix::net::SocketType::DGRAM,
        None,
    )?)
}
