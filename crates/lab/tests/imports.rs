//! The modules of a crate form no circle of imports, except parents with their children.
//!
//! # Rule
//!
//! The modules of one parent, each taken together with its submodules, import from each other in one direction. A
//! parent and its children may import from each other: `mod.rs` may define what its children share, and use them.
//! Crates depend on each other in one direction, too (`architecture.rs`).
//!
//! A file imports from the file that *defines* what it names, in a `use` item or by a path in the code. A re-export is
//! an import of the parent, and what is imported through it belongs to the file that it comes from: a child that names
//! what its sibling defines imports from that sibling. `mod` declarations are no imports, nor are fields and methods of
//! a value. Unit tests and the paths of macros (`$crate::…`) may name anything; what a line `Name: path { A => B }`
//! gives to a macro that imports `crate::path` is an import.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A module by its path; the root of a crate is empty.
type Module = Vec<String>;

/// Modules and the text of their files.
type Sources = BTreeMap<Module, String>;

/// Names that a module imports or re-exports, and the paths behind them.
type Names = BTreeMap<Module, BTreeMap<String, String>>;

/// Which module imports from which, and one of the imported names.
type Edges = BTreeMap<Module, BTreeMap<Module, String>>;

#[test]
fn no_crate_has_a_circle_of_imports() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let crates = fs::read_dir(root.join("crates")).unwrap();
    let others = [
        "benches",
        "tests/parity",
        "tests/quic-parity",
        "examples/external-queue",
    ];
    let mut found = Vec::new();
    let (mut modules, mut imports) = (0, 0);
    let folders = crates.map(|entry| entry.unwrap().path());
    for folder in folders.chain(others.map(|path| root.join(path))) {
        let mut sources = Sources::new();
        collect(&folder.join("src"), &Vec::new(), &mut sources);
        drop_test_modules(&mut sources);
        modules += sources.len();
        imports += edges(&sources).values().map(BTreeMap::len).sum::<usize>();
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let all = sibling_circles(&sources).into_iter();
        found.extend(all.map(|circle| format!("{name}: {circle}")));
    }
    assert!(modules > 100, "only {modules} modules were found");
    assert!(imports > 1_000, "only {imports} imports were found");
    assert!(
        found.is_empty(),
        "circles of imports:\n{}",
        found.join("\n")
    );
}

/// A crate of modules with the given texts.
fn sources<const N: usize>(modules: [(&str, &str); N]) -> Sources {
    let parts = |path: &str| path.split("::").map(str::to_owned).collect::<Module>();
    let module = |path: &str| match path {
        "" => Module::new(),
        path => parts(path),
    };
    let texts = modules.map(|(path, text)| (module(path), text.to_owned()));
    Sources::from(texts)
}

#[test]
fn a_circle_is_found_through_a_re_export() {
    let with = |inner: &str| {
        sibling_circles(&sources([
            ("", "mod a; mod b;"),
            ("a", "mod inner; mod other;\npub use inner::Thing;"),
            ("a::inner", inner),
            ("a::other", "pub fn help() {}"),
            ("b", "use crate::a::Thing;\nfn g(thing: Thing) {}"),
        ]))
    };
    assert!(with("use super::other::help;\nstruct Thing;").is_empty());
    let found = with("struct Thing;\nfn f() { crate::b::g() }");
    let circle = "a -> b (g), b -> a (Thing)".to_owned();
    assert_eq!(found, BTreeSet::from([circle]));
}

#[test]
fn a_circle_is_found_between_modules_whose_files_form_none() {
    let found = sibling_circles(&sources([
        ("a", "mod low; mod high;"),
        ("a::low", "pub struct Low;"),
        ("a::high", "use crate::b::Middle;"),
        ("b", "use crate::a::low::Low;\npub struct Middle(Low);"),
    ]));
    let circle = "a -> b (Middle), b -> a (Low)".to_owned();
    assert_eq!(found, BTreeSet::from([circle]));
}

#[test]
fn a_parent_and_its_children_may_import_each_other_but_children_only_one_way() {
    let with = |parent: &str, first: &str, second: &str| {
        sibling_circles(&sources([
            ("", "mod a;"),
            ("a", parent),
            ("a::b", first),
            ("a::c", second),
        ]))
    };
    let parent = "mod b; mod c;\npub use c::State;\npub struct Top;\nfn f() { b::run() }";
    let state = "use super::Top;\npub(super) struct State;\npub(super) fn step() {}";
    assert!(with(parent, "use super::Top;\npub fn run() {}", state).is_empty());
    assert!(with(parent, "use super::State;\npub fn run() {}", state).is_empty());
    // What the parent re-exports belongs to the sibling, and so does what it only declares.
    let other = "use super::b::run;\npub(super) struct State;\npub(super) fn step() {}";
    for (first, name) in [
        ("use super::State;\npub fn run() {}", "State"),
        ("use super::State as S;\npub fn run() {}", "State"),
        (
            "use crate::a;\npub(in crate::a) fn run(_: a::State) {}",
            "State",
        ),
        ("use super::c;\npub fn run() { c::step() }", "step"),
    ] {
        let circle = format!("a::b -> a::c ({name}), a::c -> a::b (run)");
        assert_eq!(with(parent, first, other), BTreeSet::from([circle]));
    }
}

#[test]
fn a_line_of_a_registry_is_an_import() {
    let found = sibling_circles(&sources([
        ("", "mod list; mod queue;"),
        (
            "list",
            "macro_rules! all { () => { $(pub use crate::$($path)::+::{$params, $queue};)* } }\n\
             pub fn known() {}\nall! {\n    Red: queue { RedParams => Red },\n}",
        ),
        (
            "queue",
            "use crate::list::known;\npub struct RedParams;\npub struct Red;",
        ),
    ]));
    let circle = "list -> queue (Red), queue -> list (known)".to_owned();
    assert_eq!(found, BTreeSet::from([circle]));
}

/// Collects the modules below `folder`, those of tests left out.
fn collect(folder: &Path, at: &Module, sources: &mut Sources) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries {
        let path: PathBuf = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let mut module = at.clone();
        if path.is_dir() {
            module.push(name);
            collect(&path, &module, sources);
        } else if path.extension().is_some_and(|kind| kind == "rs") && name != "tests" {
            if !["lib", "main", "mod"].contains(&name.as_str()) {
                module.push(name);
            }
            let text = fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
            let lines = code.lines().map(|line| line.split("//").next().unwrap());
            let code = lines.collect::<Vec<_>>().join("\n");
            // A path in a visibility names nothing.
            sources.insert(module, code.replace("pub(in ", "pub(in::"));
        }
    }
}

/// Drops the modules that their parents declare for tests only.
fn drop_test_modules(sources: &mut Sources) {
    let mut tests = BTreeSet::new();
    for (module, text) in &*sources {
        for declaration in text.split("#[cfg(test)]").skip(1) {
            let name = declaration.trim_start().strip_prefix("mod ");
            let name = name
                .and_then(|rest| rest.split_once(';'))
                .map(|(name, _)| name);
            tests.extend(name.map(|name| [&module[..], &[name.to_owned()]].concat()));
        }
    }
    sources.retain(|module, _| !tests.iter().any(|test| module.starts_with(test)));
}

/// The circles among the modules of one parent, each taken together with its submodules.
fn sibling_circles(sources: &Sources) -> BTreeSet<String> {
    let mut modules = Edges::new();
    for (from, targets) in edges(sources) {
        for (to, name) in targets {
            let shared = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
            if shared < from.len() && shared < to.len() {
                let (from, to) = (from[..=shared].to_vec(), to[..=shared].to_vec());
                modules.entry(from).or_default().insert(to, name);
            }
        }
    }
    circles(&modules)
}

/// Which file imports from which.
fn edges(sources: &Sources) -> Edges {
    let names: Names = sources
        .iter()
        .map(|(module, text)| (module.clone(), imports(text).into_iter().collect()))
        .collect();
    let mut edges = Edges::new();
    for (module, text) in sources {
        let imported = names[module].values().cloned();
        for path in imported.chain(inline_paths(text)).chain(listed(text)) {
            if let Some((target, Some(name))) = resolve(sources, &names, module, &path, 0)
                && target != *module
            {
                let from = edges.entry(module.clone()).or_default();
                from.insert(target, name);
            }
        }
    }
    edges
}

/// What all `use` items bring into scope: names and paths, groups taken apart.
fn imports(text: &str) -> Vec<(String, String)> {
    let mut names = Vec::new();
    for item in text.split(';') {
        let item = item.trim_start();
        let start = item.rfind("use ").filter(|&at| {
            let before = item[..at].trim_end();
            let ends = ["", "pub", ")", "}", "]", "{"];
            ends.iter().any(|end| match *end {
                "" => before.is_empty(),
                end => before.ends_with(end),
            })
        });
        // The paths of macros are those of the modules that call them.
        if let Some(at) = start.filter(|&at| !item[at..].contains('$')) {
            expand("", &item[at + 4..], &mut names);
        }
    }
    names
}

fn expand(prefix: &str, tree: &str, names: &mut Vec<(String, String)>) {
    let tree = tree.trim();
    let Some((base, rest)) = tree.split_once('{') else {
        let (path, alias) = tree.split_once(" as ").unwrap_or((tree, ""));
        let path: String = format!("{prefix}{path}").split_whitespace().collect();
        let path = path.strip_suffix("::self").unwrap_or(&path);
        let last = path.rsplit("::").next().unwrap_or_default();
        let name = if alias.is_empty() { last } else { alias.trim() };
        // Names without one are kept apart by their paths.
        let name = if ["_", "*"].contains(&name) {
            path
        } else {
            name
        };
        names.push((name.to_owned(), path.to_owned()));
        return;
    };
    let group = rest.strip_suffix('}').unwrap_or(rest);
    let (mut depth, mut start) = (0, 0);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                expand(&format!("{prefix}{base}"), &group[start..at], names);
                start = at + 1;
            }
            _ => {}
        }
    }
    if !group[start..].trim().is_empty() {
        expand(&format!("{prefix}{base}"), &group[start..], names);
    }
}

/// Paths in the code.
fn inline_paths(text: &str) -> Vec<String> {
    let part_of_path = |c: char| c.is_ascii_alphanumeric() || "_:$".contains(c);
    text.split(|c| !part_of_path(c))
        .filter(|path| path.contains("::") && !path.starts_with(':') && !path.contains('$'))
        .map(|path| path.trim_end_matches(':').to_owned())
        .collect()
}

/// What the lines `Name: path { A => B },` of a file name, if a macro of the file imports it.
fn listed(text: &str) -> Vec<String> {
    if !text.contains("use crate::$($path)::+::{") {
        return Vec::new();
    }
    let line = |line: &str| {
        let (path, names) = line.split_once(": ")?.1.split_once(" { ")?;
        let (one, other) = names.strip_suffix(" },")?.split_once(" => ")?;
        Some([one, other].map(|name| format!("crate::{path}::{name}")))
    };
    let calls = text.lines().filter(|line| !line.contains('$'));
    calls.filter_map(line).flatten().collect()
}

/// The module that defines what `path` names in `module`, and the name; without a name when the
/// path leads to a module, `None` outside the crate.
fn resolve(
    sources: &Sources,
    names: &Names,
    module: &Module,
    path: &str,
    depth: u32,
) -> Option<(Module, Option<String>)> {
    const MOST_RE_EXPORTS: u32 = 8;
    if depth > MOST_RE_EXPORTS {
        return None;
    }
    let mut parts = path.split("::").peekable();
    let mut at = module.clone();
    let relative = |part: &&str| ["crate", "super", "self"].contains(part);
    let is_relative = parts.peek().is_some_and(relative);
    while let Some(part) = parts.next_if(relative) {
        match part {
            "crate" => at.clear(),
            "super" => drop(at.pop()?),
            _ => {}
        }
    }
    let mut is_first = !is_relative;
    for part in parts {
        let child = [&at[..], &[part.to_owned()]].concat();
        let behind = names.get(&at).and_then(|names| names.get(part));
        if sources.contains_key(&child) {
            at = child;
        } else if let Some(behind) = behind.filter(|behind| **behind != path || depth > 0) {
            match resolve(sources, names, &at, behind, depth + 1)? {
                (module, None) => at = module,
                item => return Some(item),
            }
        } else if is_first || declares(sources, &at, part) {
            return None;
        } else {
            return Some((at, Some(part.to_owned())));
        }
        is_first = false;
    }
    Some((at, None))
}

/// Whether a module declares a submodule whose file is elsewhere.
fn declares(sources: &Sources, module: &Module, name: &str) -> bool {
    let text = sources.get(module).map_or("", String::as_str);
    text.contains(&format!("mod {name};"))
}

/// The circles: modules that import from each other, by their names.
fn circles(edges: &Edges) -> BTreeSet<String> {
    let reach: BTreeMap<_, _> = edges
        .keys()
        .map(|from| (from, reached(edges, from)))
        .collect();
    let mutual = |a: &Module, b: &Module| {
        reach[a].contains(b) && reach.get(b).is_some_and(|reached| reached.contains(a))
    };
    let members = edges
        .keys()
        .filter(|module| reach[module].contains(*module));
    members
        .map(|module| {
            let circle = edges.iter().filter(|(other, _)| mutual(module, other));
            let all = circle.flat_map(|(from, targets)| {
                let within = targets.iter().filter(|(to, _)| mutual(module, to));
                within.map(move |(to, name)| (from, to, name))
            });
            let name = |module: &Module| match &module[..] {
                [] => "lib".to_owned(),
                parts => parts.join("::"),
            };
            let text =
                all.map(|(from, to, what)| format!("{} -> {} ({what})", name(from), name(to)));
            text.collect::<Vec<_>>().join(", ")
        })
        .collect()
}

/// What `from` depends on, directly or not.
fn reached(edges: &Edges, from: &Module) -> BTreeSet<Module> {
    let mut reached = BTreeSet::new();
    let mut next = vec![from];
    while let Some(module) = next.pop() {
        for target in edges.get(module).into_iter().flat_map(BTreeMap::keys) {
            if reached.insert(target.clone()) {
                next.push(target);
            }
        }
    }
    reached
}
