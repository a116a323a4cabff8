//! Runs tshark and reads what it prints.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Whether tshark can be run; if not, says that `test` is skipped, also to `tools/skipped.py`.
pub(crate) fn has_tshark(test: &str) -> bool {
    let probe = Command::new("tshark")
        .arg("--version")
        .stdout(Stdio::null())
        .status();
    let found = probe.is_ok_and(|status| status.success());
    if !found {
        eprintln!("skipped: {test}: tshark is not installed");
        if let Some(path) = std::env::var_os("SOJOURN_SKIPPED") {
            let mut list = OpenOptions::new()
                .append(true)
                .create(true)
                .open(path)
                .unwrap();
            list.write_all(b"tshark is not installed\n").unwrap();
        }
    }
    found
}

/// The lines that tshark prints for `file`; it must print no warning.
pub(crate) fn tshark(file: &Path, arguments: &[&str]) -> Vec<String> {
    let checks = [
        "-o",
        "ip.check_checksum:TRUE",
        "-o",
        "tcp.check_checksum:TRUE",
        "-o",
        "udp.check_checksum:TRUE",
    ];
    let output = Command::new("tshark")
        .args(["-n", "-r"])
        .arg(file)
        .args(checks)
        .args(arguments)
        .output()
        .unwrap();
    let errors: Vec<_> = std::str::from_utf8(&output.stderr)
        .unwrap()
        .lines()
        .filter(|line| !line.starts_with("Running as user"))
        .collect();
    assert!(output.status.success(), "{errors:?}");
    assert!(errors.is_empty(), "{errors:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(str::to_owned).collect()
}

/// The values of fields, a line per packet that `filter` selects.
pub(crate) fn fields(file: &Path, filter: &str, names: &[&str]) -> Vec<String> {
    let mut arguments = vec!["-Y", filter, "-T", "fields", "-E", "separator=|"];
    for name in names {
        arguments.extend(["-e", name]);
    }
    tshark(file, &arguments)
}

/// The same, as values.
pub(crate) fn rows(file: &Path, filter: &str, names: &[&str]) -> Vec<Vec<String>> {
    let lines = fields(file, filter, names);
    let values = |line: &String| line.split('|').map(str::to_owned).collect();
    lines.iter().map(values).collect()
}

pub(crate) fn count(file: &Path, filter: &str) -> usize {
    tshark(file, &["-Y", filter]).len()
}

/// A malformed packet, a finding of at least a warning, or a wrong checksum. tshark checks the checksums of
/// whole packets only.
pub(crate) const FAULTY: &str = "_ws.malformed || _ws.expert.severity >= 6291456 || ip.checksum.status == 0 \
                      || tcp.checksum.status == 0 || udp.checksum.status == 0 \
                      || icmp.checksum.status == 0 || icmpv6.checksum.status == 0";

/// The packets of these points in a file of their own.
pub(crate) fn select(file: &Path, points: &[&str]) -> PathBuf {
    let selected = file.with_extension("selected.pcapng");
    let tests: Vec<_> = points
        .iter()
        .map(|point| format!("frame.interface_name == \"{point}\""))
        .collect();
    let filter = tests.join(" || ");
    tshark(file, &["-Y", &filter, "-w", selected.to_str().unwrap()]);
    selected
}
