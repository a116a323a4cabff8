//! Several streams on one QUIC connection.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod quic_path;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use quic_path::{Path, To, Way};
use sojourn_net::{Duration, Instant, Rate};
use sojourn_transport::quic::{Datagram, Endpoint, Params, Role};

const MS: fn(u64) -> Duration = Duration::from_millis;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Arrives(To, usize),
    Timer(To),
}

/// A client sends a request on each stream, the server answers with the given sizes. Returns when
/// each answer was complete.
fn fetch(sizes: &[u64], initial_window: u32, to_client: Way) -> Vec<Instant> {
    let params = Params {
        initial_window,
        ..Params::default()
    };
    let mut ends = [
        Endpoint::new(Role::Server, &params),
        Endpoint::new(Role::Client, &params),
    ];
    let mut path = Path::new(Way::of_delay(MS(20)), to_client, 1);
    let mut agenda = BinaryHeap::new();
    let mut flying: Vec<Datagram> = Vec::new();
    let mut scheduled = 0_u64;
    let mut whole = vec![None; sizes.len()];
    let mut answered = vec![false; sizes.len()];
    let (mut now, mut out) = (Instant::ZERO, Vec::new());
    for id in 0..sizes.len() {
        let id = u16::try_from(id).unwrap();
        ends[1].write(now, id, 100, true, &mut out);
    }
    ends[1].connect(now, &mut out);
    let mut acting = To::Client;
    loop {
        let to = if acting == To::Client {
            To::Server
        } else {
            To::Client
        };
        for datagram in out.drain(..) {
            let (arrivals, _) = path.carry(now, to, datagram.payload().into());
            for at in arrivals.into_iter().flatten() {
                flying.push(datagram);
                scheduled += 1;
                agenda.push(Reverse((
                    at,
                    scheduled,
                    Event::Arrives(to, flying.len() - 1),
                )));
            }
        }
        if let Some(due) = ends[acting as usize].next_timer() {
            scheduled += 1;
            agenda.push(Reverse((due.max(now), scheduled, Event::Timer(acting))));
        }
        let Some(Reverse((at, _, event))) = agenda.pop() else {
            panic!("nothing happens any more");
        };
        now = at;
        match event {
            Event::Arrives(end, n) => {
                ends[end as usize].on_datagram(now, &flying[n], false, &mut out);
                acting = end;
            }
            Event::Timer(end) => {
                if ends[end as usize]
                    .next_timer()
                    .is_some_and(|due| due <= now)
                {
                    ends[end as usize].on_timer(now, &mut out);
                }
                acting = end;
            }
        }
        for (id, &size) in (0..).zip(sizes) {
            let n = usize::from(id);
            if acting == To::Server && !answered[n] && ends[0].is_finished(id) {
                answered[n] = true;
                ends[0].write(now, id, size, true, &mut out);
            }
            if whole[n].is_none() && ends[1].is_finished(id) {
                assert_eq!(ends[1].delivered_of(id), size);
                whole[n] = Some(now);
            }
        }
        if whole.iter().all(Option::is_some) {
            return whole.into_iter().flatten().collect();
        }
    }
}

fn link() -> Way {
    Way {
        rate: Some(Rate::mbit(10)),
        limit: 10_000,
        ..Way::of_delay(MS(20))
    }
}

#[test]
fn small_answers_do_not_wait_for_a_large_one() {
    let mut sizes = vec![1_000_000];
    sizes.extend([5_000; 9]);
    let whole = fetch(&sizes, 10, link());
    // Taking turns packet by packet, nine answers of four packets are there after some 40 packets
    // of the 700: within three round trips from the request.
    assert!(
        whole[1..].iter().all(|&at| at < Instant::from_millis(200)),
        "{whole:?}"
    );
    assert!(whole[0] > Instant::from_millis(800), "{whole:?}");
}

#[test]
fn a_lost_packet_holds_up_only_the_streams_it_carried() {
    // All leave in one flight.
    let sizes = [6_000; 5];
    let clean = fetch(&sizes, 100, link());
    let mut lossy = link();
    // Behind the server's flight of three, amid the data.
    lossy.drop.push(10..11);
    let held = fetch(&sizes, 100, lossy);
    let late: Vec<_> = clean
        .iter()
        .zip(&held)
        .filter(|(c, h)| h.saturating_since(**c) > MS(15))
        .collect();
    assert_eq!(late.len(), 1, "{clean:?} {held:?}");
}

#[test]
fn thousands_of_streams_are_all_served() {
    let whole = fetch(&vec![700; 3_000], 10, link());
    assert!(whole.iter().all(|&at| at < Instant::from_millis(6_000)));
}
