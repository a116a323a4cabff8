//! Adaptive video: a player that fetches segments and chooses their quality.
//!
//! # Source
//!
//! ISO/IEC 23009-1 (DASH) leaves the choice of quality to the player. This one goes by throughput,
//! as Liu, Bouazizi and Gabbouj, "Rate Adaptation for Adaptive HTTP Streaming" (ACM Multimedia Systems 2011), and
//! Jiang et al., FESTIVE (ACM `CoNEXT` 2012) do: the harmonic mean of the last segments' throughputs, of
//! which a part is used. The parts and numbers are ours.
//!
//! # Law
//!
//! The first segment has the lowest quality. Then the highest one is taken that [`SHARE`] of the
//! harmonic mean over the last [`MEMORY`] segments carries. The next segment is asked for as soon
//! as the buffer has room for it, which makes the traffic on and off. Playing begins when `start`
//! is in the buffer, stops when nothing is, and begins again as it did first.

use std::collections::VecDeque;
use std::sync::Arc;

use sojourn_net::{Bytes, Duration, Instant, Rate};
use sojourn_transport::SenderParams;

use super::{Command, Happening, Net, Side};
use crate::records::PlayerRecord;

/// The part of the throughput that is used.
const SHARE: f64 = 0.8;
/// Segments whose throughput is remembered.
const MEMORY: usize = 5;

/// What is watched, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct DashConfig {
    /// Of the connection, at both ends.
    pub tcp: SenderParams,
    /// Bit rates to choose from, ascending.
    pub ladder: Vec<Rate>,
    /// How long a segment plays.
    pub segment: Duration,
    /// How much the buffer holds.
    pub buffer: Duration,
    /// What must be in it before playing begins.
    pub start: Duration,
    /// Bytes of a request.
    pub request: Bytes,
}

impl DashConfig {
    /// The first rule that is broken, and of which key.
    pub(super) fn check(&self) -> Option<(&'static str, &'static str)> {
        if self.ladder.is_empty() || self.ladder.windows(2).any(|w| w[0] >= w[1]) {
            return Some(("ladder", "must be one or more rates that grow"));
        }
        if self.segment == Duration::ZERO {
            return Some(("segment", "must be longer than nothing"));
        }
        if self.start == Duration::ZERO || self.start > self.buffer {
            return Some(("begin", "must be more than nothing and fit the buffer"));
        }
        (self.buffer < self.segment).then_some(("buffer", "must hold a segment"))
    }
}

/// A player at work.
#[derive(Debug)]
pub(crate) struct Dash {
    config: Arc<DashConfig>,
    /// The number of the connection, the newest of those there were.
    connection: u32,
    asked: u64,
    answered: u64,
    began: Instant,
    /// The segment under way: since when, and at which place of the ladder.
    under_way: Option<(Instant, usize)>,
    quality: usize,
    /// Throughputs in bit/s, the oldest first.
    seen: VecDeque<f64>,
    /// What is in the buffer, as it stood at `at`.
    buffered: Duration,
    at: Instant,
    playing: bool,
    /// Since when it has been waiting for data after it had begun to play.
    stalled_since: Option<Instant>,
    next: Option<Instant>,
    record: PlayerRecord,
}

impl Dash {
    pub(super) fn new(config: Arc<DashConfig>) -> Self {
        Self {
            config,
            connection: 0,
            asked: 0,
            answered: 0,
            began: Instant::ZERO,
            under_way: None,
            quality: 0,
            seen: VecDeque::new(),
            buffered: Duration::ZERO,
            at: Instant::ZERO,
            playing: false,
            stalled_since: None,
            next: None,
            record: PlayerRecord::default(),
        }
    }

    pub(super) const fn next_timer(&self) -> Option<Instant> {
        self.next
    }

    pub(super) const fn record(&self) -> PlayerRecord {
        self.record
    }

    pub(super) fn finish(&mut self, now: Instant, net: &mut Net) {
        self.play(now);
        if let Some(since) = self.stalled_since.take() {
            self.record.stalled += now.since(since);
        }
        self.playing = false;
        self.next = None;
        if let Some((since, quality)) = self.under_way.take() {
            net.record(since, None, self.bytes(quality));
        }
    }

    pub(super) fn on(&mut self, now: Instant, what: Happening, net: &mut Net) {
        match what {
            Happening::Started => {
                self.began = now;
                self.at = now;
                self.under_way = Some((now, 0));
                net.push(Command::Open(self.connection));
            }
            Happening::Timer => {
                self.next = None;
                self.under_way = Some((now, self.choose()));
                self.ask(net);
            }
            Happening::Connected(_) => self.ask(net),
            Happening::Asked(n, _) => {
                if let Some((_, quality)) = self.under_way {
                    let bytes = self.bytes(quality);
                    self.answered += bytes;
                    net.write(n, Side::Server, bytes);
                    net.push(Command::Expect(n, Side::Client, self.answered));
                }
            }
            Happening::Answered(..) => self.on_segment(now, net),
            Happening::Failed(_) => {
                self.connection += 1;
                (self.asked, self.answered) = (0, 0);
                net.push(Command::Open(self.connection));
            }
            Happening::Room(_) | Happening::Requested(..) | Happening::Responded(..) => {}
        }
    }

    /// Bytes of a segment of that quality.
    fn bytes(&self, quality: usize) -> u64 {
        self.config.ladder[quality]
            .carries(self.config.segment)
            .0
            .max(1)
    }

    fn ask(&mut self, net: &mut Net) {
        if self.under_way.is_some() {
            self.asked += self.config.request.0;
            net.write(self.connection, Side::Client, self.config.request.0);
            net.push(Command::Expect(self.connection, Side::Server, self.asked));
        }
    }

    /// Brings the buffer to `now`.
    fn play(&mut self, now: Instant) {
        let passed = now.since(self.at);
        if self.playing {
            if passed < self.buffered {
                self.buffered = self.buffered.saturating_sub(passed);
            } else {
                self.playing = false;
                self.stalled_since = Some(self.at + self.buffered);
                self.buffered = Duration::ZERO;
                self.record.stalls += 1;
            }
        }
        self.at = now;
    }

    fn on_segment(&mut self, now: Instant, net: &mut Net) {
        let Some((since, quality)) = self.under_way.take() else {
            return;
        };
        let bytes = self.bytes(quality);
        net.record(since, Some(now), bytes);
        self.play(now);
        self.buffered += self.config.segment;
        if !self.playing && self.buffered >= self.config.start {
            self.playing = true;
            match self.stalled_since.take() {
                Some(since) => self.record.stalled += now.since(since),
                None => self.record.startup = Some(now.since(self.began)),
            }
        }
        if self.record.segments > 0 && quality != self.quality {
            self.record.switches += 1;
        }
        self.quality = quality;
        self.record.segments += 1;
        self.record.bits_per_s_sum += self.config.ladder[quality].bits_per_sec();
        self.remember(bytes, now.since(since));
        let full = self.buffered + self.config.segment;
        self.next = Some(now + full.saturating_sub(self.config.buffer));
    }

    #[expect(clippy::cast_precision_loss, reason = "a segment is below 2^53 bits")]
    fn remember(&mut self, bytes: u64, took: Duration) {
        if self.seen.len() == MEMORY {
            self.seen.pop_front();
        }
        let seconds = took.as_secs_f64().max(1e-9);
        self.seen.push_back(8.0 * bytes as f64 / seconds);
    }

    /// The quality that the throughput of late carries.
    #[expect(clippy::cast_precision_loss, reason = "rates are below 2^53 bit/s")]
    fn choose(&self) -> usize {
        let inverse: f64 = self.seen.iter().map(|rate| 1.0 / rate).sum();
        let mean = self.seen.len() as f64 / inverse;
        let carried = |rate: &Rate| rate.bits_per_sec() as f64 <= SHARE * mean;
        self.config.ladder.iter().rposition(carried).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn player(start_s: u64, buffer_s: u64) -> Dash {
        Dash::new(Arc::new(DashConfig {
            tcp: SenderParams::default(),
            ladder: vec![Rate::mbit(1), Rate::mbit(2), Rate::mbit(4)],
            segment: Duration::from_secs(4),
            buffer: Duration::from_secs(buffer_s),
            start: Duration::from_secs(start_s),
            request: Bytes(400),
        }))
    }

    /// The next segment is asked for at `asked` and whole at `whole`, in seconds.
    fn segment(dash: &mut Dash, net: &mut Net, asked: u64, whole: u64) {
        let at = |s| Instant::from_millis(1_000 * s);
        if asked > 0 {
            assert_eq!(dash.next_timer(), Some(at(asked)));
            dash.on(at(asked), Happening::Timer, net);
        }
        dash.on(at(asked), Happening::Asked(0, 0), net);
        dash.on(at(whole), Happening::Answered(0, 0), net);
    }

    #[test]
    fn a_buffer_that_runs_dry_is_a_stall() {
        let (mut dash, mut net) = (player(8, 30), Net::default());
        dash.on(Instant::ZERO, Happening::Started, &mut net);
        dash.on(Instant::ZERO, Happening::Connected(0), &mut net);
        segment(&mut dash, &mut net, 0, 2);
        segment(&mut dash, &mut net, 2, 5);
        assert_eq!(dash.record().startup, Some(Duration::from_secs(5)));
        // 8 s from 5 on: dry at 13, again 8 s in the buffer at 27.
        segment(&mut dash, &mut net, 5, 20);
        segment(&mut dash, &mut net, 20, 27);
        let record = dash.record();
        assert_eq!(
            (record.stalls, record.stalled),
            (1, Duration::from_secs(14))
        );
        dash.finish(Instant::from_millis(40_000), &mut net);
        // Dry again at 35.
        let record = dash.record();
        assert_eq!(
            (record.stalls, record.stalled),
            (2, Duration::from_secs(19))
        );
    }

    #[test]
    fn a_full_buffer_waits_for_room() {
        let (mut dash, mut net) = (player(4, 12), Net::default());
        dash.on(Instant::ZERO, Happening::Started, &mut net);
        dash.on(Instant::ZERO, Happening::Connected(0), &mut net);
        segment(&mut dash, &mut net, 0, 1);
        segment(&mut dash, &mut net, 1, 2);
        segment(&mut dash, &mut net, 2, 3);
        // 12 s less the 2 played: room for 4 after two more.
        assert_eq!(dash.next_timer(), Some(Instant::from_millis(5_000)));
    }

    #[test]
    fn quality_is_what_the_throughput_carries() {
        let (mut dash, mut net) = (player(4, 60), Net::default());
        dash.on(Instant::ZERO, Happening::Started, &mut net);
        dash.on(Instant::ZERO, Happening::Connected(0), &mut net);
        // 4 Mbit in 1 s: 0.8 of it carries 2 Mbit/s, not 4.
        segment(&mut dash, &mut net, 0, 1);
        segment(&mut dash, &mut net, 1, 2);
        assert_eq!((dash.quality, dash.record().switches), (1, 1));
        // 8 Mbit in 1 s: the harmonic mean of 4 and 8 Mbit/s is 5.3, of which 0.8 carry 4; but
        // these 16 Mbit take 10 s, and the harmonic mean of 4, 8 and 1.6 is 3.
        segment(&mut dash, &mut net, 2, 12);
        assert_eq!((dash.quality, dash.record().switches), (2, 2));
        segment(&mut dash, &mut net, 12, 13);
        assert_eq!((dash.quality, dash.record().switches), (1, 3));
    }
}
