//! One metric of one scenario on one kernel, and what counts as agreement.

use serde::Serialize;

use crate::metric::{Metric, deviation, mean};
use crate::sample::two_sample;
use crate::truth::Scenario;

/// One metric of one scenario, ours and the kernel's.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Cell {
    /// Such as `6.12`.
    pub(crate) kernel: String,
    pub(crate) suite: String,
    pub(crate) scenario: String,
    pub(crate) title: String,
    /// The queue, without its parameters.
    pub(crate) queue: String,
    /// Whom it measures, where TCP flows run.
    pub(crate) cc: Option<String>,
    pub(crate) metric: &'static str,
    /// The metric in full with its unit.
    #[serde(skip)]
    pub(crate) described: &'static str,
    /// Mean over our runs; `None`: no run yielded it.
    pub(crate) ours: Option<f64>,
    pub(crate) ours_deviation: f64,
    pub(crate) ours_runs: usize,
    pub(crate) linux: f64,
    /// Of the kernel with the most repetitions of the scenario.
    pub(crate) linux_deviation: f64,
    pub(crate) linux_runs: usize,
    /// The smallest and the largest value of a repetition.
    pub(crate) linux_range: [f64; 2],
    /// How far apart still is agreement.
    pub(crate) tolerance: f64,
    /// The same without regard to the kernel's deviation.
    pub(crate) metric_tolerance: f64,
    /// That of the two-sample test; `None`: with so few repetitions it could not reject.
    pub(crate) p_value: Option<f64>,
}

impl Cell {
    /// Our values beside the kernel's; `most` are those of the kernel with the most repetitions, from
    /// which the deviation comes. `None` if the kernel has no value.
    pub(crate) fn of(
        scenario: &Scenario,
        metric: Metric,
        ours: &[f64],
        linux: &[f64],
        most: &[f64],
    ) -> Option<Self> {
        let linux_mean = mean(linux)?;
        let metric_tolerance = metric.tolerance(linux_mean);
        Some(Self {
            kernel: scenario.kernel.clone(),
            suite: scenario.suite.clone(),
            scenario: scenario.name.clone(),
            title: scenario.title(),
            queue: scenario.queue().to_owned(),
            cc: scenario.controller().map(str::to_owned),
            metric: metric.name(),
            described: metric.described(),
            ours: mean(ours),
            ours_deviation: deviation(ours),
            ours_runs: ours.len(),
            linux: linux_mean,
            linux_deviation: deviation(most),
            linux_runs: linux.len(),
            linux_range: range(linux),
            tolerance: metric_tolerance.max(2.0 * deviation(most)),
            metric_tolerance,
            p_value: two_sample(ours, linux),
        })
    }

    /// Distance from the kernel in tolerances; up to 1 is agreement.
    pub(crate) fn distance(&self) -> f64 {
        match self.ours {
            None => f64::INFINITY,
            // Also where nothing is allowed: the kernel had 0 in every repetition.
            Some(ours) if (ours - self.linux).abs() <= self.tolerance => {
                (ours - self.linux).abs() / self.tolerance.max(f64::MIN_POSITIVE)
            }
            Some(ours) => (ours - self.linux).abs() / self.tolerance,
        }
    }

    pub(crate) fn agrees(&self) -> bool {
        self.distance() <= 1.0
    }

    /// Whether ours is between the repetitions of the kernel, or at most this part of its mean outside.
    pub(crate) fn is_in_range(&self, part: f64) -> bool {
        let [least, most] = self.linux_range;
        let margin = part * self.linux.abs();
        let ours = self.ours.unwrap_or(f64::NAN);
        (least - margin..=most + margin).contains(&ours)
    }

    /// Whether the kernel's deviation allows more than the metric does.
    pub(crate) fn is_limited_by_deviation(&self) -> bool {
        self.tolerance > self.metric_tolerance
    }

    /// Whether it agrees only because the kernel's deviation allows more than the metric does.
    pub(crate) fn agrees_by_deviation(&self) -> bool {
        let agrees_with = |tolerance| {
            let strict = Self {
                tolerance,
                ..self.clone()
            };
            strict.agrees()
        };
        self.agrees() && !agrees_with(self.metric_tolerance)
    }
}

fn range(values: &[f64]) -> [f64; 2] {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    [
        least,
        values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(ours: Option<f64>, linux: f64, tolerance: f64) -> Cell {
        Cell {
            kernel: String::new(),
            suite: String::new(),
            scenario: String::new(),
            title: String::new(),
            queue: String::new(),
            cc: None,
            metric: "drops",
            described: "drops, packets",
            ours,
            ours_deviation: 0.0,
            ours_runs: 3,
            linux,
            linux_deviation: 0.0,
            linux_runs: 3,
            linux_range: [linux - 1.0, linux + 1.0],
            tolerance,
            metric_tolerance: tolerance,
            p_value: None,
        }
    }

    #[test]
    fn agreement_ends_at_the_tolerance() {
        assert!(cell(Some(10.0), 8.0, 2.0).agrees());
        assert!(!cell(Some(10.1), 8.0, 2.0).agrees());
        assert!((cell(Some(11.0), 8.0, 2.0).distance() - 1.5).abs() < 1e-12);
    }

    #[test]
    fn a_value_is_in_the_range_of_the_repetitions_or_near_it() {
        let inside = cell(Some(9.0), 8.0, 2.0);
        assert!(inside.is_in_range(0.0));
        let outside = cell(Some(9.2), 8.0, 2.0);
        assert!(!outside.is_in_range(0.01) && outside.is_in_range(0.03));
        assert!(!cell(None, 8.0, 2.0).is_in_range(1.0));
    }

    #[test]
    fn the_deviation_of_the_kernel_may_decide() {
        let mut wide = cell(Some(10.0), 8.0, 3.0);
        assert!(!wide.is_limited_by_deviation() && !wide.agrees_by_deviation());
        wide.metric_tolerance = 2.5;
        assert!(wide.is_limited_by_deviation() && !wide.agrees_by_deviation());
        wide.metric_tolerance = 1.5;
        assert!(wide.agrees_by_deviation());
    }

    #[test]
    fn what_no_run_yielded_disagrees() {
        assert!(!cell(None, 8.0, 100.0).agrees());
        assert!(cell(Some(0.0), 0.0, 0.0).agrees());
    }
}
