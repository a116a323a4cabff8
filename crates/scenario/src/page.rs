//! Web pages: the built-in ones and those in `pages.<name>`.

use std::collections::BTreeMap;

use sojourn_apps::{Amount, Object, Page};
use sojourn_net::Duration;

use crate::declare::{KeyValue, Keys, Name, keys, tables};
use crate::error::{ScenarioError, instead_of};
use crate::key::{Form, Key};
use crate::place::{Fields, Place};
use crate::value::{Node, Table, Value};

/// The pages that come with Sojourn; their files tell their origin.
const BUILT_IN: [(&str, &str); 3] = [
    ("large", include_str!("../pages/large.toml")),
    ("objects50", include_str!("../pages/objects50.toml")),
    ("small", include_str!("../pages/small.toml")),
];

/// Most objects of a page, copies included.
const MOST_OBJECTS: u32 = 10_000;

/// A page of a scenario.
#[derive(Clone, Debug)]
pub(crate) struct PageModel {
    pub(crate) page: Page,
    /// In canonical units.
    pub(crate) tree: Node,
}

/// The pages that a scenario defines, by their names.
pub(crate) type Pages = BTreeMap<String, PageModel>;

/// Reads `[pages]`.
pub(crate) fn pages(top: &Fields<'_>) -> Result<Pages, ScenarioError> {
    let Some(place) = top.get("pages") else {
        return Ok(Pages::new());
    };
    let mut pages = Pages::new();
    for (name, place) in place.open_table()?.all() {
        if built_in(name).is_some() {
            return Err(place.fail(format!("\"{name}\" is a built-in page; use another name")));
        }
        pages.insert(name.clone(), page(&place)?);
    }
    Ok(pages)
}

/// The page that `place` names.
pub(crate) fn named(place: &Place<'_>, pages: &Pages) -> Result<(String, Page), ScenarioError> {
    let name = place.text()?;
    if let Some(model) = pages.get(name) {
        return Ok((name.to_owned(), model.page.clone()));
    }
    if let Some(text) = built_in(name) {
        let tree = Node::from_toml(text)?;
        return Ok((name.to_owned(), page(&Place::root(&tree))?.page));
    }
    let known = BUILT_IN.iter().map(|(name, _)| *name);
    let known: Vec<_> = known.chain(pages.keys().map(String::as_str)).collect();
    let instead = instead_of(name, &known);
    Err(place.fail(format!(
        "unknown page \"{name}\"; {instead} (define your own pages in [pages.<name>])"
    )))
}

/// Whether a page of this name comes with Sojourn.
pub(super) fn is_built_in(name: &str) -> bool {
    built_in(name).is_some()
}

fn built_in(name: &str) -> Option<&'static str> {
    let found = BUILT_IN.iter().find(|(known, _)| *known == name);
    found.map(|(_, text)| *text)
}

/// An object as it stands, before its copies are made.
struct Entry<'a> {
    place: Place<'a>,
    keys: ObjectKeys,
    after: Vec<Place<'a>>,
    origin: u32,
}

fn page(place: &Place<'_>) -> Result<PageModel, ScenarioError> {
    let fields = place.fields(KEYS)?;
    let list = fields.need("objects", "[{ name = \"document\", bytes = \"15kb\" }]")?;
    let mut origins: Vec<String> = vec![String::new()];
    let mut entries: Vec<Entry<'_>> = Vec::new();
    for place in list.list()? {
        let entry = entry(place, &mut origins)?;
        if entries
            .iter()
            .any(|other| other.keys.name == entry.keys.name)
        {
            let rule = format!("duplicate object name \"{}\"", entry.keys.name.0);
            return Err(entry.place.fail(rule));
        }
        entries.push(entry);
    }
    let (objects, of) = copies(&list, &entries)?;
    let page = Page::new(objects).map_err(|e| match e.object {
        Some(n) => {
            let mut error = entries[of[n]].place.fail(e.rule);
            error.path.push_str(".after");
            error
        }
        None => list.fail(e.rule),
    })?;
    let objects = entries.iter().map(|entry| &entry.keys);
    let trees = objects.filter_map(KeyValue::write).collect();
    let tree = Table::from([("objects".to_owned(), Value::List(trees).into())]);
    Ok(PageModel {
        page,
        tree: Value::Table(tree).into(),
    })
}

keys! {
    /// The keys of an object.
    #[derive(Clone, Debug)]
    pub(crate) struct ObjectKeys {
        /// Name of the object.
        name: Name = Form::NAME, required "\"document\"";
        /// Size of the object.
        bytes: Amount = Form::AMOUNT, required "\"15kb\"";
        /// Number of copies of the object.
        count: u32 = Form::Integer(1, MOST_OBJECTS as i64), default "1";
        /// Objects that must be complete before this one is requested.
        after: Option<Vec<String>> = Form::List(0, &Form::NAME);
        /// Client processing time before the request.
        delay: Duration = Form::TIME, default "0s";
        /// Server processing time.
        work: Duration = Form::TIME, default "0s" formerly "think";
        /// Name of the server; each server has its own connections.
        origin: Option<Name> = Form::NAME;
    }
}

tables! { ObjectKeys }

const KEYS: &[Key] = &[Key::required(
    "objects",
    Form::List(1, &Form::Table(ObjectKeys::KEYS)),
    "Objects of the page.",
)];

/// A page.
pub(crate) const FORM: Form = Form::Table(KEYS);

/// The names of the pages that come with Sojourn.
pub(crate) fn built_in_names() -> Vec<&'static str> {
    BUILT_IN.map(|(name, _)| name).to_vec()
}

fn entry<'a>(place: Place<'a>, origins: &mut Vec<String>) -> Result<Entry<'a>, ScenarioError> {
    let fields = place.fields(ObjectKeys::KEYS)?;
    let mut keys: ObjectKeys = Keys::read(&fields)?;
    keys.after.get_or_insert_default();
    let host = keys.origin.clone().map(|name| name.0).unwrap_or_default();
    let known = origins.iter().position(|known| *known == host);
    let origin = known.unwrap_or_else(|| {
        origins.push(host);
        origins.len() - 1
    });
    Ok(Entry {
        after: fields.get("after").map_or(Ok(Vec::new()), |p| p.list())?,
        origin: u32::try_from(origin).unwrap_or(u32::MAX),
        keys,
        place,
    })
}

/// All objects, and of each the entry that it is a copy of.
fn copies(
    list: &Place<'_>,
    entries: &[Entry<'_>],
) -> Result<(Vec<Object>, Vec<usize>), ScenarioError> {
    let total: u64 = entries.iter().map(|e| u64::from(e.keys.count)).sum();
    if total > u64::from(MOST_OBJECTS) {
        let rule = format!("too many objects: {total}; expected at most {MOST_OBJECTS}");
        return Err(list.fail(rule));
    }
    let firsts = entries.iter().scan(0, |next, entry| {
        let first = *next;
        *next += entry.keys.count;
        Some(first)
    });
    let firsts: Vec<u32> = firsts.collect();
    let names: Vec<_> = entries.iter().map(|e| e.keys.name.0.as_str()).collect();
    let (mut objects, mut of) = (Vec::new(), Vec::new());
    for (n, entry) in entries.iter().enumerate() {
        let mut after = Vec::new();
        for place in &entry.after {
            let name = place.text()?;
            let Some(at) = names.iter().position(|known| *known == name) else {
                let instead = instead_of(name, &names);
                return Err(place.fail(format!("unknown object \"{name}\"; {instead}")));
            };
            after.extend(firsts[at]..firsts[at] + entries[at].keys.count);
        }
        let keys = &entry.keys;
        for _ in 0..keys.count {
            objects.push(Object {
                name: keys.name.0.clone(),
                bytes: keys.bytes,
                after: after.clone(),
                delay: keys.delay,
                work: keys.work,
                origin: entry.origin,
            });
            of.push(n);
        }
    }
    Ok((objects, of))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text;

    fn read(text: &str) -> Result<PageModel, ScenarioError> {
        let tree = Node::from_toml(text).unwrap();
        page(&Place::root(&tree))
    }

    #[test]
    fn the_pages_that_come_with_sojourn_are_what_their_files_say() {
        let count = |name| {
            let page = read(built_in(name).unwrap()).unwrap().page;
            let sizes = page.objects().iter().map(|o| match o.bytes {
                sojourn_apps::Amount::Fixed(bytes) => bytes.0,
                _ => panic!("sizes of {name} are fixed"),
            });
            (page.objects().len(), sizes.sum::<u64>())
        };
        assert_eq!(count("small"), (3, 55 << 10));
        // 2,652 kB in 71 requests, within 1 %.
        let (objects, bytes) = count("large");
        assert_eq!(objects, 71);
        assert!(bytes.abs_diff(2_652_000) < 26_520, "{bytes}");
        assert_eq!(count("objects50"), (50, 500 << 10));
    }

    #[test]
    fn a_wrong_page_is_refused_in_a_line_with_its_place() {
        for (text, wanted) in [
            (
                "objects = []",
                "objects: a page must have 1 to 10000 objects",
            ),
            (
                "objects = [{ name = \"a\", bytes = \"0b\" }]",
                "objects[0].bytes: \"0b\" is out of range; expected 1b to 1125899906842624b",
            ),
            (
                "objects = [{ name = \"a\", bytes = \"1kb\", after = [\"b\"] }]",
                "objects[0].after[0]: unknown object \"b\"; expected a",
            ),
            (
                "objects = [{ name = \"a\", bytes = \"1kb\" }, { name = \"a\", bytes = \"1kb\" }]",
                "objects[1]: duplicate object name \"a\"",
            ),
            (
                "objects = [{ name = \"a\", bytes = \"1kb\", after = [\"b\"] },
                 { name = \"b\", bytes = \"1kb\", after = [\"a\"] }]",
                "objects[0].after: circular dependency: \"a\" after \"b\" after \"a\"",
            ),
            (
                "objects = [{ name = \"a\", bytes = \"1kb\", count = 20000 }]",
                "objects[0].count: 20000 is out of range",
            ),
            (
                "objects = [{ name = \"a\", bytes = \"1kb\", wait = \"1s\" }]",
                "objects[0].wait: unknown key",
            ),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.starts_with(wanted), "{error}\nnot {wanted}");
        }
    }

    #[test]
    fn the_older_name_of_work_is_read_and_not_written() {
        let with = |keys: &str| {
            read(&format!(
                "objects = [{{ name = \"a\", bytes = \"1kb\", {keys} }}]"
            ))
        };
        let (new, old) = (
            with("work = \"5ms\"").unwrap(),
            with("think = \"5ms\"").unwrap(),
        );
        assert_eq!(new.page.objects()[0].work, Duration::from_millis(5));
        assert_eq!(new.page.objects(), old.page.objects());
        assert_eq!(text::json(&new.tree), text::json(&old.tree));
        assert!(text::json(&new.tree).contains("\"work\":\"5ms\""));
        let both = with("think = \"5ms\", work = \"5ms\"").unwrap_err();
        assert_eq!(both.path, "objects[0].think");
        assert_eq!(
            both.rule,
            "\"think\" was renamed to \"work\"; set only \"work\""
        );
        assert_eq!(
            with("think = \"five\"").unwrap_err().path,
            "objects[0].think"
        );
    }

    #[test]
    fn copies_wait_for_all_copies() {
        let text = "objects = [{ name = \"a\", bytes = \"1kb\", count = 2 },
             { name = \"b\", bytes = \"1kb\", after = [\"a\"], count = 2, origin = \"cdn\" }]";
        let page = read(text).unwrap().page;
        let after: Vec<_> = page.objects().iter().map(|o| o.after.clone()).collect();
        assert_eq!(after, [vec![], vec![], vec![0, 1], vec![0, 1]]);
        let origins: Vec<_> = page.objects().iter().map(|o| o.origin).collect();
        assert_eq!(origins, [0, 0, 1, 1]);
    }
}
