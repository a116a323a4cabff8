use super::*;

const USUAL: Columns<'_> = Columns {
    column: None,
    unit: None,
};

/// The points of a file with this text, in ms and the smallest unit, and the period in ms.
fn points(
    text: &str,
    quantity: Quantity,
    columns: &Columns<'_>,
) -> Result<(Vec<(u64, u64)>, u64), String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace");
    std::fs::write(&path, text).unwrap();
    let ms = |time: Duration| time.as_nanos() / 1_000_000;
    let read = read(&path, quantity, columns)?;
    let points = read.points.iter().map(|&(at, value)| (ms(at), value));
    Ok((points.collect(), ms(read.period)))
}

#[test]
fn columns_are_a_time_and_a_value() {
    let expected = Ok((vec![(0, 2_500_000), (1_000, 0), (1_500, 40_000_000)], 2_000));
    for text in [
        "0 2.5\n1 0\n1.5 40\n",
        "# measured\n0,2.5\n1,0\n\n1.5,40",
        "time,mbit\n0,2.5\n1,0\n1.5,40\n",
        "0\t2.5\n1\t0\n1.5\t40\n",
        "1700000000 2.5\n1700000001 0\n1700000001.5 40\n",
    ] {
        assert_eq!(points(text, Quantity::Rate, &USUAL), expected, "{text}");
    }
}

#[test]
fn a_column_and_a_unit_can_be_chosen() {
    let text = "time_s;down_kbit;rtt_ms\n0;2500;20\n10;5000;31\n";
    let columns = |column, unit| Columns {
        column: Some(column),
        unit,
    };
    let rates = Ok((vec![(0, 2_500_000), (10_000, 5_000_000)], 20_000));
    assert_eq!(
        points(text, Quantity::Rate, &columns("down_kbit", Some(1e-3))),
        rates
    );
    let delays = Ok((vec![(0, 20_000_000), (10_000, 31_000_000)], 20_000));
    assert_eq!(points(text, Quantity::Delay, &columns("3", None)), delays);
    let unknown = points(text, Quantity::Delay, &columns("rtt", None)).unwrap_err();
    assert_eq!(
        unknown,
        "no column \"rtt\"; expected time_s, down_kbit, rtt_ms"
    );
}

#[test]
fn a_line_of_leoreplayer_is_ten_milliseconds() {
    let read = points("24\n24\n18\n", Quantity::Delay, &USUAL);
    assert_eq!(read, Ok((vec![(0, 24_000_000), (20, 18_000_000)], 30)));
}

#[test]
fn one_column_is_neither_a_rate_nor_a_loss() {
    let rate = points("1\n2\n3\n", Quantity::Rate, &USUAL).unwrap_err();
    let expected = "line 1: one column; expected a time in seconds and a value";
    assert_eq!(
        rate,
        format!("{expected}; for a file of Mahimahi, use trace")
    );
    let loss = points("0.1\n", Quantity::Loss, &USUAL).unwrap_err();
    assert_eq!(loss, expected);
}

#[test]
fn a_log_of_cake_autorate_has_rates_and_delays() {
    let log = "HEADER line\n\
        LOAD_HEADER; LOG_DATETIME; LOG_TIMESTAMP; PROC_TIME_US; DL_ACHIEVED_RATE_KBPS; UL_ACHIEVED_RATE_KBPS; \
        CAKE_DL_RATE_KBPS; CAKE_UL_RATE_KBPS\n\
        DEBUG; 2024-01-01-00:00:00; 1704067199.9; Starting\n\
        LOAD; 2024-01-01-00:00:00; 1704067200.0; 1704067200.0; 9000; 900; 20000; 2000\n\
        DATA; 2024-01-01-00:00:00; 1704067200.1; 1\n\
        LOAD; 2024-01-01-00:00:00; 1704067200.2; 1704067200.2; 19000; 900; 18000; 2000\n";
    let columns = Columns {
        column: Some("CAKE_DL_RATE_KBPS"),
        unit: None,
    };
    let read = points(log, Quantity::Rate, &columns);
    assert_eq!(read, Ok((vec![(0, 20_000_000), (200, 18_000_000)], 400)));
    let error = points(log, Quantity::Rate, &USUAL).unwrap_err();
    assert!(error.contains("set column"), "{error}");
}

#[test]
fn patterns_of_rattan_are_lengths_and_rates() {
    let text = "[[25.0, [2.0, 4.0]], [1000, [1.0]]]";
    let expected = (
        vec![(0, 2_000_000), (25, 4_000_000), (50, 1_000_000)],
        1_050,
    );
    assert_eq!(points(text, Quantity::Rate, &USUAL), Ok(expected));
    for (bw, length) in [
        (r#"{"gbps":0,"bps":12000000}"#, r#"{"secs":1,"nanos":0}"#),
        (r#""12Mbps""#, r#""1s""#),
    ] {
        let text = format!(
            r#"{{"RepeatedBwPatternConfig":{{"pattern":[{{"StaticBwConfig":{{"bw":{bw},"duration":{length}}}}}],"count":0}}}}"#
        );
        let read = points(&text, Quantity::Rate, &USUAL);
        assert_eq!(read, Ok((vec![(0, 12_000_000)], 1_000)), "{text}");
    }
    let error = points("[[1, [2]]]", Quantity::Delay, &USUAL).unwrap_err();
    assert_eq!(error, "a JSON pattern has rates; expected a rate_trace");
}

#[test]
fn what_is_no_trace_names_its_line() {
    for (text, wanted) in [
        (
            "0 1\n1 x\n",
            "line 2: not a number where a time or a value is expected",
        ),
        (
            "0 1\n2 1\n1 1\n",
            "line 3: not after the time before; expected ascending times",
        ),
        ("0 1\n1 -1\n", "line 2: a value out of range"),
        ("", "no points; expected at least one"),
        ("{\n", "invalid JSON in line 2, column 0"),
        (
            "{}",
            "not a pattern; expected [[ms, [Mbit/s, …]], …] or a RepeatedBwPatternConfig of StaticBwConfig",
        ),
    ] {
        assert_eq!(
            points(text, Quantity::Rate, &USUAL),
            Err(wanted.to_owned()),
            "{text}"
        );
    }
}

#[test]
fn a_line_without_the_chosen_column_is_refused() {
    let ninth = Columns {
        column: Some("9"),
        ..USUAL
    };
    let error = points("0 1\n1 2\n", Quantity::Rate, &ninth).unwrap_err();
    assert_eq!(error, "line 1: too few columns");
}

#[test]
fn units_in_the_names_of_columns_count() {
    let expected = Ok((vec![(0, 12_000_000), (2_000, 8_000_000)], 4_000));
    for text in [
        "time_s,rate_kbps\n0,12000\n2,8000\n",
        "time_ms,RATE_KBPS\n0,12000\n2000,8000\n",
        "time (ns GMT),Mbit/s\n1612137600000000000,12\n1612137602000000000,8\n",
        "epoch_ms\tdownlink\n1612137600000\t12\n1612137602000\t8\n",
        "time,bits\n0,12000000,\n2,8000000,\n",
    ] {
        assert_eq!(points(text, Quantity::Rate, &USUAL), expected, "{text}");
    }
    let delays = points(
        "time_s,delay_us\n0,12000\n2,8000\n",
        Quantity::Delay,
        &USUAL,
    );
    assert_eq!(
        delays,
        Ok((vec![(0, 12_000_000), (2_000, 8_000_000)], 4_000))
    );
    // What the scenario says is decisive.
    let kbit = Columns {
        unit: Some(1e-3),
        ..USUAL
    };
    let read = points("time,mbps\n0,12000\n2,8000\n", Quantity::Rate, &kbit);
    assert_eq!(read, expected);
}

#[test]
fn units_that_are_unclear_and_columns_that_are_not_chosen_are_refused() {
    for (text, wanted) in [
        (
            "0 549 59.8\n",
            "line 1: 3 columns; set column, a name or a number from 1",
        ),
        (
            "1612137600000 10\n",
            "line 1: a time too large for seconds; expected a first line with names such as time_ms,rate_mbit",
        ),
        (
            "time,rate_MBps\n0,1\n",
            "the name of the column has a unit of bytes; expected rates in bits, or unit",
        ),
    ] {
        let error = points(text, Quantity::Rate, &USUAL).unwrap_err();
        assert_eq!(error, wanted, "{text}");
    }
}
