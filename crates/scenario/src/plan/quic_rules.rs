//! Rules for QUIC traffic in a plan.

use sojourn_apps::LONGEST;
use sojourn_transport::quic;

use super::limits::MAX_INITIAL_WINDOW;

/// The first rule that QUIC traffic breaks: its key, and what it must be.
pub(super) fn check(
    bytes: Option<u64>,
    request: Option<u64>,
    params: &quic::Params,
) -> Result<(), (&'static str, String)> {
    let sizes = quic::SMALLEST_DATAGRAM..=quic::LARGEST_DATAGRAM;
    let certificates = 1..=quic::LARGEST_CERTIFICATE;
    if bytes == Some(0) {
        return Err(("bytes", "must be > 0".to_owned()));
    }
    if request == Some(0) {
        return Err(("request", "must be > 0".to_owned()));
    }
    if !(1..=MAX_INITIAL_WINDOW).contains(&params.initial_window) {
        let rule = format!("must be 1 to {MAX_INITIAL_WINDOW} datagrams");
        return Err(("initial_window", rule));
    }
    if !sizes.contains(&params.max_datagram) {
        let rule = format!("must be {} to {} bytes", sizes.start(), sizes.end());
        return Err(("max_datagram", rule));
    }
    if !certificates.contains(&params.certificate) {
        let rule = format!("must be 1 to {} bytes", quic::LARGEST_CERTIFICATE);
        return Err(("certificate", rule));
    }
    let limits = [
        ("max_data", params.flow.data),
        ("max_stream_data", params.flow.stream_data),
    ];
    if let Some((key, _)) = limits.into_iter().find(|&(_, bytes)| bytes == 0) {
        return Err((key, "must be > 0".to_owned()));
    }
    if params.ack.every == 0 {
        return Err(("ack_every", "must be >= 1".to_owned()));
    }
    let times = [
        ("max_ack_delay", params.ack.delay, quic::LONGEST_ACK_DELAY),
        ("idle_timeout", params.idle_timeout, LONGEST),
    ];
    match times.into_iter().find(|&(_, time, most)| time > most) {
        Some((key, _, most)) => {
            let seconds = most.as_nanos() / 1_000_000_000;
            Err((key, format!("must be at most {seconds} s")))
        }
        None => Ok(()),
    }
}
