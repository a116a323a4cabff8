//! Real-time media: frames of an adaptive video encoder in RTP packets, paced, with feedback of the receiver.
//!
//! # Source
//!
//! RTP over UDP (RFC 3550), feedback per packet (RFC 8888). The congestion controls are in files of their own.
//!
//! # The sender
//!
//! The encoder follows the target bit rate of the control. A frame is split into packets of at most 1,200 B with their
//! RTP headers, all full except the last one, which has the marker bit. Packets wait at the sender for the pacer and
//! for the window of the control; none is discarded there.

mod algorithm;
mod control;
mod encoder;
mod feedback;
mod gcc;
mod scream;

use std::collections::{BTreeMap, VecDeque};

use sojourn_net::{Bytes, Duration, Ecn, Instant, Rate, Rng};

use crate::datagrams::{DatagramConfig, DatagramKind, DatagramSource, Outgoing};
use crate::phase::Phase;
use crate::report::{MediaRecord, MediaState};
use control::{RateControl, Rates};
use encoder::Encoder;
use feedback::{History, Report, Reporter};

pub use algorithm::MediaControl;
pub use encoder::{EncoderConfig, KeyFrames, Pause};
use scream::ScreamMode;

/// The largest RTP packet.
const PACKET: u64 = 1_200;
/// An RTP header.
const RTP_HEADER: u64 = 12;
/// Rate at which packets leave if the window of the control is closed, in bit/s: without it, a flow whose packets or
/// reports are all lost would never send again.
const LEAST_RATE: f64 = 50_000.0;
/// The smallest bit rate of an encoder.
const SMALLEST_BITS_PER_S: u64 = 10_000;
const MOST_FPS: f64 = 1_000.0;

/// How packets are marked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MediaEcn {
    /// Not-ECT.
    #[default]
    Off,
    /// ECT(0); a mark is a congestion event.
    Classic,
    /// ECT(1); the share of marked packets counts.
    L4s,
}

impl MediaEcn {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Off, Self::Classic, Self::L4s];

    /// What scenarios call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Classic => "classic",
            Self::L4s => "l4s",
        }
    }

    const fn codepoint(self) -> Ecn {
        match self {
            Self::Off => Ecn::NotEct,
            Self::Classic => Ecn::Ect0,
            Self::L4s => Ecn::Ect1,
        }
    }
}

/// A one-way stream of video.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MediaConfig {
    /// What sets the target bit rate.
    pub control: MediaControl,
    /// Smallest target bit rate, RTP headers included.
    pub min_rate: Rate,
    /// Largest target bit rate.
    pub max_rate: Rate,
    /// Target bit rate at the start.
    pub start_rate: Rate,
    /// Frames and their sizes.
    pub encoder: EncoderConfig,
    /// How packets are marked.
    pub ecn: MediaEcn,
    /// Least time between two reports; `None`: one at the end of each frame, after 16 packets and after 40 ms.
    pub feedback_interval: Option<Duration>,
    /// When the first frame comes; the period is that of frames.
    pub phase: Phase,
}

impl DatagramConfig for MediaConfig {
    fn kind(&self) -> DatagramKind {
        DatagramKind::Media(Bytes(PACKET))
    }

    fn control(&self) -> Option<&'static str> {
        Some(self.control.name())
    }

    fn datagrams(&self, time: Duration) -> u64 {
        let period = self.encoder.period().as_nanos().max(1);
        let frames = time.as_nanos() / period + 1;
        let largest = Duration::from_nanos(period).scaled(self.encoder.largest());
        let bytes = u128::from(self.max_rate.bits_per_sec()) * u128::from(largest.as_nanos());
        let packets = bytes.div_ceil(8_000_000_000 * u128::from(PACKET - RTP_HEADER)) + 1;
        frames.saturating_mul(u64::try_from(packets).unwrap_or(u64::MAX))
    }

    fn phase(&self, rng: &mut Rng) -> Duration {
        self.phase.draw(self.encoder.period(), rng)
    }

    fn broken_rule(&self) -> Option<(&'static str, &'static str)> {
        let encoder = &self.encoder;
        if !(1.0..=MOST_FPS).contains(&encoder.fps) {
            return Some(("fps", "must be between 1 and 1000"));
        }
        if !(0.0..=1.0).contains(&encoder.variation) {
            return Some(("variation", "must be between 0 and 1"));
        }
        if self.min_rate.bits_per_sec() < SMALLEST_BITS_PER_S {
            return Some(("min_rate", "must be at least 10 kbit/s"));
        }
        if self.max_rate < self.min_rate {
            return Some(("max_rate", "must be at least min_rate"));
        }
        if !(self.min_rate..=self.max_rate).contains(&self.start_rate) {
            return Some(("start_rate", "must be between min_rate and max_rate"));
        }
        if self.ecn != MediaEcn::Off && self.control != MediaControl::Scream {
            return Some(("ecn", "must be off unless the control is scream"));
        }
        if encoder.pause.is_some_and(|pause| pause.until <= pause.from) {
            return Some(("resume", "must be after the pause"));
        }
        None
    }

    fn build(&self, now: Instant, rng: &Rng) -> Box<dyn DatagramSource> {
        Box::new(Media::new(self, now, rng))
    }
}

/// A packet that waits at the sender.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    bytes: u64,
    since: Instant,
}

/// A frame, from the encoder to the receiver.
#[derive(Clone, Copy, Debug)]
struct Frame {
    at: Instant,
    /// Number of its first packet.
    first: u32,
    packets: u32,
    missing: u32,
    /// Target bit rate when it was encoded, in kbit/s.
    target: u32,
    /// From the encoder to the arrival of its last packet; `None`: it is not complete.
    delay: Option<Duration>,
}

/// A running sender and its receiver.
#[derive(Debug)]
struct Media {
    control: Box<dyn RateControl>,
    encoder: Encoder,
    ecn: Ecn,
    queue: VecDeque<Waiting>,
    /// Packets sent and waiting.
    numbered: u32,
    history: History,
    /// Earliest time at which the pacer sends the next packet.
    paced: Instant,
    last_sent: Instant,
    due: Instant,
    frames: Vec<Frame>,
    arrived: Vec<bool>,
    reporter: Reporter,
    /// Reports on their way, by number.
    reports: BTreeMap<u32, Report>,
    next_report: u32,
    counted: MediaRecord,
}

impl Media {
    fn new(config: &MediaConfig, now: Instant, rng: &Rng) -> Self {
        let bits = |rate: Rate| rate_in_bits(rate);
        let rates = Rates {
            min: bits(config.min_rate),
            max: bits(config.max_rate),
            start: bits(config.start_rate),
            frame_period: config.encoder.period(),
        };
        let mode = match config.ecn {
            MediaEcn::L4s => ScreamMode::L4s,
            MediaEcn::Off | MediaEcn::Classic => ScreamMode::Classic,
        };
        Self {
            control: config.control.build(rates, mode),
            encoder: Encoder::new(config.encoder, now, rates.start, rng.fork("frames")),
            ecn: config.ecn.codepoint(),
            queue: VecDeque::new(),
            numbered: 0,
            history: History::default(),
            paced: now,
            last_sent: now,
            due: now,
            frames: Vec::new(),
            arrived: Vec::new(),
            reporter: Reporter::new(config.feedback_interval),
            reports: BTreeMap::new(),
            next_report: 0,
            counted: MediaRecord::default(),
        }
    }

    /// Takes the frames that are due from the encoder.
    fn encode(&mut self, now: Instant) {
        while self.encoder.next() <= now {
            let at = self.encoder.next();
            let Some(size) = self.encoder.frame() else {
                continue;
            };
            let waiting = self
                .queue
                .front()
                .map(|packet| at.saturating_since(packet.since));
            self.control.on_frame(size, waiting.unwrap_or_default());
            self.enqueue(at, size);
        }
    }

    fn enqueue(&mut self, at: Instant, size: u64) {
        let first = self.numbered;
        let mut left = size;
        while left > 0 {
            let bytes = left.min(PACKET);
            left -= bytes;
            // A packet has a header and at least one byte more.
            let bytes = bytes.max(RTP_HEADER + 1);
            self.queue.push_back(Waiting { bytes, since: at });
            self.numbered += 1;
        }
        let packets = self.numbered - first;
        self.frames.push(Frame {
            at,
            first,
            packets,
            missing: packets,
            target: kbit(self.control.target()),
            delay: None,
        });
    }

    /// When the first waiting packet may leave.
    fn next_packet(&self) -> Option<Instant> {
        let packet = self.queue.front()?;
        let is_open = self.history.in_flight() + packet.bytes <= self.control.send_window();
        let least = if is_open {
            Instant::ZERO
        } else {
            self.last_sent + serialisation(packet.bytes, LEAST_RATE)
        };
        Some(self.paced.max(least))
    }

    fn schedule(&mut self) {
        let frame = self.encoder.next();
        self.due = self.next_packet().map_or(frame, |packet| packet.min(frame));
    }

    /// The frame of a packet that was sent.
    fn frame_of(&mut self, number: u32) -> Option<&mut Frame> {
        let after = self.frames.partition_point(|frame| frame.first <= number);
        self.frames.get_mut(after.checked_sub(1)?)
    }
}

impl DatagramSource for Media {
    fn send(&mut self, now: Instant) -> Instant {
        if let Some(packet) = self.queue.pop_front() {
            self.history.on_sent(now, packet.bytes);
            self.arrived.push(false);
            self.control.on_sent(self.history.in_flight());
            self.last_sent = now;
            self.paced = now + serialisation(packet.bytes, self.control.pacing_rate());
            self.counted.sent_bytes += packet.bytes;
            self.counted.waited += now.saturating_since(packet.since);
        }
        self.schedule();
        self.due
    }

    fn due(&self) -> Option<Instant> {
        Some(self.due)
    }

    fn outgoing(&mut self, now: Instant) -> Option<Outgoing> {
        self.encode(now);
        self.schedule();
        let is_due = self.next_packet().is_some_and(|at| at <= now);
        let packet = self.queue.front().filter(|_| is_due)?;
        Some(Outgoing {
            payload: Bytes(packet.bytes),
            ecn: self.ecn,
        })
    }

    fn on_packet(&mut self, now: Instant, number: u32, _: Duration, ecn: Ecn) -> bool {
        match self.arrived.get_mut(number as usize) {
            Some(arrived @ false) => *arrived = true,
            _ => return false,
        }
        let marked = ecn == Ecn::Ce;
        self.counted.marked += u64::from(marked);
        let mut ends_frame = false;
        if let Some(frame) = self.frame_of(number) {
            ends_frame = number + 1 == frame.first + frame.packets;
            frame.missing -= 1;
            if frame.missing == 0 {
                frame.delay = Some(now.saturating_since(frame.at));
            }
        }
        if let Some(report) = self.reporter.on_arrival(now, number, marked, ends_frame) {
            self.reports.insert(self.next_report, report);
        }
        true
    }

    fn report(&mut self) -> Option<(u32, Bytes)> {
        let number = self.next_report;
        let payload = self.reports.get(&number)?.bytes();
        self.next_report += 1;
        self.counted.reports += 1;
        self.counted.report_bytes += payload;
        Some((number, Bytes(payload)))
    }

    fn on_report(&mut self, now: Instant, number: u32) {
        let later = self.reports.split_off(&number.saturating_add(1));
        let report = self.reports.remove(&number);
        self.reports = later;
        let Some(report) = report else { return };
        let feedback = self.history.on_report(now, &report);
        let before = self.control.target();
        self.control.on_feedback(now, &feedback);
        let target = self.control.target();
        #[expect(clippy::float_cmp, reason = "whether it was set")]
        if target != before {
            self.encoder.request(now, target);
        }
        self.schedule();
    }

    fn media_state(&self) -> Option<MediaState> {
        Some(MediaState {
            target_kbit_per_s: kbit(self.control.target()),
            window_packets: self
                .control
                .window()
                .map(|window| u32::try_from(window / PACKET).unwrap_or(u32::MAX)),
            srtt: self.control.srtt(),
            in_flight_packets: u32::try_from(self.history.packets_in_flight()).unwrap_or(u32::MAX),
        })
    }

    fn begin_measuring(&mut self) {
        self.counted = MediaRecord::default();
    }

    fn media(&self, from: u32) -> Option<MediaRecord> {
        let measured = self.frames.partition_point(|frame| frame.first < from);
        let frames = &self.frames[measured..];
        // Later frames may be under way.
        let last = frames.iter().rposition(|frame| frame.delay.is_some());
        let ended = &frames[..last.map_or(0, |last| last + 1)];
        let mut delays: Vec<_> = ended.iter().filter_map(|frame| frame.delay).collect();
        delays.sort_unstable();
        let sum: u64 = delays.iter().map(|delay| delay.as_nanos()).sum();
        let targets: u64 = frames.iter().map(|frame| u64::from(frame.target)).sum();
        let quantile = (delays.len() * 95).div_ceil(100).checked_sub(1);
        let sent = self.arrived.len().saturating_sub(from as usize) as u64;
        Some(MediaRecord {
            frames: frames.len() as u64,
            lost_frames: (ended.len() - delays.len()) as u64,
            frame_delay_mean: sum
                .checked_div(delays.len() as u64)
                .map(Duration::from_nanos),
            frame_delay_p95: quantile.map(|at| delays[at]),
            frame_delay_max: delays.last().copied(),
            target_kbit_per_s: targets.checked_div(frames.len() as u64),
            sent_packets: sent,
            ..self.counted
        })
    }
}

#[expect(clippy::cast_precision_loss, reason = "exact below 2^53 bit/s")]
const fn rate_in_bits(rate: Rate) -> f64 {
    rate.bits_per_sec() as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates; a rate is > 0"
)]
const fn kbit(rate: f64) -> u32 {
    (rate / 1e3) as u32
}

/// The time that a number of bytes take at a rate in bit/s.
#[expect(clippy::cast_precision_loss, reason = "a packet")]
fn serialisation(bytes: u64, rate: f64) -> Duration {
    Duration::from_secs(8).scaled(bytes as f64 / rate)
}

#[cfg(test)]
mod tests;
