//! What the kernel and the network of the guest do not do.

use std::borrow::Cow;

use sojourn_apps::{DatagramKind, Transport};
use sojourn_backend::linux_tcp::{self, Missing, first_used};
use sojourn_backend::{Feature, Unsupported};
use sojourn_net::IpVersion;
use sojourn_path::config::{Encapsulation, LineConfig, Shaper};
use sojourn_qdisc::QueueChange;
use sojourn_scenario::Plan;
use sojourn_scenario::plan::{Change, Controlled, FlowConfig, LinkConfig, Traffic};
use sojourn_transport::{CcKind, ReceiveBuffer, ReceiverParams, SenderParams};

use crate::network::{MOST_DELAYS, Paths, Toward, probability};

/// Each flow takes two processes of the guest.
const MOST_FLOWS: usize = 500;
/// The guest numbers datagrams in their first bytes.
const SMALLEST_DATAGRAM: u64 = 4;

const NO_MODULES: &str = "a queue of Sojourn's modules, which this kernel was built without (build it again: sojourn kernel build 6.12 --again)";

/// Checks a plan; `backend` is the name of the kernel, which may have the modules of Sojourn.
///
/// # Errors
/// The features that are not supported.
pub(crate) fn check(
    backend: &'static str,
    plan: &Plan,
    has_modules: bool,
) -> Result<(), Unsupported> {
    let config = &plan.config;
    let mut features = Vec::new();
    let mut missing =
        |place: String, what: Cow<'static, str>| features.push(Feature { place, what });
    if plan.controller.is_some() {
        let what = "a controller of links (only simulated runs have one)";
        missing("controller".to_owned(), what.into());
    }
    if config.keep_events {
        missing(
            "keep_events".to_owned(),
            "drops and marks as events: the kernel counts them".into(),
        );
    }
    if config.sample_state {
        missing(
            "sample_state".to_owned(),
            "the state of queues over time".into(),
        );
    }
    for (n, link) in config.links.iter().enumerate() {
        for (key, what) in of_link(link, has_modules) {
            missing(format!("links[{n}].{key}"), what);
        }
    }
    for (n, flow) in config.flows.iter().enumerate() {
        if let Some((key, what)) = of_flow(flow) {
            missing(format!("flows[{n}].{key}"), what);
        }
    }
    if config.flows.len() > MOST_FLOWS {
        missing(
            "flows".to_owned(),
            format!("more than {MOST_FLOWS} flows").into(),
        );
    }
    match Paths::of(plan) {
        Err((n, key, what)) => missing(format!("flows[{n}].{key}"), what.into()),
        Ok(paths) => {
            let delays = Toward::BOTH.map(|toward| paths.classes(toward).len());
            if delays.into_iter().max() > Some(MOST_DELAYS) {
                let what = format!("more than {MOST_DELAYS} different RTTs");
                missing("flows".to_owned(), what.into());
            }
        }
    }
    Unsupported::unless_empty(backend, features)
}

/// The features of a link that the guest does not have.
fn of_link(link: &LinkConfig, has_modules: bool) -> Vec<Missing> {
    let mut missing = Vec::new();
    let mut note = |key, what: &'static str| missing.push((key, what.into()));
    // Their statistics have another form, so that marks would be missing.
    match link.qdisc.kind() {
        "cake_mq" => note(
            "qdisc",
            "the statistics of `cake_mq`, which are those of its parts",
        ),
        "dualpi2" => note("qdisc", "the statistics of `dualpi2`"),
        _ => {}
    }
    if link.radio.is_some() {
        note("medium", "a wireless link");
    }
    if link.trace.is_some() || link.rates.is_some() {
        note("trace", "a trace of the rate");
    }
    if link.controlled != Controlled::Nothing {
        note("rate", "a link that a controller changes");
    }
    if matches!(link.shaper, Shaper::Ring(_)) {
        note("tx_ring", "the transmit ring of a device");
    }
    if link.encapsulation != Encapsulation::ETHERNET {
        note(
            "overhead",
            "a link layer other than Ethernet; the shaper of `cake` has one",
        );
    }
    let plain = LineConfig {
        loss: link.line.loss,
        ..LineConfig::PERFECT
    };
    if probability(link.line.loss).is_none() {
        note("loss", "loss in bursts");
    }
    if link.line != plain {
        let other = [
            ("duplicate", link.line.duplicate > 0.0),
            ("jitter", link.line.jitter.is_some()),
            ("drops", !link.line.drops.is_empty()),
            ("ecn", link.line.ecn.is_some()),
        ];
        for (key, _) in other.into_iter().filter(|(_, is_set)| *is_set) {
            note(
                key,
                "a wire that does more than delay packets and lose them; expected delay and loss alone",
            );
        }
    }
    let error = match link.qdisc.module_queue(link.rate) {
        Some(_) if !has_modules => Some(NO_MODULES.to_owned()),
        Some(queue) => queue.err().map(|error| error.to_string()),
        None => {
            let words = link.qdisc.tc_line(Some(link.rate));
            words.err().map(|error| error.to_string())
        }
    };
    missing.extend(error.map(|error| ("qdisc", error.into())));
    for (n, change) in link.changes.iter().enumerate() {
        if let Some((key, what)) = of_change(link, change) {
            missing.push(("changes", format!("change {n}: {key}: {what}").into()));
        }
    }
    missing
}

/// The first feature of a change that `tc` cannot make.
fn of_change(link: &LinkConfig, change: &Change) -> Option<Missing> {
    let wire = &change.wire;
    if wire.duplicate.is_some() || wire.jitter.is_some() {
        return Some((
            "jitter",
            "a wire that does more than delay packets and lose them; expected delay and loss alone"
                .into(),
        ));
    }
    if wire.loss.is_some_and(|loss| probability(loss).is_none()) {
        return Some(("loss", "loss in bursts".into()));
    }
    let rate = change.rate.unwrap_or(link.rate);
    match change.queue.as_deref()? {
        QueueChange::Replacement(_) => Some((
            "qdisc",
            "another queue: the kernel does not count what is dropped then".into(),
        )),
        QueueChange::Parameters(spec) if spec.module_queue(rate).is_some() => Some((
            "qdisc",
            "other parameters of a queue of Sojourn's modules".into(),
        )),
        QueueChange::Parameters(spec) => {
            let words = spec.tc_line(Some(rate));
            words.err().map(|error| ("qdisc", error.to_string().into()))
        }
    }
}

/// The first feature of a flow that the guest does not have.
fn of_flow(flow: &FlowConfig) -> Option<Missing> {
    const ONLY: &str = "an application; the guest has bulk transfers, datagrams and pings";
    if flow.ip == IpVersion::V6 {
        return Some(("ip", "IPv6".into()));
    }
    match &flow.traffic {
        Traffic::Tcp { params, .. } => sender(params),
        Traffic::Quic { .. } => Some(("type", "QUIC, which the kernel does not have".into())),
        Traffic::App(app) if app.exchange().transport == Transport::Quic => {
            Some(("transport", "QUIC, which the kernel does not have".into()))
        }
        Traffic::App(_) => Some(("type", ONLY.into())),
        Traffic::Program(_) => Some(("type", "a program (only live runs start one)".into())),
        Traffic::Bridged => Some((
            "type",
            "packets of other machines (only `sojourn bridge` passes them)".into(),
        )),
        Traffic::Datagrams(config) => match config.kind() {
            DatagramKind::Media(_) => Some(("type", "media, whose receiver is simulated".into())),
            kind if kind
                .payload()
                .is_some_and(|payload| payload.0 < SMALLEST_DATAGRAM) =>
            {
                Some(("payload", "datagrams of less than 4 bytes".into()))
            }
            kind if kind.is_echo() && is_paced_by_replies(flow) => {
                Some(("interval", "echo requests that wait for the reply".into()))
            }
            _ => None,
        },
    }
}

/// Whether replies pace the datagrams of a flow.
pub(crate) fn is_paced_by_replies(flow: &FlowConfig) -> bool {
    let Traffic::Datagrams(config) = &flow.traffic else {
        return false;
    };
    let start = sojourn_net::Instant::ZERO;
    let source = config.build(start, &sojourn_net::Rng::new(0));
    source.due().is_some()
}

/// Whether the kernel has a congestion control.
fn has(kind: CcKind) -> bool {
    !matches!(
        kind,
        CcKind::Prague | CcKind::Bbr3 | CcKind::Ledbat | CcKind::Copa
    )
}

fn sender(params: &SenderParams) -> Option<Missing> {
    let usual = SenderParams::default();
    let kind = params.cc.kind();
    if !has(kind) {
        let what = format!("this kernel has no {kind}; expected a control of Linux, such as cubic");
        return Some(("cc", what.into()));
    }
    let keys = [
        (
            "peer_ecn",
            params.peer_ecn.is_some(),
            "another ECN of the receiver",
        ),
        (
            "min_tso_segs",
            params.bursts != usual.bursts,
            "other bursts than the kernel's",
        ),
        (
            "rate",
            params.writer.is_some(),
            "an application that writes at a rate",
        ),
    ];
    linux_tcp::of_sender(params)
        .or_else(|| first_used(&keys))
        .or_else(|| receiver(&params.receiver))
}

fn receiver(params: &ReceiverParams) -> Option<Missing> {
    let usual = ReceiverParams::default();
    let keys = [
        (
            "receive_buffer",
            matches!(params.buffer, ReceiveBuffer::Tuned(_)),
            "a maximum of the receive buffer that tunes itself",
        ),
        (
            "ack_every",
            params.acks != usual.acks,
            "other acknowledgements than the kernel's",
        ),
        (
            "gro",
            params.device != usual.device,
            "offload at the receiver",
        ),
    ];
    linux_tcp::of_receiver(params).or_else(|| first_used(&keys))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_scenario::Scenario;

    #[test]
    fn queues_of_modules_need_a_kernel_with_modules() {
        let text = "duration = \"5s\"\nrtt = \"20ms\"\n[links]\ndown = \"unlimited\"\n\
                    up = { rate = \"10mbit\", qdisc = \"cocoa\" }\n\
                    [[traffic]]\ntype = \"tcp\"\ndirection = \"up\"\ncc = \"cubic\"\n";
        let plan = |text: &str| Scenario::from_toml(text).expect(text).plan(0, 0);
        assert_eq!(check("linux-6.12", &plan(text), true), Ok(()));
        let said = |text: &str, has_modules| {
            let refused = check("linux-6.12", &plan(text), has_modules);
            refused.expect_err(text).to_string()
        };
        assert!(said(text, false).contains("links[0].qdisc: a queue of Sojourn's modules"));
        let pacing = text.replace("\"cocoa\"", "\"cocoa pacing\"");
        assert!(said(&pacing, true).contains("the kernel module has no pacing"));
    }
}
