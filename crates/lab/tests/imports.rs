//! No crate has a circle of imports.
//!
//! # Rule
//!
//! A module and its submodules are one unit for the modules beside it: a parent may name its
//! children and they may name it. Among the children of one parent, a file that names a path into
//! a sibling (`use crate::…`, `use super::…` or such a path in the code) depends on it. A name that
//! a parent re-exports or imports belongs to the sibling that it comes from. These dependencies form
//! no circle. Unit tests and the paths of macros (`$crate::…`) may name anything.

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
    let mut modules = 0;
    let folders = crates.map(|entry| entry.unwrap().path());
    for folder in folders.chain(others.map(|path| root.join(path))) {
        let mut sources = Sources::new();
        collect(&folder.join("src"), &Vec::new(), &mut sources);
        drop_test_modules(&mut sources);
        modules += sources.len();
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let all = circles(&edges(&sources)).into_iter();
        found.extend(all.map(|circle| format!("{name}: {circle}")));
    }
    assert!(modules > 100, "only {modules} modules were found");
    assert!(
        found.is_empty(),
        "circles of imports:\n{}",
        found.join("\n")
    );
}

#[test]
fn a_circle_is_found_through_a_re_export() {
    let module = |path: &str| path.split("::").map(str::to_owned).collect::<Module>();
    let sources = |uses: &str| {
        Sources::from([
            (Vec::new(), "mod a; mod b;".to_owned()),
            (module("a"), "mod inner;\npub use inner::Thing;".to_owned()),
            (module("a::inner"), uses.to_owned()),
            (module("b"), "use crate::a::{Other, Thing};".to_owned()),
        ])
    };
    assert!(circles(&edges(&sources("use super::Other;"))).is_empty());
    let found = circles(&edges(&sources("fn f() { crate::b::g() }")));
    assert_eq!(found, BTreeSet::from(["a, b".to_owned()]));
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
            sources.insert(module, lines.collect::<Vec<_>>().join("\n"));
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

/// Which unit depends on which, both children of one parent.
fn edges(sources: &Sources) -> BTreeMap<Module, BTreeSet<Module>> {
    let names: Names = sources
        .iter()
        .map(|(module, text)| {
            let paths = imports(text).into_iter();
            let last = |path: &str| path.rsplit("::").next().unwrap_or_default().to_owned();
            let names = paths.map(|path| (last(&path), path)).collect();
            (module.clone(), names)
        })
        .collect();
    let mut edges: BTreeMap<Module, BTreeSet<Module>> = BTreeMap::new();
    for (module, text) in sources {
        for path in imports(text).into_iter().chain(inline_paths(text)) {
            let Some(target) = resolve(sources, &names, module, &path, 0) else {
                continue;
            };
            let pairs = module.iter().zip(&target);
            let shared = pairs.take_while(|(a, b)| a == b).count();
            if shared < module.len() && shared < target.len() {
                let from = module[..=shared].to_vec();
                edges
                    .entry(from)
                    .or_default()
                    .insert(target[..=shared].to_vec());
            }
        }
    }
    edges
}

/// The paths of all `use` items, groups taken apart.
fn imports(text: &str) -> Vec<String> {
    let mut paths = Vec::new();
    for item in text.split(';') {
        let item = item.trim_start();
        let start = item.rfind("use ").filter(|&at| {
            let before = item[..at].trim_end();
            let ends = ["", "pub", ")", "}", "]"];
            ends.iter().any(|end| match *end {
                "" => before.is_empty(),
                end => before.ends_with(end),
            })
        });
        if let Some(at) = start {
            expand("", &item[at + 4..], &mut paths);
        }
    }
    paths
}

fn expand(prefix: &str, tree: &str, paths: &mut Vec<String>) {
    let tree = tree.trim();
    let Some((base, rest)) = tree.split_once('{') else {
        let path = tree.split(" as ").next().unwrap_or_default();
        paths.push(format!("{prefix}{path}").split_whitespace().collect());
        return;
    };
    let group = rest.strip_suffix('}').unwrap_or(rest);
    let (mut depth, mut start) = (0, 0);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                expand(&format!("{prefix}{base}"), &group[start..at], paths);
                start = at + 1;
            }
            _ => {}
        }
    }
    if !group[start..].trim().is_empty() {
        expand(&format!("{prefix}{base}"), &group[start..], paths);
    }
}

/// Paths in the code that begin with `crate::` or `super::`.
fn inline_paths(text: &str) -> Vec<String> {
    // `$crate` is the path of a macro, not of the module that defines it.
    let part_of_path = |c: char| c.is_ascii_alphanumeric() || "_:$".contains(c);
    text.split(|c| !part_of_path(c))
        .filter(|path| path.starts_with("crate::") || path.starts_with("super::"))
        .map(|path| path.trim_end_matches(':').to_owned())
        .collect()
}

/// The module that holds what `path` names in `module`; `None` outside the crate.
fn resolve(
    sources: &Sources,
    names: &Names,
    module: &Module,
    path: &str,
    depth: u32,
) -> Option<Module> {
    const MOST_RE_EXPORTS: u32 = 5;
    let mut parts = path.split("::").peekable();
    let child = |at: &Module, name: &str| {
        let mut child = at.clone();
        child.push(name.to_owned());
        sources.contains_key(&child).then_some(child)
    };
    let mut at = match *parts.peek()? {
        "crate" => Module::new(),
        "super" | "self" => module.clone(),
        first => child(module, first).map(|_| module.clone())?,
    };
    while let Some(part) = parts.next_if(|part| ["crate", "super", "self"].contains(part)) {
        if part == "super" {
            at.pop()?;
        }
    }
    while let Some(next) = parts.peek().and_then(|part| child(&at, part)) {
        at = next;
        parts.next();
    }
    let behind = parts.next().and_then(|name| names.get(&at)?.get(name));
    let behind = behind.filter(|_| depth < MOST_RE_EXPORTS);
    behind
        .and_then(|path| resolve(sources, names, &at, path, depth + 1))
        .or(Some(at))
}

/// The circles: modules that depend on each other, by their names.
fn circles(edges: &BTreeMap<Module, BTreeSet<Module>>) -> BTreeSet<String> {
    let reach: BTreeMap<_, _> = edges
        .keys()
        .map(|from| (from, reached(edges, from)))
        .collect();
    let mutual = |a: &Module, b: &Module| reach[a].contains(b) && reach[b].contains(a);
    let members = edges
        .keys()
        .filter(|module| reach[module].contains(*module));
    members
        .map(|module| {
            let circle = edges.keys().filter(|other| mutual(module, other));
            let names: Vec<_> = circle.map(|module| module.join("::")).collect();
            names.join(", ")
        })
        .collect()
}

/// What `from` depends on, directly or not.
fn reached(edges: &BTreeMap<Module, BTreeSet<Module>>, from: &Module) -> BTreeSet<Module> {
    let mut reached = BTreeSet::new();
    let mut next = vec![from];
    while let Some(module) = next.pop() {
        for target in edges.get(module).into_iter().flatten() {
            if reached.insert(target.clone()) {
                next.push(target);
            }
        }
    }
    reached
}
