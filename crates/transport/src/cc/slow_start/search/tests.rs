use super::*;

const RTT_MS: u64 = 100;

fn ack(ms: u64, rtt_ms: u64, snd_una: u32, snd_nxt: u32) -> Ack {
    Ack {
        now: Instant::from_millis(ms),
        tick: ms,
        rtt_micros: Some(u32::try_from(1_000 * rtt_ms).unwrap()),
        snd_una,
        snd_nxt,
        prior_in_flight: 0,
        ..Ack::at(0)
    }
}

fn whole(n: u64) -> u32 {
    u32::try_from(n).unwrap()
}

fn part(per_thousand: u64, of: u64) -> u32 {
    u32::try_from(of * per_thousand / 1_000).unwrap()
}

/// Milliseconds after the first acknowledgement at which slow start ends or its drain begins; `None`: not within 10 s.
/// 40 segments are sent per ms, and of each thousand `delivered` are acknowledged.
fn exit_ms(params: SlowStartParams, delivered: u64, rtt_ms: u64) -> Option<u64> {
    let (mut search, mut window) = (Search::new(&params), Window::new(10, 1_448));
    (0..10_000).find(|&ms| {
        let rtt = if ms == 0 { RTT_MS } else { rtt_ms };
        let acked = part(delivered, 40 * ms);
        search.on_ack(
            &mut window,
            &ack(ms, rtt, acked, 500_000 + part(1_000, 40 * ms)),
        );
        search.drain.is_some() || window.ssthresh.is_set()
    })
}

fn params(search_thresh: u8) -> SlowStartParams {
    SlowStartParams {
        search_thresh,
        ..SlowStartParams::default()
    }
}

#[test]
fn slow_start_ends_when_a_quarter_of_the_sent_data_is_missing() {
    // An RTT of 100 ms reaches back 2 bins of 35 ms; the first bin with a window one RTT earlier is 11 + 2.
    let first = Some(13 * 35);
    assert_eq!(exit_ms(params(26), 739, RTT_MS), first);
    assert_eq!(exit_ms(params(26), 745, RTT_MS), None);
    assert_eq!(exit_ms(params(26), 1_000, RTT_MS), None);
    assert_eq!(exit_ms(params(10), 899, RTT_MS), first);
    assert_eq!(exit_ms(params(10), 905, RTT_MS), None);
}

#[test]
fn bins_are_a_part_of_the_initial_rtt_and_bound_the_rtt() {
    // 15 bins of 35 ms are 525 ms.
    assert_eq!(exit_ms(params(26), 500, 524), Some((11 + 14) * 35));
    assert_eq!(exit_ms(params(26), 500, 525), None);
    // 5 bins of 40 ms per window of 200 ms.
    let short = SlowStartParams {
        search_window_factor: 200,
        search_bins: 5,
        search_extra_bins: 3,
        ..SlowStartParams::default()
    };
    assert_eq!(exit_ms(short, 500, RTT_MS), Some((6 + 2) * 40));
    assert_eq!(exit_ms(short, 500, 120), None);
}

#[test]
fn the_window_of_sent_data_ends_one_rtt_earlier() {
    // Sending grows by one segment per ms each ms: sent(t) = t^2 / 2 for t in ms; each window of 350 ms that ends at t
    // has 350 (t - 175). All that was sent is delivered one RTT later, so nothing is missing at any RTT.
    for rtt in [70, 100, 104, 200, 350] {
        let (mut search, mut window) = (Search::new(&params(1)), Window::new(10, 1_448));
        let total = |ms: u64| u32::try_from(ms * ms / 2).unwrap();
        for ms in 0..5_000 {
            let at = if ms == 0 { RTT_MS } else { rtt };
            let mut ack = ack(ms, at, total(ms), total(ms + rtt));
            ack.rtt_micros = Some(u32::try_from(1_000 * at).unwrap());
            search.on_ack(&mut window, &ack);
        }
        assert!(search.drain.is_none(), "{rtt}");
    }
    // With every second segment delivered, half is missing.
    assert!(exit_ms(params(49), 501, 104).is_some());
    assert!(exit_ms(params(51), 501, 104).is_none());
}

#[test]
fn the_drain_ends_at_the_deliveries_of_an_initial_rtt() {
    let (mut search, mut window) = (Search::new(&params(26)), Window::new(10, 1_448));
    // 4 segments per ms are delivered, 8 sent.
    let mut ms = 0;
    while search.drain.is_none() {
        window.cwnd = 2_000;
        if ms == 0 {
            window.cwnd = 10;
        }
        search.on_ack(
            &mut window,
            &ack(ms, RTT_MS, 4 * whole(ms), 1_000 + 8 * whole(ms)),
        );
        ms += 1;
    }
    assert_eq!(ms - 1, 13 * 35);
    assert_eq!(search.counts(7), 0);
    // 100 ms are 2.9 bins: the deliveries of 3 bins, 105 ms.
    assert_eq!(search.drain.unwrap().target, 4 * 105);
    let (mut una, mut nxt) = (4 * 455, 4 * 455 + 1_500);
    let (mut acks, mut left) = (0, 0);
    while !window.ssthresh.is_set() {
        una += 2;
        acks += 1;
        search.on_ack(&mut window, &ack(500, RTT_MS, una, nxt));
        let may_leave = window.cwnd.saturating_sub(nxt - una);
        nxt += may_leave;
        left += may_leave;
        assert!(acks < 5_000);
    }
    // 1,500 - 420 = 1,080 segments drain at 15 of 16: 1,152 are acknowledged, and 72 leave.
    assert_eq!((2 * acks, left), (1_152, 72));
    assert_eq!((window.cwnd, window.ssthresh.segments()), (420, Some(420)));
}

#[test]
fn without_the_drain_slow_start_ends_at_the_window_and_a_small_target_is_the_initial_window() {
    let undrained = SlowStartParams {
        search_drain: false,
        ..params(26)
    };
    let mut search = Search::new(&undrained);
    let mut window = Window::new(10, 1_448);
    for ms in 0..=455 {
        window.cwnd = 10 + whole(ms);
        search.on_ack(&mut window, &ack(ms, RTT_MS, 0, 8 * whole(ms)));
    }
    assert_eq!(window.ssthresh.segments(), Some(465));

    let (mut search, mut window) = (Search::new(&params(26)), Window::new(12, 1_448));
    for ms in 0..=455 {
        search.on_ack(&mut window, &ack(ms, RTT_MS, 0, 8 * whole(ms)));
        window.cwnd = 100;
    }
    assert_eq!(search.drain.unwrap().target, 12);
}

#[test]
fn a_pause_of_more_than_a_window_starts_anew() {
    for (pause, current) in [(350, 10), (351, 0)] {
        let (mut search, mut window) = (Search::new(&params(26)), Window::new(10, 1_448));
        search.on_ack(&mut window, &ack(0, RTT_MS, 10, 20));
        search.on_ack(&mut window, &ack(34 + pause, 200, 10, 20));
        let clock = search.clock.unwrap();
        assert_eq!(clock.current, current, "{pause}");
        let bin = if current == 0 { 70 } else { 35 };
        assert_eq!(clock.duration, bin * 1_000_000);
    }
}
