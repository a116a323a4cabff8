//! A one-way voice call over UDP: G.711, and the packets that the receiver can play.
//!
//! # Source
//!
//! ITU-T G.711 at 64 kbit/s, 20 ms per packet: 160 B and 12 B of RTP (RFC 3551), as flent's `voip`
//! test sends. Loss runs and the distance between them: RFC 3357.
//!
//! The jitter buffer decides when the receiver plays a packet. A packet that has not arrived by then
//! counts as late, one that never arrives as lost. If nothing arrives, all is lost.
//!
//! # Playout
//!
//! A packet is played a fixed time, the *wait*, after it was spoken; what is not there by then is lost
//! to the listener. A fixed jitter buffer waits for the shortest delay of the call and so much more.
//! An adaptive one recomputes the wait at the start of each talkspurt:
//!
//! ```text
//! wait = 99th percentile of the delays of the last 500 packets that have arrived + 20 ms
//! ```
//!
//! Moon, Kurose and Towsley, "Packet audio playout delay adjustment: performance bounds and
//! algorithms" (Multimedia Systems 6, 1998), set the wait of each talkspurt to a percentile of recent
//! delays. The numbers are ours, and so is that talkspurts are of a second, whose mean is 1.004 s in
//! ITU-T P.59: this voice has no pauses.

use sojourn_net::{Bytes, Duration, Instant, Rng};

use crate::datagrams::{DatagramConfig, DatagramKind, DatagramSource};
use crate::distributions::LONGEST;
use crate::phase::Phase;
use crate::report::CallRecord;

/// Payload of a packet: speech and RTP header.
const PAYLOAD: Bytes = Bytes(172);

/// A call, one way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VoipConfig {
    /// How long the listener waits for a packet.
    pub jitter_buffer: JitterBuffer,
    /// When the first packet leaves; the period is 20 ms.
    pub phase: Phase,
}

impl DatagramConfig for VoipConfig {
    fn kind(&self) -> DatagramKind {
        DatagramKind::Udp(PAYLOAD)
    }

    fn datagrams(&self, time: Duration) -> u64 {
        time.as_nanos() / FRAME.as_nanos() + 1
    }

    fn phase(&self, rng: &mut Rng) -> Duration {
        self.phase.draw(FRAME, rng)
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
        let Some(waits) = waits(self.buffer, self.started, &self.delays, from) else {
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

/// Speech in one packet.
pub(crate) const FRAME: Duration = Duration::from_millis(20);

/// How long the receiver of a call waits for a packet after it was spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JitterBuffer {
    /// The delay of recent packets; adjusted each second.
    Adaptive,
    /// The shortest delay of the call plus this time.
    Fixed(Duration),
}

/// Packets of a talkspurt.
const SPURT: usize = 50;
/// How many packets are recent: ten seconds.
const RECENT: usize = 500;
/// Percentage of recent packets that would have arrived in time.
const PERCENTILE: usize = 99;
/// What is waited for beyond the first packet, before anything is known.
const UNKNOWN: Duration = Duration::from_millis(60);

/// How long each packet of a call is waited for; none if nothing arrived.
pub(crate) fn waits(
    buffer: JitterBuffer,
    started: Instant,
    delays: &[Option<Duration>],
    before: usize,
) -> Option<Vec<Duration>> {
    match buffer {
        JitterBuffer::Fixed(more) => {
            let shortest = *delays[before..].iter().flatten().min()?;
            Some(vec![shortest + more; delays.len()])
        }
        JitterBuffer::Adaptive => adaptive(started, delays),
    }
}

fn adaptive(started: Instant, delays: &[Option<Duration>]) -> Option<Vec<Duration>> {
    let mut wait = *delays.iter().flatten().next()? + UNKNOWN;
    let mut waits = Vec::with_capacity(delays.len());
    for (spurt, packets) in delays.chunks(SPURT).enumerate() {
        let begins = spurt * SPURT;
        let now = started + FRAME.times(begins as u64);
        wait = recent(started, &delays[..begins], now).unwrap_or(wait);
        waits.extend(packets.iter().map(|_| wait));
    }
    Some(waits)
}

/// The wait that what has arrived by `now` suggests.
fn recent(started: Instant, delays: &[Option<Duration>], now: Instant) -> Option<Duration> {
    let arrived = delays.iter().enumerate().rev().filter_map(|(n, delay)| {
        let delay = (*delay)?;
        (started + FRAME.times(n as u64) + delay <= now).then_some(delay)
    });
    let mut known: Vec<_> = arrived.take(RECENT).collect();
    let at = (known.len() * PERCENTILE).div_ceil(100).checked_sub(1)?;
    let (_, delay, _) = known.select_nth_unstable(at);
    Some(*delay + FRAME)
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

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    /// The wait for each talkspurt of a call with these delays.
    fn spurts(delays: &[Option<Duration>]) -> Vec<Duration> {
        let waits = waits(JitterBuffer::Adaptive, Instant::ZERO, delays, 0).unwrap_or_default();
        waits.into_iter().step_by(SPURT).collect()
    }

    #[test]
    fn a_fixed_buffer_waits_for_the_shortest_delay_of_what_is_measured() {
        let delays = [Some(ms(10)), Some(ms(30)), None, Some(ms(50))];
        let fixed = |before| waits(JitterBuffer::Fixed(ms(60)), Instant::ZERO, &delays, before);
        assert_eq!(fixed(0), Some(vec![ms(70); 4]));
        assert_eq!(fixed(1), Some(vec![ms(90); 4]));
        let nothing = waits(JitterBuffer::Fixed(ms(60)), Instant::ZERO, &[None, None], 0);
        assert_eq!(nothing, None);
    }

    #[test]
    fn an_adaptive_buffer_follows_a_queue_that_stands() {
        // From the second talkspurt on 300 ms, of which the third knows only the first 35.
        let call = |n: usize| Some(if n < SPURT { ms(30) } else { ms(300) });
        let delays: Vec<_> = (0..200).map(call).collect();
        assert_eq!(spurts(&delays), [ms(90), ms(50), ms(320), ms(320)]);
        assert!(spurts(&[None; 60]).is_empty());
    }

    #[test]
    fn one_of_a_hundred_may_be_slower_and_the_past_is_forgotten() {
        // Three slow packets in the first 100, then none.
        let call = |n: usize| {
            Some(if [20, 21, 90].contains(&n) {
                ms(500)
            } else {
                ms(30)
            })
        };
        let delays: Vec<_> = (0..700).map(call).collect();
        let waits = spurts(&delays);
        // Of 100 known the slowest one is passed over; of 400, four.
        assert_eq!(waits[2], ms(520));
        assert_eq!(waits[8], ms(50));
        let forgotten: Vec<_> = (0..700)
            .map(|n| Some(ms(if n < 50 { 500 } else { 30 })))
            .collect();
        assert_eq!(
            (spurts(&forgotten)[10], spurts(&forgotten)[11]),
            (ms(520), ms(50))
        );
    }
}
