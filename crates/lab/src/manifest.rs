//! Where a result comes from: one JSON object, without clock or host, so that the same scenario
//! leaves the same bytes wherever the same build runs it.

use serde_json::{Map, Value, json};

use sojourn_scenario::Scenario;

/// What marks a folder as a result.
const FORMAT: &str = "sojourn-result";

/// Grows when a reader of this version could not read what is written.
const FORMAT_VERSION: u64 = 4;

/// Grows when a column changes its meaning: numbers of different versions do not compare.
const METRIC_DEFINITIONS: u64 = 2;

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

/// Where a result comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    /// What was run.
    pub scenario: Scenario,
    /// What ran it.
    pub build: Build,
    /// How many runs finished.
    pub finished: usize,
    /// How many runs the scenario asks for.
    pub total: usize,
    /// Version of the definitions behind the columns.
    pub metric_definitions: u64,
    /// What a reader must know before trusting the numbers.
    pub notices: Vec<String>,
}

impl Manifest {
    pub(crate) fn of(scenario: Scenario, finished: usize, total: usize) -> Self {
        let notices = scenario.reconstructions();
        Self {
            scenario,
            build: Build::current(),
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

    /// As JSON with what the files beside it hold.
    pub(crate) fn to_json_with(&self, tables: Map<String, Value>) -> String {
        let mut fields = self.fields();
        fields.insert("tables".to_owned(), Value::Object(tables));
        pretty(&Value::Object(fields))
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
        match fields {
            Value::Object(fields) => fields,
            _ => Map::new(),
        }
    }

    /// Reads what [`Manifest::to_json`] wrote, and the object under `tables`.
    ///
    /// # Errors
    /// What is wrong with it, as the end of a sentence that begins with its name.
    pub(crate) fn read(text: &str) -> Result<(Self, Map<String, Value>), String> {
        let fields = recognised(text).ok_or("is not the manifest of a Sojourn result")?;
        let version = fields["format_version"].as_u64();
        if version != Some(FORMAT_VERSION) {
            let version = version.map_or_else(|| "unknown".to_owned(), |v| v.to_string());
            let made_by = text_of(&fields["sojourn"]["version"]).unwrap_or_default();
            return Err(format!(
                "has format {version} (Sojourn {made_by}); this version reads {FORMAT_VERSION}"
            ));
        }
        let scenario = Scenario::from_json(&fields["scenario"].to_string())
            .map_err(|e| format!("holds a scenario that is not valid: {e}"))?;
        if fields["scenario_sha256"].as_str() != Some(scenario.hash()) {
            return Err("was altered: its scenario does not have the SHA-256 it says".to_owned());
        }
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
                finished: count("finished")?,
                total: count("total")?,
                metric_definitions: fields["metric_definitions"].as_u64()?,
                notices: notices.collect::<Option<_>>()?,
                scenario,
            })
        };
        let manifest = manifest().ok_or("lacks a key or has one of another type")?;
        let tables = fields["tables"].as_object().cloned().unwrap_or_default();
        Ok((manifest, tables))
    }
}

/// Whether `text` is the manifest of a result, of whatever version.
pub(crate) fn is_manifest(text: &str) -> bool {
    recognised(text).is_some()
}

fn recognised(text: &str) -> Option<Value> {
    let value: Value = serde_json::from_str(text).ok()?;
    (value["format"].as_str() == Some(FORMAT)).then_some(value)
}

fn text_of(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn pretty(value: &Value) -> String {
    let mut text = format!("{value:#}");
    text.push('\n');
    text
}
