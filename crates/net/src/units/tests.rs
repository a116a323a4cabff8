extern crate std;

use std::string::ToString;

use super::*;

fn nanos(text: &str) -> u64 {
    text.parse::<Duration>().unwrap().as_nanos()
}

fn bits(text: &str) -> u64 {
    text.parse::<Rate>().unwrap().bits_per_sec()
}

fn bytes(text: &str) -> u64 {
    text.parse::<Bytes>().unwrap().0
}

fn why<T: FromStr<Err = UnitError> + fmt::Debug>(text: &str) -> std::string::String {
    text.parse::<T>().unwrap_err().to_string()
}

#[test]
fn times_are_read_in_the_units_of_tc() {
    assert_eq!(nanos("5ms"), 5_000_000);
    assert_eq!(nanos("12.5ms"), 12_500_000);
    assert_eq!(nanos(" 100 msec "), 100_000_000);
    assert_eq!(nanos("1.5s"), 1_500_000_000);
    assert_eq!(nanos("20usec"), 20_000);
    assert_eq!(nanos("0.4ns"), 0);
    assert_eq!(nanos("0.5ns"), 1);
    assert_eq!(nanos(".5us"), 500);
    assert_eq!(nanos("5.000000ms"), 5_000_000);
}

#[test]
fn rates_are_bits_except_where_tc_means_bytes() {
    assert_eq!(bits("10mbit"), 10_000_000);
    assert_eq!(bits("10 Mbit/s"), 10_000_000);
    assert_eq!(bits("10Mbit/s"), 10_000_000);
    assert_eq!(bits("2.5gbit"), 2_500_000_000);
    assert_eq!(bits("1tbit"), 1_000_000_000_000);
    assert_eq!(bits("1kibit"), 1_024);
    assert_eq!(bits("1mbps"), 8_000_000);
    assert_eq!(bits("3bps"), 24);
    assert_eq!(bits("1kibps"), 8_192);
    assert_eq!(bits("7bit"), 7);
}

#[test]
fn sizes_are_powers_of_1024_and_may_be_plain() {
    assert_eq!(bytes("192278"), 192_278);
    assert_eq!(bytes("15140b"), 15_140);
    assert_eq!(bytes("32Mb"), 33_554_432);
    assert_eq!(bytes("4k"), 4_096);
    assert_eq!(bytes("1kbit"), 128);
    assert_eq!(bytes("1gb"), 1 << 30);
    assert_eq!(bytes("1514B"), 1_514);
    assert_eq!(bytes("0.5k"), 512);
}

#[test]
fn what_is_displayed_is_read_back() {
    for ns in [0, 1, 999_999, 5_000_000, 86_400_000_000_001] {
        let time = Duration::from_nanos(ns);
        assert_eq!(time.to_string().parse(), Ok(time));
    }
    for n in [1, 1_000, 12_345, 10_000_000, 40_000_000_000] {
        let rate = Rate::from_bits_per_sec(n).unwrap();
        assert_eq!(rate.to_string().parse(), Ok(rate));
    }
}

#[test]
fn an_error_says_what_was_given_and_what_would_be_right() {
    assert_eq!(
        why::<Duration>("5"),
        "\"5\" is not a time: the unit is missing; write 5s or 5ms"
    );
    assert_eq!(
        why::<Rate>("10"),
        "\"10\" is not a rate: the unit is missing; write, for example, 10mbit"
    );
    assert_eq!(
        why::<Rate>("1000000"),
        "\"1000000\" is not a rate: the unit is missing; write, for example, 10mbit"
    );
    assert_eq!(
        why::<Duration>("fast"),
        "\"fast\" is not a time: it must start with a number; write, for example, 5ms"
    );
    assert_eq!(
        why::<Duration>("5 parsecs"),
        "\"5 parsecs\" is not a time: unknown unit; the units are s, ms, us, ns"
    );
    assert_eq!(
        why::<Rate>("-1mbit"),
        "\"-1mbit\" is not a rate: it must be > 0"
    );
    assert_eq!(
        why::<Rate>("0mbit"),
        "\"0mbit\" is not a rate: it must be > 0"
    );
    assert_eq!(
        why::<Duration>("-5ms"),
        "\"-5ms\" is not a time: it must be >= 0"
    );
    assert_eq!(
        why::<Bytes>("999999999999gb"),
        "\"999999999999gb\" is not a size: it is too large; the maximum is 17179869183gb"
    );
    assert_eq!(
        why::<Bytes>("1.2.3k"),
        "\"1.2.3k\" is not a size: it must start with a number; write, for example, 15140b"
    );
    for nonsense in ["", "ms", "1ibit", "1mbps/s", "1 m bit", "٣ms"] {
        assert!(nonsense.parse::<Rate>().is_err(), "{nonsense}");
    }
    let long = "1".repeat(20) + &"µ".repeat(20);
    assert!(why::<Duration>(&long).contains("µ…\" is not a time"));
}
