//! The queues of profile `kernel` do what the kernel modules of Sojourn (`kernel/`) did with the same arrivals and
//! seed, packet for packet, those that draw random numbers too: `tests/vectors/modules` holds what was recorded, or the
//! folder in `SOJOURN_MODULE_VECTORS`.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use sojourn_qdisc::{
    AnyQdisc, Bytes, DropReason, Ecn, FlowKey, Instant, LinkFacts, MarkReason, Observer, Packet,
    Qdisc, QdiscSpec, Rate, Rng, TcpHeader, Transport,
};

/// The seed that the modules were loaded with.
const SEED: u64 = 1;
/// Bytes of Ethernet, IPv4 and TCP headers.
const TCP_HEADERS: u64 = 54;

/// A packet with the headers that `tests/vectors/tools/replay.c` writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Frame {
    id: u64,
    flow: u32,
    size: u64,
    ecn: Ecn,
    /// `enum kind` of the same file.
    kind: u64,
}

impl Packet for Frame {
    fn size(&self) -> Bytes {
        Bytes(self.size)
    }

    fn ecn(&self) -> Ecn {
        self.ecn
    }

    fn set_ecn(&mut self, ecn: Ecn) {
        self.ecn = ecn;
    }

    fn transport(&self) -> Transport {
        let flags = match self.kind {
            0 => return Transport::Udp,
            1 => return Transport::QuicLong,
            2 => TcpHeader::SYN,
            3 => TcpHeader::ACK,
            4 => TcpHeader::ACK | TcpHeader::FIN,
            other => panic!("kind {other}"),
        };
        Transport::Tcp(TcpHeader {
            flags,
            payload: u32::try_from(self.size - TCP_HEADERS).unwrap(),
            ..TcpHeader::default()
        })
    }

    fn flow(&self) -> FlowKey {
        FlowKey {
            source: 0x0A00_0102,
            destination: 0x0A00_0302,
            ports: (1_000 + self.flow) << 16 | (2_000 + self.flow),
            protocol: if self.kind < 2 { 17 } else { 6 },
        }
    }
}

#[derive(Default)]
struct Signals {
    drops: BTreeSet<u64>,
    marks: BTreeSet<u64>,
}

impl Observer<Frame> for Signals {
    fn on_drop(&mut self, _now: Instant, pkt: Frame, _reason: DropReason) {
        self.drops.insert(pkt.id);
    }

    fn on_mark(&mut self, _now: Instant, pkt: &Frame, _reason: MarkReason) {
        self.marks.insert(pkt.id);
    }
}

fn numbers(list: &Value) -> Vec<u64> {
    let list = list.as_array().unwrap().iter();
    list.map(|number| number.as_u64().unwrap()).collect()
}

/// Offers the recorded arrivals, dequeues at the recorded departures, and compares.
fn replay(path: &Path) {
    let name = path.file_stem().unwrap().to_string_lossy();
    let json: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(json["schema"], "sojourn-qdisc-vector/1", "{name}");
    let qdisc = json["qdisc"].as_str().unwrap();
    // The arithmetic of cocoa is the same in all profiles.
    let profile = if qdisc.starts_with("cocoa") {
        "paper"
    } else {
        "kernel"
    };
    let spec = QdiscSpec::parse(&format!("{qdisc} profile {profile}")).unwrap();
    let link = LinkFacts {
        rate: Rate::from_bits_per_sec(json["rate_bps"].as_u64().unwrap()),
        mtu: Bytes(json["mtu"].as_u64().unwrap()),
        ..LinkFacts::default()
    };
    let mut queue: AnyQdisc<Frame> = spec.build(&link, Rng::new(SEED));
    let mut signals = Signals::default();
    // The number of arrivals, and those that came with CE, which are not recorded as marked.
    let (mut arrived, mut congested) = (0, BTreeSet::new());
    let kinds = json["kinds"].as_array().map(|_| numbers(&json["kinds"]));
    // When a queue was made whose periods begin there; ours is made at 0.
    let age = json["made_ns"].as_i64().map_or(0, i64::unsigned_abs);
    for (nth, row) in json["events"].as_array().unwrap().iter().enumerate() {
        let row = numbers(row);
        let at = Instant::from_nanos(age + row[0]);
        while let Some(due) = queue.next_timer().filter(|&due| due <= at) {
            queue.on_timer(due);
        }
        match row[1..] {
            [flow, size, tos] => {
                let frame = Frame {
                    id: arrived,
                    flow: u32::try_from(flow).unwrap(),
                    size,
                    ecn: Ecn::from_bits(u8::try_from(tos).unwrap()),
                    kind: kinds
                        .as_ref()
                        .map_or(0, |kinds| kinds[usize::try_from(arrived).unwrap()]),
                };
                arrived += 1;
                if frame.ecn == Ecn::Ce {
                    congested.insert(frame.id);
                }
                queue.enqueue(at, frame, &mut signals);
            }
            [module] => {
                let ours = queue.dequeue(at, &mut signals).map(|pkt| pkt.id);
                assert_eq!(ours, Some(module), "{name}: event {nth} at {at:?}");
            }
            _ => panic!("{name}: {row:?}"),
        }
    }
    let expected = |key: &str| numbers(&json[key]).into_iter().collect::<BTreeSet<_>>();
    assert_eq!(signals.drops, expected("drops"), "{name}: drops");
    let marks: BTreeSet<_> = signals.marks.difference(&congested).copied().collect();
    assert_eq!(marks, expected("marks"), "{name}: marks");
    assert_eq!(
        queue.backlog().packets,
        0,
        "{name}: what the module dropped"
    );
    println!(
        "{name}: {} packets, {} drops, {} marks, as the module's",
        arrived,
        signals.drops.len(),
        marks.len(),
    );
}

#[test]
fn queues_do_what_their_kernel_modules_do() {
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/vectors/modules");
    let folder = std::env::var_os("SOJOURN_MODULE_VECTORS").map_or(recorded, PathBuf::from);
    let files = fs::read_dir(folder).unwrap();
    let mut paths: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    paths.sort();
    for path in &paths {
        replay(path);
    }
    assert!(paths.len() >= 15, "{paths:?}");
}
