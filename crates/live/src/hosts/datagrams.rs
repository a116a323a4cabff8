//! Datagrams without a connection, over UDP and ICMP.

use std::collections::VecDeque;
use std::io;
use std::net::UdpSocket;
use std::os::fd::AsFd;

use rustix::event::PollFlags;
use sojourn_apps::DatagramConfig;
use sojourn_net::{Instant, Rng};
use sojourn_records::Datagrams as Counted;

use super::sockets::{Route, Waited};
use crate::clock::Clock;

/// Datagrams whose time of sending is kept; older ones that arrive count as lost.
const KEPT: usize = 1 << 16;
/// Payload of an echo request of `ping`.
const ICMP_PAYLOAD: usize = 56;
const ICMP_HEADER: usize = 8;
/// Type of an ICMP echo request.
const ECHO_REQUEST: u8 = 8;
/// Datagrams that are sent or received before other flows have their turn.
const BATCH: usize = 256;

/// A source of datagrams and its receiver.
#[derive(Debug)]
pub(super) struct Datagrams {
    pub(super) counted: Counted,
    /// Where datagrams are sent and replies arrive.
    near: UdpSocket,
    /// Where they arrive; `None`: the kernel replies.
    far: Option<UdpSocket>,
    due: Instant,
    stopped: bool,
    /// When the last ones were sent, the oldest first.
    times: VecDeque<Instant>,
}

impl Datagrams {
    pub(super) fn start(
        now: Instant,
        config: &dyn DatagramConfig,
        rng: &Rng,
        route: &Route<'_>,
    ) -> io::Result<Self> {
        let icmp = config.kind().payload().is_none();
        Ok(Self {
            counted: Counted::new(now, config, rng),
            far: if icmp { None } else { Some(route.receiver()?) },
            near: route.sender(icmp)?,
            due: now,
            stopped: false,
            times: VecDeque::new(),
        })
    }

    /// Where the number of a datagram is, and how many bytes of it.
    fn number_field(&self) -> (usize, usize) {
        match self.counted.kind().payload() {
            None => (ICMP_HEADER, 4),
            Some(payload) => (0, usize::try_from(payload.0).unwrap_or(4).min(4)),
        }
    }

    /// Length of a datagram.
    fn length(&self) -> usize {
        match self.counted.kind().payload() {
            None => ICMP_HEADER + ICMP_PAYLOAD,
            Some(payload) => usize::try_from(payload.0).unwrap_or(0),
        }
    }

    /// When the next datagram is to be sent.
    pub(super) fn due(&self) -> Instant {
        if self.stopped {
            Instant::MAX
        } else {
            self.counted.paced_by_replies().unwrap_or(self.due)
        }
    }

    pub(super) fn poll<'a>(&'a self, fds: &mut Vec<Waited<'a>>) {
        fds.push((self.near.as_fd(), PollFlags::IN));
        if let Some(far) = &self.far {
            fds.push((far.as_fd(), PollFlags::IN));
        }
    }

    /// Sends what is due and receives what has arrived.
    pub(super) fn work(
        &mut self,
        now: Instant,
        clock: Clock,
        scratch: &mut [u8],
    ) -> io::Result<()> {
        for _ in 0..BATCH {
            if self.due() > now {
                break;
            }
            self.send(clock.now(), scratch)?;
        }
        self.receive(clock, scratch);
        Ok(())
    }

    fn send(&mut self, now: Instant, scratch: &mut [u8]) -> io::Result<()> {
        let datagram = &mut scratch[..self.length()];
        datagram.fill(0);
        let (at, length) = self.number_field();
        // Sending by the clock does not drift when a turn is late.
        let by_clock = self.counted.paced_by_replies().is_none();
        let planned = if by_clock { self.due.min(now) } else { now };
        let (number, due) = self.counted.send(planned);
        self.due = due;
        datagram[at..at + length].copy_from_slice(&number.to_le_bytes()[..length]);
        if self.counted.kind().payload().is_none() {
            datagram[0] = ECHO_REQUEST;
            datagram[6..8].copy_from_slice(&number.to_be_bytes()[2..]);
        }
        self.times.push_back(now);
        if self.times.len() > KEPT {
            self.times.pop_front();
        }
        match self.near.send(datagram) {
            Err(error) if !is_loss(&error) => Err(error),
            _ => Ok(()),
        }
    }

    fn receive(&mut self, clock: Clock, scratch: &mut [u8]) {
        for _ in 0..BATCH {
            let Some(far) = &self.far else { break };
            let Ok((length, from)) = far.recv_from(scratch) else {
                break;
            };
            if self.counted.kind().is_echo() {
                // A reply that cannot be sent is lost like any other.
                let _ = far.send_to(&scratch[..length], from);
            } else {
                self.on_arrival(clock.now(), &scratch[..length]);
            }
        }
        for _ in 0..BATCH {
            let Ok(length) = self.near.recv(scratch) else {
                break;
            };
            self.on_arrival(clock.now(), &scratch[..length]);
        }
    }

    fn on_arrival(&mut self, now: Instant, datagram: &[u8]) {
        let (at, length) = self.number_field();
        let Some(field) = datagram.get(at..at + length) else {
            return;
        };
        let mut bytes = [0; 4];
        bytes[..length].copy_from_slice(field);
        let Some(number) = self.full_number(u32::from_le_bytes(bytes), length) else {
            return;
        };
        let first = self.counted.sent() - self.times.len() as u64;
        let place = u64::from(number)
            .checked_sub(first)
            .and_then(|n| usize::try_from(n).ok());
        let Some(&sent) = place.and_then(|place| self.times.get(place)) else {
            return;
        };
        self.counted.on_arrival(number, now.saturating_since(sent));
    }

    /// The number of a datagram from its lowest bytes: the last one with these.
    fn full_number(&self, low: u32, length: usize) -> Option<u32> {
        if length == 4 {
            return Some(low);
        }
        let mask = (1_u32 << (8 * length)) - 1;
        let last = u32::try_from(self.counted.sent()).ok()?.checked_sub(1)?;
        last.checked_sub(last.wrapping_sub(low) & mask)
    }

    pub(super) fn stop(&mut self) {
        self.stopped = true;
    }
}

/// Whether a datagram that was not sent is lost like any other: the host has no room for it, or nobody receives yet.
fn is_loss(error: &io::Error) -> bool {
    let kinds = [io::ErrorKind::WouldBlock, io::ErrorKind::ConnectionRefused];
    kinds.contains(&error.kind()) || error.raw_os_error() == Some(libc::ENOBUFS)
}
