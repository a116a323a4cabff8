//! Marks, acknowledgements and pauses of QUIC connections.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::VecDeque;

use sojourn_net::{Duration, Ecn, Instant};
use sojourn_transport::CcKind;
use sojourn_transport::quic::{Datagram, Endpoint, Params, Role};

const MS: fn(u64) -> Duration = Duration::from_millis;
const CLIENT: usize = 0;
const SERVER: usize = 1;

/// A connection over 20 ms, whose handshake is done.
struct Pair {
    now: Instant,
    ends: [Endpoint; 2],
    flying: VecDeque<(Instant, usize, Datagram)>,
    /// The next datagram with data for the client is marked.
    mark: bool,
    /// Whether each datagram sent had an Initial or Handshake packet, and was ECN-capable.
    log: Vec<(bool, bool)>,
}

impl Pair {
    fn of(cc: CcKind) -> Self {
        let params = Params {
            cc: cc.into(),
            ecn: true,
            pacing: false,
            ..Params::default()
        };
        let mut pair = Self {
            now: Instant::ZERO,
            ends: [Role::Client, Role::Server].map(|role| Endpoint::new(role, &params)),
            flying: VecDeque::new(),
            mark: false,
            log: Vec::new(),
        };
        let mut out = Vec::new();
        pair.ends[CLIENT].connect(pair.now, &mut out);
        pair.post(CLIENT, out);
        pair.run(MS(1_000));
        assert!(pair.ends.iter().all(Endpoint::is_confirmed));
        pair
    }

    fn post(&mut self, from: usize, out: Vec<Datagram>) {
        let at = self.now + MS(10);
        let entry = |d: &Datagram| (d.is_handshake(), d.ecn() != Ecn::NotEct);
        self.log.extend(out.iter().map(entry));
        self.flying
            .extend(out.into_iter().map(|datagram| (at, 1 - from, datagram)));
    }

    /// What `from` sends immediately of `bytes` on its own stream.
    fn write(&mut self, from: usize, bytes: u64) -> Vec<Datagram> {
        let (mut out, id) = (Vec::new(), u16::try_from(from).unwrap());
        self.ends[from].write(self.now, id, bytes, false, &mut out);
        out
    }

    fn deliver(&mut self, to: usize, datagram: &Datagram, ce: bool) -> Vec<Datagram> {
        let mut out = Vec::new();
        self.ends[to].on_datagram(self.now, datagram, ce, &mut out);
        out
    }

    /// Lets the given time pass.
    fn run(&mut self, time: Duration) {
        let until = self.now + time;
        loop {
            let timers = [CLIENT, SERVER].map(|end| self.ends[end].next_timer());
            let timer = timers.into_iter().flatten().min();
            let arrival = self.flying.front().map(|flying| flying.0);
            let next = timer.into_iter().chain(arrival).min();
            let Some(next) = next.filter(|&next| next <= until) else {
                break;
            };
            self.now = self.now.max(next);
            if arrival == Some(next)
                && let Some((_, to, datagram)) = self.flying.pop_front()
            {
                let data = to == CLIENT && datagram.has_data();
                let ce = data && std::mem::take(&mut self.mark);
                let out = self.deliver(to, &datagram, ce);
                self.post(to, out);
                continue;
            }
            for end in [CLIENT, SERVER] {
                if timers[end] == Some(next) {
                    let mut out = Vec::new();
                    self.ends[end].on_timer(self.now, &mut out);
                    self.post(end, out);
                }
            }
        }
        self.now = until;
    }

    /// RTT samples and window of the client.
    fn client(&self) -> (u64, u32) {
        let client = &self.ends[CLIENT];
        (client.counters().rtt_samples, client.cwnd())
    }
}

#[test]
fn an_acknowledgement_whose_largest_packet_is_not_eliciting_has_an_rtt_sample_and_a_mark() {
    let mut pair = Pair::of(CcKind::Reno);
    let (samples, window) = pair.client();
    let question = pair.write(CLIENT, 100);
    // The client acknowledges two packets in one that is not ack-eliciting.
    let two = pair.write(SERVER, 2_000);
    assert_eq!((question.len(), two.len()), (1, 2));
    assert!(pair.deliver(CLIENT, &two[0], false).is_empty());
    let answer = pair.deliver(CLIENT, &two[1], false);
    assert!(answer.len() == 1 && !answer[0].has_data());
    pair.now += MS(10);
    assert!(pair.deliver(SERVER, &question[0], false).is_empty());
    assert!(pair.deliver(SERVER, &answer[0], true).is_empty());
    pair.run(MS(200));
    assert_eq!(pair.client(), (samples + 1, window / 2));
}

#[test]
fn a_mark_reported_with_an_overtaken_packet_is_answered_without_an_rtt_sample() {
    let mut pair = Pair::of(CcKind::Reno);
    let (_, window) = pair.client();
    let two = pair.write(CLIENT, 2_000);
    assert_eq!(two.len(), 2);
    pair.now += MS(10);
    let first = pair.deliver(SERVER, &two[1], false);
    pair.now += MS(1);
    let second = pair.deliver(SERVER, &two[0], true);
    assert_eq!((first.len(), second.len()), (1, 1));
    pair.now += MS(9);
    pair.deliver(CLIENT, &first[0], false);
    let (samples, before) = pair.client();
    assert_eq!(before, window);
    pair.now += MS(1);
    pair.deliver(CLIENT, &second[0], false);
    assert_eq!(pair.client(), (samples, window / 2));
}

#[test]
fn handshake_datagrams_are_not_ecn_capable() {
    for cc in [CcKind::Reno, CcKind::Prague] {
        let mut pair = Pair::of(cc);
        let out = pair.write(SERVER, 2_000);
        pair.post(SERVER, out);
        pair.run(MS(100));
        let handshakes = pair.log.iter().filter(|datagram| datagram.0).count();
        assert!(handshakes > 4 && handshakes + 3 < pair.log.len(), "{cc}");
        assert!(pair.log.iter().all(|&(early, ect)| early != ect), "{cc}");
    }
}

#[test]
fn the_curve_of_cubic_does_not_advance_in_a_pause() {
    let window_after = |pause| {
        let mut pair = Pair::of(CcKind::Cubic);
        pair.mark = true;
        for wait in [MS(2_000) + pause, MS(100)] {
            let out = pair.write(SERVER, 300_000);
            pair.post(SERVER, out);
            pair.run(wait);
        }
        assert!(!pair.mark);
        pair.ends[SERVER].cwnd()
    };
    let (without, with) = (window_after(Duration::ZERO), window_after(MS(20_000)));
    assert!(with.abs_diff(without) <= 1, "{without} {with}");
}
