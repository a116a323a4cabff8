//! Checks one part of a scenario, such as a link, on its own.
//!
//! An API that builds scenarios from objects refuses a mistake where it is made. The rules are
//! those of the reader: the part is put into the smallest scenario that can hold it.

use std::path::Path;

use sojourn_net::Duration;

use crate::decode::Arm;
use crate::error::ScenarioError;
use crate::page::is_built_in;
use crate::value::{Node, Table, Value, insert, table, time};
use crate::{arms, decode, link};

/// Which part of a scenario a text describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// A table of `links`.
    Link,
    /// An entry of `traffic`.
    Traffic,
    /// A table of `pages`.
    Page,
    /// An entry of `arms`.
    Arm,
}

impl Part {
    /// Every part, by the name that [`Part::named`] takes.
    const NAMES: [(&str, Self); 4] = [
        ("link", Self::Link),
        ("traffic", Self::Traffic),
        ("page", Self::Page),
        ("arm", Self::Arm),
    ];

    /// The part called `name`.
    pub fn named(name: &str) -> Option<Self> {
        let found = Self::NAMES.iter().find(|(known, _)| *known == name);
        found.map(|&(_, part)| part)
    }

    /// The path of the part in the scenario that [`check_part`] builds.
    const fn path(self) -> &'static str {
        match self {
            Self::Link => "links.up",
            Self::Traffic => "traffic[0]",
            Self::Page => "pages.page",
            Self::Arm => "arms[0]",
        }
    }
}

/// Checks one link, traffic block, page or arm, given as JSON.
///
/// What depends on the rest of the scenario passes: the links of a path, the page of a web user,
/// the end of the run and what an arm sets are assumed to fit.
///
/// # Errors
/// The first mistake. Its path is relative to the part.
pub fn check_part(part: Part, json: &str) -> Result<(), ScenarioError> {
    let node = Node::from_json(json)?;
    let mut scenario = table([
        ("links", Value::Table(table([("up", plain_link())])).into()),
        ("traffic", list(vec![ping()])),
        ("duration", "1s".into()),
        ("sample", "1s".into()),
    ]);
    match part {
        Part::Link => put(&mut scenario, "links", table([("up", node)])),
        Part::Page => put(&mut scenario, "pages", table([("page", node)])),
        Part::Traffic => surround(&mut scenario, node),
        Part::Arm => insert(&mut scenario, "arms", Some(list(vec![node]))),
    }
    let mut tree = Value::Table(scenario).into();
    link::embed(&mut tree, Path::new("."))
        .and_then(|()| decode::spec(&tree))
        .and_then(|spec| spec.arms.iter().try_for_each(check_paths))
        .map_err(|error| relative(error, part.path()))
}

/// Checks the paths of what an arm sets, as far as they can be without the scenario.
fn check_paths(arm: &Arm) -> Result<(), ScenarioError> {
    arm.set.iter().try_for_each(|(key, _)| {
        arms::check(key, &arm.set).map_err(|error| ScenarioError {
            path: format!("arms[0].set.{key}"),
            ..error
        })
    })
}

/// Adds a traffic block and whatever it refers to.
fn surround(scenario: &mut Table, block: Node) {
    if let Value::Table(fields) = &block.value {
        let text = |key| match fields.get(key).map(|node| &node.value) {
            Some(Value::Text(text)) => Some(text.as_str()),
            _ => None,
        };
        let mut links = table([("up", plain_link()), ("down", plain_link())]);
        for name in ["path", "return"]
            .into_iter()
            .flat_map(|key| hops(fields.get(key)))
        {
            links.insert(name.to_owned(), plain_link());
        }
        put(scenario, "links", links);
        if let Some(name) = text("page").filter(|name| !is_built_in(name)) {
            put(scenario, "pages", [(name.to_owned(), page())].into());
        }
        let start = text("start").and_then(|start| start.parse::<Duration>().ok());
        if let Some(start) = start {
            let end = time(start + Duration::from_nanos(1));
            insert(scenario, "sample", Some(end.clone()));
            insert(scenario, "duration", Some(end));
        }
    }
    insert(scenario, "traffic", Some(list(vec![block])));
}

/// The names in a list of links.
fn hops(path: Option<&Node>) -> impl Iterator<Item = &str> {
    let nodes = match path.map(|node| &node.value) {
        Some(Value::List(nodes)) => nodes.as_slice(),
        _ => &[],
    };
    nodes.iter().filter_map(|node| match &node.value {
        Value::Text(name) => Some(name.as_str()),
        _ => None,
    })
}

fn plain_link() -> Node {
    let fields = table([("rate", "1gbit".into()), ("qdisc", "pfifo".into())]);
    Value::Table(fields).into()
}

fn ping() -> Node {
    let path = list(vec!["up".into()]);
    Value::Table(table([("type", "ping".into()), ("path", path)])).into()
}

fn page() -> Node {
    let object = table([("name", "object".into()), ("bytes", "1kb".into())]);
    let objects = list(vec![Value::Table(object).into()]);
    Value::Table(table([("objects", objects)])).into()
}

fn list(nodes: Vec<Node>) -> Node {
    Value::List(nodes).into()
}

fn put(scenario: &mut Table, key: &str, part: Table) {
    insert(scenario, key, Some(Value::Table(part).into()));
}

/// The error as seen from the part at `path`.
fn relative(mut error: ScenarioError, path: &str) -> ScenarioError {
    if let Some(rest) = error.path.strip_prefix(path) {
        error.path = rest.strip_prefix('.').unwrap_or(rest).to_owned();
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(part: Part, json: &str) -> String {
        check_part(part, json).expect_err(json).to_string()
    }

    #[test]
    fn a_mistake_is_named_by_its_key_alone() {
        let bad = r#"{"type": "tcp", "direction": "up", "cc": "cubci"}"#;
        assert!(refused(Part::Traffic, bad).starts_with("cc: "));
        let bad = r#"{"rate": "10mbit", "qdisc": "pfifo", "loss": {"model": "bernoulli"}}"#;
        assert!(refused(Part::Link, bad).starts_with("loss."));
        let bad = r#"{"objects": [{"name": "a", "bytes": "0b"}]}"#;
        assert!(refused(Part::Page, bad).starts_with("objects[0].bytes: "));
    }

    #[test]
    fn what_depends_on_the_scenario_passes() {
        for block in [
            r#"{"type": "tcp", "path": ["a", "b"], "return": ["c"]}"#,
            r#"{"type": "web", "direction": "down", "page": "mine"}"#,
            r#"{"type": "web", "direction": "down", "page": "large"}"#,
            r#"{"type": "ping", "direction": "up", "start": "3600s", "stop": "7200s"}"#,
            r#"{"type": "sessions", "direction": "down", "every": "1us", "bytes": "1kb"}"#,
        ] {
            assert_eq!(check_part(Part::Traffic, block), Ok(()), "{block}");
        }
    }

    #[test]
    fn parts_have_the_names_that_select_them() {
        assert_eq!(Part::named("link"), Some(Part::Link));
        assert_eq!(Part::named("arms"), None);
    }

    #[test]
    fn the_paths_of_an_arm_are_checked() {
        let arm = |set: &str| format!(r#"{{"name": "a", "set": {{{set}}}}}"#);
        assert_eq!(check_part(Part::Arm, &arm(r#""links.x.rate": 3"#)), Ok(()));
        let bad = refused(Part::Arm, &arm(r#""links..up": 3"#));
        assert!(
            bad.starts_with("set.links..up: invalid path; expected"),
            "{bad}"
        );
        let bad = refused(Part::Arm, &arm(r#""seed": 3"#));
        assert!(
            bad.starts_with("set.seed: must be the same for all arms"),
            "{bad}"
        );
        assert!(refused(Part::Arm, r#"{"name": ""}"#).starts_with("name: "));
    }
}
