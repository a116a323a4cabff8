//! Data that the application has written, and the peer's window for it.

use crate::segment::{headers, whole_segments};
use crate::sender::params::BurstLimits;
use sojourn_net::{Instant, IpVersion};

/// Whether the application has closed its side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fin {
    Open,
    Wanted,
    Sent,
}

/// Data that is written and not sent, and how much the peer accepts.
#[derive(Clone, Debug)]
pub(crate) struct SendBuffer {
    /// Bytes written and not sent.
    unsent: u64,
    /// When a segment was last sent.
    last_sent: Instant,
    /// Right edge of the peer's window, in bytes beyond those acknowledged.
    peer_window: u32,
    /// Bytes sent and not acknowledged.
    bytes_in_flight: u32,
    /// Segments that leave together.
    burst: u16,
    /// Payload of a full-sized segment.
    mss: u16,
    /// Bounds of `burst`.
    limits: BurstLimits,
    fin: Fin,
    /// The version of IP below the segments.
    ip: IpVersion,
}

impl SendBuffer {
    pub(crate) const fn new(ip: IpVersion, mss: u16, limits: BurstLimits) -> Self {
        Self {
            unsent: 0,
            last_sent: Instant::ZERO,
            peer_window: 0,
            bytes_in_flight: 0,
            burst: 0,
            mss,
            limits,
            fin: Fin::Open,
            ip,
        }
    }

    /// Bytes of the headers of a segment.
    pub(crate) fn headers(&self) -> u64 {
        headers(self.ip).into()
    }

    pub(crate) const fn write(&mut self, bytes: u64) {
        self.unsent = self.unsent.saturating_add(bytes);
    }

    /// The last segment is to carry the FIN.
    pub(crate) fn close(&mut self) {
        if self.fin == Fin::Open {
            self.fin = Fin::Wanted;
        }
    }

    #[inline]
    pub(crate) const fn unsent(&self) -> u64 {
        self.unsent
    }

    /// Number of segments needed for the unsent data; `u32::MAX`, more than any window holds, for 2^32 bytes or more.
    #[inline]
    pub(crate) fn unsent_segments(&self) -> u32 {
        match u32::try_from(self.unsent) {
            Ok(0) => 0,
            Ok(bytes) => 1 + whole_segments(bytes - 1, self.mss.into()),
            Err(_) => u32::MAX,
        }
    }

    /// Whether there is data or a FIN to send.
    #[inline]
    pub(crate) fn has_pending(&self) -> bool {
        self.unsent > 0 || self.fin == Fin::Wanted
    }

    /// Whether the FIN is to be sent and all data is.
    #[inline]
    pub(crate) fn is_fin_due(&self) -> bool {
        self.unsent == 0 && self.fin == Fin::Wanted
    }

    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        self.fin != Fin::Open
    }

    pub(crate) const fn on_fin_sent(&mut self) {
        self.fin = Fin::Sent;
    }

    #[inline]
    pub(crate) fn is_fin_sent(&self) -> bool {
        self.fin == Fin::Sent
    }

    /// Takes the payload of the next segment; returns its length, and whether nothing is left.
    #[inline]
    pub(crate) fn take_segment(&mut self) -> (u16, bool) {
        let len = u16::try_from(self.unsent).map_or(self.mss, |unsent| unsent.min(self.mss));
        self.unsent -= u64::from(len);
        (len, self.unsent == 0)
    }

    /// Takes the payload of `segments` full segments, after which something is left; returns their bytes. `None`:
    /// there is not as much.
    #[inline]
    pub(crate) fn take_full(&mut self, segments: u32) -> Option<u32> {
        let bytes = segments * u32::from(self.mss);
        if self.unsent <= u64::from(bytes) {
            return None;
        }
        self.unsent -= u64::from(bytes);
        Some(bytes)
    }

    /// Payload of a full-sized segment.
    #[inline]
    pub(crate) const fn mss(&self) -> u16 {
        self.mss
    }

    /// Segments that leave together, at most.
    #[inline]
    pub(crate) const fn burst(&self) -> u32 {
        self.burst as u32
    }

    /// Bounds of the segments that leave together.
    pub(crate) const fn limits(&self) -> BurstLimits {
        self.limits
    }

    #[inline]
    pub(crate) const fn set_burst(&mut self, segments: u32) {
        // 64 kB have 510 of the smallest segments.
        let [low, high, ..] = segments.to_le_bytes();
        self.burst = u16::from_le_bytes([low, high]);
    }

    #[inline]
    pub(crate) const fn last_sent(&self) -> Instant {
        self.last_sent
    }

    #[inline]
    pub(crate) const fn set_last_sent(&mut self, now: Instant) {
        self.last_sent = now;
    }

    #[inline]
    pub(crate) const fn peer_window(&self) -> u32 {
        self.peer_window
    }

    /// Whether the peer's window is smaller than `segments` full segments.
    #[inline]
    pub(crate) fn peer_window_is_below(&self, segments: u32) -> bool {
        u64::from(self.peer_window) < u64::from(segments) * u64::from(self.mss)
    }

    #[inline]
    pub(crate) const fn set_peer_window(&mut self, bytes: u32) {
        self.peer_window = bytes;
    }

    #[inline]
    pub(crate) const fn on_sent(&mut self, bytes: u32) {
        self.bytes_in_flight += bytes;
    }

    #[inline]
    pub(crate) const fn on_acked(&mut self, bytes: u32) {
        self.bytes_in_flight -= bytes;
    }

    /// Full segments that the peer's window has room for.
    #[inline]
    pub(crate) fn segments_allowed(&self) -> u32 {
        whole_segments(self.room(), self.mss.into())
    }

    /// Whether there is data and the peer's window has room for a full segment.
    #[inline]
    pub(crate) fn may_send(&self) -> bool {
        self.unsent > 0 && self.has_room()
    }

    /// Whether the peer's window has room for a segment.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.room() >= u32::from(self.mss)
    }

    /// Bytes that the peer's window has room for.
    #[inline]
    const fn room(&self) -> u32 {
        self.peer_window.saturating_sub(self.bytes_in_flight)
    }
}
