//! The kernel memory of queued packets, which `memlimit` and `memory_limit` of Linux limit.
//!
//! # Source
//!
//! `skb->truesize` of Linux 6.1 on x86-64: the frame, 17 bytes for the alignment of its header, in units of 64
//! bytes, and the 320 bytes of `skb_shared_info` share a buffer of 512, 1024, 2048, … bytes; `sk_buff` takes 256.
//! With it, `memory_used` of `cake` is that of the kernel in all test vectors (datagrams of 64 to 1514 bytes).
//!
//! # Differences from Linux
//!
//! The length alone decides. In Linux the origin of a packet does too: many drivers receive into buffers of 2304
//! bytes whatever the length, and a TCP segment of the host itself takes 1280 bytes and its payload.

use sojourn_net::Bytes;

/// `sk_buff`.
const DESCRIPTOR: u64 = 256;
/// `skb_shared_info`.
const SHARED_INFO: u64 = 320;
/// What `sk_buff` and the frame are aligned to.
const CACHE_LINE: u64 = 64;
/// For a link header of 14 bytes that ends at a multiple of 16.
const HEADROOM: u64 = 17;

/// The memory of one packet of `size` bytes, link header included.
fn truesize(size: Bytes) -> u64 {
    let frame = (size.0.min(1 << 32) + HEADROOM).next_multiple_of(CACHE_LINE);
    DESCRIPTOR + (frame + SHARED_INFO).next_power_of_two()
}

/// The memory of all packets in a queue.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    used: u64,
    of: fn(Bytes) -> u64,
    /// The size that was asked for last, which is most often that of the next packet too, and its memory.
    last: (Bytes, u64),
}

impl Memory {
    /// Of kernel buffers.
    pub(crate) const fn of_buffers() -> Self {
        Self::counting(truesize)
    }

    /// Of the packets alone.
    pub(crate) const fn of_packets() -> Self {
        Self::counting(|size| size.0)
    }

    const fn counting(of: fn(Bytes) -> u64) -> Self {
        Self {
            used: 0,
            of,
            last: (Bytes(0), 0),
        }
    }

    /// The memory of a packet of `size` bytes.
    #[inline]
    pub(crate) fn of(&mut self, size: Bytes) -> u64 {
        if self.last.0 != size {
            self.last = (size, (self.of)(size));
        }
        self.last.1
    }

    #[inline]
    pub(crate) fn add(&mut self, size: Bytes) {
        self.used += self.of(size);
    }

    #[inline]
    pub(crate) fn remove(&mut self, size: Bytes) {
        self.used -= self.of(size);
    }

    #[inline]
    pub(crate) const fn used(&self) -> u64 {
        self.used
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_of_a_power_of_two_and_its_descriptor() {
        // Frame, 17 bytes and 320 fill 512, 1024, 2048 and 4096 bytes.
        for (size, memory) in [
            (14, 768),
            (66, 768),
            (175, 768),
            (176, 1_280),
            (687, 1_280),
            (688, 2_304),
            (1_514, 2_304),
            (1_711, 2_304),
            (1_712, 4_352),
            (9_014, 16_640),
        ] {
            assert_eq!(truesize(Bytes(size)), memory, "{size}");
        }
    }

    #[test]
    fn what_is_added_is_removed_in_any_order() {
        for mut memory in [Memory::of_buffers(), Memory::of_packets()] {
            let sizes = [1_514, 66, 66, 1_514, 600].map(Bytes);
            for size in sizes {
                memory.add(size);
            }
            assert!([3_760, 7_424].contains(&memory.used()), "{memory:?}");
            for size in sizes.into_iter().rev() {
                memory.remove(size);
            }
            assert_eq!(memory.used(), 0);
        }
    }
}
