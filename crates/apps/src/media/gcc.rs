//! GCC: Google Congestion Control.
//!
//! # Source
//!
//! draft-ietf-rmcat-gcc-02, with both controllers at the sender and feedback per packet (its section 3). Names are the
//! draft's. Times are in ms, as in its table 1, and rates in bit/s.
//!
//! # Law
//!
//! ```text
//! d(i)     = t(i) - t(i-1) - (T(i) - T(i-1))       delay variation of groups of packets sent within 5 ms
//! m_hat(i)                                         its mean, by a Kalman filter
//! over-use   m_hat > del_var_th for 10 ms, not falling;   under-use   m_hat < -del_var_th
//! A_hat      × 1.08 per s, or half a packet per response time near the last maxima; 0.85 R_hat at over-use
//! As_hat     × 1.05 below 2 % loss; × (1 - 0.5 p) above 10 %
//! target     min(A_hat, As_hat)
//! ```
//!
//! # Differences from the draft
//!
//! | here | draft | effect |
//! |---|---|---|
//! | losses are counted over 20 packets or more \[R\] | each report, which may cover one packet | a loss is not a ratio of 100 % |
//! | As_hat is at most max_rate, `chi` 0.01, K 60, T 0.5 s, `var_v_hat(0)` 1 \[R\] | no limit; a range or no value | |
//! | pacing at 1.5 times the target \[R\] | groups of 5 ms at the target | the queue of the pacer empties |
//! | `m_hat` is compared with the threshold | the same; libwebrtc multiplies it by the number of groups, up to 60 \[R\] | over-use is detected when hundreds of ms have queued |

use std::collections::VecDeque;

use sojourn_net::{Duration, Instant};

use super::control::{Acked, Feedback, RateControl, Rates};

const BURST_TIME: f64 = 5.0;
/// State noise covariance `q`.
const Q: f64 = 1e-3;
const CHI: f64 = 0.01;
/// Groups over which the highest rate is taken.
const K: usize = 60;
const DEL_VAR_TH_0: f64 = 12.5;
const DEL_VAR_TH_MIN: f64 = 6.0;
const DEL_VAR_TH_MAX: f64 = 600.0;
/// The threshold is not updated for `m_hat` so far above it.
const OUTLIER: f64 = 15.0;
const OVERUSE_TIME_TH: f64 = 10.0;
const K_U: f64 = 0.01;
const K_D: f64 = 0.000_18;
/// Window of `R_hat`.
const T: Duration = Duration::from_millis(500);
const BETA: f64 = 0.85;
/// Increase per second.
const ETA: f64 = 1.08;
/// Of the average and the variance of the incoming rates at decreases.
const SMOOTHING: f64 = 0.95;
/// Packets whose losses are counted together.
const COUNTED: u64 = 20;
/// Of the smoothed RTT (RFC 6298).
const RTT_GAIN: f64 = 1.0 / 8.0;
/// The RTT before the first sample \[R\].
const INITIAL_RTT: f64 = 100.0;

/// What the detector says of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Signal {
    Over,
    Normal,
    Under,
}

/// State of the rate control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Hold,
    Increase,
    Decrease,
}

impl State {
    /// The table of section 5.5.
    const fn after(self, signal: Signal) -> Self {
        match (self, signal) {
            (_, Signal::Over) => Self::Decrease,
            (Self::Hold, Signal::Normal) => Self::Increase,
            (Self::Decrease, Signal::Normal) | (_, Signal::Under) => Self::Hold,
            (state, Signal::Normal) => state,
        }
    }
}

/// Packets that were sent or arrived together (section 5.2); times in ms.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Group {
    first_sent: f64,
    last_sent: f64,
    arrived: f64,
}

impl Group {
    fn of(acked: &Acked) -> Self {
        let sent = ms(acked.sent);
        Self {
            first_sent: sent,
            last_sent: sent,
            arrived: ms(acked.arrived),
        }
    }

    /// Whether a packet belongs to it.
    fn takes(&self, packet: &Self) -> bool {
        if packet.last_sent - self.first_sent <= BURST_TIME {
            return true;
        }
        let inter_arrival = packet.arrived - self.arrived;
        inter_arrival < BURST_TIME && inter_arrival - (packet.last_sent - self.last_sent) < 0.0
    }
}

/// The arrival-time filter (section 5.3).
#[derive(Debug)]
struct Filter {
    m_hat: f64,
    e: f64,
    var_v_hat: f64,
    /// Times between the departures of the last groups.
    departures: VecDeque<f64>,
}

impl Filter {
    const fn new() -> Self {
        Self {
            m_hat: 0.0,
            e: 0.1,
            var_v_hat: 1.0,
            departures: VecDeque::new(),
        }
    }

    fn update(&mut self, d: f64, inter_departure: f64) {
        self.departures.push_back(inter_departure);
        if self.departures.len() > K {
            self.departures.pop_front();
        }
        let shortest = self.departures.iter().copied().fold(f64::MAX, f64::min);
        // 30 / (1000 f_max), f_max in groups per ms.
        let alpha = libm::pow(1.0 - CHI, 30.0 * shortest / 1_000.0);
        let z = d - self.m_hat;
        let noise = z.min(3.0 * self.var_v_hat.sqrt());
        self.var_v_hat = (alpha * self.var_v_hat + (1.0 - alpha) * noise * noise).max(1.0);
        let k = (self.e + Q) / (self.var_v_hat + self.e + Q);
        self.m_hat += z * k;
        self.e = (1.0 - k) * (self.e + Q);
    }
}

/// The over-use detector (section 5.4).
#[derive(Debug)]
struct Detector {
    del_var_th: f64,
    /// For how long `m` has been above the threshold.
    over: Option<f64>,
    previous: f64,
}

impl Detector {
    const fn new() -> Self {
        Self {
            del_var_th: DEL_VAR_TH_0,
            over: None,
            previous: 0.0,
        }
    }

    /// The signal for this mean, so long after the one before.
    fn detect(&mut self, m: f64, inter_arrival: f64) -> Signal {
        let signal = if m > self.del_var_th {
            let over = self.over.map_or(0.0, |over| over + inter_arrival);
            self.over = Some(over);
            if over >= OVERUSE_TIME_TH && m >= self.previous {
                Signal::Over
            } else {
                Signal::Normal
            }
        } else {
            self.over = None;
            if m < -self.del_var_th {
                Signal::Under
            } else {
                Signal::Normal
            }
        };
        self.previous = m;
        self.adapt(m.abs(), inter_arrival);
        signal
    }

    fn adapt(&mut self, size: f64, inter_arrival: f64) {
        if size - self.del_var_th > OUTLIER {
            return;
        }
        let k = if size < self.del_var_th { K_D } else { K_U };
        let adapted = self.del_var_th + inter_arrival * k * (size - self.del_var_th);
        self.del_var_th = adapted.clamp(DEL_VAR_TH_MIN, DEL_VAR_TH_MAX);
    }
}

/// Average and variance of the incoming rates at decreases.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Maxima {
    average: f64,
    variance: f64,
}

impl Maxima {
    fn with(known: Option<Self>, rate: f64) -> Self {
        let Some(known) = known else {
            return Self {
                average: rate,
                variance: 0.0,
            };
        };
        let difference = rate - known.average;
        let average = known.average + (1.0 - SMOOTHING) * difference;
        let variance = SMOOTHING * (known.variance + (1.0 - SMOOTHING) * difference * difference);
        Self { average, variance }
    }

    fn three_deviations(&self) -> f64 {
        3.0 * self.variance.sqrt()
    }
}

/// A running control.
#[derive(Debug)]
pub(super) struct Gcc {
    rates: Rates,
    group: Option<Group>,
    before: Option<Group>,
    filter: Filter,
    detector: Detector,
    state: State,
    maxima: Option<Maxima>,
    /// Packets that arrived in the window of `R_hat`: time and size.
    arrived: VecDeque<(Instant, u64)>,
    arrived_bytes: u64,
    first_arrival: Option<Instant>,
    last_update: Option<Instant>,
    a_hat: f64,
    as_hat: f64,
    received: u64,
    lost: u64,
    s_rtt: Option<f64>,
}

impl Gcc {
    pub(super) const fn new(rates: Rates) -> Self {
        Self {
            rates,
            group: None,
            before: None,
            filter: Filter::new(),
            detector: Detector::new(),
            state: State::Increase,
            maxima: None,
            arrived: VecDeque::new(),
            arrived_bytes: 0,
            first_arrival: None,
            last_update: None,
            a_hat: rates.start,
            as_hat: rates.start,
            received: 0,
            lost: 0,
            s_rtt: None,
        }
    }

    /// The signal after a packet; `None`: it belongs to a group that is not complete.
    fn on_packet(&mut self, acked: &Acked) -> Option<Signal> {
        let packet = Group::of(acked);
        let Some(group) = &mut self.group else {
            self.group = Some(packet);
            return None;
        };
        // Packets out of order are ignored.
        if packet.last_sent < group.last_sent || packet.arrived < group.arrived {
            return None;
        }
        if group.takes(&packet) {
            group.last_sent = packet.last_sent;
            group.arrived = packet.arrived;
            return None;
        }
        let complete = std::mem::replace(group, packet);
        let before = self.before.replace(complete)?;
        let inter_arrival = complete.arrived - before.arrived;
        let inter_departure = complete.last_sent - before.last_sent;
        self.filter
            .update(inter_arrival - inter_departure, inter_departure);
        Some(self.detector.detect(self.filter.m_hat, inter_arrival))
    }

    fn count(&mut self, acked: &Acked) {
        self.first_arrival.get_or_insert(acked.arrived);
        self.arrived.push_back((acked.arrived, acked.bytes));
        self.arrived_bytes += acked.bytes;
        while let Some(&(at, bytes)) = self.arrived.front()
            && at + T <= acked.arrived
        {
            self.arrived_bytes -= bytes;
            self.arrived.pop_front();
        }
    }

    /// The incoming rate; `None`: packets have arrived for less than its window.
    fn r_hat(&self) -> Option<f64> {
        let (last, _) = self.arrived.back()?;
        let is_full = last.since(self.first_arrival?) >= T;
        is_full.then(|| real(self.arrived_bytes) * 8.0 / T.as_secs_f64())
    }

    /// Section 5.5.
    fn update_a_hat(&mut self, now: Instant, signal: Signal) {
        self.state = self.state.after(signal);
        let since = self
            .last_update
            .map_or(0.0, |last| now.since(last).as_millis_f64());
        self.last_update = Some(now);
        let r_hat = self.r_hat();
        match self.state {
            State::Hold => {}
            State::Decrease => {
                let Some(r_hat) = r_hat else { return };
                self.a_hat = BETA * r_hat;
                self.maxima = Some(Maxima::with(self.maxima, r_hat));
            }
            State::Increase => self.increase(since, r_hat),
        }
        self.a_hat = self.a_hat.clamp(self.rates.min, self.rates.max);
    }

    fn increase(&mut self, since: f64, r_hat: Option<f64>) {
        if let (Some(maxima), Some(r_hat)) = (self.maxima, r_hat)
            && r_hat > maxima.average + maxima.three_deviations()
        {
            self.maxima = None;
        }
        let before = self.a_hat;
        let is_near = self.maxima.zip(r_hat).is_some_and(|(maxima, r_hat)| {
            (r_hat - maxima.average).abs() <= maxima.three_deviations()
        });
        if is_near {
            let response_time = 100.0 + self.s_rtt.unwrap_or(INITIAL_RTT);
            let alpha = 0.5 * (since / response_time).min(1.0);
            self.a_hat += (alpha * expected_packet_size(before)).max(1_000.0);
        } else {
            self.a_hat *= libm::pow(ETA, (since / 1_000.0).min(1.0));
        }
        if let Some(r_hat) = r_hat {
            self.a_hat = self.a_hat.min((1.5 * r_hat).max(before));
        }
    }

    /// Section 6.
    fn update_as_hat(&mut self, feedback: &Feedback) {
        self.received += feedback.acked.len() as u64;
        self.lost += feedback.lost;
        let counted = self.received + self.lost;
        if counted < COUNTED {
            return;
        }
        let p = real(self.lost) / real(counted);
        if p > 0.1 {
            self.as_hat *= 1.0 - 0.5 * p;
        } else if p < 0.02 {
            self.as_hat *= 1.05;
        }
        self.as_hat = self.as_hat.clamp(self.rates.min, self.rates.max);
        (self.received, self.lost) = (0, 0);
    }
}

/// In bits, of frames at 30 per second.
fn expected_packet_size(rate: f64) -> f64 {
    let bits_per_frame = rate / 30.0;
    let packets_per_frame = (bits_per_frame / (1_200.0 * 8.0)).ceil();
    bits_per_frame / packets_per_frame
}

impl RateControl for Gcc {
    fn on_feedback(&mut self, now: Instant, feedback: &Feedback) {
        // Of several groups in a report, the worst signal holds.
        let mut signal = None;
        for acked in &feedback.acked {
            self.count(acked);
            match self.on_packet(acked) {
                Some(Signal::Over) => signal = Some(Signal::Over),
                Some(other) if signal != Some(Signal::Over) => signal = Some(other),
                _ => {}
            }
        }
        if let Some(last) = feedback.acked.last() {
            let rtt = now.since(last.sent).as_millis_f64();
            let s_rtt = self
                .s_rtt
                .map_or(rtt, |s_rtt| s_rtt + RTT_GAIN * (rtt - s_rtt));
            self.s_rtt = Some(s_rtt);
        }
        if let Some(signal) = signal {
            self.update_a_hat(now, signal);
        }
        self.update_as_hat(feedback);
    }

    fn target(&self) -> f64 {
        self.a_hat.min(self.as_hat)
    }

    fn srtt(&self) -> Option<Duration> {
        Some(Duration::from_millis(1).scaled(self.s_rtt?))
    }
}

fn ms(at: Instant) -> f64 {
    at.as_secs_f64() * 1e3
}

#[expect(clippy::cast_precision_loss, reason = "exact below 2^53")]
const fn real(n: u64) -> f64 {
    n as f64
}

#[cfg(test)]
mod tests;
