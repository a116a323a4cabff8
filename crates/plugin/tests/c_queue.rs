//! A queue in C: the header agrees with the interface, and the library behaves as a queue of Sojourn.
//!
//! Without a C compiler the tests are skipped.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::mem::offset_of;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use sojourn_plugin::abi::{
    ABI, Calls, Headers, Host, Link, Parameter, Queue, Statistic, Text, Ticket, Value,
};
use sojourn_plugin::host::Plugin;
use sojourn_plugin::testing::{Op, TestPacket, check_qdisc};
use sojourn_plugin::{LinkFacts, Number, Qdisc, QdiscSpec, QueueClass as _, Rng, register};

/// Compiles a file of this folder; `None` without a compiler.
fn built(file: &str, output: &Path, options: &[&str]) -> Option<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let done = Command::new("cc")
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-I"])
        .arg(here.join("../../include"))
        .args(options)
        .arg("-o")
        .arg(output)
        .arg(here.join("tests").join(file))
        .output();
    let Ok(done) = done else {
        if let Some(path) = std::env::var_os("SOJOURN_SKIPPED") {
            let mut list = OpenOptions::new()
                .create(true)
                .append(true)
                .open(path)
                .unwrap();
            writeln!(list, "queues in C: no C compiler (cc)").unwrap();
        }
        return None;
    };
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    Some(output.to_owned())
}

fn library(folder: &Path, name: &str, options: &[&str]) -> Option<PathBuf> {
    let options: Vec<_> = ["-shared", "-fPIC"]
        .iter()
        .chain(options)
        .copied()
        .collect();
    built("tail.c", &folder.join(name), &options)
}

#[test]
fn the_header_has_the_layout_of_the_interface() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = built("layout.c", &folder.path().join("layout"), &[]) else {
        return;
    };
    let found = Command::new(program).output().unwrap().stdout;
    let mut expected = String::new();
    macro_rules! lines {
        ($($name:literal: $value:expr;)*) => {
            $(writeln!(expected, "{} {}", $name, $value).unwrap();)*
        };
    }
    lines! {
        "text": size_of::<Text>();
        "packet": size_of::<Ticket>();
        "headers": size_of::<Headers>();
        "value": size_of::<Value>();
        "parameter": size_of::<Parameter>();
        "link": size_of::<Link>();
        "statistic": size_of::<Statistic>();
        "host": size_of::<Host>();
        "calls": size_of::<Calls>();
        "queue": size_of::<Queue>();
        "headers.sacks": offset_of!(Headers, sacks);
        "headers.other_options": offset_of!(Headers, other_options);
        "value.real": offset_of!(Value, real);
        "parameter.words": offset_of!(Parameter, words);
        "parameter.of": offset_of!(Parameter, of);
        "parameter.start": offset_of!(Parameter, start);
        "link.name": offset_of!(Link, name);
        "statistic.real": offset_of!(Statistic, real);
        "calls.fail": offset_of!(Calls, fail);
        "queue.parameters": offset_of!(Queue, parameters);
        "queue.create": offset_of!(Queue, create);
        "queue.dequeue": offset_of!(Queue, dequeue);
        "queue.next_timer": offset_of!(Queue, next_timer);
        "queue.classes": offset_of!(Queue, classes);
        "abi": ABI;
    }
    assert_eq!(String::from_utf8(found).unwrap(), expected);
}

/// Random traffic.
fn operations(seed: u64) -> Vec<Op> {
    let mut rng = Rng::new(seed);
    (0..400).map(|_| Op::decode(rng.next_u64())).collect()
}

#[test]
fn a_queue_in_c_is_a_queue() {
    let folder = tempfile::tempdir().unwrap();
    let Some(file) = library(folder.path(), "libtail.so", &[]) else {
        return;
    };
    let plugin = Plugin::load(&file).unwrap();
    assert_eq!(plugin.version(), "1.2");
    let name = plugin.name().to_owned();
    assert!(name.starts_with("plugin:tail:"), "{name}");
    register(Arc::new(plugin)).unwrap();
    assert_eq!(
        QdiscSpec::parse(&format!("{name} limit 0"))
            .unwrap_err()
            .to_string(),
        format!("{name}: limit 0 is out of range; expected 1 to 100000")
    );
    let spec = QdiscSpec::parse(&format!("{name} limit 9")).unwrap();
    let build = || spec.build::<TestPacket>(&LinkFacts::default(), Rng::new(1));
    let (mut drops, mut marks) = (0, 0);
    for seed in 0..50 {
        let history = check_qdisc(build, &operations(seed));
        drops += history.recorder.drops.len();
        marks += history.recorder.marks.len();
    }
    assert!(drops > 100 && marks > 100, "{drops} drops, {marks} marks");
    let [statistic] = build().statistics()[..] else {
        panic!("not one statistic");
    };
    assert_eq!(
        (statistic.name, statistic.value),
        ("drops_tail", Number::Count(0))
    );
}

#[test]
fn a_library_that_is_built_again_is_another_queue() {
    let folder = tempfile::tempdir().unwrap();
    let Some(file) = library(folder.path(), "libtail.so", &[]) else {
        return;
    };
    let first = Plugin::load(&file).unwrap();
    let new = library(folder.path(), "new.so", &["-DVERSION=\"9.9\""]).unwrap();
    fs::rename(new, &file).unwrap();
    let second = Plugin::load(&file).unwrap();
    assert_eq!((first.version(), second.version()), ("1.2", "9.9"));
    assert_ne!(first.sha256(), second.sha256());
}

#[test]
fn what_is_no_plug_in_is_refused_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |file: &Path| Plugin::load(file).unwrap_err().to_string();
    let text = folder.path().join("text.so");
    fs::write(&text, "#!/bin/sh\n").unwrap();
    assert!(
        refused(&text).starts_with("not a shared library: "),
        "{}",
        refused(&text)
    );
    let absent = refused(&folder.path().join("absent.so"));
    assert!(absent.starts_with("cannot read it: "), "{absent}");
    for (option, problem) in [
        (
            "-DNO_SYMBOL",
            "no function sojourn_plugin: not a Sojourn plug-in",
        ),
        (
            "-DNO_PARAMETERS",
            "parameter_count is 1, but parameters is null",
        ),
        (
            "-DOTHER_ABI",
            "version 2 of the plug-in interface; this Sojourn has version 1",
        ),
    ] {
        let file = folder.path().join(format!("lib{option}.so"));
        let Some(file) = library(folder.path(), file.to_str().unwrap(), &[option]) else {
            return;
        };
        let error = refused(&file);
        assert!(error.starts_with(problem), "{error}");
        assert_eq!(error.lines().count(), 1);
    }
}
