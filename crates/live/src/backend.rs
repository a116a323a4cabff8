//! The datapath as a backend.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::{fmt, fs};

use sojourn_apps::{DatagramKind, Transport};
use sojourn_backend::linux_tcp::{self, Missing, first_used};
use sojourn_backend::{
    Backend, BackendError, Cancellation, Completion, Feature, Fingerprint, Properties, Unsupported,
    locked,
};
use sojourn_net::{Dscp, Duration, IpVersion};
use sojourn_records::RecordSink;
use sojourn_scenario::Plan;
use sojourn_scenario::plan::{FlowConfig, Traffic};
use sojourn_transport::{ReceiveBuffer, ReceiverParams, SenderParams};

use crate::control::Changes;
use crate::flows::MOST_FLOWS;
use crate::run::{Ended, Options, Reach, Watcher, run};
use crate::{NAME, kernel_release};

/// Runs plans in real time, with real packets and the TCP of the host.
#[derive(Default)]
pub struct Live {
    /// Git commit of the build; `None`: unknown.
    pub commit: Option<String>,
    /// Options of runs that are not in their plans.
    pub options: Options,
    ended: Mutex<Option<Ended>>,
    watcher: Option<Box<Watcher>>,
    /// Of the next run.
    changes: Mutex<Option<Changes>>,
}

impl fmt::Debug for Live {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Live")
            .field("commit", &self.commit)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl Live {
    /// A backend with these options.
    pub fn new(commit: Option<String>, options: Options) -> Self {
        Self {
            commit,
            options,
            ended: Mutex::default(),
            watcher: None,
            changes: Mutex::default(),
        }
    }

    /// The same, with a `watcher` that is shown the links.
    #[must_use]
    pub fn watched(self, watcher: Box<Watcher>) -> Self {
        Self {
            watcher: Some(watcher),
            ..self
        }
    }

    /// The same; `changes` are asked for during its next run, by the other end of [`Control`](crate::Control).
    #[must_use]
    pub fn changed_by(self, changes: Changes) -> Self {
        *locked(&self.changes) = Some(changes);
        self
    }

    /// How the last run ended; `None`: no run has ended.
    pub fn last(&self) -> Option<Ended> {
        *locked(&self.ended)
    }
}

impl Backend for Live {
    fn name(&self) -> &'static str {
        NAME
    }

    fn properties(&self) -> Properties {
        Properties {
            deterministic: false,
            max_concurrency: NonZeroUsize::new(1),
            fingerprint: Fingerprint {
                version: env!("CARGO_PKG_VERSION").to_owned(),
                commit: self.commit.clone(),
                kernel: Some(kernel_release()),
            },
        }
    }

    fn can_capture(&self) -> bool {
        true
    }

    fn check(&self, plan: &Plan) -> Result<(), Unsupported> {
        let controls = available_controls();
        let mut features = Vec::new();
        let mut missing =
            |place: String, what: Cow<'static, str>| features.push(Feature { place, what });
        if plan.controller.is_some() {
            missing(
                "controller".to_owned(),
                "a controller of links (only simulated runs have one)".into(),
            );
        }
        for (n, link) in plan.config.links.iter().enumerate() {
            if link.radio.is_some() {
                missing(format!("links[{n}].medium"), "a wireless link".into());
            }
            if link.qdisc.paces_sockets() {
                let what = "pacing of a queue by the rates of sockets, which belong to other hosts";
                missing(format!("links[{n}].qdisc"), what.into());
            }
        }
        let is_bridge = matches!(self.options.reach, Reach::Bridge(_) | Reach::Router(_));
        for (n, flow) in plan.config.flows.iter().enumerate() {
            let lacks = of_place(flow, is_bridge).or_else(|| unsupported(flow, &controls));
            if let Some((key, what)) = lacks {
                missing(format!("flows[{n}].{key}"), what);
            }
        }
        let mut ecn = plan.config.flows.iter().enumerate();
        let first = ecn.find_map(|(_, flow)| asks_for_ecn(flow));
        let other = ecn.find(|(_, flow)| asks_for_ecn(flow).is_some_and(|ecn| Some(ecn) != first));
        if let Some((n, _)) = other {
            let what = "ECN for some flows and not for others: it is a setting of the host";
            missing(format!("flows[{n}].ecn"), what.into());
        }
        if plan.config.flows.len() > MOST_FLOWS {
            missing("flows".to_owned(), "more than 12,000 flows".into());
        }
        Unsupported::unless_empty(NAME, features)
    }

    fn run(
        &self,
        plan: &Plan,
        cancellation: &Cancellation<'_>,
        sink: &mut dyn RecordSink,
    ) -> Result<Completion, BackendError> {
        let ended = run(
            plan,
            &self.options,
            self.watcher.as_deref(),
            locked(&self.changes).take(),
            cancellation,
            sink,
        )?;
        *locked(&self.ended) = Some(ended);
        Ok(ended.completion)
    }
}

/// The first feature of a flow that real sockets do not support.
fn unsupported(flow: &FlowConfig, controls: &BTreeSet<String>) -> Option<Missing> {
    const QUIC: &str = "QUIC, whose model has no wire format";
    if flow.client.is_some() {
        return Some(("host", "several hosts at one end".into()));
    }
    if flow.ip == IpVersion::V6 {
        return Some(("ip", over_ipv6(flow).into()));
    }
    match &flow.traffic {
        Traffic::Quic { .. } => Some(("type", QUIC.into())),
        Traffic::App(app) if app.exchange().transport == Transport::Quic => {
            Some(("transport", QUIC.into()))
        }
        Traffic::Tcp { params, .. } => sender(params, controls),
        Traffic::App(app) => sender(&app.exchange().tcp, controls),
        Traffic::Program(_) | Traffic::Bridged => whole_run(flow),
        Traffic::Datagrams(config) => match config.kind() {
            DatagramKind::Media(_) => Some(("type", "media, whose receiver is simulated".into())),
            DatagramKind::Udp(_) | DatagramKind::UdpEcho(_) | DatagramKind::IcmpEcho => None,
        },
    }
}

/// Traffic that a bridge does not have, or that only a bridge has.
fn of_place(flow: &FlowConfig, is_bridge: bool) -> Option<Missing> {
    let what = match (&flow.traffic, is_bridge) {
        (Traffic::Bridged, false) => {
            "packets of other machines (only `sojourn bridge` and `sojourn interop` pass them)"
        }
        (Traffic::Bridged, true) | (_, false) => return None,
        (_, true) => "traffic of its own beside the packets that a bridge passes",
    };
    Some(("type", what.into()))
}

/// Why real sockets do not send a flow over IPv6.
const fn over_ipv6(flow: &FlowConfig) -> &'static str {
    if matches!(flow.traffic, Traffic::Program(_) | Traffic::Bridged) {
        "a version of IP for a program, which chooses the addresses that it sends to"
    } else {
        "IPv6 (built-in traffic of live runs uses IPv4)"
    }
}

/// Settings that packets of others do not support: they come for the whole run and have their own DSCP.
fn whole_run(flow: &FlowConfig) -> Option<Missing> {
    let keys = [
        (
            "start",
            flow.start != Duration::ZERO,
            "a later start of a program",
        ),
        (
            "start_jitter",
            flow.start_jitter != Duration::ZERO,
            "a later start of a program",
        ),
        (
            "stop",
            flow.stop.is_some(),
            "the end of a program before the end of the run",
        ),
        (
            "dscp",
            flow.dscp != Dscp::default(),
            "a DSCP of the packets of a program",
        ),
    ];
    first_used(&keys)
}

/// Message for an ECN of the receiver that differs from that of the sender.
const PEER_ECN: &str =
    "another ECN of the receiver, which is a setting of the host (net.ipv4.tcp_ecn)";

fn sender(params: &SenderParams, controls: &BTreeSet<String>) -> Option<Missing> {
    let name = params.cc.kind().name();
    if !controls.contains(name) {
        return Some(("cc", not_loaded(name).into()));
    }
    let usual = SenderParams::default();
    let keys = [
        (
            "mss",
            params.mss != usual.mss,
            "a segment size other than 1448 bytes",
        ),
        (
            "initial_window",
            params.initial_window != usual.initial_window,
            "an initial window other than 10 segments",
        ),
        ("peer_ecn", params.peer_ecn.is_some(), PEER_ECN),
        (
            "min_tso_segs",
            params.bursts.least != usual.bursts.least,
            "bursts other than the kernel's (net.ipv4.tcp_min_tso_segs)",
        ),
        (
            "gso_max_segs",
            params.bursts.most != usual.bursts.most,
            "bursts other than the device's (ip link set gso_max_segs)",
        ),
        (
            "pacing",
            params.pacing,
            "pacing of a control that does not pace",
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
            "receive_window",
            matches!(params.buffer, ReceiveBuffer::Fixed(_)),
            "a receive window, which is a setting of the host's sockets",
        ),
        (
            "receive_buffer",
            matches!(params.buffer, ReceiveBuffer::Tuned(_)),
            "a receive buffer, which is a setting of the host (net.ipv4.tcp_rmem)",
        ),
        (
            "ack_every",
            params.acks.every != usual.acks.every,
            "another number of segments per acknowledgement than the kernel's",
        ),
        (
            "ack_delay",
            params.acks.delay.is_some(),
            "another delay of acknowledgements than the kernel's",
        ),
        (
            "quick_acks",
            !params.acks.quick,
            "a receiver without quick ACKs",
        ),
        (
            "gro",
            params.device != usual.device,
            "offload at the receiver, which is a setting of the host's device (ethtool -K)",
        ),
    ];
    linux_tcp::of_receiver(params).or_else(|| first_used(&keys))
}

/// Message for a congestion control that is not loaded. The kernel requests the same module name.
fn not_loaded(name: &str) -> String {
    format!(
        "a congestion control that the kernel has not loaded (as root: modprobe tcp_{name}; `sojourn doctor` lists \
         the loaded ones)"
    )
}

/// Whether a flow opens connections, and whether they request ECN.
fn asks_for_ecn(flow: &FlowConfig) -> Option<bool> {
    match &flow.traffic {
        Traffic::Tcp { params, .. } => Some(params.offers_ecn()),
        Traffic::App(app) => Some(app.exchange().tcp.offers_ecn()),
        _ => None,
    }
}

/// Congestion controls that the kernel has loaded.
fn available_controls() -> BTreeSet<String> {
    let file = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    let names = fs::read_to_string(file).unwrap_or_default();
    names.split_whitespace().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_control_that_is_not_loaded_is_refused_with_the_command_that_loads_it() {
        let none = BTreeSet::new();
        let (key, what) = sender(&SenderParams::default(), &none).expect("refused");
        assert_eq!(key, "cc");
        assert!(what.contains("modprobe tcp_cubic"), "{what}");
        assert!(!what.contains('\n'), "{what}");
        let loaded = BTreeSet::from(["cubic".to_owned()]);
        assert_eq!(sender(&SenderParams::default(), &loaded), None);
        let other = SenderParams {
            peer_ecn: Some(sojourn_transport::PeerEcn::Classic),
            ..SenderParams::default()
        };
        let refused = sender(&other, &loaded);
        assert_eq!(refused, Some(("peer_ecn", PEER_ECN.into())));
    }
}
