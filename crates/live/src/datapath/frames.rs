//! The frames of interfaces: what the kernel has left to be done to them is done before they enter the network.

use std::io;
use std::os::fd::BorrowedFd;

use super::Datapath;
use crate::ethernet::{self, Offload, Segments};
use crate::flows::Side;
use crate::sys::{self, Arrival, BATCH, Overflow};

/// Whether the kernel has discarded a merged frame that the header in front of frames has no kind for: of SCTP, and
/// before Linux 6.2 of UDP.
fn is_undescribed(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::InvalidInput
}

/// Memory to read frames with.
#[derive(Debug)]
pub(super) struct Framing {
    /// Largest packet of the interfaces.
    pub(super) mtu: usize,
    arrivals: [Arrival; BATCH],
    overflow: Overflow,
    /// A frame that is being split.
    whole: Vec<u8>,
}

impl Framing {
    pub(super) fn new(mtu: usize) -> Self {
        Self {
            mtu,
            arrivals: [Arrival::default(); BATCH],
            overflow: Overflow::new(),
            whole: Vec::new(),
        }
    }
}

impl Datapath<'_, '_> {
    /// Reads frames that have arrived on one side, at most [`BATCH`].
    pub(super) fn read_frames(&mut self, side: Side, socket: BorrowedFd<'_>) -> io::Result<usize> {
        self.incoming.fill(&mut self.network.pool);
        let Some(framing) = &mut self.framing else {
            return Ok(0);
        };
        let is_full = self.incoming.slots.is_empty();
        let buffers = if is_full {
            &mut self.incoming.scratch[..]
        } else {
            &mut self.incoming.buffers[..]
        };
        let (arrivals, overflow) = (&mut framing.arrivals, &mut framing.overflow);
        let read = match sys::receive_frames(socket, buffers, arrivals, overflow) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
            Err(error) if is_undescribed(&error) => {
                self.counted.unreadable += 1;
                return Ok(1);
            }
            result => result?,
        };
        if is_full {
            self.counted.lost += read as u64;
            return Ok(read);
        }
        for n in 0..read {
            let slot = self.incoming.slots[n];
            let buffer = std::mem::take(&mut self.incoming.buffers[n]);
            self.network.pool.give_back(slot, buffer);
            self.accept_frame(side, slot, n);
        }
        self.incoming.slots.drain(..read);
        self.incoming.buffers.drain(..read);
        Ok(read)
    }

    /// Completes frame number `n` of a batch and passes it on, if that is possible.
    fn accept_frame(&mut self, side: Side, slot: u32, n: usize) {
        let Some(framing) = &self.framing else {
            return;
        };
        let arrival = framing.arrivals[n];
        let length = match arrival.offload {
            Some(offload) if offload.split.is_some() => {
                return self.split(side, slot, n, &arrival, &offload);
            }
            Some(offload) => self.completed(slot, &arrival, &offload),
            None => None,
        };
        match length {
            Some(length) => self.accept(side, slot, length),
            None => self.refuse(slot),
        }
    }

    /// Writes the checksum and the tag of a frame; returns its length, or `None` if it does not fit its buffer.
    fn completed(&mut self, slot: u32, arrival: &Arrival, offload: &Offload) -> Option<usize> {
        let buffer = self.network.pool.bytes_mut(slot);
        let frame = buffer.get_mut(..arrival.length)?;
        if let Some(at) = offload.checksum
            && !ethernet::complete(frame, at)
        {
            return None;
        }
        let tagged = |vlan| ethernet::insert(buffer, arrival.length, vlan);
        Some(arrival.vlan.map_or(arrival.length, tagged))
    }

    /// Splits a frame that the kernel, a device or the sender has merged.
    fn split(&mut self, side: Side, slot: u32, n: usize, arrival: &Arrival, offload: &Offload) {
        let Some(framing) = &mut self.framing else {
            return;
        };
        let mut whole = std::mem::take(&mut framing.whole);
        whole.clear();
        let buffer = self.network.pool.bytes_mut(slot);
        let first = arrival.length.min(buffer.len());
        whole.extend_from_slice(&buffer[..first]);
        let rest = framing.overflow.of(n);
        whole.extend_from_slice(&rest[..(arrival.length - first).min(rest.len())]);
        match Segments::of(&whole, offload) {
            Some(segments) => {
                self.network.pool.release(slot);
                self.counted.split += 1;
                for number in 0..segments.count() {
                    self.accept_segment(side, &segments, number, arrival);
                }
            }
            None => self.refuse(slot),
        }
        if let Some(framing) = &mut self.framing {
            framing.whole = whole;
        }
    }

    fn accept_segment(&mut self, side: Side, of: &Segments<'_>, number: usize, arrival: &Arrival) {
        let Some(slot) = self.network.pool.take() else {
            self.counted.lost += 1;
            return;
        };
        let buffer = self.network.pool.bytes_mut(slot);
        match of.write(number, buffer) {
            Some(length) => {
                let tagged = |vlan| ethernet::insert(buffer, length, vlan);
                let length = arrival.vlan.map_or(length, tagged);
                self.accept(side, slot, length);
            }
            None => self.refuse(slot),
        }
    }

    /// Discards a frame that is too long or cannot be split.
    fn refuse(&mut self, slot: u32) {
        self.counted.unreadable += 1;
        self.network.pool.release(slot);
    }
}
