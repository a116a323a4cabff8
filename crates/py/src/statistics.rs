//! Bootstrap statistics for Python.

use pyo3::prelude::*;
use sojourn_lab::{Bootstrap, Interval};

use crate::errors::Failure;

/// Mean, low and high.
type Triple = (f64, f64, f64);

/// Return the mean and its percentile-bootstrap interval: mean, low, high.
///
/// For one value, low and high are nan.
#[pyfunction]
#[pyo3(signature = (values, *, level=0.95, resamples=2000, seed=1))]
pub(crate) fn bootstrap_mean(
    py: Python<'_>,
    values: &Bound<'_, PyAny>,
    level: f64,
    resamples: u32,
    seed: u64,
) -> Result<Triple, Failure> {
    let values = numbers(values)?;
    let bootstrap = Bootstrap {
        level,
        resamples,
        seed,
    };
    Ok(triple(py.detach(|| bootstrap.mean(&values))?))
}

/// Return the mean of the paired differences `values - baseline`, with its interval.
#[pyfunction]
#[pyo3(signature = (values, baseline, *, level=0.95, resamples=2000, seed=1))]
pub(crate) fn bootstrap_difference(
    py: Python<'_>,
    values: &Bound<'_, PyAny>,
    baseline: &Bound<'_, PyAny>,
    level: f64,
    resamples: u32,
    seed: u64,
) -> Result<Triple, Failure> {
    let (values, baseline) = (numbers(values)?, numbers(baseline)?);
    let bootstrap = Bootstrap {
        level,
        resamples,
        seed,
    };
    Ok(triple(
        py.detach(|| bootstrap.difference(&values, &baseline))?,
    ))
}

/// The numbers in an iterable, such as a list, an array or a series.
fn numbers(values: &Bound<'_, PyAny>) -> PyResult<Vec<f64>> {
    values.try_iter()?.map(|value| value?.extract()).collect()
}

const fn triple(interval: Interval) -> Triple {
    (interval.mean, interval.low, interval.high)
}
