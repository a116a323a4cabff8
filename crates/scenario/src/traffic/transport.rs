//! The transport of applications: `transport = "tcp"` or `"quic"`.

use std::fmt::Debug;
use std::sync::Arc;

use sojourn_apps::{ApplicationConfig, Exchange, Transport, quic_params};
use sojourn_net::{Bytes, Rng};
use sojourn_transport::SenderParams;

use super::block::Source;
use super::tcp;
use crate::declare::{Keys, keys, one_of};
use crate::error::ScenarioError;
use crate::key::{Form, Key};
use crate::place::Fields;
use crate::plan::Traffic;
use crate::value::Table;

keys! {
    /// The connections and requests of an application.
    #[derive(Clone, Copy, Debug)]
    pub(super) struct Requests {
        /// Transport of the connections.
        transport: Option<Transport> = one_of::<Transport>();
        /// Size of a request.
        request: Bytes = Form::Size(1, 1 << 20), default "400b";
    }
}

/// Keys of applications that send requests over connections.
pub(super) const EXCHANGE: &[&[Key]] = &[Requests::KEYS, tcp::Params::KEYS];

/// Keys that QUIC connections do not have.
pub(super) const OF_TCP: [&str; 14] = [
    "profile",
    "on_ce",
    "after_idle",
    "pacing",
    "mss",
    "receive_window",
    "receive_buffer",
    "ack_every",
    "ack_delay",
    "quick_acks",
    "gro",
    "gro_flush_timeout",
    "min_tso_segs",
    "gso_max_segs",
];

/// Reads the connections and requests of an application. Settings that QUIC does not have are
/// refused beside it.
pub(super) fn read_exchange(fields: &Fields<'_>) -> Result<Exchange, ScenarioError> {
    let Requests { transport, request } = Requests::read(fields)?;
    let tcp = tcp::read_params(fields)?;
    let transport = transport.unwrap_or_default();
    if transport == Transport::Quic {
        if let Some(place) = OF_TCP.iter().find_map(|key| fields.get(key)) {
            return Err(place.fail("is for TCP only; remove it, or set transport = \"tcp\""));
        }
        if let Some(place) = fields.get("ecn")
            && tcp.accurate_ecn
        {
            return Err(
                place.fail("\"accurate\" is for TCP only; over QUIC, expected true or false")
            );
        }
        if let Some(place) = fields.get("tls")
            && place.flag() == Ok(false)
        {
            return Err(place.fail("must be true over QUIC, since QUIC always uses TLS"));
        }
    }
    check_slow_start(fields, &tcp, transport)?;
    Ok(Exchange {
        transport,
        tcp,
        request,
    })
}

/// Refuses parameters of a slow start that these connections do not use.
pub(super) fn check_slow_start(
    fields: &Fields<'_>,
    tcp: &SenderParams,
    transport: Transport,
) -> Result<(), ScenarioError> {
    let (in_use, paced) = match transport {
        Transport::Tcp => (tcp.slow_start(), tcp.pacing),
        Transport::Quic => {
            let params = quic_params(tcp);
            (params.slow_start(), params.pacing)
        }
    };
    tcp::check_slow_start_parameters(fields, tcp.cc, in_use, (transport, paced))
}

/// An application that sends requests over connections: its own keys, and the configuration that follows from all.
#[derive(Debug)]
pub(super) struct App<K> {
    pub(super) keys: K,
    /// Users of a block share it.
    pub(super) config: Arc<dyn ApplicationConfig>,
}

impl<K: Keys + Debug + Send + Sync> Source for App<K> {
    fn write(&self, fields: &mut Table) {
        let Exchange {
            transport,
            tcp,
            request,
        } = self.config.exchange();
        let transport = (transport != Transport::default()).then_some(transport);
        Requests { transport, request }.write(fields);
        tcp::write_params(tcp, fields);
        self.keys.write(fields);
    }

    fn plan(&self, _: Rng) -> Traffic {
        Traffic::App(Arc::clone(&self.config))
    }
}
