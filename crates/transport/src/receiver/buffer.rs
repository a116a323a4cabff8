//! A finite socket buffer: the memory that data takes, and the window that it permits.
//!
//! # Source
//!
//! Linux 6.1, from facts about `tcp_input.c`, `tcp_output.c` and `tcp.c`: `tcp_rcv_space_adjust`, `tcp_grow_window`,
//! `__tcp_select_window`, `tcp_select_window`, `tcp_cleanup_rbuf`, with `tcp_adv_win_scale` 1; dynamic right-sizing is of
//! Fisk and Feng, "Dynamic Right-Sizing in TCP" (2001). RFC 9293 §3.8.6: the window never shrinks, and small windows
//! are not offered.
//!
//! # Law
//!
//! Half of the buffer is for data, the other half for its overhead: `window <= (size - memory) / 2`.
//!
//! ```text
//! memory        payload + 1280 bytes for each 17 segments that wait, in order or not; 17 that arrived in order are
//!               freed when the last of them is read
//! fixed         size = 2 (window + 1460): a segment is reserved
//! tuned         size = min(maximum, 128 KiB) first; each round trip with more data than any before,
//!               c bytes instead of s, raises it to (2c + 16 segments) (1 + 2 (c - s) / s), in memory
//! slow start    the window starts with 64 kB or the buffer, and grows by two segments for each that arrives
//! zero          less than a segment, or than 1/16 of the space, is offered as nothing
//! update        a read is announced when it doubles the window
//! ```
//!
//! # Differences from Linux
//!
//! | here | Linux | effect |
//! |---|---|---|
//! | packets arrive in page fragments and share a description | as the driver has it | a driver that takes more memory per packet closes the window earlier |
//! | the overhead of a segment when tuning is that of a distribution's kernel, 2996 bytes | depends on what is compiled in | 2 % of an intermediate size |
//! | `tcp_mem` is never short | memory pressure | – |

use crate::reception::{ReceiveBuffer, ReceiverParams};

/// The default of `tcp_rmem`: the first size of a tuned buffer.
const FIRST: i64 = 131_072;
/// The default of `rmem_max`, which window scaling takes into account.
const RMEM_MAX: i64 = 212_992;
/// Bytes of a packet beside its payload.
const OVERHEAD: u64 = 1_280;
/// Segments that wait together share the overhead of one (`MAX_SKB_FRAGS`).
const SHARED_BY: u64 = 17;
/// Memory that tuning expects of a full segment with the largest payload.
const EXPECTED: u64 = 2_996;
/// Bytes of the timestamps, which the announced MSS includes.
const TIMESTAMPS: u16 = 12;
/// Largest window of a SYN-ACK, which is not scaled.
const UNSCALED: i64 = 65_535;
/// The buffer of a window of 2^30 bytes.
const MOST: i64 = 1 << 31;

/// The socket buffer of a connection.
#[derive(Clone, Debug)]
pub(super) struct Buffer {
    /// Bytes of memory (`sk_rcvbuf`).
    size: i64,
    /// The largest size; `None`: it does not grow.
    most: Option<i64>,
    /// The largest window that the size permits (`window_clamp`).
    clamp: i64,
    /// The window that slow start permits (`rcv_ssthresh`).
    threshold: i64,
    /// The window of the last acknowledgement (`rcv_wnd`).
    offered: i64,
    /// Its right edge, in bytes of the stream.
    edge: u64,
    /// Bytes of the stream that have arrived in order, and that the application has read.
    arrived: u64,
    read: u64,
    /// Where the oldest memory that is not free begins in the stream.
    kept: u64,
    /// Window scale.
    scale: u32,
    mss: u16,
}

/// A window to offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Offer {
    pub(super) window: u32,
    /// Less than half of the space is free: acknowledgements are no longer immediate.
    pub(super) is_short: bool,
}

impl Buffer {
    /// The buffer of a connection with segments of `mss` bytes.
    pub(super) fn new(params: &ReceiverParams, mss: u16) -> Self {
        let segment = i64::from(mss + TIMESTAMPS);
        let (size, most) = match params.buffer {
            ReceiveBuffer::Fixed(window) => (2 * (i64::from(window) + segment), None),
            ReceiveBuffer::Tuned(most) => (FIRST.min(i64::from(most)), Some(i64::from(most))),
            ReceiveBuffer::Unlimited => (FIRST, Some(MOST)),
        };
        let space = window_of(size);
        let whole = if space > i64::from(mss) {
            space - space % i64::from(mss)
        } else {
            space
        };
        let scaled = most.map_or(space, |most| most.max(RMEM_MAX).max(space));
        let first = whole.min(UNSCALED);
        // A segment is reserved, so that one that is not read yet does not make the window smaller.
        let clamp = (space - segment).max(2 * segment).min(space);
        Self {
            size,
            most,
            clamp,
            threshold: first.min(clamp),
            offered: first,
            edge: u64::try_from(first).unwrap_or(0),
            arrived: 0,
            read: 0,
            kept: 0,
            scale: scaled.max(1).ilog2().saturating_sub(15).min(14),
            mss,
        }
    }

    /// Bytes that have arrived and are not read.
    pub(super) const fn unread(&self) -> u64 {
        self.arrived - self.read
    }

    /// The window of the last acknowledgement.
    pub(super) fn offered(&self) -> u32 {
        u32::try_from(self.offered).unwrap_or(u32::MAX)
    }

    /// The window of the SYN-ACK.
    pub(super) fn first(&self) -> u32 {
        u32::try_from(self.offered.min(UNSCALED)).unwrap_or(u32::MAX)
    }

    /// What the last acknowledgement permits the peer to send (`tcp_receive_window`).
    fn left(&self) -> i64 {
        i64::try_from(self.edge.saturating_sub(self.arrived)).unwrap_or(i64::MAX)
    }

    /// Space for data beside what waits: `held` bytes of it out of order.
    fn free(&self, held: u64) -> i64 {
        let queued = self.arrived - self.kept;
        let memory = i64::try_from(memory(queued, self.mss) + memory(held, self.mss));
        window_of(self.size - memory.unwrap_or(i64::MAX / 2))
    }

    /// `bytes` arrived in order.
    pub(super) const fn queue(&mut self, bytes: u64) {
        self.arrived += bytes;
    }

    /// The application reads `bytes`.
    pub(super) const fn take(&mut self, bytes: u64) {
        let unit = SHARED_BY * self.mss as u64;
        self.read += bytes;
        self.kept = if self.read == self.arrived {
            self.read
        } else {
            self.read - (self.read - self.kept) % unit
        };
    }

    /// A segment of `len` bytes arrived, and is counted already: slow start of the window. Returns whether it grew.
    pub(super) fn grow(&mut self, len: u16, held: u64) -> bool {
        let room = self.clamp.min(self.free(held)) - self.threshold;
        if len < 128 || room <= 0 {
            return false;
        }
        self.threshold += room.min(2 * i64::from(self.mss + TIMESTAMPS));
        true
    }

    /// The application took `taken` bytes in a round trip instead of at most `best` before, and wants as much window as
    /// `wanted`.
    pub(super) fn tune(&mut self, wanted: u64) {
        let Some(most) = self.most else {
            return;
        };
        let segments = wanted / u64::from(self.mss + TIMESTAMPS);
        let expected = EXPECTED * u64::from(self.mss + TIMESTAMPS) / 1_460;
        let size = i64::try_from(segments.saturating_mul(expected)).unwrap_or(most);
        let size = size.min(most);
        if size > self.size {
            self.size = size;
            self.clamp = window_of(size);
        }
    }

    /// The window that the free space permits now (`__tcp_select_window`); the peer's segments have `rcv_mss` bytes.
    pub(super) fn select(&self, rcv_mss: u16, held: u64) -> Offer {
        let space = window_of(self.size);
        let full = self.clamp.min(space);
        let mss = i64::from(rcv_mss).min(full);
        let mut free = self.free(held);
        let is_short = free < full / 2;
        if is_short {
            free &= -(1 << self.scale);
            if free < space / 16 || free < mss {
                return Offer {
                    window: 0,
                    is_short,
                };
            }
        }
        free = free.min(self.threshold);
        let window = if self.scale > 0 {
            self.aligned(free)
        } else if self.offered <= free - mss || self.offered > free {
            free - free % mss
        } else if mss == full && free > self.offered + full / 2 {
            free
        } else {
            self.offered
        };
        Offer {
            window: u32::try_from(window).unwrap_or(0),
            is_short,
        }
    }

    /// Offers the window of the next acknowledgement; the edge never moves back (`tcp_select_window`).
    pub(super) fn offer(&mut self, rcv_mss: u16, held: u64) -> Offer {
        let mut offer = self.select(rcv_mss, held);
        let mut window = i64::from(offer.window);
        if window < self.left() {
            window = self.aligned(self.left());
        }
        self.offered = window;
        self.edge = self.arrived + u64::try_from(window).unwrap_or(0);
        let scaled = window.min(UNSCALED << self.scale) & -(1 << self.scale);
        offer.window = u32::try_from(scaled).unwrap_or(0);
        offer
    }

    /// Whether an acknowledgement now would offer no less than the last one did.
    pub(super) fn holds(&self, rcv_mss: u16, held: u64) -> bool {
        self.unread() == 0 || i64::from(self.select(rcv_mss, held).window) >= self.offered
    }

    /// Whether a read has made so much room that the peer must know: at least twice the window that is left.
    pub(super) fn has_doubled(&self, rcv_mss: u16, held: u64) -> bool {
        let left = self.left();
        if 2 * left > self.clamp {
            return false;
        }
        let window = i64::from(self.select(rcv_mss, held).window);
        window > 0 && window >= 2 * left
    }

    /// Rounds up to what a scaled window can express.
    const fn aligned(&self, window: i64) -> i64 {
        let unit = 1 << self.scale;
        (window + unit - 1) & -unit
    }
}

/// The share of memory that is for data (`tcp_adv_win_scale` 1).
const fn window_of(memory: i64) -> i64 {
    memory - (memory >> 1)
}

/// Memory of `bytes` that wait.
fn memory(bytes: u64, mss: u16) -> u64 {
    let segments = bytes.div_ceil(u64::from(mss));
    bytes + OVERHEAD * segments.div_ceil(SHARED_BY)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u16 = 1_448;

    fn buffer(buffer: ReceiveBuffer) -> Buffer {
        let params = ReceiverParams {
            buffer,
            ..ReceiverParams::default()
        };
        Buffer::new(&params, MSS)
    }

    #[test]
    fn a_fixed_window_is_what_is_offered() {
        for window in [16_384, 65_536, 262_144] {
            let mut buffer = buffer(ReceiveBuffer::Fixed(window));
            // The application reads each segment at once.
            for _ in 0..200 {
                buffer.queue(MSS.into());
                buffer.grow(MSS, 0);
                buffer.take(MSS.into());
            }
            let offered = buffer.offer(MSS, 0).window;
            // Without window scaling, in whole segments.
            let want = if window < 32_768 {
                window - window % 1_448
            } else {
                window
            };
            assert_eq!(offered, want);
        }
    }

    #[test]
    fn a_tuned_buffer_offers_half_of_its_maximum() {
        let mut buffer = buffer(ReceiveBuffer::Tuned(262_144));
        assert_eq!(buffer.first(), 65_160);
        buffer.tune(1 << 30);
        for _ in 0..200 {
            buffer.queue(MSS.into());
            buffer.grow(MSS, 0);
            buffer.take(MSS.into());
        }
        // One segment waits when the window grows.
        let want: u32 = (262_144 - 1_280 - 1_448) / 2;
        // The window scale is 3.
        assert_eq!(buffer.offer(MSS, 0).window, want.next_multiple_of(8));
    }

    #[test]
    fn a_pausing_reader_closes_the_window_as_the_kernel_does() {
        // Measured on Linux 6.1.192: SO_RCVBUF 65460, 81 segments unread, 123688 bytes of memory.
        let mut buffer = buffer(ReceiveBuffer::Fixed(64_000));
        assert_eq!(buffer.size, 130_920);
        buffer.queue(81 * 1_448);
        assert_eq!(memory(buffer.unread(), MSS), 123_688);
        assert_eq!(buffer.select(MSS, 0).window, 0);
    }

    #[test]
    fn memory_is_freed_when_the_last_segment_that_shares_it_is_read() {
        let mut buffer = buffer(ReceiveBuffer::Fixed(65_536));
        buffer.queue(40 * 1_448);
        let full = buffer.free(0);
        buffer.take(16 * 1_448);
        assert_eq!(buffer.free(0), full);
        buffer.take(1_448);
        assert_eq!(buffer.free(0), full + (17 * 724 + 640));
        buffer.take(23 * 1_448);
        assert_eq!(buffer.free(0), window_of(buffer.size));
    }

    #[test]
    fn the_right_edge_never_moves_back() {
        let mut buffer = buffer(ReceiveBuffer::Fixed(65_536));
        let mut edge = buffer.edge;
        for _ in 0..200 {
            if buffer.left() < i64::from(MSS) {
                break;
            }
            buffer.queue(MSS.into());
            buffer.offer(MSS, 0);
            assert!(buffer.edge >= edge);
            edge = buffer.edge;
        }
        assert!(buffer.left() < i64::from(MSS));
    }

    #[test]
    fn a_read_is_announced_when_it_doubles_the_window() {
        let mut buffer = buffer(ReceiveBuffer::Fixed(65_536));
        buffer.queue(75_000);
        buffer.offer(MSS, 0);
        let left = buffer.left();
        assert!(!buffer.has_doubled(MSS, 0), "{left}");
        buffer.take(75_000);
        assert!(buffer.has_doubled(MSS, 0));
    }
}
