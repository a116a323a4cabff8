//! Adaptive video: a player that fetches segments and chooses their quality.
//!
//! # Source
//!
//! ISO/IEC 23009-1 (DASH) leaves the choice of quality to the player. This one uses the throughput,
//! as Liu, Bouazizi and Gabbouj, "Rate Adaptation for Adaptive HTTP Streaming" (ACM Multimedia Systems 2011), and
//! Jiang et al., FESTIVE (ACM `CoNEXT` 2012) do: the harmonic mean of the last segments' throughputs, of
//! which a part is used. The parts and numbers are ours.
//!
//! # Law
//!
//! The first segment has the lowest quality. Then the highest one is taken that [`SHARE`] of the
//! harmonic mean over the last [`MEMORY`] segments carries. The next segment is asked for as soon
//! as the buffer has room for it, which makes the traffic on and off. Playback starts when `start`
//! is in the buffer, stalls when the buffer is empty, and resumes when `start` is in the buffer again.

use std::collections::VecDeque;
use std::sync::Arc;

use sojourn_net::{Duration, Instant, Rate, Rng};

use crate::contract::{
    AppEvent, AppOutput, Application, ApplicationConfig, Command, Exchange, Side,
};
use crate::demand::{Demand, Opportunity, Volume};
use crate::phase::Phase;
use crate::report::PlayerRecord;

/// The part of the throughput that is used.
const SHARE: f64 = 0.8;
/// Segments whose throughput is remembered.
const MEMORY: usize = 5;

/// Configuration of a video player.
#[derive(Clone, Debug, PartialEq)]
pub struct DashConfig {
    /// Its connections and requests.
    pub exchange: Exchange,
    /// Bit rates to choose from, in ascending order.
    pub ladder: Vec<Rate>,
    /// Duration of a segment.
    pub segment: Duration,
    /// Capacity of the buffer.
    pub buffer: Duration,
    /// Buffer level at which playback starts.
    pub start: Duration,
    /// When the first segment is asked for; the period is that of segments.
    pub phase: Phase,
}

impl ApplicationConfig for DashConfig {
    fn exchange(&self) -> Exchange {
        self.exchange
    }

    fn phase(&self, rng: &mut Rng) -> Duration {
        self.phase.draw(self.segment, rng)
    }

    fn broken_rule(&self) -> Option<(&'static str, &'static str)> {
        if self.ladder.is_empty() || self.ladder.windows(2).any(|w| w[0] >= w[1]) {
            return Some(("ladder", "must have one or more rates in ascending order"));
        }
        if self.segment == Duration::ZERO {
            return Some(("segment", "must be > 0"));
        }
        if self.start == Duration::ZERO || self.start > self.buffer {
            return Some(("begin", "must be > 0 and must not exceed buffer"));
        }
        (self.buffer < self.segment).then_some(("buffer", "must hold at least one segment"))
    }

    /// What it plays until the end and buffers, in the highest quality; a segment takes a round trip.
    fn demand(&self, opportunity: &Opportunity) -> Demand {
        let Opportunity { time, rtt, .. } = *opportunity;
        let fetched = time.as_nanos().saturating_add(self.buffer.as_nanos());
        let by_buffer = fetched / self.segment.as_nanos().max(1) + 2;
        let by_trips = time.as_nanos().checked_div(rtt.as_nanos());
        let by_trips = by_trips.map_or(u64::MAX, |trips| trips.saturating_add(1));
        let failures = opportunity.failures(1);
        let by_link = opportunity.transactions(self.bytes(0));
        let segments = by_buffer
            .min(by_trips)
            .min(by_link)
            .saturating_add(failures);
        let highest = self.ladder.len().saturating_sub(1);
        Demand {
            connections: 1 + failures,
            open: 1,
            transactions: segments,
            client: Volume::of(segments, self.exchange.request.0),
            server: Volume::of(segments, self.bytes(highest)),
        }
    }

    fn build(self: Arc<Self>, _: &Rng) -> Box<dyn Application> {
        Box::new(Dash::new(self))
    }
}

impl DashConfig {
    /// Bytes of a segment of that quality.
    fn bytes(&self, quality: usize) -> u64 {
        self.ladder[quality].carries(self.segment).0.max(1)
    }
}

/// A running video player.
#[derive(Debug)]
struct Dash {
    config: Arc<DashConfig>,
    /// Number of the newest connection.
    connection: u32,
    requested: u64,
    responded: u64,
    began: Instant,
    /// The segment in progress: when it was requested, and its place in the ladder.
    in_progress: Option<(Instant, usize)>,
    quality: usize,
    /// Throughputs in bit/s, the oldest first.
    throughputs: VecDeque<f64>,
    /// Content of the buffer at time `at`.
    buffered: Duration,
    at: Instant,
    playing: bool,
    /// Start of the current stall.
    stalled_since: Option<Instant>,
    next: Option<Instant>,
    record: PlayerRecord,
}

impl Application for Dash {
    fn on(&mut self, now: Instant, event: AppEvent, out: &mut AppOutput) {
        match event {
            AppEvent::Started => {
                self.began = now;
                self.at = now;
                self.in_progress = Some((now, 0));
                out.push(Command::Open(self.connection));
            }
            AppEvent::Timer => {
                self.next = None;
                self.in_progress = Some((now, self.choose()));
                self.request(out);
            }
            AppEvent::Connected(_) => self.request(out),
            AppEvent::ServerReceived(n, _) => {
                if let Some((_, quality)) = self.in_progress {
                    let bytes = self.bytes(quality);
                    self.responded += bytes;
                    out.write(n, Side::Server, bytes);
                    out.push(Command::Expect(n, Side::Client, self.responded));
                }
            }
            AppEvent::ClientReceived(..) => self.on_segment(now, out),
            AppEvent::Failed(_) => {
                self.connection += 1;
                (self.requested, self.responded) = (0, 0);
                out.push(Command::Open(self.connection));
            }
            AppEvent::Writable(_)
            | AppEvent::RequestReceived(..)
            | AppEvent::ResponseReceived(..) => {}
        }
    }

    fn next_timer(&self) -> Option<Instant> {
        self.next
    }

    fn finish(&mut self, now: Instant, out: &mut AppOutput) {
        self.play(now);
        if let Some(since) = self.stalled_since.take() {
            self.record.stalled += now.since(since);
        }
        self.playing = false;
        self.next = None;
        if let Some((since, quality)) = self.in_progress.take() {
            out.record(since, None, self.bytes(quality));
        }
    }

    fn player(&self) -> Option<PlayerRecord> {
        Some(self.record)
    }
}

impl Dash {
    fn new(config: Arc<DashConfig>) -> Self {
        Self {
            config,
            connection: 0,
            requested: 0,
            responded: 0,
            began: Instant::ZERO,
            in_progress: None,
            quality: 0,
            throughputs: VecDeque::new(),
            buffered: Duration::ZERO,
            at: Instant::ZERO,
            playing: false,
            stalled_since: None,
            next: None,
            record: PlayerRecord::default(),
        }
    }

    /// Bytes of a segment of that quality.
    fn bytes(&self, quality: usize) -> u64 {
        self.config.bytes(quality)
    }

    fn request(&mut self, out: &mut AppOutput) {
        if self.in_progress.is_some() {
            self.requested += self.config.exchange.request.0;
            out.write(
                self.connection,
                Side::Client,
                self.config.exchange.request.0,
            );
            out.push(Command::Expect(
                self.connection,
                Side::Server,
                self.requested,
            ));
        }
    }

    /// Advances playback to `now`.
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

    fn on_segment(&mut self, now: Instant, out: &mut AppOutput) {
        let Some((since, quality)) = self.in_progress.take() else {
            return;
        };
        let bytes = self.bytes(quality);
        out.record(since, Some(now), bytes);
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
        if self.throughputs.len() == MEMORY {
            self.throughputs.pop_front();
        }
        let seconds = took.as_secs_f64().max(1e-9);
        self.throughputs.push_back(8.0 * bytes as f64 / seconds);
    }

    /// The highest quality that the recent throughput carries.
    #[expect(clippy::cast_precision_loss, reason = "rates are below 2^53 bit/s")]
    fn choose(&self) -> usize {
        let inverse: f64 = self.throughputs.iter().map(|rate| 1.0 / rate).sum();
        let mean = self.throughputs.len() as f64 / inverse;
        let carried = |rate: &Rate| rate.bits_per_sec() as f64 <= SHARE * mean;
        self.config.ladder.iter().rposition(carried).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use sojourn_net::Bytes;
    use sojourn_transport::SenderParams;

    use super::*;
    use crate::contract::Transport;

    fn player(start_s: u64, buffer_s: u64) -> Dash {
        Dash::new(Arc::new(DashConfig {
            exchange: Exchange {
                transport: Transport::Tcp,
                tcp: SenderParams::default(),
                request: Bytes(400),
            },
            ladder: vec![Rate::mbit(1), Rate::mbit(2), Rate::mbit(4)],
            segment: Duration::from_secs(4),
            buffer: Duration::from_secs(buffer_s),
            phase: Phase::Random,
            start: Duration::from_secs(start_s),
        }))
    }

    fn played(dash: &Dash) -> PlayerRecord {
        dash.player().unwrap_or_default()
    }

    /// The next segment is asked for at `asked` and whole at `whole`, in seconds.
    fn segment(dash: &mut Dash, out: &mut AppOutput, asked: u64, whole: u64) {
        let at = |s| Instant::from_millis(1_000 * s);
        if asked > 0 {
            assert_eq!(dash.next_timer(), Some(at(asked)));
            dash.on(at(asked), AppEvent::Timer, out);
        }
        dash.on(at(asked), AppEvent::ServerReceived(0, 0), out);
        dash.on(at(whole), AppEvent::ClientReceived(0, 0), out);
    }

    #[test]
    fn a_buffer_that_runs_dry_is_a_stall() {
        let (mut dash, mut out) = (player(8, 30), AppOutput::default());
        dash.on(Instant::ZERO, AppEvent::Started, &mut out);
        dash.on(Instant::ZERO, AppEvent::Connected(0), &mut out);
        segment(&mut dash, &mut out, 0, 2);
        segment(&mut dash, &mut out, 2, 5);
        assert_eq!(played(&dash).startup, Some(Duration::from_secs(5)));
        // 8 s from 5 on: dry at 13, again 8 s in the buffer at 27.
        segment(&mut dash, &mut out, 5, 20);
        segment(&mut dash, &mut out, 20, 27);
        let record = played(&dash);
        assert_eq!(
            (record.stalls, record.stalled),
            (1, Duration::from_secs(14))
        );
        dash.finish(Instant::from_millis(40_000), &mut out);
        // Dry again at 35.
        let record = played(&dash);
        assert_eq!(
            (record.stalls, record.stalled),
            (2, Duration::from_secs(19))
        );
    }

    #[test]
    fn a_full_buffer_waits_for_room() {
        let (mut dash, mut out) = (player(4, 12), AppOutput::default());
        dash.on(Instant::ZERO, AppEvent::Started, &mut out);
        dash.on(Instant::ZERO, AppEvent::Connected(0), &mut out);
        segment(&mut dash, &mut out, 0, 1);
        segment(&mut dash, &mut out, 1, 2);
        segment(&mut dash, &mut out, 2, 3);
        // 12 s less the 2 played: room for 4 after two more.
        assert_eq!(dash.next_timer(), Some(Instant::from_millis(5_000)));
    }

    #[test]
    fn quality_is_what_the_throughput_carries() {
        let (mut dash, mut out) = (player(4, 60), AppOutput::default());
        dash.on(Instant::ZERO, AppEvent::Started, &mut out);
        dash.on(Instant::ZERO, AppEvent::Connected(0), &mut out);
        // 4 Mbit in 1 s: 0.8 of it carries 2 Mbit/s, not 4.
        segment(&mut dash, &mut out, 0, 1);
        segment(&mut dash, &mut out, 1, 2);
        assert_eq!((dash.quality, played(&dash).switches), (1, 1));
        // 8 Mbit in 1 s: the harmonic mean of 4 and 8 Mbit/s is 5.3, of which 0.8 carry 4; but
        // these 16 Mbit take 10 s, and the harmonic mean of 4, 8 and 1.6 is 3.
        segment(&mut dash, &mut out, 2, 12);
        assert_eq!((dash.quality, played(&dash).switches), (2, 2));
        segment(&mut dash, &mut out, 12, 13);
        assert_eq!((dash.quality, played(&dash).switches), (1, 3));
    }
}
