//! The examples in C, Go and JavaScript do what the Rust crate does, event by event; the header agrees with Rust.
//!
//! What the machine lacks a compiler for is skipped. JavaScript needs a build of its own: `make test-full`.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::env;
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::mem::offset_of;
use std::path::{Path as File, PathBuf};
use std::process::Command;

use sojourn_path::{Bottleneck, Direction, Duration, Ecn, Instant, Path, udp_flow};
use sojournpath::abi::{ABI, Config, Counters, Delivery, EVENTS, Event, STRICT, Statistic};

const GAP: Duration = Duration::from_micros(400);
const END: Instant = Instant::from_millis(2_000);

fn root() -> PathBuf {
    File::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

/// Adds a line to the list of skipped tests.
fn skip(reason: &str) {
    eprintln!("skipped: {reason}");
    if let Some(path) = env::var_os("SOJOURN_SKIPPED") {
        let mut list = OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .unwrap();
        writeln!(list, "{reason}").unwrap();
    }
}

/// Whether a program can be started.
fn is_there(program: &str, option: &str) -> bool {
    Command::new(program)
        .arg(option)
        .output()
        .is_ok_and(|done| done.status.success())
}

fn output(command: &mut Command) -> String {
    let done = command.output().unwrap();
    assert!(
        done.status.success(),
        "{command:?}\n{}",
        String::from_utf8_lossy(&done.stderr)
    );
    String::from_utf8(done.stdout).unwrap()
}

/// Where cargo has put the library of this test.
fn libraries() -> PathBuf {
    let folder = env::current_exe().unwrap().parent().unwrap().to_owned();
    assert!(
        folder.join("libsojournpath.so").exists(),
        "{}",
        folder.display()
    );
    folder
}

/// The bytes of an event as in C.
fn bytes(event: Event) -> Vec<u8> {
    let mut all = [event.at, event.packet, event.waited]
        .map(u64::to_le_bytes)
        .concat();
    all.extend(event.size.to_le_bytes());
    all.extend([event.direction, event.kind, event.reason, event.reserved]);
    all
}

/// What the examples do, with the Rust crate.
fn native() -> String {
    let text = "rate 10mbit delay 10ms jitter 2ms loss 1% drop 3,4,5 qdisc fq_codel";
    let forward: Bottleneck = text.parse().unwrap();
    let mut path: Path = Path::builder()
        .forward(forward)
        .seed(1)
        .events()
        .build()
        .unwrap();
    let (mut events, mut digest) = (0, 0xCBF2_9CE4_8422_2325_u64);
    let (mut now, mut next, mut sent, mut arrived) = (Instant::ZERO, Some(Instant::ZERO), 0, 0);
    loop {
        while let Some(delivery) = path.poll(now) {
            arrived += 1;
            if delivery.direction == Direction::Forward && delivery.id.0 % 2 == 0 {
                path.push_reverse(now, vec![0; 40], Ecn::NotEct, udp_flow(0));
            }
        }
        if next == Some(now) {
            let flow = sent % 2;
            let ecn = [Ecn::Ect0, Ecn::NotEct][usize::from(flow)];
            path.push(now, vec![0; 1_200], ecn, udp_flow(flow));
            sent += 1;
            next = Some(now + GAP).filter(|next| *next < END);
        }
        for event in path.events() {
            for byte in bytes(event.into()) {
                digest = (digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
            }
            events += 1;
        }
        match path.deadline().into_iter().chain(next).min() {
            Some(due) => now = due,
            None => break,
        }
    }
    let counters = path.counters(Direction::Forward);
    let p95 = path.sojourn(Direction::Forward).quantile(0.95).unwrap() / 1_000;
    let (dropped, marked, lost) = (
        counters.drops_aqm,
        counters.marks_aqm,
        counters.lost_packets,
    );
    assert!(dropped > 10 && marked > 10 && lost > 10, "{counters:?}");
    format!(
        "arrived {arrived}, dropped {dropped}, marked {marked}, lost {lost}, p95 {p95} us, events {events}, \
         digest {digest:016x}\n"
    )
}

/// Compiles a program in C against the header.
fn compiled(file: &str, program: &File, options: &[String]) -> bool {
    if !is_there("cc", "--version") {
        skip("paths in C: no C compiler (cc)");
        return false;
    }
    let mut command = Command::new("cc");
    command.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-I"]);
    command
        .arg(root().join("include"))
        .arg("-o")
        .arg(program)
        .arg(root().join(file))
        .args(options);
    output(&mut command);
    true
}

#[test]
fn the_loop_in_c_has_the_same_events() {
    let folder = tempfile::tempdir().unwrap();
    let (program, from) = (folder.path().join("loop"), libraries());
    let from = from.display();
    let options = [
        format!("-L{from}"),
        "-lsojournpath".to_owned(),
        format!("-Wl,-rpath,{from}"),
    ];
    if compiled("examples/path/loop.c", &program, &options) {
        assert_eq!(output(&mut Command::new(program)), native());
    }
}

#[test]
fn the_loop_in_go_has_the_same_events() {
    if !is_there("go", "version") || !is_there("cc", "--version") {
        return skip("paths in Go: no Go (go) or no C compiler (cc)");
    }
    let from = libraries();
    let from = from.display();
    let mut command = Command::new("go");
    command
        .args(["run", "examples/path/loop.go"])
        .current_dir(root());
    command
        .env("CGO_ENABLED", "1")
        .env("CGO_LDFLAGS", format!("-L{from} -Wl,-rpath,{from}"));
    assert_eq!(output(&mut command), native());
}

#[test]
#[ignore = "builds the library for WebAssembly: make test-full"]
fn the_loop_in_javascript_has_the_same_events() {
    const TARGET: &str = "wasm32-unknown-unknown";
    if !is_there("node", "--version") {
        return skip("paths in JavaScript: no node");
    }
    let sysroot = output(
        Command::new("rustc")
            .args(["--print", "sysroot"])
            .current_dir(root()),
    );
    if !File::new(sysroot.trim())
        .join("lib/rustlib")
        .join(TARGET)
        .exists()
    {
        return skip("paths in JavaScript: no wasm32 (rustup target add wasm32-unknown-unknown)");
    }
    let folder = root().join("target/wasm");
    let mut build = Command::new(env!("CARGO"));
    build.args([
        "build",
        "--quiet",
        "--release",
        "-p",
        "sojourn-path-c",
        "--target",
        TARGET,
    ]);
    output(build.env("CARGO_TARGET_DIR", &folder).current_dir(root()));
    let module = folder.join(TARGET).join("release/sojournpath.wasm");
    let mut command = Command::new("node");
    command
        .arg(root().join("examples/path/loop.mjs"))
        .arg(module);
    assert_eq!(output(&mut command), native());
}

#[test]
fn the_header_has_the_layout_of_the_interface() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("layout");
    if !compiled("crates/path-c/tests/layout.c", &program, &[]) {
        return;
    }
    let mut expected = String::new();
    macro_rules! lines {
        ($($name:literal: $value:expr;)*) => {
            $(writeln!(expected, "{} {}", $name, $value).unwrap();)*
        };
    }
    lines! {
        "path_config": size_of::<Config>();
        "delivery": size_of::<Delivery>();
        "event": size_of::<Event>();
        "counters": size_of::<Counters>();
        "statistic": size_of::<Statistic>();
        "path_config.seed": offset_of!(Config, seed);
        "path_config.forward": offset_of!(Config, forward);
        "path_config.reverse_trace": offset_of!(Config, reverse_trace);
        "path_config.capture_file": offset_of!(Config, capture_file);
        "path_config.capture": offset_of!(Config, capture);
        "path_config.capture_context": offset_of!(Config, capture_context);
        "delivery.waited": offset_of!(Delivery, waited);
        "delivery.bytes": offset_of!(Delivery, bytes);
        "delivery.size": offset_of!(Delivery, size);
        "delivery.flow": offset_of!(Delivery, flow);
        "delivery.dscp": offset_of!(Delivery, dscp);
        "event.waited": offset_of!(Event, waited);
        "event.size": offset_of!(Event, size);
        "event.direction": offset_of!(Event, direction);
        "event.kind": offset_of!(Event, kind);
        "event.reason": offset_of!(Event, reason);
        "counters.drops_aqm": offset_of!(Counters, drops_aqm);
        "counters.marks_aqm": offset_of!(Counters, marks_aqm);
        "counters.duplicated_packets": offset_of!(Counters, duplicated_packets);
        "kinds": "0 1 2 3 4 5";
        "abi": format!("{ABI} flags {EVENTS} {STRICT} directions 0 1");
    }
    assert_eq!(output(&mut Command::new(program)), expected);
}
