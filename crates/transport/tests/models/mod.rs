//! Fluid models of congestion controls: a window integrated over time, with periodic losses.
//!
//! They include what the formulae omit, so that a deviation from a formula can be distinguished from a
//! fault: whole segments and the direction of the window (CUBIC), the kernel's table (HSTCP).

/// A loss is answered one round trip after the segment was sent.
struct Losses {
    every: f64,
    sent: f64,
    next: f64,
    answer_in: Option<f64>,
}

impl Losses {
    fn new(every: f64) -> Self {
        Self {
            every,
            sent: 0.0,
            next: every,
            answer_in: None,
        }
    }

    /// Sends `segments` within `trips` round trips; whether a loss is to be answered now.
    fn send(&mut self, segments: f64, trips: f64) -> bool {
        self.sent += segments;
        if self.sent >= self.next && self.answer_in.is_none() {
            self.next += self.every;
            self.answer_in = Some(1.0);
        }
        self.answer_in = self.answer_in.map(|left| left - trips);
        let now = self.answer_in.is_some_and(|left| left <= 0.0);
        if now {
            self.answer_in = None;
        }
        now
    }
}

/// Steps of a round trip.
const STEP: f64 = 0.01;

/// Mean window over the losses after the first tenth.
fn mean(every: f64, losses: u32, mut window: impl FnMut(bool) -> f64) -> f64 {
    let mut path = Losses::new(every);
    let (mut answered, mut lost) = (0, false);
    let (mut sent, mut trips) = (0.0, 0.0);
    while answered < losses {
        let w = window(lost);
        lost = path.send(w * STEP, STEP);
        answered += u32::from(lost);
        if answered >= losses / 10 {
            (sent, trips) = (sent + w * STEP, trips + STEP);
        }
    }
    sent / trips
}

/// CUBIC (RFC 9438, C = 0.4, beta = 0.7, fast convergence) that begins with a window of `first`;
/// each acknowledgement aims at where the curve is a round trip of `rtt` seconds later, and the
/// distance from the plateau is in whole segments.
pub(crate) fn cubic(every: f64, losses: u32, rtt: f64, first: f64) -> f64 {
    let (mut w, mut w_max, mut k, mut t) = (first, first, 0.0, 0.0);
    mean(every, losses, |lost| {
        if lost {
            w_max = if w < w_max { w * 0.85 } else { w };
            w *= 0.7;
            k = ((w_max - w).max(0.0) / 0.4).cbrt();
            t = 0.0;
        }
        t += STEP * rtt;
        w = w.max(w_max + (0.4 * (t + rtt - k).powi(3)).trunc());
        w
    })
}

/// HSTCP whose increase and decrease are those of the row of RFC 3649's table at or above the window,
/// as Linux takes them, half of the increase per round trip.
pub(crate) fn hstcp(every: f64, losses: u32) -> f64 {
    let decrease = |w: f64| 0.5 - 0.4 * (w / 38.0).ln() / (83_000.0_f64 / 38.0).ln();
    let increase = |w: f64| 0.078 * w.powf(0.8) * 2.0 * decrease(w) / (2.0 - decrease(w));
    // The least window at which the increase reaches the row's.
    let mut rows = vec![38.0];
    for row in 2..=72 {
        let mut w = rows[rows.len() - 1];
        while increase(w) < f64::from(row) {
            w += 1.0;
        }
        rows.push(w);
    }
    let mut w = 0.12 * every.powf(0.835);
    mean(every, losses, |lost| {
        let row = rows.partition_point(|&top| top < w).min(rows.len() - 1);
        if lost {
            w *= 1.0 - decrease(rows[row]);
        }
        let row = u32::try_from(row).map_or(f64::INFINITY, f64::from);
        w += 0.5 * (row + 1.0) * STEP;
        w
    })
}
