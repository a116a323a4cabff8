//! The scenario type: decoding, encoding and access to its arms.
//!
//! One schema serves TOML files, JSON and Python. A scenario names links, traffic and, where
//! variants are compared, *arms*: sets of keys that differ. Replication `k` of every arm runs
//! under the same seed, so that the arms see the same random draws.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::declare::Keys as _;
use crate::plan::{Config, Plan};
use sojourn_net::Duration;
use sojourn_qdisc::is_external;

use crate::concerns::{self, Concern};
use crate::decode::{Arm, Spec};
use crate::digest::sha256_hex;
use crate::error::ScenarioError;
use crate::key::names;
use crate::path::{self, Covered};
use crate::traffic::TrafficProperties;
use crate::value::{Node, Value};
use crate::{arms, compile, decode, encode, link, load, page, text, traffic};

/// The keys of each table of a scenario, by what it describes: `scenario`, `link`, `page object`,
/// and each type of traffic.
pub fn scenario_keys() -> BTreeMap<&'static str, Vec<&'static str>> {
    let tables = [
        ("scenario", decode::KEYS.to_vec()),
        ("link", link::LinkKeys::KEYS.to_vec()),
        ("page object", page::ObjectKeys::KEYS.to_vec()),
    ];
    let tables = tables.into_iter().chain(traffic::keys());
    tables.map(|(table, keys)| (table, names(&keys))).collect()
}

/// The properties of each type of traffic.
pub fn traffic_types() -> impl Iterator<Item = (&'static str, TrafficProperties)> {
    traffic::properties()
}

/// The properties of a type of traffic.
pub fn traffic_properties(name: &str) -> TrafficProperties {
    let found = traffic::properties().find(|&(known, _)| known == name);
    found.map_or(TrafficProperties::UNKNOWN, |(_, properties)| properties)
}

/// The only arm of a scenario that names none.
const SOLE_ARM: &str = "default";

/// A valid scenario.
#[derive(Clone, Debug)]
pub struct Scenario {
    base: Spec,
    /// The name of each arm and what it comes to.
    variants: Vec<(String, Spec)>,
    tree: Node,
    json: String,
    hash: String,
}

impl PartialEq for Scenario {
    fn eq(&self, other: &Self) -> bool {
        self.json == other.json
    }
}

impl Eq for Scenario {}

impl Scenario {
    /// Reads TOML.
    ///
    /// # Errors
    /// The first thing that is wrong, and where.
    pub fn from_toml(text: &str) -> Result<Self, ScenarioError> {
        Self::from_toml_in(text, Path::new("."))
    }

    /// Reads TOML in which names of files, such as those of traces, are relative to `folder`.
    ///
    /// # Errors
    /// The first thing that is wrong, and where.
    pub fn from_toml_in(text: &str, folder: &Path) -> Result<Self, ScenarioError> {
        Self::from_tree(Node::from_toml(text)?, folder)
    }

    /// Reads JSON of the same shape.
    ///
    /// # Errors
    /// The first thing that is wrong, and where.
    pub fn from_json(text: &str) -> Result<Self, ScenarioError> {
        Self::from_tree(Node::from_json(text)?, Path::new("."))
    }

    /// Reads the JSON of a saved result; no file is read.
    ///
    /// # Errors
    /// The first thing that is wrong, and where.
    pub fn from_saved(text: &str) -> Result<Self, ScenarioError> {
        Self::of(&Node::from_json(text)?)
    }

    /// As [`Scenario::from_saved`], for versions in which links that are not defined are unlimited.
    ///
    /// # Errors
    /// The first thing that is wrong, and where.
    pub fn from_saved_before_unlimited(text: &str) -> Result<Self, ScenarioError> {
        let mut tree = Node::from_json(text)?;
        decode::name_unlimited(&mut tree);
        Self::of(&tree)
    }

    fn from_tree(mut tree: Node, folder: &Path) -> Result<Self, ScenarioError> {
        link::embed(&mut tree, folder)?;
        Self::of(&tree)
    }

    fn of(tree: &Node) -> Result<Self, ScenarioError> {
        let mut base = decode::spec(tree)?;
        let variants = if base.arms.is_empty() {
            vec![(SOLE_ARM.to_owned(), base.clone())]
        } else {
            // Arms begin from the canonical tree, so that one read back is the same.
            let start = Node::from(Value::Table(encode::without_arms(&base)));
            check_arms(&base, &start)?;
            let mut variants = Vec::new();
            for (n, arm) in base.arms.iter_mut().enumerate() {
                let spec =
                    variant(&start, &mut arm.set).map_err(|e| in_arm(e, n, &arm.name, &arm.set))?;
                variants.push((arm.name.clone(), spec));
            }
            variants
        };
        for (arm, spec) in &variants {
            let config = compile::plan(spec, 0).config;
            config
                .check()
                .and_then(|()| load::check(&config))
                .map_err(|e| {
                    let path = compile::place_of(spec, &e.place);
                    let line = tree.line_at(&path);
                    let rule = if base.arms.is_empty() {
                        e.rule
                    } else {
                        format!("{} (arm \"{arm}\")", e.rule)
                    };
                    ScenarioError { path, rule, line }
                })?;
        }
        let tree = encode::spec(&base);
        let json = text::json(&tree);
        Ok(Self {
            base,
            variants,
            hash: sha256_hex(json.as_bytes()),
            tree,
            json,
        })
    }

    /// The scenario with some values changed: pairs of a path and of its new value as JSON.
    ///
    /// # Errors
    /// The first thing that is wrong, and where; also if every arm sets one of the values itself.
    pub fn changed(&self, changes: &[(String, String)]) -> Result<Self, ScenarioError> {
        let mut tree = self.tree.clone();
        for (path, value) in changes {
            path::set(&mut tree, path, &Node::from_json(value)?)?;
        }
        for (path, _) in changes {
            let all = |arm: &Arm| self.covered(path, arm) == Covered::All;
            if !self.base.arms.is_empty() && self.base.arms.iter().all(all) {
                let rule = "no effect, since every arm sets this value; change it in the arms";
                return Err(ScenarioError::new(path, rule));
            }
        }
        Self::from_tree(tree, Path::new("."))
    }

    /// The names of the arms that set the value at `path`, or a part of it, themselves:
    /// [`Scenario::changed`] does not reach these.
    pub fn arms_that_set(&self, path: &str) -> Vec<&str> {
        let arms = self.base.arms.iter();
        arms.filter(|arm| self.covered(path, arm) != Covered::Nothing)
            .map(|arm| arm.name.as_str())
            .collect()
    }

    fn covered(&self, path: &str, arm: &Arm) -> Covered {
        let keys = arm.set.iter().map(|(key, _)| key.as_str());
        path::covered(&self.tree, path, keys)
    }

    /// All keys as TOML, for people; reading it gives an equal scenario.
    pub fn to_toml(&self) -> String {
        match &self.tree.value {
            Value::Table(table) => text::toml(table),
            _ => String::new(),
        }
    }

    /// Canonical JSON: all keys, sorted, in canonical units.
    pub fn to_json(&self) -> &str {
        &self.json
    }

    /// SHA-256 of the canonical JSON, in hexadecimal.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// SHA-256 of the JSON of a scenario as it stands, in canonical form but without the keys that
    /// later versions added.
    ///
    /// # Errors
    /// If `text` is not JSON.
    pub fn hash_as_written(text: &str) -> Result<String, ScenarioError> {
        let tree = Node::from_json(text)?;
        Ok(sha256_hex(text::json(&tree).as_bytes()))
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.base.run.name.0
    }

    /// The names of the arms; one, `default`, if the scenario has none.
    pub fn arms(&self) -> impl ExactSizeIterator<Item = &str> {
        self.variants.iter().map(|(name, _)| name.as_str())
    }

    /// Canonical JSON of arm number `arm` alone: everything that determines its runs, and nothing
    /// else. The name of the scenario and the number of replications are left out.
    ///
    /// # Panics
    /// If there is no such arm.
    pub fn arm_json(&self, arm: usize) -> String {
        let mut table = encode::without_arms(&self.variants[arm].1);
        table.retain(|key, _| !matches!(key.as_str(), "name" | "replications"));
        text::json(&Value::Table(table).into())
    }

    /// What nobody published of the queues in it and we had to supply, a line each.
    pub fn reconstructions(&self) -> Vec<String> {
        let links = self.variants.iter().flat_map(|(_, spec)| &spec.links.real);
        let queues = links.flat_map(super::link::Link::queues);
        let queues = queues.flat_map(|queue| queue.provenance());
        let all: BTreeSet<_> = queues
            .filter_map(|queue| Some(format!("{}: {}", queue.name, queue.reconstruction?)))
            .collect();
        all.into_iter().collect()
    }

    /// Limitations of the results that follow from the scenario alone.
    pub fn concerns(&self) -> Vec<Concern> {
        let arms = (0..).zip(self.arms());
        let plans = arms.map(|(n, name)| (name, self.config(n, 0)));
        concerns::of(&plans.collect::<Vec<_>>())
    }

    /// Names of the queues and controllers from outside Sojourn, sorted.
    pub fn external_queues(&self) -> Vec<String> {
        let links = self.variants.iter().flat_map(|(_, spec)| &spec.links.real);
        let queues = links.flat_map(super::link::Link::queues);
        let texts: Vec<_> = queues.map(|queue| queue.to_string()).collect();
        // A leaf of a classful queue may be one, in parentheses even.
        let words = texts
            .iter()
            .flat_map(|text| text.split(|c: char| c.is_whitespace() || "()".contains(c)));
        let names: BTreeSet<_> = words.chain(self.controllers()).collect();
        names
            .into_iter()
            .filter(|name| is_external(name))
            .map(str::to_owned)
            .collect()
    }

    /// Names of the controllers, sorted.
    pub fn controllers(&self) -> BTreeSet<&str> {
        let runs = self.variants.iter().map(|(_, spec)| &spec.run);
        runs.filter_map(|run| run.controller.0.as_deref()).collect()
    }

    /// Probable mistakes, one line each: links that no traffic crosses in any arm, and traffic with a base RTT of 0.
    pub fn notes(&self) -> Vec<String> {
        let mut idle: BTreeSet<&str> = BTreeSet::new();
        for (_, spec) in &self.variants {
            idle.extend(spec.links.real.iter().map(|link| link.name.as_str()));
        }
        let mut immediate: BTreeSet<&str> = BTreeSet::new();
        for (_, spec) in &self.variants {
            for block in &spec.traffic {
                let crossed: Vec<_> = block.links().collect();
                let mut links = spec.links.real.iter();
                let delayed =
                    links.any(|l| crossed.contains(&l.name.as_str()) && !l.is_immediate());
                if !delayed
                    && (0..block.keys.count)
                        .any(|n| block.flow_rtt(n, spec.run.rtt) == Duration::ZERO)
                {
                    immediate.insert(block.name());
                }
                for name in crossed {
                    idle.remove(name);
                }
            }
        }
        let idle = idle.into_iter();
        let mut notes: Vec<_> = idle
            .map(|name| format!("links.{name}: no traffic crosses this link"))
            .collect();
        if !immediate.is_empty() {
            let names: Vec<_> = immediate.into_iter().collect();
            notes.push(format!("rtt: the base RTT is 0 s for {}", names.join(", ")));
        }
        notes
    }

    /// How many runs each arm gets.
    pub fn replications(&self) -> u32 {
        self.base.run.replications
    }

    /// What the seeds of the replications derive from.
    pub fn seed(&self) -> u64 {
        self.base.run.seed.unsigned_abs()
    }

    /// How long a run lasts, unless an arm says otherwise.
    pub fn duration(&self) -> Duration {
        self.base.run.duration
    }

    /// From when on totals count, unless an arm says otherwise.
    pub fn warmup(&self) -> Duration {
        self.base.run.warmup
    }

    /// The configuration of the run that is replication `replication` of arm number `arm`.
    ///
    /// # Panics
    /// If there is no such arm.
    pub fn config(&self, arm: usize, replication: u32) -> Config {
        self.plan(arm, replication).config
    }

    /// Replication `replication` of arm number `arm`, with the labels of its flows.
    ///
    /// # Panics
    /// If there is no such arm.
    pub fn plan(&self, arm: usize, replication: u32) -> Plan {
        compile::plan(&self.variants[arm].1, replication)
    }

    /// Where the scenario has what the plan of arm number `arm` has at `place`: `links.up.medium` for
    /// `links[0].medium`, followed by the name of the arm if there are several.
    ///
    /// # Panics
    /// If there is no such arm.
    pub fn place_of(&self, arm: usize, place: &str) -> String {
        let (name, spec) = &self.variants[arm];
        let place = compile::place_of(spec, place);
        if self.base.arms.is_empty() {
            place
        } else {
            format!("{place} (arm \"{name}\")")
        }
    }
}

/// Rejects too many arms: each has a copy of the scenario.
fn check_arms(base: &Spec, start: &Node) -> Result<(), ScenarioError> {
    // In times of a trace, of 4 B; a value takes 100 B.
    const MOST: usize = 200_000_000;
    const VALUE: usize = 25;
    let traces = base.links.real.iter().map(link::Link::opportunities);
    let size = VALUE * start.values() + traces.sum::<usize>();
    let most = MOST / size;
    if base.arms.len() <= most {
        return Ok(());
    }
    let given = base.arms.len();
    let rule =
        format!("{given} arms are too many for a scenario of this size; expected at most {most}");
    Err(ScenarioError::new("arms", rule))
}

/// The variant of `start` with `set` applied; `set` becomes canonical.
fn variant(start: &Node, set: &mut Vec<(String, Node)>) -> Result<Spec, ScenarioError> {
    let mut tree = start.clone();
    arms::apply(&mut tree, set)?;
    let spec = decode::spec(&tree)?;
    *set = arms::canonical(set, &Node::from(Value::Table(encode::without_arms(&spec))));
    Ok(spec)
}

/// The error of arm number `n`, with its place in the scenario.
fn in_arm(error: ScenarioError, n: usize, arm: &str, set: &[(String, Node)]) -> ScenarioError {
    let ScenarioError { path, rule, line } = error;
    let own = set.iter().any(|(key, _)| *key == path);
    let (path, rule) = if own {
        (format!("arms[{n}].set.{path}"), rule)
    } else {
        (format!("arms[{n}].set"), format!("{path}: {rule}"))
    };
    let rule = format!("{rule} (arm \"{arm}\")");
    ScenarioError { path, rule, line }
}
