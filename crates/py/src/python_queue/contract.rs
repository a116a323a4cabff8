//! The contract suite, for queues written in Python.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use pyo3::exceptions::PyAssertionError;
use pyo3::prelude::*;
use sojourn_qdisc::testing::{self, Op, TestPacket};
use sojourn_qdisc::{LinkFacts, QdiscSpec, QueueFailure, Rate, Rng};

use super::failure::queue_failure;
use crate::errors::Failure;

/// Calls of the queue in one case, at most.
const CALLS: u64 = 400;

/// Drive a queue with `cases` random sequences of calls; an `AssertionError` names the broken rule.
#[pyfunction]
pub(crate) fn check_qdisc(
    py: Python<'_>,
    text: &str,
    cases: u64,
    seed: u64,
) -> Result<(), Failure> {
    let spec: QdiscSpec = text.parse()?;
    let link = LinkFacts {
        rate: Some(Rate::mbit(10)),
        ..LinkFacts::default()
    };
    for case in 0..cases {
        let rng = Rng::new(seed).fork(&format!("case/{case}"));
        let ops = operations(rng.fork("operations"));
        let build = || spec.build::<TestPacket>(&link, rng.fork("queue"));
        let checked =
            quietly(|| catch_unwind(AssertUnwindSafe(|| testing::check_qdisc(build, &ops))));
        let Err(panic) = checked else {
            continue;
        };
        if panic.is::<QueueFailure>() {
            return Err(queue_failure(py, panic));
        }
        let rule = panic.downcast_ref::<String>().cloned();
        let rule = rule.or_else(|| panic.downcast_ref::<&str>().map(|&rule| rule.to_owned()));
        let rule = rule.unwrap_or_else(|| "a rule".to_owned());
        let message = format!("{text} violates the queue contract in case {case}: {rule}");
        return Err(Failure::Python(PyAssertionError::new_err(message)));
    }
    Ok(())
}

/// Up to [`CALLS`] random operations.
fn operations(mut rng: Rng) -> Vec<Op> {
    let calls = rng.below(CALLS);
    (0..calls).map(|_| Op::decode(rng.next_u64())).collect()
}

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work` without the message that a panic prints: a broken rule is an exception here.
fn quietly<T>(work: impl FnOnce() -> T) -> T {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !QUIET.get() {
                before(info);
            }
        }));
    });
    QUIET.set(true);
    let done = work();
    QUIET.set(false);
    done
}
