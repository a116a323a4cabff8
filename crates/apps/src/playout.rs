//! Playout buffers: when a receiver plays each packet of a call.
//!
//! # Law
//!
//! A packet is played a fixed time, the *wait*, after it was spoken; what is not there by then is lost
//! to the listener. A fixed jitter buffer waits for the shortest delay of the call and so much more.
//! An adaptive one recomputes the wait at the start of each talkspurt:
//!
//! ```text
//! wait = 99th percentile of the delays of the last 500 packets that have arrived + 20 ms
//! ```
//!
//! # Source
//!
//! Moon, Kurose and Towsley, "Packet audio playout delay adjustment: performance bounds and
//! algorithms" (Multimedia Systems 6, 1998), set the wait of each talkspurt to a percentile of recent
//! delays. The numbers are ours, and so is that talkspurts are of a second, whose mean is 1.004 s in
//! ITU-T P.59: this voice has no pauses.

use sojourn_net::{Duration, Instant};

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
