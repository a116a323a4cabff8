#![expect(unreachable_pub, reason = "the queue of a test is public to no one")]

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use sojourn_net::{Bytes, Duration, Ecn, Instant};

use super::*;
use crate::contract::{Backlog, DropReason, MarkReason, Observer, Qdisc};
use crate::parameters::{Parameter, Parameters, Profile, Value, parameters};
use crate::registry::{QdiscSpec, register, register_class};
use crate::testing::{Op, Recorder, TestPacket, check_qdisc};

/// A FIFO that marks, or else drops, what arrives to a full queue.
#[derive(Clone, Debug)]
pub struct Marker<P> {
    params: MarkerParams,
    waiting: VecDeque<P>,
    bytes: Bytes,
}

impl<P: Packet> Qdisc<P> for Marker<P> {
    fn enqueue(&mut self, now: Instant, mut pkt: P, obs: &mut dyn Observer<P>) {
        let MarkerParams { limit, ecn, .. } = self.params;
        let full = self.waiting.len() >= limit;
        if self.waiting.len() >= 2 * limit || full && !ecn {
            return obs.on_drop(now, pkt, DropReason::Overlimit);
        }
        if full && pkt.mark_ce() {
            obs.on_mark(now, &pkt, MarkReason::Aqm);
        }
        self.bytes += pkt.size();
        self.waiting.push_back(pkt);
    }

    fn dequeue(&mut self, _now: Instant, _obs: &mut dyn Observer<P>) -> Option<P> {
        let pkt = self.waiting.pop_front()?;
        self.bytes -= pkt.size();
        Some(pkt)
    }

    fn backlog(&self) -> Backlog {
        Backlog {
            packets: self.waiting.len(),
            bytes: self.bytes,
        }
    }
}

parameters! {
    /// Parameters of [`Marker`].
    #[derive(Clone, Debug)]
    pub struct MarkerParams {
        /// Maximum number of packets without marks.
        pub limit: usize = 3 => packets(1, 100), "this test";
        /// Maximum time that no one reads.
        pub target: Option<Duration> = None => time(1, LONGEST).unset("none"), "this test";
        /// Whether it marks.
        pub ecn: bool = true => flag(), "this test";
    }
}

impl Params for MarkerParams {
    type Queue<P: Packet> = Marker<P>;

    const KINDS: &'static [Kind<Self>] = &[
        Kind {
            name: "marker",
            class: None,
            summary: "Marks what waits behind others",
            source: "this test",
            reconstruction: Some("everything"),
            profiles: &[Profile::Paper],
            start: Self::default,
            parameters: Self::PARAMETERS,
        },
        Kind {
            name: "dropper",
            class: None,
            summary: "Drops what waits behind others",
            source: "this test",
            reconstruction: None,
            profiles: &[Profile::Paper],
            start: || Self {
                ecn: false,
                ..Self::DEFAULT
            },
            parameters: Self::PARAMETERS,
        },
    ];

    fn kind(&self) -> &'static str {
        if self.ecn { "marker" } else { "dropper" }
    }

    fn conflict(&self) -> Option<String> {
        (self.limit == 13).then(|| "limit 13 must not be".to_owned())
    }

    fn build<P: Packet>(&self, _link: &LinkFacts, _rng: Rng) -> Marker<P> {
        Marker {
            params: self.clone(),
            waiting: VecDeque::new(),
            bytes: Bytes(0),
        }
    }
}

fn spec(text: &str) -> QdiscSpec {
    register::<MarkerParams>().unwrap();
    QdiscSpec::parse(text).unwrap()
}

#[test]
fn a_registered_queue_keeps_the_contract_alone_and_as_a_leaf() {
    let ops: Vec<_> = (0..2_000_u32)
        .map(|n| match n % 5 {
            0 | 3 => Op::Dequeue,
            _ => Op::Enqueue(n % 3, 600, if n % 2 == 0 { Ecn::Ect0 } else { Ecn::NotEct }),
        })
        .collect();
    for text in ["marker limit 2", "prio leaf marker limit 1", "dropper"] {
        let spec = spec(text);
        let build = || spec.build::<TestPacket>(&LinkFacts::default(), Rng::new(1));
        let history = check_qdisc(build, &ops);
        assert_eq!(
            history.recorder.marks.is_empty(),
            text == "dropper",
            "{text}"
        );
        assert!(!history.recorder.drops.is_empty(), "{text}");
    }
}

#[test]
fn text_pairs_and_defaults_are_those_of_a_queue() {
    let given = spec("marker limit 7p profile paper");
    assert_eq!(given.to_string(), "marker limit 7 ecn");
    let pairs = [("limit", "7".to_owned()), ("ecn", "on".to_owned())];
    assert_eq!(given.pairs(), pairs);
    assert_eq!(given.validate(), Ok(()));
    assert_eq!(spec("marker limit 3"), spec("marker"));
    assert_ne!(given, spec("marker"));
    assert_eq!(
        spec("dropper target 5ms").to_string(),
        "dropper limit 3 target 5ms"
    );
    assert_eq!(spec("marker noecn"), spec("dropper"));
    let leaves = spec("prio leaf marker / marker limit 9").provenance();
    let reconstructed = leaves.iter().filter_map(|queue| queue.reconstruction);
    assert!(reconstructed.eq(["everything"; 2]));
}

#[test]
fn errors_are_those_of_a_queue() {
    register::<MarkerParams>().unwrap();
    for (text, expected) in [
        (
            "marker_",
            "unknown queue \"marker_\"; did you mean \"marker\"?",
        ),
        (
            "marker tarqet 5ms",
            "marker: unknown parameter \"tarqet\"; did you mean \"target\"?",
        ),
        (
            "marker wait 5ms",
            "marker: unknown parameter \"wait\"; expected one of limit, target, ecn",
        ),
        (
            "dropper limit 0",
            "dropper: limit 0 is out of range; expected 1 to 100",
        ),
        (
            "marker limit x",
            "marker: limit \"x\" is not a whole number; expected 1 to 100",
        ),
        (
            "marker limit",
            "marker: limit needs a value; expected 1 to 100",
        ),
        ("marker limit 13", "marker: limit 13 must not be"),
    ] {
        assert_eq!(QdiscSpec::parse(text).unwrap_err().to_string(), expected);
    }
}

#[test]
fn a_registered_queue_is_in_the_catalogue_with_its_parameters() {
    register::<MarkerParams>().unwrap();
    let catalogue = crate::catalogue();
    let listed = catalogue
        .iter()
        .find(|info| info.name == "dropper")
        .unwrap();
    assert_eq!((listed.page, listed.class), (None, None));
    assert_eq!(listed.summary, "Drops what waits behind others");
    let parameters: Vec<_> = (listed.parameters.iter())
        .map(|p| (p.key, &*p.default, p.derived, &*p.range, p.provenance))
        .collect();
    assert_eq!(
        parameters,
        [
            ("limit", "3", false, "1 to 100", "this test"),
            ("target", "none", true, "1ns to 1000000s", "this test"),
            ("ecn", "off", false, "ecn or noecn", "this test"),
        ]
    );
    let json: serde_json::Value = serde_json::from_str(&crate::catalogue_json()).unwrap();
    let json = json.as_array().unwrap();
    let json = json.iter().find(|entry| entry["name"] == "marker").unwrap();
    assert_eq!(json["page"], serde_json::Value::Null);
    assert_eq!(json["parameters"][0]["unit"], "packets");
}

/// A queue without parameters, under this name.
macro_rules! named {
    ($params:ident, $name:literal) => {
        #[derive(Clone, Debug, Default)]
        struct $params;

        impl Parameters for $params {
            fn table(&self) -> &'static [Parameter] {
                &[]
            }

            fn value(&mut self, _key: &str) -> Option<&mut dyn Value> {
                None
            }
        }

        impl Params for $params {
            type Queue<P: Packet> = Marker<P>;

            const KINDS: &'static [Kind<Self>] = &[Kind {
                name: $name,
                class: Some("None"),
                summary: "Has no parameters",
                source: "this test",
                reconstruction: None,
                profiles: &[],
                start: Self::default,
                parameters: &[],
            }];

            fn build<P: Packet>(&self, link: &LinkFacts, rng: Rng) -> Marker<P> {
                Params::build(&MarkerParams::DEFAULT, link, rng)
            }
        }
    };
}

named!(Taken, "codel");
named!(Spaced, "a b");
named!(Empty, "");
named!(Plain, "marker.plain");

#[test]
fn names_that_a_specification_cannot_hold_or_that_exist_are_refused() {
    assert_eq!(
        register::<Taken>(),
        Err(RegisterError::Taken("codel".into()))
    );
    assert_eq!(register::<Spaced>(), Err(RegisterError::Name("a b".into())));
    assert_eq!(register::<Empty>(), Err(RegisterError::Name(String::new())));
}

#[test]
fn a_queue_without_parameters_and_profiles_says_so() {
    register::<Plain>().unwrap();
    assert_eq!(QdiscSpec::parse("marker.plain").unwrap().pairs(), []);
    for word in ["limit", "profile"] {
        assert_eq!(
            QdiscSpec::parse(&format!("marker.plain {word} 3"))
                .unwrap_err()
                .to_string(),
            format!("marker.plain: unknown parameter \"{word}\"; this queue takes no parameters")
        );
    }
}

/// A class that builds [`Marker`].
#[derive(Debug)]
struct Class(&'static str);

impl QueueClass for Class {
    fn name(&self) -> &str {
        self.0
    }

    fn source(&self) -> &'static str {
        "class Marker: …"
    }

    fn build(&self, link: &LinkFacts, rng: Rng) -> BoxedQueue {
        BoxedQueue::new(Params::build::<Ticket>(&MarkerParams::DEFAULT, link, rng))
    }
}

#[test]
fn a_class_is_built_and_takes_no_parameters() {
    const NAME: &str = "python:Marker:4567";
    register_class(Arc::new(Class(NAME))).unwrap();
    let spec = QdiscSpec::parse(NAME).unwrap();
    let mut queue = spec.build::<TestPacket>(&LinkFacts::default(), Rng::new(1));
    let mut seen = Recorder::default();
    queue.enqueue(Instant::ZERO, TestPacket::mtu(1), &mut seen);
    assert_eq!(
        queue.dequeue(Instant::ZERO, &mut seen),
        Some(TestPacket::mtu(1))
    );
    assert_eq!(source_of(NAME).as_deref(), Some("class Marker: …"));
    assert_eq!(source_of("marker"), None);
    assert!(crate::catalogue().iter().all(|info| info.name != NAME));
    for name in [NAME, "python:Other:0123"] {
        assert_eq!(
            QdiscSpec::parse(&format!("{name} limit 3"))
                .unwrap_err()
                .to_string(),
            format!(
                "{name}: unknown parameter \"limit\"; a Python queue takes no parameters; set class \
                 attributes instead"
            )
        );
    }
    let refused = register_class(Arc::new(Class("python:a b")));
    assert_eq!(refused, Err(RegisterError::Name("python:a b".into())));
}

#[test]
fn a_python_queue_that_is_not_loaded_is_read_but_not_built() {
    let spec = QdiscSpec::parse("python:Fifo:0123").unwrap();
    assert_eq!(spec.to_string(), "python:Fifo:0123");
    let QdiscSpec::External(external) = &spec else {
        panic!("not an external queue");
    };
    assert!(!external.is_available());
    let built = catch_unwind(AssertUnwindSafe(|| {
        spec.build::<TestPacket>(&LinkFacts::default(), Rng::new(1))
    }));
    let failure = built.unwrap_err().downcast::<QueueFailure>().unwrap();
    assert_eq!(
        failure.cause.downcast_ref::<String>().unwrap(),
        "python:Fifo:0123 is not loaded"
    );
}

/// Returns the ticket of a packet that has left.
#[derive(Clone, Debug)]
struct Repeater(Option<Ticket>);

impl Qdisc<Ticket> for Repeater {
    fn enqueue(&mut self, _now: Instant, pkt: Ticket, _obs: &mut dyn Observer<Ticket>) {
        self.0 = Some(pkt);
    }

    fn dequeue(&mut self, _now: Instant, _obs: &mut dyn Observer<Ticket>) -> Option<Ticket> {
        self.0
    }

    fn backlog(&self) -> Backlog {
        Backlog::default()
    }
}

#[test]
fn a_packet_cannot_leave_twice() {
    let mut queue = BoxedQueue::new(Repeater(None)).into_external();
    let mut obs = Recorder::default();
    Qdisc::enqueue(&mut queue, Instant::ZERO, TestPacket::mtu(1), &mut obs);
    let first = Qdisc::dequeue(&mut queue, Instant::ZERO, &mut obs);
    assert_eq!(first, Some(TestPacket::mtu(1)));
    let again = catch_unwind(AssertUnwindSafe(move || {
        Qdisc::dequeue(&mut queue, Instant::ZERO, &mut Recorder::default())
    }));
    assert!(again.unwrap_err().is::<QueueFailure>());
}

#[test]
fn registered_disciplines_and_classes_of_python_are_external() {
    assert!(is_external("python:not_loaded:0123456789ab"));
    assert!(!is_external("pfifo") && !is_external("tests.nobody"));
}
