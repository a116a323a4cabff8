//! Packet sockets, which read and write several packets per call.

use std::ffi::{c_int, c_uint, c_void};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use super::{checked, length_of};

/// Most packets of one call.
pub(crate) const BATCH: usize = 64;

/// Opens a packet socket for the IP packets of the device with index `device`, without their Ethernet headers.
///
/// # Errors
/// Those of the system calls.
pub(crate) fn packet_socket(device: u32) -> io::Result<OwnedFd> {
    let flags = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: the call has no pointer arguments.
    let fd = checked(unsafe { libc::socket(libc::AF_PACKET, flags, 0) })?;
    // SAFETY: the descriptor is new and has no other owner.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    set_option(
        socket.as_raw_fd(),
        libc::SOL_PACKET,
        libc::PACKET_IGNORE_OUTGOING,
        1,
    )?;
    let address = link_address(device, libc::ETH_P_ALL, [0; 6]);
    // SAFETY: the pointer is to a `sockaddr_ll` of the given size that lives through the call.
    let result = unsafe {
        libc::bind(
            fd,
            (&raw const address).cast::<libc::sockaddr>(),
            length_of::<libc::sockaddr_ll>(),
        )
    };
    checked(result)?;
    Ok(socket)
}

pub(super) fn link_address(device: u32, protocol: c_int, hardware: [u8; 6]) -> libc::sockaddr_ll {
    let mut bytes = [0; 8];
    bytes[..6].copy_from_slice(&hardware);
    libc::sockaddr_ll {
        sll_family: u16::try_from(libc::AF_PACKET).unwrap_or(0),
        sll_protocol: u16::try_from(protocol).unwrap_or(0).to_be(),
        sll_ifindex: i32::try_from(device).unwrap_or(0),
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 6,
        sll_addr: bytes,
    }
}

/// Reads the packets that wait at a socket, one into each of the first [`BATCH`] buffers; returns how many, and sets as
/// many of `lengths`. A packet that is longer than its buffer is cut, and has its full length.
///
/// # Errors
/// Those of the system call; [`io::ErrorKind::WouldBlock`] if no packet waits.
pub(crate) fn receive_packets(
    socket: BorrowedFd<'_>,
    buffers: &mut [Box<[u8]>],
    lengths: &mut [usize],
) -> io::Result<usize> {
    let mut vectors = NO_VECTORS;
    let mut messages = NO_MESSAGES;
    let most = buffers.len().min(lengths.len()).min(BATCH);
    let places = vectors.iter_mut().zip(&mut messages);
    for (buffer, (vector, message)) in buffers[..most].iter_mut().zip(places) {
        *vector = vector_of(buffer.as_mut_ptr(), buffer.len());
        message.msg_hdr.msg_iov = vector;
        message.msg_hdr.msg_iovlen = 1;
    }
    let flags = libc::MSG_DONTWAIT | libc::MSG_TRUNC;
    // SAFETY: the first `most` messages each point to one vector, which is the memory of one of the buffers; messages,
    // vectors and buffers live through the call, and no two buffers overlap. There is no address, no control data and
    // no timeout.
    let read = unsafe {
        libc::recvmmsg(
            socket.as_raw_fd(),
            messages.as_mut_ptr(),
            count_of(most),
            flags as _,
            std::ptr::null_mut(),
        )
    };
    let read = usize::try_from(checked(read)?).unwrap_or(0);
    for (length, message) in lengths.iter_mut().zip(&messages[..read]) {
        *length = usize::try_from(message.msg_len).unwrap_or(usize::MAX);
    }
    Ok(read)
}

/// Sends packets over a packet socket, at most [`BATCH`]; returns how many were sent. They are IP packets to a hardware
/// address behind the device `to`, or frames, if it is `None`.
///
/// # Errors
/// Those of the system call, if the first packet is not sent.
pub(crate) fn send_packets(
    socket: BorrowedFd<'_>,
    to: Option<(u32, [u8; 6])>,
    packets: &[&[u8]],
) -> io::Result<usize> {
    let protocols = [libc::ETH_P_IP, libc::ETH_P_IPV6];
    let (device, hardware) = to.unwrap_or_default();
    let mut addresses = protocols.map(|protocol| link_address(device, protocol, hardware));
    let mut vectors = NO_VECTORS;
    let mut messages = NO_MESSAGES;
    let most = packets.len().min(BATCH);
    let places = vectors.iter_mut().zip(&mut messages);
    for (packet, (vector, message)) in packets[..most].iter().zip(places) {
        let is_ipv6 = packet.first().is_some_and(|first| first >> 4 == 6);
        let address = &mut addresses[usize::from(is_ipv6)];
        *vector = vector_of(packet.as_ptr().cast_mut(), packet.len());
        if to.is_some() {
            message.msg_hdr.msg_name = (&raw mut *address).cast::<c_void>();
            message.msg_hdr.msg_namelen = length_of::<libc::sockaddr_ll>();
        }
        message.msg_hdr.msg_iov = vector;
        message.msg_hdr.msg_iovlen = 1;
    }
    // SAFETY: the first `most` messages each point to one vector, which is the memory of one of the packets, and to one
    // of the addresses or none; all of them live through the call. The kernel only reads packets and addresses, and writes the
    // lengths in the messages. There is no control data.
    let sent = unsafe {
        libc::sendmmsg(
            socket.as_raw_fd(),
            messages.as_mut_ptr(),
            count_of(most),
            libc::MSG_DONTWAIT as _,
        )
    };
    Ok(usize::try_from(checked(sent)?).unwrap_or(0))
}

const NO_VECTORS: [libc::iovec; BATCH] = [vector_of(std::ptr::null_mut(), 0); BATCH];

pub(super) const NO_MESSAGES: [libc::mmsghdr; BATCH] = {
    // SAFETY: zero is a valid value of every field: null pointers and lengths of zero.
    let message: libc::mmsghdr = unsafe { std::mem::zeroed() };
    [message; BATCH]
};

pub(super) const fn vector_of(start: *mut u8, length: usize) -> libc::iovec {
    libc::iovec {
        iov_base: start.cast::<c_void>(),
        iov_len: length,
    }
}

pub(super) fn count_of(messages: usize) -> c_uint {
    c_uint::try_from(messages).unwrap_or(0)
}

pub(super) fn set_option(socket: RawFd, level: c_int, name: c_int, value: c_int) -> io::Result<()> {
    // SAFETY: the pointer is to an integer of the given size that lives through the call.
    let result = unsafe {
        libc::setsockopt(
            socket,
            level,
            name,
            (&raw const value).cast::<c_void>(),
            length_of::<c_int>(),
        )
    };
    checked(result).map(drop)
}

/// Restricts a socket to one device.
///
/// # Errors
/// Those of the system call.
pub(crate) fn bind_to_device(socket: &OwnedFd, device: u32) -> io::Result<()> {
    let index = c_int::try_from(device).unwrap_or(0);
    set_option(
        socket.as_raw_fd(),
        libc::SOL_SOCKET,
        libc::SO_BINDTOIFINDEX,
        index,
    )
}

/// Packets that a packet socket dropped since the last call.
///
/// # Errors
/// Those of the system call.
pub(crate) fn packets_dropped(socket: BorrowedFd<'_>) -> io::Result<u64> {
    // SAFETY: zero is a valid value of every field.
    let mut statistics: libc::tpacket_stats = unsafe { std::mem::zeroed() };
    let mut length = length_of::<libc::tpacket_stats>();
    // SAFETY: the kernel writes at most `length` bytes to `statistics`, which lives through the call.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_STATISTICS,
            (&raw mut statistics).cast::<c_void>(),
            &raw mut length,
        )
    };
    checked(result)?;
    Ok(statistics.tp_drops.into())
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    use super::*;

    #[test]
    fn one_call_reads_all_packets_that_wait_as_far_as_there_are_buffers() {
        let flags = SocketFlags::CLOEXEC;
        let (near, far) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
        let mut buffers: Vec<Box<[u8]>> = (0..3).map(|_| vec![0; 8].into()).collect();
        let mut lengths = [0; BATCH];
        let nothing = receive_packets(near.as_fd(), &mut buffers, &mut lengths);
        assert_eq!(nothing.unwrap_err().kind(), io::ErrorKind::WouldBlock);
        for packet in [&b"one"[..], b"a long packet", b"three", b"four"] {
            rustix::io::write(&far, packet).unwrap();
        }
        let read = receive_packets(near.as_fd(), &mut buffers, &mut lengths).unwrap();
        assert_eq!((read, &lengths[..3]), (3, &[3, 13, 5][..]));
        assert_eq!(
            (&buffers[0][..3], &*buffers[1]),
            (&b"one"[..], &b"a long p"[..])
        );
        let read = receive_packets(near.as_fd(), &mut buffers, &mut lengths).unwrap();
        assert_eq!((read, lengths[0], &buffers[0][..4]), (1, 4, &b"four"[..]));
    }
}
