//! A one-way voice call over UDP: G.711, and the packets that the receiver can play.
//!
//! # Source
//!
//! ITU-T G.711 at 64 kbit/s, 20 ms per packet: 160 B and 12 B of RTP (RFC 3551), as flent's `voip`
//! test sends. Loss runs and the distance between them: RFC 3357.
//!
//! The jitter buffer decides when the receiver plays a packet (`playout`). A packet that has not
//! arrived by then counts as late, one that never arrives as lost. If nothing arrives, all is lost.

use sojourn_net::{Bytes, Duration, Instant, Rng};

use crate::datagrams::{DatagramConfig, DatagramKind, DatagramSource};
use crate::playout::{self, FRAME, JitterBuffer};
use crate::report::CallRecord;
use crate::wait::LONGEST;

/// Payload of a packet: speech and RTP header.
const PAYLOAD: Bytes = Bytes(172);

/// A call, one way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VoipConfig {
    /// How long the listener waits for a packet.
    pub jitter_buffer: JitterBuffer,
}

impl DatagramConfig for VoipConfig {
    fn kind(&self) -> DatagramKind {
        DatagramKind::Udp(PAYLOAD)
    }

    fn datagrams(&self, time: Duration) -> u64 {
        time.as_nanos() / FRAME.as_nanos() + 1
    }

    fn broken_rule(&self) -> Option<(&'static str, &'static str)> {
        match self.jitter_buffer {
            JitterBuffer::Fixed(wait) if wait > LONGEST => {
                Some(("jitter_buffer", "must be at most one year"))
            }
            JitterBuffer::Fixed(_) | JitterBuffer::Adaptive => None,
        }
    }

    fn build(&self, now: Instant, _: &Rng) -> Box<dyn DatagramSource> {
        Box::new(Call::new(now, self.jitter_buffer))
    }
}

/// A running call.
#[derive(Debug)]
struct Call {
    started: Instant,
    buffer: JitterBuffer,
    /// One-way delay of each packet; `None`: it has not arrived.
    delays: Vec<Option<Duration>>,
}

impl DatagramSource for Call {
    fn send(&mut self, now: Instant) -> Instant {
        self.delays.push(None);
        now + FRAME
    }

    fn on_arrival(&mut self, number: u32, delay: Duration) -> bool {
        match self.delays.get_mut(number as usize) {
            Some(unknown @ None) => {
                *unknown = Some(delay);
                true
            }
            _ => false,
        }
    }

    fn call(&self, from: u32, end: Instant) -> Option<CallRecord> {
        Some(self.record(from as usize, end))
    }
}

impl Call {
    /// A call that starts now.
    const fn new(now: Instant, buffer: JitterBuffer) -> Self {
        Self {
            started: now,
            buffer,
            delays: Vec::new(),
        }
    }

    /// The record of the packets from number `from` on whose playout time came by `end`.
    fn record(&self, from: usize, end: Instant) -> CallRecord {
        let Some(waits) = playout::waits(self.buffer, self.started, &self.delays, from) else {
            return self.silence(from, end);
        };
        let mut call = CallRecord::default();
        let mut waited = 0;
        let mut run = 0;
        for (n, (delay, wait)) in self.delays.iter().zip(&waits).enumerate().skip(from) {
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

    /// The record if nothing arrived: all packets sent before `end` are lost.
    fn silence(&self, from: usize, end: Instant) -> CallRecord {
        let spoken = |&n: &usize| self.started + FRAME.times(n as u64) < end;
        let lost = (from..self.delays.len()).filter(spoken).count() as u64;
        CallRecord {
            spoken: lost,
            lost,
            runs: u64::from(lost > 0),
            longest_run: lost,
            ..CallRecord::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The record of a call whose packets have these delays in ms; `None`: lost.
    fn record(delays: &[Option<u64>]) -> CallRecord {
        let buffer = JitterBuffer::Fixed(Duration::from_millis(60));
        let mut call = Call::new(Instant::ZERO, buffer);
        call.delays = delays
            .iter()
            .map(|ms| ms.map(Duration::from_millis))
            .collect();
        call.record(0, Instant::from_millis(10_000))
    }

    #[test]
    fn a_packet_after_its_playout_time_is_late() {
        let got = record(&[Some(30), Some(90), Some(91), None, Some(30), None]);
        let wanted = CallRecord {
            spoken: 6,
            lost: 2,
            late: 1,
            runs: 2,
            longest_run: 2,
            delay: Some(Duration::from_millis(110)),
        };
        assert_eq!(got, wanted);
    }

    #[test]
    fn packets_with_a_playout_time_after_the_run_do_not_count() {
        // Spoken every 20 ms and played 90 ms later: the last four of 500 would be too late.
        let got = record(&vec![Some(30); 500]);
        assert_eq!((got.spoken, got.lost), (496, 0));
    }

    #[test]
    fn all_packets_are_lost_if_none_arrives() {
        let silent = CallRecord {
            spoken: 2,
            lost: 2,
            runs: 1,
            longest_run: 2,
            ..CallRecord::default()
        };
        assert_eq!(record(&[None, None]), silent);
        assert_eq!(record(&[]), CallRecord::default());
    }
}
