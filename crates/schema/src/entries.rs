//! Lists of entries with parameters of their own, such as the classes of a queue.
//!
//! `(name voice rate 1mbit leaf pfifo) (name bulk rate 9mbit)`: each entry stands in parentheses and consists of keys,
//! each followed by its value. A parameter whose values are specifications (`leaf`) is the last of its entry.

use std::fmt;

use sojourn_net::instead_of;

use crate::{Flaw, Parameter, ParameterInfo, Parameters, Unit, Value};

/// Entries, each a struct that [`parameters!`](crate::parameters!) declares.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entries<E>(pub Vec<E>);

impl<E> Entries<E> {
    /// No entries.
    pub const NONE: Self = Self(Vec::new());
}

impl<E: Parameters + Default + Clone + fmt::Debug> Value for Entries<E> {
    fn text(&self, _unit: Unit) -> Option<String> {
        let mut defaults = E::default();
        let texts = self
            .0
            .iter()
            .map(|entry| text(&mut entry.clone(), &mut defaults));
        let texts: Vec<_> = texts.collect();
        (!texts.is_empty()).then(|| texts.join(" "))
    }

    fn read(&mut self, parameter: &Parameter, text: &str) -> Result<(), Flaw> {
        let texts = split_entries(text)?;
        if texts.len() as u64 > parameter.max {
            let (given, max) = (texts.len(), parameter.max);
            return Err(format!("has {given} entries, more than the maximum of {max}").into());
        }
        let entries = (1..).zip(texts).map(|(number, text)| {
            let mut entry = E::default();
            fill(&mut entry, text).map_err(|why| Flaw::Entry(number, why))?;
            Ok(entry)
        });
        self.0 = entries.collect::<Result<_, Flaw>>()?;
        Ok(())
    }

    fn clear(&mut self) {
        self.0.clear();
    }

    fn entry(&self) -> Vec<ParameterInfo> {
        let mut start = E::default();
        let table = start.table().iter();
        let infos = table.map(|parameter| {
            let value = start.value(parameter.key);
            ParameterInfo::of(parameter, value.map(|value| &*value))
        });
        infos.collect()
    }
}

/// An entry as text: what differs from `defaults`.
fn text(entry: &mut impl Parameters, defaults: &mut impl Parameters) -> String {
    let mut words = Vec::new();
    for parameter in entry.table() {
        let default = defaults
            .value(parameter.key)
            .and_then(|value| parameter.text(value));
        let own = entry
            .value(parameter.key)
            .and_then(|value| parameter.text(value));
        if let Some(own) = own.filter(|own| Some(own) != default.as_ref()) {
            words.push(format!("{} {own}", parameter.key));
        }
    }
    format!("({})", words.join(" "))
}

/// Sets the parameters of an entry to what `text` says.
fn fill(entry: &mut impl Parameters, text: &str) -> Result<(), String> {
    let table = entry.table();
    let mut given: Vec<&str> = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (key, behind) = cut(rest);
        let keys = table.iter().map(|parameter| parameter.key);
        let parameter = table.iter().find(|parameter| parameter.key == key);
        let parameter =
            parameter.ok_or_else(|| format!("unknown key \"{key}\"; {}", instead_of(key, keys)))?;
        if given.contains(&key) {
            return Err(format!("{key} is given twice"));
        }
        given.push(key);
        let (value, behind) = match parameter.unit {
            Unit::Leaves => (behind, ""),
            _ => cut(behind),
        };
        rest = behind;
        let flawed = |flaw| format!("{key} {flaw}; expected {}", parameter.range());
        if value.is_empty() {
            return Err(flawed("needs a value".to_owned()));
        }
        let Some(field) = entry.value(key) else {
            continue;
        };
        parameter.set(field, value).map_err(|flaw| match flaw {
            Flaw::Value(flaw) => flawed(flaw),
            Flaw::Leaf(_, error) => format!("{key}: {error}"),
            Flaw::Entry(number, why) => format!("{key} {number}: {why}"),
        })?;
    }
    Ok(())
}

/// The first word, and what follows it.
fn cut(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    match text.find(char::is_whitespace) {
        Some(end) => (&text[..end], text[end..].trim_start()),
        None => (text, ""),
    }
}

/// Splits a text into its entries, which lose their parentheses.
///
/// # Errors
/// If a parenthesis has no counterpart, or there is something between the entries.
pub fn split_entries(text: &str) -> Result<Vec<&str>, Flaw> {
    let mut entries = Vec::new();
    let (mut depth, mut from) = (0_u32, 0);
    for (at, c) in text.char_indices() {
        match c {
            '(' => {
                if depth == 0 {
                    from = at + 1;
                }
                depth += 1;
            }
            ')' => {
                depth = depth
                    .checked_sub(1)
                    .ok_or_else(|| "has an unmatched )".to_owned())?;
                if depth == 0 {
                    entries.push(text[from..at].trim());
                }
            }
            c if depth == 0 && !c.is_whitespace() => {
                return Err("has text outside parentheses".to_owned().into());
            }
            _ => {}
        }
    }
    if depth > 0 {
        return Err("has an unmatched (".to_owned().into());
    }
    Ok(entries)
}

/// A text without spaces and parentheses; empty if there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Word(String);

impl Word {
    /// None.
    pub const NONE: Self = Self(String::new());

    /// The text; empty if there is none.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The text, if there is one.
    pub fn get(&self) -> Option<&str> {
        Some(self.as_str()).filter(|word| !word.is_empty())
    }
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Value for Word {
    fn text(&self, _unit: Unit) -> Option<String> {
        self.get().map(str::to_owned)
    }

    fn read(&mut self, _parameter: &Parameter, text: &str) -> Result<(), Flaw> {
        if text.contains(|c: char| c.is_whitespace() || matches!(c, '(' | ')')) {
            return Err(format!("\"{text}\" contains a space or a parenthesis").into());
        }
        text.clone_into(&mut self.0);
        Ok(())
    }

    fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
#[expect(
    unreachable_pub,
    reason = "the parameters of a test are public to no one"
)]
mod tests {
    use super::*;
    use crate::parameters;
    use sojourn_net::Rate;

    parameters! {
        /// An entry of this test.
        #[derive(Clone, Debug, PartialEq)]
        pub struct Item {
            /// Its name.
            pub name: Word = Word::NONE => word("a name").unset("none"), "this test";
            /// Its rate.
            pub rate: Option<Rate> = None => rate().unset("none"), "this test";
            /// Its priority.
            pub prio: u8 = 0 => count(0, 7), "this test";
        }
    }

    parameters! {
        /// A list of this test.
        #[derive(Clone, Debug, PartialEq)]
        pub struct List {
            /// The items.
            pub items: Entries<Item> = Entries::NONE => entries(Item::PARAMETERS, 2).unset("none"),
                "this test";
        }
    }

    fn read(text: &str) -> Result<List, String> {
        let mut list = List::default();
        let parameter = &list.table()[0];
        let field = list.value("items").expect("declared");
        let flaw = |flaw: Flaw| flaw.at("list", "items", parameter.range()).to_string();
        parameter.set(field, text).map_err(flaw)?;
        Ok(list)
    }

    #[test]
    fn entries_read_back() {
        let text = "(name a rate 1mbit) (name b prio 3)";
        let list = read("(rate 1000kbit  name a)(prio 3 name b)").expect("valid");
        assert_eq!(list.items.text(Unit::Flag).as_deref(), Some(text));
        assert_eq!(read(text), Ok(list));
    }

    #[test]
    fn an_error_names_the_entry_and_what_is_accepted() {
        for (text, expected) in [
            (
                "(names a)",
                "list: items 1: unknown key \"names\"; did you mean \"name\"?",
            ),
            (
                "(name a) (prio 9)",
                "list: items 2: prio 9 is out of range; expected 0 to 7",
            ),
            (
                "(name a rate)",
                "list: items 1: rate needs a value; expected 1bit or more",
            ),
            ("(name a name b)", "list: items 1: name is given twice"),
            (
                "name a",
                "list: items has text outside parentheses; \
                 expected entries in parentheses with name, rate, prio",
            ),
            (
                "(name a",
                "list: items has an unmatched (; expected entries in parentheses with name, rate, prio",
            ),
            (
                "() () ()",
                "list: items has 3 entries, more than the maximum of 2; \
                 expected entries in parentheses with name, rate, prio",
            ),
        ] {
            assert_eq!(read(text).expect_err(text), expected);
        }
    }
}
