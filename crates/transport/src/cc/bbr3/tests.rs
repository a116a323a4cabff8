use std::num::NonZeroU32;

use sojourn_net::Instant;

use super::bounds::Bounds;
use super::*;
use crate::cc::EcnFeedback;

/// A path that delivers one segment a millisecond after 100 ms, and a sender that keeps in flight
/// what window and rate allow: one step is one round trip.
struct Path {
    bbr: Bbr3,
    window: Window,
    ms: u64,
    delivered: u64,
    lost: u64,
    /// Segments that fit the path and its queue; more are lost.
    room: u64,
    /// The next acknowledgement reports a mark.
    marked: bool,
}

const RTT_MS: u64 = 100;
const CAPACITY: u64 = 100;

impl Path {
    fn new(room: u64) -> Self {
        Self::of(Bbr3Params::default(), room)
    }

    fn of(params: Bbr3Params, room: u64) -> Self {
        let mut bbr = Bbr3::new(params, 1);
        let window = Window::new(10, 1_448);
        let start = Start {
            now: Instant::ZERO,
            tick: 0,
            rtt_micros: 100_000,
            measured: true,
            delivered: 1,
        };
        bbr.on_start(&window, &start);
        Self {
            bbr,
            window,
            ms: 0,
            delivered: 1,
            lost: 0,
            room,
            marked: false,
        }
    }

    fn round(&mut self) {
        // A paced flow has a round trip of its rate in flight, at most a window.
        let paced = self.bbr.pacing_rate / 14_480;
        let sent = u64::from(self.window.cwnd).min(paced.max(4));
        let lost = sent.saturating_sub(self.room);
        let arrived = sent - lost;
        let took = RTT_MS.max(arrived);
        self.ms += took;
        let prior = self.delivered;
        self.delivered += arrived;
        self.lost += lost;
        let segments = |n: u64| u32::try_from(n).unwrap();
        let now = Instant::from_millis(self.ms);
        let p = Progress {
            delivered: self.delivered,
            lost: self.lost,
            newly_delivered: segments(arrived),
            newly_lost: segments(lost),
            in_flight: segments(arrived.min(CAPACITY)),
            ecn: Some(EcnFeedback {
                snd_una: 0,
                snd_nxt: 0,
                delivered: segments(arrived),
                marked: std::mem::take(&mut self.marked).into(),
            }),
            episode: if lost > 0 {
                Episode::Recovery
            } else {
                Episode::None
            },
            sample: Some(RateSample {
                prior_delivered: prior,
                delivered: arrived,
                interval_micros: took * 1_000,
                app_limited: false,
                // Of the newest that arrived.
                in_flight_then: segments(arrived),
                lost_since: lost,
            }),
            ..Progress::at(now)
        };
        let ack = Ack {
            now,
            tick: self.ms,
            rtt_micros: Some(segments(took * 1_000)),
            snd_una: 0,
            snd_nxt: 0,
            prior_in_flight: segments(sent),
            pacing_rate: 0,
            echo: None,
            acked: 0,
            srtt8: 0,
        };
        self.lose(sent, lost);
        self.bbr.update(&mut self.window, &ack, &p);
    }

    /// The last `lost` of `sent` segments are declared lost, one by one.
    fn lose(&mut self, sent: u64, lost: u64) {
        let segments = |n: u64| u32::try_from(n).unwrap();
        for nth in 1..=lost {
            let segment = LostSegment {
                now: Instant::from_millis(self.ms),
                delivered: self.delivered,
                in_flight_then: segments(sent - lost + nth),
                lost_since: nth,
                app_limited: false,
            };
            self.bbr.on_lost(&self.window, &segment);
        }
    }

    fn until(&mut self, state: State) {
        for _ in 0..1_000 {
            if self.bbr.state == state {
                return;
            }
            self.round();
        }
        panic!("never {state:?}, but {:?}", self.bbr.state);
    }

    /// The state when `rounds` rounds have passed since the last probe.
    fn after_rounds(&mut self, rounds: u32) -> State {
        let now = Instant::from_millis(self.ms);
        self.bbr.cycle.rounds_since_bw_probe = rounds;
        self.bbr
            .update_probe_bw_cycle(&self.window, now, &Progress::at(now), 0, 0);
        self.bbr.state
    }

    /// The rate as a part of one segment a millisecond, in hundredths.
    fn rate(&self) -> u64 {
        (self.bbr.pacing_rate + 7_240) / 14_480
    }
}

#[test]
fn startup_ends_after_three_rounds_without_a_quarter_more() {
    let mut path = Path::new(10_000);
    let mut rounds = 0;
    let mut full_at = None;
    while path.bbr.state == State::Startup {
        path.round();
        rounds += 1;
        if full_at.is_none() && path.bbr.max_bw() >= (1 << BW_SCALE) / 1_000 - 1 {
            full_at = Some(rounds);
        }
    }
    assert_eq!(rounds, full_at.unwrap() + 3);
    assert!(path.bbr.full_bw_reached);
}

#[test]
fn the_cycle_is_down_cruise_refill_up_at_the_drafts_gains() {
    let mut path = Path::new(10_000);
    path.until(State::Down);
    let mut seen = vec![(State::Down, 0)];
    for _ in 0..200 {
        // This path has nothing to tell of its minimum RTT.
        path.bbr.probe_rtt_min.stamp = path.ms;
        path.round();
        if seen.last().unwrap().0 != path.bbr.state {
            seen.push((path.bbr.state, path.rate()));
        }
        if seen.len() > 5 {
            break;
        }
    }
    // Of one segment a ms, less the margin of 1 %: 1, 1, 1.25, 0.9.
    let cycle = [
        (State::Cruise, 99),
        (State::Refill, 99),
        (State::Up, 124),
        (State::Down, 89),
    ];
    assert_eq!(seen[1..5], cycle);
}

#[test]
fn a_probe_comes_two_to_three_seconds_after_the_last() {
    let mut path = Path::new(10_000);
    let mut probes = Vec::new();
    for _ in 0..3 {
        path.until(State::Down);
        let down = path.ms;
        path.bbr.probe_rtt_min.stamp = path.ms;
        path.until(State::Refill);
        probes.push(path.ms - down);
    }
    for wait in &probes {
        assert!((2_000..3_200).contains(wait), "{probes:?}");
    }
    assert!(
        probes[0] != probes[1] || probes[1] != probes[2],
        "drawn by lot"
    );
}

#[test]
fn a_small_path_is_probed_after_as_many_rounds_as_it_holds_segments() {
    let mut path = Path::new(10_000);
    path.until(State::Down);
    path.until(State::Cruise);
    // As if all but 10.5 segments of it were others'.
    path.bbr.max_bw_filter = [path.bbr.max_bw() * 105 / 1_000, 0];
    assert_eq!(path.after_rounds(10), State::Cruise);
    assert_eq!(path.after_rounds(11), State::Refill);
}

#[test]
fn a_large_path_is_probed_after_63_rounds() {
    let mut path = Path::new(10_000);
    path.until(State::Down);
    path.until(State::Cruise);
    assert_eq!(path.after_rounds(62), State::Cruise);
    assert_eq!(path.after_rounds(63), State::Refill);
}

#[test]
fn a_probe_that_loses_too_much_sets_the_long_term_bound_and_ends() {
    let mut path = Path::new(10_000);
    path.until(State::Refill);
    path.room = 105;
    path.until(State::Up);
    path.round();
    path.until(State::Down);
    let bound = path.bbr.bounds.inflight_longterm.get().unwrap();
    assert!((105..130).contains(&bound), "{bound}");
    // What is in flight while cruising leaves 15 % of it to others.
    path.until(State::Cruise);
    path.round();
    assert!(
        path.window.cwnd <= bound - bound * 3 / 20,
        "{}",
        path.window.cwnd
    );
}

#[test]
fn the_bound_is_the_flight_of_the_segment_with_which_losses_exceed_two_per_cent() {
    let mut path = Path::new(10_000);
    path.until(State::Up);
    // 2 % of 150 are 3 segments.
    let mut after = |lost_since, in_flight_then| {
        let segment = LostSegment {
            now: Instant::from_millis(path.ms),
            delivered: path.delivered,
            in_flight_then,
            lost_since,
            app_limited: false,
        };
        path.bbr.on_lost(&path.window, &segment);
        (path.bbr.state, path.bbr.bounds.inflight_longterm.get())
    };
    assert_eq!([1, 2, 3].map(|nth| after(nth, 150)), [(State::Up, None); 3]);
    assert_eq!(after(4, 151), (State::Down, Some(150)));
    // Once for each probe.
    assert_eq!(after(20, 180), (State::Down, Some(150)));
}

#[test]
fn a_lost_segment_tells_the_flight_at_which_losses_exceeded_the_threshold() {
    let at_loss = |lost_since, in_flight_then| {
        Bbr3Params::default().inflight_at_loss(&LostSegment {
            now: Instant::ZERO,
            delivered: 0,
            in_flight_then,
            lost_since,
            app_limited: false,
        })
    };
    // Of 139 segments, 2.78 may be lost: with 2 lost a part of the next fits, less than a whole one.
    assert_eq!(at_loss(3, 140), 139);
    // Of 160, 3.2: with 2 lost the next fits in full.
    assert_eq!(at_loss(3, 161), 161);
    assert_eq!(at_loss(9, 161), 160);
    let all = Bbr3Params {
        loss_thresh: 1_000,
        ..Bbr3Params::default()
    };
    let segment = LostSegment {
        now: Instant::ZERO,
        delivered: 0,
        in_flight_then: 10,
        lost_since: 11,
        app_limited: false,
    };
    assert_eq!(all.inflight_at_loss(&segment), 10);
}

#[test]
fn a_segment_lost_without_a_probe_or_sent_while_the_application_limited_sets_no_bound() {
    let mut path = Path::new(10_000);
    path.until(State::Cruise);
    path.lose(150, 20);
    assert_eq!(path.bbr.bounds.inflight_longterm, Bound::NONE);
    path.until(State::Up);
    let segment = LostSegment {
        now: Instant::from_millis(path.ms),
        delivered: path.delivered,
        in_flight_then: 150,
        lost_since: 20,
        app_limited: true,
    };
    path.bbr.on_lost(&path.window, &segment);
    assert_eq!(path.bbr.bounds.inflight_longterm, Bound::NONE);
    assert_eq!(path.bbr.state, State::Down);
}

#[test]
fn losses_while_cruising_bring_the_short_term_bounds_down_by_three_tenths_at_most() {
    let mut path = Path::new(10_000);
    path.until(State::Cruise);
    path.room = 50;
    path.round();
    path.round();
    let bw = path.bbr.max_bw();
    let bound = path.bbr.bounds.bw_shortterm.get().unwrap();
    assert!(bound < bw && bound >= bw * 69 / 100 - 1, "{bound} of {bw}");
    assert_ne!(path.bbr.bounds.inflight_shortterm, Bound::NONE);
    // The next probe forgets them.
    path.room = 10_000;
    path.until(State::Refill);
    assert_eq!(path.bbr.bounds.bw_shortterm, Bound::NONE);
}

#[test]
fn the_minimum_rtt_is_asked_for_with_half_a_bdp() {
    let mut path = Path::new(10_000);
    path.until(State::ProbeRtt);
    // The handshake had the smallest RTT.
    assert!((5_001..5_200).contains(&path.ms), "{}", path.ms);
    assert!(
        (48..=51).contains(&path.window.cwnd),
        "{}",
        path.window.cwnd
    );
    let began = path.ms;
    // In flight is what the path holds, or the window.
    path.until_with_little_in_flight();
    assert_eq!(path.bbr.state, State::Cruise);
    assert!((200..=600).contains(&(path.ms - began)));
    assert!(path.window.cwnd > 100, "{}", path.window.cwnd);
}

#[test]
fn the_minimum_rtt_is_remembered_for_ten_seconds() {
    let mut path = Path::new(10_000);
    path.until(State::Cruise);
    let mut minimum = |ms, micros| {
        let ack = Ack {
            now: Instant::from_millis(ms),
            tick: ms,
            rtt_micros: Some(micros),
            snd_una: 0,
            snd_nxt: 0,
            prior_in_flight: 0,
            pacing_rate: 0,
            echo: None,
            acked: 0,
            srtt8: 0,
        };
        let expired = path.bbr.update_min_rtt(&ack);
        (expired, path.bbr.min_rtt.rtt.micros().unwrap())
    };
    assert_eq!(minimum(10_000, 90_000), (true, 90_000));
    assert_eq!(minimum(15_000, 150_000), (false, 90_000));
    // What the next interval begins with is no minimum yet,
    assert_eq!(minimum(15_001, 150_000), (true, 90_000));
    assert_eq!(minimum(17_000, 120_000), (false, 90_000));
    assert_eq!(minimum(20_000, 130_000), (false, 90_000));
    // but its smallest follows on the old one.
    assert_eq!(minimum(20_001, 130_000), (false, 120_000));
    assert_eq!(minimum(20_002, 80_000), (false, 80_000));
}

impl Path {
    fn until_with_little_in_flight(&mut self) {
        for _ in 0..10 {
            self.round();
            if self.bbr.state != State::ProbeRtt {
                return;
            }
        }
        panic!("it stays in PROBE_RTT");
    }
}

#[test]
fn an_undone_loss_restores_bounds_and_the_state_it_ended() {
    let mut path = Path::new(10_000);
    path.until(State::Refill);
    path.room = 105;
    path.until(State::Up);
    path.round();
    path.until(State::Down);
    assert_ne!(path.bbr.bounds.inflight_longterm, Bound::NONE);
    path.bbr.on_undo();
    path.room = 10_000;
    path.round();
    assert_eq!(path.bbr.bounds.inflight_longterm, Bound::NONE);
    assert_eq!(path.bbr.state, State::Refill);
}

#[test]
fn an_undone_loss_does_not_bring_back_what_an_earlier_one_ended() {
    for earlier in [State::Startup, State::Up] {
        let mut path = Path::new(10_000);
        path.until(State::Cruise);
        path.bbr.undo_state = Some(earlier);
        path.room = 80;
        path.round();
        path.bbr.on_undo();
        path.room = 10_000;
        path.round();
        assert_eq!(path.bbr.state, State::Cruise);
        assert!(path.bbr.full_bw_reached);
    }
}

#[test]
fn a_mark_while_cruising_is_a_loss() {
    let mut path = Path::new(10_000);
    path.until(State::Cruise);
    path.marked = true;
    path.round();
    path.round();
    let bounds = &path.bbr.bounds;
    assert_ne!(bounds.inflight_shortterm, Bound::NONE);
    assert_ne!(bounds.bw_shortterm, Bound::NONE);
    assert_eq!(bounds.inflight_longterm, Bound::NONE);
}

#[test]
fn a_mark_ends_a_probe_and_sets_the_long_term_bound_for_good() {
    let mut path = Path::new(10_000);
    path.until(State::Up);
    path.marked = true;
    path.round();
    assert_eq!(path.bbr.state, State::Down);
    let bound = path.bbr.bounds.inflight_longterm.get().unwrap();
    assert!((90..150).contains(&bound), "{bound}");
    path.bbr.on_undo();
    path.round();
    assert!(matches!(path.bbr.state, State::Down | State::Cruise));
}

#[test]
fn two_marked_rounds_in_a_row_end_startup_and_one_does_not() {
    let mut path = Path::new(10_000);
    for marked in [true, false, true] {
        path.marked = marked;
        path.round();
        assert_eq!(path.bbr.state, State::Startup);
    }
    path.marked = true;
    path.round();
    assert_ne!(path.bbr.state, State::Startup);
    assert_ne!(path.bbr.bounds.inflight_longterm, Bound::NONE);
}

#[test]
fn the_window_limits_for_the_rest_of_a_round_trip_and_the_next() {
    let window = Window::new(10, 1_448);
    let idle = Progress::at(Instant::ZERO);
    let mut path = Path::new(10_000);
    path.until(State::Up);
    path.bbr.bounds.inflight_longterm = Bound::at(window.cwnd);
    path.bbr.cycle.probe_up_cnt = Some(NonZeroU32::MIN);
    let mut raised_by = |round_start, prior_in_flight| {
        let bbr = &mut path.bbr;
        bbr.round_start = false;
        bbr.cwnd_limited
            .update(round_start, &window, prior_in_flight);
        bbr.full_bw.now = true;
        let ends = bbr.is_time_to_go_down(window.cwnd, 0, 0);
        let before = bbr.bounds.inflight_longterm;
        let p = Progress {
            newly_delivered: 1,
            ..idle
        };
        bbr.probe_inflight_longterm_upward(window.cwnd, &p);
        let after = std::mem::replace(&mut bbr.bounds.inflight_longterm, before);
        (ends, after.get().unwrap() - window.cwnd)
    };
    raised_by(true, 0);
    raised_by(true, 0);
    assert_eq!(raised_by(false, 9), (true, 0));
    assert_eq!(raised_by(false, 10), (false, 1));
    assert_eq!(raised_by(false, 5), (false, 1));
    assert_eq!(raised_by(true, 5), (false, 1));
    assert_eq!(raised_by(true, 5), (true, 0));
}

#[test]
fn each_acknowledgement_tells_whether_the_window_was_used_up() {
    let mut path = Path::new(10_000);
    path.until(State::Cruise);
    path.round();
    path.round();
    assert!(!path.bbr.cwnd_limited.is_set());
    path.window.cwnd = 4;
    path.round();
    assert!(path.bbr.cwnd_limited.is_set());
}

#[test]
fn the_headroom_is_three_twentieths() {
    let with = |inflight_longterm| {
        let mut bounds = Bounds::default();
        bounds.inflight_longterm = inflight_longterm;
        bounds.inflight_with_headroom(&Bbr3Params::default())
    };
    assert_eq!(
        [4, 6, 39, 100, 3_000_000_000].map(|bound| with(Bound::at(bound))),
        [4, 5, 34, 85, 2_550_000_000].map(Bound::at)
    );
    assert_eq!(with(Bound::NONE), Bound::NONE);
}

#[test]
fn what_is_not_known_yet_is_the_initial_window() {
    let mut bbr = Bbr3::new(Bbr3Params::default(), 1);
    let mut window = Window::new(32, 1_448);
    let mut start = Start {
        now: Instant::ZERO,
        tick: 0,
        rtt_micros: 333_000,
        measured: false,
        delivered: 1,
    };
    bbr.on_start(&window, &start);
    assert_eq!(bbr.bdp(1, BBR_UNIT), 32);
    start.measured = true;
    bbr.on_start(&window, &start);
    assert_eq!(bbr.bdp(0, BBR_UNIT), 0);
    // The model says nothing before an initial window has arrived.
    for (delivered, cwnd) in [(31, 34), (32, 34)] {
        let p = Progress {
            delivered,
            newly_delivered: 2,
            ..Progress::at(Instant::ZERO)
        };
        bbr.set_cwnd(&mut window, &p);
        assert_eq!(window.cwnd, cwnd);
    }
}

mod parameters;
