//! Sets and finds values by path, such as `links.up.qdisc.target` or `traffic[0].cc.beta`.
//!
//! Arms and `-s` on the command line take the same paths.

use crate::declare::Keys as _;
use crate::decode;
use crate::error::{ScenarioError, instead_of};
use crate::key::{Form, Key};
use crate::link;
use crate::page;
use crate::specification::{Pairs, Specification};
use crate::traffic;
use crate::value::{Node, Value, joined};

/// One step from a value to a value within it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A key of a table, or the name of an item of a list.
    Key(String),
    /// An item of a list, by its index.
    Item(usize),
    /// Every item of a list: `[*]`.
    Every,
}

/// Sets what is at `path` to `value`; `tree` has the present names of keys.
pub(crate) fn set(tree: &mut Node, path: &str, value: &Node) -> Result<(), ScenarioError> {
    let steps = read(path)?;
    put(tree, &steps, "", value).map_err(|rule| ScenarioError::new(path, rule))
}

/// The value at `path`, where there is one.
pub(crate) fn find<'a>(tree: &'a Node, path: &str) -> Option<&'a Node> {
    steps(path)?
        .iter()
        .try_fold(tree, |node, step| match (&node.value, step) {
            (Value::List(items), Step::Every) => items.first(),
            _ => child(node, step),
        })
}

/// The places in `tree` that `path` leads to: `[*]` and names become indices.
pub(crate) fn places(tree: &Node, path: &str) -> Vec<Vec<Step>> {
    steps(path).map_or_else(Vec::new, |steps| below(Some(tree), &steps))
}

/// The steps of a path.
pub(crate) fn read(path: &str) -> Result<Vec<Step>, ScenarioError> {
    steps(path).ok_or_else(|| {
        ScenarioError::new(
            path,
            "invalid path; expected one such as links.up.qdisc or traffic[0].cc",
        )
    })
}

/// The path with the present names of its keys: as it stands if it has no older name.
pub(crate) fn present(path: &str) -> String {
    match (as_written(path), steps(path)) {
        (Some(written), Some(steps)) if written != steps => text(&steps),
        _ => path.to_owned(),
    }
}

/// Whether two paths are the same but for older names and the way in which they write an index.
pub(crate) fn are_same(one: &str, other: &str) -> bool {
    steps(one) == steps(other)
}

/// The parameters of the queue or congestion control `text` at `path`, by key, with their values as text; none if
/// values at the path have no parameters. Flags are `on` or `off`; `None`: the parameter has no value.
///
/// # Errors
/// If `text` is not valid there.
pub fn parameters_at(path: &str, text: &str) -> Result<Pairs, ScenarioError> {
    specification(path).map_or(Ok(Pairs::new()), |specification| {
        (specification.pairs)(text).map_err(|rule| ScenarioError::new(path, rule))
    })
}

fn text(steps: &[Step]) -> String {
    steps.iter().fold(String::new(), |path, step| match step {
        Step::Key(key) => joined(&path, key),
        Step::Item(n) => indexed(&path, *n),
        Step::Every => format!("{path}[*]"),
    })
}

/// `traffic[0].cc` as its steps, with the present names of keys.
fn steps(path: &str) -> Option<Vec<Step>> {
    let mut steps = as_written(path)?;
    forms(&mut steps);
    Some(steps)
}

/// How the text at `path` is read, if it is a specification.
fn specification(path: &str) -> Option<Specification> {
    let forms = forms(&mut as_written(path)?);
    forms.into_iter().find_map(Specification::of)
}

/// What the value that `steps` lead to may be; older names of keys become the present ones.
fn forms(steps: &mut [Step]) -> Vec<Form> {
    let top = vec![Form::Table(decode::KEYS)];
    steps.iter_mut().fold(top, |forms, step| {
        let below = forms.into_iter().flat_map(|form| below_form(form, step));
        below.collect()
    })
}

/// What the value that `step` leads to may be; an older name becomes the present one.
fn below_form(form: Form, step: &mut Step) -> Vec<Form> {
    match (form, &step) {
        (Form::Either(forms), _) => forms
            .iter()
            .flat_map(|&form| below_form(form, step))
            .collect(),
        (Form::ByName(value), Step::Key(_)) | (Form::List(_, value), _) => vec![*value],
        (_, Step::Key(name)) => {
            let keys = keys_of(form);
            let named = keys.iter().find(|key| key.name == name);
            let older = || keys.iter().find(|key| key.older == Some(name.as_str()));
            let present = named.or_else(older).map_or(name.as_str(), |key| key.name);
            let present = present.to_owned();
            let of_name = |key: &&Key| key.name == present;
            let forms = keys.iter().filter(of_name).map(|key| key.form).collect();
            *step = Step::Key(present);
            forms
        }
        _ => Vec::new(),
    }
}

/// The keys of a table of this form; those of every type of traffic.
fn keys_of(form: Form) -> Vec<Key> {
    match form {
        Form::Table(keys) => keys.to_vec(),
        Form::Def("link") => link::LinkKeys::KEYS.to_vec(),
        Form::Def("page") => keys_of(page::FORM),
        Form::Def("traffic") => traffic::keys().flat_map(|(_, keys)| keys).collect(),
        _ => Vec::new(),
    }
}

/// `traffic[0].cc` as its steps; an index may also stand between dots.
fn as_written(path: &str) -> Option<Vec<Step>> {
    let mut steps = Vec::new();
    for segment in path.split('.') {
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

fn child<'a>(node: &'a Node, step: &Step) -> Option<&'a Node> {
    match (&node.value, step) {
        (Value::Table(table), Step::Key(key)) => table.get(key),
        (Value::List(items), Step::Item(n)) => items.get(*n),
        (Value::List(items), Step::Key(name)) => items.get(named(items, name)?),
        _ => None,
    }
}

/// The places below `node`; what does not exist yet, or is a parameter of a specification, stays as given.
fn below(node: Option<&Node>, steps: &[Step]) -> Vec<Vec<Step>> {
    let Some((step, rest)) = steps.split_first() else {
        return vec![Vec::new()];
    };
    let children: Vec<(Step, Option<&Node>)> = match (node.map(|node| &node.value), step) {
        (Some(Value::List(items)), Step::Every) => (0..)
            .zip(items)
            .map(|(n, item)| (Step::Item(n), Some(item)))
            .collect(),
        (Some(Value::List(items)), Step::Key(name)) => {
            let index = named(items, name);
            let step = index.map_or_else(|| step.clone(), Step::Item);
            vec![(step, index.map(|n| &items[n]))]
        }
        _ => vec![(step.clone(), node.and_then(|node| child(node, step)))],
    };
    children
        .into_iter()
        .flat_map(|(step, node)| {
            below(node, rest).into_iter().map(move |mut place| {
                place.insert(0, step.clone());
                place
            })
        })
        .collect()
}

/// Sets what `steps` lead to from `node`, which is at `path`; the error is what is wrong.
fn put(node: &mut Node, steps: &[Step], path: &str, value: &Node) -> Result<(), String> {
    let Some((step, rest)) = steps.split_first() else {
        *node = value.clone();
        return Ok(());
    };
    match (&mut node.value, step) {
        (Value::Table(table), Step::Key(key)) => {
            let at = joined(path, key);
            if rest.is_empty() {
                table.insert(key.clone(), value.clone());
                return Ok(());
            }
            if let Some(child) = table.get_mut(key) {
                return put(child, rest, &at, value);
            }
            let known: Vec<_> = table.keys().map(String::as_str).collect();
            let rule = format!("unknown key \"{key}\"; {}", instead_of(key, &known));
            Err(match specification(&at) {
                Some(_) => rule,
                None => format!("{rule}; or set the whole table {at}"),
            })
        }
        (Value::Table(table), Step::Item(_) | Step::Every) => {
            let known: Vec<_> = table.keys().map(String::as_str).collect();
            Err(format!("{path} is not a list; {}", instead_of("", &known)))
        }
        (Value::List(items), Step::Every) => {
            (0..).zip(items).try_for_each(|(n, item): (usize, _)| {
                let at = indexed(path, n);
                put(item, rest, &at, value).map_err(|rule| format!("{rule} ({at})"))
            })
        }
        (Value::List(items), Step::Item(n)) if *n < items.len() => {
            put(&mut items[*n], rest, &indexed(path, *n), value)
        }
        (Value::List(items), Step::Item(n)) => {
            Err(format!("no item {n}; expected {}", indices(path, items)))
        }
        (Value::List(items), Step::Key(name)) => match named(items, name) {
            Some(n) => put(&mut items[n], rest, &indexed(path, n), value),
            None => Err(no_item(path, name, items)),
        },
        (Value::Text(text), Step::Key(key)) => match specification(path) {
            Some(specification) if rest.is_empty() => {
                *text = (specification.with)(text, key, value)?;
                Ok(())
            }
            Some(_) => Err(format!(
                "a parameter has no keys; set {path}.{key} as a whole"
            )),
            None => Err(without_keys(path)),
        },
        _ => Err(without_keys(path)),
    }
}

/// That the value at `path` is neither a table nor a list, nor has parameters.
fn without_keys(path: &str) -> String {
    format!("{path} is a single value without keys; set {path} itself")
}

fn indexed(path: &str, n: usize) -> String {
    format!("{path}[{n}]")
}

/// The accepted indices of the list at `path`.
fn indices(path: &str, items: &[Node]) -> String {
    match items.len() {
        0 | 1 => format!("{path}[0]"),
        count => format!("{path}[0] to {path}[{}]", count - 1),
    }
}

/// That the list at `path` has no item called `name`.
fn no_item(path: &str, name: &str, items: &[Node]) -> String {
    let known: Vec<_> = items.iter().filter_map(name_of).collect();
    let index = indices(path, items);
    if known.is_empty() {
        return format!("{path} is a list without names; expected {index}");
    }
    let instead = instead_of(name, &known);
    format!("unknown name \"{name}\"; {instead}; or an index, {index}")
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

/// How much of what `path` leads to in `tree` is covered by `paths`.
pub(crate) fn covered<'a>(
    tree: &Node,
    path: &str,
    paths: impl Iterator<Item = &'a str>,
) -> Covered {
    let covering: Vec<_> = paths.flat_map(|path| places(tree, path)).collect();
    let wanted = places(tree, path);
    let hidden = |place: &Vec<Step>| covering.iter().any(|whole| place.starts_with(whole));
    match wanted.iter().filter(|place| hidden(place)).count() {
        0 => Covered::Nothing,
        all if all == wanted.len() => Covered::All,
        _ => Covered::Part,
    }
}

/// How much of a path other paths cover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Covered {
    Nothing,
    Part,
    All,
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
    fn an_older_name_of_a_key_becomes_the_present_one() {
        let older = "pages.a.objects[0].think";
        assert_eq!(present(older), "pages.a.objects[0].work");
        assert_eq!(
            present("pages.a.objects.*.think"),
            "pages.a.objects[*].work"
        );
        // Sessions have a key of this name.
        for path in ["traffic.0.think", "links.think.rate", "pages.think"] {
            assert_eq!(present(path), path);
        }
        let mut tree =
            Node::from_json(r#"{"pages": {"a": {"objects": [{"work": "1ms"}]}}}"#).unwrap();
        set(&mut tree, older, &"7ms".into()).unwrap();
        let found = find(&tree, older).map(Node::shown);
        assert_eq!(found.as_deref(), Some("\"7ms\""));
        let objects = find(&tree, "pages.a.objects").unwrap();
        assert_eq!(crate::text::json(objects), r#"[{"work":"7ms"}]"#);
    }

    #[test]
    fn a_path_is_compared_by_the_places_that_it_leads_to() {
        let tree = Node::from_json(
            r#"{"links": {"up": {"qdisc": "codel"}},
                "traffic": [{"name": "a", "cc": "reno"}, {"name": "b", "cc": "reno"}]}"#,
        )
        .unwrap();
        let of = |path, arm| covered(&tree, path, [arm].into_iter());
        assert_eq!(of("traffic[0].cc", "traffic.a.cc"), Covered::All);
        assert_eq!(of("traffic[*].cc", "traffic[1].cc"), Covered::Part);
        assert_eq!(of("traffic.b.cc", "traffic[0].cc"), Covered::Nothing);
        assert_eq!(of("links.up.qdisc.target", "links.up.qdisc"), Covered::All);
        assert_eq!(
            of("links.up.qdisc", "links.up.qdisc.target"),
            Covered::Nothing
        );
    }

    #[test]
    fn a_refused_path_says_what_is_accepted() {
        let tree = Node::from_json(
            r#"{"links": {"up": {"qdisc": "drr", "rate": "1mbit"}},
                "traffic": [{"name": "a", "cc": "reno", "rtt": ["1ms", "2ms"]},
                            {"name": "qdisc", "type": "ping"}]}"#,
        )
        .unwrap();
        for (path, message) in [
            ("links.upp.rate", "unknown key \"upp\"; expected up;"),
            ("links[0].rate", "links is not a list; expected up"),
            (
                "traffic.b.cc",
                "unknown name \"b\"; expected a or qdisc; or an index, traffic[0] to traffic[1]",
            ),
            (
                "traffic[0].rtt.x",
                "traffic[0].rtt is a list without names; expected traffic[0].rtt[0] to traffic[0].rtt[1]",
            ),
            (
                "traffic.0.name.beta",
                "traffic[0].name is a single value without keys; set traffic[0].name itself",
            ),
            (
                "links.up.rate.0",
                "links.up.rate is a single value without keys; set links.up.rate itself",
            ),
            (
                "links.up.qdisc.leaf.target",
                "a parameter has no keys; set links.up.qdisc.leaf as a whole",
            ),
            (
                "traffic.a.cc.alpha.x",
                "a parameter has no keys; set traffic[0].cc.alpha as a whole",
            ),
            (
                "traffic.a.cc.betta",
                "reno: unknown parameter \"betta\"; did you mean \"beta\"?",
            ),
            (
                "traffic[*].cc.alpha",
                "unknown key \"cc\"; expected name or type (traffic[1])",
            ),
            (
                "traffic[9].cc",
                "no item 9; expected traffic[0] to traffic[1]",
            ),
        ] {
            let refused = set(&mut tree.clone(), path, &"1".into()).unwrap_err();
            assert_eq!(refused.path, path);
            assert!(
                refused.rule.starts_with(message),
                "{path}: {}",
                refused.rule
            );
        }
    }
}
