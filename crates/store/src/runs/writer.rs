//! The writer of a segment: a thread that commits records in groups.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::format::{HEAD, HEADER, Header, Key, Kind, MAX_PAYLOAD, head};
use super::segment::Payload;
use crate::clock::Pause;
use crate::files::{Access, Files, Lock, Output};
use crate::regular::{Links, open_regular};

/// Minimum time between commits: a power loss loses at most the runs of this time, and there are at
/// most five syncs per second, even if runs are short.
pub const COMMIT_INTERVAL: Duration = Duration::from_millis(200);

/// Capacity of the queue to the writer, in records; [`Writer::append`] blocks when it is full.
const WAITING: usize = 64;

/// Bytes that are collected before they are written, for few large writes.
const BUFFER: usize = 4 << 20;

/// Writes records to a segment of its own.
///
/// The first error stops the writer: committed records remain, later records are dropped, and
/// [`Writer::failure`] returns the error.
#[derive(Debug)]
pub struct Writer {
    path: PathBuf,
    files: Arc<dyn Files>,
    state: Arc<State>,
    /// For the payloads of committed records.
    reader: Arc<Mutex<File>>,
    next: Mutex<Next>,
    sender: Option<SyncSender<Message>>,
    thread: Option<JoinHandle<()>>,
    /// Held while the writer is alive; shows other processes that the segment is in use.
    _lock: Lock,
}

/// A record that was handed to a [`Writer`].
#[derive(Clone, Debug)]
pub struct Appended {
    /// How many were before it: it is committed if more are.
    pub place: usize,
    /// To be read only if it is committed.
    pub payload: Payload,
}

/// Where the next record will be.
#[derive(Debug)]
struct Next {
    place: usize,
    offset: u64,
}

#[derive(Debug)]
enum Message {
    Append(Header, Vec<u8>),
    /// Commit now, then answer.
    Flush(Sender<()>),
}

#[derive(Debug, Default)]
struct State {
    committed: AtomicUsize,
    committed_runs: AtomicUsize,
    syncs: AtomicUsize,
    /// The segment is about to be removed: nothing more is written.
    discarded: AtomicBool,
    failure: Mutex<Option<String>>,
}

impl State {
    fn fail(&self, reason: String) {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.get_or_insert(reason);
    }

    fn failure(&self) -> Option<String> {
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.clone()
    }
}

impl Writer {
    /// Creates the segment `path`, which must not exist, and holds it.
    pub(crate) fn create(path: PathBuf, files: Arc<dyn Files>) -> io::Result<Self> {
        let create = || {
            let mut output = files.create_new(&path, Access::Usual)?;
            let busy = || io::Error::other("a new segment is held by another process");
            let lock = files.try_lock(&path)?.ok_or_else(busy)?;
            output.write_all(&head())?;
            output.sync()?;
            if let Some(folder) = path.parent() {
                files.sync_dir(folder)?;
            }
            Ok((output, lock, open_regular(&path, Links::Follow)?))
        };
        let (output, lock, reader) = create().inspect_err(|error: &io::Error| {
            if error.kind() != io::ErrorKind::AlreadyExists {
                // The next start removes it if this does not.
                let _ = files.remove_file(&path);
            }
        })?;
        let state = Arc::<State>::default();
        let (sender, receiver) = sync_channel(WAITING);
        let log = Log {
            path: path.clone(),
            files: Arc::clone(&files),
            state: Arc::clone(&state),
            output,
            buffer: Vec::new(),
            pending: Pending::default(),
            committed: HEAD as u64,
        };
        let thread = std::thread::Builder::new()
            .name("run store".to_owned())
            .spawn(move || log.serve(&receiver))?;
        Ok(Self {
            path,
            files,
            state,
            reader: Arc::new(Mutex::new(reader)),
            next: Mutex::new(Next {
                place: 0,
                offset: HEAD as u64,
            }),
            sender: Some(sender),
            thread: Some(thread),
            _lock: lock,
        })
    }

    /// The segment.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a record, which is committed within [`COMMIT_INTERVAL`] and the time of a write; `None`: it is too long.
    pub fn append(&self, kind: Kind, key: Key, payload: Vec<u8>) -> Option<Appended> {
        let Some(header) = Header::of(kind, key, &payload) else {
            let length = payload.len();
            let limit = format!("a run has {length} bytes; expected at most {MAX_PAYLOAD}");
            self.state.fail(limit);
            return None;
        };
        let sender = self.sender.as_ref()?;
        // Held until the record is in the queue, in which the order decides where it will be.
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        // The thread ends only after the sender is dropped, or by a panic, which ends the run.
        let _ = sender.send(Message::Append(header, payload));
        let offset = next.offset + HEADER as u64;
        let appended = Appended {
            place: next.place,
            payload: Payload::new(Arc::clone(&self.reader), offset, header.length),
        };
        next.place += 1;
        next.offset = offset + u64::from(header.length);
        Some(appended)
    }

    /// Waits until all appended records are committed, or the writer has failed.
    pub fn flush(&self) {
        let (answer, waiting) = channel();
        if let Some(sender) = &self.sender
            && sender.send(Message::Flush(answer)).is_ok()
        {
            let _ = waiting.recv();
        }
    }

    /// Number of committed records; they survive a crash.
    pub fn committed(&self) -> usize {
        self.state.committed.load(Ordering::Acquire)
    }

    /// How many commits there were.
    pub fn syncs(&self) -> usize {
        self.state.syncs.load(Ordering::Relaxed)
    }

    /// The error that stopped the writer.
    pub fn failure(&self) -> Option<String> {
        self.state.failure()
    }

    /// Removes the segment: its runs are not needed any more.
    ///
    /// # Errors
    /// If the file cannot be removed; the next start removes it when it is old.
    pub fn discard(&self) -> io::Result<()> {
        self.state.discarded.store(true, Ordering::Relaxed);
        // After this the thread has seen it and writes nothing more.
        self.flush();
        self.files.remove_file(&self.path)
    }
}

impl Drop for Writer {
    /// Commits what is left; a segment without runs is removed.
    fn drop(&mut self) {
        drop(self.sender.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the thread costs stored runs, not the result.
            let _ = thread.join();
        }
        let discarded = self.state.discarded.load(Ordering::Relaxed);
        if !discarded && self.state.committed_runs.load(Ordering::Relaxed) == 0 {
            // An empty segment that stays is removed by the next start.
            let _ = self.files.remove_file(&self.path);
        }
    }
}

/// Records that are not committed yet.
#[derive(Clone, Copy, Debug, Default)]
struct Pending {
    records: usize,
    runs: usize,
    bytes: u64,
}

/// The state of the thread.
struct Log {
    path: PathBuf,
    files: Arc<dyn Files>,
    state: Arc<State>,
    output: Box<dyn Output>,
    buffer: Vec<u8>,
    pending: Pending,
    /// Length of the committed part.
    committed: u64,
}

impl Log {
    fn serve(mut self, receiver: &Receiver<Message>) {
        let mut pause = Pause::over();
        // Ends when the sender is dropped.
        loop {
            let message = if self.pending.records == 0 {
                receiver.recv().map_err(|_| RecvTimeoutError::Disconnected)
            } else {
                receiver.recv_timeout(pause.left())
            };
            match message {
                Ok(Message::Append(header, payload)) => self.append(header, &payload),
                Ok(Message::Flush(answer)) => {
                    self.commit();
                    pause = Pause::of(COMMIT_INTERVAL);
                    // The receiver of the answer may have been dropped.
                    let _ = answer.send(());
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if self.pending.records > 0 && pause.is_over() {
                self.commit();
                pause = Pause::of(COMMIT_INTERVAL);
            }
        }
        self.commit();
    }

    fn append(&mut self, header: Header, payload: &[u8]) {
        if self.state.failure().is_some() {
            return;
        }
        self.buffer.extend(header.to_bytes());
        self.buffer.extend(payload);
        self.pending.records += 1;
        self.pending.runs += usize::from(header.kind == Kind::Run);
        if self.buffer.len() >= BUFFER
            && let Err(error) = self.write()
        {
            self.fail(&error);
        }
    }

    fn write(&mut self) -> io::Result<()> {
        self.output.write_all(&self.buffer)?;
        self.pending.bytes += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    fn commit(&mut self) {
        if self.state.discarded.load(Ordering::Relaxed) {
            self.buffer.clear();
            self.pending = Pending::default();
        }
        if self.pending.records == 0 {
            return;
        }
        match self.write().and_then(|()| self.output.sync()) {
            Ok(()) => {
                let Pending {
                    records,
                    runs,
                    bytes,
                } = std::mem::take(&mut self.pending);
                self.committed += bytes;
                self.state.syncs.fetch_add(1, Ordering::Relaxed);
                self.state.committed_runs.fetch_add(runs, Ordering::Relaxed);
                self.state.committed.fetch_add(records, Ordering::Release);
            }
            Err(error) => self.fail(&error),
        }
    }

    /// Stops writing: after a failed write or sync, the content of the file after the committed part
    /// is unknown.
    fn fail(&mut self, error: &io::Error) {
        self.state.fail(error.to_string());
        self.buffer = Vec::new();
        self.pending = Pending::default();
        // A reader ignores what this leaves.
        let _ = self.files.truncate(&self.path, self.committed);
    }
}
