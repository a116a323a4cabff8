//! The version of IP of a block of traffic.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use sojourn_net::IpVersion;
use sojourn_scenario::plan::Traffic;
use sojourn_scenario::{Config, Scenario};
use sojourn_transport::SenderParams;

fn scenario(traffic: &str) -> Result<Scenario, String> {
    let text = format!(
        "duration = \"10s\"\nwarmup = \"1s\"\nrtt = \"40ms\"\n[links]\nup = {{ rate = \"10mbit\", qdisc = \"pfifo\" }}\n\
         down = \"unlimited\"\n[[traffic]]\ndirection = \"up\"\n{traffic}\n"
    );
    Scenario::from_toml(&text).map_err(|error| error.to_string())
}

fn config(traffic: &str) -> Config {
    scenario(traffic).unwrap().config(0, 0)
}

fn tcp(traffic: &str) -> (IpVersion, SenderParams) {
    let flow = &config(traffic).flows[0];
    let params = match &flow.traffic {
        Traffic::Tcp { params, .. } => *params,
        Traffic::App(app) => app.exchange().tcp,
        other => panic!("{other:?}"),
    };
    (flow.ip, params)
}

#[test]
fn a_full_sized_segment_has_20_bytes_less_over_ipv6() {
    for kind in [
        "type = \"tcp\"",
        "type = \"web\"\npage = \"small\"",
        "type = \"request\"\nbytes = \"10kb\"",
    ] {
        let of = |ip: &str| {
            let (flow, params) = tcp(&format!("{kind}\n{ip}"));
            assert_eq!(flow, params.ip, "{kind}");
            (flow, params.mss)
        };
        // 1500 - 20 or 40 (RFC 791, RFC 8200) - 20 (RFC 9293) - 12 (RFC 7323).
        assert_eq!(of(""), (IpVersion::V4, 1_448), "{kind}");
        assert_eq!(of("ip = 4"), (IpVersion::V4, 1_448), "{kind}");
        assert_eq!(of("ip = 6"), (IpVersion::V6, 1_428), "{kind}");
        assert_eq!(of("ip = 6\nmss = 128"), (IpVersion::V6, 128), "{kind}");
    }
}

#[test]
fn what_is_the_default_is_not_written() {
    let json = |traffic| scenario(traffic).unwrap().to_json().to_owned();
    let old = json("type = \"tcp\"");
    assert_eq!(old, json("type = \"tcp\"\nip = 4\nmss = 1448"));
    assert!(!old.contains("\"ip\"") && !old.contains("mss"), "{old}");
    let new = json("type = \"tcp\"\nip = 6");
    assert!(new.contains("\"ip\":6") && !new.contains("mss"), "{new}");
    assert_eq!(new, json("type = \"tcp\"\nip = 6\nmss = 1428"));
    let again = Scenario::from_json(&new).unwrap();
    assert_eq!(again.config(0, 0), config("type = \"tcp\"\nip = 6"));
}

#[test]
fn what_exceeds_the_mtu_or_is_no_version_is_refused() {
    for (traffic, why) in [
        (
            "type = \"tcp\"\nip = 5",
            "traffic[0].ip: unknown version of IP 5; expected 4 or 6",
        ),
        (
            "type = \"tcp\"\nip = 6\nmss = 1448",
            "traffic[0].mss: 1448 is out of range over IPv6; expected a whole number from 128 to 1428",
        ),
        (
            "type = \"quic\"\nip = 6\nmax_datagram = \"1453b\"",
            "traffic[0].max_datagram: \"1453b\" is out of range over IPv6; expected 1200b to 1452b",
        ),
    ] {
        let refused = scenario(traffic).unwrap_err();
        assert!(refused.contains(why), "{refused}");
    }
    scenario("type = \"quic\"\nip = 6\nmax_datagram = \"1452b\"").unwrap();
    scenario("type = \"quic\"\nmax_datagram = \"1472b\"").unwrap();
}

#[test]
fn a_flow_and_its_parameters_have_the_same_version() {
    let mut config = config("type = \"tcp\"\nip = 6");
    assert_eq!(config.check(), Ok(()));
    config.flows[0].ip = IpVersion::V4;
    let error = config.check().unwrap_err();
    assert_eq!(
        error.to_string(),
        "flows[0].ip: must be that of its parameters"
    );
}

#[test]
fn the_load_counts_larger_packets() {
    let largest = |traffic: &str| {
        let load = config(traffic).load();
        (load.links[0].largest, load.links[0].arrivals)
    };
    let of = |ip| {
        largest(&format!(
            "type = \"udp\"\nrate = \"1mbit\"\npayload = \"2000b\"\nip = {ip}"
        ))
    };
    let [(v4, packets), (v6, same)] = [of(4), of(6)];
    assert_eq!((v4, v6), (2_042, 2_062));
    assert_eq!(packets, same);
}
