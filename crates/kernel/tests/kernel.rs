//! Runs in a kernel that was built before; without one, they are skipped by name.

#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test may panic, and says what it skips"
)]

use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{env, fs};

use sojourn_backend::{Backend, Cancellation, Completion};
use sojourn_kernel::{Folder, LinuxKernel};
use sojourn_net::Instant;
use sojourn_records::Records;
use sojourn_scenario::{Plan, Scenario};

const SCENARIO: &str = r#"
name = "kernel"
duration = "6s"
warmup = "2s"
rtt = "20ms"
seed = 3
[links.up]
rate = "10mbit"
qdisc = "fq_codel"
[links.down]
rate = "20mbit"
qdisc = "pie"
[[traffic]]
type = "tcp"
direction = "up"
cc = "cubic"
[[traffic]]
type = "tcp"
direction = "down"
cc = "reno"
bytes = "2MB"
ecn = true
[[traffic]]
type = "udp"
direction = "up"
rate = "1mbit"
payload = "1000b"
[[traffic]]
type = "ping"
direction = "up"
interval = "20ms"
rtt = "60ms"
"#;

fn plan(text: &str) -> Plan {
    Scenario::from_toml(text).unwrap().plan(0, 0)
}

/// The kernel, or a skip that `make test` lists.
fn kernel(test: &str) -> Option<LinuxKernel> {
    let kernels = LinuxKernel::all(&Folder::of_user(), None);
    // The newest one.
    let built = kernels
        .into_iter()
        .rfind(|kernel| kernel.kernel().is_some());
    if built.is_none() {
        skip(
            test,
            "no kernel was built; `sojourn kernel build 6.12` builds one",
        );
    }
    built
}

fn skip(test: &str, reason: &str) {
    eprintln!("skipped {test}: {reason}");
    if let Some(path) = env::var_os("SOJOURN_SKIPPED") {
        let mut file = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .unwrap();
        writeln!(file, "crates/kernel {test}: {reason}").unwrap();
    }
}

fn run(kernel: &LinuxKernel, plan: &Plan) -> Records {
    let mut records = Records::default();
    let done = kernel.run(plan, &Cancellation::new(&|| false), &mut records);
    assert_eq!(done.unwrap(), Completion::Finished);
    records
}

#[test]
fn a_scenario_runs_in_the_kernel_and_repeats() {
    let Some(kernel) = kernel("a_scenario_runs_in_the_kernel_and_repeats") else {
        return;
    };
    let plan = plan(SCENARIO);
    let records = run(&kernel, &plan);
    let [down, up] = records.links.as_slice() else {
        panic!("two links");
    };
    assert_eq!((up.name.as_str(), up.series.len()), ("up", 60));
    // 4 s at 10 Mbit/s, in packets of 1514 bytes and some acknowledgements.
    assert!(
        (4_900_000..5_030_000).contains(&up.totals.sent_bytes),
        "{:?}",
        up.totals
    );
    assert!(up.totals.drops_aqm > 0, "{:?}", up.totals);
    assert!(down.totals.sent_packets > 500, "{:?}", down.totals);
    let queued = up.sojourn.mean().unwrap() / 1e6;
    assert!((1.0..20.0).contains(&queued), "{queued} ms");
    assert!(up.sojourn.count().abs_diff(up.totals.sent_packets) < 20);
    let [bulk, finite, udp, ping] = records.flows.as_slice() else {
        panic!("four flows");
    };
    let mbit = |bytes: u64| f64::from(u32::try_from(bytes).unwrap()) * 8.0 / 4.0 / 1e6;
    let goodput = mbit(bulk.totals.delivered_bytes);
    assert!((8.0..8.6).contains(&goodput), "{goodput} Mbit/s");
    assert!(bulk.series.iter().all(|sample| sample.cwnd.is_some()));
    assert!(bulk.totals.retransmits > 0);
    let done = finite.completed.unwrap().as_secs_f64();
    assert!((0.8..1.6).contains(&done), "{done} s");
    // 125 per second, of which none are lost.
    assert_eq!((udp.totals.sent_packets, udp.lost_packets), (500, Some(0)));
    let delay = udp.one_way_delay.as_ref().unwrap().mean().unwrap() / 1e6;
    assert!((10.8..20.0).contains(&delay), "{delay} ms");
    // Slow start of the download fills the queue of pie at first.
    let rtts: Vec<f64> = (ping.pings.iter())
        .filter(|ping| ping.sent.as_secs_f64() >= 2.0)
        .filter_map(|ping| Some(ping.rtt?.as_millis_f64()))
        .collect();
    assert!(
        rtts.len() >= 195 && rtts.iter().all(|rtt| (60.0..75.0).contains(rtt)),
        "{rtts:?}"
    );
    assert!(
        kernel.properties().deterministic,
        "the patch seeds random numbers"
    );
    assert_eq!(records, run(&kernel, &plan), "another run");
    let other = Plan {
        config: sojourn_scenario::plan::Config {
            seed: plan.config.seed + 1,
            ..plan.config.clone()
        },
        ..plan
    };
    assert_ne!(records, run(&kernel, &other), "another seed");
}

#[test]
fn queues_of_the_modules_run_in_the_kernel() {
    const TEST: &str = "queues_of_the_modules_run_in_the_kernel";
    let Some(kernel) = kernel(TEST) else {
        return;
    };
    if !kernel.kernel().unwrap().has_modules {
        skip(TEST, "the kernel was built without the modules of Sojourn");
        return;
    }
    for queue in [
        "cocoa flow_limit 20 max_increase 1",
        "afcd sample 1 ecn",
        "afq limit 100 sample 1",
        "floq limit 60",
        "predict limit 200",
    ] {
        let text = SCENARIO.replace("qdisc = \"fq_codel\"", &format!("qdisc = \"{queue}\""));
        let records = run(&kernel, &plan(&text));
        let up = records.links.iter().find(|link| link.name == "up").unwrap();
        assert!(
            (4_700_000..5_030_000).contains(&up.totals.sent_bytes),
            "{queue}: {:?}",
            up.totals
        );
        let signals = up.totals.drops_aqm + up.totals.drops_overlimit + up.totals.marks_aqm;
        // The only signal of predict is in slow start, before the warm-up ends.
        assert!(
            signals > 0 || queue.starts_with("predict"),
            "{queue}: {:?}",
            up.totals
        );
        let at_limits = up.totals.drops_aqm == 0;
        assert!(at_limits || !queue.starts_with("cocoa"), "{:?}", up.totals);
    }
}

#[test]
fn a_run_ends_on_request() {
    let Some(kernel) = kernel("a_run_ends_on_request") else {
        return;
    };
    let reached = AtomicU64::new(0);
    let second = |time: Instant| reached.store(time.as_nanos(), Ordering::Relaxed);
    let after_a_second = || reached.load(Ordering::Relaxed) >= 1_000_000_000;
    let cancellation = Cancellation::new(&after_a_second).reporting(&second);
    let long = plan(&SCENARIO.replace("duration = \"6s\"", "duration = \"600s\""));
    let done = kernel.run(&long, &cancellation, &mut Records::default());
    assert_eq!(done.unwrap(), Completion::Cancelled);
    let left = fs::read_dir(env::temp_dir()).unwrap().flatten();
    let own = format!("sojourn-kernel-{}-", std::process::id());
    let of_this = left.filter(|entry| entry.file_name().to_string_lossy().starts_with(&own));
    // Those of the other test may be there.
    assert!(of_this.count() <= 1);
}

#[test]
fn what_the_kernel_lacks_is_named() {
    let kernel = LinuxKernel::new("6.12", Folder::at(env::temp_dir().join("none")), None);
    let text = SCENARIO
        .replace("cc = \"cubic\"", "cc = \"bbr3\"")
        .replace("qdisc = \"pie\"", "qdisc = \"sfq_codel\"\njitter = \"2ms\"");
    let refused = kernel.check(&plan(&text)).unwrap_err().to_string();
    for part in [
        "backend \"linux-6.12\" does not support ",
        "links[0].qdisc: ",
        "links[0].jitter: ",
        "flows[0].cc: this kernel has no bbr3; expected a control of Linux",
    ] {
        assert!(refused.contains(part), "{refused}");
    }
    // Of a TCP source, not of the datagrams.
    let paced = SCENARIO.replace("bytes = \"2MB\"", "rate = \"2mbit\"");
    let refused = kernel.check(&plan(&paced)).unwrap_err().to_string();
    let named = "flows[1].rate: an application that writes at a rate";
    assert!(refused.contains(named), "{refused}");
    let missing = kernel.run(
        &plan(SCENARIO),
        &Cancellation::new(&|| false),
        &mut Records::default(),
    );
    let said = missing.unwrap_err().to_string();
    assert!(
        said.contains("to build it: sojourn kernel build 6.12"),
        "{said}"
    );
}

#[test]
fn queues_whose_marks_are_not_read_are_refused() {
    let kernel = LinuxKernel::new("7.1", Folder::at(env::temp_dir().join("none")), None);
    for queue in ["cake_mq", "dualpi2"] {
        let text = SCENARIO.replace("qdisc = \"pie\"", &format!("qdisc = \"{queue}\""));
        let refused = kernel.check(&plan(&text)).unwrap_err().to_string();
        assert!(refused.contains("links[0].qdisc"), "{refused}");
    }
    // The kernel's has RED, which marks.
    let red = SCENARIO.replace("qdisc = \"pie\"", "qdisc = \"sfq ecn\"");
    assert!(Scenario::from_toml(&red).is_err());
}
