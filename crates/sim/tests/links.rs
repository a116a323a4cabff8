//! What links do to packets, held against what their settings say.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use sojourn_net::{Bytes, Dscp, Duration, Rate};
use sojourn_qdisc::{Framing, QdiscSpec};
use sojourn_sim::{
    Config, Encapsulation, FlowConfig, Hop, LinkConfig, Records, Shaper, Traffic, run,
};

const MS: Duration = Duration::from_millis(1);

fn link(name: &str, mbit: u64) -> LinkConfig {
    let qdisc = QdiscSpec::parse("pfifo limit 100").unwrap();
    LinkConfig::new(name.to_owned(), Rate::mbit(mbit), qdisc)
}

/// `traffic` over `link` and back over a wire of 20 ms.
fn over(link: LinkConfig, traffic: Traffic) -> Config {
    Config {
        seed: 1,
        duration: Duration::from_secs(20),
        measure_from: Duration::ZERO,
        sample: MS.times(100),
        links: vec![link],
        flows: vec![FlowConfig {
            name: "flow".to_owned(),
            forward: vec![Hop::Link(0)],
            reverse: vec![Hop::Delay(MS.times(20))],
            start: Duration::ZERO,
            start_jitter: Duration::ZERO,
            stop: None,
            dscp: Dscp::DEFAULT,
            client: None,
            traffic,
        }],
        keep_events: false,
    }
}

fn records(config: &Config) -> Records {
    run(config, &mut |_| true).unwrap().unwrap()
}

const PINGS: Traffic = Traffic::Ping {
    interval: Duration::from_millis(10),
};

#[test]
fn a_packet_takes_as_long_as_its_cells() {
    for shaper in [Shaper::Serial, Shaper::Bucket { burst: Bytes(1) }] {
        let config = over(
            LinkConfig {
                shaper,
                encapsulation: Encapsulation {
                    overhead: 32 - 14,
                    mpu: 0,
                    framing: Framing::Atm,
                },
                ..link("dsl", 1)
            },
            PINGS,
        );
        let records = records(&config);
        // 98 B on Ethernet, 84 of IP, 116 with PPPoE: three cells of 53 B, 8 us a byte.
        let time = Duration::from_micros(3 * 53 * 8);
        let sent = records.links[0].totals.sent_packets;
        assert!(sent > 1_900);
        assert_eq!(records.links[0].sending, time.times(sent));
        let wire = if shaper == Shaper::Serial {
            time
        } else {
            Duration::ZERO
        };
        for ping in &records.flows[0].pings[..1_900] {
            assert_eq!(ping.rtt, Some(MS.times(20) + wire));
        }
    }
}
