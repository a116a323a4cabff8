//! Keys of runs in the store: digests of everything that determines a run.

use serde_json::json;
use sha2::{Digest as _, Sha256};
use sojourn_scenario::Scenario;
use sojourn_scenario::digest::hex;
use sojourn_store::Key;

use crate::manifest::{Build, ExternalQueue, METRIC_DEFINITIONS, Provenance};

/// Incremented when the format of a stored run changes.
const PIECE_FORMAT: u32 = 1;

/// The keys of a scenario's runs.
///
/// The key of a run does not depend on the other arms or on the number of replications, so that runs
/// are reused when these change.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    /// Of all runs of this scenario by this program.
    pub(crate) invocation: Key,
    /// Of each run, counted arm by arm.
    pub(crate) runs: Vec<Key>,
    /// Whether equal keys mean equal runs. If not, a run is found only by the invocation that it
    /// belongs to.
    pub(crate) reusable: bool,
}

impl Keys {
    /// The keys of the runs of `scenario` as this build runs it; `binary` identifies the program
    /// where its commit does not.
    pub(crate) fn of(
        scenario: &Scenario,
        provenance: &Provenance,
        build: &Build,
        binary: Option<&str>,
    ) -> Self {
        let queues = scenario.external_queues();
        let sources: Vec<_> = queues
            .iter()
            .map(|name| {
                (
                    name,
                    ExternalQueue::loaded(name).and_then(|queue| queue.sha256),
                )
            })
            .collect();
        let engine = json!({
            "piece": PIECE_FORMAT,
            "metric_definitions": METRIC_DEFINITIONS,
            "version": build.version,
            "commit": build.commit_text(),
            "target": build.target,
            "backend": provenance.backend,
            "engine_version": provenance.fingerprint.version,
            "engine_commit": provenance.fingerprint.commit,
            "kernel": provenance.fingerprint.kernel,
            "sources": sources,
        })
        .to_string();
        let runs = scenario.arms().enumerate().flat_map(|(arm, name)| {
            let of_arm = digest(&["run", &engine, name, &scenario.arm_json(arm)]);
            (0..scenario.replications())
                .map(move |replication| digest(&[&hex(&of_arm), &replication.to_string()]))
        });
        let known = build.commit.is_some() && !build.dirty;
        Self {
            runs: runs.collect(),
            invocation: digest(&[
                "invocation",
                &engine,
                scenario.hash(),
                binary.filter(|_| !known).unwrap_or_default(),
            ]),
            reusable: known
                && provenance.deterministic
                && sources.iter().all(|(_, source)| source.is_some()),
        }
    }

    /// The keys of something that is computed from each run, of which `what` identifies the rest.
    pub(crate) fn refined(self, what: &str) -> Self {
        let refined = |key: &Key| digest(&[&hex(key), what]);
        Self {
            invocation: refined(&self.invocation),
            runs: self.runs.iter().map(refined).collect(),
            reusable: self.reusable,
        }
    }

    /// The keys of the runs of a deterministic backend in stores that several machines share. Equal
    /// keys mean equal runs: `binary` identifies the program where its commit does not.
    pub(crate) fn shared(&self, binary: &str) -> Vec<Key> {
        let runs = 0..self.runs.len();
        runs.map(|number| self.stored(number, binary)).collect()
    }

    /// The key under which a run is stored by the invocation called `id`.
    pub(crate) fn stored(&self, number: usize, id: &str) -> Key {
        let key = self.runs[number];
        if self.reusable {
            key
        } else {
            digest(&[&hex(&key), id])
        }
    }
}

/// The digest of several strings, each with its length.
fn digest(parts: &[&str]) -> Key {
    let mut sha256 = Sha256::new();
    for part in parts {
        sha256.update((part.len() as u64).to_le_bytes());
        sha256.update(part.as_bytes());
    }
    sha256.finalize().into()
}

#[cfg(test)]
mod tests {
    use sojourn_backend::Fingerprint;

    use super::*;

    const SCENARIO: &str = r#"
        duration = "1s"
        replications = 2
        links.up = { rate = "8mbit", qdisc = "pfifo" }
        traffic = [{ type = "udp", direction = "up", rate = "1mbit" }]
        arms = [{ name = "a" }, { name = "b", set = { "links.up.qdisc" = "codel" } }]
    "#;

    fn build(commit: Option<&str>, dirty: bool) -> Build {
        Build {
            version: "1.0.0".to_owned(),
            commit: commit.map(str::to_owned),
            dirty,
            target: "here".to_owned(),
        }
    }

    fn provenance(deterministic: bool) -> Provenance {
        Provenance {
            backend: "some".to_owned(),
            deterministic,
            fingerprint: Fingerprint::default(),
        }
    }

    fn keys(text: &str) -> Keys {
        let scenario = Scenario::from_toml(text).unwrap();
        Keys::of(&scenario, &provenance(true), &build(Some("c"), false), None)
    }

    #[test]
    fn more_replications_and_other_arms_keep_the_keys() {
        let [a0, a1, b0, b1] = keys(SCENARIO).runs[..] else {
            panic!("expected four runs");
        };
        let more = SCENARIO.replace("replications = 2", "replications = 3");
        let more = keys(&more).runs;
        assert_eq!(more[..2], [a0, a1]);
        assert_eq!(more[3..5], [b0, b1]);
        let alone = SCENARIO
            .replace("{ name = \"a\" }, ", "")
            .replace("1s", "1000ms");
        assert_eq!(keys(&alone).runs, [b0, b1]);
        let all: std::collections::BTreeSet<_> = more.iter().collect();
        assert_eq!(all.len(), 6);
    }

    #[test]
    fn whatever_determines_a_run_changes_its_key() {
        let scenario = Scenario::from_toml(SCENARIO).unwrap();
        let base = keys(SCENARIO).runs;
        for (old, new) in [
            ("duration = \"1s\"", "duration = \"2s\""),
            ("8mbit", "9mbit"),
            ("replications = 2", "replications = 2\nseed = 7"),
            ("name = \"a\"", "name = \"c\""),
        ] {
            assert_ne!(keys(&SCENARIO.replace(old, new)).runs[0], base[0], "{new}");
        }
        let other = |build: &Build, provenance: &Provenance| {
            Keys::of(&scenario, provenance, build, None).runs[0]
        };
        let clean = build(Some("c"), false);
        assert_eq!(other(&clean, &provenance(true)), base[0]);
        assert_ne!(other(&build(Some("d"), false), &provenance(true)), base[0]);
        let mut newer = clean.clone();
        newer.version = "1.0.1".to_owned();
        assert_ne!(other(&newer, &provenance(true)), base[0]);
        for change in [
            |p: &mut Provenance| p.backend = "other".to_owned(),
            |p: &mut Provenance| p.fingerprint.version = "2".to_owned(),
            |p: &mut Provenance| p.fingerprint.commit = Some("2".to_owned()),
            |p: &mut Provenance| p.fingerprint.kernel = Some("6.12".to_owned()),
        ] {
            let mut changed = provenance(true);
            change(&mut changed);
            assert_ne!(other(&clean, &changed), base[0]);
        }
    }

    #[test]
    fn runs_that_their_keys_do_not_determine_are_found_by_invocation() {
        let scenario = Scenario::from_toml(SCENARIO).unwrap();
        let of = |build: &Build, deterministic, binary| {
            Keys::of(&scenario, &provenance(deterministic), build, binary)
        };
        let clean = of(&build(Some("c"), false), true, Some("x"));
        assert!(clean.reusable);
        assert_eq!(clean.stored(1, "a"), clean.stored(1, "b"));
        let same = of(&build(Some("c"), false), true, Some("y"));
        assert_eq!(clean.invocation, same.invocation);
        for (build, deterministic) in [
            (build(Some("c"), true), true),
            (build(None, false), true),
            (build(Some("c"), false), false),
        ] {
            let keys = of(&build, deterministic, Some("x"));
            assert!(!keys.reusable);
            assert_ne!(keys.stored(1, "a"), keys.stored(1, "b"));
            assert_ne!(keys.stored(1, "a"), keys.runs[1]);
        }
        let modified = build(Some("c"), true);
        let (x, y) = (
            of(&modified, true, Some("x")),
            of(&modified, true, Some("y")),
        );
        assert_ne!(x.invocation, y.invocation, "another binary");
    }

    #[test]
    fn machines_share_the_runs_of_the_same_program_only() {
        let scenario = Scenario::from_toml(SCENARIO).unwrap();
        let of = |dirty, binary: &str| {
            let build = build(Some("c"), dirty);
            Keys::of(&scenario, &provenance(true), &build, None).shared(binary)
        };
        assert_eq!(of(false, "x"), keys(SCENARIO).runs);
        assert_eq!(of(false, "y"), of(false, "x"));
        assert_eq!(of(true, "x"), of(true, "x"));
        assert_ne!(of(true, "y"), of(true, "x"));
        assert_ne!(of(true, "x"), of(false, "x"));
    }
}
