//! Many web connections at once.

use std::sync::Arc;

use sojourn_apps::{Amount, Http, Object, Page, Wait, WebConfig};
use sojourn_net::{Bytes, Dscp, Duration, IpVersion, Rate};
use sojourn_records::Records;
use sojourn_scenario::plan::{Config, FlowConfig, Hop, Traffic};
use sojourn_transport::SenderParams;
use sojourn_transport::quic::FlowControl;

use crate::dumbbell::link;

/// How many connections there are to be.
pub const CONNECTIONS: u64 = 100_000;
/// Users, each with up to six connections, of HTTP/3 one to each of as many servers; some are done before the others
/// have begun.
const USERS: u64 = 20_000;
/// Of HTTP/3, whose handshakes take one round trip less, more are done.
const USERS_OF_THREE: u64 = 21_500;

/// Connections of a user.
const EACH: u32 = 6;

/// Users who begin to load a page of 50 objects of 10 kB over six connections each, within two seconds, through 10
/// Gbit/s and 100 ms: more than the link carries before the run ends.
///
/// # Errors
/// If the page is none.
pub fn config(http: Http) -> Result<Config, String> {
    match http {
        Http::Three => of_users(USERS_OF_THREE, EACH, http),
        Http::One | Http::Two => of_users(USERS, 1, http),
    }
}

/// A few users of HTTP/1.1 who do the same, for a profiler.
///
/// # Errors
/// If the page is none.
pub fn small() -> Result<Config, String> {
    const USERS: u64 = 500;
    of_users(USERS, 1, Http::One)
}

fn of_users(users: u64, origins: u32, http: Http) -> Result<Config, String> {
    let object = |n: u32| Object {
        name: format!("object {n}"),
        bytes: Amount::Fixed(Bytes(10_240)),
        after: n.min(1).checked_sub(1).into_iter().collect(),
        delay: Duration::ZERO,
        work: Duration::ZERO,
        origin: n % origins,
    };
    let web = Arc::new(WebConfig {
        tcp: SenderParams::default(),
        http,
        tls: true,
        zero_rtt: false,
        flow: FlowControl::default(),
        request: Bytes(400),
        page: Page::new((0..50).map(object).collect()).map_err(|e| e.rule)?,
        think: Wait::Fixed(Duration::from_secs(1)),
        visits: Some(1),
    });
    let one_way = Hop::Delay(Duration::from_millis(50));
    let flows = (0..users).map(|n| FlowConfig {
        name: n.to_string(),
        forward: vec![one_way, Hop::Link(0)],
        reverse: vec![one_way],
        start: Duration::ZERO,
        start_jitter: Duration::from_secs(2),
        stop: None,
        dscp: Dscp::DEFAULT,
        client: None,
        ip: IpVersion::V4,
        traffic: Traffic::App(web.clone()),
    });
    let duration = Duration::from_secs(4);
    Ok(Config {
        seed: 1,
        duration,
        measure_from: Duration::ZERO,
        sample: Duration::from_secs(1),
        links: vec![link("down", Rate::mbit(10_000), "fq_codel limit 100000")],
        flows: flows.collect(),
        keep_events: false,
        sample_state: false,
    })
}

/// Connections that were open when the run ended: those of users whose page was not whole.
pub fn open_at_the_end(records: &Records) -> u64 {
    let mut loading = vec![false; records.flows.len()];
    for transaction in &records.transactions {
        loading[transaction.flow as usize] = transaction.completed.is_none();
    }
    let apps = records.apps.iter().filter(|app| loading[app.flow as usize]);
    apps.map(|app| app.connections - app.failed).sum()
}
