//! The folder of built kernels, one per version.

use std::path::{Path, PathBuf};
use std::{env, fs};

/// Where kernels are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder(PathBuf);

/// A kernel that was built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    folder: PathBuf,
    /// Its release, such as `6.12.117`.
    pub release: String,
    /// Whether its random numbers can be seeded.
    pub is_seeded: bool,
    /// Whether it has the queues of Sojourn's modules.
    pub has_modules: bool,
}

impl Folder {
    /// The environment variable that names the folder.
    pub const VARIABLE: &str = "SOJOURN_KERNELS";

    /// The folder of this user: that of [`Folder::VARIABLE`], or `sojourn/kernels` in the user's cache folder.
    pub fn of_user() -> Self {
        let set = |name| {
            env::var_os(name)
                .filter(|path| !path.is_empty())
                .map(PathBuf::from)
        };
        let cache = || {
            let cache = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")));
            cache.unwrap_or_else(env::temp_dir).join("sojourn/kernels")
        };
        Self(set(Self::VARIABLE).unwrap_or_else(cache))
    }

    /// This folder.
    pub const fn at(path: PathBuf) -> Self {
        Self(path)
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The versions that were built, such as `6.12`, in order.
    pub fn versions(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let mut versions: Vec<_> = names.filter(|name| self.find(name).is_some()).collect();
        versions.sort_unstable();
        versions
    }

    /// The kernel of this version; `None`: it was not built, or not to the end.
    pub fn find(&self, version: &str) -> Option<Kernel> {
        let folder = self.0.join(version);
        // Written last by the build.
        let about = fs::read_to_string(folder.join("about")).ok()?;
        let value = |key: &str| {
            let mut lines = about.lines().filter_map(|line| line.split_once('='));
            lines.find_map(|(known, value)| (known == key).then(|| value.to_owned()))
        };
        Some(Kernel {
            folder,
            release: value("release")?,
            is_seeded: value("seeded")? == "yes",
            has_modules: value("modules").is_some_and(|answer| answer == "yes"),
        })
    }
}

impl Kernel {
    /// The kernel itself, a program.
    pub(crate) fn program(&self) -> PathBuf {
        self.folder.join("linux")
    }

    /// The file system of the guest.
    pub(crate) fn file_system(&self) -> PathBuf {
        self.folder.join("guest.cpio")
    }

    /// The program that starts the kernel and ends it with this process.
    pub(crate) fn launcher(&self) -> PathBuf {
        self.folder.join("launch")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_is_there_when_its_build_has_ended() {
        let place = env::temp_dir().join(format!("sojourn-kernels-{}", std::process::id()));
        let folder = Folder::at(place.clone());
        let version = place.join("6.12");
        fs::create_dir_all(&version).expect("a folder");
        fs::write(version.join("linux"), "").expect("a file");
        assert_eq!((folder.find("6.12"), folder.versions()), (None, vec![]));
        fs::write(version.join("about"), "release=6.12.1\nseeded=yes\n").expect("a file");
        let found = folder.find("6.12").expect("complete");
        assert_eq!((found.release.as_str(), found.is_seeded), ("6.12.1", true));
        assert!(!found.has_modules);
        assert_eq!(folder.versions(), ["6.12"]);
        fs::remove_dir_all(place).expect("removed");
    }
}
