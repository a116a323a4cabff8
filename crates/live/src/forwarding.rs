//! Forwarding between the machine's interface and a run, and its former value, which a process outside the run restores.
//!
//! Runs share the setting of an interface: a file in [`FOLDER`] has its former value, each run holds a shared lock of the
//! file, and the last one restores the value and removes the file. The lock ends with the processes that hold it, so a
//! file that nobody locks is what a run left behind whose processes were all killed.

use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use crate::nftables::Table;
use crate::sys::{self, Guardian};

/// Where the former values are.
const FOLDER: &str = "/run/sojourn";
const PREFIX: &str = "forwarding-";
/// Setting of the whole network namespace, which overrides those of its interfaces when it is changed.
const ALL: &str = "/proc/sys/net/ipv4/ip_forward";

/// An interface that forwards packets; the last run that uses it restores the former value when it ends.
#[derive(Debug)]
pub(crate) struct Forwarding {
    /// Ends before what it shares with this process.
    _guardian: Guardian,
    _undo: Undo,
    _table: Table,
}

impl Forwarding {
    /// Enables forwarding of the packets of an interface of the calling thread's namespace, after `restrict` has created
    /// the table that restricts it; its argument is whether the interface forwarded packets before. The process that
    /// restores the former value keeps the table until it has done so.
    ///
    /// # Errors
    /// Those of files and system calls, and of `restrict`.
    pub(crate) fn enable(
        interface: &str,
        restrict: impl FnOnce(bool) -> io::Result<Table>,
    ) -> io::Result<Self> {
        let setting = setting_of(interface);
        let exclusive = Exclusive::wait()?;
        let place = Path::new(FOLDER).join(file_name(interface)?);
        let mut options = OpenOptions::new();
        let mut file = options
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&place)?;
        let is_first = locked(&file, FlockOperation::NonBlockingLockExclusive)?;
        let former = if is_first {
            restore_left(&mut file, interface)?;
            fs::read_to_string(&setting)?.trim().to_owned()
        } else {
            contents(&mut file)?
        };
        // No run waits for another: what has the file exclusively has the lock of the folder, too.
        locked(&file, FlockOperation::LockShared)?;
        let undo = Undo::new(&setting, &place, &former, file)?;
        let table = restrict(former == "1").inspect_err(|_| {
            if is_first {
                let _ = fs::remove_file(&place);
            }
        })?;
        // Before anything else has changed.
        let kept = [undo.file.as_raw_fd(), table.as_raw_fd()];
        let guardian = sys::guard(&kept, &|| undo.perform())?;
        let changed = undo.begin(is_first);
        // The guardian of a failure waits for this lock.
        drop(exclusive);
        changed?;
        Ok(Self {
            _guardian: guardian,
            _undo: undo,
            _table: table,
        })
    }
}

/// Restores what runs in the calling thread's namespace left behind whose processes were all killed.
///
/// # Errors
/// Those of files and system calls.
pub(crate) fn restore_all_left() -> io::Result<()> {
    let namespace = format!("{PREFIX}{}-", namespace()?);
    let Ok(entries) = fs::read_dir(FOLDER) else {
        return Ok(());
    };
    let interface_of = |entry: fs::DirEntry| {
        let name = entry.file_name();
        name.to_str()?.strip_prefix(&namespace).map(str::to_owned)
    };
    let interfaces: Vec<String> = entries.flatten().filter_map(interface_of).collect();
    // Those of other namespaces, such as one around this run, are not ours, nor is the lock.
    if interfaces.is_empty() {
        return Ok(());
    }
    let _exclusive = Exclusive::wait()?;
    for interface in interfaces {
        let place = Path::new(FOLDER).join(format!("{namespace}{interface}"));
        // The run may have ended meanwhile.
        let Ok(mut file) = File::open(&place) else {
            continue;
        };
        if locked(&file, FlockOperation::NonBlockingLockExclusive)? {
            restore_left(&mut file, &interface)?;
            fs::remove_file(&place)?;
        }
    }
    Ok(())
}

/// Restores the value in a file that no run uses.
fn restore_left(file: &mut File, interface: &str) -> io::Result<()> {
    let former = contents(file)?;
    if former.is_empty() || is_on(ALL) {
        return Ok(());
    }
    match fs::write(setting_of(interface), former) {
        // The interface is gone, and its setting with it.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

/// What the process outside the run needs: it makes nothing but system calls.
#[derive(Debug)]
struct Undo {
    lock: CString,
    setting: CString,
    all: CString,
    place: CString,
    former: Vec<u8>,
    /// Whether all interfaces forwarded packets before.
    all_did: bool,
    file: File,
}

impl Undo {
    fn new(setting: &str, place: &Path, former: &str, file: File) -> io::Result<Self> {
        let path = |path: &str| CString::new(path).map_err(io::Error::other);
        Ok(Self {
            lock: path(&lock_path().to_string_lossy())?,
            setting: path(setting)?,
            all: path(ALL)?,
            place: path(&place.to_string_lossy())?,
            former: former.as_bytes().to_vec(),
            all_did: is_on(ALL),
            file,
        })
    }

    /// Writes down the former value, unless another run has, and enables forwarding.
    fn begin(&self, is_first: bool) -> io::Result<()> {
        if is_first {
            self.file.set_len(0)?;
            rustix::io::pwrite(&self.file, &self.former, 0)?;
        }
        let setting = rustix::fs::open(&*self.setting, OFlags::WRONLY, Mode::empty())?;
        rustix::io::write(setting, b"1")?;
        Ok(())
    }

    /// Restores the former value, if no other run needs the current one.
    fn perform(&self) {
        let Ok(lock) =
            rustix::fs::open(&*self.lock, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
        else {
            return;
        };
        let _ = rustix::fs::flock(&lock, FlockOperation::LockExclusive);
        if rustix::fs::flock(&self.file, FlockOperation::NonBlockingLockExclusive).is_err() {
            return;
        }
        let mut on = [0_u8];
        if let Ok(all) = rustix::fs::open(&*self.all, OFlags::RDONLY, Mode::empty()) {
            let _ = rustix::io::read(all, &mut on);
        }
        // Whoever has enabled all forwarding since then relies on it.
        if (on != *b"1" || self.all_did)
            && let Ok(setting) = rustix::fs::open(&*self.setting, OFlags::WRONLY, Mode::empty())
        {
            let _ = rustix::io::write(setting, &self.former);
        }
        let _ = rustix::fs::unlink(&*self.place);
    }
}

/// The lock of the folder, which is held while the files in it change.
struct Exclusive(#[expect(dead_code, reason = "the lock ends with the file")] File);

impl Exclusive {
    fn wait() -> io::Result<Self> {
        fs::create_dir_all(FOLDER)?;
        let mut options = OpenOptions::new();
        let file = options
            .write(true)
            .create(true)
            .truncate(false)
            .open(lock_path())?;
        rustix::fs::flock(&file, FlockOperation::LockExclusive)?;
        Ok(Self(file))
    }
}

fn lock_path() -> PathBuf {
    Path::new(FOLDER).join("lock")
}

/// Takes a lock; false: another run has the file locked.
fn locked(file: impl AsFd, how: FlockOperation) -> io::Result<bool> {
    match rustix::fs::flock(file, how) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn contents(file: &mut File) -> io::Result<String> {
    let mut text = String::new();
    file.rewind()?;
    file.read_to_string(&mut text)?;
    Ok(text.trim().to_owned())
}

fn is_on(setting: &str) -> bool {
    fs::read_to_string(setting).is_ok_and(|value| value.trim() == "1")
}

fn setting_of(interface: &str) -> String {
    format!("/proc/sys/net/ipv4/conf/{interface}/forwarding")
}

/// The file of an interface: two namespaces may have interfaces of the same name.
fn file_name(interface: &str) -> io::Result<String> {
    Ok(format!("{PREFIX}{}-{interface}", namespace()?))
}

/// The number of the calling thread's network namespace.
fn namespace() -> io::Result<u64> {
    Ok(fs::metadata("/proc/thread-self/ns/net")?.ino())
}
