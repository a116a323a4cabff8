//! System calls that `rustix` does not have: the only `unsafe` code of the crate.
//!
//! Each function states why its calls are sound. This module contains no policy: the callers decide what to create and
//! when.

#![allow(unsafe_code, reason = "system calls without a safe interface")]

mod frames;
mod guard;
mod packets;

use std::ffi::{CStr, c_int, c_void};
use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::thread::UnshareFlags;

pub(crate) use frames::{Arrival, Overflow, frame_sender, frame_socket, receive_frames};
pub(crate) use guard::{Guardian, guard};
pub(crate) use packets::{
    BATCH, bind_to_device, packet_socket, packets_dropped, receive_packets, send_packets,
};

/// Longest name of a network device, with the final NUL.
const NAME_SIZE: usize = 16;

/// `struct ifreq` as `TUNSETIFF` reads it.
#[repr(C)]
struct InterfaceRequest {
    name: [u8; NAME_SIZE],
    flags: i16,
    rest: [u8; 22],
}

const _: () = assert!(size_of::<InterfaceRequest>() == size_of::<libc::ifreq>());

/// Makes an open `/dev/net/tun` the TUN device `name`, which it creates in the network namespace of the calling thread.
///
/// # Errors
/// Those of the system call.
pub(crate) fn create_tun(tun: BorrowedFd<'_>, name: &str) -> io::Result<()> {
    let mut request = InterfaceRequest {
        name: [0; NAME_SIZE],
        flags: i16::try_from(libc::IFF_TUN | libc::IFF_NO_PI).unwrap_or(0),
        rest: [0; 22],
    };
    if name.len() >= NAME_SIZE {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    request.name[..name.len()].copy_from_slice(name.as_bytes());
    // SAFETY: `TUNSETIFF` reads and writes a `struct ifreq`, whose size and layout `InterfaceRequest` has; it lives
    // through the call.
    let result = unsafe {
        libc::ioctl(
            tun.as_raw_fd(),
            libc::TUNSETIFF as libc::Ioctl,
            (&raw mut request).cast::<c_void>(),
        )
    };
    checked(result).map(drop)
}

/// An offload setting of a device, as in `ethtool(8)`.
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
pub(crate) enum Offload {
    /// Transmit checksum offload.
    TxChecksum = 0x17,
    /// TCP segmentation offload.
    Segmentation = 0x1F,
    /// Generic segmentation offload.
    GenericSegmentation = 0x24,
    /// Generic receive offload.
    GenericReceive = 0x2C,
}

/// Disables an offload of a device in the calling thread's namespace.
///
/// # Errors
/// Those of the system call.
pub(crate) fn switch_off(socket: BorrowedFd<'_>, device: &str, what: Offload) -> io::Result<()> {
    #[repr(C)]
    struct Setting {
        command: u32,
        value: u32,
    }
    #[repr(C)]
    struct Request {
        name: [u8; NAME_SIZE],
        data: *mut Setting,
        rest: [u8; 24 - size_of::<*mut Setting>()],
    }
    const _: () = assert!(size_of::<Request>() == size_of::<libc::ifreq>());
    const SIOCETHTOOL: libc::Ioctl = 0x8946;
    let mut setting = Setting {
        command: what as u32,
        value: 0,
    };
    let mut request = Request {
        name: [0; NAME_SIZE],
        data: &raw mut setting,
        rest: [0; 24 - size_of::<*mut Setting>()],
    };
    if device.len() >= NAME_SIZE {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    request.name[..device.len()].copy_from_slice(device.as_bytes());
    // SAFETY: `SIOCETHTOOL` reads a `struct ifreq`, whose layout `Request` has, and reads and writes the eight bytes
    // of the setting that it points to; both live through the call.
    let result = unsafe {
        libc::ioctl(
            socket.as_raw_fd(),
            SIOCETHTOOL,
            (&raw mut request).cast::<c_void>(),
        )
    };
    checked(result).map(drop)
}

/// Moves the process, which must have one thread, to a new user namespace.
///
/// # Errors
/// `EINVAL` if the process has several threads, and those of the system call.
pub(crate) fn unshare_user() -> io::Result<()> {
    // SAFETY: no memory and no file descriptors are unshared.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWUSER) }?;
    Ok(())
}

/// Moves the calling thread to a new network namespace.
///
/// # Errors
/// Those of the system call.
pub(crate) fn unshare_network() -> io::Result<()> {
    // SAFETY: no memory and no file descriptors are unshared.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET) }?;
    Ok(())
}

/// The state of a TCP connection: the fields of `struct tcp_info` (the kernel's `tcp.h`) that are used here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TcpInfo {
    /// Smoothed RTT, in µs.
    pub(crate) rtt_us: u32,
    /// Congestion window, in segments.
    pub(crate) cwnd: u32,
    /// Slow-start threshold, in segments.
    pub(crate) ssthresh: u32,
    /// Segments in flight: sent, and neither acknowledged nor considered lost, as the kernel counts them.
    pub(crate) in_flight: u32,
    /// Retransmitted segments.
    pub(crate) retransmits: u32,
    /// Whether ECN was negotiated.
    pub(crate) ecn: bool,
    /// Whether lost segments are being retransmitted: the states Recovery and Loss.
    pub(crate) recovers: bool,
    /// Bytes that were written and not sent.
    pub(crate) unsent: u32,
    /// Time with data that was not acknowledged, in µs.
    pub(crate) busy_us: u64,
    /// Of this, the time in which the receive window limited the connection.
    pub(crate) receive_window_us: u64,
    /// Of it, the time in which the send buffer did.
    pub(crate) send_buffer_us: u64,
}

/// Reads the state of a TCP connection.
///
/// # Errors
/// Those of the system call.
pub(crate) fn tcp_info(socket: BorrowedFd<'_>) -> io::Result<TcpInfo> {
    const OPTION_ECN: u8 = 8;
    const RECOVERY: u8 = 3;
    let mut info = TcpInfoOfKernel::default();
    let mut length = length_of::<TcpInfoOfKernel>();
    // SAFETY: the kernel writes at most `length` bytes to `info`, which lives through the call.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut info).cast::<c_void>(),
            &raw mut length,
        )
    };
    checked(result)?;
    let sent = info.unacked + info.retrans;
    Ok(TcpInfo {
        rtt_us: info.rtt,
        cwnd: info.snd_cwnd,
        ssthresh: info.snd_ssthresh,
        in_flight: sent.saturating_sub(info.sacked + info.lost),
        retransmits: info.total_retrans,
        ecn: info.options & OPTION_ECN != 0,
        recovers: info.ca_state >= RECOVERY,
        unsent: info.notsent_bytes,
        busy_us: info.busy_time,
        receive_window_us: info.rwnd_limited,
        send_buffer_us: info.sndbuf_limited,
    })
}

/// `struct tcp_info` of `linux/tcp.h`, up to the last field that is used here. `libc` has only its first part.
#[derive(Default)]
#[repr(C)]
struct TcpInfoOfKernel {
    _state: u8,
    ca_state: u8,
    _counts: [u8; 3],
    options: u8,
    _bits: [u8; 2],
    _timers_and_sizes: [u32; 4],
    unacked: u32,
    sacked: u32,
    lost: u32,
    retrans: u32,
    _times: [u32; 7],
    rtt: u32,
    _rttvar: u32,
    snd_ssthresh: u32,
    snd_cwnd: u32,
    _receiver: [u32; 4],
    total_retrans: u32,
    _rates_and_bytes: [u64; 4],
    _segments: [u32; 2],
    notsent_bytes: u32,
    _min_rtt_and_data_segments: [u32; 3],
    _delivery_rate: u64,
    busy_time: u64,
    rwnd_limited: u64,
    sndbuf_limited: u64,
}

const _: () = assert!(
    std::mem::offset_of!(TcpInfoOfKernel, rtt) == 68
        && std::mem::offset_of!(TcpInfoOfKernel, total_retrans) == 100
        && std::mem::offset_of!(TcpInfoOfKernel, notsent_bytes) == 144
        && std::mem::offset_of!(TcpInfoOfKernel, busy_time) == 168,
    "the offsets of the kernel"
);

/// Makes `command` run in a new PID namespace; all processes of the namespace end when this process ends.
///
/// Two processes stand between this one and the program: one waits, the other is the first of the namespace. The kernel
/// kills the namespace when its first process ends, and that one is killed when the one before it ends.
///
/// `keeps_capabilities`: this process is in a user namespace of its own, and the program keeps the capabilities that it
/// needs to configure its network. `resolver`: the processes of the namespace read this text in `/etc/resolv.conf`.
pub(crate) fn contain(command: &mut Command, keeps_capabilities: bool, resolver: Option<String>) {
    let parent = rustix::process::getpid();
    // SAFETY: the closure only makes system calls: it neither allocates nor locks.
    unsafe {
        command.pre_exec(move || {
            die_with_parent()?;
            if rustix::process::getppid() != Some(parent) {
                // No process is left to report to.
                libc::_exit(1);
            }
            rustix::thread::unshare_unsafe(UnshareFlags::NEWPID | UnshareFlags::NEWNS)?;
            let mut ends = [0; 2];
            checked(libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC))?;
            let [alive, held] = ends;
            let first = checked(libc::fork())?;
            if first > 0 {
                ignore_interrupts();
                libc::close(alive);
                close_all_but(&[held]);
                libc::_exit(wait_for(first));
            }
            // The init process of the namespace.
            die_with_parent()?;
            libc::close(held);
            let mut poll = libc::pollfd {
                fd: alive,
                events: 0,
                revents: 0,
            };
            if libc::poll(&raw mut poll, 1, 0) != 0 {
                // The outer process ended before it could be watched.
                libc::_exit(1);
            }
            keep_mounts_private()?;
            if let Some(text) = &resolver {
                mount_resolver(text.as_bytes())?;
            }
            mount_proc();
            let program = checked(libc::fork())?;
            if program > 0 {
                ignore_interrupts();
                close_all_but(&[]);
                libc::_exit(wait_for(program));
            }
            libc::close(alive);
            if keeps_capabilities {
                keep_network_capabilities();
            }
            Ok(())
        });
    }
}

/// Where [`show_namespace`] shows a namespace.
pub(crate) const NAMESPACE_FILE: &str = "/tmp/netns";

/// Makes `command` end with the thread that starts it, keep the capabilities over the namespaces of this process, and
/// see the network namespace of a file descriptor as a file: a program that has given up capabilities cannot look at the
/// descriptors of this process, and one that closes its own has no others.
pub(crate) fn show_namespace(command: &mut Command, namespace: RawFd) {
    let parent = rustix::process::getpid();
    // "/proc/self/fd/" and the number, written before the process is copied: it must not allocate.
    let shown = std::ffi::CString::new(format!("/proc/self/fd/{namespace}")).unwrap_or_default();
    // SAFETY: the closure only makes system calls: it neither allocates nor locks.
    unsafe {
        command.pre_exec(move || {
            use rustix::fs::{Mode, OFlags};
            use rustix::mount::{MountFlags, mount, mount_bind};
            const FILE: &CStr = c"/tmp/netns";
            die_with_parent()?;
            if rustix::process::getppid() != Some(parent) {
                // No process is left to report to.
                libc::_exit(1);
            }
            rustix::thread::unshare_unsafe(UnshareFlags::NEWNS)?;
            keep_mounts_private()?;
            mount(c"tmpfs", c"/tmp", c"tmpfs", MountFlags::NOSUID, None)?;
            let create = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
            drop(rustix::fs::open(FILE, create, Mode::RUSR)?);
            mount_bind(&*shown, FILE)?;
            keep_network_capabilities();
            Ok(())
        });
    }
}

fn die_with_parent() -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    Ok(())
}

/// Programs may configure and watch the devices of their namespaces, and be live runs themselves, also where they are
/// not started as root. The capabilities are over the user namespace of the run and what belongs to it.
fn keep_network_capabilities() {
    use rustix::thread::{CapabilitySet, capabilities, configure_capability_in_ambient_set};
    let kept = [
        CapabilitySet::SYS_ADMIN,
        CapabilitySet::NET_ADMIN,
        CapabilitySet::NET_RAW,
        CapabilitySet::NET_BIND_SERVICE,
    ];
    let Ok(mut sets) = capabilities(None) else {
        return;
    };
    for capability in kept {
        sets.inheritable |= capability & sets.permitted;
    }
    if rustix::thread::set_capabilities(None, sets).is_ok() {
        for capability in kept {
            let _ = configure_capability_in_ambient_set(capability, true);
        }
    }
}

/// A terminal sends its signals to all processes; only the program handles them.
fn ignore_interrupts() {
    for signal in [libc::SIGINT, libc::SIGQUIT, libc::SIGTSTP] {
        // SAFETY: `SIG_IGN` is a valid action, and no handler is replaced that anything relies on.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// Descriptors are closed up to this one where a range cannot be closed at once.
const MOST_DESCRIPTORS: libc::c_uint = 1 << 16;

/// Closes all file descriptors but `kept`, which ascend: whoever waits for one to be closed must not wait for this
/// process.
fn close_all_but(kept: &[RawFd]) {
    let last = libc::c_uint::MAX;
    let close = |from: libc::c_uint, to: libc::c_uint| {
        // SAFETY: the descriptors belong to a process that only waits from here on.
        let closed = unsafe { libc::syscall(libc::SYS_close_range, from, to, 0) };
        if closed != 0 {
            // A kernel before 5.9, or a filter of system calls.
            for fd in from..=to.min(MOST_DESCRIPTORS) {
                // SAFETY: as above.
                unsafe { libc::close(RawFd::try_from(fd).unwrap_or(RawFd::MAX)) };
            }
        }
    };
    let mut next = 0;
    for &kept in kept {
        let kept = libc::c_uint::try_from(kept).unwrap_or(last);
        if kept > next {
            close(next, kept - 1);
        }
        next = kept + 1;
    }
    close(next, last);
}

/// What is mounted from here on is not seen outside.
fn keep_mounts_private() -> io::Result<()> {
    use rustix::mount::{MountPropagationFlags, mount_change};
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change(c"/", private)?;
    Ok(())
}

/// Shows the processes of the namespace in `/proc`, where that is permitted.
fn mount_proc() {
    use rustix::mount::{MountFlags, mount};
    const PROC: &CStr = c"proc";
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    let _ = mount(PROC, c"/proc", PROC, flags, None);
}

/// Shows a text in place of `/etc/resolv.conf`. It is in a file system without a place: the file remains mounted when
/// its file system is not.
fn mount_resolver(text: &[u8]) -> io::Result<()> {
    use rustix::fs::{Mode, OFlags};
    use rustix::mount::{MountFlags, UnmountFlags, mount, mount_bind, unmount};
    const PLACE: &CStr = c"/proc";
    const FILE: &CStr = c"/proc/resolv.conf";
    const FILE_SYSTEM: &CStr = c"tmpfs";
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount(FILE_SYSTEM, PLACE, FILE_SYSTEM, flags, None)?;
    let readable = Mode::from_raw_mode(0o644);
    let create = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
    let file = rustix::fs::open(FILE, create, readable)?;
    let mut rest = text;
    while !rest.is_empty() {
        let written = rustix::io::write(&file, rest)?;
        rest = rest.get(written..).unwrap_or_default();
    }
    drop(file);
    mount_bind(FILE, c"/etc/resolv.conf")?;
    unmount(PLACE, UnmountFlags::DETACH)?;
    Ok(())
}

/// Reaps all children until `process` has ended; returns its exit code.
fn wait_for(process: libc::pid_t) -> c_int {
    const SIGNALLED: c_int = 128;
    let mut status = 0;
    // Ends: `process` is a child, and an error other than an interruption means that it is gone.
    loop {
        // SAFETY: the pointer is to an integer that lives through the call.
        let ended = unsafe { libc::waitpid(-1, &raw mut status, 0) };
        if ended == process {
            break;
        }
        if ended < 0 && io::Error::last_os_error().raw_os_error() != Some(libc::EINTR) {
            return 1;
        }
    }
    if libc::WIFSIGNALED(status) {
        SIGNALLED + libc::WTERMSIG(status)
    } else {
        libc::WEXITSTATUS(status)
    }
}

/// Result of a system call that returns −1 on failure.
fn checked(result: c_int) -> io::Result<c_int> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

/// The size of a type, as a length of an address or option.
fn length_of<T>() -> libc::socklen_t {
    libc::socklen_t::try_from(size_of::<T>()).unwrap_or(0)
}
