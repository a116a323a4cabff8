//! Bootstrap statistics for Python.

use pyo3::prelude::*;
use sojourn_lab::{Bootstrap, Interval};

use crate::errors::Failure;

/// Mean, low and high.
type Triple = (f64, f64, f64);

/// Return the mean of each sample and its percentile-bootstrap interval: mean, low, high.
///
/// For one value, low and high are nan. Samples of one length take little more time than one of them.
#[pyfunction]
#[pyo3(signature = (samples, *, level=0.95, resamples=2000, seed=1))]
pub(crate) fn bootstrap_means(
    py: Python<'_>,
    samples: &Bound<'_, PyAny>,
    level: f64,
    resamples: u32,
    seed: u64,
) -> Result<Vec<Triple>, Failure> {
    let samples: PyResult<Vec<_>> = samples
        .try_iter()?
        .map(|values| numbers(&values?))
        .collect();
    let samples = samples?;
    let bootstrap = Bootstrap {
        level,
        resamples,
        seed,
    };
    let intervals = py.detach(|| bootstrap.means(&samples))?;
    Ok(intervals.into_iter().map(triple).collect())
}

/// The numbers in an iterable, such as a list, an array or a series.
fn numbers(values: &Bound<'_, PyAny>) -> PyResult<Vec<f64>> {
    values.try_iter()?.map(|value| value?.extract()).collect()
}

const fn triple(interval: Interval) -> Triple {
    (interval.mean, interval.low, interval.high)
}
