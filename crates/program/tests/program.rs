//! The program as its users start it: output, exit codes and saved results.

use std::path::Path;
use std::process::{Command, Output};

use sojourn_lab::Outcome;

const SCENARIO: &str = r#"
name = "two queues"
duration = "6s"
warmup = "2s"
replications = 2
rtt = "20ms"

[links]
up = { rate = "4mbit", qdisc = "pfifo limit 100" }
down = "unlimited"

[[traffic]]
type = "tcp"
direction = "up"

[[traffic]]
type = "ping"
direction = "up"
interval = "100ms"

[[arms]]
name = "fifo"

[[arms]]
name = "codel"
set = { "links.up.qdisc" = "codel" }
"#;

fn sojourn(folder: &Path, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sojourn"))
        .args(words)
        .current_dir(folder)
        .output()
        .expect("it starts")
}

fn printed(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_file_is_run_and_its_result_saved() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("a.toml"), SCENARIO).expect("a file");
    let first = sojourn(folder.path(), &["run", "a.toml", "--out", "r"]);
    let (out, err) = printed(&first);
    assert!(first.status.success(), "{err}");
    assert_eq!(err, "wrote r: sojourn report r\n");
    assert!(
        out.starts_with("two queues: means of 2 runs ± half the 95 % interval\n"),
        "{out}"
    );
    // A full buffer of 100 packets takes 0.3 s; CoDel keeps it short.
    let sojourn_ms = |arm: &str| {
        let of_link = out.split("link").last().expect("the table of links");
        let row = of_link
            .lines()
            .find(|line| line.starts_with(arm))
            .expect(arm);
        let mean = row
            .rsplit("  ")
            .find(|cell| !cell.is_empty())
            .expect("a last column");
        let mean = mean.trim().split(' ').next().expect("a number");
        mean.parse::<f64>().expect("a number")
    };
    assert!(sojourn_ms("fifo") > 5.0 * sojourn_ms("codel"), "{out}");
    let saved = Outcome::load(&folder.path().join("r")).expect("a result");
    assert!(saved.is_complete() && saved.total() == 4);

    let again = sojourn(folder.path(), &["run", "a.toml", "--jobs", "1"]);
    assert_eq!(
        printed(&again).0,
        out,
        "the same runs give the same numbers"
    );
    let other = sojourn(
        folder.path(),
        &["run", "a.toml", "--seed", "9", "--out", "r"],
    );
    assert_eq!(other.status.code(), Some(3), "{}", printed(&other).1);
    assert!(
        printed(&other).1.starts_with("sojourn: r: "),
        "{}",
        printed(&other).1
    );
}

#[cfg(unix)]
#[expect(
    clippy::disallowed_methods,
    reason = "a signal comes while the program runs"
)]
#[test]
fn a_signal_keeps_the_runs_that_have_finished() {
    use std::thread::sleep;
    use std::time::Duration;

    let folder = tempfile::tempdir().expect("a folder");
    // More runs than this machine finishes before the signal.
    let many = SCENARIO.replace("replications = 2", "replications = 5000");
    std::fs::write(folder.path().join("a.toml"), many).expect("a file");
    let child = Command::new(env!("CARGO_BIN_EXE_sojourn"))
        .args(["run", "a.toml", "--out", "r"])
        .current_dir(folder.path())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("it starts");
    sleep(Duration::from_secs(1));
    let killed = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .expect("kill is everywhere");
    assert!(killed.success());
    let output = child.wait_with_output().expect("it ends");
    let (out, err) = printed(&output);
    assert_eq!(output.status.code(), Some(130), "{err}");
    assert!(err.starts_with("sojourn: interrupted: finished "), "{err}");
    assert!(out.starts_with("two queues: means of "), "{out}");
    let saved = Outcome::load(&folder.path().join("r")).expect("a result");
    assert!(!saved.is_complete() && saved.finished() > 0 && saved.total() == 10_000);
}

#[test]
fn invalid_input_is_named_in_one_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let wrong = SCENARIO.replace("limit 100", "limit none");
    std::fs::write(folder.path().join("a.toml"), wrong).expect("a file");
    for (words, code, said) in [
        (&["run", "a.toml"][..], 2, "sojourn: a.toml: "),
        (&["run", "b.toml"], 3, "sojourn: b.toml: "),
        (&["run"], 2, "sojourn: run: no file"),
        (&["qdiscs", "fifo9"], 2, "sojourn: no queue \"fifo9\""),
        (
            &["live", "--link", "fast", "--", "true"],
            2,
            "sojourn: links.down.rate",
        ),
    ] {
        let output = sojourn(folder.path(), words);
        let (out, err) = printed(&output);
        // Without namespaces, live runs end before.
        if words[0] == "live" && output.status.code() == Some(3) {
            continue;
        }
        assert_eq!(output.status.code(), Some(code), "{err}");
        assert!(err.starts_with(said) && err.lines().count() == 1, "{err}");
        assert!(out.is_empty());
    }
}

#[test]
fn queues_and_their_parameters_are_listed() {
    let list = printed(&sojourn(Path::new("."), &["qdiscs"])).0;
    for name in ["pfifo", "fq_codel", "dualpi2", "cake"] {
        assert!(list.lines().any(|line| line.starts_with(name)), "{name}");
    }
    assert!(
        list.lines()
            .any(|line| line.starts_with("floq ") && line.ends_with("[R]")),
        "{list}"
    );
    let codel = printed(&sojourn(Path::new("."), &["qdiscs", "codel"])).0;
    assert!(codel.contains("\ntarget [default: 5ms;"), "{codel}");
    assert!(!codel.contains("[R]"));
}

#[cfg(target_os = "linux")]
#[test]
fn a_program_runs_behind_a_queue() {
    let words = [
        "live",
        "--link",
        "5mbit",
        "--rtt",
        "20ms",
        "--",
        "sh",
        "-c",
        "sleep 1; echo ran; exit 7",
    ];
    let output = sojourn(Path::new("."), &words);
    let (out, err) = printed(&output);
    if output.status.code() == Some(3) {
        eprintln!("skipped: no live runs: {err}");
        if let Some(path) = std::env::var_os("SOJOURN_SKIPPED") {
            use std::io::Write as _;
            let file = std::fs::OpenOptions::new()
                .create(true)
                .append(true)
                .open(path);
            let mut file = file.expect("the file of skipped tests");
            writeln!(file, "no live runs of the program: {}", err.trim()).expect("a line");
        }
        return;
    }
    assert_eq!(output.status.code(), Some(7), "{err}");
    assert_eq!(out, "ran\n");
    assert!(err.starts_with("live: one run\n"), "{err}");
}
