//! For how long each cause has limited a bulk transfer, from `tcp_info`.
//!
//! The kernel counts the time in which the receive window and the send buffer limited the connection, and the time in
//! which it had data that was not acknowledged. The rest is divided by the state at the end of each interval. The
//! kernel does not know of queues: the time of the congestion window is divided by the datapath.

use sojourn_net::{Duration, Instant};
use sojourn_records::FlowCounters;

use crate::sys::TcpInfo;

/// The times since the end of the warm-up.
#[derive(Debug, Default)]
pub(super) struct Limits {
    /// Up to when they are counted, and the state then; `None`: not established yet.
    counted: Option<(Instant, TcpInfo)>,
    totals: FlowCounters,
}

impl Limits {
    /// Counts up to `now`. The connection was established at `connected`.
    pub(super) fn count(&mut self, now: Instant, connected: Option<Instant>, info: &TcpInfo) {
        let start = || connected.map(|at| (at, TcpInfo::default()));
        let Some((since, before)) = self.counted.or_else(start) else {
            return;
        };
        let time = now.saturating_since(since);
        let micros = |new: u64, old: u64| Duration::from_micros(new.saturating_sub(old));
        let window = micros(info.receive_window_us, before.receive_window_us).min(time);
        let busy = micros(info.busy_us, before.busy_us).min(time);
        let buffer = micros(info.send_buffer_us, before.send_buffer_us);
        // Without data to send or to acknowledge, or with a full send buffer.
        let idle = (time - busy + buffer).min(time - window);
        let rest = (time - window - idle).as_nanos();
        self.totals.limited_receive_window += window.as_nanos();
        self.totals.limited_application += idle.as_nanos();
        let totals = &mut self.totals;
        *match info {
            info if info.recovers => &mut totals.limited_loss,
            TcpInfo { unsent: 0, .. } => &mut totals.limited_application,
            info if info.in_flight < info.cwnd => &mut totals.limited_pacing,
            _ => &mut totals.limited_cwnd,
        } += rest;
        self.counted = Some((now.max(since), *info));
    }

    /// The warm-up is over.
    pub(super) fn begin_measuring(&mut self) {
        self.totals = FlowCounters::default();
    }

    /// The times, without those of links, which count as times of the congestion window; other counters are 0.
    pub(super) const fn totals(&self) -> FlowCounters {
        self.totals
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    #[test]
    fn the_state_at_the_end_of_an_interval_divides_what_the_kernel_does_not() {
        let mut limits = Limits::default();
        let state = |busy_ms: u64, window_ms: u64, buffer_ms: u64| TcpInfo {
            cwnd: 10,
            in_flight: 10,
            unsent: 5,
            busy_us: 1_000 * busy_ms,
            receive_window_us: 1_000 * window_ms,
            send_buffer_us: 1_000 * buffer_ms,
            ..TcpInfo::default()
        };
        // Not established.
        limits.count(at(5), None, &TcpInfo::default());
        limits.count(at(110), Some(at(10)), &state(80, 30, 10));
        // The congestion window; then loss recovery, pacing and nothing to send, 100 ms each.
        let recovers = TcpInfo {
            recovers: true,
            ..state(180, 30, 10)
        };
        limits.count(at(210), Some(at(10)), &recovers);
        let paced = TcpInfo {
            in_flight: 7,
            ..state(280, 30, 10)
        };
        limits.count(at(310), Some(at(10)), &paced);
        let done = TcpInfo {
            unsent: 0,
            ..state(380, 30, 10)
        };
        limits.count(at(410), Some(at(10)), &done);
        let totals = limits.totals();
        let ms = [
            totals.limited_loss,
            totals.limited_application,
            totals.limited_receive_window,
            totals.limited_pacing,
            totals.limited_cwnd,
        ]
        .map(|nanos| nanos / 1_000_000);
        assert_eq!(ms, [100, 130, 30, 100, 40]);
        assert_eq!(totals.limited_nanos(), 400_000_000);
        limits.begin_measuring();
        limits.count(at(500), Some(at(10)), &state(470, 120, 10));
        assert_eq!(limits.totals().limited_receive_window, 90_000_000);
        assert_eq!(limits.totals().limited_nanos(), 90_000_000);
    }
}
