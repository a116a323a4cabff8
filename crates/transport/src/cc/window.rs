//! The congestion window that a controller changes.

/// The slow-start threshold of a connection: unset until the first congestion, unless the control sets an
/// initial one.
///
/// Kept as a number of segments, so that a comparison with the window costs one instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Threshold(u32);

impl Threshold {
    /// The threshold of a connection that has met no congestion (Linux: `TCP_INFINITE_SSTHRESH`).
    pub const UNSET: Self = Self(0x7fff_ffff);

    /// A threshold of `segments`.
    pub const fn of_segments(segments: u32) -> Self {
        Self(segments)
    }

    /// The threshold in segments; `None` while it is unset.
    pub const fn segments(self) -> Option<u32> {
        if self.is_set() { Some(self.0) } else { None }
    }

    /// The threshold in segments; while it is unset, more than any window.
    #[inline]
    pub(crate) const fn limit(self) -> u32 {
        self.0
    }

    /// Whether the connection has met congestion, or left slow start otherwise.
    #[inline]
    pub const fn is_set(self) -> bool {
        self.0 < Self::UNSET.0
    }

    /// Raises the threshold to `segments` if it is below; an unset one stays unset.
    #[inline]
    pub(crate) fn raise_to(&mut self, segments: u32) {
        self.0 = self.0.max(segments);
    }

    /// Lowers the threshold to `segments` if it is above.
    #[inline]
    pub(crate) fn lower_to(&mut self, segments: u32) {
        self.0 = self.0.min(segments);
    }
}

/// The congestion window, in whole segments of `mss` bytes.
///
/// [`Window::bytes`] and [`Window::set_bytes`] are the interface in bytes. The fields are Linux's
/// (`snd_cwnd`, `snd_ssthresh`, `snd_cwnd_cnt`): a controller that follows a Linux module computes in
/// segments, and no rounding lies between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    pub(crate) cwnd: u32,
    pub(crate) ssthresh: Threshold,
    /// Segments acknowledged towards the next increase in congestion avoidance.
    pub(crate) cnt: u32,
    mss: u32,
}

impl Window {
    /// A window of `segments` segments of `mss` bytes that has met no congestion.
    pub const fn new(segments: u32, mss: u32) -> Self {
        Self {
            cwnd: segments,
            ssthresh: Threshold::UNSET,
            cnt: 0,
            mss,
        }
    }

    /// The window with another slow-start threshold.
    pub(crate) const fn with_ssthresh(self, ssthresh: Threshold) -> Self {
        Self { ssthresh, ..self }
    }

    /// Payload bytes of a full-sized segment, or of a full-sized datagram.
    #[inline]
    pub const fn mss(&self) -> u32 {
        self.mss
    }

    /// Full-sized segments have `mss` bytes from now on; the window holds as many of them as before.
    pub(crate) const fn set_mss(&mut self, mss: u32) {
        self.mss = mss;
    }

    /// The window in bytes.
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.bytes_of(self.cwnd)
    }

    /// Sets the window to the whole segments in `bytes`.
    pub fn set_bytes(&mut self, bytes: u64) {
        self.cwnd = self.segments_of(bytes);
    }

    /// The slow-start threshold in bytes; `None` while it is unset.
    pub fn ssthresh_bytes(&self) -> Option<u64> {
        self.ssthresh.segments().map(|n| self.bytes_of(n))
    }

    /// Converts full-sized segments to bytes.
    #[inline]
    pub fn bytes_of(&self, segments: u32) -> u64 {
        u64::from(segments) * u64::from(self.mss)
    }

    /// Whole segments in `bytes`: `segments_of(bytes_of(n))` is `n`.
    #[inline]
    pub fn segments_of(&self, bytes: u64) -> u32 {
        u32::try_from(bytes / u64::from(self.mss)).unwrap_or(u32::MAX)
    }

    /// Whether the window is below the threshold.
    #[inline]
    pub const fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh.limit()
    }

    /// Slow start: one segment for each acknowledged one, up to the threshold. Returns what is
    /// left of `acked`.
    #[inline]
    pub fn slow_start(&mut self, acked: u32) -> u32 {
        let cwnd = (self.cwnd + acked).min(self.ssthresh.limit());
        let left = acked - (cwnd - self.cwnd);
        self.cwnd = cwnd;
        left
    }

    /// Additive increase: one segment for each `per` acknowledged.
    #[inline]
    pub fn additive_increase(&mut self, per: u32, acked: u32) {
        if self.cnt >= per {
            self.cnt = 0;
            self.cwnd += 1;
        }
        self.cnt += acked;
        if self.cnt >= per {
            let steps = self.cnt / per;
            self.cnt -= steps * per;
            self.cwnd += steps;
        }
    }

    /// The growth of RFC 5681: slow start up to the threshold, then one segment per window
    /// acknowledged.
    #[inline]
    pub(crate) fn grow_as_reno(&mut self, acked: u32) {
        self.grow_by(|window| window.cwnd, acked);
    }

    /// Slow start up to the threshold, then one segment per `per` acknowledged.
    #[inline]
    pub(crate) fn grow_by(&mut self, per: impl FnOnce(&Self) -> u32, acked: u32) {
        let left = if self.in_slow_start() {
            self.slow_start(acked)
        } else {
            acked
        };
        if left > 0 {
            self.additive_increase(per(self), left);
        }
    }

    /// Ends slow start at the window reached.
    #[inline]
    pub(crate) const fn end_slow_start(&mut self) {
        self.ssthresh = Threshold::of_segments(self.cwnd);
    }

    /// Raises the threshold to three quarters of the window, as Linux does when it lowers an unused
    /// window (`tcp_current_ssthresh`).
    #[inline]
    pub(crate) fn remember_three_quarters(&mut self) {
        self.ssthresh.raise_to(self.cwnd / 2 + self.cwnd / 4);
    }
}

/// Half the window in segments, 2 at least.
pub(super) fn half(window: &Window) -> u32 {
    (window.cwnd / 2).max(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_segments_round_trip() {
        for mss in [1_200, 1_448, 1_452, 9_000] {
            let mut window = Window::new(1, mss);
            for segments in [1, 2, 10, 4_096, 1 << 20, u32::MAX / 2] {
                window.set_bytes(u64::from(segments) * u64::from(mss));
                assert_eq!(window.cwnd, segments);
                assert_eq!(window.segments_of(window.bytes()), segments);
            }
            window.set_bytes(u64::from(mss) * 7 + 1);
            assert_eq!(window.cwnd, 7);
        }
    }

    #[test]
    fn an_unset_threshold_is_above_every_window_and_raising_keeps_it_unset() {
        let mut window = Window::new(1 << 30, 1_448);
        assert!(window.in_slow_start());
        assert_eq!(window.ssthresh_bytes(), None);
        window.remember_three_quarters();
        assert!(!window.ssthresh.is_set());
        window.end_slow_start();
        assert_eq!(window.ssthresh.segments(), Some(1 << 30));
        assert!(!window.in_slow_start());
    }
}
