use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use sojourn_net::{Bytes, Ecn, Instant, Transport};

use super::*;
use crate::contract::{DropReason, MarkReason, Observer, Qdisc};
use crate::parameters::{Parameter, Scalar, domain};
use crate::registry::QdiscSpec;
use crate::testing::{Op, Recorder, TestPacket, check_qdisc};

/// A FIFO that marks, or else drops, what arrives to a full queue.
#[derive(Clone, Debug)]
struct Marker {
    limit: usize,
    ecn: bool,
    waiting: VecDeque<Ticket>,
}

impl TicketQueue for Marker {
    fn enqueue(
        &mut self,
        now: Instant,
        ticket: &Ticket,
        headers: Option<&Transport>,
        obs: &mut dyn Observer<Ticket>,
    ) {
        assert_eq!(headers, None, "they were not asked for");
        let mut ticket = *ticket;
        let full = self.waiting.len() >= self.limit;
        if self.waiting.len() >= 2 * self.limit || full && !self.ecn {
            return obs.on_drop(now, ticket, DropReason::Overlimit);
        }
        if full && ticket.mark_ce() {
            obs.on_mark(now, &ticket, MarkReason::Aqm);
        }
        self.waiting.push_back(ticket);
    }

    fn dequeue(&mut self, _now: Instant, _obs: &mut dyn Observer<Ticket>) -> Option<Leaving> {
        self.waiting.pop_front().map(|ticket| ticket.leaving())
    }

    fn boxed_clone(&self) -> Box<dyn TicketQueue> {
        Box::new(self.clone())
    }
}

/// A queue of this name that builds [`Marker`], with or without parameters.
#[derive(Debug)]
struct Class(&'static str);

const PARAMETERS: &[Parameter] = &[
    domain::packets(1, 100).declare("limit", "Packets without marks.", "this test"),
    domain::time(1, domain::LONGEST).unset("none").declare(
        "target",
        "A time that no one reads",
        "this test",
    ),
    domain::flag().declare("ecn", "Whether it marks", "this test"),
    domain::choice(&["head", "tail"]).declare("at", "A word", "this test"),
    domain::fraction(0, 1).declare("share", "A number", "this test"),
];

impl QueueClass for Class {
    fn name(&self) -> &str {
        self.0
    }

    fn origin(&self) -> Origin {
        Origin {
            text: Some("class Marker: …".to_owned()),
            ..Origin::default()
        }
    }

    fn summary(&self) -> &'static str {
        "Marks what waits behind others"
    }

    fn parameters(&self) -> &'static [Parameter] {
        if self.0.starts_with(PYTHON_PREFIX) {
            &[]
        } else {
            PARAMETERS
        }
    }

    fn defaults(&self) -> Vec<Scalar> {
        let all = [
            Scalar::Whole(3),
            Scalar::Unset,
            Scalar::Whole(1),
            Scalar::Whole(1),
            Scalar::Real(0.5),
        ];
        all[..self.parameters().len()].to_vec()
    }

    fn conflict(&self, values: &[Scalar]) -> Option<String> {
        (values.first() == Some(&Scalar::Whole(13))).then(|| "limit 13 must not be".to_owned())
    }

    fn build(&self, values: &[Scalar], link: &LinkFacts, _rng: Rng) -> Box<dyn TicketQueue> {
        assert_eq!(link.rate, None);
        let (limit, ecn) = match values {
            [Scalar::Whole(limit), _, Scalar::Whole(ecn), ..] => (*limit, *ecn != 0),
            _ => (3, true),
        };
        Box::new(Marker {
            limit: usize::try_from(limit).unwrap(),
            ecn,
            waiting: VecDeque::new(),
        })
    }
}

const NAME: &str = "plugin:marker:0123";

fn spec(text: &str) -> QdiscSpec {
    register(Arc::new(Class(NAME))).unwrap();
    QdiscSpec::parse(&text.replace("marker", NAME)).unwrap()
}

#[test]
fn a_registered_queue_keeps_the_contract_alone_and_as_a_leaf() {
    let ops: Vec<_> = (0..2_000_u32)
        .map(|n| match n % 5 {
            0 | 3 => Op::Dequeue,
            _ => Op::Enqueue(n % 3, 600, if n % 2 == 0 { Ecn::Ect0 } else { Ecn::NotEct }),
        })
        .collect();
    for text in ["marker limit 2", "prio leaf marker limit 1", "marker noecn"] {
        let spec = spec(text);
        let build = || spec.build::<TestPacket>(&LinkFacts::default(), Rng::new(1));
        let history = check_qdisc(build, &ops);
        let marks = &history.recorder.marks;
        assert_eq!(marks.is_empty(), text.contains("noecn"), "{text}");
        assert!(!history.recorder.drops.is_empty(), "{text}");
    }
}

#[test]
fn text_pairs_and_defaults_are_those_of_a_queue() {
    let given = spec("marker limit 7p target 5ms head share 0.25");
    assert_eq!(
        given.to_string(),
        format!("{NAME} limit 7 target 5ms ecn head share 0.25")
    );
    assert_eq!(QdiscSpec::parse(&given.to_string()).as_ref(), Ok(&given));
    let pairs = [
        ("limit", "7".to_owned()),
        ("target", "5ms".to_owned()),
        ("ecn", "on".to_owned()),
        ("at", "head".to_owned()),
        ("share", "0.25".to_owned()),
    ];
    assert_eq!(given.pairs(), pairs);
    assert_eq!(given.validate(), Ok(()));
    assert_eq!(spec("marker limit 3"), spec("marker"));
    assert_ne!(given, spec("marker"));
    let changed = spec("marker").with("limit", "9").unwrap();
    assert_eq!(changed, spec("marker limit 9"));
    assert_eq!(
        spec("prio leaf marker / marker limit 9").provenance().len(),
        3
    );
}

#[test]
fn errors_are_those_of_a_queue() {
    for (text, expected) in [
        (
            "marker tarqet 5ms",
            "unknown parameter \"tarqet\"; did you mean \"target\"?",
        ),
        (
            "marker wait 5ms",
            "unknown parameter \"wait\"; expected one of limit, target, ecn, head, tail, share",
        ),
        (
            "marker limit 0",
            "limit 0 is out of range; expected 1 to 100",
        ),
        (
            "marker limit x",
            "limit \"x\" is not a whole number; expected 1 to 100",
        ),
        ("marker limit", "limit needs a value; expected 1 to 100"),
        ("marker limit 13", "limit 13 must not be"),
        (
            "marker share 2",
            "share 2 is out of range; expected > 0 and at most 1",
        ),
    ] {
        spec("marker");
        let refused = QdiscSpec::parse(&text.replace("marker", NAME)).unwrap_err();
        assert_eq!(refused.to_string(), format!("{NAME}: {expected}"));
    }
}

#[test]
fn the_catalogue_has_a_registered_queue_if_it_is_asked_for() {
    spec("marker");
    let read = |name| {
        let json = crate::catalogue_json(name);
        serde_json::from_str::<Vec<serde_json::Value>>(&json).unwrap()
    };
    assert!(read(None).iter().all(|entry| entry["name"] != NAME));
    let [entry] = &read(Some(NAME))[..] else {
        panic!("not one entry");
    };
    assert_eq!(entry["page"], serde_json::Value::Null);
    assert_eq!(entry["summary"], "Marks what waits behind others");
    let parameters = entry["parameters"].as_array().unwrap().iter();
    let shown: Vec<_> = parameters
        .map(|p| ["key", "default", "range"].map(|key| p[key].as_str().unwrap()))
        .collect();
    assert_eq!(
        shown,
        [
            ["limit", "3", "1 to 100"],
            ["target", "none", "1ns to 1000000s"],
            ["ecn", "on", "ecn or noecn"],
            ["at", "tail", "head, tail"],
            ["share", "0.5", "> 0 and at most 1"],
        ]
    );
    assert!(read(Some("nobody")).is_empty());
}

#[test]
fn names_that_a_specification_cannot_hold_are_refused() {
    for name in ["codel", "", "plugin:a b", "python:a.b"] {
        let refused = register(Arc::new(Class(name))).unwrap_err().to_string();
        assert!(
            refused.contains("expected python: or plugin:, then"),
            "{refused}"
        );
    }
}

#[test]
fn a_class_is_built_and_takes_no_parameters() {
    const NAME: &str = "python:Marker:4567";
    register(Arc::new(Class(NAME))).unwrap();
    let spec = QdiscSpec::parse(NAME).unwrap();
    let mut queue = spec.build::<TestPacket>(&LinkFacts::default(), Rng::new(1));
    let mut seen = Recorder::default();
    queue.enqueue(Instant::ZERO, TestPacket::mtu(1), &mut seen);
    assert_eq!(queue.backlog().bytes, Bytes(TestPacket::mtu(1).size));
    assert_eq!(
        queue.dequeue(Instant::ZERO, &mut seen),
        Some(TestPacket::mtu(1))
    );
    let origin = origin_of(NAME).unwrap();
    assert_eq!(origin.text.as_deref(), Some("class Marker: …"));
    assert_eq!(origin_of("python:Other:0123"), None);
    for name in [NAME, "python:Other:0123"] {
        let refused = QdiscSpec::parse(&format!("{name} limit 3")).unwrap_err();
        assert_eq!(
            refused.to_string(),
            format!(
                "{name}: unknown parameter \"limit\"; a Python queue takes no parameters; set class \
                 attributes instead"
            )
        );
    }
}

#[test]
fn a_queue_that_is_not_loaded_is_read_but_not_built() {
    for text in [
        "python:Fifo:0123",
        "plugin:fifo:0123 limit 5 noecn tail",
        "plugin:fifo:0123",
    ] {
        let spec = QdiscSpec::parse(text).unwrap();
        assert_eq!(spec.to_string(), text);
        assert_eq!(
            QdiscSpec::parse(&format!("drr leaf {text}"))
                .unwrap()
                .provenance()
                .len(),
            2
        );
        let QdiscSpec::External(external) = &spec else {
            panic!("not an external queue");
        };
        assert!(!external.is_available());
        let built = catch_unwind(AssertUnwindSafe(|| {
            spec.build::<TestPacket>(&LinkFacts::default(), Rng::new(1))
        }));
        let failure = built.unwrap_err().downcast::<QueueFailure>().unwrap();
        let name = text.split(' ').next().unwrap();
        assert_eq!(
            failure.cause.downcast_ref::<String>().unwrap(),
            &format!("{name} is not loaded")
        );
    }
    let pairs = [("limit", "5"), ("at", "tail")];
    let pairs = pairs.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let from_table = QdiscSpec::from_pairs("plugin:fifo:0123", pairs.into_iter()).unwrap();
    assert_eq!(from_table.to_string(), "plugin:fifo:0123 limit 5 at tail");
}

/// Returns the ticket of a packet that has left.
#[derive(Clone, Debug)]
struct Repeater(Option<Ticket>);

impl TicketQueue for Repeater {
    fn enqueue(
        &mut self,
        _now: Instant,
        ticket: &Ticket,
        headers: Option<&Transport>,
        _obs: &mut dyn Observer<Ticket>,
    ) {
        assert_eq!(headers, Some(&Transport::Other), "they were asked for");
        self.0 = Some(*ticket);
    }

    fn dequeue(&mut self, _now: Instant, _obs: &mut dyn Observer<Ticket>) -> Option<Leaving> {
        self.0.map(|ticket| ticket.leaving())
    }

    fn boxed_clone(&self) -> Box<dyn TicketQueue> {
        Box::new(self.clone())
    }

    fn reads_headers(&self) -> bool {
        true
    }
}

#[test]
fn a_packet_cannot_leave_twice() {
    let mut queue = External::new(Box::new(Repeater(None)));
    let mut obs = Recorder::default();
    queue.enqueue(Instant::ZERO, TestPacket::mtu(1), &mut obs);
    let first = queue.dequeue(Instant::ZERO, &mut obs);
    assert_eq!(first, Some(TestPacket::mtu(1)));
    let again = catch_unwind(AssertUnwindSafe(move || {
        queue.dequeue(Instant::ZERO, &mut Recorder::default())
    }));
    assert!(again.unwrap_err().is::<QueueFailure>());
}

#[test]
fn plug_ins_and_classes_of_python_are_external() {
    assert!(is_external("python:not_loaded:0123456789ab"));
    assert!(is_external("plugin:not_loaded:0123456789ab"));
    assert!(!is_external("pfifo") && !is_external("tests.nobody"));
}
