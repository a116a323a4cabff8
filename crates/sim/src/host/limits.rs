//! For how long each cause has limited the sender of data of a connection.

use sojourn_net::{Duration, Instant};
use sojourn_records::FlowCounters;
use sojourn_transport::Limit;

/// A clock per cause. It counts when the cause changes and when it is read, not per packet.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LimitClock {
    /// `None`: the connection is not established, or over.
    limit: Option<Limit>,
    since: Instant,
    /// For how long packets of the flow had waited in queues at `since`.
    waited: Duration,
    /// By cause; that of the congestion window includes `link`.
    times: [Duration; Limit::COUNT],
    /// Of the time of the congestion window, that in which packets of the flow waited in queues.
    link: Duration,
}

impl LimitClock {
    /// Whether this is the cause that has been counted since the last call of [`LimitClock::set`].
    #[inline]
    pub(super) fn is(&self, limit: Limit) -> bool {
        self.limit == Some(limit)
    }

    /// Counts up to `now`, and `limit` from now on. Packets of the flow have `waited` in queues in all.
    #[inline]
    pub(super) fn set(&mut self, now: Instant, limit: Option<Limit>, waited: Duration) {
        if let Some(cause) = self.limit {
            let time = now.since(self.since);
            self.times[cause as usize] += time;
            if cause == Limit::CongestionWindow {
                self.link += waited.saturating_sub(self.waited).min(time);
            }
        }
        (self.limit, self.since, self.waited) = (limit, now, waited);
    }

    /// Stores the times in the counters of the flow.
    pub(super) fn store(&self, counters: &mut FlowCounters) {
        let time = |cause: Limit| self.times[cause as usize].as_nanos();
        counters.limited_loss = time(Limit::Recovery);
        counters.limited_application = time(Limit::Application);
        counters.limited_receive_window = time(Limit::ReceiveWindow);
        counters.limited_pacing = time(Limit::Pacing);
        counters.limited_link = self.link.as_nanos();
        counters.limited_cwnd = time(Limit::CongestionWindow) - self.link.as_nanos();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_in_queues_divides_that_of_the_window() {
        let at = Instant::from_millis;
        let waited = Duration::from_millis;
        let mut clock = LimitClock::default();
        // Before the connection is established, nothing counts.
        clock.set(at(10), Some(Limit::CongestionWindow), waited(3));
        clock.set(at(30), Some(Limit::Application), waited(8));
        clock.set(at(50), Some(Limit::CongestionWindow), waited(20));
        clock.set(at(60), Some(Limit::CongestionWindow), waited(30));
        clock.set(at(64), None, waited(30));
        clock.set(at(90), None, waited(40));
        let mut counters = FlowCounters::default();
        clock.store(&mut counters);
        let ms = [
            counters.limited_link,
            counters.limited_cwnd,
            counters.limited_application,
            counters.limited_loss + counters.limited_receive_window + counters.limited_pacing,
        ]
        .map(|nanos| nanos / 1_000_000);
        assert_eq!(ms, [15, 19, 20, 0]);
    }
}
