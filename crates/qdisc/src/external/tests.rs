use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};

use sojourn_net::{Bytes, Ecn};

use super::*;
use crate::registry::QdiscSpec;
use crate::testing::{Op, Recorder, TestPacket, check_qdisc};

/// A FIFO of `limit` packets that marks, or else drops, what arrives to a full queue.
#[derive(Clone, Debug)]
struct Marker {
    limit: usize,
    waiting: VecDeque<Ticket>,
    bytes: Bytes,
}

impl Qdisc<Ticket> for Marker {
    fn enqueue(&mut self, now: Instant, mut pkt: Ticket, obs: &mut dyn Observer<Ticket>) {
        if self.waiting.len() >= 2 * self.limit {
            return obs.on_drop(now, pkt, DropReason::Overlimit);
        }
        if self.waiting.len() >= self.limit && pkt.mark_ce() {
            obs.on_mark(now, &pkt, MarkReason::Aqm);
        }
        self.bytes += pkt.size();
        self.waiting.push_back(pkt);
    }

    fn dequeue(&mut self, _now: Instant, _obs: &mut dyn Observer<Ticket>) -> Option<Ticket> {
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

#[derive(Debug)]
struct MarkerKind(&'static str);

#[derive(Debug)]
struct MarkerParams {
    limit: usize,
}

impl ExternalKind for MarkerKind {
    fn name(&self) -> &str {
        self.0
    }

    fn summary(&self) -> &'static str {
        "Marks what waits behind others"
    }

    fn configure(
        &self,
        parameters: &[(String, String)],
    ) -> Result<Arc<dyn ExternalParams>, String> {
        let mut limit = 3;
        for (key, value) in parameters {
            match (key.as_str(), value.parse()) {
                ("limit", Ok(packets)) => limit = packets,
                ("limit", Err(_)) => return Err(format!("limit {value:?} is not a number")),
                _ => return Err(format!("unknown parameter {key:?}; expected limit")),
            }
        }
        Ok(Arc::new(MarkerParams { limit }))
    }
}

impl ExternalParams for MarkerParams {
    fn build(&self, _link: &LinkFacts, _rng: Rng) -> BoxedQueue {
        BoxedQueue::new(Marker {
            limit: self.limit,
            waiting: VecDeque::new(),
            bytes: Bytes(0),
        })
    }
}

fn registered_marker(name: &'static str) {
    register(Arc::new(MarkerKind(name))).unwrap();
}

#[test]
fn a_registered_queue_keeps_the_contract_alone_and_as_a_leaf() {
    registered_marker("marker");
    let ops: Vec<_> = (0..2_000_u32)
        .map(|n| match n % 5 {
            0 | 3 => Op::Dequeue,
            _ => Op::Enqueue(n % 3, 600, if n % 2 == 0 { Ecn::Ect0 } else { Ecn::NotEct }),
        })
        .collect();
    for text in ["marker limit 2", "prio leaf marker limit 1"] {
        let spec = QdiscSpec::parse(text).unwrap();
        let build = || spec.build::<TestPacket>(&LinkFacts::default(), Rng::new(1));
        let history = check_qdisc(build, &ops);
        assert!(!history.recorder.marks.is_empty(), "{text}");
        assert!(!history.recorder.drops.is_empty(), "{text}");
    }
}

#[test]
fn text_pairs_and_errors_are_those_of_a_queue() {
    registered_marker("marker.two");
    let spec = QdiscSpec::parse("marker.two limit 7").unwrap();
    assert_eq!(spec.to_string(), "marker.two limit 7");
    assert_eq!(spec.pairs(), [("limit", "7".to_owned())]);
    assert_eq!(spec.validate(), Ok(()));
    let error = |text: &str| QdiscSpec::parse(text).unwrap_err().to_string();
    assert_eq!(
        error("marker.two target 5ms"),
        "marker.two: unknown parameter \"target\"; expected limit"
    );
    assert_eq!(
        error("marker.two limit x"),
        "marker.two: limit \"x\" is not a number"
    );
}

#[test]
fn a_registered_queue_is_listed_and_suggested() {
    registered_marker("marker_three");
    let names: Vec<_> = registered()
        .iter()
        .map(|kind| kind.name().to_owned())
        .collect();
    assert!(names.contains(&"marker_three".to_owned()), "{names:?}");
    assert_eq!(
        QdiscSpec::parse("marker_tree").unwrap_err().to_string(),
        "unknown queue \"marker_tree\"; did you mean \"marker_three\"?"
    );
    let listed: serde_json::Value = serde_json::from_str(&crate::catalogue_json()).unwrap();
    let entries = listed.as_array().unwrap();
    assert!(entries.iter().any(|entry| entry["name"] == "marker_three"));
}

#[test]
fn names_that_a_specification_cannot_hold_or_that_exist_are_refused() {
    let refusal = |name| register(Arc::new(MarkerKind(name))).unwrap_err();
    assert_eq!(refusal("codel"), RegisterError::Taken("codel".into()));
    assert_eq!(refusal("a b"), RegisterError::Name("a b".into()));
    assert_eq!(refusal(""), RegisterError::Name(String::new()));
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
    let mut queue = External {
        queue: Box::new(Repeater(None)),
        packets: Vec::new(),
        free: Vec::new(),
    };
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
