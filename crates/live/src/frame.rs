//! Handles to real packets, and the buffers with their bytes, which are allocated in groups, reused and
//! reference-counted.

use sojourn_net::{Bytes, Dscp, Ecn, FlowKey, Instant, IpVersion, Packet, Transport};
use sojourn_path::ip::{ETHERNET_HEADER, Parsed, write_tos};
use sojourn_path::links::Carried;

/// A handle to a packet in the pool.
///
/// Queues change only the copy of DSCP and ECN in the handle; the pool writes it to the bytes when the packet leaves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    stamp: Instant,
    /// When it entered the datapath.
    pub(crate) entered: Instant,
    /// Its parsed headers.
    pub(crate) parsed: Parsed,
    /// Its buffer.
    pub(crate) slot: u32,
    /// Bytes of an Ethernet header in front of it in the buffer; 0: there is none.
    pub(crate) header: u8,
    /// Whether it is a packet of IP.
    pub(crate) is_ip: bool,
    /// Packets are numbered in the order in which they are read.
    pub(crate) id: u64,
    /// Its flow in the plan.
    pub(crate) flow: u32,
    /// The inner queue of the discipline that it was offered to last, if the run is captured.
    pub(crate) queue: Option<u32>,
    /// The next step of its path.
    pub(crate) step: u16,
    /// Whether it travels in the direction of the data of its flow.
    pub(crate) forward: bool,
}

impl Frame {
    /// A packet that was read at `now`, at the first `step` of its path.
    pub(crate) const fn new(parsed: Parsed, slot: u32, id: u64, now: Instant) -> Self {
        Self {
            stamp: now,
            entered: now,
            parsed,
            slot,
            header: 0,
            is_ip: true,
            id,
            flow: 0,
            queue: None,
            step: 0,
            forward: true,
        }
    }

    /// The same, as a part of a frame of Ethernet.
    pub(crate) const fn framed(self, header: u8, is_ip: bool) -> Self {
        Self {
            header,
            is_ip,
            ..self
        }
    }

    /// Its length with the header in front of it.
    pub(crate) fn length(&self) -> usize {
        usize::from(self.header) + usize::from(self.parsed.len)
    }
}

impl Packet for Frame {
    #[inline]
    fn size(&self) -> Bytes {
        Bytes(u64::from(self.parsed.len) + u64::from(self.header).max(ETHERNET_HEADER))
    }

    #[inline]
    fn ecn(&self) -> Ecn {
        Ecn::from_bits(self.parsed.tos)
    }

    #[inline]
    fn set_ecn(&mut self, ecn: Ecn) {
        self.parsed.tos = self.parsed.tos & !0b11 | ecn.bits();
    }

    #[inline]
    fn dscp(&self) -> Dscp {
        Dscp::new(self.parsed.tos >> 2).unwrap_or_default()
    }

    #[inline]
    fn set_dscp(&mut self, dscp: Dscp) {
        self.parsed.tos = self.parsed.tos & 0b11 | dscp.number() << 2;
    }

    #[inline]
    fn ip(&self) -> IpVersion {
        self.parsed.ip
    }

    #[inline]
    fn transport(&self) -> Transport {
        self.parsed.transport
    }

    #[inline]
    fn flow(&self) -> FlowKey {
        self.parsed.flow
    }
}

impl Carried for Frame {
    const NONE: Self = Self::new(
        Parsed {
            ip: IpVersion::V4,
            len: 0,
            tos: 0,
            flow: FlowKey {
                source: 0,
                destination: 0,
                ports: 0,
                protocol: 0,
            },
            transport: Transport::Other,
            payload: 0,
            is_multicast: false,
        },
        0,
        0,
        Instant::ZERO,
    );

    #[inline]
    fn stamp(&self) -> Instant {
        self.stamp
    }

    #[inline]
    fn onward(&self, stamp: Instant) -> Self {
        Self {
            stamp,
            step: self.step + 1,
            ..*self
        }
    }
}

/// Buffers that are allocated at a time.
const GROUP: usize = 256;

/// Buffers of one size.
#[derive(Debug)]
pub(crate) struct Pool {
    size: usize,
    /// All buffers; one that is lent is empty.
    buffers: Vec<Box<[u8]>>,
    /// Number of handles to each buffer.
    handles: Vec<u8>,
    free: Vec<u32>,
    most: usize,
}

impl Pool {
    /// A pool of at most `most` buffers of `size` bytes.
    pub(crate) const fn new(size: usize, most: usize) -> Self {
        Self {
            size,
            buffers: Vec::new(),
            handles: Vec::new(),
            free: Vec::new(),
            most,
        }
    }

    /// Takes a free buffer, which then has one handle; `None` if the pool is exhausted.
    pub(crate) fn take(&mut self) -> Option<u32> {
        if self.free.is_empty() {
            self.grow();
        }
        let slot = self.free.pop()?;
        self.handles[slot as usize] = 1;
        Some(slot)
    }

    fn grow(&mut self) {
        let have = self.handles.len();
        let more = GROUP.min(self.most.saturating_sub(have));
        let size = self.size;
        let buffers = std::iter::repeat_with(|| vec![0; size].into());
        self.buffers.extend(buffers.take(more));
        self.handles.resize(have + more, 0);
        let slots = (have..have + more).rev();
        self.free
            .extend(slots.filter_map(|slot| u32::try_from(slot).ok()));
    }

    /// Bytes of a buffer.
    pub(crate) const fn size(&self) -> usize {
        self.size
    }

    /// The bytes of a buffer.
    pub(crate) fn bytes_mut(&mut self, slot: u32) -> &mut [u8] {
        &mut self.buffers[slot as usize]
    }

    /// Takes the bytes of a buffer, to be returned by [`Pool::give_back`].
    pub(crate) fn lend(&mut self, slot: u32) -> Box<[u8]> {
        std::mem::take(&mut self.buffers[slot as usize])
    }

    /// Returns the bytes of a buffer.
    pub(crate) fn give_back(&mut self, slot: u32, buffer: Box<[u8]>) {
        self.buffers[slot as usize] = buffer;
    }

    /// The bytes of a packet and of the header in front of it, with its DSCP and ECN.
    pub(crate) fn packet(&mut self, frame: &Frame) -> &[u8] {
        self.packet_mut(frame)
    }

    /// The same bytes, to be changed.
    pub(crate) fn packet_mut(&mut self, frame: &Frame) -> &mut [u8] {
        let packet = &mut self.bytes_mut(frame.slot)[..frame.length()];
        if frame.is_ip {
            write_tos(&mut packet[usize::from(frame.header)..], frame.parsed.tos);
        }
        packet
    }

    /// The same bytes as they are in its buffer.
    pub(crate) fn bytes(&self, frame: &Frame) -> &[u8] {
        &self.buffers[frame.slot as usize][..frame.length()]
    }

    /// Whether a buffer has several handles.
    pub(crate) fn is_shared(&self, slot: u32) -> bool {
        self.handles[slot as usize] > 1
    }

    /// A handle was copied.
    pub(crate) fn retain(&mut self, slot: u32) {
        self.handles[slot as usize] += 1;
    }

    /// A handle is no longer used.
    pub(crate) fn release(&mut self, slot: u32) {
        let handles = &mut self.handles[slot as usize];
        *handles = handles.saturating_sub(1);
        if *handles == 0 {
            self.free.push(slot);
        }
    }

    /// Buffers in use.
    #[cfg(test)]
    pub(crate) fn used(&self) -> usize {
        self.handles.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests;
