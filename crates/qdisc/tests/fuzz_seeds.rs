//! The seeds of the fuzzer, and random bytes, on any toolchain.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use sojourn_qdisc::testing::fuzz::{Case, selector_of};
use sojourn_qdisc::testing::{History, Recorder};
use sojourn_qdisc::{QdiscSpec, Rng, catalogue};

/// How many random strings of bytes are tried.
const CASES: usize = 2_000;

fn check(name: &str, bytes: &[u8]) -> (Case, History) {
    let case = Case::decode(bytes);
    let checked = catch_unwind(AssertUnwindSafe(|| case.check()));
    let Ok(history) = checked else {
        panic!("{name}: {}: {bytes:?}", case.spec);
    };
    (case, history)
}

#[test]
fn seeds_keep_the_contract_and_cover_the_catalogue() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds");
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        check(&path.display().to_string(), &fs::read(&path).unwrap());
    }
    for kind in catalogue() {
        let bytes = fs::read(folder.join(kind.name)).unwrap();
        assert_eq!(bytes[..2], selector_of(kind.name), "seed of {}", kind.name);
        // Parameters may decide the canonical name; at its defaults, it is that of the family.
        let family = |name| QdiscSpec::parse(name).unwrap().kind();
        let found = family(Case::decode(&bytes).spec.kind());
        assert_eq!(found, family(kind.name), "seed of {}", kind.name);
    }
}

#[test]
fn random_bytes_keep_the_contract() {
    let mut rng = Rng::new(5);
    let (mut offered, mut signalled) = (0, 0);
    for n in 0..CASES {
        let mut bytes = vec![0; 20 + usize::try_from(rng.below(140)).unwrap()];
        bytes.fill_with(|| u8::try_from(rng.below(256)).unwrap());
        let (case, history) = check(&format!("case {n}"), &bytes);
        let text = case.spec.to_string();
        assert_eq!(QdiscSpec::parse(&text), Ok(case.spec), "{text}");
        offered += usize::from(history.offered > 0);
        signalled += usize::from(history.recorder != Recorder::default());
    }
    // Else nothing was tried.
    assert!(offered > CASES * 9 / 10, "{offered} of {CASES}");
    assert!(signalled > CASES / 4, "{signalled} of {CASES}");
}
