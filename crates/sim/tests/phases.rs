//! Periodic sources that start together: what they get follows from the queue, not from the clock.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use sojourn_apps::PingSample;
use sojourn_net::Duration;
use sojourn_records::Records;
use sojourn_scenario::Scenario;
use sojourn_sim::run;

const MS: Duration = Duration::from_millis(1);
const LINK: &str =
    "links.up = {rate = \"10mbit\", qdisc = \"pfifo limit 100\"}\nlinks.down = \"unlimited\"\n";

fn records(text: &str, replication: u32) -> Records {
    let scenario = Scenario::from_toml(&format!("{LINK}{text}")).unwrap();
    run(&scenario.config(0, replication), &mut |_| true)
        .unwrap()
        .unwrap()
}

/// Two streams of 6 Mbit/s each; how many of the datagrams of the first arrive for one of the second.
fn shares(keys: &str) -> Vec<f64> {
    let text = format!(
        "duration = \"4s\"\nwarmup = \"1s\"\nreplications = 60\n\
         traffic = [{{type = \"udp\", name = \"a\", direction = \"up\", rate = \"6mbit\"{keys}}}, \
         {{type = \"udp\", name = \"b\", direction = \"up\", rate = \"6mbit\"{keys}}}]\n"
    );
    (0..60)
        .map(|n| {
            let flows = records(&text, n).flows;
            let got =
                |n: usize| f64::from(u32::try_from(flows[n].totals.received_packets).unwrap());
            got(0) / (got(0) + got(1))
        })
        .collect()
}

#[test]
fn equal_streams_have_equal_shares_over_replications() {
    let shares = shares("");
    let n = f64::from(u32::try_from(shares.len()).unwrap());
    let mean = shares.iter().sum::<f64>() / n;
    let variance = shares.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
    assert!(variance > 1e-4, "the phase differs between replications");
    let error = (variance / n).sqrt();
    assert!((mean - 0.5).abs() < 3.3 * error, "{mean} ± {error}");
}

#[test]
fn a_phase_that_is_given_decides_who_gets_through() {
    // The first of two that always meet wins.
    let shares = shares(", phase = \"0s\"");
    assert!(shares.iter().all(|&share| share > 0.55), "{shares:?}");
}

#[test]
fn fifty_calls_hardly_wait() {
    // 50 packets at once take 9 ms; spread over 20 ms they hardly meet.
    let mean_ms = |keys: &str| {
        let text = format!(
            "duration = \"3s\"\nwarmup = \"1s\"\n\
             traffic = [{{type = \"voip\", direction = \"up\", count = 50{keys}}}]\n"
        );
        records(&text, 0).links[0].sojourn.mean().unwrap() / 1e6
    };
    let (spread, together) = (mean_ms(""), mean_ms(", phase = \"0s\""));
    assert!(spread < 0.2, "{spread} ms");
    assert!(together > 4.0, "{together} ms");
}

#[test]
fn pings_meet_bursts_of_their_own_period() {
    // Ten datagrams of 1,448 B every 100 ms take 12 ms.
    let text = "duration = \"30s\"\nwarmup = \"1s\"\n\
         traffic = [{type = \"udp\", direction = \"up\", count = 10, rate = \"115840bit\", phase = \"10ms\"}, \
         {type = \"ping\", direction = \"up\", interval = \"100ms\"}]\n";
    let records = records(text, 0);
    let pings = &records.flows.last().unwrap().pings;
    let shortest = pings.iter().filter_map(|ping| ping.rtt).min().unwrap();
    let waited = |ping: &&PingSample| ping.rtt.is_some_and(|rtt| rtt > shortest + MS);
    let (all, late) = (pings.len(), pings.iter().filter(waited).count());
    // 12 % of the time; one in five and one in twenty are 5 standard deviations away.
    assert!((all / 20..all / 5).contains(&late), "{late} of {all}");
}
