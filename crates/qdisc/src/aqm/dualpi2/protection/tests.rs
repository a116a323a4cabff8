use super::*;

const MS: Duration = Duration::from_millis(1);

fn protection() -> Protection {
    let params = DualPi2Params {
        queue_protection: true,
        ..DualPi2Params::default()
    };
    Protection::new(&params, None, &Rng::new(1))
}

const fn us(us: u64) -> Instant {
    Instant::from_nanos(us * 1_000)
}

const fn flow(n: u32) -> FlowKey {
    FlowKey {
        source: 1,
        destination: 2,
        ports: n,
        protocol: 17,
    }
}

/// The score of the bucket at `at`, at `now`.
fn score(protection: &Protection, at: usize, now: Instant) -> u64 {
    protection.buckets[at]
        .t_exp
        .saturating_since(now)
        .as_nanos()
}

/// 1500 bytes at 2^-11 bytes per ns are 3072 us.
#[test]
fn a_packet_that_would_be_marked_for_certain_adds_its_size_divided_by_aging() {
    let mut protection = protection();
    let at = protection.pick_bucket(us(0), 7);
    let full = protection.fill_bucket(us(0), at, Bytes(1_500), 1.0);
    assert_eq!(full.as_nanos(), 3_072_000);
    let half = protection.fill_bucket(us(0), at, Bytes(1_500), 0.5);
    assert_eq!(half.as_nanos(), 3_072_000 + 1_536_000);
    // The score is a time, so it falls with time.
    let later = protection.fill_bucket(us(4_000), at, Bytes(1_500), 0.0);
    assert_eq!(later.as_nanos(), 608_000);
    assert_eq!(protection.pick_bucket(us(5_000), 7), at);
    assert_eq!(
        protection.fill_bucket(us(5_000), at, Bytes(1_500), 0.0),
        Duration::ZERO
    );
}

#[test]
fn a_score_ends_at_5_seconds() {
    let mut protection = protection();
    let at = protection.pick_bucket(us(0), 7);
    let score = protection.fill_bucket(us(0), at, Bytes(10_000_000), 1.0);
    assert_eq!(score, Duration::from_secs(5));
}

/// The second of two full packets has a score of 6144 us, the first one of 3072 us.
#[test]
fn a_packet_is_sanctioned_if_its_score_times_the_delay_exceeds_the_critical_product() {
    for (delay_us, sanctioned) in [
        // Not above CRITICALqL, however large the score.
        (1_000, [false, false, false]),
        (1_001, [false, true, true]),
        // 3072 us * 1303 us exceeds 4000 us * 1000 us; with 1302 us it does not.
        (1_302, [false, true, true]),
        (1_303, [true, true, true]),
    ] {
        let mut protection = protection();
        let delay = Duration::from_micros(delay_us);
        let seen = [0; 3].map(|_| protection.sanctions(us(0), &flow(1), Bytes(1_500), delay, 1.0));
        assert_eq!(seen, sanctioned, "{delay_us} us");
    }
}

#[test]
fn the_flow_that_builds_the_queue_is_sanctioned_and_the_sparse_flow_is_not() {
    let mut protection = protection();
    let (mut heavy, mut sparse) = (0, 0);
    let delay = Duration::from_micros(1_500);
    // 12 Mbit/s and 0.08 Mbit/s into a queue of 1.5 ms whose packets are all marked.
    for n in 0..1_000 {
        let now = us(n * 1_000);
        heavy += u32::from(protection.sanctions(now, &flow(1), Bytes(1_500), delay, 1.0));
        if n % 20 == 0 {
            sparse += u32::from(protection.sanctions(now, &flow(2), Bytes(200), delay, 1.0));
        }
    }
    assert_eq!(sparse, 0);
    // A score of 3072 us is above 4000 us * 1 ms / 1.5 ms.
    assert_eq!(heavy, 1_000);
    assert_eq!(protection.sanctioned, 1_000);
}

#[test]
fn a_flow_keeps_its_bucket_takes_an_expired_one_or_shares_the_last() {
    let mut protection = protection();
    // Bits 0 to 4 select bucket 1, bits 5 to 9 bucket 2.
    let (a, b, c) = (0x1_0041, 0x2_0041, 0x3_0041);
    let fill = |protection: &mut Protection, id| {
        let at = protection.pick_bucket(us(0), id);
        protection.fill_bucket(us(0), at, Bytes(1_500), 1.0);
        at
    };
    assert_eq!(fill(&mut protection, a), 1);
    assert_eq!(fill(&mut protection, b), 2);
    assert_eq!(fill(&mut protection, a), 1);
    assert_eq!(fill(&mut protection, c), NBUCKETS);
    assert_eq!(protection.shared, 1);
    assert_eq!(score(&protection, 1, us(0)), 2 * 3_072_000);
    // Both scores of 3072 us have expired, that of flow a has not.
    assert_eq!(protection.pick_bucket(us(4_000), c), 2);
    assert_eq!(score(&protection, 2, us(4_000)), 0);
}

#[test]
fn the_delay_is_that_of_the_backlog_if_the_rate_of_the_link_is_known() {
    let mut protection = protection();
    assert_eq!(protection.delay(Bytes(12_500), MS), MS);
    protection.set_rate(Rate::mbit(10));
    assert_eq!(
        protection.delay(Bytes(12_500), MS),
        Duration::from_millis(10)
    );
}
