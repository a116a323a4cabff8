//! Packet buffers: allocated in groups, reused, reference-counted.

use crate::frame::{Frame, write_tos};

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

    /// The bytes of a packet, with its DSCP and ECN.
    pub(crate) fn packet(&mut self, frame: &Frame) -> &[u8] {
        let packet = &mut self.bytes_mut(frame.slot)[..usize::from(frame.parsed.len)];
        write_tos(packet, frame.parsed.tos);
        packet
    }

    /// The bytes of a packet as they are in its buffer.
    pub(crate) fn bytes(&self, frame: &Frame) -> &[u8] {
        &self.buffers[frame.slot as usize][..usize::from(frame.parsed.len)]
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
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_free_again_after_its_last_handle() {
        let mut pool = Pool::new(16, 2);
        let (a, b) = (pool.take().expect("one"), pool.take().expect("two"));
        assert_ne!(a, b);
        assert_eq!(pool.take(), None, "two at most");
        pool.bytes_mut(a).fill(1);
        pool.bytes_mut(b).fill(2);
        assert_eq!(pool.bytes_mut(a)[15], 1);
        let lent = pool.lend(a);
        assert_eq!((pool.bytes_mut(a).len(), lent.len()), (0, 16));
        pool.give_back(a, lent);
        assert_eq!(pool.bytes_mut(a)[15], 1);
        assert!(!pool.is_shared(a));
        pool.retain(a);
        assert!(pool.is_shared(a));
        pool.release(a);
        assert_eq!((pool.take(), pool.used()), (None, 2));
        pool.release(a);
        assert_eq!((pool.take(), pool.used()), (Some(a), 2));
    }
}
