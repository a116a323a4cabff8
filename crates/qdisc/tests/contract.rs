//! Every discipline of the catalogue, in every profile, with and without marking, is a queue.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use proptest::collection::vec;
use proptest::prelude::*;
use sojourn_qdisc::testing::{Op, Recorder, TestPacket, check_qdisc, check_reordering_qdisc};
use sojourn_qdisc::{
    AnyQdisc, Duration, Ecn, Instant, LinkFacts, Qdisc, QdiscSpec, Rate, Rng, Unit, catalogue,
};

/// Every way to ask for a queue: kind, profile, switches; small limits, so that they bind.
#[expect(clippy::too_many_lines, reason = "it is a table")]
fn all_specs() -> Vec<QdiscSpec> {
    let mut specs = Vec::new();
    for kind in catalogue() {
        let limits: &[&str] = match kind.name {
            "bfifo" => &["", " limit 20000b", " limit 20000b headdrop"],
            "red" | "ared" => &[
                " limit 60000",
                " limit 60000 min 3000 max 9000 burst 4 probability 1",
                " limit 60000 min 3000 max 9000 gentle",
                " limit 60000 min 2000 max 6000 harddrop",
                " limit 60000 leaf sfq limit 20",
                " min 3000 max 9000 leaf cake bandwidth 5mbit",
                " min 3000 max 9000 adaptive leaf (prio leaf codel limit 20 / pie limit 9)",
            ],
            "sfq" => &[
                "",
                " limit 20 depth 5",
                " limit 20 depth 5 headdrop perturb 1s flows 4",
                " limit 20 ce_threshold 2ms",
            ],
            "fq_codel" | "fq_nocodel" => &["", " limit 20", " limit 20 flows 4 quantum 300"],
            "fq" => &[
                "",
                " limit 20",
                " flow_limit 5 quantum 300 initial_quantum 600 orphan_mask 2 ce_threshold 2ms",
                " maxrate 1mbit initial_quantum 1000 quantum 3000",
                " maxrate 200kbit limit 20",
            ],
            "cocoa" => &[
                "",
                " limit 20",
                " flow_limit 3 max_monitoring_interval 5ms",
                " flow_limit 5 quantum 300 orphan_mask 2 max_increase 1.1 guard_interval 0.5",
            ],
            "sfb" => &[
                "",
                " limit 20",
                " max 5 increment 0.1 decrement 0.01 penalty_burst 2",
                " max 5 target 1 increment 1 rehash 20ms db 15ms",
                " leaf sfq limit 20 depth 5 headdrop",
                " leaf cake bandwidth 5mbit",
                " max 5 target 1 increment 1 rehash 20ms db 15ms leaf codel target 1ms interval 2ms",
            ],
            "afcd" | "afcd_kernel2012" => &[
                "",
                " limit 20",
                " target 1ms persist 0ms interval 5ms sample 2 shadow 8 table 3",
                " limit 20 target 1ms persist 2ms sample 1 shadow 20 average qtarget 5 noprotect",
            ],
            "afd" => &[
                "",
                " limit 20 sample 1 shadow 8 table 3 gain 1",
                " limit 20 sample 2 shadow 20 qtarget 2 tupdate 1ms noaccumulate gain 0.5",
                " limit 20 sample 2 shadow 20 qtarget 2 tupdate 1ms norandom accumulate gain 0.5",
            ],
            "afq_kernel2012" | "afq" => &[
                " gain 0.5 sample 2 shadow 20 limit 100",
                " limit 20 sample 1 shadow 8 table 3 gain 1 tolerance 1",
            ],
            "floq" | "floq_share" | "floq_fixed" | "floq_protect" => &[
                "",
                " limit 20",
                " limit 20 pushout resume 5ms setup_time 20ms expiry 50ms connections 4",
                " limit 20 threshold 0.1 gamma 3 exponent 8 setup_weight 10 setup_packets 0",
                " limit 20 noquic gain 1 probability 0.3",
            ],
            "cobalt" => &["", " limit 20", " limit 20 target 1ms increment 0.05"],
            "choke" => &[
                "",
                " limit 40",
                " limit 40 min 2 max 9 burst 9 probability 1",
                " limit 40 min 2 max 5 harddrop",
            ],
            "blue" => &[
                " limit 20 freeze 1ms increment 0.1",
                " limit 20",
                " limit 5 freeze 1ns increment 1 decrement 0.5",
            ],
            "drr" => &[
                "",
                " classes 3 quantum 256 leaf pfifo limit 9",
                " classes 2 leaf cake bandwidth 2mbit / pfifo limit 20",
                " classes 2 leaf codel limit 20 ecn / (drr classes 2 leaf sfq limit 9 / cobalt)",
                " classes 4 quantum 9000 leaf fq_codel limit 20 / bfifo limit 20000b / \
                 (prio leaf pie target 1ms limit 20)",
            ],
            "htb" => &[
                " direct_qlen 20",
                " default b classes (name r rate 5mbit burst 1b cburst 1b) (name a parent r rate 1mbit ceil 4mbit \
                 leaf codel limit 20 ecn) (name b parent r rate 4mbit ceil 5mbit prio 1 leaf pfifo limit 20) \
                 filters (to a source_port 0-9)",
                " default b classes (name r rate 5mbit ceil 4mbit) (name m parent r rate 1mbit ceil 3mbit) \
                 (name a parent m rate 8kbit ceil 9mbit quantum 1b leaf fq_codel limit 20 flows 4) \
                 (name b parent r rate 3mbit linklayer atm leaf cake bandwidth 2mbit) \
                 filters (to a destination_port 1)",
            ],
            "prio" => &[
                "",
                " leaf pfifo limit 20",
                " leaf cake bandwidth 2mbit / pfifo limit 20 / cake bandwidth 10mbit",
                " leaf pfifo_head_drop limit 9 / codel limit 20 ecn / fq_codel limit 20 flows 4",
                " bands 4 priomap 3 3 1 1 0 0 2 2 3 3 3 3 3 3 3 3 leaf \
                 (prio leaf sfq limit 9 perturb 1s / pie target 1ms limit 20) / sfb limit 20 / \
                 red adaptive limit 60000 / codel limit 20 ecn",
            ],
            "cake" | "cake_mq" => CAKE,
            "mac80211" => &[
                "",
                " limit 20",
                " limit 20 flows 2 quantum 1514 target 1ms interval 5ms noairtime",
                " memory_limit 30000b target 1ms interval 2ms noaql",
            ],
            "predict" => &[
                "",
                " limit 20 rtt_max 50ms",
                " limit 20 slot 500us rtt_min 1ms rtt_max 30ms growth_min 1 growth_max 10 \
                 consistency 10 significance 0.001 persistence 0.001 full 0.1 compact",
                " rtt_min 1ms rtt_max 30ms growth_min 1 growth_max 10 consistency 10 \
                 significance 0.001 persistence 0.001 full 0.1 nodrop fallback",
            ],
            "codel" => &["", " limit 20", " ce_threshold 2ms"],
            "pie" => &["", " limit 20", " target 1ms tupdate 1ms"],
            "red_ns2" | "nlred" => &[
                "",
                " limit 20 mean_pktsize 1514 nowait",
                " min 2 max 6 q_weight 0.5 probability 1 nobytes nowait limit 20",
                " min 1 max 12 q_weight 1 nogentle nowait nobytes adaptive limit 30",
            ],
            "hred" => &[
                "",
                " rtt 5ms limit 20",
                " rtt 5ms",
                " rtt 2ms q_weight 1 probability 1 limit 30",
            ],
            "sfq_codel" => &[
                "",
                " limit 20",
                " limit 20 flows 4 quantum 300 target 1ms interval 5ms",
                " limit 40 flows 3 target 500us interval 2ms",
            ],
            "fq_pie" => &[
                "",
                " limit 20",
                " limit 40 flows 4 quantum 300 target 1ms tupdate 1ms",
                " limit 60 flows 3000 ecn_prob 99 memory_limit 5000 dq_rate_estimator bytemode",
            ],
            "dualpi2" => &[
                "",
                " limit 20",
                " memlimit 20000",
                " target 1ms tupdate 1ms coupling_factor 3 step_thresh 500us classic_protection 50",
                " limit 40 alpha 100 beta 1000 nodrop_on_overload",
                " limit 40 nqb",
            ],
            "pfifo" | "pfifo_head_drop" => &["", " limit 20", " limit 20 ce_threshold 2ms"],
            _ => &["", " limit 20"],
        };
        for profile in kind.profiles {
            for limit in limits {
                for ecn in ["ecn", "noecn"] {
                    // What follows a leaf would be the leaf's.
                    let mut text = format!("{} profile {profile}", kind.name);
                    if kind.parameters.iter().any(|p| p.key == "ecn") {
                        text = format!("{text} {ecn}");
                    }
                    text += limit;
                    specs.push(QdiscSpec::parse(&text).unwrap());
                    if kind.name == "red" && ecn == "ecn" && !text.contains("leaf") {
                        specs.push(QdiscSpec::parse(&(text + " nodrop")).unwrap());
                    }
                }
            }
        }
    }
    for scheduled in [
        "tshift 2ms range 2ms th_len 3 profile rfc",
        "max_rtt 20ms tshift 0ms limit 30 profile rfc",
        "drop_enqueue min_qlen_step 3 limit 40 alpha 100 beta 1000",
    ] {
        specs.push(QdiscSpec::parse(&format!("dualpi2 {scheduled}")).unwrap());
    }
    specs
}

/// Each isolation, each set of tins, each filter; small limits and a slow shaper.
const CAKE: &[&str] = &[
    "",
    " memlimit 20000b",
    " bandwidth 4mbit memlimit 9000b diffserv4",
    " bandwidth 1mbit ingress diffserv8 dual-srchost ack-filter conservative",
    " bandwidth 2mbit ingress precedence dual-dsthost rtt 5ms memlimit 40000b mpu 256",
    " besteffort flowblind lan pppoe-ptm ack-filter-aggressive",
    " besteffort srchost memlimit 6000b",
    " dsthost datacentre",
    " hosts ingress rtt 2ms",
    " flows rtt 10ms ack-filter-aggressive memlimit 9000b",
];

fn build(spec: &QdiscSpec, seed: u64) -> AnyQdisc<TestPacket> {
    let link = LinkFacts {
        rate: Some(Rate::mbit(10)),
        ..LinkFacts::default()
    };
    spec.build(&link, Rng::new(seed).fork("queue"))
}

/// Random operations.
fn ops() -> impl Strategy<Value = Vec<Op>> {
    vec(any::<u64>().prop_map(Op::decode), 0..400)
}

/// The same, every second flow L4S with all its packets and the others with none.
fn one_service_a_flow(ops: &[Op]) -> Vec<Op> {
    let sorted = ops.iter().map(|&op| match op {
        Op::Enqueue(flow, size, ecn) => {
            let ecn = match (flow % 2, ecn) {
                (0, Ecn::Ect1) => Ecn::Ect0,
                (0, Ecn::Ce) | (_, Ecn::NotEct) => [Ecn::NotEct, Ecn::Ce][flow as usize % 2],
                (1, Ecn::Ect0) => Ecn::Ect1,
                (_, same) => same,
            };
            Op::Enqueue(flow, size, ecn)
        }
        other => other,
    });
    sorted.collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_discipline_keeps_the_contract(ops in ops(), seed in any::<u64>()) {
        for spec in all_specs() {
            // It orders by ECN field as others do by flow.
            let history = match spec.kind() {
                "dualpi2" => check_qdisc(|| build(&spec, seed), &one_service_a_flow(&ops)),
                "mac80211" => check_reordering_qdisc(|| build(&spec, seed), &ops),
                _ => check_qdisc(|| build(&spec, seed), &ops),
            };
            let text = spec.to_string();
            let marking = ["sfb", "dualpi2", "cake", " ecn", " ce_t"].iter().any(|word| text.contains(word));
            prop_assert!(marking || history.recorder.marks.is_empty(), "{spec} marked");
        }
    }
}

#[test]
fn the_suite_exercises_what_it_checks() {
    // One long overload for each discipline: all drop, those that may mark do.
    let mut ops = Vec::new();
    let mut rng = Rng::new(1);
    for n in 0..4_000_u32 {
        let ecn = [Ecn::NotEct, Ecn::Ect0][n as usize % 2];
        ops.push(Op::Enqueue(n % 5, 1_514, ecn));
        ops.push(Op::Wait(Duration::from_micros(rng.below(2_400))));
        if n % 3 != 0 {
            ops.push(Op::Dequeue);
        }
    }
    let specs = all_specs();
    assert!(specs.len() > 80, "only {} specs", specs.len());
    for spec in specs {
        let history = match spec.kind() {
            "mac80211" => check_reordering_qdisc(|| build(&spec, 1), &ops),
            _ => check_qdisc(|| build(&spec, 1), &ops),
        };
        let text = spec.to_string();
        let unlimited = ["bfifo limit 1514000b", "drr classes 1024"].contains(&&*text)
            || text.starts_with("fq_codel limit 10240 ") && text.contains("100s");
        let queues = text.contains("nodrop") || unlimited;
        assert!(
            queues || !history.recorder.drops.is_empty(),
            "{text} dropped nothing"
        );
        let marks = history.recorder.marks.len();
        let silent =
            text.contains("target 100s") || text.contains("harddrop") || text.contains("pie limit");
        // Nothing grows exponentially here, unless little is asked of a growth.
        let silent = silent || text.starts_with("predict") && text.contains(" full 1 ");
        assert!(
            !text.contains(" ecn") || silent || marks > 0,
            "{text} marked nothing"
        );
    }
}

#[test]
fn no_queue_holds_more_packets_than_its_limit() {
    const LIMIT: usize = 40;
    for kind in catalogue() {
        let limit = kind.parameters.iter().find(|p| p.key == "limit");
        if limit.is_none_or(|p| !matches!(p.unit, Unit::Packets | Unit::Count(_))) {
            continue;
        }
        for profile in kind.profiles {
            let text = format!("{} profile {profile} limit {LIMIT}", kind.name);
            let mut queue = build(&QdiscSpec::parse(&text).unwrap(), 1);
            let (mut seen, mut most) = (Recorder::default(), 0);
            for id in 0..200 {
                let pkt = TestPacket {
                    flow: u32::try_from(id % 7).unwrap(),
                    size: 700,
                    ..TestPacket::mtu(id)
                };
                queue.enqueue(Instant::ZERO, pkt, &mut seen);
                most = most.max(queue.backlog().packets);
            }
            // The fast path of fq holds up to eight packets that its limit does not count.
            let beside = if text.contains("linux-6.12") { 8 } else { 0 };
            assert!(most <= LIMIT + beside, "{text} held {most}");
            // Those that drop at random or in batches need not come to it.
            let early = ["choke", "floq", "nlred", "red_ns2", "hred", "afq", "sfb"];
            let early = early.iter().any(|name| kind.name.contains(name));
            assert!(early || most >= LIMIT - 1, "{text} held {most} at most");
        }
    }
}
