use sojourn_schema::Unit;

use super::*;
use crate::cc::CubicParams;

fn read(text: &str) -> CcSpec {
    text.parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn refusal(text: &str) -> String {
    match text.parse::<CcSpec>() {
        Ok(spec) => panic!("{text} was read as {spec}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_control_at_its_defaults_is_its_name() {
    for kind in CcKind::ALL {
        assert_eq!(CcSpec::from(kind).to_string(), kind.name());
        assert_eq!(read(kind.name()), kind.into());
        assert_eq!(CcSpec::from(kind).validate(), Ok(()));
    }
}

#[test]
fn every_default_written_out_is_the_default() {
    for entry in catalogue() {
        for parameter in &entry.parameters {
            let text = format!("{} {} {}", entry.name, parameter.key, parameter.default);
            assert_eq!(read(&text).to_string(), entry.name, "{text}");
        }
    }
}

#[test]
fn both_ends_of_every_range_are_read_written_and_read_again() {
    for kind in CcKind::ALL {
        for parameter in kind.parameters() {
            for end in [parameter.min, parameter.max] {
                let text = parameter.unit.text(end);
                let text = match parameter.unit {
                    Unit::Ratios(_) => [&*text; 8].join(","),
                    _ => text,
                };
                let mut spec = CcSpec::from(kind);
                let value = spec.value(parameter.key).unwrap();
                assert_eq!(parameter.set(value, &text), Ok(()), "{kind} {text}");
                assert_eq!(
                    parameter.text(value),
                    Some(text),
                    "{kind} {}",
                    parameter.key
                );
                // A bound may contradict the default of another parameter.
                if spec.validate().is_ok() {
                    assert_eq!(read(&spec.to_string()), spec);
                }
            }
        }
    }
}

#[test]
fn one_beyond_a_range_is_refused() {
    for kind in CcKind::ALL {
        for parameter in kind.parameters().filter(|p| !p.is_flag()) {
            let ends = [parameter.min.checked_sub(1), Some(parameter.max + 1)];
            for end in ends.into_iter().flatten() {
                let text = match parameter.unit {
                    // 0 is as `off` where it is allowed.
                    Unit::CountOrOff(_) => end.to_string(),
                    Unit::Ratios(_) => [&*parameter.unit.text(end); 8].join(","),
                    unit => unit.text(end),
                };
                let mut spec = CcSpec::from(kind);
                let value = spec.value(parameter.key).unwrap();
                let flaw = parameter.set(value, &text).unwrap_err();
                assert!(
                    matches!(&flaw, Flaw::Value(flaw) if flaw.ends_with("is out of range")),
                    "{kind} {}: {flaw:?}",
                    parameter.key
                );
            }
        }
    }
}

#[test]
fn fractions_are_read_as_decimals_or_as_quotients() {
    assert_eq!(read("cubic beta 0.7"), read("cubic"));
    assert_eq!(read("cubic beta 7/10").to_string(), "cubic");
    assert_eq!(read("cubic beta 1/2").to_string(), "cubic beta 1/2");
    assert_eq!(read("reno alpha 0.5").to_string(), "reno alpha 0.5");
    assert_eq!(read("ledbat target 25ms").to_string(), "ledbat target 25ms");
    assert_eq!(
        read("highspeed high_p 1e-6").to_string(),
        "highspeed high_p 0.000001"
    );
    let gains = "bbr pacing_gain 3/2,1/2,1,1,1,1,1,1";
    assert_eq!(read(gains).to_string(), gains);
}

#[test]
fn parameters_are_written_in_the_order_of_the_catalogue() {
    let spec = read("cubic hystart off fast_convergence off beta 0.8");
    let canonical = "cubic beta 819/1024 fast_convergence off hystart off";
    assert_eq!(spec.to_string(), canonical);
    assert_eq!(read(canonical), spec);
}

#[test]
fn what_is_wrong_where_and_what_is_accepted() {
    let names = CcKind::ALL.map(CcKind::name).join(", ");
    assert!(names.starts_with("reno, cubic, highspeed"), "{names}");
    assert_eq!(
        refusal("cubci"),
        "unknown congestion control \"cubci\"; did you mean \"cubic\"?"
    );
    assert_eq!(
        refusal("xyzzy"),
        format!("unknown congestion control \"xyzzy\"; expected one of {names}")
    );
    for given in ["./mycc.py:Cc", "mycc.py", "C:/own/CC.PY:Cc"] {
        let error = refusal(given);
        let begins = format!(
            "unknown congestion control \"{given}\"; a control cannot be a class in Python"
        );
        assert!(
            error.starts_with(&begins) && error.contains("make new-cc"),
            "{error}"
        );
    }
    assert_eq!(
        refusal("vegas delta 1"),
        "vegas: unknown parameter \"delta\"; did you mean \"beta\"?"
    );
    assert_eq!(
        refusal("vegas window 1"),
        "vegas: unknown parameter \"window\"; expected one of alpha, beta, gamma"
    );
    assert_eq!(
        refusal("cubic beta 0.7 beta 0.8"),
        "cubic: beta is given twice"
    );
    for (text, error) in [
        (
            "cubic beta",
            "cubic: beta needs a value; expected 1/1024 to 1023/1024",
        ),
        (
            "cubic beta x",
            "cubic: beta \"x\" is not a number; expected 1/1024 to 1023/1024",
        ),
        (
            "cubic beta 1/0",
            "cubic: beta \"1/0\" is not a fraction; expected 1/1024 to 1023/1024",
        ),
        (
            "cubic beta 1.5",
            "cubic: beta 1.5 is out of range; expected 1/1024 to 1023/1024",
        ),
        (
            "cubic hystart maybe",
            "cubic: hystart \"maybe\" is neither on nor off; expected on or off",
        ),
        (
            "vegas alpha 1.5",
            "vegas: alpha \"1.5\" is not a whole number; expected 0 to 10000",
        ),
        (
            "reno hystartpp_l_paced none",
            "reno: hystartpp_l_paced \"none\" is not a whole number; expected off or 1 to 65535",
        ),
        (
            "ledbat allowed_increase 0",
            "ledbat: allowed_increase 0 is out of range; expected off or 1 to 65535",
        ),
        (
            "ledbat target 1500us",
            "ledbat: target 1500us is not a whole number of milliseconds; expected 1ms to 10s",
        ),
        (
            "bbr pacing_gain 1,2",
            "bbr: pacing_gain needs 8 values, not 2; expected 1/256 to 10 each",
        ),
        (
            "vegas alpha 6",
            "vegas: alpha 6 exceeds beta 4; expected alpha <= beta",
        ),
    ] {
        assert_eq!(refusal(text), error);
    }
}

#[test]
fn a_number_that_is_none_is_off() {
    for text in [
        "cubic initial_ssthresh off",
        "cubic initial_ssthresh 0",
        "dctcp hystartpp_l_paced off",
        "ledbat allowed_increase off",
    ] {
        let spec = read(text);
        assert_eq!(spec, spec.kind().into(), "{text}");
    }
    let off = catalogue().into_iter().flat_map(|entry| entry.parameters);
    let mut off = off.filter(|p| matches!(p.unit, Unit::CountOrOff(_)));
    assert!(off.all(|p| p.default == "off"));
}

#[test]
fn typed_values_are_checked_as_texts_are() {
    let wrong = CcSpec::from(CubicParams {
        beta: 2_000,
        ..CubicParams::default()
    });
    let error = wrong.validate().unwrap_err().to_string();
    assert!(
        error.starts_with("cubic: beta 125/64 is out of range"),
        "{error}"
    );
}

#[test]
fn the_catalogue_names_every_control_with_its_source() {
    let entries = catalogue();
    assert_eq!(entries.len(), CcKind::ALL.len());
    for entry in entries {
        assert!(!entry.summary.is_empty() && !entry.source.is_empty());
        for parameter in entry.parameters {
            assert!(!parameter.provenance.is_empty(), "{}", parameter.key);
        }
    }
}

#[test]
fn the_controls_that_offer_a_slow_start_exit_have_its_constants() {
    for kind in CcKind::ALL {
        for (way, number) in [
            (SlowStart::HyStartPlusPlus, 8),
            (SlowStart::Search, 5),
            (SlowStart::CarefulResume, 2),
            (SlowStart::RapidStart, 2),
        ] {
            let offers = kind.slow_starts().contains(&way);
            let constants = kind
                .parameters()
                .filter(|p| SlowStart::of_parameter(p.key) == Some(way));
            assert_eq!(constants.count(), if offers { number } else { 0 }, "{kind}");
        }
    }
    let text = "reno beta 0.7 hystartpp_min_rtt_thresh 2500us hystartpp_l_paced 64";
    let canonical = "reno beta 717/1024 hystartpp_min_rtt_thresh 2500us hystartpp_l_paced 64";
    assert_eq!(read(text).to_string(), canonical);
    assert_eq!(
        refusal("dctcp hystartpp_max_rtt_thresh 3ms"),
        "dctcp: hystartpp_min_rtt_thresh 4ms exceeds hystartpp_max_rtt_thresh 3ms; expected \
         hystartpp_min_rtt_thresh <= hystartpp_max_rtt_thresh"
    );
    let search = "highspeed search_window_factor 2 search_thresh 0.35 search_drain off";
    assert_eq!(read(search).to_string(), search);
    assert_eq!(
        refusal("reno search_thresh 0"),
        "reno: search_thresh 0 is out of range; expected 0.01 to 1"
    );
    assert_eq!(
        refusal("cubic hystartpp_css_growth_divisor 1"),
        "cubic: hystartpp_css_growth_divisor 1 is out of range; expected 2 to 1000"
    );
}
