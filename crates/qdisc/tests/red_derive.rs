//! RED derives the parameters that are not given as iproute2 does.

use sojourn_qdisc::{Bytes, QdiscSpec, RedParams};

/// The table of the residential study: limit 1514000, avpkt 1514, adaptive, harddrop.
#[test]
fn red_derives_what_iproute2_does() {
    for (min, max, burst, wlog, band) in [
        (1_514, 3_028, 1, 1, (2_118, 2_420)),
        (12_500, 37_500, 13, 3, (22_500, 27_500)),
        (125_000, 375_000, 137, 6, (225_000, 275_000)),
    ] {
        let params = RedParams {
            limit: Bytes(1_514_000),
            min: Some(Bytes(min)),
            max: (min == 1_514).then_some(Bytes(max)),
            avpkt: Bytes(1_514),
            ..RedParams::default()
        };
        let derived = params.derive().unwrap();
        assert_eq!((derived.min, derived.max), (Bytes(min), Bytes(max)));
        assert_eq!((derived.burst, derived.wlog), (burst, wlog));
        assert_eq!((derived.target_min.0, derived.target_max.0), band);
    }
    let from_limit = RedParams::default().derive().unwrap();
    assert_eq!(from_limit.max, Bytes(378_500));
    assert_eq!(from_limit.min, Bytes(126_166));
}

#[test]
fn a_burst_without_a_weight_is_too_small_or_too_large() {
    for (spec, expected) in [
        (
            "red min 30000 burst 3",
            "red: burst 3 is too small for min 30000B; expected at least 30 (min / avpkt)",
        ),
        (
            "red min 1000 max 6000 burst 1000",
            "red: burst 1000 is too large for min 1000B; raise min or lower burst",
        ),
        (
            "choke min 20 burst 19",
            "choke: burst 19 is too small for min 20; expected at least 20",
        ),
        (
            "choke min 1 max 6 burst 1000",
            "choke: burst 1000 is too large for min 1; raise min or lower burst",
        ),
    ] {
        assert_eq!(QdiscSpec::parse(spec).unwrap_err().to_string(), expected);
    }
}
