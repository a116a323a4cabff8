//! Memory limits of this process: control groups, address space and available memory.

use std::fs;
use std::path::{Path, PathBuf};

/// Share of the memory that runs may use by default; the rest is for Python, tables and other programs.
const SHARE: (u64, u64) = (4, 5);

/// The default of `max_memory`: 80 % of the smallest limit; `None` if the system names none.
pub fn default_limit() -> Option<u64> {
    usable(Path::new("/")).map(|bytes| bytes / SHARE.1 * SHARE.0)
}

/// The smallest of all limits under `root`, in bytes.
fn usable(root: &Path) -> Option<u64> {
    [available(root), control_groups(root), address_space(root)]
        .into_iter()
        .flatten()
        .min()
}

fn read(root: &Path, path: &str) -> Option<String> {
    fs::read_to_string(root.join(path)).ok()
}

/// Memory that programs can get without swapping.
fn available(root: &Path) -> Option<u64> {
    let table = read(root, "proc/meminfo")?;
    let line = table
        .lines()
        .find(|line| line.starts_with("MemAvailable:"))?;
    let kilobytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    kilobytes.checked_mul(1_024)
}

/// The smallest limit of the control groups of this process and of those that contain them.
fn control_groups(root: &Path) -> Option<u64> {
    let mounted = Path::new("sys/fs/cgroup");
    let groups = read(root, "proc/self/cgroup").unwrap_or_default();
    let mut limits = Vec::new();
    for line in groups.lines() {
        // `0::/path` in version 2, `5:memory:/path` in version 1.
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else {
            continue;
        };
        let (folder, file) = match controllers {
            "" => (mounted.to_owned(), "memory.max"),
            names if names.split(',').any(|name| name == "memory") => {
                (mounted.join("memory"), "memory.limit_in_bytes")
            }
            _ => continue,
        };
        let mut group = folder.join(path.trim_start_matches('/'));
        // A container sees its own group as the root, whatever its path is outside.
        while group.starts_with(&folder) {
            limits.extend(limit(root, &group.join(file)));
            if !group.pop() {
                break;
            }
        }
    }
    limits.into_iter().min()
}

/// A limit; `max` and a file that does not exist are none.
fn limit(root: &Path, file: &PathBuf) -> Option<u64> {
    fs::read_to_string(root.join(file))
        .ok()?
        .trim()
        .parse()
        .ok()
}

/// What is left of the address space (`ulimit -v`).
fn address_space(root: &Path) -> Option<u64> {
    let limits = read(root, "proc/self/limits")?;
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max address space"))?;
    let most: u64 = line.split_whitespace().next()?.parse().ok()?;
    let status = read(root, "proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmSize:"));
    let used = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    Some(most.saturating_sub(used.unwrap_or(0).saturating_mul(1_024)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMORY: &str = "MemTotal:  9000 kB\nMemAvailable:    4000 kB\n";

    fn machine(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let file = root.path().join(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        root
    }

    #[test]
    fn the_smallest_limit_counts() {
        let of = |files: &[_]| usable(machine(files).path());
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[("proc/meminfo", MEMORY)]), Some(4_096_000));
        let second = ("proc/self/cgroup", "0::/a/b\n");
        let limit = ("sys/fs/cgroup/a/memory.max", "1000000\n");
        let none = ("sys/fs/cgroup/a/b/memory.max", "max\n");
        assert_eq!(
            of(&[("proc/meminfo", MEMORY), second, limit, none]),
            Some(1_000_000)
        );
        let first = ("proc/self/cgroup", "7:cpu:/x\n5:memory:/docker/1\n");
        let limit = ("sys/fs/cgroup/memory/memory.limit_in_bytes", "2000000\n");
        assert_eq!(
            of(&[("proc/meminfo", MEMORY), first, limit]),
            Some(2_000_000)
        );
        let limits = (
            "proc/self/limits",
            "Max address space   3000000  unlimited  bytes\n",
        );
        let status = ("proc/self/status", "VmSize:\t  1000 kB\n");
        assert_eq!(
            of(&[("proc/meminfo", MEMORY), limits, status]),
            Some(1_976_000)
        );
        let limits = (
            "proc/self/limits",
            "Max address space   unlimited  unlimited  bytes\n",
        );
        assert_eq!(of(&[("proc/meminfo", MEMORY), limits]), Some(4_096_000));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_machine_has_a_limit() {
        assert!(default_limit().is_some_and(|bytes| bytes > 1 << 20));
    }
}
