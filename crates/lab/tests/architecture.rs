//! The layout of the workspace: who may depend on whom, and how long a file may be.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Members and what they may depend on, besides libraries from elsewhere.
const EDGES: [(&str, &[&str]); 18] = [
    ("sojourn-net", &[]),
    ("sojourn-prefetch", &[]),
    ("sojourn-schema", &["sojourn-net"]),
    (
        "sojourn-qdisc",
        &["sojourn-net", "sojourn-prefetch", "sojourn-schema"],
    ),
    (
        "sojourn-transport",
        &["sojourn-net", "sojourn-prefetch", "sojourn-schema"],
    ),
    ("sojourn-apps", &["sojourn-net", "sojourn-transport"]),
    ("sojourn-capture", &["sojourn-net", "sojourn-qdisc"]),
    (
        "sojourn-scenario",
        &[
            "sojourn-net",
            "sojourn-schema",
            "sojourn-qdisc",
            "sojourn-transport",
            "sojourn-apps",
        ],
    ),
    (
        "sojourn-records",
        &["sojourn-net", "sojourn-qdisc", "sojourn-apps"],
    ),
    ("sojourn-store", &[]),
    (
        "sojourn-backend",
        &["sojourn-net", "sojourn-scenario", "sojourn-records"],
    ),
    (
        "sojourn-link",
        &[
            "sojourn-net",
            "sojourn-qdisc",
            "sojourn-scenario",
            "sojourn-records",
        ],
    ),
    (
        "sojourn-sim",
        &[
            "sojourn-net",
            "sojourn-link",
            "sojourn-prefetch",
            "sojourn-qdisc",
            "sojourn-transport",
            "sojourn-apps",
            "sojourn-scenario",
            "sojourn-records",
            "sojourn-backend",
            "sojourn-capture",
        ],
    ),
    (
        "sojourn-live",
        &[
            "sojourn-net",
            "sojourn-link",
            "sojourn-qdisc",
            "sojourn-transport",
            "sojourn-apps",
            "sojourn-scenario",
            "sojourn-records",
            "sojourn-capture",
            "sojourn-backend",
        ],
    ),
    (
        "sojourn-lab",
        &[
            "sojourn-apps",
            "sojourn-net",
            "sojourn-qdisc",
            "sojourn-scenario",
            "sojourn-records",
            "sojourn-store",
            "sojourn-backend",
        ],
    ),
    (
        "sojourn-py",
        &[
            "sojourn-net",
            "sojourn-qdisc",
            "sojourn-transport",
            "sojourn-backend",
            "sojourn-lab",
            "sojourn-sim",
            "sojourn-live",
        ],
    ),
    ("sojourn-extension", &["sojourn-py"]),
    ("external-queue", &["sojourn-py", "sojourn-qdisc"]),
];

/// Members that measure the others and may depend on any.
const MEASURING: [&str; 3] = ["sojourn-bench", "sojourn-parity", "sojourn-quic-parity"];

/// The hard limit of CONTRIBUTING.
const MAX_LINES: usize = 1_000;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn dependencies_point_one_way() {
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--no-deps",
            "--offline",
            "--format-version",
            "1",
        ])
        .current_dir(root())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo metadata: {errors}");
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let allowed: BTreeMap<_, _> = EDGES.into_iter().collect();
    let mut seen = 0;
    let mut missing: Vec<_> = allowed.keys().chain(&MEASURING).copied().collect();
    for package in metadata["packages"].as_array().unwrap() {
        let name = package["name"].as_str().unwrap();
        missing.retain(|listed| *listed != name);
        if MEASURING.contains(&name) {
            continue;
        }
        let allowed = allowed.get(name);
        let allowed = allowed.unwrap_or_else(|| panic!("{name} is no crate of the layout"));
        for dependency in package["dependencies"].as_array().unwrap() {
            let on = dependency["name"].as_str().unwrap();
            let is_ours = on.starts_with("sojourn-") && dependency["kind"].as_str() != Some("dev");
            assert!(
                !is_ours || allowed.contains(&on),
                "{name} may not depend on {on}"
            );
            seen += usize::from(is_ours);
        }
    }
    assert!(seen >= 10, "only {seen} edges were seen");
    assert!(missing.is_empty(), "no such crates: {missing:?}");
}

#[test]
fn files_are_short_and_leave_nothing_to_do() {
    let mut files = Vec::new();
    let folders = [
        "benches",
        "crates",
        "docs/_ext",
        "examples",
        "papers",
        "python",
        "tests",
        "tools",
    ];
    for folder in folders {
        assert!(root().join(folder).is_dir(), "no folder {folder}");
        sources(&root().join(folder), &mut files);
    }
    assert!(files.len() > 30, "only {} files were found", files.len());
    // In two pieces, so that this file is not found.
    let unfinished = ["TO", "DO"].concat();
    let mut faults = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let lines = text.lines().count();
        if lines > MAX_LINES {
            faults.push(format!("{}: {lines} lines", file.display()));
        }
        if !is_described(&file, &text) {
            faults.push(format!(
                "{}: no description in its first line",
                file.display()
            ));
        }
        if let Some(n) = text.lines().position(|line| line.contains(&unfinished)) {
            faults.push(format!("{}:{}: {unfinished}", file.display(), n + 1));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Whether a file says in its first line what it is for; empty packages and unit tests need not.
fn is_described(file: &Path, text: &str) -> bool {
    let first = text
        .lines()
        .find(|line| !line.starts_with("#!"))
        .unwrap_or_default();
    let begins: &[&str] = if file.extension().is_some_and(|kind| kind == "rs") {
        &["//!", "#[doc"]
    } else {
        &["\"\"\"", "r\"\"\"", "# "]
    };
    let is_test = file.file_name().is_some_and(|name| name == "tests.rs");
    is_test || text.trim().is_empty() || begins.iter().any(|begin| first.starts_with(begin))
}

/// Collects the Rust and Python files below `folder`.
fn sources(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let kind = path.extension().unwrap_or_default();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            sources(&path, files);
        } else if kind == "rs" || kind == "py" {
            files.push(path);
        }
    }
}
