//! Each parameter of BBR version 3 has its effect.

use sojourn_net::{Duration, Rng};

use super::super::cycle::probe_wait;
use super::*;

/// The state after a path without losses has been probed for some rounds.
fn cruising(params: Bbr3Params) -> Path {
    let mut path = Path::of(params, 10_000);
    path.until(State::Cruise);
    path
}

#[test]
fn the_gains_are_those_asked_for() {
    let default = Bbr3Params::default();
    let params = Bbr3Params {
        startup_pacing_gain: 600,
        drain_pacing_gain: 100,
        default_cwnd_gain: 500,
        probe_bw_down_pacing_gain: 200,
        probe_bw_up_pacing_gain: 300,
        probe_bw_up_cwnd_gain: 550,
        probe_rtt_cwnd_gain: 64,
        ..default
    };
    let states = [
        State::Startup,
        State::Drain,
        State::Down,
        State::Cruise,
        State::Up,
        State::ProbeRtt,
    ];
    let gains = states.map(|state| params.gains(state));
    let expected = [
        (600, 500),
        (100, 500),
        (200, 500),
        (256, 500),
        (300, 550),
        (256, 64),
    ];
    assert_eq!(gains, expected);
    let rate = |params| Path::of(params, 10_000).bbr.pacing_rate;
    assert!(rate(params) < rate(default));
    let margin = Bbr3Params {
        pacing_margin_percent: 50,
        ..default
    };
    assert!((2 * rate(margin) * 99 / 100).abs_diff(rate(default)) < 10);
    // In PROBE_RTT a quarter, not half of a BDP of 100.
    let held = |params| cruising(params).bbr.probe_rtt_cwnd();
    assert!(held(default) > 45 && held(params) < 30);
}

#[test]
fn the_end_of_startup_follows_its_parameters() {
    let default = Bbr3Params::default();
    let rounds = |params| {
        let mut path = Path::of(params, 10_000);
        (0..100).find(|_| {
            path.round();
            path.bbr.full_bw_reached
        })
    };
    let patient = Bbr3Params {
        full_bw_count: 6,
        ..default
    };
    assert!(rounds(patient) > rounds(default));
    let greedy = Bbr3Params {
        full_bw_thresh: 2_000,
        ..default
    };
    assert!(rounds(greedy) < rounds(default));
    // Three loss events in a round of recovery.
    let ends = |full_loss_count| {
        let params = Bbr3Params {
            full_loss_count,
            ..default
        };
        let mut bbr = Bbr3::new(params, 1);
        let sample = RateSample {
            prior_delivered: 0,
            delivered: 80,
            interval_micros: 100_000,
            app_limited: false,
            in_flight_then: 100,
            lost_since: 20,
        };
        let p = Progress {
            episode: Episode::Recovery,
            sample: Some(sample),
            ..Progress::at(Instant::ZERO)
        };
        for n in 0..6 {
            bbr.round_start = n % 3 == 2;
            bbr.check_startup_high_loss(&p, true);
        }
        bbr.full_bw_reached
    };
    assert_eq!([3, 4].map(ends), [true, false]);
}

#[test]
fn the_bounds_follow_beta_headroom_and_the_loss_threshold() {
    let default = Bbr3Params::default();
    let bound = |params: Bbr3Params| {
        let mut bounds = Bounds::default();
        bounds.set_inflight_longterm(&params, 10, 100);
        let headroom = bounds.inflight_with_headroom(&params);
        (bounds.inflight_longterm, headroom)
    };
    assert_eq!(bound(default), (Bound::at(70), Bound::at(60)));
    let half = Bbr3Params {
        beta: 500,
        headroom: 300,
        ..default
    };
    assert_eq!(bound(half), (Bound::at(50), Bound::at(35)));
    assert_eq!(
        (default.beta_of_bw(1_000), half.beta_of_bw(1_000)),
        (700, 500)
    );
    let floor = Bbr3Params {
        min_pipe_cwnd: 90,
        ..default
    };
    assert_eq!(bound(floor), (Bound::at(90), Bound::at(90)));
    let tolerant = Bbr3Params {
        loss_thresh: 50,
        ..default
    };
    assert!(default.is_inflight_too_high(5, 100) && !tolerant.is_inflight_too_high(5, 100));
}

#[test]
fn the_filters_and_the_probes_last_as_long_as_asked_for() {
    let default = Bbr3Params::default();
    let short = Bbr3Params {
        extra_acked_filter_len: 1,
        min_rtt_filter_len: 1_000,
        probe_rtt_interval: 1_000,
        probe_rtt_duration: 3_000,
        bw_probe_wait_base: 100,
        bw_probe_max_rounds: 5,
        ..default
    };
    let forgotten = |params| {
        let mut filter = Bbr3::new(params, 1).extra_acked_filter;
        filter.update(0, 100);
        filter.update(3, 10);
        filter.get()
    };
    assert_eq!([default, short].map(forgotten), [100, 10]);
    let stale = |params| {
        let mut bbr = Bbr3::new(params, 1);
        let ack = |tick, rtt| Ack {
            now: Instant::ZERO,
            tick,
            rtt_micros: Some(rtt),
            echo: None,
            acked: 0,
            srtt8: 0,
            snd_una: 0,
            snd_nxt: 0,
            prior_in_flight: 0,
            pacing_rate: 0,
        };
        bbr.update_min_rtt(&ack(1, 50_000));
        let expired = bbr.update_min_rtt(&ack(2_000, 90_000));
        (expired, bbr.min_rtt.rtt.micros().unwrap())
    };
    assert_eq!(
        [default, short].map(stale),
        [(false, 50_000), (true, 90_000)]
    );
    let probe_rtt = |params| {
        let mut path = Path::of(params, 10_000);
        path.until(State::ProbeRtt);
        let began = path.ms;
        while path.bbr.state == State::ProbeRtt {
            path.round();
        }
        path.ms - began
    };
    assert!(probe_rtt(short) > probe_rtt(default) + 2_000);
    let probes_after = |params, rounds| {
        let mut path = cruising(params);
        path.bbr.cycle.rounds_since_bw_probe = 0;
        path.after_rounds(rounds) == State::Refill
    };
    assert!(!probes_after(default, 20) && probes_after(short, 20));
    let wait = |params: Bbr3Params| probe_wait(params.bw_probe_wait_base, &mut Rng::new(1));
    assert!(wait(default) >= Duration::from_secs(2) && wait(short) < Duration::from_secs(2));
}
