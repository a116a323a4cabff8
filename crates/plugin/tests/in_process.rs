//! The two sides of the interface in one process: nothing of a queue is lost between them, and failures cross as text.

#![expect(clippy::unwrap_used, reason = "a test may panic")]
#![expect(unsafe_code, reason = "a declaration is used through pointers")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use sojourn_plugin::abi::{Queue, Ticket};
use sojourn_plugin::host::Plugin;
use sojourn_plugin::parameters::{Kind, Params, parameters};
use sojourn_plugin::testing::{Op, Recorder, TestPacket, check_qdisc};
use sojourn_plugin::{
    Backlog, CakeParams, ClassId, CodelParams, DropTailParams, Duration, Instant, LinkFacts,
    Observer, Packet, PieParams, Qdisc, QdiscSpec, QueueClass as _, QueueFailure, Rate, Rng,
    SfqParams, Statistic, WithHeaders, declaration, register,
};

/// Registers the queue of a declaration and returns its name; `digits` tell declarations apart.
fn plugin(declaration: Queue, digits: &str) -> String {
    let declaration = Box::leak(Box::new(declaration));
    // SAFETY: it is never freed, and its functions are those of this crate.
    let plugin = unsafe { Plugin::of(declaration, digits.to_owned()) }.unwrap();
    let name = plugin.name().to_owned();
    register(Arc::new(plugin)).unwrap();
    name
}

fn link() -> LinkFacts {
    LinkFacts {
        rate: Some(Rate::mbit(10)),
        name: Some(Arc::from("up")),
        ..LinkFacts::default()
    }
}

fn operations(seed: u64) -> Vec<Op> {
    let mut rng = Rng::new(seed);
    (0..600).map(|_| Op::decode(rng.next_u64())).collect()
}

/// Checks that a queue behaves as a plug-in as it does built in, with these parameters.
fn agrees(built_in: &str, plugin: &str, parameters: &str) {
    let spec = |name: &str| QdiscSpec::parse(&format!("{name} {parameters}")).unwrap();
    let (one, other) = (spec(built_in), spec(plugin));
    for seed in 0..20 {
        let run = |spec: &QdiscSpec| {
            let build = || spec.build::<TestPacket>(&link(), Rng::new(seed));
            check_qdisc(build, &operations(seed))
        };
        assert_eq!(run(&one), run(&other), "{built_in} {parameters}");
        let state = |spec: &QdiscSpec| {
            let mut queue = spec.build::<TestPacket>(&link(), Rng::new(seed));
            let mut obs = Recorder::default();
            for n in 0..200 {
                let now = Instant::from_millis(n);
                queue.enqueue(now, TestPacket::mtu(n), &mut obs);
                if n % 3 == 0 {
                    queue.dequeue(now, &mut obs);
                }
                if queue.next_timer().is_some_and(|due| due <= now) {
                    queue.on_timer(now);
                }
            }
            queue.on_link_rate(Instant::from_millis(200), Rate::mbit(3));
            let now = Instant::from_millis(201);
            (
                queue.statistics(),
                queue.state(now),
                queue.classes(),
                queue.peek(),
            )
        };
        assert_eq!(state(&one), state(&other), "{built_in} {parameters}");
    }
}

#[test]
fn a_plug_in_behaves_as_the_same_queue_built_in() {
    let pfifo = plugin(declaration::<DropTailParams, Ticket>("1"), "01");
    agrees("pfifo", &pfifo, "limit 5");
    let codel = plugin(declaration::<CodelParams, Ticket>("1"), "02");
    agrees("codel", &codel, "");
    agrees("codel", &codel, "target 1ms limit 20 noecn");
    // Random numbers, a timer, and statistics.
    let pie = plugin(declaration::<PieParams, Ticket>("1"), "03");
    agrees("pie", &pie, "target 1ms tupdate 2ms");
    // Classes, a shaper, and headers.
    let cake = plugin(declaration::<CakeParams, WithHeaders>("1"), "05");
    agrees("cake", &cake, "bandwidth 2mbit diffserv4 ack-filter");
    let sfq = plugin(declaration::<SfqParams, Ticket>("1"), "06");
    agrees("sfq", &sfq, "limit 20");
}

parameters! {
    /// Parameters of [`Broken`].
    #[derive(Clone, Debug)]
    pub struct BrokenParams {
        /// What breaks.
        pub at: u32 = 0 => count(0, 9), "this test";
    }
}

impl Params for BrokenParams {
    type Queue<P: Packet> = Broken<P>;

    const KINDS: &'static [Kind<Self>] = &[Kind {
        name: "broken",
        class: None,
        summary: "Panics",
        source: "this test",
        reconstruction: None,
        profiles: &[],
        start: Self::default,
        parameters: Self::PARAMETERS,
    }];

    fn conflict(&self) -> Option<String> {
        (self.at == 9).then(|| "at 9 breaks nothing".to_owned())
    }

    fn build<P: Packet>(&self, _link: &LinkFacts, _rng: Rng) -> Broken<P> {
        assert!(self.at != 1, "build");
        Broken(self.at, Vec::new())
    }
}

/// A stack of packets that panics at the given place.
#[derive(Clone, Debug)]
pub struct Broken<P>(u32, Vec<P>);

impl<P: Packet> Qdisc<P> for Broken<P> {
    const TIMED: bool = true;

    fn enqueue(&mut self, now: Instant, pkt: P, obs: &mut dyn Observer<P>) {
        assert!(self.0 != 2, "enqueue at {}", now.as_micros());
        if self.0 == 3 {
            pkt.transport();
        }
        if self.0 == 4 {
            obs.on_class(ClassId::named("only", 0));
        }
        self.1.push(pkt);
    }

    fn dequeue(&mut self, _now: Instant, _obs: &mut dyn Observer<P>) -> Option<P> {
        assert!(self.0 != 5, "dequeue");
        self.1.pop()
    }

    fn backlog(&self) -> Backlog {
        Backlog::default()
    }

    fn next_timer(&self) -> Option<Instant> {
        assert!(self.0 != 6, "next_timer");
        (self.0 == 8).then(|| Instant::from_millis(1))
    }

    fn statistics(&self) -> Vec<Statistic> {
        assert!(self.0 != 7, "statistics");
        Vec::new()
    }
}

#[test]
fn a_panic_ends_the_run_with_its_message() {
    let name = plugin(declaration::<BrokenParams, Ticket>("1"), "0a");
    let run = |at: u32| {
        let spec = QdiscSpec::parse(&format!("{name} at {at}")).unwrap();
        let mut queue = spec.build::<TestPacket>(&link(), Rng::new(1));
        let now = Instant::ZERO + Duration::from_micros(1_500);
        let mut obs = Recorder::default();
        queue.enqueue(now, TestPacket::mtu(1), &mut obs);
        queue.statistics();
        if queue.next_timer().is_some() {
            queue.on_timer(now);
        }
        queue.dequeue(now, &mut obs);
    };
    run(0);
    run(4);
    for (at, expected) in [
        (
            1,
            "broken: create failed at 0.000000 s of simulated time, link \"up\": build",
        ),
        (
            2,
            "broken: enqueue failed at 0.001500 s of simulated time, link \"up\": enqueue at 1500",
        ),
        (
            3,
            "broken: enqueue failed at 0.001500 s of simulated time, link \"up\": the queue reads headers behind \
             the IP header, which it does not declare",
        ),
        (
            5,
            "broken: dequeue failed at 0.001500 s of simulated time, link \"up\": dequeue",
        ),
        (
            6,
            "broken: next_timer failed at 0.000000 s of simulated time, link \"up\": next_timer",
        ),
        (
            7,
            "broken: statistics failed at 0.000000 s of simulated time, link \"up\": statistics",
        ),
        (
            8,
            "broken: on_timer failed at 0.001500 s of simulated time, link \"up\": afterwards, next_timer returned a \
             time that is not later",
        ),
    ] {
        let failure = catch_unwind(AssertUnwindSafe(|| run(at))).unwrap_err();
        let failure = failure.downcast::<QueueFailure>().unwrap();
        assert_eq!(failure.cause.downcast_ref::<String>().unwrap(), expected);
    }
    let conflict = QdiscSpec::parse(&format!("{name} at 9")).unwrap_err();
    assert_eq!(conflict.to_string(), format!("{name}: at 9 breaks nothing"));
}

#[test]
fn a_declaration_that_is_not_valid_is_refused() {
    let load = |change: fn(&mut Queue)| {
        let mut declaration = declaration::<BrokenParams, Ticket>("1");
        change(&mut declaration);
        let declaration = Box::leak(Box::new(declaration));
        // SAFETY: it is never freed, and its functions are those of this crate.
        let loaded = unsafe { Plugin::of(declaration, "0b".to_owned()) };
        loaded.map(drop).unwrap_err().to_string()
    };
    assert!(load(|of| of.abi = 2).starts_with("version 2 of the plug-in interface"));
    assert!(load(|of| of.size = 8).starts_with("the declaration has 8 bytes; expected"));
    assert!(load(|of| of.dequeue = None).starts_with("a function is missing"));
    assert!(load(|of| of.name.size = 0).starts_with("invalid queue name \"\""));
}
