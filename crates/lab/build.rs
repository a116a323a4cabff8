//! Tells the crate which commit it is built from.

use std::env;
use std::path::Path;
use std::process::Command;

fn main() {
    // A packager outside Git may say the commit.
    println!("cargo::rerun-if-env-changed=SOJOURN_COMMIT");
    println!("cargo::rerun-if-changed=build.rs");
    let commit = env::var("SOJOURN_COMMIT").ok().or_else(commit);
    println!(
        "cargo::rustc-env=SOJOURN_BUILD_COMMIT={}",
        commit.unwrap_or_default()
    );
    let target = env::var("TARGET").unwrap_or_default();
    println!("cargo::rustc-env=SOJOURN_BUILD_TARGET={target}");
}

/// The commit, with `-dirty` if files differ from it; nothing outside Git, or in the repository of another project.
fn commit() -> Option<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let top = git(&["rev-parse", "--show-toplevel"])?;
    if Path::new(&top).canonicalize().ok()? != root.canonicalize().ok()? {
        return None;
    }
    let folder = git(&["rev-parse", "--absolute-git-dir"])?;
    // `HEAD` moves with a checkout, its log with a commit, the index with staging.
    for name in ["HEAD", "logs/HEAD", "index"] {
        let file = Path::new(&folder).join(name);
        if file.exists() {
            println!("cargo::rerun-if-changed={}", file.display());
        }
    }
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let changes = git(&["status", "--porcelain", "--untracked-files=no"])?;
    Some(if changes.is_empty() {
        commit
    } else {
        format!("{commit}-dirty")
    })
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
