//! A video encoder: when frames come, and how large they are.
//!
//! # Source
//!
//! RFC 8593 (synthetic sources) and RFC 8867, section 4.3: a new target rate is in effect after a lag, and sizes
//! vary around it. The distribution is ours: uniform within ± `variation`.

use std::collections::VecDeque;

use sojourn_net::{Duration, Instant, Rng};

/// Key frames among the frames of an encoder.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KeyFrames {
    /// Time from one to the next.
    pub interval: Duration,
    /// Size relative to the other frames.
    pub factor: f64,
}

/// A time without frames, from the start of the flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    /// When it begins.
    pub from: Duration,
    /// When it ends.
    pub until: Duration,
}

/// Configuration of an encoder.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EncoderConfig {
    /// Frames per second.
    pub fps: f64,
    /// Sizes are uniform within ± this share of the mean.
    pub variation: f64,
    /// Time from a new target rate to the first frame of that rate.
    pub lag: Duration,
    /// `None`: all frames are alike.
    pub key_frames: Option<KeyFrames>,
    /// `None`: there are always frames.
    pub pause: Option<Pause>,
}

impl EncoderConfig {
    /// Time between two frames.
    pub(super) fn period(&self) -> Duration {
        Duration::from_secs(1).scaled(1.0 / self.fps)
    }

    /// How much larger than the mean a frame can be.
    pub(super) fn largest(&self) -> f64 {
        let key = self.key_frames.map_or(1.0, |key| key.factor.max(1.0));
        key * (1.0 + self.variation)
    }
}

/// A running encoder.
#[derive(Debug)]
pub(super) struct Encoder {
    config: EncoderConfig,
    started: Instant,
    period: Duration,
    /// When the next frame comes.
    next: Instant,
    /// Bit rate of the next frame.
    rate: f64,
    /// Later bit rates, and when they take effect.
    requested: VecDeque<(Instant, f64)>,
    next_key_frame: Instant,
    rng: Rng,
}

impl Encoder {
    pub(super) fn new(config: EncoderConfig, now: Instant, rate: f64, rng: Rng) -> Self {
        Self {
            config,
            started: now,
            period: config.period(),
            next: now,
            rate,
            requested: VecDeque::new(),
            next_key_frame: now,
            rng,
        }
    }

    /// When the next frame comes.
    pub(super) const fn next(&self) -> Instant {
        self.next
    }

    /// The control asks for this bit rate.
    pub(super) fn request(&mut self, now: Instant, rate: f64) {
        self.requested.push_back((now + self.config.lag, rate));
    }

    /// The next frame, which is due: its size, RTP headers included; `None`: the encoder pauses.
    pub(super) fn frame(&mut self) -> Option<u64> {
        let now = self.next;
        self.next = now + self.period;
        while let Some(&(at, rate)) = self.requested.front()
            && at <= now
        {
            self.rate = rate;
            self.requested.pop_front();
        }
        if let Some(pause) = self.config.pause
            && now.since(self.started) >= pause.from
            && now.since(self.started) < pause.until
        {
            return None;
        }
        let spread = 1.0 + self.config.variation * (2.0 * self.rng.uniform() - 1.0);
        let bytes = self.rate / 8.0 * self.period.as_secs_f64() * spread * self.relative_size(now);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a size in bytes, > 0"
        )]
        Some((bytes as u64).max(1))
    }

    /// Size relative to the mean, so that key frames do not change the rate.
    fn relative_size(&mut self, now: Instant) -> f64 {
        let Some(key) = self.config.key_frames else {
            return 1.0;
        };
        let frames = (key.interval.as_secs_f64() / self.period.as_secs_f64()).max(1.0);
        let other = frames / (frames - 1.0 + key.factor);
        if now < self.next_key_frame {
            return other;
        }
        self.next_key_frame = now + key.interval;
        other * key.factor
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    const PLAIN: EncoderConfig = EncoderConfig {
        fps: 25.0,
        variation: 0.0,
        lag: ms(100),
        key_frames: None,
        pause: None,
    };

    fn sizes(config: EncoderConfig, frames: usize) -> Vec<Option<u64>> {
        let mut encoder = Encoder::new(config, Instant::ZERO, 1e6, Rng::new(1));
        (0..frames).map(|_| encoder.frame()).collect()
    }

    #[test]
    fn a_frame_has_the_bits_of_its_period() {
        // 1 Mbit/s in 40 ms.
        assert_eq!(sizes(PLAIN, 2), [Some(5_000); 2]);
    }

    #[test]
    fn a_request_is_in_effect_after_the_lag() {
        let mut encoder = Encoder::new(PLAIN, Instant::ZERO, 1e6, Rng::new(1));
        encoder.request(Instant::ZERO, 2e6);
        let got: Vec<_> = (0..4).map(|_| encoder.frame()).collect();
        // Frames at 0, 40, 80 and 120 ms.
        assert_eq!(got, [5_000, 5_000, 5_000, 10_000].map(Some));
    }

    #[test]
    fn key_frames_are_larger_and_keep_the_rate() {
        let key_frames = Some(KeyFrames {
            interval: ms(400),
            factor: 3.0,
        });
        let got = sizes(
            EncoderConfig {
                key_frames,
                ..PLAIN
            },
            100,
        );
        // 10 frames share 50,000 B as 3 : 1 : … : 1.
        assert_eq!((got[0], got[1]), (Some(12_500), Some(4_166)));
        let sum: u64 = got.into_iter().flatten().sum();
        assert!((499_900..=500_000).contains(&sum), "{sum}");
    }

    #[test]
    fn sizes_vary_around_the_mean() {
        let config = EncoderConfig {
            variation: 0.05,
            ..PLAIN
        };
        let got: Vec<_> = sizes(config, 10_000).into_iter().flatten().collect();
        assert!(got.iter().all(|size| (4_749..=5_251).contains(size)));
        let mean = got.iter().sum::<u64>() / 10_000;
        assert!((4_990..=5_010).contains(&mean), "{mean}");
    }

    #[test]
    fn there_are_no_frames_in_a_pause() {
        let pause = Some(Pause {
            from: ms(40),
            until: ms(120),
        });
        let got = sizes(EncoderConfig { pause, ..PLAIN }, 4);
        assert_eq!(got, [Some(5_000), None, None, Some(5_000)]);
    }
}
