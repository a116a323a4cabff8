//! DCTCP end to end: how marks are reported, and how the window responds.

use sojourn_net::{Duration, Instant};
use sojourn_transport::{
    Arrival, CcKind, Flags, MSS, Receiver, Segment, Sender, SenderParams, Ticks,
};

fn params() -> SenderParams {
    SenderParams {
        cc: CcKind::Dctcp.into(),
        ..SenderParams::default()
    }
}

/// A connection over a path of 20 ms, round trip by round trip.
struct Rounds {
    now: Instant,
    sender: Sender,
    receiver: Receiver,
    under_way: Vec<Segment>,
}

impl Rounds {
    fn new() -> Self {
        let ticks = Ticks::default();
        let mut rounds = Self {
            now: Instant::ZERO,
            sender: Sender::new(&params(), ticks),
            receiver: Receiver::answering(&params(), ticks),
            under_way: Vec::new(),
        };
        let mut out = Vec::new();
        rounds.sender.write(rounds.now, 1 << 40, &mut out);
        rounds.sender.connect(rounds.now, &mut out);
        rounds.under_way = out;
        rounds.round(|_| false);
        rounds
    }

    /// All segments sent arrive in one burst, marked according to `marked`, then all ACKs in one burst.
    /// Returns the ACKs.
    fn round(&mut self, marked: impl Fn(usize) -> bool) -> Vec<Segment> {
        let mut acks = Vec::new();
        self.now += Duration::from_millis(10);
        for (n, seg) in std::mem::take(&mut self.under_way).iter().enumerate() {
            assert!(seg.flags.has(Flags::ECT0), "{seg:?}");
            let arrival = Arrival {
                ce: marked(n),
                more: false,
            };
            self.receiver.on_segment(self.now, seg, arrival, &mut acks);
        }
        self.now += Duration::from_millis(10);
        for ack in &acks {
            self.sender.on_segment(self.now, ack, &mut self.under_way);
        }
        acks
    }
}

#[test]
fn the_receiver_reports_each_change() {
    let ticks = Ticks::default();
    let mut receiver = Receiver::answering(&params(), ticks);
    let mut out = Vec::new();
    let syn = Segment {
        flags: Flags::SYN | Flags::ECE | Flags::CWR | Flags::ECT0,
        ..Segment::EMPTY
    };
    receiver.on_segment(Instant::ZERO, &syn, Arrival::default(), &mut out);
    assert!(out[0].flags.has(Flags::ECE), "ECN is accepted");
    let mut answers = |seq: u32, ce: bool| {
        out.clear();
        let seg = Segment {
            seq,
            len: MSS,
            flags: Flags::ACK | Flags::ECT0,
            ..Segment::EMPTY
        };
        let now = Instant::from_millis(100 + u64::from(seq));
        receiver.on_segment(now, &seg, Arrival { ce, more: false }, &mut out);
        let reported = out.iter().map(|a| (a.ack, a.flags.has(Flags::ECE)));
        reported.collect::<Vec<_>>()
    };
    // Until its quick ACKs are used up each segment is acknowledged immediately, then pairs are;
    // where a pair begins depends on the growth of the window.
    let mut seq = 0;
    while !answers(seq, false).is_empty() {
        seq += 1;
    }
    // `seq` waits for its ACK. The next is marked: what came before is acknowledged first.
    assert_eq!(answers(seq + 1, true), [(seq + 1, false), (seq + 2, true)]);
    // Marks without a change cause no immediate ACKs, other than those of a growing window.
    let mut next = seq + 2;
    while !answers(next, true).is_empty() {
        next += 1;
    }
    assert_eq!(
        answers(next + 1, false),
        [(next + 1, true), (next + 2, false)]
    );
}

#[test]
fn the_reduction_is_proportional_to_the_fraction_marked() {
    let mut rounds = Rounds::new();
    for _ in 0..3 {
        rounds.round(|_| false);
    }
    // The first mark finds alpha near 1, as it is at the start: the window is nearly halved.
    let before = rounds.sender.cwnd();
    rounds.round(|n| n == 0);
    rounds.round(|_| false);
    let first = f64::from(rounds.sender.ssthresh().unwrap()) / f64::from(before);
    assert!((0.5..0.75).contains(&first), "{first}");
    // Eighty clean windows later alpha is 0, and grows by a thirty-second for each window of which
    // half is marked; the window gives up half of alpha.
    for _ in 0..80 {
        rounds.round(|_| false);
    }
    let given = |rounds: &mut Rounds| {
        let before = rounds.sender.cwnd();
        rounds.round(|n| n % 2 == 0);
        1.0 - f64::from(rounds.sender.ssthresh().unwrap()) / f64::from(before)
    };
    let series: Vec<f64> = (0..4).map(|_| given(&mut rounds)).collect();
    assert!(series[0] < 0.02, "{series:?}");
    assert!((0.03..0.07).contains(&series[3]), "{series:?}");
}
