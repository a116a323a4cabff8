//! Senders and receivers of media connected by a path without a network.

use super::*;

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

const PLAIN: MediaConfig = MediaConfig {
    control: MediaControl::Constant,
    min_rate: Rate::mbit(1),
    max_rate: Rate::mbit(4),
    start_rate: Rate::mbit(2),
    encoder: EncoderConfig {
        fps: 25.0,
        variation: 0.0,
        lag: ms(100),
        key_frames: None,
        pause: None,
    },
    ecn: MediaEcn::Off,
    feedback_interval: None,
    phase: Phase::Fixed(Duration::ZERO),
};

/// Packets that have left: number, size and time.
type Left = Vec<(u32, u64, Instant)>;

/// Runs the sender until `end` over a path of `delay` each way that loses the packets for which `lose` is true.
fn run(
    source: &mut dyn DatagramSource,
    end: Instant,
    delay: Duration,
    lose: fn(u32) -> bool,
) -> Left {
    let mut left = Left::new();
    let mut packets: VecDeque<(Instant, u32)> = VecDeque::new();
    let mut reports: VecDeque<(Instant, u32)> = VecDeque::new();
    loop {
        let due = source.due().expect("media are paced");
        let next = [
            Some(due),
            packets.front().map(|p| p.0),
            reports.front().map(|r| r.0),
        ];
        let now = next.into_iter().flatten().min().expect("one is due");
        if now > end {
            return left;
        }
        if let Some(&(at, number)) = reports.front()
            && at == now
        {
            reports.pop_front();
            source.on_report(now, number);
        } else if let Some(&(at, number)) = packets.front()
            && at == now
        {
            packets.pop_front();
            if !lose(number) {
                assert!(source.on_packet(now, number, delay, Ecn::NotEct));
                reports.extend(source.report().map(|(number, _)| (now + delay, number)));
            }
        } else if let Some(packet) = source.outgoing(now) {
            let number = u32::try_from(left.len()).expect("few");
            source.send(now);
            left.push((number, packet.payload.0, now));
            packets.push_back((now + delay, number));
        }
    }
}

fn build(config: &MediaConfig) -> Box<dyn DatagramSource> {
    config.build(Instant::ZERO, &Rng::new(1))
}

#[test]
fn a_frame_is_split_into_full_packets_and_a_rest_that_are_paced() {
    let mut source = build(&PLAIN);
    let left = run(&mut *source, Instant::from_millis(39), ms(10), |_| false);
    // 2 Mbit/s for 40 ms: 10,000 B.
    let sizes: Vec<_> = left.iter().map(|packet| packet.1).collect();
    assert_eq!(
        sizes,
        [1_200, 1_200, 1_200, 1_200, 1_200, 1_200, 1_200, 1_200, 400]
    );
    // 1,200 B at 3 Mbit/s: 3.2 ms each.
    assert_eq!(left[8].2, Instant::from_nanos(8 * 3_200_000));
}

#[test]
fn a_frame_takes_the_pacer_and_the_path() {
    let mut source = build(&PLAIN);
    run(&mut *source, Instant::from_millis(999), ms(10), |_| false);
    let record = source.media(0).expect("media");
    // Frames at 0 to 960 ms; the last packet leaves 25.6 ms later.
    assert_eq!((record.frames, record.lost_frames), (25, 0));
    let delay = Some(Duration::from_micros(35_600));
    assert_eq!(
        (record.frame_delay_mean, record.frame_delay_max),
        (delay, delay)
    );
    assert_eq!(record.target_kbit_per_s, Some(2_000));
    assert_eq!((record.sent_packets, record.sent_bytes), (225, 250_000));
    // 0, 3.2, …, 25.6 ms in each frame.
    assert_eq!(record.waited, Duration::from_micros(25 * 115_200));
    // The first packet and the end of each frame.
    assert_eq!(record.reports, 26);
}

#[test]
fn a_frame_without_a_packet_is_lost() {
    let mut source = build(&PLAIN);
    run(&mut *source, Instant::from_millis(995), ms(10), |number| {
        number == 12
    });
    let record = source.media(0).expect("media");
    assert_eq!((record.frames, record.lost_frames), (25, 1));
    // Frames under way at the end are not lost.
    let mut source = build(&PLAIN);
    run(&mut *source, Instant::from_millis(979), ms(10), |_| false);
    assert_eq!(source.media(0).map(|record| record.lost_frames), Some(0));
}

#[test]
fn scream_raises_the_rate_of_a_free_path_to_the_largest() {
    let config = MediaConfig {
        control: MediaControl::Scream,
        start_rate: Rate::mbit(1),
        ..PLAIN
    };
    let mut source = build(&config);
    run(&mut *source, Instant::from_millis(60_000), ms(25), |_| {
        false
    });
    let state = source.media_state().expect("media");
    assert_eq!(state.target_kbit_per_s, 4_000);
    let record = source.media(0).expect("media");
    assert!(record.frame_delay_p95 < Some(ms(60)), "{record:?}");
}

#[test]
fn scream_lowers_the_rate_to_the_smallest_if_a_tenth_is_lost() {
    let config = MediaConfig {
        control: MediaControl::Scream,
        ..PLAIN
    };
    let mut source = build(&config);
    run(
        &mut *source,
        Instant::from_millis(30_000),
        ms(25),
        |number| number % 10 == 0,
    );
    let state = source.media_state().expect("media");
    assert_eq!(state.target_kbit_per_s, 1_000);
}

#[test]
fn a_closed_window_lets_50_kbit_per_s_through() {
    let config = MediaConfig {
        control: MediaControl::Scream,
        ..PLAIN
    };
    let mut source = build(&config);
    let left = run(&mut *source, Instant::from_millis(20_000), ms(25), |_| true);
    let late = left
        .iter()
        .filter(|packet| packet.2 > Instant::from_millis(10_000));
    let bytes: u64 = late.map(|packet| packet.1).sum();
    assert!((55_000..=63_000).contains(&bytes), "{bytes}");
}

#[test]
fn rules_name_the_key() {
    let broken = |config: MediaConfig| {
        let config: &dyn DatagramConfig = &config;
        config.check().map(|(key, _)| key)
    };
    assert_eq!(broken(PLAIN), None);
    let (min_rate, max_rate) = (Rate::mbit(5), Rate::mbit(1));
    assert_eq!(broken(MediaConfig { min_rate, ..PLAIN }), Some("max_rate"));
    assert_eq!(
        broken(MediaConfig { max_rate, ..PLAIN }),
        Some("start_rate")
    );
    // GCC does not react to marks.
    let (control, ecn) = (MediaControl::Gcc, MediaEcn::Classic);
    assert_eq!(
        broken(MediaConfig {
            control,
            ecn,
            ..PLAIN
        }),
        Some("ecn")
    );
}

#[test]
fn no_more_datagrams_are_sent_than_the_bound() {
    let config = MediaConfig {
        start_rate: Rate::mbit(4),
        ..PLAIN
    };
    let mut source = build(&config);
    let left = run(&mut *source, Instant::from_millis(10_000), ms(10), |_| {
        false
    });
    assert!(
        left.len() as u64 <= config.datagrams(Duration::from_secs(10)),
        "{}",
        left.len()
    );
}
