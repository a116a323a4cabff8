//! What no TCP of a Linux kernel does for an application, for backends that use one.

use std::borrow::Cow;

use sojourn_transport::{CcSpec, ReceiverParams, SenderParams};

/// A key of a block, and the feature that it requests.
pub type Missing = (&'static str, Cow<'static, str>);

/// The first key whose feature is used, and the feature.
pub fn first_used(keys: &[(&'static str, bool, &'static str)]) -> Option<Missing> {
    let used = keys.iter().find(|(_, is_used, _)| *is_used);
    used.map(|&(key, _, what)| (key, what.into()))
}

/// The first feature of a sender that no socket offers.
pub fn of_sender(params: &SenderParams) -> Option<Missing> {
    let usual = SenderParams::default();
    let has_parameters = params.cc.kind().name().parse::<CcSpec>().ok() != Some(params.cc);
    first_used(&[
        (
            "profile",
            params.profile != usual.profile,
            "another implementation than the kernel's own",
        ),
        ("cc", has_parameters, "parameters of a congestion control"),
        (
            "slow_start",
            params.slow_start.is_some(),
            "a choice of the slow-start heuristic",
        ),
        ("ecn", params.accurate_ecn, "Accurate ECN"),
        (
            "on_ce",
            params.on_ce != usual.on_ce,
            "another response to marks than the kernel's",
        ),
        (
            "after_idle",
            params.after_idle != usual.after_idle,
            "another window after an idle period than the kernel's",
        ),
    ])
}

/// The first feature of a receiver that the programs of these backends do not have.
pub fn of_receiver(params: &ReceiverParams) -> Option<Missing> {
    first_used(&[
        (
            "read_rate",
            params.reader.rate.is_some(),
            "a receiver that reads at a rate",
        ),
        (
            "read_pause",
            params.reader.pause.is_some(),
            "a receiver that pauses",
        ),
    ])
}
