use super::*;

#[test]
fn k_is_the_cube_root_of_the_gap_over_c() {
    // cbrt((W - floor(0.7 W)) / 0.4); the windows are whole segments.
    for (w, seconds) in [(870_u32, 8.67), (77, 3.91), (14, 2.32)] {
        let k = time_to_plateau(w - w * 717 / 1_024, 410);
        let k = f64::from(k) / 1_024.0;
        assert!((k - seconds).abs() < 0.02, "W {w}: K {k}");
    }
    assert_eq!(time_to_plateau(0, 410), 0);
}

#[test]
fn the_window_follows_the_cubic_curve() {
    let mut cubic = Cubic::new(CubicParams::default(), false);
    cubic.delay_min = MinRtt::of(100_000);
    let mut w = Window::new(1_000, 1);
    w.cwnd = w.segments_of(cubic.ssthresh(&w, 0));
    w.end_slow_start();
    // 100 ACKs of 1 % of the window each, every round trip of 100 ms.
    for tick in 0..20_000_u64 {
        let ack = Ack {
            now: Instant::from_millis(tick),
            tick: 50_000 + tick,
            rtt_micros: Some(100_000),
            echo: None,
            acked: 0,
            srtt8: 0,
            snd_una: 0,
            snd_nxt: 0,
            prior_in_flight: 0,
            pacing_rate: 1_000_000,
        };
        let acked = w.cwnd / 100;
        cubic.grow(&mut w, &ack, acked.into());
        // W(t + RTT): the curve of RFC 9438 one round trip ahead, checked where it moves.
        let t = f64::from(u32::try_from(tick).unwrap()) / 1_000.0;
        let k = (300.0_f64 / 0.4).cbrt();
        let curve = 1_000.0 + 0.4 * (t - k).powi(3);
        if tick > 500 {
            let error = f64::from(w.cwnd) - curve;
            assert!(error.abs() < 0.02 * curve, "t {t}: {} for {curve}", w.cwnd);
        }
    }
}

#[test]
fn fast_convergence_gives_way_to_newcomers() {
    let mut cubic = Cubic::new(CubicParams::default(), false);
    assert_eq!(cubic.ssthresh(&Window::new(279, 1), 0), 195);
    assert_eq!(cubic.w_max, NonZeroU32::new(279));
    assert_eq!(cubic.ssthresh(&Window::new(268, 1), 0), 187);
    assert_eq!(cubic.w_max, NonZeroU32::new(227)); // as measured on the kernel
}

const fn ack(tick: u64, rtt_micros: u32) -> Ack {
    Ack {
        now: Instant::from_millis(tick),
        tick,
        rtt_micros: Some(rtt_micros),
        echo: None,
        acked: 0,
        srtt8: 0,
        snd_una: 1,
        snd_nxt: 100,
        prior_in_flight: 0,
        pacing_rate: 0,
    }
}

/// The window `seconds` after a reduction at 1000 segments, on a path of 100 ms.
fn after(params: CubicParams, seconds: u64) -> u32 {
    let mut cubic = Cubic::new(params, false);
    cubic.delay_min = MinRtt::of(100_000);
    let mut w = Window::new(1_000, 1);
    w.cwnd = w.segments_of(cubic.ssthresh(&w, 0));
    w.end_slow_start();
    for tick in 0..1_000 * seconds {
        let acked = w.cwnd / 100;
        cubic.grow(&mut w, &ack(tick, 100_000), acked.into());
    }
    w.cwnd
}

#[test]
fn beta_changes_the_reduction_and_bic_scale_the_curve() {
    let default = CubicParams::default();
    let left = |beta| {
        let mut cubic = Cubic::new(CubicParams { beta, ..default }, false);
        cubic.ssthresh(&Window::new(1_000, 1), 0)
    };
    assert_eq!([512, 717, 819].map(left), [500, 700, 799]);
    let scale = |bic_scale| {
        let params = CubicParams {
            bic_scale,
            ..default
        };
        after(params, 4)
    };
    assert!(scale(400) > scale(41) + 50, "{} {}", scale(400), scale(41));
}

#[test]
fn without_fast_convergence_the_plateau_stays() {
    let mut cubic = Cubic::new(
        CubicParams {
            fast_convergence: false,
            ..CubicParams::default()
        },
        false,
    );
    cubic.ssthresh(&Window::new(279, 1), 0);
    cubic.ssthresh(&Window::new(268, 1), 0);
    assert_eq!(cubic.w_max, NonZeroU32::new(268));
}

/// A window of 20 segments and an RTT of 10 ms after one loss.
fn after_a_loss(params: CubicParams) -> (Cubic, Window) {
    let mut cubic = Cubic::new(params, false);
    cubic.delay_min = MinRtt::of(10_000);
    let mut w = Window::new(20, 1);
    w.cwnd = w.segments_of(cubic.ssthresh(&w, 0));
    w.end_slow_start();
    (cubic, w)
}

#[test]
fn without_tcp_friendliness_a_small_window_grows_slower() {
    let grown = |tcp_friendliness| {
        let params = CubicParams {
            tcp_friendliness,
            ..CubicParams::default()
        };
        let (mut cubic, mut w) = after_a_loss(params);
        for tick in 0..2_000 {
            cubic.grow(&mut w, &ack(tick, 10_000), 2);
        }
        w.cwnd
    };
    assert!(grown(true) > grown(false) + 20);
}

#[test]
fn counting_acks_halves_the_growth_of_the_reno_estimate() {
    let estimate = |count_acks, acked| {
        let params = CubicParams {
            count_acks,
            ..CubicParams::default()
        };
        let (mut cubic, mut w) = after_a_loss(params);
        let begin = w.cwnd;
        for tick in 0..2_000 {
            // A window that does not grow, so that only the acknowledgements differ.
            w.cwnd = begin;
            cubic.grow(&mut w, &ack(tick, 10_000), acked);
        }
        cubic.tcp_cwnd - begin
    };
    assert_eq!(estimate(true, 2), estimate(true, 1));
    assert_eq!(estimate(true, 1), estimate(false, 1));
    assert!(estimate(false, 2).abs_diff(2 * estimate(true, 2)) <= 1);
}

/// Whether HyStart ends slow start at `cwnd`: by a train of 60 ms of ACKs `gap_ms` apart, or by an
/// RTT of 150 ms on a path of 100 ms.
fn exits(params: CubicParams, cwnd: u32, gap_ms: u64, rtt: u32) -> bool {
    let mut cubic = Cubic::new(params, false);
    cubic.delay_min = MinRtt::of(100_000);
    let mut w = Window::new(cwnd, 1_448);
    for n in 1..=60 / gap_ms {
        cubic.on_ack(&mut w, &ack(n * gap_ms, rtt));
    }
    !w.in_slow_start()
}

#[test]
fn the_parameters_of_hystart_choose_what_ends_slow_start() {
    let default = CubicParams::default();
    assert!(exits(default, 100, 2, 100_000));
    assert!(exits(default, 100, 4, 150_000));
    assert!(!exits(default, 100, 4, 100_000));
    assert!(!exits(default, 15, 2, 150_000));
    let off = CubicParams {
        hystart: false,
        ..default
    };
    assert!(!exits(off, 100, 2, 150_000));
    let small = CubicParams {
        hystart_low_window: 10,
        ..default
    };
    assert!(exits(small, 15, 2, 150_000));
    let wide = CubicParams {
        hystart_ack_delta_us: 4_000,
        ..default
    };
    assert!(exits(wide, 100, 4, 100_000));
    let detect = |hystart_detect| CubicParams {
        hystart_detect,
        ..default
    };
    assert!(!exits(detect(2), 100, 2, 100_000) && exits(detect(2), 100, 4, 150_000));
    assert!(exits(detect(1), 100, 2, 100_000) && !exits(detect(1), 100, 4, 150_000));
}

#[test]
fn the_key_slow_start_decides_over_hystart() {
    let build = |slow_start| {
        let setup = Setup {
            slow_start,
            ..Setup::default()
        };
        CubicParams::default().build(&setup).params.hystart
    };
    assert!(build(None) && build(Some(SlowStart::HyStart)));
    assert!(!build(Some(SlowStart::Standard)));
}

#[test]
fn initial_ssthresh_applies_without_an_exit_heuristic_only() {
    let threshold = |hystart, slow_start| {
        let params = CubicParams {
            initial_ssthresh: NonZeroU32::new(40),
            hystart,
            ..CubicParams::default()
        };
        let setup = Setup {
            slow_start,
            ..Setup::default()
        };
        params.initial_ssthresh(&setup).segments()
    };
    assert_eq!(
        [true, false].map(|on| threshold(on, None)),
        [None, Some(40)]
    );
    for hystart in [true, false] {
        let chosen = SlowStart::ALL.map(|chosen| threshold(hystart, Some(chosen)));
        assert_eq!(chosen, [Some(40), None, None, None, None, None]);
    }
    let unset = CubicParams {
        hystart: false,
        ..CubicParams::default()
    };
    assert!(!unset.initial_ssthresh(&Setup::default()).is_set());
}

/// The CUBIC of a profile.
fn of(profile: SenderProfile) -> Cubic {
    let setup = Setup {
        profile,
        ..Setup::default()
    };
    CubicParams::default().build(&setup)
}

#[test]
fn cubic_before_4_0_counts_acknowledgements() {
    let counts = SenderProfile::ALL.map(|profile| of(profile).params.count_acks);
    assert_eq!(counts, [false, false, true, true, false]);
}

#[test]
fn an_idle_period_moves_the_curve_since_linux_4_2() {
    let moved = |profile| {
        let mut cubic = of(profile);
        cubic.start_epoch(1_000);
        cubic.on_resume(&Resume {
            now: Instant::from_millis(9_000),
            tick: 9_000,
            last_sent_tick: 4_000,
            snd_nxt: 0,
        });
        cubic.epoch_start() == Some(6_000)
    };
    assert_eq!(
        SenderProfile::ALL.map(moved),
        [true, true, false, false, true]
    );
}

#[test]
fn before_the_first_loss_growth_is_at_least_5_percent_since_linux_2_6_39() {
    let count = |profile| {
        let mut cubic = of(profile);
        cubic.update(200, 1_000, 1);
        cubic.cnt
    };
    let [linux, .., old, _] = SenderProfile::ALL.map(count);
    assert_eq!(linux, 20);
    assert!(old > 100, "{old}");
}

/// The delay at which slow start ends, in 1/10 ms above a minimum RTT of 80 ms.
fn delay_found(profile: SenderProfile) -> u32 {
    let found = |more: u32| {
        let mut hystart = of(profile).hystart;
        (0..9).any(|_| hystart.delay_has_grown(80_000 + 100 * more, 80_000))
    };
    (0..300).find(|&more| found(more)).unwrap()
}

#[test]
fn hystart_waits_for_a_sixteenth_of_the_delay_before_linux_3_16() {
    assert_eq!(SenderProfile::ALL.map(delay_found), [101, 101, 51, 51, 101]);
    // On short paths at least 4 ms, before 2.6.39 at least 2.
    let least = |profile| {
        let mut hystart = of(profile).hystart;
        (0..9).any(|_| hystart.delay_has_grown(13_000, 10_000))
    };
    assert_eq!(
        SenderProfile::ALL.map(least),
        [false, false, false, true, false]
    );
}

#[test]
fn hystart_of_older_kernels_computes_trains_in_whole_ms_without_slack() {
    // A train of 1 ms gaps on a path of 20 ms: longer than 10 ms, or than 10.5.
    let length = |profile, gap_micros: u64| {
        let mut hystart = of(profile).hystart;
        hystart.begin_round(Instant::from_nanos(1_500_000));
        let at = |n: u64| Instant::from_nanos(1_000 * (1_500 + gap_micros * n));
        (1..40).find(|&n| {
            let mut ack = ack(0, 20_000);
            ack.now = at(n);
            let params = CubicParams::default();
            let gap = Duration::from_micros(params.hystart_ack_delta_us.into());
            hystart.train_is_long(&ack, 20_000, gap)
        })
    };
    let lengths = SenderProfile::ALL.map(|profile| length(profile, 500));
    assert_eq!(lengths, [22, 21, 21, 21, 22].map(Some));
    // 2.4 ms are 2 or 3 ticks: the train restarts whenever they are 3.
    assert_eq!(length(SenderProfile::Linux, 2_400), None);
}
