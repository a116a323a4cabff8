//! A source of datagrams and what is counted of it, wherever the datagrams travel.

use std::num::NonZeroU32;

use sojourn_apps::{
    CallRecord, DatagramConfig, DatagramKind, DatagramSource, MediaRecord, Outgoing, PingSample,
};
use sojourn_net::{Bytes, Duration, Ecn, Instant, Rng};

use crate::{FlowCounters, FlowKind, FlowRecord, FlowSample, Histogram};

/// A source of datagrams, its receiver, and what is recorded of them.
///
/// Backends move the datagrams; this counts them, so that a simulated and a live flow are counted alike.
#[derive(Debug)]
pub struct Datagrams {
    started: Instant,
    kind: DatagramKind,
    source: Box<dyn DatagramSource>,
    sent: u64,
    /// Number of the first datagram sent after the warm-up.
    first_measured: u64,
    /// Datagrams or echo replies that arrived after the warm-up, without duplicates.
    received: u64,
    /// Number of those that were sent after the warm-up, or that reply to a request sent after it.
    received_of_measured: u64,
    /// Datagrams that arrived in the current interval, without duplicates; no echo requests.
    delivered_in_interval: u64,
    /// Payload of media that arrived after the warm-up and in the current interval; other payloads are all alike.
    media_bytes: u64,
    media_bytes_in_interval: u64,
    /// Of datagrams sent after the warm-up.
    one_way_delay: Histogram,
    series: Vec<FlowSample>,
    /// Target bit rate of media at each sample, in kbit/s.
    targets: Vec<u32>,
}

impl Datagrams {
    /// The flow of a configuration that starts at `now`.
    pub fn new(now: Instant, config: &dyn DatagramConfig, rng: &Rng) -> Self {
        Self {
            started: now,
            kind: config.kind(),
            source: config.build(now, rng),
            sent: 0,
            first_measured: 0,
            received: 0,
            received_of_measured: 0,
            delivered_in_interval: 0,
            media_bytes: 0,
            media_bytes_in_interval: 0,
            one_way_delay: Histogram::default(),
            series: Vec::new(),
            targets: Vec::new(),
        }
    }

    /// What its datagrams are.
    #[inline]
    pub const fn kind(&self) -> DatagramKind {
        self.kind
    }

    /// Datagrams sent since the start.
    pub const fn sent(&self) -> u64 {
        self.sent
    }

    /// Number of the first datagram sent after the warm-up.
    pub const fn first_measured(&self) -> u64 {
        self.first_measured
    }

    /// Sends a datagram at `now`: its number, and when the next one is due by the clock.
    #[inline]
    pub fn send(&mut self, now: Instant) -> (u32, Instant) {
        let number = u32::try_from(self.sent).unwrap_or(u32::MAX);
        self.sent += 1;
        (number, self.source.send(now))
    }

    /// When the next datagram is due if replies pace them; `None`: the clock does.
    #[inline]
    pub fn paced_by_replies(&self) -> Option<Instant> {
        self.source.due()
    }

    /// A datagram has arrived, or the reply to an echo request, so long after it was sent.
    #[inline]
    pub fn on_arrival(&mut self, number: u32, elapsed: Duration) {
        let is_new = if self.kind.is_echo() {
            self.source.on_reply(number, elapsed)
        } else {
            self.source.on_arrival(number, elapsed)
        };
        if is_new {
            self.count(number, elapsed);
        }
    }

    /// The datagram of media that may be sent now; `None`: none may.
    pub fn outgoing(&mut self, now: Instant) -> Option<Outgoing> {
        self.source.outgoing(now)
    }

    /// A datagram of media has arrived. Returns the number and the payload of the report that its receiver sends.
    pub fn on_media(
        &mut self,
        now: Instant,
        (number, payload): (u32, u64),
        elapsed: Duration,
        ecn: Ecn,
    ) -> Option<(u32, Bytes)> {
        if self.source.on_packet(now, number, elapsed, ecn) {
            self.media_bytes += payload;
            self.media_bytes_in_interval += payload;
            self.count(number, elapsed);
        }
        self.source.report()
    }

    /// A report on media has reached the sender.
    pub fn on_report(&mut self, now: Instant, number: u32) {
        self.source.on_report(now, number);
    }

    /// Counts a new arrival.
    #[inline]
    fn count(&mut self, number: u32, elapsed: Duration) {
        if !self.kind.is_echo() {
            self.delivered_in_interval += 1;
        }
        self.received += 1;
        // Of what was sent before, the delay belongs to the warm-up, as that of a ping does.
        if u64::from(number) >= self.first_measured {
            self.received_of_measured += 1;
            if !self.kind.is_echo() {
                self.one_way_delay.record(elapsed.as_nanos());
            }
        }
    }

    /// An interval of the series ends.
    pub fn sample(&mut self, at: Instant) {
        let payload = match self.kind {
            DatagramKind::Udp(payload) => payload,
            DatagramKind::Media(_) => return self.sample_media(at),
            DatagramKind::UdpEcho(_) | DatagramKind::IcmpEcho => return,
        };
        let delivered = std::mem::take(&mut self.delivered_in_interval);
        let bytes = delivered * payload.0;
        self.series.push(FlowSample::without_connection(at, bytes));
    }

    fn sample_media(&mut self, at: Instant) {
        let Some(state) = self.source.media_state() else {
            return;
        };
        self.series.push(FlowSample {
            at,
            delivered_bytes: std::mem::take(&mut self.media_bytes_in_interval),
            cwnd: state.window_packets.and_then(NonZeroU32::new),
            ssthresh: None,
            srtt: state.srtt,
            in_flight: state.in_flight_packets,
            receive_window: None,
        });
        self.targets.push(state.target_kbit_per_s);
    }

    /// The warm-up has ended.
    pub fn begin_measuring(&mut self) {
        self.source.begin_measuring();
        self.media_bytes = 0;
        self.first_measured = self.sent;
        self.received = 0;
        self.received_of_measured = 0;
        self.one_way_delay = Histogram::default();
    }

    /// The record of a call by `end`; `None` for other traffic.
    pub fn call(&self, end: Instant) -> Option<CallRecord> {
        let from = u32::try_from(self.first_measured).unwrap_or(u32::MAX);
        self.source.call(from, end)
    }

    /// The record of a media flow; `None` for other traffic.
    pub fn media(&self) -> Option<MediaRecord> {
        let from = u32::try_from(self.first_measured).unwrap_or(u32::MAX);
        self.source.media(from)
    }

    /// The series so far.
    pub fn series(&self) -> &[FlowSample] {
        &self.series
    }

    /// The echo requests so far; empty for other traffic.
    pub fn pings(&self) -> &[PingSample] {
        self.source.requests()
    }

    /// The record; the network knows which datagrams were lost.
    pub fn record(self) -> FlowRecord {
        let delivered_bytes = match self.kind {
            DatagramKind::Udp(payload) => self.received * payload.0,
            DatagramKind::Media(_) => self.media_bytes,
            DatagramKind::UdpEcho(_) | DatagramKind::IcmpEcho => 0,
        };
        let one_way = !self.kind.is_echo();
        let sent = self.sent - self.first_measured;
        FlowRecord {
            started: Some(self.started),
            series: self.series,
            totals: FlowCounters {
                delivered_bytes,
                sent_packets: sent,
                received_packets: self.received,
                ..FlowCounters::default()
            },
            // A network may deliver a datagram late that an earlier run of the same port sent.
            missing_packets: Some(sent.saturating_sub(self.received_of_measured)),
            one_way_delay: one_way.then(|| Box::new(self.one_way_delay)),
            pings: self.source.into_requests(),
            targets: self.targets,
            ..FlowRecord::blank(FlowKind::of_datagrams(self.kind))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_apps::{Phase, PingConfig, PingPace, Spacing, UdpConfig};
    use sojourn_net::{Bytes, Rate};

    #[test]
    fn a_reply_after_the_warm_up_counts_and_only_later_requests_may_be_missing() {
        let config = PingConfig {
            pace: PingPace::Every {
                interval: Duration::from_millis(10),
                phase: Phase::Fixed(Duration::ZERO),
            },
            payload: Some(Bytes(1)),
        };
        let mut ping = Datagrams::new(Instant::ZERO, &config, &Rng::new(1));
        let early = ping.send(Instant::ZERO).0;
        ping.begin_measuring();
        let late = [(); 2].map(|()| ping.send(Instant::ZERO).0);
        for number in [early, late[1], late[1]] {
            ping.on_arrival(number, Duration::from_millis(3));
        }
        let record = ping.record();
        let totals = record.totals;
        // The reply to the early one arrives after the warm-up.
        assert_eq!((totals.sent_packets, totals.received_packets), (2, 2));
        assert_eq!(record.missing_packets, Some(1));
        assert_eq!((totals.delivered_bytes, record.pings.len()), (0, 3));
        assert!(record.one_way_delay.is_none() && record.series.is_empty());
    }

    #[test]
    fn all_that_arrives_after_the_warm_up_counts_once_as_packet_and_as_goodput() {
        let config = UdpConfig {
            phase: Phase::Fixed(Duration::ZERO),
            rate: Rate::mbit(1),
            payload: Bytes(1_000),
            spacing: Spacing::CONSTANT,
        };
        let mut udp = Datagrams::new(Instant::ZERO, &config, &Rng::new(1));
        let early: Vec<_> = (0..3).map(|_| udp.send(Instant::ZERO).0).collect();
        udp.begin_measuring();
        let late: Vec<_> = (0..100).map(|_| udp.send(Instant::ZERO).0).collect();
        for &number in &early {
            udp.on_arrival(number, Duration::from_secs(2));
        }
        for &number in late[..90].iter().chain(&late[..10]) {
            udp.on_arrival(number, Duration::from_millis(5));
        }
        udp.sample(Instant::ZERO);
        let record = udp.record();
        let totals = record.totals;
        assert_eq!((totals.sent_packets, totals.received_packets), (100, 93));
        assert_eq!(totals.delivered_bytes, 93 * 1_000);
        assert_eq!(record.series[0].delivered_bytes, 93 * 1_000);
        // Of the hundred; those from before the warm-up do not make up for them.
        assert_eq!(record.missing_packets, Some(10));
        // The early ones waited in the warm-up.
        let delays = record.one_way_delay.expect("datagrams have one");
        assert_eq!((delays.count(), delays.max()), (90, Some(5_000_000)));
    }
}
