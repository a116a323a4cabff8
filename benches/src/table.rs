//! The figures for people, beside the peers'.

use std::collections::BTreeMap;

use serde::Serialize;
use sojourn_bench::dumbbell::{DUMBBELLS, Dumbbell, SHORT};
use sojourn_bench::peers::REFERENCE;
use sojourn_bench::web::CONNECTIONS;

use crate::child::{Cost, IdleFlow, Run, WebConnections};

/// Everything measured, as `bench.json` has it.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Report {
    #[serde(flatten)]
    pub(crate) dumbbells: BTreeMap<&'static str, Run>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) idle_flow: Option<IdleFlow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) web_connections: Option<WebConnections>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) web3_connections: Option<WebConnections>,
    #[serde(rename = "S6", skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) queues: BTreeMap<&'static str, Cost>,
    /// The end of a slot of Predict in ns.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) slots: BTreeMap<&'static str, f64>,
    /// The cases that cost most, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) worst: BTreeMap<&'static str, Run>,
    /// CPU time of one of many short runs in ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) short_run_ms: Option<f64>,
}

/// What the columns are.
pub(crate) fn head() {
    let peers = &REFERENCE.peers;
    println!(
        "thousand data packets delivered per CPU second; peers: {}, {}\n",
        peers.date, peers.machine
    );
    print!("{:3} {:>9} {:>7} {:>8}", "", "sojourn", "CPU s", "RSS MB");
    for peer in &peers.simulators {
        print!(" {:>19}", peer.name);
    }
    println!("  budget (goal)");
}

/// One line of S1 to S5.
pub(crate) fn dumbbell(dumbbell: &Dumbbell, run: &Run) {
    let n = DUMBBELLS.iter().position(|d| d == dumbbell);
    let n = n.expect("the table is drawn from the list");
    let ours = run.delivered_per_cpu_s / 1e3;
    let rss = run.peak_rss_bytes.map_or("-".to_owned(), megabytes);
    print!("{:3} {ours:9.0} {:7.3} {rss:>8}", dumbbell.name, run.cpu_s);
    for peer in &REFERENCE.peers.simulators {
        let theirs = peer.k_per_s[n].map_or("does not finish".to_owned(), |k| {
            format!("{k:.0} (x{:.1})", ours / k)
        });
        print!(" {theirs:>19}");
    }
    let (budget, goal) = REFERENCE.budgets.k_per_s[dumbbell.name];
    let verdict = match ours {
        k if k >= goal => "goal met",
        k if k >= budget => "met",
        _ => "MISSED",
    };
    println!("  {budget:.0} ({goal:.0}) {verdict}");
    println!(
        "    {}: {} delivered, {} dropped, {:.2} events per packet",
        dumbbell.what,
        run.delivered,
        run.drops,
        run.events as f64 / run.delivered as f64
    );
}

/// The line about the instructions of S1 to S5.
pub(crate) fn instructions(name: &str, per_packet: Option<f64>) {
    match per_packet {
        Some(n) => println!("{name}: {n:.0} instructions per delivered packet"),
        None => println!("{name}: instructions not measured: valgrind is absent"),
    }
}

/// The line about idle flows.
pub(crate) fn idle(idle: &IdleFlow) {
    let most = idle.waiting_bytes.max(idle.done_bytes);
    let budget = REFERENCE.budgets.idle_flow_bytes;
    println!(
        "\nidle flow: {:.0} B before it starts, {:.0} B after it is done; budget {budget:.0} B {}",
        idle.waiting_bytes,
        idle.done_bytes,
        if most <= budget { "met" } else { "MISSED" }
    );
}

/// The line about many web connections: `web` or `web3`.
pub(crate) fn web(name: &str, web: &WebConnections) {
    let budget = REFERENCE.budgets.web_bytes[name];
    let rss = web.peak_rss_bytes;
    let enough = web.connections >= CONNECTIONS;
    let verdict = match rss {
        Some(bytes) if enough && bytes <= budget => "met",
        Some(_) => "MISSED",
        None => "not measured",
    };
    let costs = web.ns_per_packet.iter().map(|ns| format!("{ns:.0}"));
    println!(
        "\n{name}: {} connections at once, {} MB at the peak, {:.1} CPU s; budget: {CONNECTIONS} connections in {} MB, \
         {verdict}; ns per packet in each second: {}",
        web.connections,
        rss.map_or("-".to_owned(), megabytes),
        web.cpu_s,
        budget / 1_000_000,
        costs.collect::<Vec<_>>().join(", ")
    );
}

/// The line about the end of a slot of Predict, which comes once a millisecond.
pub(crate) fn slot(spec: &str, ns: f64) {
    let budget = REFERENCE.budgets.slot_percent;
    let percent = ns / 1e6 * 100.0;
    let met = if percent < budget { "met" } else { "MISSED" };
    println!(
        "\n{spec}: {ns:.0} ns for the end of a slot at 1 Gbit/s, {percent:.2} % of a core; \
         budget {budget:.0} % {met}"
    );
}

/// The lines about the cases that cost most.
pub(crate) fn worst(cases: &[Dumbbell], runs: &BTreeMap<&'static str, Run>, short_ms: f64) {
    println!(
        "\nworst cases: ns and instructions per delivered packet; instructions as multiples of tcp"
    );
    let count_of = |name| runs.get(name).and_then(|run| run.instructions_per_packet);
    let ratio = |name, base| count_of(name).zip(count_of(base)).map(|(n, of)| n / of);
    for case in cases {
        let run = &runs[case.name];
        let ns = run.cpu_s * 1e9 / run.delivered as f64;
        let shown = count_of(case.name).map_or("-".to_owned(), |n| format!("{n:.0}"));
        let times = ratio(case.name, "tcp").map_or("-".to_owned(), |times| format!("{times:.2}"));
        let budgets = &REFERENCE.budgets;
        let budget = match (
            budgets.worst_ns.get(case.name),
            budgets.worst_ratio.get(case.name),
        ) {
            (Some(&budget), _) => format!("budget {budget:.0} ns: {}", met(ns <= budget)),
            (_, Some((base, budget))) => match ratio(case.name, base) {
                Some(times) => {
                    format!(
                        "budget {budget} x {base}: {times:.2}, {}",
                        met(times <= *budget)
                    )
                }
                None => format!("budget {budget} x {base}: not measured"),
            },
            _ => String::new(),
        };
        println!(
            "{:14} {ns:7.1} {shown:>7} {times:>5}  {}  {budget}",
            case.name, case.what
        );
    }
    println!("{:14} {short_ms:.2} ms per run  {}", SHORT.name, SHORT.what);
}

const fn met(is_met: bool) -> &'static str {
    if is_met { "met" } else { "MISSED" }
}

/// What the columns of S6 are.
pub(crate) fn queues_head() {
    println!("\nS6: one enqueue and one dequeue, a packet of each of 100 flows standing; of 1,000");
    let peer = format!("{} ns", REFERENCE.peers.queue_ns.simulator);
    println!(
        "{:16} {:>6} {:>8} {:>13} {:>12} {:>9} {:>7} {peer:>15}",
        "", "ns", "ns 1000", "instructions", "empty bytes", "B/packet", "B/flow"
    );
}

/// One line of S6.
pub(crate) fn queue(kind: &str, cost: &Cost) {
    let instructions = cost
        .instructions_per_packet
        .map_or("not measured".to_owned(), |n| format!("{n:.0}"));
    let bytes = |b: Option<f64>| b.map_or("-".to_owned(), |b| format!("{b:.0}"));
    let peer = REFERENCE.peers.queue_ns.values.get(kind);
    let theirs = peer.map_or(String::new(), |ns| {
        format!("{ns:.0} (x{:.1})", ns / cost.ns_per_packet)
    });
    println!(
        "{kind:16} {:6.1} {:8.1} {instructions:>13} {:>12} {:>9} {:>7} {theirs:>15}",
        cost.ns_per_packet,
        cost.ns_many_flows,
        bytes(cost.empty_bytes),
        bytes(cost.bytes_per_packet),
        bytes(cost.bytes_per_flow)
    );
    if cost.instructions_per_packet.is_none() {
        println!("{:16} instructions not measured: valgrind is absent", "");
    }
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 / 1e6)
}
