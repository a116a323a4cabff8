//! Transmit rings: what waits in them, and what byte queue limits leave there.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod mixed;

use sojourn_net::{Duration, Rate};
use sojourn_records::{LinkRecord, Records};
use sojourn_scenario::plan::{Config, RingConfig, Shaper};
use sojourn_transport::CcKind;

use mixed::{MS, bulk, flow, mixed, records};

const fn ring(packets: u32, bql: bool, coalesce: Duration) -> Shaper {
    Shaper::Ring(RingConfig {
        packets,
        bql,
        coalesce,
    })
}

#[test]
fn a_ring_of_one_packet_is_a_wire() {
    for qdisc in ["pfifo limit 100", "fq_codel", "cake bandwidth 4mbit"] {
        let mut config = mixed(qdisc, 3);
        let wire = records(&config);
        config.links[0].shaper = ring(1, false, Duration::ZERO);
        let mut ringed = records(&config);
        assert!(ringed.links[0].driver.take().is_some());
        assert_eq!(ringed, wire, "{qdisc}");
    }
}

/// Two uploads through `fq_codel` and `shaper`.
fn uploads(rate: Rate, shaper: Shaper) -> Config {
    let mut config = mixed("fq_codel", 5);
    config.links[0].rate = rate;
    config.links[0].shaper = shaper;
    config.flows = vec![
        flow("one", bulk(CcKind::Cubic, None, false)),
        flow("two", bulk(CcKind::Cubic, None, false)),
    ];
    config.duration = Duration::from_secs(20);
    config.measure_from = Duration::from_secs(5);
    config
}

fn delay_ms(link: &LinkRecord, quantile: f64) -> f64 {
    let of = |histogram: &sojourn_records::Histogram| histogram.quantile(quantile).unwrap();
    let driver = link.driver.as_ref().map_or(0, |driver| of(driver));
    Duration::from_nanos(driver).as_secs_f64() * 1e3
}

fn goodput(records: &Records, config: &Config) -> f64 {
    let link = &records.links[0];
    let time = config.duration.saturating_sub(config.measure_from);
    8e-6 * f64::from(u32::try_from(link.totals.sent_bytes).unwrap()) / time.as_secs_f64()
}

#[test]
fn what_waits_in_a_ring_is_beyond_the_queue_and_bql_keeps_it_short() {
    let rate = Rate::mbit(10);
    let mut table = Vec::new();
    let shapers = [
        ("no ring", Shaper::Serial),
        (
            "`tx_ring = 256`, `bql = false`",
            ring(256, false, Duration::ZERO),
        ),
        ("`tx_ring = 256`", ring(256, true, Duration::ZERO)),
        (
            "`tx_ring = 256`, `tx_coalesce = \"5ms\"`",
            ring(256, true, MS.times(5)),
        ),
    ];
    println!("| ring | ring and transmission, p95 (ms) | queue, p95 (ms) | link (Mbit/s) |");
    println!("|---|---|---|---|");
    for (name, shaper) in shapers {
        let config = uploads(rate, shaper);
        let records = records(&config);
        let link = &records.links[0];
        let queue = Duration::from_nanos(link.sojourn.quantile(0.95).unwrap());
        let row = (
            delay_ms(link, 0.95),
            queue.as_secs_f64() * 1e3,
            goodput(&records, &config),
        );
        println!("| {name} | {:.1} | {:.1} | {:.2} |", row.0, row.1, row.2);
        table.push(row);
    }
    // 256 frames of 1514 B are 310 ms, and CoDel sees none of it.
    assert!(table[1].0 > 150.0 && table[1].1 < 20.0, "{table:?}");
    // BQL: a packet in transmission, and one or two behind it.
    assert!(table[2].0 < 4.0, "{table:?}");
    // What is sent in 5 ms, twice, and a packet.
    assert!(table[3].0 > 4.0 && table[3].0 < 14.0, "{table:?}");
    for row in &table {
        assert!(row.2 > 9.6, "{table:?}");
    }
}

#[test]
fn bql_grows_until_the_device_is_busy_between_interrupts() {
    let mut config = uploads(Rate::mbit(100), Shaper::Serial);
    let wire = goodput(&records(&config), &config);
    config.links[0].shaper = ring(512, true, Duration::from_micros(500));
    let busy = goodput(&records(&config), &config);
    assert!(busy > 0.99 * wire, "{busy} {wire}");
    // A limit of fewer packets than leave between two interrupts leaves the link idle.
    config.links[0].shaper = ring(2, true, Duration::from_micros(500));
    let idle = goodput(&records(&config), &config);
    assert!(idle < 50.0, "{idle}");
}
