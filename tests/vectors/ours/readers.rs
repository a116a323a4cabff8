//! The readers in Rust, C and Go find no difference in the queues of Sojourn, and the first wrong packet of a CoDel
//! that sends what it should drop. `windows.rs` tests those of congestion windows, `tests/python/vectors` those in
//! Python.
//!
//! Without the compiler of a language, its test is skipped.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod queue;
mod windows;

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use queue::Ours;
use serde_json::Value;
use sojourn_vectors::check;

/// A vector that no random number decides.
struct Vector {
    path: PathBuf,
    qdisc: String,
    rate: u64,
    mtu: u64,
    events: Vec<Vec<u64>>,
    marks: BTreeSet<u64>,
    drops: Vec<u64>,
}

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

impl Vector {
    /// `None`: the kernel drew random numbers.
    fn read(path: &Path) -> Option<Self> {
        let json: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
        assert_eq!(
            json["schema"],
            "sojourn-qdisc-vector/1",
            "{}",
            path.display()
        );
        let list = |key: &str| -> Vec<u64> { serde_json::from_value(json[key].clone()).unwrap() };
        Some(Self {
            path: path.to_owned(),
            qdisc: json["qdisc"].as_str().unwrap().to_owned(),
            rate: json["rate_bps"].as_u64().unwrap_or(0),
            mtu: json["mtu"].as_u64().unwrap(),
            events: serde_json::from_value(json.get("events")?.clone()).unwrap(),
            marks: list("marks").into_iter().collect(),
            drops: list("drops"),
        })
    }

    fn queue(&self) -> Ours {
        Ours::new(&self.qdisc, self.rate, self.mtu).unwrap()
    }

    /// What a reader says of a queue that sends the first packet that it should drop.
    fn first_drop(&self) -> String {
        let first = self.drops[0];
        let mut left = self.events.iter().filter(|event| event.len() == 2);
        let next = left.find(|event| event[1] > first).unwrap();
        let [at, expected] = next[..] else {
            unreachable!("a departure");
        };
        format!("at {at} ns: expected packet {expected}, got packet {first}")
    }
}

/// All vectors that no random number decides.
fn vectors() -> Vec<Vector> {
    let files = fs::read_dir(here()).unwrap();
    let mut paths: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    paths.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension == "json")
    });
    paths.sort();
    // Its instances must be asked after each arrival, too: `kernel_vectors.rs` does.
    paths.retain(|path| !path.ends_with("cake_mq.json"));
    let vectors: Vec<_> = paths.iter().filter_map(|path| Vector::read(path)).collect();
    assert!(vectors.len() >= 35, "{} vectors", vectors.len());
    vectors
}

fn codel() -> Vector {
    Vector::read(&here().join("codel.json")).unwrap()
}

/// The folder of the library with the queues.
fn library() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let folder = test.ancestors().nth(2).unwrap().join("examples");
    let file = folder.join("libvectors_queues.so");
    assert!(
        file.exists(),
        "cargo test -p sojourn-vectors builds {}",
        file.display()
    );
    folder
}

/// Runs a compiler; `false`: there is none.
fn compile(what: &str, command: &mut Command) -> bool {
    let Ok(done) = command.output() else {
        let program = command.get_program().display();
        if let Some(path) = std::env::var_os("SOJOURN_SKIPPED") {
            let mut list = OpenOptions::new()
                .create(true)
                .append(true)
                .open(path)
                .unwrap();
            writeln!(list, "reader of test vectors in {what}: no {program}").unwrap();
        }
        return false;
    };
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    true
}

/// What a program prints.
fn output(command: &mut Command) -> String {
    let done = command.output().unwrap();
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    String::from_utf8(done.stdout).unwrap()
}

#[test]
fn rust() {
    for vector in vectors() {
        let difference = check(&vector.events, &vector.marks, &mut vector.queue());
        assert_eq!(difference, None, "{:?}", vector.path);
    }
    let codel = codel();
    let difference = check(&codel.events, &codel.marks, &mut codel.queue().wrong());
    assert_eq!(difference, Some(codel.first_drop()));
}

#[test]
fn a_missing_mark_and_a_packet_too_many_are_differences() {
    let mut vector = Vector::read(&here().join("codel_ecn.json")).unwrap();
    let marked = *vector.marks.first().unwrap();
    vector.marks.remove(&marked);
    let difference = check(&vector.events, &vector.marks, &mut vector.queue()).unwrap();
    let expected = format!("expected packet {marked}, got packet {marked} with CE");
    assert!(difference.ends_with(&expected), "{difference}");
    let mut vector = codel();
    let last = vector.events.pop().unwrap()[1];
    let difference = check(&vector.events, &vector.marks, &mut vector.queue()).unwrap();
    assert_eq!(
        difference,
        format!("at the end: expected no packet, got packet {last}")
    );
}

#[test]
fn c() {
    let (folder, queues) = (tempfile::tempdir().unwrap(), library());
    let program = folder.path().join("check");
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-o"]);
    cc.arg(&program)
        .arg(here().join("ours/check.c"))
        .arg("-L")
        .arg(&queues);
    cc.arg(format!("-Wl,-rpath,{}", queues.display()))
        .arg("-lvectors_queues");
    if !compile("C", &mut cc) {
        return;
    }
    let run = |vector: &Vector, how: &str| {
        let mut command = Command::new(&program);
        command
            .arg(&vector.qdisc)
            .arg(vector.rate.to_string())
            .arg(vector.mtu.to_string());
        let file = File::open(&vector.path).unwrap();
        output(command.arg(how).stdin(file))
    };
    for vector in vectors() {
        assert_eq!(run(&vector, "right").trim(), "", "{:?}", vector.path);
    }
    let codel = codel();
    assert_eq!(run(&codel, "wrong").trim(), codel.first_drop());
}

#[test]
fn go() {
    let (folder, queues) = (tempfile::tempdir().unwrap(), library());
    let program = folder.path().join("check");
    let mut go = Command::new("go");
    go.current_dir(here())
        .args(["build", "-o"])
        .arg(&program)
        .arg("./ours/go");
    let paths = format!("-L{0} -Wl,-rpath,{0}", queues.display());
    let cache = queues.ancestors().nth(2).unwrap().join("go");
    go.env("CGO_ENABLED", "1").env("CGO_LDFLAGS", paths);
    go.env("GOCACHE", cache)
        .env("GOTOOLCHAIN", "local")
        .env("GOFLAGS", "-mod=mod");
    if !compile("Go", &mut go) {
        return;
    }
    let vectors = vectors();
    let mut all = Command::new(&program);
    all.arg("right")
        .args(vectors.iter().map(|vector| &vector.path));
    let printed = output(&mut all);
    assert_eq!(printed.lines().count(), vectors.len());
    for (vector, line) in vectors.iter().zip(printed.lines()) {
        assert_eq!(line, "<nil>", "{:?}", vector.path);
    }
    let codel = codel();
    let printed = output(Command::new(&program).arg("wrong").arg(&codel.path));
    assert_eq!(printed.trim(), codel.first_drop());
}

#[test]
fn readers_have_at_most_40_lines() {
    for entry in fs::read_dir(here().join("readers")).unwrap() {
        let path = entry.unwrap().path();
        // Python keeps what it has compiled there.
        if path.is_dir() {
            continue;
        }
        let lines = fs::read_to_string(&path).unwrap().lines().count();
        assert!(lines <= 40, "{path:?}: {lines} lines");
    }
}
