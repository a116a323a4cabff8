//! Reports of applications other than transactions.

use sojourn_net::{Duration, Instant};

/// Nanoseconds of a minute.
const MINUTE_NS: f64 = 60e9;

/// What a video player did, from its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlayerRecord {
    /// From the request of the first segment until playback started; `None`: not within the run.
    pub startup: Option<Duration>,
    /// Number of stalls after that.
    pub stalls: u32,
    /// Total time of these stalls.
    pub stalled: Duration,
    /// Segments fetched.
    pub segments: u64,
    /// Sum of the bit rates of these segments.
    pub bits_per_s_sum: u64,
    /// Segments of another quality than the one before.
    pub switches: u64,
}

/// Confidence in the result of a responsiveness test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confidence {
    /// There were fewer than four intervals to look at.
    Low,
    /// It did not settle.
    Medium,
    /// It settled.
    High,
}

impl Confidence {
    /// What it is called.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// Result of a responsiveness test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponsivenessRecord {
    /// The means that the result is computed from.
    pub times: RoundTrips,
    /// When.
    pub at: Instant,
    /// Probes in it.
    pub probes: u64,
    /// Load-generating connections then.
    pub connections: u32,
    /// How far it can be trusted.
    pub confidence: Confidence,
}

/// Trimmed means of the times of probes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoundTrips {
    /// Handshakes of TCP, or of QUIC.
    pub tcp: Duration,
    /// Handshakes of TLS; `None`: connections have none, or it is part of that of QUIC.
    pub tls: Option<Duration>,
    /// Requests over connections of their own.
    pub http: Duration,
    /// Requests over load-generating connections.
    pub own: Duration,
}

impl RoundTrips {
    /// Round trips per minute on connections of their own.
    pub fn foreign_rpm(&self) -> f64 {
        let times = [Some(self.tcp), self.tls, Some(self.http)];
        let (mut sum, mut n) = (0.0, 0.0);
        for time in times.into_iter().flatten() {
            sum += nanos(time);
            n += 1.0;
        }
        MINUTE_NS / (sum / n)
    }

    /// Round trips per minute on load-generating connections.
    pub fn loaded_rpm(&self) -> f64 {
        MINUTE_NS / nanos(self.own)
    }

    /// The responsiveness: the mean of both.
    pub fn rpm(&self) -> f64 {
        f64::midpoint(self.foreign_rpm(), self.loaded_rpm())
    }
}

#[expect(clippy::cast_precision_loss, reason = "exact below 104 days")]
fn nanos(d: Duration) -> f64 {
    d.as_nanos() as f64
}

/// One echo request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PingSample {
    /// When it was sent.
    pub sent: Instant,
    /// Round-trip time; `None`: no reply within the run.
    pub rtt: Option<Duration>,
}

/// The state of a media flow at a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MediaState {
    /// Target bit rate.
    pub target_kbit_per_s: u32,
    /// The window of the control, in packets of 1,200 B; `None`: it has none.
    pub window_packets: Option<u32>,
    /// Smoothed round-trip time; `None`: not known.
    pub srtt: Option<Duration>,
    /// Packets above the highest number acknowledged.
    pub in_flight_packets: u32,
}

/// What a media flow sent and its receiver got after the warm-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MediaRecord {
    /// Frames that the encoder produced.
    pub frames: u64,
    /// Frames before the last complete one that were not complete when the run ended.
    pub lost_frames: u64,
    /// Mean time from the encoder to the arrival of the last packet, of complete frames; `None`: there are none.
    pub frame_delay_mean: Option<Duration>,
    /// 95th percentile of it.
    pub frame_delay_p95: Option<Duration>,
    /// Largest of it.
    pub frame_delay_max: Option<Duration>,
    /// Mean target bit rate over the frames, in kbit/s; `None`: there are none.
    pub target_kbit_per_s: Option<u64>,
    /// RTP packets sent.
    pub sent_packets: u64,
    /// Their size, RTP headers included.
    pub sent_bytes: u64,
    /// Sum of the times that they waited at the sender.
    pub waited: Duration,
    /// Packets that arrived with a CE mark.
    pub marked: u64,
    /// Reports that the receiver sent.
    pub reports: u64,
    /// Their size, without headers of UDP and below.
    pub report_bytes: u64,
}

/// What the receiver got of a call after the warm-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallRecord {
    /// Packets whose playout time was within the run.
    pub spoken: u64,
    /// Packets that had not arrived when the run ended.
    pub lost: u64,
    /// Packets that arrived after their playout time.
    pub late: u64,
    /// Runs of consecutive packets that were lost or late.
    pub runs: u64,
    /// Packets in the longest run.
    pub longest_run: u64,
    /// Mean mouth-to-ear delay: packetisation and playout; `None`: nothing arrived.
    pub delay: Option<Duration>,
}
