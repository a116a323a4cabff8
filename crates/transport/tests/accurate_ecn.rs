//! Accurate ECN end to end: negotiation, and that every mark is counted.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod network;

use network::{Network, Transfer, World};
use sojourn_net::{Duration, Ecn, Instant, Rate};
use sojourn_transport::{
    Arrival, CcKind, Flags, MSS, Receiver, Segment, Sender, SenderParams, SlowStart, State, Ticks,
};

fn prague() -> SenderParams {
    params(CcKind::Prague)
}

fn params(cc: CcKind) -> SenderParams {
    SenderParams {
        cc: cc.into(),
        ..SenderParams::default()
    }
}

/// The SYN of `client`, the SYN-ACK of `server` if the SYN arrives with or without a mark, and the
/// acknowledgement.
fn handshake(client: SenderParams, server: Receiver, ce: bool) -> (Segment, Segment, Segment) {
    let (mut client, mut server) = (Sender::new(&client, Ticks::default()), server);
    let mut out = Vec::new();
    client.write(Instant::ZERO, 1 << 20, &mut out);
    client.connect(Instant::ZERO, &mut out);
    let syn = out.pop().unwrap();
    server.on_segment(Instant::ZERO, &syn, Arrival { ce, more: false }, &mut out);
    let syn_ack = out.pop().unwrap();
    client.on_segment(Instant::from_millis(20), &syn_ack, &mut out);
    let data = out.into_iter().find(|seg| seg.len > 0).unwrap();
    (syn, syn_ack, data)
}

fn ace(seg: &Segment) -> [bool; 3] {
    [Flags::AE, Flags::CWR, Flags::ECE].map(|flag| seg.flags.has(flag))
}

#[test]
fn two_ends_that_count_agree_and_report_how_the_syn_arrived() {
    let listener = || Receiver::answering(&prague(), Ticks::default());
    let (syn, syn_ack, data) = handshake(prague(), listener(), false);
    assert_eq!(ace(&syn), [true; 3]);
    // The SYN was ECT(1).
    assert_eq!(ace(&syn_ack), [false, true, true]);
    assert!(data.flags.has(Flags::ECT1));
    // The client's own counter is at 5.
    assert_eq!(ace(&data), [true, false, true]);
    let (_, syn_ack, _) = handshake(prague(), listener(), true);
    assert_eq!(ace(&syn_ack), [true, true, false]);
}

#[test]
fn a_peer_that_does_not_count_gets_no_ect1() {
    for listener in [
        Receiver::new(Ticks::default(), true),
        Receiver::new(Ticks::default(), false),
        Receiver::answering(&params(CcKind::Dctcp), Ticks::default()),
    ] {
        let (_, syn_ack, data) = handshake(prague(), listener, false);
        assert!(!syn_ack.flags.has(Flags::AE) && !syn_ack.flags.has(Flags::CWR));
        assert!(data.flags.ecn() == Ecn::NotEct, "{data:?}");
        assert_eq!(ace(&data), [false; 3]);
    }
    // A server that counts accepts what others offer.
    let listener = Receiver::answering(&prague(), Ticks::default());
    let classic = SenderParams {
        ecn: true,
        ..params(CcKind::Reno)
    };
    let (_, syn_ack, data) = handshake(classic, listener, false);
    assert_eq!(ace(&syn_ack), [false, false, true]);
    assert!(data.flags.has(Flags::ECT0));
}

fn accurate(cc: CcKind) -> SenderParams {
    SenderParams {
        accurate_ecn: true,
        ..params(cc)
    }
}

#[test]
fn counting_is_agreed_on_for_any_control_and_given_up_with_a_peer_that_cannot() {
    let listener = |params| Receiver::answering(&params, Ticks::default());
    for cc in [CcKind::Cubic, CcKind::Reno, CcKind::Bbr] {
        let ours = accurate(cc);
        let (syn, syn_ack, data) = handshake(ours, listener(ours), false);
        assert_eq!(ace(&syn), [true; 3]);
        // The SYN was not ECN-capable (RFC 3168 §6.1.1), and the SYN-ACK reports it.
        assert_eq!(ace(&syn_ack), [false, true, false], "{cc}");
        assert!(data.flags.has(Flags::ECT0));
        assert_eq!(ace(&data), [true, false, true]);
        // A server of RFC 3168 answers with ECE alone: the client then uses classic ECN.
        let (_, syn_ack, data) = handshake(ours, Receiver::new(Ticks::default(), true), false);
        assert_eq!(ace(&syn_ack), [false, false, true]);
        assert!(data.flags.has(Flags::ECT0), "{cc}");
        assert_eq!(ace(&data), [false; 3]);
        // One without ECN gets none.
        let (_, syn_ack, data) = handshake(ours, Receiver::new(Ticks::default(), false), false);
        assert_eq!(ace(&syn_ack), [false; 3]);
        assert!(data.flags.ecn() == Ecn::NotEct, "{cc}");
        // A server that counts uses classic ECN with a client of RFC 3168.
        let classic = SenderParams {
            ecn: true,
            ..params(cc)
        };
        let (_, syn_ack, _) = handshake(classic, listener(ours), false);
        assert_eq!(ace(&syn_ack), [false, false, true]);
    }
}

/// The segment with these bits in (AE, CWR, ECE), of a handshake.
fn with_bits(seg: &Segment, bits: [u8; 3]) -> Segment {
    let of = |flag, bit| if bit == 1 { flag } else { Flags::NONE };
    let [ae, cwr, ece] = bits;
    Segment {
        flags: seg.flags | of(Flags::AE, ae) | of(Flags::CWR, cwr) | of(Flags::ECE, ece),
        ..*seg
    }
}

/// What a client does after a SYN-ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Feedback {
    Accurate,
    Classic,
    None,
}

/// The feedback mode of RFC 9768 table 2 after a SYN-ACK with these bits, as the first data segment shows it.
fn mode_after(params: SenderParams, bits: [u8; 3]) -> Feedback {
    let mut client = Sender::new(&params, Ticks::default());
    let mut out = Vec::new();
    client.write(Instant::ZERO, 1 << 20, &mut out);
    client.connect(Instant::ZERO, &mut out);
    assert_eq!(ace(&out.pop().unwrap()), [true; 3]);
    let bare = Segment {
        flags: Flags::SYN | Flags::ACK,
        window: 65_536,
        ..Segment::EMPTY
    };
    client.on_segment(Instant::from_millis(20), &with_bits(&bare, bits), &mut out);
    let data = out.iter().find(|seg| seg.len > 0).unwrap();
    match (ace(data), data.flags.ecn()) {
        // The counter begins at 5.
        ([true, false, true], Ecn::Ect0 | Ecn::Ect1) => Feedback::Accurate,
        ([false, false, false], Ecn::Ect0) => Feedback::Classic,
        ([false, false, false], Ecn::NotEct) => Feedback::None,
        other => panic!("{other:?} after {bits:?}"),
    }
}

#[test]
fn the_client_follows_every_answer_of_table_2() {
    for (bits, mode) in [
        ([0, 0, 0], Feedback::None),
        ([0, 0, 1], Feedback::Classic),
        ([0, 1, 0], Feedback::Accurate),
        // Reserved: as if it reported the SYN unchanged (§3.1.3).
        ([1, 0, 1], Feedback::Accurate),
        // A server that copies the bits of the SYN.
        ([1, 1, 1], Feedback::None),
    ] {
        assert_eq!(mode_after(accurate(CcKind::Cubic), bits), mode, "{bits:?}");
    }
    // A SYN that was ECT(1) may arrive as any but Not-ECT. Classic ECN is not enough for an L4S control.
    for (bits, mode) in [
        ([0, 0, 0], Feedback::None),
        ([0, 0, 1], Feedback::None),
        ([0, 1, 1], Feedback::Accurate),
        ([1, 0, 0], Feedback::Accurate),
        ([1, 0, 1], Feedback::Accurate),
        ([1, 1, 0], Feedback::Accurate),
        ([1, 1, 1], Feedback::None),
    ] {
        assert_eq!(mode_after(prague(), bits), mode, "{bits:?}");
    }
}

#[test]
fn the_server_answers_every_offer() {
    let syn = Segment {
        flags: Flags::SYN,
        window: 65_536,
        ..Segment::EMPTY
    };
    for offer in 0..8_u8 {
        let bits = [offer >> 2 & 1, offer >> 1 & 1, offer & 1];
        let mut server = Receiver::answering(&accurate(CcKind::Cubic), Ticks::default());
        let mut out = Vec::new();
        let syn = with_bits(&syn, bits);
        server.on_segment(Instant::ZERO, &syn, Arrival::default(), &mut out);
        let answer = ace(&out[0]);
        match bits {
            [0, 0, 0] => assert_eq!(answer, [false; 3]),
            [0, 1, 1] => assert_eq!(answer, [false, false, true]),
            // AccECN; what is reserved counts as an offer (§3.1.3). The SYN was Not-ECT.
            _ => assert_eq!(answer, [false, true, false], "{bits:?}"),
        }
    }
}

/// A client that has sent its SYN, and has data to send.
fn connecting(params: SenderParams) -> Sender {
    let mut client = Sender::new(&params, Ticks::default());
    let mut out = Vec::new();
    client.write(Instant::ZERO, 1 << 20, &mut out);
    client.connect(Instant::ZERO, &mut out);
    client
}

/// A SYN-ACK that reports this field of the SYN, and arrives with that one.
fn syn_ack(syn: Ecn, arrives: Ecn) -> Segment {
    let flags = Flags::SYN | Flags::ACK;
    let seg = Segment {
        flags: flags.with_ecn(arrives),
        window: 65_536,
        ..Segment::EMPTY
    };
    with_bits(&seg, report(syn))
}

/// The bits of tables 2 and 3.
const fn report(field: Ecn) -> [u8; 3] {
    match field {
        Ecn::NotEct => [0, 1, 0],
        Ecn::Ect1 => [0, 1, 1],
        Ecn::Ect0 => [1, 0, 0],
        Ecn::Ce => [1, 1, 0],
    }
}

const FIELDS: [Ecn; 4] = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce];

/// An acknowledgement of the first `count` segments with this counter, a round trip after the handshake.
fn acknowledges(count: u32, counter: u8) -> Segment {
    let seg = Segment {
        ack: count,
        window: 1 << 20,
        flags: Flags::ACK,
        ts_val: 1,
        ..Segment::EMPTY
    };
    with_bits(&seg, [counter >> 2 & 1, counter >> 1 & 1, counter & 1])
}

#[test]
fn the_acknowledgement_of_the_syn_ack_reports_how_it_arrived() {
    for params in [accurate(CcKind::Cubic), prague()] {
        for arrives in FIELDS {
            let mut client = connecting(params);
            let mut out = Vec::new();
            let seg = syn_ack(Ecn::NotEct, arrives);
            client.on_segment(Instant::from_millis(20), &seg, &mut out);
            let bits = report(arrives).map(|bit| bit == 1);
            assert!(out[0].len == 0 && ace(&out[0]) == bits, "{:?}", out[0]);
            // Then the counter: 5, and one more for a SYN-ACK with CE.
            let counter = [true, arrives == Ecn::Ce, arrives != Ecn::Ce];
            assert_eq!(ace(&out[1]), counter);
        }
    }
}

#[test]
fn a_mangled_syn_stops_ect_but_not_the_response_to_marks() {
    for (params, sent) in [
        (accurate(CcKind::Cubic), Ecn::NotEct),
        (prague(), Ecn::Ect1),
    ] {
        for arrived in FIELDS {
            let mut client = connecting(params);
            let mut out = Vec::new();
            let answer = syn_ack(arrived, Ecn::NotEct);
            client.on_segment(Instant::from_millis(20), &answer, &mut out);
            let may_be = (sent == Ecn::NotEct) == (arrived == Ecn::NotEct);
            let data = out.iter().find(|seg| seg.len > 0).unwrap();
            assert_eq!(
                data.flags.ecn() != Ecn::NotEct,
                may_be,
                "{sent:?} {arrived:?}"
            );
            // Whatever it sends, a mark is counted and answered.
            out.clear();
            client.on_segment(Instant::from_millis(40), &acknowledges(1, 6), &mut out);
            assert_eq!(client.counters().marked, 1);
        }
    }
}

#[test]
fn after_a_marked_syn_the_first_window_is_one_segment() {
    for (cc, answered) in [
        (CcKind::Cubic, 1),
        (CcKind::Reno, 1),
        (CcKind::Dctcp, 1),
        (CcKind::Vegas, 1),
        // These ignore marks in the handshake.
        (CcKind::Prague, 10),
        (CcKind::Bbr, 10),
        (CcKind::Bbr3, 10),
        (CcKind::Copa, 10),
    ] {
        for arrived in FIELDS {
            let mut client = connecting(accurate(cc));
            let mut out = Vec::new();
            let answer = syn_ack(arrived, Ecn::NotEct);
            client.on_segment(Instant::from_millis(20), &answer, &mut out);
            let expected = if arrived == Ecn::Ce { answered } else { 10 };
            assert_eq!(client.cwnd(), expected, "{cc} {arrived:?}");
            let data = out.iter().filter(|seg| seg.len > 0).count();
            let sends = 1..=expected as usize;
            assert!(sends.contains(&data), "{cc} {arrived:?} {data}");
        }
    }
    // Bits of a SYN-ACK that agrees to no AccECN report nothing.
    let mut client = connecting(params(CcKind::Dctcp));
    client.on_segment(
        Instant::from_millis(20),
        &syn_ack(Ecn::Ce, Ecn::NotEct),
        &mut Vec::new(),
    );
    assert_eq!(client.cwnd(), 10);
}

#[test]
fn after_a_marked_syn_careful_resume_does_not_jump() {
    let cc = "cubic saved_cwnd 200 saved_rtt 20ms".parse().unwrap();
    let params = SenderParams {
        cc,
        slow_start: Some(SlowStart::CarefulResume),
        ..accurate(CcKind::Cubic)
    };
    for (arrived, jumps) in [(Ecn::NotEct, true), (Ecn::Ce, false)] {
        let mut client = connecting(params);
        let (mut out, mut sent) = (Vec::new(), 0);
        let mut now = Instant::from_millis(20);
        client.on_segment(now, &syn_ack(arrived, Ecn::NotEct), &mut out);
        for _ in 0..2 {
            sent += out.drain(..).filter(|seg| seg.len > 0).count();
            now += Duration::from_millis(20);
            let ack = acknowledges(u32::try_from(sent).unwrap(), 5);
            client.on_segment(now, &ack, &mut out);
        }
        assert_eq!(client.cwnd() >= 100, jumps, "{}", client.cwnd());
    }
}

#[test]
fn the_server_learns_how_its_syn_ack_arrived() {
    for (arrived, is_mangled) in [(Ecn::NotEct, true), (Ecn::Ect1, false), (Ecn::Ce, false)] {
        let mut receiver = Receiver::answering(&prague(), Ticks::default());
        let mut out = Vec::new();
        let mut client = connecting(prague());
        let syn = Segment {
            flags: Flags::SYN | Flags::AE | Flags::CWR | Flags::ECE | Flags::ECT1,
            ..Segment::EMPTY
        };
        receiver.on_segment(Instant::ZERO, &syn, Arrival::default(), &mut out);
        let answer = out.pop().unwrap();
        assert_eq!(answer.flags.ecn(), Ecn::Ect1);
        let answer = Segment {
            flags: answer.flags.with_ecn(arrived),
            ..answer
        };
        let now = Instant::from_millis(20);
        client.on_segment(now, &answer, &mut out);
        receiver.on_segment(now, &out[0], Arrival::default(), &mut Vec::new());
        let handshake = receiver.handshake(now, &out[0]);
        let marked = arrived == Ecn::Ce;
        assert_eq!(
            (
                handshake.ecn,
                handshake.is_mangled,
                handshake.syn_ack_marked
            ),
            (true, is_mangled, marked)
        );
        assert_eq!(client.handshake().syn_ack_marked, marked);
        // Prague does not answer the mark.
        let mut server = Sender::new(&accurate(CcKind::Reno), Ticks::default());
        let mut sent = Vec::new();
        server.join(now, &handshake);
        server.write(now, 1 << 20, &mut sent);
        assert_eq!(sent[0].flags.ecn() == Ecn::NotEct, is_mangled);
        assert_eq!(server.cwnd(), if marked { 1 } else { 10 });
        // The counter of the client includes the SYN-ACK: no mark is new.
        let counter = if marked { 6 } else { 5 };
        server.on_segment(
            Instant::from_millis(40),
            &acknowledges(1, counter),
            &mut sent,
        );
        assert_eq!(server.counters().marked, 0);
    }
}

#[test]
fn a_first_counter_of_zero_ends_ecn() {
    for (params, sent) in [
        (accurate(CcKind::Cubic), Ecn::NotEct),
        (prague(), Ecn::Ect1),
    ] {
        let first_ack = |ack: &Segment| {
            let mut client = connecting(params);
            let mut out = Vec::new();
            let answer = syn_ack(sent, Ecn::NotEct);
            client.on_segment(Instant::from_millis(20), &answer, &mut out);
            assert!(
                out.iter()
                    .any(|seg| seg.len > 0 && seg.flags.ecn() != Ecn::NotEct)
            );
            out.clear();
            client.on_segment(Instant::from_millis(40), ack, &mut out);
            let data = out.iter().find(|seg| seg.len > 0).unwrap();
            (
                client.counters().marked,
                data.flags.ecn() != Ecn::NotEct,
                ace(data),
            )
        };
        // The own counter stays: feedback continues.
        let own = [true, false, true];
        assert_eq!(first_ack(&acknowledges(10, 0)), (0, false, own));
        // Three marks, which the option confirms.
        let mut confirmed = acknowledges(10, 0);
        confirmed.set_marked_bytes(3 * u32::from(MSS));
        assert_eq!(first_ack(&confirmed).0, 3);
        assert!(first_ack(&acknowledges(10, 5)).1);
    }
}

#[test]
fn every_mark_is_counted() {
    every_mark_is_counted_for(prague());
}

#[test]
fn every_mark_is_counted_for_controls_that_do_not_require_it() {
    for cc in [CcKind::Cubic, CcKind::Dctcp, CcKind::Reno, CcKind::Bbr3] {
        every_mark_is_counted_for(accurate(cc));
    }
}

fn every_mark_is_counted_for(params: SenderParams) {
    let (mut marked, mut surplus) = (0, 0);
    for seed in 0..120 {
        let part = |of: &[u64]| of[usize::try_from(seed).unwrap() % of.len()];
        let room = part(&[1_000, 1_000, 1_000, 1_000, 1_000, 20, 100]);
        let network = Network {
            marking: part(&[3, 30, 300, 1_000]),
            ack_loss: part(&[0, 0, 0, 0, 0, 200, 200, 200, 500]),
            delay: Duration::from_millis(10),
            bottleneck: Some((Rate::mbit(20), room)),
            ..Network::default()
        };
        let end = World::new(Transfer {
            seed,
            network,
            params,
            writes: vec![(Duration::ZERO, 400 * u64::from(MSS))],
        })
        .run();
        assert_eq!(end.state, State::Done, "{}", params.cc);
        let (arrived, reported) = (end.counters.marked, end.counters.marks_reported);
        // Where three SACK blocks leave no room for the option, marks may be assumed that were none, in multiples of 8.
        let lossy = room < 1_000;
        assert!(
            reported == arrived || lossy && reported > arrived,
            "{network:?} {end:?}"
        );
        marked += arrived;
        surplus += reported - arrived;
    }
    println!("{}: {surplus} too many of {marked}", params.cc);
    assert!(marked > 10_000, "only {marked}");
    // 48 of 15,757 at most when this was written.
    assert!(150 * surplus < marked, "{surplus} of {marked}");
}
