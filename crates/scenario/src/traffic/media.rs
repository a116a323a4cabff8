//! Real-time media: `type = "media"`.

use std::sync::Arc;

use sojourn_apps::{
    DatagramConfig, EncoderConfig, KeyFrames, MediaConfig, MediaControl, MediaEcn, Pause,
};
use sojourn_net::{Duration, Rate, Rng};

use super::block::{Source, TrafficProperties, TrafficType};
use crate::declare::{Keys, choices, keys, one_of};
use crate::key::Form;
use crate::plan::Traffic;
use crate::value::Table;

/// Size of a key frame relative to the others, if only their interval is given.
const KEY_FRAME_FACTOR: f64 = 3.0;

choices! {
    MediaControl: "media congestion control";
    MediaEcn: "ECN mode of media";
}

keys! {
    /// Settings of a block of media flows.
    #[derive(Clone, Copy, Debug)]
    struct Media {
        /// Congestion control, which sets the target bit rate of the encoder.
        control: MediaControl = one_of::<MediaControl>(), default "scream";
        /// Smallest target bit rate, RTP headers included.
        min_rate: Rate = Form::RATE, default "150kbit";
        /// Largest target bit rate.
        max_rate: Rate = Form::RATE, default "1500kbit";
        /// Target bit rate at the start; by default min_rate. With control = "constant", the rate of the whole run.
        start_rate: Option<Rate> = Form::RATE;
        /// Frames per second.
        fps: f64 = Form::Number(1.0, 1000.0), default "30";
        /// Frame sizes are uniformly distributed within ± this share of the mean.
        variation: f64 = Form::Number(0.0, 1.0), default "0.05";
        /// Time until the encoder follows a new target bit rate.
        encoder_lag: Duration = Form::TIME, default "100ms";
        /// Time from one key frame to the next; by default all frames are alike.
        key_frame_interval: Option<Duration> = Form::POSITIVE_TIME;
        /// Size of a key frame relative to the other frames; by default 3.
        key_frame_factor: Option<f64> = Form::Number(1.0, 100.0);
        /// The encoder pauses at this time after the start of the flow.
        pause: Option<Duration> = Form::TIME;
        /// The encoder resumes at this time after the start of the flow; by default never.
        resume: Option<Duration> = Form::TIME;
        /// ECN: off, classic (ECT(0)) or l4s (ECT(1)).
        ecn: MediaEcn = one_of::<MediaEcn>(), usual "off";
        /// Minimum time between two reports of the receiver; by default it reports at the end of each frame, after 16
        /// packets and after 40 ms.
        feedback_interval: Option<Duration> = Form::TIME;
        /// Time from the start of a flow to its first frame; by default random, within the time between two frames.
        phase: Option<Duration> = Form::TIME;
    }
}

pub(super) const TYPE: TrafficType = TrafficType {
    name: "media",
    keys: &[Media::KEYS],
    properties: TrafficProperties::APPLICATION,
    read: |fields, _| {
        let media = Media::read(fields)?;
        for (key, needed, is_given) in [
            (
                "key_frame_factor",
                "key_frame_interval",
                media.key_frame_interval.is_some(),
            ),
            ("resume", "pause", media.pause.is_some()),
        ] {
            if let Some(place) = fields.get(key)
                && !is_given
            {
                return Err(place.fail(format!("not allowed without {needed}")));
            }
        }
        let config: &dyn DatagramConfig = &media.config();
        if let Some((key, rule)) = config.check() {
            if let Some(place) = fields.get(key) {
                return Err(place.fail(rule.to_owned()));
            }
            // A default does not fit the rate that is given.
            if let Some(place) = fields.get("min_rate").or_else(|| fields.get("max_rate")) {
                return Err(place.fail(format!("{key} {rule}")));
            }
        }
        Ok(Arc::new(media))
    },
};

impl Media {
    fn config(&self) -> MediaConfig {
        MediaConfig {
            control: self.control,
            min_rate: self.min_rate,
            max_rate: self.max_rate,
            start_rate: self.start_rate.unwrap_or(self.min_rate),
            encoder: EncoderConfig {
                fps: self.fps,
                variation: self.variation,
                lag: self.encoder_lag,
                key_frames: self.key_frame_interval.map(|interval| KeyFrames {
                    interval,
                    factor: self.key_frame_factor.unwrap_or(KEY_FRAME_FACTOR),
                }),
                pause: self.pause.map(|from| Pause {
                    from,
                    until: self.resume.unwrap_or(Duration::MAX),
                }),
            },
            ecn: self.ecn,
            feedback_interval: self.feedback_interval,
            phase: self.phase.into(),
        }
    }
}

impl Source for Media {
    fn write(&self, fields: &mut Table) {
        Keys::write(self, fields);
    }

    fn plan(&self, _: Rng) -> Traffic {
        Traffic::datagrams(self.config())
    }
}
