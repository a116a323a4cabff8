//! Arms: variants of a scenario with some keys changed.

use std::collections::BTreeMap;

use sojourn_qdisc::{ParameterError, QdiscSpec};

use crate::error::{ScenarioError, instead_of};
use crate::place::Place;
use crate::queue::setting;
use crate::value::{Node, Value};

/// Keys that all arms share, so that they can be compared.
pub(crate) const SHARED: [&str; 4] = ["name", "replications", "seed", "arms"];

/// One step from a value to a value within it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    /// A key of a table, or the name of an item of a list.
    Key(String),
    /// An item of a list, by its place.
    Item(usize),
    /// Every item of a list: `[*]`.
    Every,
}

/// Sets `key`, such as `links.up.qdisc` or `traffic[0].cc`, to `value`.
pub(crate) fn set(tree: &mut Node, key: &str, value: &Node) -> Result<(), ScenarioError> {
    if SHARED.contains(&key) {
        let rule = format!("arms cannot set {key}: it must be the same for all arms");
        return Err(ScenarioError::new(key, rule));
    }
    let steps = steps(key).ok_or_else(|| {
        ScenarioError::new(
            key,
            "invalid key; expected a path such as links.up.qdisc or traffic[0].cc",
        )
    })?;
    put(tree, &steps, "", value).map_err(|rule| ScenarioError::new(key, rule))
}

/// The value of `key`, where it has one.
pub(crate) fn find<'a>(tree: &'a Node, key: &str) -> Option<&'a Node> {
    steps(key)?
        .iter()
        .try_fold(tree, |node, step| match (&node.value, step) {
            (Value::Table(table), Step::Key(key)) => table.get(key),
            (Value::List(items), Step::Item(n)) => items.get(*n),
            (Value::List(items), Step::Every) => items.first(),
            (Value::List(items), Step::Key(name)) => items.get(named(items, name)?),
            _ => None,
        })
}

/// `traffic[0].cc` as its steps; a number may also stand between dots.
fn steps(key: &str) -> Option<Vec<Step>> {
    let mut steps = Vec::new();
    for segment in key.split('.') {
        let (name, indices) = match segment.find('[') {
            Some(at) => segment.split_at(at),
            None => (segment, ""),
        };
        match (name.is_empty(), name.parse()) {
            (true, _) => return None,
            (false, Ok(n)) if !steps.is_empty() => steps.push(Step::Item(n)),
            (false, _) if name == "*" => steps.push(Step::Every),
            (false, _) => steps.push(Step::Key(name.to_owned())),
        }
        let mut rest = indices;
        while !rest.is_empty() {
            let (index, after) = rest.strip_prefix('[')?.split_once(']')?;
            steps.push(match index {
                "*" => Step::Every,
                index => Step::Item(index.parse().ok()?),
            });
            rest = after;
        }
    }
    Some(steps)
}

fn put(node: &mut Node, steps: &[Step], above: &str, value: &Node) -> Result<(), String> {
    let Some((step, rest)) = steps.split_first() else {
        *node = value.clone();
        return Ok(());
    };
    match (&mut node.value, step) {
        (Value::Table(table), Step::Key(key)) => {
            if rest.is_empty() {
                table.insert(key.clone(), value.clone());
                return Ok(());
            }
            match table.get_mut(key) {
                Some(child) => put(child, rest, key, value),
                None => Err(absent("key", key, table.keys().map(String::as_str))),
            }
        }
        (Value::List(items), Step::Every) => items
            .iter_mut()
            .try_for_each(|item| put(item, rest, above, value)),
        (Value::List(items), Step::Item(n)) => {
            let count = items.len();
            match items.get_mut(*n) {
                Some(item) => put(item, rest, above, value),
                None if count == 0 => Err(format!("index {n} is out of range; the list is empty")),
                None => Err(format!(
                    "index {n} is out of range; expected 0 to {}",
                    count - 1
                )),
            }
        }
        (Value::List(items), Step::Key(name)) => match named(items, name) {
            Some(n) => put(&mut items[n], rest, above, value),
            None => Err(absent("name", name, items.iter().filter_map(name_of))),
        },
        (Value::Text(text), Step::Key(key)) if above == "qdisc" && rest.is_empty() => {
            *text = with_parameter(text, key, value)?;
            Ok(())
        }
        (Value::Table(_), _) => Err("a table has no items; expected a key".into()),
        _ => Err(format!(
            "{} is a single value without keys; set its path",
            node.shown()
        )),
    }
}

fn absent<'a>(what: &str, name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let known: Vec<_> = known.collect();
    format!("unknown {what} \"{name}\"; {}", instead_of(name, &known))
}

fn name_of(node: &Node) -> Option<&str> {
    let Value::Table(table) = &node.value else {
        return None;
    };
    match &table.get("name")?.value {
        Value::Text(name) => Some(name),
        _ => None,
    }
}

fn named(items: &[Node], name: &str) -> Option<usize> {
    items.iter().position(|item| name_of(item) == Some(name))
}

/// The queue `text` with one parameter set: `fq_codel target 5ms` and `target`, say.
fn with_parameter(text: &str, key: &str, value: &Node) -> Result<String, String> {
    let setting = setting(&Place::root(value)).map_err(|e| e.rule)?;
    let spec: QdiscSpec = text.parse().map_err(|e: ParameterError| e.to_string())?;
    let changed = spec.with(key, &setting).map_err(|e| e.to_string())?;
    Ok(changed.to_string())
}

/// Replaces values by their canonical form, as read back from the variant they led to.
pub(crate) fn canonical(set: &[(String, Node)], variant: &Node) -> Vec<(String, Node)> {
    let canonical: BTreeMap<_, _> = set
        .iter()
        .map(|(key, node)| (key.clone(), find(variant, key).unwrap_or(node).clone()))
        .collect();
    canonical.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Step {
        Step::Key(name.to_owned())
    }

    #[test]
    fn a_key_is_split_at_its_dots_and_brackets() {
        let traffic = || key("traffic");
        assert_eq!(
            steps("links.up.rate"),
            Some(vec![key("links"), key("up"), key("rate")])
        );
        for text in ["traffic[2].cc", "traffic.2.cc"] {
            assert_eq!(
                steps(text),
                Some(vec![traffic(), Step::Item(2), key("cc")]),
                "{text}"
            );
        }
        for text in ["traffic[*].cc", "traffic.*.cc"] {
            assert_eq!(
                steps(text),
                Some(vec![traffic(), Step::Every, key("cc")]),
                "{text}"
            );
        }
        for text in ["", "a..b", "traffic[x]", "traffic[1", "traffic[1]x"] {
            assert_eq!(steps(text), None, "{text}");
        }
    }

    #[test]
    fn a_parameter_of_a_queue_is_set_within_its_text() {
        let with = |text, key, value: Node| {
            let changed = with_parameter(text, key, &value).unwrap();
            changed.parse::<QdiscSpec>().unwrap()
        };
        let spec = |text: &str| text.parse::<QdiscSpec>().unwrap();
        assert_eq!(
            with("codel", "target", "5ms".into()),
            spec("codel target 5ms")
        );
        assert_eq!(
            with("codel target 5ms ecn", "target", "1ms".into()),
            spec("codel target 1ms ecn")
        );
        assert_eq!(with("codel noecn", "ecn", true.into()), spec("codel ecn"));
        assert_eq!(
            with("codel ecn limit 9p", "ecn", false.into()),
            spec("codel noecn limit 9p")
        );
        let wrong = with_parameter("codel", "tarqet", &"5ms".into()).unwrap_err();
        assert!(wrong.contains("did you mean \"target\"?"), "{wrong}");
    }
}
