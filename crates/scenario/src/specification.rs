//! Specifications: texts of a name and parameters, such as `codel target 5ms` or `cubic beta 0.8`.

use std::fmt::Display;
use std::str::FromStr;

use sojourn_qdisc::{QdiscSpec, QueueChange};
use sojourn_transport::CcSpec;

use crate::error::ScenarioError;
use crate::key::Form;
use crate::place::Place;
use crate::value::{Node, Value};

/// Parameters by key with their values as text; `None`: the parameter has no value.
pub(crate) type Pairs = Vec<(&'static str, Option<String>)>;

/// How texts of one kind of specification are read and changed; the errors say what is wrong.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Specification {
    /// The text with one parameter set.
    pub(crate) with: fn(text: &str, key: &str, value: &Node) -> Result<String, String>,
    /// The parameters of the text.
    pub(crate) pairs: fn(text: &str) -> Result<Pairs, String>,
}

impl Specification {
    /// Those that values of this form are, if they are specifications.
    pub(crate) fn of(form: Form) -> Option<Self> {
        match form {
            Form::Def("qdisc") => Some(Self::new::<QdiscSpec>()),
            Form::Def("congestion_control") => Some(Self::new::<CcSpec>()),
            _ => None,
        }
    }

    fn new<T: Parameters>() -> Self {
        Self {
            with: |text, key, value| {
                let setting = T::setting(&Place::root(value)).map_err(|e| e.rule)?;
                let changed = read::<T>(text)?.with(key, &setting);
                changed.map_or_else(|e| Err(e.to_string()), |spec| Ok(spec.to_string()))
            },
            pairs: |text| Ok(read::<T>(text)?.pairs()),
        }
    }
}

fn read<T: Parameters>(text: &str) -> Result<T, String> {
    text.parse().map_err(|e: T::Err| e.to_string())
}

/// A specification whose parameters can be set one by one.
trait Parameters: FromStr<Err: Display> + Display {
    /// The value of a parameter as text.
    fn setting(place: &Place<'_>) -> Result<String, ScenarioError>;

    /// The same with the parameter `key` set to `value`.
    fn with(&self, key: &str, value: &str) -> Result<Self, Self::Err>;

    /// Every parameter.
    fn pairs(&self) -> Pairs;
}

impl Parameters for QdiscSpec {
    fn setting(place: &Place<'_>) -> Result<String, ScenarioError> {
        queue_setting(place)
    }

    fn with(&self, key: &str, value: &str) -> Result<Self, Self::Err> {
        self.with(key, value)
    }

    fn pairs(&self) -> Pairs {
        let values = self.pairs();
        let value = |key| values.iter().find(|(known, _)| *known == key);
        let keys = self.keys().into_iter();
        keys.map(|key| (key, value(key).map(|(_, text)| text.clone())))
            .collect()
    }
}

impl Parameters for CcSpec {
    fn setting(place: &Place<'_>) -> Result<String, ScenarioError> {
        let Value::List(_) = &place.node.value else {
            return place.setting();
        };
        let values: Result<Vec<_>, _> = place.list()?.iter().map(Place::setting).collect();
        Ok(values?.join(","))
    }

    fn with(&self, key: &str, value: &str) -> Result<Self, Self::Err> {
        self.with(key, value)
    }

    fn pairs(&self) -> Pairs {
        let pairs = self.pairs().into_iter();
        pairs.map(|(key, text)| (key, Some(text))).collect()
    }
}

/// A queue in the syntax of `tc`, or a table with its `kind` and parameters.
pub(crate) fn qdisc(place: &Place<'_>) -> Result<QdiscSpec, ScenarioError> {
    match &place.node.value {
        Value::Text(text) => text.parse(),
        Value::Table(_) => {
            let (kind, pairs) = kind_and_pairs(place)?;
            QdiscSpec::from_pairs(&kind, pairs.into_iter())
        }
        _ => {
            return Err(place.fail(format!(
                "{} is not a queue; expected a string such as \"fq_codel target 5ms\" or a table with a kind",
                place.node.shown()
            )));
        }
    }
    .map_err(|e| place.fail(e.to_string()))
}

/// The change of the queue `before` that is described as a queue is.
pub(crate) fn changed_qdisc(
    before: &QdiscSpec,
    place: &Place<'_>,
) -> Result<QueueChange, ScenarioError> {
    match &place.node.value {
        Value::Text(text) => before.changed_by(text),
        Value::Table(_) => {
            let (kind, pairs) = kind_and_pairs(place)?;
            before.changed_by_pairs(&kind, pairs.into_iter())
        }
        // The same error.
        _ => return qdisc(place).map(QueueChange::Replacement),
    }
    .map_err(|e| place.fail(e.to_string()))
}

/// The kind and the parameters of a queue as a table.
fn kind_and_pairs(place: &Place<'_>) -> Result<(String, Vec<(String, String)>), ScenarioError> {
    let fields = place.open_table()?;
    let kind = fields.need("kind", "\"fq_codel\"")?.text()?.to_owned();
    let pairs = fields.all().filter(|(key, _)| *key != "kind");
    let pairs = pairs.map(|(key, place)| Ok((key.clone(), queue_setting(&place)?)));
    Ok((kind, pairs.collect::<Result<_, _>>()?))
}

/// The value of a queue's parameter as text.
fn queue_setting(place: &Place<'_>) -> Result<String, ScenarioError> {
    match &place.node.value {
        Value::Table(table) if table.contains_key("kind") => part(place),
        Value::List(values) if values.iter().all(|v| matches!(v.value, Value::Int(_))) => {
            let numbers = place
                .list()?
                .iter()
                .map(queue_setting)
                .collect::<Result<Vec<_>, _>>()?;
            Ok(numbers.join(" "))
        }
        Value::List(values) if values.iter().all(is_entry) => {
            let entries = place.list()?;
            let entries: Result<Vec<_>, _> = entries.iter().map(entry).collect();
            Ok(entries?.join(" "))
        }
        Value::List(_) => {
            let queues = place
                .list()?
                .iter()
                .map(part)
                .collect::<Result<Vec<_>, _>>()?;
            Ok(queues.join(" / "))
        }
        _ => place.setting(),
    }
}

/// Whether a value is an entry of a list, such as a class of `htb`, not a queue.
fn is_entry(node: &Node) -> bool {
    matches!(&node.value, Value::Table(table) if !table.contains_key("kind"))
}

/// An entry of a list as text; its queue comes last.
fn entry(place: &Place<'_>) -> Result<String, ScenarioError> {
    const LEAF: &str = "leaf";
    let fields = place.open_table()?;
    let (mut words, mut leaf) = (Vec::new(), None);
    for (key, place) in fields.all() {
        if key == LEAF {
            leaf = Some(format!("{key} {}", part(&place)?));
        } else {
            words.push(format!("{key} {}", entry_setting(&place)?));
        }
    }
    words.extend(leaf);
    Ok(format!("({})", words.join(" ")))
}

/// The value of a key of an entry as one word.
fn entry_setting(place: &Place<'_>) -> Result<String, ScenarioError> {
    let text = place.setting()?;
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        // A space may stand before a unit.
        return Ok(text.split_whitespace().collect());
    }
    if text.is_empty() || text.contains(|c: char| c.is_whitespace() || matches!(c, '(' | ')')) {
        return Err(place.fail(format!(
            "\"{text}\" is empty or contains a space or a parenthesis; expected one word"
        )));
    }
    Ok(text)
}

/// A queue inside another, as text.
fn part(place: &Place<'_>) -> Result<String, ScenarioError> {
    let text = qdisc(place)?.to_string();
    Ok(if text.contains(" / ") {
        format!("({text})")
    } else {
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sets a parameter, and returns the canonical text.
    fn with<T: Parameters>(text: &str, key: &str, value: &Node) -> Result<String, String> {
        (Specification::new::<T>().with)(text, key, value)
    }

    fn canonical<T: Parameters>(text: &str) -> Result<String, String> {
        read::<T>(text).map(|spec| spec.to_string())
    }

    #[test]
    fn a_parameter_of_a_queue_is_set_within_its_text() {
        let with = with::<QdiscSpec>;
        let spec = canonical::<QdiscSpec>;
        assert_eq!(
            with("codel", "target", &"5ms".into()),
            spec("codel target 5ms")
        );
        assert_eq!(
            with("codel target 5ms ecn", "target", &"1ms".into()),
            spec("codel target 1ms ecn")
        );
        assert_eq!(with("codel noecn", "ecn", &true.into()), spec("codel ecn"));
        assert_eq!(
            with("codel ecn limit 9p", "ecn", &false.into()),
            spec("codel noecn limit 9p")
        );
        let wrong = with("codel", "tarqet", &"5ms".into()).unwrap_err();
        assert!(wrong.contains("did you mean \"target\"?"), "{wrong}");
    }

    #[test]
    fn a_parameter_of_a_control_is_set_within_its_text() {
        let with = with::<CcSpec>;
        let spec = canonical::<CcSpec>;
        let number = |json| Node::from_json(json).unwrap();
        assert_eq!(
            with("cubic", "beta", &number("0.8")),
            spec("cubic beta 0.8")
        );
        assert_eq!(
            with("cubic beta 0.8", "beta", &"7/10".into()),
            spec("cubic")
        );
        assert_eq!(
            with("cubic beta 0.8", "fast_convergence", &false.into()),
            spec("cubic beta 0.8 fast_convergence off")
        );
        assert_eq!(
            with("ledbat", "target", &"25ms".into()),
            spec("ledbat target 25ms")
        );
        let gains = number(r#"[1.5, "1/2", 1, 1, 1, 1, 1, 1]"#);
        assert_eq!(
            with("bbr", "pacing_gain", &gains),
            spec("bbr pacing_gain 3/2,1/2,1,1,1,1,1,1")
        );
        for (key, value, error) in [
            (
                "betta",
                "0.8".into(),
                "cubic: unknown parameter \"betta\"; did you mean \"beta\"?",
            ),
            (
                "beta",
                number("2"),
                "cubic: beta 2 is out of range; expected 1/1024 to 1023/1024",
            ),
            (
                "beta",
                "0.8 hystart off".into(),
                "cubic: beta \"0.8 hystart off\" is not a number; expected 1/1024 to 1023/1024",
            ),
            (
                "beta",
                number("{}"),
                "a table is not a parameter value; expected a boolean, a number or a string such as \"5ms\"",
            ),
        ] {
            assert_eq!(with("cubic", key, &value), Err(error.to_owned()));
        }
    }

    #[test]
    fn entries_of_a_list_are_tables() {
        let of = |json: &str| {
            let node = Node::from_json(json).unwrap();
            qdisc(&Place::root(&node))
                .map(|spec| spec.to_string())
                .map_err(|e| e.rule)
        };
        let table = r#"{"kind": "htb", "default": "b", "classes": [
            {"name": "r", "rate": "10mbit"},
            {"name": "a", "parent": "r", "rate": "1mbit", "prio": 0, "leaf": {"kind": "prio", "leaf": ["pfifo", "codel"]}},
            {"leaf": "codel target 7ms", "name": "b", "parent": "r", "rate": "9 mbit", "prio": 3}],
            "filters": [{"to": "a", "dscp": 46}]}"#;
        let text = "htb default b classes (name r rate 10mbit) (name a parent r rate 1mbit leaf (prio leaf pfifo / codel)) \
                    (name b parent r rate 9mbit prio 3 leaf codel target 7ms) filters (to a dscp EF)";
        let spec = text.parse::<QdiscSpec>().unwrap().to_string();
        assert_eq!(of(table), Ok(spec));
        let wrong = of(r#"{"kind": "htb", "classes": [{"name": "a b", "rate": "1mbit"}]}"#);
        let rule = "\"a b\" is empty or contains a space or a parenthesis; expected one word";
        assert_eq!(wrong, Err(rule.to_owned()));
    }

    #[test]
    fn every_parameter_is_listed_with_its_value() {
        let pairs = |form, text| (Specification::of(form).unwrap().pairs)(text).unwrap();
        let value = |pairs: Pairs, key| pairs.into_iter().find(|(known, _)| *known == key);
        let queue = pairs(Form::QDISC, "codel target 3ms");
        assert_eq!(
            value(queue.clone(), "target"),
            Some(("target", Some("3ms".into())))
        );
        assert_eq!(value(queue, "ce_threshold"), Some(("ce_threshold", None)));
        let control = pairs(Form::CONTROL, "cubic beta 1/2");
        assert_eq!(
            value(control.clone(), "beta"),
            Some(("beta", Some("1/2".into())))
        );
        let flag = Some(("fast_convergence", Some("on".into())));
        assert_eq!(value(control, "fast_convergence"), flag);
        assert!(Specification::of(Form::NAME).is_none());
    }
}
