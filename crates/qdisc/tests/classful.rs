//! Queues inside others, as text.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use sojourn_qdisc::QdiscSpec;

fn refusal(text: &str) -> String {
    QdiscSpec::parse(text).unwrap_err().to_string()
}

#[test]
fn what_is_displayed_is_read_back() {
    for (text, canonical) in [
        (
            "prio bands 3 priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1",
            "prio bands 3 priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1",
        ),
        (
            "prio leaf codel target 7ms / (prio leaf pfifo / sfq limit 9) / pfifo limit 5",
            "prio bands 3 priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1 \
             leaf codel limit 1000 target 7ms interval 100ms / \
             (prio bands 3 priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1 \
             leaf pfifo limit 1000 / sfq limit 9 depth 127 flows 128 divisor 1024) / \
             pfifo limit 5",
        ),
        (
            "drr quantum 3028 classes 4 leaf codel / (drr leaf sfq limit 9)",
            "drr classes 4 quantum 3028b leaf codel limit 1000 target 5ms interval 100ms / \
             drr classes 1024 leaf sfq limit 9 depth 127 flows 128 divisor 1024",
        ),
        (
            "drr classes 2 leaf (drr classes 2 leaf bfifo / pfifo)",
            "drr classes 2 leaf (drr classes 2 leaf bfifo limit 1514000b / pfifo limit 1000)",
        ),
        (
            "sfb leaf codel",
            "sfb limit 1000 rehash 600s db 60s increment 0.0005 decrement 0.00005 \
             penalty_rate 10 penalty_burst 20 leaf codel limit 1000 target 5ms interval 100ms",
        ),
        (
            "pfifo_fast limit 5p profile linux-3.14",
            "pfifo_fast limit 5 profile linux-3.14",
        ),
    ] {
        let spec = QdiscSpec::parse(text).unwrap();
        assert_eq!(spec.to_string(), canonical);
        assert_eq!(QdiscSpec::parse(canonical), Ok(spec.clone()));
        let pairs = spec
            .pairs()
            .into_iter()
            .map(|(key, value)| (key.into(), value));
        assert_eq!(QdiscSpec::from_pairs(spec.kind(), pairs), Ok(spec));
    }
}

#[test]
fn a_refusal_says_what_would_be_right() {
    assert_eq!(
        refusal("prio bands 2"),
        "prio: priomap contains band 2; expected 0 to 1"
    );
    assert_eq!(
        refusal("prio priomap 1 2 0 leaf codel"),
        "prio: priomap needs 16 numbers, not 3; expected numbers from 0 to 15"
    );
    assert_eq!(
        refusal("prio priomap leaf codel"),
        "prio: priomap needs a value; expected numbers from 0 to 15"
    );
    assert_eq!(
        refusal("drr classes 1 leaf codel / codel"),
        "drr: leaf has 2 queues; expected at most 1"
    );
    assert_eq!(
        refusal("drr quantum 255"),
        "drr: quantum 255 is out of range; expected 256b to 1048576b"
    );
    assert_eq!(
        refusal("drr leaf drr leaf pfifo"),
        "drr: leaf creates 1049600 queues; expected at most 65536"
    );
    assert_eq!(
        refusal("prio leaf codel / codel / codel / codel"),
        "prio: leaf has 4 queues; expected at most 3"
    );
    assert_eq!(
        refusal("prio leaf codel tarqet 5ms"),
        "prio: leaf 1: codel: unknown parameter \"tarqet\"; did you mean \"target\"?"
    );
}

#[test]
fn queues_do_not_stand_too_deep_in_each_other() {
    let deep = |depth: usize| "prio leaf ".repeat(depth - 1) + "pfifo";
    assert!(QdiscSpec::parse(&deep(8)).is_ok());
    assert!(refusal(&deep(9)).contains("expected at most 8 levels"));
    assert!(refusal(&deep(100_000)).contains("too many classful queues (maximum 64)"));
    let wide = "prio bands 16 leaf ".repeat(4) + "pfifo";
    assert!(refusal(&wide).ends_with("leaf creates 69904 queues; expected at most 65536"));
}

/// The names of the reconstructions among a queue and those inside it.
fn reconstructed(spec: &QdiscSpec) -> Vec<&'static str> {
    let all = spec.provenance().into_iter();
    all.filter_map(|queue| queue.reconstruction.and(Some(queue.name)))
        .collect()
}

#[test]
fn what_is_reconstructed_of_a_leaf_is_of_the_whole() {
    for text in [
        "red min 3000 max 9000 leaf",
        "sfb leaf",
        "drr leaf",
        "prio leaf",
    ] {
        let reconstructions = |leaf: &str| {
            let spec = QdiscSpec::parse(&format!("{text} {leaf}")).unwrap();
            reconstructed(&spec)
        };
        assert!(reconstructions("pfifo").is_empty(), "{text}");
        let of_leaf = reconstructions("floq");
        assert_eq!(of_leaf, ["floq"], "{text}");
    }
    let twice = QdiscSpec::parse("prio leaf floq / (drr leaf blue) / pfifo").unwrap();
    assert_eq!(reconstructed(&twice), ["floq", "blue"]);
}

#[test]
fn a_queue_with_a_leaf_counts_as_two() {
    for of in ["red min 3000 max 9000", "sfb"] {
        let queues = |classes: u32, leaf: &str| {
            let text = format!("prio bands 16 leaf (drr classes {classes} leaf {of}{leaf})");
            QdiscSpec::parse(&text)
        };
        // 16 (1 + 4000) and 16 (1 + 2 * 2047), then one more.
        assert!(queues(4_000, "").is_ok(), "{of}");
        assert!(queues(2_047, " leaf pfifo").is_ok(), "{of}");
        assert!(queues(2_048, " leaf pfifo").is_err(), "{of}");
    }
    assert_eq!(
        refusal("sfb leaf codel / pfifo"),
        "sfb: leaf has 2 queues, more than the maximum of 1; expected queues separated by /"
    );
}

#[test]
fn as_many_leaves_and_queues_as_allowed_are_taken() {
    // 64 leaves that have leaves themselves.
    let many = |n: usize| {
        format!(
            "drr classes 99 leaf {}pfifo",
            "(drr classes 2 leaf pfifo) / ".repeat(n)
        )
    };
    assert!(QdiscSpec::parse(&many(64)).is_ok());
    assert!(QdiscSpec::parse(&many(65)).is_err());
    // 16 (1 + 4095) are 65536.
    let queues = |classes: u32| format!("prio bands 16 leaf drr classes {classes} leaf pfifo");
    assert!(QdiscSpec::parse(&queues(4_095)).is_ok());
    assert!(QdiscSpec::parse(&queues(4_096)).is_err());
}
