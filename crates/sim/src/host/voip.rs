//! A voice: G.711 in datagrams, and what a listener gets of it.
//!
//! # Source
//!
//! ITU-T G.711 at 64 kbit/s, 20 ms a packet: 160 B and 12 B of RTP (RFC 3551), as flent's `voip` test
//! sends. What is lost in runs, and how far runs lie apart: RFC 3357.
//!
//! When the listener plays a packet, its jitter buffer decides (`playout`). What is not there by
//! then is lost to it, as what never comes. Of a call of which nothing arrives, all is lost.

use sojourn_net::{Duration, Instant};

use super::{blank, playout, since};
use crate::config::JitterBuffer;
use crate::histogram::Histogram;
use crate::packet::{Kind, Owner, Packet};
use crate::records::{AppKind, CallRecord, FlowCounters, FlowKind, FlowRecord, FlowSample};

/// Voice and RTP header of a packet.
const PAYLOAD: u16 = 172;
/// Voice in a packet.
pub(super) const FRAME: Duration = Duration::from_millis(20);

/// A call, one way.
#[derive(Debug)]
pub(crate) struct Voip {
    started: Instant,
    buffer: JitterBuffer,
    /// Of each packet, how long it took; `None`: it has not arrived.
    delays: Vec<Option<Duration>>,
    /// How many of them belong to the warm-up.
    before: usize,
    received: u64,
    sampled: u64,
    counted: FlowCounters,
    one_way_delay: Histogram,
    series: Vec<FlowSample>,
}

impl Voip {
    pub(crate) fn new(now: Instant, buffer: JitterBuffer) -> Self {
        Self {
            started: now,
            buffer,
            delays: Vec::new(),
            before: 0,
            received: 0,
            sampled: 0,
            counted: FlowCounters::default(),
            one_way_delay: Histogram::default(),
            series: Vec::new(),
        }
    }

    /// The next packet, and when the one after it is due.
    pub(crate) fn next(&mut self, owner: Owner, now: Instant) -> (Packet, Instant) {
        let number = u32::try_from(self.delays.len()).unwrap_or(u32::MAX);
        self.delays.push(None);
        let pkt = Packet::probe(owner, Kind::Udp, now, number, PAYLOAD);
        (pkt, now + FRAME)
    }

    pub(crate) fn on_arrival(&mut self, now: Instant, pkt: &Packet) {
        let delay = now.since(pkt.sent());
        if let Some(unknown @ None) = self.delays.get_mut(pkt.segment.seq as usize) {
            *unknown = Some(delay);
            self.received += 1;
            self.one_way_delay.record(delay.as_nanos());
        }
    }

    pub(crate) fn sample(&mut self, at: Instant) {
        let received = self.received - self.sampled;
        self.sampled = self.received;
        self.series.push(FlowSample {
            at,
            delivered_bytes: received * u64::from(PAYLOAD),
            cwnd: 0,
            ssthresh: None,
            srtt: None,
            in_flight: 0,
        });
    }

    pub(crate) fn begin_measuring(&mut self) {
        self.before = self.delays.len();
        self.counted = self.counters();
        self.one_way_delay = Histogram::default();
    }

    fn counters(&self) -> FlowCounters {
        FlowCounters {
            delivered_bytes: self.received * u64::from(PAYLOAD),
            sent_packets: self.delays.len() as u64,
            received_packets: self.received,
            ..FlowCounters::default()
        }
    }

    /// What the listener got of what was spoken after the warm-up and could be played by `end`.
    pub(crate) fn call(&self, end: Instant) -> CallRecord {
        let Some(waits) = playout::waits(self.buffer, self.started, &self.delays, self.before)
        else {
            return self.silence(end);
        };
        let mut call = CallRecord::default();
        let mut waited = 0;
        let mut run = 0;
        for (n, (delay, wait)) in self.delays.iter().zip(&waits).enumerate().skip(self.before) {
            if self.started + FRAME.times(n as u64) + *wait > end {
                break;
            }
            call.spoken += 1;
            waited += wait.as_nanos();
            let lost = delay.is_none();
            if !lost && delay.is_some_and(|delay| delay <= *wait) {
                run = 0;
                continue;
            }
            call.lost += u64::from(lost);
            call.late += u64::from(!lost);
            call.runs += u64::from(run == 0);
            run += 1;
            call.longest_run = call.longest_run.max(run);
        }
        call.delay = waited
            .checked_div(call.spoken)
            .map(|wait| Duration::from_nanos(wait) + FRAME);
        call
    }

    /// A call of which nothing arrived: all that was spoken before `end` is lost.
    fn silence(&self, end: Instant) -> CallRecord {
        let spoken = |&n: &usize| self.started + FRAME.times(n as u64) < end;
        let lost = (self.before..self.delays.len()).filter(spoken).count() as u64;
        CallRecord {
            spoken: lost,
            lost,
            runs: u64::from(lost > 0),
            longest_run: lost,
            ..CallRecord::default()
        }
    }

    pub(crate) fn record(self) -> FlowRecord {
        let measured = self.delays[self.before..].iter().flatten();
        let totals = FlowCounters {
            received_packets: measured.count() as u64,
            ..since(&self.counters(), &self.counted)
        };
        FlowRecord {
            started: Some(self.started),
            series: self.series,
            totals,
            one_way_delay: Some(Box::new(self.one_way_delay)),
            ..blank(FlowKind::App(AppKind::Voip))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A call whose packets took so many ms; `None`: lost.
    fn call(delays: &[Option<u64>]) -> CallRecord {
        let mut voip = Voip::new(
            Instant::ZERO,
            JitterBuffer::Fixed(Duration::from_millis(60)),
        );
        voip.delays = delays
            .iter()
            .map(|ms| ms.map(Duration::from_millis))
            .collect();
        voip.call(Instant::from_millis(10_000))
    }

    #[test]
    fn what_comes_after_its_time_is_lost_to_the_listener() {
        let heard = call(&[Some(30), Some(90), Some(91), None, Some(30), None]);
        let wanted = CallRecord {
            spoken: 6,
            lost: 2,
            late: 1,
            runs: 2,
            longest_run: 2,
            delay: Some(Duration::from_millis(110)),
        };
        assert_eq!(heard, wanted);
    }

    #[test]
    fn what_could_not_be_played_within_the_run_does_not_count() {
        // Spoken every 20 ms and played 90 ms later: the last four of 500 would be too late.
        let heard = call(&vec![Some(30); 500]);
        assert_eq!((heard.spoken, heard.lost), (496, 0));
    }

    #[test]
    fn a_call_of_which_nothing_arrives_is_lost() {
        let silent = CallRecord {
            spoken: 2,
            lost: 2,
            runs: 1,
            longest_run: 2,
            ..CallRecord::default()
        };
        assert_eq!(call(&[None, None]), silent);
        assert_eq!(call(&[]), CallRecord::default());
    }
}
