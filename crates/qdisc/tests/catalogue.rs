//! What the catalogue says about queues: their profiles, and every parameter.

use sojourn_qdisc::{Profile, QdiscSpec, catalogue};

#[test]
fn only_queues_with_an_rfc_have_a_profile_of_that_name() {
    let queues = catalogue().into_iter();
    let named = queues.filter(|queue| queue.profiles.contains(&Profile::Rfc));
    let named: Vec<_> = named.map(|queue| queue.name).collect();
    assert_eq!(named, ["codel", "pie", "dualpi2", "fq_codel", "fq_nocodel"]);
    assert_eq!(
        QdiscSpec::parse("cocoa profile paper").unwrap(),
        QdiscSpec::parse("cocoa").unwrap()
    );
}

#[test]
fn the_catalogue_explains_every_parameter() {
    for kind in catalogue() {
        assert!(
            !kind.parameters.is_empty(),
            "{} has no parameters",
            kind.name
        );
        for p in kind.parameters {
            let (name, key) = (kind.name, p.key);
            assert!(!p.default.is_empty(), "{name} {key} has no default");
            assert!(!p.range.is_empty() && !p.meaning.is_empty(), "{name} {key}");
            assert!(!p.provenance.is_empty(), "{name} {key} has no provenance");
        }
    }
}
