//! Packet sockets for the frames of an interface.

use std::ffi::{c_int, c_void};
use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use super::packets::{BATCH, NO_MESSAGES, count_of, link_address, set_option, vector_of};
use super::{checked, length_of};
use crate::ethernet::{Offload, Vlan};

/// A frame that was read, except for its bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Arrival {
    /// Its length, which may exceed that of its buffer.
    pub(crate) length: usize,
    /// What the kernel leaves to be done; `None`: a kind of segments that is unknown.
    pub(crate) offload: Option<Offload>,
    /// The tag that its device has taken off.
    pub(crate) vlan: Option<Vlan>,
}

/// Opens a packet socket that reads all frames that the device with index `device` receives, also those for other
/// hardware addresses. The device leaves the promiscuous mode when the socket is closed.
///
/// # Errors
/// Those of the system calls.
pub(crate) fn frame_socket(device: u32) -> io::Result<OwnedFd> {
    let socket = open()?;
    for option in [
        libc::PACKET_IGNORE_OUTGOING,
        libc::PACKET_VNET_HDR,
        libc::PACKET_AUXDATA,
    ] {
        set_option(socket.as_raw_fd(), libc::SOL_PACKET, option, 1)?;
    }
    let membership = libc::packet_mreq {
        mr_ifindex: c_int::try_from(device).unwrap_or(0),
        mr_type: u16::try_from(libc::PACKET_MR_PROMISC).unwrap_or(0),
        mr_alen: 0,
        mr_address: [0; 8],
    };
    // SAFETY: the pointer is to a structure of the given size that lives through the call.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_ADD_MEMBERSHIP,
            (&raw const membership).cast::<c_void>(),
            length_of::<libc::packet_mreq>(),
        )
    };
    checked(result)?;
    bind(&socket, device, libc::ETH_P_ALL)?;
    Ok(socket)
}

/// Opens a packet socket that writes frames with a mark to a device, without the queue of the device, and reads none.
///
/// # Errors
/// Those of the system calls.
pub(crate) fn frame_sender(device: u32, mark: u32) -> io::Result<OwnedFd> {
    let socket = open()?;
    set_option(
        socket.as_raw_fd(),
        libc::SOL_PACKET,
        libc::PACKET_QDISC_BYPASS,
        1,
    )?;
    let mark = c_int::from_ne_bytes(mark.to_ne_bytes());
    set_option(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_MARK, mark)?;
    bind(&socket, device, 0)?;
    Ok(socket)
}

/// A socket without a protocol: it reads nothing before it is bound to one.
fn open() -> io::Result<OwnedFd> {
    let flags = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: the call has no pointer arguments.
    let fd = checked(unsafe { libc::socket(libc::AF_PACKET, flags, 0) })?;
    // SAFETY: the descriptor is new and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn bind(socket: &OwnedFd, device: u32, protocol: c_int) -> io::Result<()> {
    let address = link_address(device, protocol, [0; 6]);
    // SAFETY: the pointer is to a `sockaddr_ll` of the given size that lives through the call.
    let result = unsafe {
        libc::bind(
            socket.as_raw_fd(),
            (&raw const address).cast::<libc::sockaddr>(),
            length_of::<libc::sockaddr_ll>(),
        )
    };
    checked(result).map(drop)
}

/// What does not fit the buffers of a batch of frames.
#[derive(Debug)]
pub(crate) struct Overflow(Vec<u8>);

impl Overflow {
    /// The longest frame that the kernel merges, and room for its headers.
    const LENGTH: usize = 1 << 16 | 256;

    pub(crate) fn new() -> Self {
        Self(vec![0; Self::LENGTH * BATCH])
    }

    /// What did not fit the buffer of frame number `n`.
    pub(crate) fn of(&self, n: usize) -> &[u8] {
        &self.0[n * Self::LENGTH..][..Self::LENGTH]
    }
}

/// Room for the control data of a message: a header and a structure, both aligned to 8 bytes.
const CONTROL: usize = 64;
const _: () = assert!(
    size_of::<libc::cmsghdr>() + size_of::<libc::tpacket_auxdata>() + 16 <= CONTROL,
    "the control data fits"
);

/// Control data, aligned as its header.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct Control([u8; CONTROL]);

/// Reads the frames that wait at a socket, one into each of the first [`BATCH`] buffers and the rest of a long one into
/// `overflow`; returns how many, and sets as many of `arrivals`.
///
/// # Errors
/// Those of the system call; [`io::ErrorKind::WouldBlock`] if no frame waits.
pub(crate) fn receive_frames(
    socket: BorrowedFd<'_>,
    buffers: &mut [Box<[u8]>],
    arrivals: &mut [Arrival],
    overflow: &mut Overflow,
) -> io::Result<usize> {
    let mut headers = [[0_u8; Offload::LENGTH]; BATCH];
    let mut controls = [Control([0; CONTROL]); BATCH];
    let mut vectors = [[vector_of(std::ptr::null_mut(), 0); 3]; BATCH];
    let mut messages = NO_MESSAGES;
    let most = buffers.len().min(arrivals.len()).min(BATCH);
    let rests = overflow.0.chunks_exact_mut(Overflow::LENGTH);
    let places = vectors
        .iter_mut()
        .zip(&mut messages)
        .zip(rests)
        .zip(headers.iter_mut().zip(&mut controls));
    for (buffer, (((vector, message), rest), (header, control))) in
        buffers[..most].iter_mut().zip(places)
    {
        *vector = [
            vector_of(header.as_mut_ptr(), header.len()),
            vector_of(buffer.as_mut_ptr(), buffer.len()),
            vector_of(rest.as_mut_ptr(), rest.len()),
        ];
        message.msg_hdr.msg_iov = vector.as_mut_ptr();
        message.msg_hdr.msg_iovlen = vector.len() as _;
        message.msg_hdr.msg_control = control.0.as_mut_ptr().cast::<c_void>();
        message.msg_hdr.msg_controllen = CONTROL as _;
    }
    let flags = libc::MSG_DONTWAIT | libc::MSG_TRUNC;
    // SAFETY: the first `most` messages each point to three vectors, which are the memory of one header, one buffer and
    // one part of `overflow`, and to control data of the given length; all of them live through the call, and none
    // overlap. There is no address and no timeout.
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
    for (n, (arrival, message)) in arrivals.iter_mut().zip(&messages[..read]).enumerate() {
        let length = usize::try_from(message.msg_len).unwrap_or(0);
        *arrival = Arrival {
            length: length.saturating_sub(Offload::LENGTH),
            offload: Offload::of(headers[n]),
            vlan: vlan_of(&message.msg_hdr),
        };
    }
    Ok(read)
}

/// The tag in the control data of a message that was received.
fn vlan_of(message: &libc::msghdr) -> Option<Vlan> {
    // SAFETY: the kernel has written the control data and its length; the memory is aligned and alive.
    let first = unsafe { libc::CMSG_FIRSTHDR(message).as_ref() }?;
    if (first.cmsg_level, first.cmsg_type) != (libc::SOL_PACKET, libc::PACKET_AUXDATA) {
        return None;
    }
    // SAFETY: the data of this kind of control message is a `tpacket_auxdata`, which may be unaligned.
    let data = unsafe {
        libc::CMSG_DATA(first)
            .cast::<libc::tpacket_auxdata>()
            .read_unaligned()
    };
    let has = |flag: u32| data.tp_status & flag != 0;
    has(libc::TP_STATUS_VLAN_VALID).then(|| Vlan {
        protocol: if has(libc::TP_STATUS_VLAN_TPID_VALID) {
            data.tp_vlan_tpid
        } else {
            0x8100
        },
        control: data.tp_vlan_tci,
    })
}
