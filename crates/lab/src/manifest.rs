//! The manifest: where a result comes from, as one JSON object without time or host name. The
//! same scenario gives the same bytes wherever the same build runs it.

use serde_json::{Map, Value, json};

use crate::frame::{
    DIGEST, FIRST_DIGESTED, FIRST_UNLIMITED, FORMAT, FORMAT_VERSION, check_digest, digest_of,
    format_of, recognised,
};
use sojourn_backend::{Backend, Fingerprint};
use sojourn_qdisc::{Origin, origin_of};
use sojourn_scenario::Scenario;
use sojourn_scenario::digest::sha256_hex;
use sojourn_scenario::plan::controller;

/// Grows when a column changes its meaning: numbers of different versions do not compare.
pub(crate) const METRIC_DEFINITIONS: u64 = 3;

/// The build that made a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Build {
    /// Version of Sojourn.
    pub version: String,
    /// Git commit; `None` of a build outside Git.
    pub commit: Option<String>,
    /// Whether files differed from the commit.
    pub dirty: bool,
    /// The target triple of the compiler.
    pub target: String,
}

impl Build {
    /// The one that is running.
    pub fn current() -> Self {
        let given = option_env!("SOJOURN_BUILD_COMMIT").filter(|commit| !commit.is_empty());
        let dirty = given.is_some_and(|commit| commit.ends_with(DIRTY));
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: given.map(|commit| commit.trim_end_matches(DIRTY).to_owned()),
            dirty,
            target: env!("SOJOURN_BUILD_TARGET").to_owned(),
        }
    }

    /// The commit, with `-dirty` if files differed; `unknown` outside Git.
    pub fn commit_text(&self) -> String {
        match &self.commit {
            Some(commit) if self.dirty => format!("{commit}{DIRTY}"),
            Some(commit) => commit.clone(),
            None => "unknown".to_owned(),
        }
    }
}

/// What the build script appends to the commit.
const DIRTY: &str = "-dirty";

/// The backend that made a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provenance {
    /// Name of the backend.
    pub backend: String,
    /// Whether the same scenario gives the same records again; of queues from outside Sojourn,
    /// which notices of the manifest name, the backend does not know.
    pub deterministic: bool,
    /// Versions of the engine and of the kernel.
    pub fingerprint: Fingerprint,
}

impl Provenance {
    /// What `backend` says about itself.
    pub fn of(backend: &dyn Backend) -> Self {
        let properties = backend.properties();
        Self {
            backend: backend.name().to_owned(),
            deterministic: properties.deterministic,
            fingerprint: properties.fingerprint,
        }
    }
}

/// A fact that a backend found about one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunFact {
    /// The arm.
    pub arm: String,
    /// The replication.
    pub replication: u32,
    /// Name of the fact.
    pub name: String,
    /// What was found, with its unit.
    pub value: String,
    /// Whether the run passes.
    pub passed: bool,
}

/// Where a result comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    /// What was run.
    pub scenario: Scenario,
    /// The build that made it.
    pub build: Build,
    /// What ran it; `None` of results older than this field.
    pub provenance: Option<Provenance>,
    /// What the backend found about single runs.
    pub validity: Vec<RunFact>,
    /// How many runs finished.
    pub finished: usize,
    /// How many runs the scenario asks for.
    pub total: usize,
    /// Version of the definitions behind the columns.
    pub metric_definitions: u64,
    /// What a reader must know before trusting the numbers.
    pub notices: Vec<String>,
    /// The queues that are not part of Sojourn.
    pub external_queues: Vec<ExternalQueue>,
}

/// A queue from outside Sojourn: a class of Python, or a plug-in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternalQueue {
    /// Its name in the scenario.
    pub name: String,
    /// The program text of a class; read, never executed.
    pub source: Option<String>,
    /// The version of a plug-in.
    pub version: Option<String>,
    /// The SHA-256 of the program text, or of the library.
    pub sha256: Option<String>,
}

impl ExternalQueue {
    /// The queue called `name` if this process has it.
    pub(crate) fn loaded(name: &str) -> Option<Self> {
        let class = controller(name).map(|class| Origin {
            text: Some(class.source().to_owned()),
            ..Origin::default()
        });
        let origin = class.or_else(|| origin_of(name))?;
        let of_text = origin.text.as_ref().map(|text| sha256_hex(text.as_bytes()));
        Some(Self {
            name: name.to_owned(),
            version: origin.version,
            sha256: origin.sha256.or(of_text),
            source: origin.text,
        })
    }
}

impl Manifest {
    pub(crate) fn of(
        scenario: Scenario,
        provenance: Provenance,
        finished: usize,
        total: usize,
    ) -> Self {
        let names = scenario.external_queues();
        let mut notices = scenario.reconstructions();
        let controllers = scenario.controllers();
        notices.extend(names.iter().map(|name| {
            let is_controller = controllers.contains(&name.as_str());
            outside(if is_controller { "controller" } else { "queue" }, name)
        }));
        let queues = names.iter().filter_map(|name| ExternalQueue::loaded(name));
        Self {
            external_queues: queues.collect(),
            scenario,
            build: Build::current(),
            provenance: Some(provenance),
            validity: Vec::new(),
            finished,
            total,
            metric_definitions: METRIC_DEFINITIONS,
            notices,
        }
    }

    /// As JSON, for people and for [`Manifest::read`].
    pub fn to_json(&self) -> String {
        pretty(&Value::Object(self.fields()))
    }

    /// As JSON with what the files beside it hold, and the digest of the manifest.
    pub(crate) fn to_json_with(&self, tables: Map<String, Value>) -> (String, String) {
        let mut fields = self.fields();
        fields.insert("tables".to_owned(), Value::Object(tables));
        let digest = digest_of(&fields);
        fields.insert(DIGEST.to_owned(), digest.as_str().into());
        (pretty(&Value::Object(fields)), digest)
    }

    fn fields(&self) -> Map<String, Value> {
        let scenario: Value = serde_json::from_str(self.scenario.to_json())
            .expect("the canonical text of a scenario is JSON");
        let arms: Vec<_> = self.scenario.arms().collect();
        let fields = json!({
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "sojourn": {
                "version": self.build.version,
                "commit": self.build.commit,
                "dirty": self.build.dirty,
                "target": self.build.target,
            },
            "name": self.scenario.name(),
            "seed": self.scenario.seed(),
            "replications": self.scenario.replications(),
            "arms": arms,
            "scenario": scenario,
            "scenario_sha256": self.scenario.hash(),
            "complete": self.finished == self.total,
            "finished": self.finished,
            "total": self.total,
            "metric_definitions": self.metric_definitions,
            "notices": self.notices,
        });
        let Value::Object(mut fields) = fields else {
            return Map::new();
        };
        if let Some(provenance) = &self.provenance {
            fields.insert("backend".to_owned(), provenance.to_value());
        }
        if !self.validity.is_empty() {
            let facts = self.validity.iter().map(RunFact::to_value).collect();
            fields.insert("validity".to_owned(), Value::Array(facts));
        }
        if !self.external_queues.is_empty() {
            let queues = self.external_queues.iter().map(ExternalQueue::to_value);
            fields.insert("external_queues".to_owned(), queues.collect());
        }
        fields
    }

    /// Reads what [`Manifest::to_json_with`] wrote, in this version or an earlier one.
    ///
    /// # Errors
    /// What is wrong with it, as the end of a sentence that begins with its name.
    pub(crate) fn read(text: &[u8]) -> Result<Saved, String> {
        let mut fields = recognised(text)?;
        let format = format_of(&fields)?;
        let digest = if format < FIRST_DIGESTED {
            sha256_hex(text)
        } else {
            check_digest(&fields)?
        };
        let invalid = |e| format!("contains an invalid scenario: {e}");
        // Taken, so that a large tree is dropped before its text is parsed.
        let text = fields["scenario"].take().to_string();
        // The keys that were added since are not part of what was hashed.
        let hash = Scenario::hash_as_written(&text).map_err(invalid)?;
        if fields["scenario_sha256"].as_str() != Some(&hash) {
            return Err(
                "was altered: the SHA-256 of its scenario does not match scenario_sha256"
                    .to_owned(),
            );
        }
        let scenario = if format < FIRST_UNLIMITED {
            Scenario::from_saved_before_unlimited(&text)
        } else {
            Scenario::from_saved(&text)
        }
        .map_err(invalid)?;
        let manifest = || {
            let build = &fields["sojourn"];
            let count = |key: &str| usize::try_from(fields[key].as_u64()?).ok();
            let notices = fields["notices"].as_array()?.iter().map(text_of);
            Some(Self {
                build: Build {
                    version: text_of(&build["version"])?,
                    commit: text_of(&build["commit"]),
                    dirty: build["dirty"].as_bool()?,
                    target: text_of(&build["target"])?,
                },
                provenance: match &fields["backend"] {
                    Value::Null => None,
                    given => Some(Provenance::read(given)?),
                },
                validity: list_of(&fields["validity"], RunFact::read)?,
                external_queues: list_of(&fields["external_queues"], ExternalQueue::read)?,
                finished: count("finished")?,
                total: count("total")?,
                metric_definitions: fields["metric_definitions"].as_u64()?,
                notices: notices.collect::<Option<_>>()?,
                scenario,
            })
        };
        let mut manifest =
            manifest().ok_or("lacks a required key or has a value of the wrong type")?;
        manifest.check_counts(&fields["complete"])?;
        manifest.check_definitions()?;
        let tables = fields["tables"].as_object().cloned().unwrap_or_default();
        Ok(Saved {
            manifest,
            digest,
            format,
            tables,
        })
    }

    /// Checks the numbers of runs against the scenario.
    fn check_counts(&self, complete: &Value) -> Result<(), String> {
        let replications = usize::try_from(self.scenario.replications()).unwrap_or(usize::MAX);
        let total = self.scenario.arms().len().saturating_mul(replications);
        let is_complete = self.finished == total;
        if self.total != total || self.finished > total || complete.as_bool() != Some(is_complete) {
            return Err(format!(
                "contradicts itself: complete, finished and total do not match the {total} runs of \
                 its scenario"
            ));
        }
        Ok(())
    }

    /// Refuses newer definitions of the metrics, and adds a notice about older ones.
    fn check_definitions(&mut self) -> Result<(), String> {
        let found = self.metric_definitions;
        if found == 0 || found > METRIC_DEFINITIONS {
            return Err(format!(
                "has metric definitions {found}; this version reads 1 to {METRIC_DEFINITIONS}"
            ));
        }
        let notice = format!(
            "metric definitions {found}: do not compare these numbers with those of results with \
             definitions {METRIC_DEFINITIONS}, which this version writes"
        );
        if found < METRIC_DEFINITIONS && !self.notices.contains(&notice) {
            self.notices.push(notice);
        }
        Ok(())
    }
}

/// The manifest of a saved result, and what it says about the files beside it.
#[derive(Debug)]
pub(crate) struct Saved {
    pub(crate) manifest: Manifest,
    /// The digest of the manifest, or of the file for formats without a digest.
    pub(crate) digest: String,
    /// Version of the format.
    pub(crate) format: u64,
    /// The number of rows and the SHA-256 of each table, by name.
    pub(crate) tables: Map<String, Value>,
}

impl Provenance {
    fn to_value(&self) -> Value {
        json!({
            "name": self.backend,
            "deterministic": self.deterministic,
            "version": self.fingerprint.version,
            "commit": self.fingerprint.commit,
            "kernel": self.fingerprint.kernel,
        })
    }

    fn read(value: &Value) -> Option<Self> {
        Some(Self {
            backend: text_of(&value["name"])?,
            deterministic: value["deterministic"].as_bool()?,
            fingerprint: Fingerprint {
                version: text_of(&value["version"])?,
                commit: text_of(&value["commit"]),
                kernel: text_of(&value["kernel"]),
            },
        })
    }
}

impl ExternalQueue {
    fn to_value(&self) -> Value {
        let fields = [
            ("version", &self.version),
            ("sha256", &self.sha256),
            ("source", &self.source),
        ];
        let known = fields.into_iter().filter_map(|(key, text)| {
            let text = text.as_deref()?;
            Some((key.to_owned(), Value::from(text)))
        });
        let name = ("name".to_owned(), Value::from(self.name.as_str()));
        std::iter::once(name).chain(known).collect()
    }

    fn read(value: &Value) -> Option<Self> {
        Some(Self {
            name: text_of(&value["name"])?,
            source: text_of(&value["source"]),
            version: text_of(&value["version"]),
            sha256: text_of(&value["sha256"]),
        })
    }
}

impl RunFact {
    pub(crate) fn to_value(&self) -> Value {
        json!({
            "arm": self.arm,
            "replication": self.replication,
            "name": self.name,
            "value": self.value,
            "passed": self.passed,
        })
    }

    pub(crate) fn read(value: &Value) -> Option<Self> {
        Some(Self {
            arm: text_of(&value["arm"])?,
            replication: u32::try_from(value["replication"].as_u64()?).ok()?,
            name: text_of(&value["name"])?,
            value: text_of(&value["value"])?,
            passed: value["passed"].as_bool()?,
        })
    }
}

/// What a reader must know of a queue from outside Sojourn.
fn outside(kind: &str, name: &str) -> String {
    format!(
        "{name}: {kind} from outside Sojourn; its code determines whether runs are reproducible"
    )
}

/// The items of a list, which may be absent; `None` if one is not valid.
fn list_of<T>(value: &Value, read: impl Fn(&Value) -> Option<T>) -> Option<Vec<T>> {
    match value {
        Value::Null => Some(Vec::new()),
        Value::Array(items) => items.iter().map(read).collect(),
        _ => None,
    }
}

fn text_of(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn pretty(value: &Value) -> String {
    let mut text = format!("{value:#}");
    text.push('\n');
    text
}
