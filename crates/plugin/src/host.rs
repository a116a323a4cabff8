//! The side of Sojourn: loads a library and drives its queues.
//!
//! A library is never unloaded, so what its declaration points to lives as long as the process. Its functions
//! are called as `include/sojourn_queue.h` promises them; what they return or report is checked where it could
//! harm more than the result of the run.

use std::any::Any;
use std::ffi::c_void;
use std::fmt;
use std::fs;
use std::io::{self, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::ptr;
use std::slice;
use std::str;
use std::sync::Arc;

use libloading::Library;
use sha2::{Digest as _, Sha256};
use sojourn_qdisc::parameters::{Parameter, Scalar, Unit, Value as _};
use sojourn_qdisc::{
    ClassId, DropReason, Instant, Leaving, LinkFacts, MarkReason, Number, Observer, Origin,
    PLUGIN_PREFIX, Peek, QueueClass, Rate, Rng, Statistic, Ticket, TicketQueue, Transport, fail,
    intern,
};

use crate::abi::{
    ABI, Calls, Headers, Host, Link, NEVER, Parameter as Declared, Queue, READS_HEADERS, SYMBOL,
    Statistic as Reported, Text, UNKNOWN, Unit as Code, Value,
};

/// A name says which file it is by this many hexadecimal digits of its SHA-256.
const DIGITS: usize = 12;

/// Why a file was not loaded, as the end of a sentence that begins with its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadError(String);

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for LoadError {}

/// A queue of a library.
#[derive(Debug)]
pub struct Plugin {
    functions: Functions,
    name: String,
    version: String,
    summary: &'static str,
    source: &'static str,
    sha256: String,
    reads_headers: bool,
    parameters: &'static [Parameter],
    defaults: Vec<Scalar>,
}

/// The declaration, for the functions that every queue has.
#[derive(Clone, Copy, Debug)]
struct Functions {
    create: unsafe extern "C" fn(*const Value, *const Link, u64, *mut Host) -> *mut c_void,
    clone: unsafe extern "C" fn(*const c_void, *mut Host) -> *mut c_void,
    destroy: unsafe extern "C" fn(*mut c_void),
    enqueue: unsafe extern "C" fn(*mut c_void, *mut Host, u64, *const Ticket, *const Headers),
    dequeue: unsafe extern "C" fn(*mut c_void, *mut Host, u64) -> u64,
    /// For the others.
    all: &'static Queue,
}

/// The SHA-256 of a file in hexadecimal digits.
///
/// # Errors
/// If it cannot be read.
pub fn sha256(file: &Path) -> io::Result<String> {
    Ok(digest(&fs::read(file)?))
}

fn digest(content: &[u8]) -> String {
    let digest = Sha256::digest(content);
    let digits = digest.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits
        .filter_map(|digit| char::from_digit(digit.into(), 16))
        .collect()
}

impl Plugin {
    /// Loads the library in `file`, which runs its code with the permissions of this process.
    ///
    /// # Errors
    /// If the file is not a plug-in that this version can load.
    pub fn load(file: &Path) -> Result<Self, LoadError> {
        let unread = |error: io::Error| LoadError(format!("cannot read it: {error}"));
        let content = fs::read(file).map_err(unread)?;
        let before = digest(&content);
        // A name without a slash would be looked for in the folders of the system.
        let file: PathBuf = file.canonicalize().map_err(unread)?;
        let library = open(&file, &content)
            .map_err(|error| LoadError(format!("not a shared library: {}", line(&error))))?;
        // SAFETY: the symbol has this type if the library implements the interface; the name is its own.
        let exported =
            unsafe { library.get::<unsafe extern "C" fn() -> *const Queue>(SYMBOL.as_bytes()) };
        let Ok(exported) = exported.map(|symbol| *symbol) else {
            return Err(LoadError(format!(
                "no function {SYMBOL}: not a Sojourn plug-in; export the queue with plugin! of the crate \
                 sojourn-plugin, or implement sojourn_queue.h"
            )));
        };
        // Never unloaded: queues and declarations point into it.
        std::mem::forget(library);
        // SAFETY: it takes no arguments and returns a pointer.
        let declaration = unsafe { exported() };
        // SAFETY: the library returns a declaration that is never freed, or null.
        let plugin = unsafe { Self::of(declaration, before.clone()) }?;
        if sha256(&file).map_err(unread)? == before {
            Ok(plugin)
        } else {
            Err(LoadError("the file changed while it was loaded".to_owned()))
        }
    }

    /// The queue of a declaration in a file of this SHA-256.
    ///
    /// # Errors
    /// If this version cannot use it.
    ///
    /// # Safety
    /// `declaration` is null, or points to a declaration that never changes and is never freed, as do the pointers
    /// in it, and its functions are those of the interface.
    pub unsafe fn of(declaration: *const Queue, sha256: String) -> Result<Self, LoadError> {
        if declaration.is_null() {
            return Err(LoadError(format!("{SYMBOL} returned no declaration")));
        }
        // SAFETY: of every version of the interface, the first two fields are these.
        let (abi, size) = unsafe {
            let first = declaration.cast::<u32>();
            (*first, *first.add(1))
        };
        if abi != ABI {
            return Err(LoadError(format!(
                "version {abi} of the plug-in interface; this Sojourn has version {ABI}: rebuild the queue with \
                 sojourn-plugin or sojourn_queue.h of this version"
            )));
        }
        if size as usize != size_of::<Queue>() {
            return Err(LoadError(format!(
                "the declaration has {size} bytes; expected {}",
                size_of::<Queue>()
            )));
        }
        // SAFETY: it is a declaration of this version, as the caller promises.
        let all: &'static Queue = unsafe { &*declaration };
        let (Some(create), Some(clone), Some(destroy), Some(enqueue), Some(dequeue)) =
            (all.create, all.clone, all.destroy, all.enqueue, all.dequeue)
        else {
            return Err(LoadError(
                "a function is missing; expected create, clone, destroy, enqueue and dequeue"
                    .to_owned(),
            ));
        };
        let name = text(&all.name)?;
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty() || !name.chars().all(is_word) {
            return Err(LoadError(format!(
                "invalid queue name {name:?}; expected letters, digits and _"
            )));
        }
        let count = all.parameter_count as usize;
        let declared = if count == 0 {
            &[]
        } else if all.parameters.is_null() {
            return Err(LoadError(format!(
                "parameter_count is {count}, but parameters is null"
            )));
        } else {
            // SAFETY: the declaration has this many parameters.
            unsafe { slice::from_raw_parts(all.parameters, count) }
        };
        let declared = declared.iter().map(parameter);
        let (parameters, defaults): (Vec<_>, Vec<_>) =
            declared.collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
        Ok(Self {
            name: format!(
                "{PLUGIN_PREFIX}{name}:{}",
                &sha256[..DIGITS.min(sha256.len())]
            ),
            version: text(&all.version)?.to_owned(),
            summary: text(&all.summary)?,
            source: text(&all.source)?,
            sha256,
            reads_headers: all.flags & READS_HEADERS != 0,
            parameters: parameters.leak(),
            defaults,
            functions: Functions {
                create,
                clone,
                destroy,
                enqueue,
                dequeue,
                all,
            },
        })
    }

    /// The version that its author gave it.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The SHA-256 of its file.
    pub fn sha256(&self) -> &str {
        &self.sha256
    }

    /// The name without prefix and digits.
    fn label(&self) -> &str {
        self.name.split(':').nth(1).unwrap_or_default()
    }
}

impl QueueClass for Plugin {
    fn name(&self) -> &str {
        &self.name
    }

    fn origin(&self) -> Origin {
        Origin {
            text: None,
            version: Some(self.version.clone()),
            sha256: Some(self.sha256.clone()),
        }
    }

    fn summary(&self) -> &'static str {
        self.summary
    }

    fn source(&self) -> &'static str {
        self.source
    }

    fn parameters(&self) -> &'static [Parameter] {
        self.parameters
    }

    fn defaults(&self) -> Vec<Scalar> {
        self.defaults.clone()
    }

    fn conflict(&self, values: &[Scalar]) -> Option<String> {
        let conflict = self.functions.all.conflict?;
        let values: Vec<_> = values.iter().copied().map(Value::from).collect();
        let mut call = Call::new(Instant::ZERO, Receiver::Nothing);
        // SAFETY: there is a value for each parameter, and both pointers are valid during the call.
        unsafe { conflict(values.as_ptr(), call.host()) };
        let failure = call.failure.take()?;
        Some(match failure.downcast::<Why>() {
            Ok(why) => why.0,
            Err(panic) => resume_unwind(panic),
        })
    }

    fn build(&self, values: &[Scalar], link: &LinkFacts, rng: Rng) -> Box<dyn TicketQueue> {
        let values: Vec<_> = values.iter().copied().map(Value::from).collect();
        let facts = Link {
            rate: link.rate.map_or(0, Rate::bits_per_sec),
            mtu: link.mtu.0,
            name: Text::of(link.name.as_deref().unwrap_or_default()),
        };
        let mut made = Loaded {
            functions: self.functions,
            queue: ptr::null_mut(),
            place: Arc::new(Place {
                queue: self.label().to_owned(),
                link: link.name.clone(),
            }),
            reads_headers: self.reads_headers,
        };
        let mut call = Call::new(Instant::ZERO, Receiver::Nothing);
        // SAFETY: there is a value for each parameter, and all pointers are valid during the call.
        made.queue = unsafe {
            (self.functions.create)(values.as_ptr(), &raw const facts, rng.seed(), call.host())
        };
        call.end(&made.place, "create");
        if made.queue.is_null() {
            made.place
                .fail("create", Instant::ZERO, "returned no queue");
        }
        Box::new(made)
    }
}

/// Opens a copy of a library with this content.
///
/// A file that was built again under its name would otherwise be the library that is open already, and one that is
/// overwritten would change under the running code. Where copies cannot be run, the file itself is opened.
fn open(file: &Path, content: &[u8]) -> Result<Library, libloading::Error> {
    let copy = tempfile::NamedTempFile::new().and_then(|mut copy| {
        copy.write_all(content)?;
        Ok(copy.into_temp_path())
    });
    // SAFETY: running the code of the library is what the user asks for. It may only do what the interface permits,
    // which cannot be checked.
    let load = |path: &Path| unsafe { Library::new(path) };
    match copy {
        Ok(copy) => load(&copy).or_else(|_| load(file)),
        Err(_) => load(file),
    }
}

/// The text of a declaration, or of a call.
fn text<'a>(of: &'a Text) -> Result<&'a str, LoadError> {
    if of.size == 0 {
        return Ok("");
    }
    if of.data.is_null() {
        return Err(LoadError(
            "a text of its declaration has a size, but its data is null".to_owned(),
        ));
    }
    // SAFETY: the library promises that the text is valid as long as what contains it.
    let bytes: &'a [u8] = unsafe { slice::from_raw_parts(of.data, of.size) };
    str::from_utf8(bytes)
        .map_err(|_| LoadError("a string in the declaration is not valid UTF-8".to_owned()))
}

/// A parameter and its default.
fn parameter(declared: &Declared) -> Result<(Parameter, Scalar), LoadError> {
    const UNITS: [Code; 16] = [
        Code::Time,
        Code::Rate,
        Code::Size,
        Code::Packets,
        Code::Count,
        Code::Fraction,
        Code::Weight,
        Code::Percent,
        Code::Flag,
        Code::Choice,
        Code::CountOrOff,
        Code::Millis,
        Code::Micros,
        Code::SignedSize,
        Code::Ratio,
        Code::Decimal,
    ];
    let key = text(&declared.key)?;
    let wrong = |what: &str| LoadError(format!("parameter {key:?}: {what}"));
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if !key.starts_with(|c: char| c.is_ascii_alphabetic()) || !key.chars().all(is_word) {
        return Err(wrong("expected a name of letters, digits and _"));
    }
    let code = UNITS.iter().find(|code| **code as u32 == declared.unit);
    let code = code.ok_or_else(|| wrong("unknown unit"))?;
    let words = text(&declared.words)?;
    let unit = match code {
        Code::Time => Unit::Time,
        Code::Rate => Unit::Rate,
        Code::Size => Unit::Size,
        Code::Packets => Unit::Packets,
        Code::Count => Unit::Count(intern(words)),
        Code::Fraction => Unit::Fraction,
        Code::Weight => Unit::Weight,
        Code::Percent => Unit::Percent,
        Code::Flag => Unit::Flag,
        Code::Choice => {
            let words: Vec<_> = words.split_ascii_whitespace().map(intern).collect();
            Unit::Choice(words.leak())
        }
        Code::CountOrOff => Unit::CountOrOff(intern(words)),
        Code::Millis => Unit::Millis,
        Code::Micros => Unit::Micros,
        Code::SignedSize => Unit::SignedSize(declared.of),
        Code::Ratio if declared.of > 0 => Unit::Ratio(declared.of),
        Code::Decimal if declared.of < 10 => Unit::Decimal(declared.of),
        Code::Ratio | Code::Decimal => return Err(wrong("invalid `of`")),
    };
    let parameter = Parameter {
        key: intern(key),
        unit,
        min: declared.min,
        max: declared.max,
        unset: intern(text(&declared.unset)?),
        plain: None,
        meaning: intern(text(&declared.meaning)?),
        provenance: intern(text(&declared.provenance)?),
    };
    let start = match unit {
        _ if declared.start.is_set == 0 => Scalar::Unset,
        Unit::Fraction | Unit::Weight | Unit::Percent => Scalar::Real(declared.start.real),
        _ => Scalar::Whole(declared.start.whole),
    };
    if start == Scalar::Unset && parameter.unset.is_empty() {
        return Err(wrong(
            "no default; expected a default, or a text for `unset`",
        ));
    }
    // Read as the text that a user would write.
    if start != Scalar::Unset {
        let given = start
            .text(unit)
            .ok_or_else(|| wrong("the default is not one of its values"))?;
        if Scalar::Unset.read(&parameter, &given).is_err() {
            let range = parameter.range();
            return Err(wrong(&format!(
                "default {given} is invalid; expected {range}"
            )));
        }
    }
    Ok((parameter, start))
}

/// An error of a system library on one line.
fn line(error: &libloading::Error) -> String {
    let text =
        std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What a message about a queue begins with.
#[derive(Debug)]
struct Place {
    queue: String,
    link: Option<Arc<str>>,
}

impl Place {
    /// Ends the run.
    #[cold]
    fn fail(&self, method: &str, now: Instant, why: &str) -> ! {
        let Self { queue, link } = self;
        let link = link.as_ref().map(|name| format!(", link \"{name}\""));
        fail(format!(
            "{queue}: {method} failed at {:.6} s of simulated time{}: {why}",
            now.as_secs_f64(),
            link.unwrap_or_default()
        ))
    }
}

/// A queue that the library made.
#[derive(Debug)]
struct Loaded {
    functions: Functions,
    /// Null before it is made.
    queue: *mut c_void,
    place: Arc<Place>,
    reads_headers: bool,
}

// SAFETY: the interface requires that the functions of a queue may be called on any thread, one at a time, and the
// methods that call them take an exclusive reference or do not change the queue.
unsafe impl Send for Loaded {}

impl Loaded {
    /// Offers a packet; `headers` are valid or null.
    #[inline]
    fn offer(
        &mut self,
        now: Instant,
        ticket: &Ticket,
        headers: *const Headers,
        obs: &mut dyn Observer<Ticket>,
    ) {
        let mut call = Call::new(now, Receiver::Packets(obs));
        // SAFETY: the library made the queue; the other pointers are valid during the call, or null for no headers.
        unsafe {
            (self.functions.enqueue)(self.queue, call.host(), now.as_nanos(), ticket, headers);
        }
        call.end(&self.place, "enqueue");
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        if !self.queue.is_null() {
            // SAFETY: the library made the queue, and this is its last use.
            unsafe { (self.functions.destroy)(self.queue) };
        }
    }
}

impl TicketQueue for Loaded {
    #[inline]
    fn enqueue(
        &mut self,
        now: Instant,
        ticket: &Ticket,
        headers: Option<&Transport>,
        obs: &mut dyn Observer<Ticket>,
    ) {
        match headers {
            None => self.offer(now, ticket, ptr::null(), obs),
            Some(headers) => self.offer(now, ticket, &headers_of(headers), obs),
        }
    }

    #[inline]
    fn dequeue(&mut self, now: Instant, obs: &mut dyn Observer<Ticket>) -> Option<Leaving> {
        let mut call = Call::new(now, Receiver::Packets(obs));
        // SAFETY: the library made the queue; the host is valid during the call.
        let left = unsafe { (self.functions.dequeue)(self.queue, call.host(), now.as_nanos()) };
        call.end(&self.place, "dequeue");
        Leaving::read(left)
    }

    fn boxed_clone(&self) -> Box<dyn TicketQueue> {
        let mut call = Call::new(Instant::ZERO, Receiver::Nothing);
        // SAFETY: the library made the queue; the host is valid during the call.
        let queue = unsafe { (self.functions.clone)(self.queue, call.host()) };
        call.end(&self.place, "clone");
        if queue.is_null() {
            self.place.fail("clone", Instant::ZERO, "returned no queue");
        }
        Box::new(Self {
            queue,
            place: Arc::clone(&self.place),
            ..*self
        })
    }

    fn reads_headers(&self) -> bool {
        self.reads_headers
    }

    fn is_timed(&self) -> bool {
        self.functions.all.next_timer.is_some()
    }

    fn peek(&self) -> Peek {
        let Some(peek) = self.functions.all.peek else {
            return Peek::Dequeues;
        };
        let mut call = Call::new(Instant::ZERO, Receiver::Nothing);
        // SAFETY: the library made the queue; the host is valid during the call.
        let size = unsafe { peek(self.queue, call.host()) };
        call.end(&self.place, "peek");
        match size {
            UNKNOWN => Peek::Dequeues,
            0 => Peek::Empty,
            size => Peek::Head(sojourn_qdisc::Bytes(size)),
        }
    }

    fn next_timer(&self) -> Option<Instant> {
        let next_timer = self.functions.all.next_timer?;
        let mut call = Call::new(Instant::ZERO, Receiver::Nothing);
        // SAFETY: the library made the queue; the host is valid during the call.
        let due = unsafe { next_timer(self.queue, call.host()) };
        call.end(&self.place, "next_timer");
        (due != NEVER).then(|| Instant::from_nanos(due))
    }

    fn on_timer(&mut self, now: Instant) {
        let Some(on_timer) = self.functions.all.on_timer else {
            return;
        };
        let mut call = Call::new(now, Receiver::Nothing);
        // SAFETY: the library made the queue; the host is valid during the call.
        unsafe { on_timer(self.queue, call.host(), now.as_nanos()) };
        call.end(&self.place, "on_timer");
        // Else simulated time would stand still.
        if self.next_timer().is_some_and(|due| due <= now) {
            let why = "afterwards, next_timer returned a time that is not later";
            self.place.fail("on_timer", now, why);
        }
    }

    fn on_link_rate(&mut self, now: Instant, rate: Rate) {
        let Some(on_link_rate) = self.functions.all.on_link_rate else {
            return;
        };
        let mut call = Call::new(now, Receiver::Nothing);
        // SAFETY: the library made the queue; the host is valid during the call.
        unsafe { on_link_rate(self.queue, call.host(), now.as_nanos(), rate.bits_per_sec()) };
        call.end(&self.place, "on_link_rate");
    }

    fn statistics(&self) -> Vec<Statistic> {
        let mut found = Vec::new();
        if let Some(statistics) = self.functions.all.statistics {
            let mut call = Call::new(Instant::ZERO, Receiver::Statistics(&mut found));
            // SAFETY: the library made the queue; the host is valid during the call.
            unsafe { statistics(self.queue, call.host()) };
            call.end(&self.place, "statistics");
        }
        found
    }

    fn state(&self, now: Instant) -> Vec<Statistic> {
        let mut found = Vec::new();
        if let Some(state) = self.functions.all.state {
            let mut call = Call::new(now, Receiver::Statistics(&mut found));
            // SAFETY: the library made the queue; the host is valid during the call.
            unsafe { state(self.queue, call.host(), now.as_nanos()) };
            call.end(&self.place, "state");
        }
        found
    }

    fn classes(&self) -> Vec<ClassId> {
        let mut found = Vec::new();
        if let Some(classes) = self.functions.all.classes {
            let mut call = Call::new(Instant::ZERO, Receiver::Classes(&mut found));
            // SAFETY: the library made the queue; the host is valid during the call.
            unsafe { classes(self.queue, call.host()) };
            call.end(&self.place, "classes");
        }
        found
    }
}

fn headers_of(transport: &Transport) -> Headers {
    let kind = match transport {
        Transport::Other => 0,
        Transport::Tcp(_) => 1,
        Transport::Udp => 2,
        Transport::QuicLong => 3,
    };
    let tcp = match transport {
        Transport::Tcp(tcp) => *tcp,
        _ => sojourn_qdisc::TcpHeader::default(),
    };
    let (timestamp, echoed_timestamp) = tcp.timestamps.unwrap_or_default();
    Headers {
        transport: kind,
        seq: tcp.seq,
        ack: tcp.ack,
        payload: tcp.payload,
        window: tcp.window,
        timestamp,
        echoed_timestamp,
        sacks: tcp.sacks.map(|(start, end)| [start, end]),
        flags: tcp.flags,
        has_timestamps: tcp.timestamps.is_some().into(),
        other_options: tcp.other_options.into(),
    }
}

/// What the library reports during one call, and to whom.
///
/// The library has a pointer to its first field and hands it back to the functions of [`CALLS`], which therefore
/// find the rest behind it.
#[repr(C)]
struct Call<'a> {
    host: Host,
    now: Instant,
    receiver: Receiver<'a>,
    /// Why the queue cannot go on: [`Why`], or a panic of the receiver.
    failure: Option<Box<dyn Any + Send>>,
}

/// The reason that the library gives.
struct Why(String);

enum Receiver<'a> {
    Packets(&'a mut dyn Observer<Ticket>),
    Statistics(&'a mut Vec<Statistic>),
    Classes(&'a mut Vec<ClassId>),
    Nothing,
}

impl<'a> Call<'a> {
    #[inline]
    fn new(now: Instant, receiver: Receiver<'a>) -> Self {
        Self {
            host: Host { calls: &CALLS },
            now,
            receiver,
            failure: None,
        }
    }

    /// For the library, during the call.
    #[inline]
    fn host(&mut self) -> *mut Host {
        ptr::from_mut(self).cast()
    }

    /// Ends the run if the call failed.
    #[inline]
    fn end(&mut self, place: &Place, method: &str) {
        if self.failure.is_some() {
            self.fail(place, method);
        }
    }

    #[cold]
    fn fail(&mut self, place: &Place, method: &str) {
        let Some(failure) = self.failure.take() else {
            return;
        };
        match failure.downcast::<Why>() {
            Ok(why) => place.fail(method, self.now, &why.0),
            Err(panic) => resume_unwind(panic),
        }
    }

    /// Passes something on; a panic, which must not reach the library, waits for the end of the call. After a
    /// failure nothing is passed on.
    ///
    /// # Safety
    /// The library received `host` from the call that is under way.
    unsafe fn pass_on(host: *mut Host, work: impl FnOnce(&mut Receiver<'_>, Instant)) {
        // SAFETY: the pointer is that of a `Call`, of which the library uses nothing meanwhile.
        let call = unsafe { &mut *host.cast::<Call<'_>>() };
        if call.failure.is_none() {
            let (receiver, now) = (&mut call.receiver, call.now);
            let done = catch_unwind(AssertUnwindSafe(|| work(receiver, now)));
            call.failure = done.err();
        }
    }
}

/// What the library may call.
static CALLS: Calls = Calls {
    drop: on_drop,
    mark: on_mark,
    in_class,
    statistic,
    fail: on_failure,
};

unsafe extern "C" fn on_drop(host: *mut Host, packet: *const Ticket, reason: u32) {
    // SAFETY: the library passes a valid packet.
    let ticket = unsafe { *packet };
    let reason = match reason {
        0 => DropReason::Overlimit,
        2 => DropReason::AckFilter,
        _ => DropReason::Aqm,
    };
    let work = |receiver: &mut Receiver<'_>, now| match receiver {
        Receiver::Packets(obs) => obs.on_drop(now, ticket, reason),
        _ => fail("the queue dropped a packet outside enqueue and dequeue"),
    };
    // SAFETY: the library passes the host of this call.
    unsafe { Call::pass_on(host, work) };
}

unsafe extern "C" fn on_mark(host: *mut Host, packet: *const Ticket, reason: u32) {
    // SAFETY: the library passes a valid packet.
    let ticket = unsafe { *packet };
    let reason = match reason {
        1 => MarkReason::CeThreshold,
        _ => MarkReason::Aqm,
    };
    let work = |receiver: &mut Receiver<'_>, now| match receiver {
        Receiver::Packets(obs) => obs.on_mark(now, &ticket, reason),
        _ => fail("the queue marked a packet outside enqueue and dequeue"),
    };
    // SAFETY: the library passes the host of this call.
    unsafe { Call::pass_on(host, work) };
}

unsafe extern "C" fn in_class(host: *mut Host, name: Text, place: u64, numbered: u32) {
    let work = |receiver: &mut Receiver<'_>, _| {
        let class = ClassId {
            name: name_of(&name),
            place: place_of(place),
            numbered: numbered != 0,
        };
        match receiver {
            Receiver::Packets(obs) => obs.on_class(class),
            Receiver::Classes(found) => found.push(class),
            Receiver::Statistics(_) | Receiver::Nothing => {}
        }
    };
    // SAFETY: the library passes the host of this call.
    unsafe { Call::pass_on(host, work) };
}

unsafe extern "C" fn statistic(host: *mut Host, reported: *const Reported) {
    // SAFETY: the library passes a valid statistic.
    let reported = unsafe { *reported };
    let work = |receiver: &mut Receiver<'_>, _| {
        let Receiver::Statistics(found) = receiver else {
            return;
        };
        let list = name_of(&reported.list);
        found.push(Statistic {
            part: (!list.is_empty()).then(|| (list, place_of(reported.place))),
            name: name_of(&reported.name),
            value: match reported.kind {
                0 => Number::Count(reported.whole),
                1 => Number::Real(reported.real),
                _ => Number::Flag(reported.whole != 0),
            },
        });
    };
    // SAFETY: the library passes the host of this call.
    unsafe { Call::pass_on(host, work) };
}

unsafe extern "C" fn on_failure(host: *mut Host, why: Text) {
    let work = |_: &mut Receiver<'_>, _| {
        let why = text(&why).unwrap_or("failed").to_owned();
        resume_unwind(Box::new(Why(why)));
    };
    // SAFETY: the library passes the host of this call.
    unsafe { Call::pass_on(host, work) };
}

/// A name that the library reported, kept for the rest of the process.
fn name_of(of: &Text) -> &'static str {
    intern(text(of).unwrap_or_else(|error| fail(error.to_string())))
}

fn place_of(place: u64) -> usize {
    usize::try_from(place).unwrap_or_else(|_| fail("the index of a class is too large"))
}
