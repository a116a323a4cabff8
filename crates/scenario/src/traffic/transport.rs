//! The transport of applications: `transport = "tcp"` or `"quic"`.

use sojourn_apps::{Exchange, Transport, quic_params};
use sojourn_transport::SenderParams;

use super::tcp::{check_hystartpp, read_params, write_params};
use crate::error::ScenarioError;
use crate::key::{Form, Key};
use crate::place::Fields;
use crate::value::{Table, insert, size};

/// The key that chooses it.
pub(super) const KEY: Key = Key::optional(
    "transport",
    Form::Choice(|| Transport::ALL.map(Transport::name).to_vec()),
    "Transport of the connections.",
);

/// Whether connections use TLS, for applications that may do without.
pub(super) const TLS: Key = Key::optional(
    "tls",
    Form::Flag,
    "Begin connections with a TLS 1.3 handshake.",
)
.or("true");

/// The size of a request: an HTTP request with its headers, at most 1 MiB.
pub(super) const REQUEST: Key =
    Key::optional("request", Form::Size(1, 1 << 20), "Size of a request.").or("400b");

/// Keys that QUIC connections do not have.
pub(super) const OF_TCP: [&str; 4] = ["on_ce", "after_idle", "pacing", "mss"];

/// Reads the connections and requests of an application. Settings that QUIC does not have are
/// refused beside it.
pub(super) fn read_exchange(fields: &Fields<'_>) -> Result<Exchange, ScenarioError> {
    let tcp = read_params(fields)?;
    let transport = chosen(fields)?.unwrap_or_default();
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
        request: fields.size("request")?,
    })
}

/// Refuses parameters of a slow start that these connections do not use.
pub(super) fn check_slow_start(
    fields: &Fields<'_>,
    tcp: &SenderParams,
    transport: Transport,
) -> Result<(), ScenarioError> {
    let in_use = match transport {
        Transport::Tcp => tcp.slow_start(),
        Transport::Quic => quic_params(tcp).slow_start(),
    };
    check_hystartpp(fields, tcp.cc, in_use)
}

/// The transport that is given, if one is.
pub(super) fn chosen(fields: &Fields<'_>) -> Result<Option<Transport>, ScenarioError> {
    fields.option(KEY.name, |place| place.one_of("transport", &Transport::ALL))
}

/// Writes them; the transport, unless it is the default.
pub(super) fn write_exchange(exchange: Exchange, fields: &mut Table) {
    let Exchange {
        transport,
        tcp,
        request,
    } = exchange;
    let own = transport != Transport::default();
    insert(fields, KEY.name, own.then(|| transport.name().into()));
    write_params(tcp, fields);
    insert(fields, "request", Some(size(request)));
}
