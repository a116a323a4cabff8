//! Web pages: the built-in ones and those in `pages.<name>`.

use std::collections::BTreeMap;

use sojourn_apps::{Object, Page};

use crate::amount;
use crate::error::{ScenarioError, instead_of};
use crate::key::{Form, Key};
use crate::place::{Fields, Place};
use crate::value::{Node, Table, Value, insert, time};

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
    name: String,
    count: u32,
    after: Vec<Place<'a>>,
    template: Object,
    tree: Node,
}

fn page(place: &Place<'_>) -> Result<PageModel, ScenarioError> {
    let fields = place.fields(KEYS)?;
    let list = fields.need("objects", "[{ name = \"document\", bytes = \"15kb\" }]")?;
    let mut origins: Vec<String> = vec![String::new()];
    let mut entries: Vec<Entry<'_>> = Vec::new();
    for place in list.list()? {
        let entry = entry(place, &mut origins)?;
        if entries.iter().any(|other| other.name == entry.name) {
            let rule = format!("duplicate object name \"{}\"", entry.name);
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
    let trees = entries.into_iter().map(|entry| entry.tree).collect();
    let tree = Table::from([("objects".to_owned(), Value::List(trees).into())]);
    Ok(PageModel {
        page,
        tree: Value::Table(tree).into(),
    })
}

pub(crate) const OBJECT_KEYS: &[Key] = &[
    Key::required("name", Form::NAME, "Name of the object."),
    Key::required("bytes", Form::AMOUNT, "Size of the object."),
    Key::optional(
        "count",
        Form::Integer(1, MOST_OBJECTS as i64),
        "Number of copies of the object.",
    )
    .or("1"),
    Key::optional(
        "after",
        Form::List(0, &Form::NAME),
        "Objects that must be complete before this one is requested.",
    ),
    Key::optional(
        "delay",
        Form::TIME,
        "Client processing time before the request.",
    )
    .or("0s"),
    Key::optional("work", Form::TIME, "Server processing time.")
        .or("0s")
        .formerly("think"),
    Key::optional(
        "origin",
        Form::NAME,
        "Name of the server; each server has its own connections.",
    ),
];

const KEYS: &[Key] = &[Key::required(
    "objects",
    Form::List(1, &Form::Table(OBJECT_KEYS)),
    "Objects of the page.",
)];

/// A page.
pub(crate) const FORM: Form = Form::Table(KEYS);

/// The names of the pages that come with Sojourn.
pub(crate) fn built_in_names() -> Vec<&'static str> {
    BUILT_IN.map(|(name, _)| name).to_vec()
}

fn entry<'a>(place: Place<'a>, origins: &mut Vec<String>) -> Result<Entry<'a>, ScenarioError> {
    let fields = place.fields(OBJECT_KEYS)?;
    let name = fields.need("name", "\"document\"")?.name()?;
    let bytes = amount::read(&fields.need("bytes", "\"15kb\"")?)?;
    let count: u32 = fields.integer("count")?;
    let after = fields.get("after").map_or(Ok(Vec::new()), |p| p.list())?;
    let delay = fields.time("delay")?;
    let work = fields.time("work")?;
    let host = fields.option("origin", Place::name)?.unwrap_or_default();
    let mut tree = Table::new();
    insert(&mut tree, "name", Some(name.as_str().into()));
    insert(&mut tree, "bytes", Some(amount::write(bytes)));
    insert(&mut tree, "count", Some(count.into()));
    let waits = after.iter().map(|p| p.text().map(Node::from));
    let waits = waits.collect::<Result<Vec<_>, _>>()?;
    insert(&mut tree, "after", Some(Value::List(waits).into()));
    insert(&mut tree, "delay", Some(time(delay)));
    insert(&mut tree, "work", Some(time(work)));
    let named = !host.is_empty();
    insert(&mut tree, "origin", named.then(|| host.as_str().into()));
    let known = origins.iter().position(|known| *known == host);
    let origin = known.unwrap_or_else(|| {
        origins.push(host);
        origins.len() - 1
    });
    let origin = u32::try_from(origin).unwrap_or(u32::MAX);
    Ok(Entry {
        name: name.clone(),
        count,
        after,
        template: Object {
            name,
            bytes,
            after: Vec::new(),
            delay,
            work,
            origin,
        },
        tree: Value::Table(tree).into(),
        place,
    })
}

/// All objects, and of each the entry that it is a copy of.
fn copies(
    list: &Place<'_>,
    entries: &[Entry<'_>],
) -> Result<(Vec<Object>, Vec<usize>), ScenarioError> {
    let total: u64 = entries.iter().map(|e| u64::from(e.count)).sum();
    if total > u64::from(MOST_OBJECTS) {
        let rule = format!("too many objects: {total}; expected at most {MOST_OBJECTS}");
        return Err(list.fail(rule));
    }
    let firsts = entries.iter().scan(0, |next, entry| {
        let first = *next;
        *next += entry.count;
        Some(first)
    });
    let firsts: Vec<u32> = firsts.collect();
    let names: Vec<_> = entries.iter().map(|e| e.name.as_str()).collect();
    let (mut objects, mut of) = (Vec::new(), Vec::new());
    for (n, entry) in entries.iter().enumerate() {
        let mut after = Vec::new();
        for place in &entry.after {
            let name = place.text()?;
            let Some(at) = names.iter().position(|known| *known == name) else {
                let instead = instead_of(name, &names);
                return Err(place.fail(format!("unknown object \"{name}\"; {instead}")));
            };
            after.extend(firsts[at]..firsts[at] + entries[at].count);
        }
        for _ in 0..entry.count {
            objects.push(Object {
                after: after.clone(),
                ..entry.template.clone()
            });
            of.push(n);
        }
    }
    Ok((objects, of))
}

#[cfg(test)]
mod tests {
    use sojourn_net::Duration;

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
