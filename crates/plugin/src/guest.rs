//! The side of the plug-in: a queue as functions of the binary interface.
//!
//! Each function is called by the host as the header promises: with a pointer that `create` or `clone` returned,
//! one call at a time for each queue, and with pointers to host, packet and link that are valid during the call.

use std::any::Any;
use std::cell::RefCell;
use std::ffi::c_void;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook};
use std::ptr;
use std::sync::Arc;

use sojourn_qdisc::parameters::{
    Kind, Parameter as Declared, Params, Profile, Scalar, Unit, Value as _,
};
use sojourn_qdisc::testing::{Op, TestPacket, check_qdisc};
use sojourn_qdisc::{
    Bytes, ClassId, DropReason, Dscp, Ecn, FlowKey, Instant, LinkFacts, MarkReason, Number,
    Observer, Packet, Peek, Qdisc, QueueFailure, Rate, Rng, Statistic, TcpHeader, Ticket,
    Transport,
};

use crate::abi::{
    ABI, Headers, Host, Link, NEVER, NOTHING, Parameter, Queue, READS_HEADERS,
    Statistic as Reported, Text, UNKNOWN, Unit as Code, Value,
};

/// The packet that the queue of a plug-in handles.
pub trait Handled: Packet + Copy + 'static {
    /// Whether it has headers.
    const HEADERS: bool;

    /// The packet of a ticket.
    fn of(ticket: Ticket, headers: Option<&Headers>) -> Self;

    /// Its ticket.
    fn ticket(&self) -> &Ticket;
}

impl Handled for Ticket {
    const HEADERS: bool = false;

    #[inline]
    fn of(ticket: Ticket, _headers: Option<&Headers>) -> Self {
        ticket
    }

    #[inline]
    fn ticket(&self) -> &Ticket {
        self
    }
}

/// A ticket with the headers behind that of IP.
#[derive(Clone, Copy, Debug)]
pub struct WithHeaders {
    ticket: Ticket,
    transport: Transport,
}

impl Handled for WithHeaders {
    const HEADERS: bool = true;

    fn of(ticket: Ticket, headers: Option<&Headers>) -> Self {
        let transport = headers.map_or(Transport::Other, transport);
        Self { ticket, transport }
    }

    fn ticket(&self) -> &Ticket {
        &self.ticket
    }
}

impl Packet for WithHeaders {
    fn size(&self) -> Bytes {
        self.ticket.size()
    }

    fn ecn(&self) -> Ecn {
        self.ticket.ecn()
    }

    fn set_ecn(&mut self, ecn: Ecn) {
        self.ticket.set_ecn(ecn);
    }

    fn dscp(&self) -> Dscp {
        self.ticket.dscp()
    }

    fn set_dscp(&mut self, dscp: Dscp) {
        self.ticket.set_dscp(dscp);
    }

    fn is_control(&self) -> bool {
        self.ticket.is_control()
    }

    fn transport(&self) -> Transport {
        self.transport
    }

    fn flow(&self) -> FlowKey {
        self.ticket.flow()
    }
}

fn transport(headers: &Headers) -> Transport {
    match headers.transport {
        1 => Transport::Tcp(TcpHeader {
            seq: headers.seq,
            ack: headers.ack,
            payload: headers.payload,
            window: headers.window,
            flags: headers.flags,
            timestamps: (headers.has_timestamps != 0)
                .then_some((headers.timestamp, headers.echoed_timestamp)),
            sacks: headers.sacks.map(|[start, end]| (start, end)),
            other_options: headers.other_options != 0,
        }),
        2 => Transport::Udp,
        3 => Transport::QuicLong,
        _ => Transport::Other,
    }
}

/// Checks a queue with 100 random sequences of calls: what Sojourn does when it loads the plug-in.
///
/// # Panics
/// If the queue breaks the contract of a queue.
pub fn check<T: Params>(params: &T)
where
    T::Queue<TestPacket>: Clone,
{
    let link = LinkFacts {
        rate: Some(Rate::mbit(10)),
        ..LinkFacts::default()
    };
    for case in 0..100 {
        let mut rng = Rng::new(case);
        let calls = rng.below(400);
        let ops: Vec<_> = (0..calls).map(|_| Op::decode(rng.next_u64())).collect();
        check_qdisc(|| params.build(&link, Rng::new(case)), &ops);
    }
}

/// The queue with parameters `T`, for packets `K`, in a library of this version. Its memory is never freed.
///
/// # Panics
/// If `T` has no name, or a parameter whose unit the interface does not have.
pub fn declaration<T: Params, K: Handled>(version: &'static str) -> Queue
where
    T::Queue<K>: Clone,
{
    let kind = kind::<T>();
    let mut start = (kind.start)();
    let parameters = kind.parameters.iter();
    let parameters: Vec<_> = parameters
        .map(|parameter| {
            let value = start.value(parameter.key);
            let text = value.and_then(|value| parameter.text(value));
            declared(parameter, kind.profiles, text.as_deref())
        })
        .collect();
    Queue {
        abi: ABI,
        size: u32::try_from(size_of::<Queue>()).expect("the size of a struct"),
        name: Text::of(kind.name),
        version: Text::of(version),
        summary: Text::of(kind.summary),
        source: Text::of(kind.source),
        flags: if K::HEADERS { READS_HEADERS } else { 0 },
        parameter_count: u32::try_from(parameters.len()).expect("a short list"),
        parameters: parameters.leak().as_ptr(),
        conflict: Some(conflict::<T>),
        create: Some(create::<T, K>),
        clone: Some(clone::<T, K>),
        destroy: Some(destroy::<T, K>),
        enqueue: Some(enqueue::<T, K>),
        dequeue: Some(dequeue::<T, K>),
        peek: Some(peek::<T, K>),
        next_timer: <T::Queue<K> as Qdisc<K>>::TIMED.then_some(next_timer::<T, K>),
        on_timer: <T::Queue<K> as Qdisc<K>>::TIMED.then_some(on_timer::<T, K>),
        on_link_rate: Some(on_link_rate::<T, K>),
        statistics: Some(statistics::<T, K>),
        state: Some(state::<T, K>),
        classes: Some(classes::<T, K>),
    }
}

/// The first name of a discipline, and its defaults.
fn kind<T: Params>() -> &'static Kind<T> {
    T::KINDS.first().expect("the queue has a name")
}

/// A parameter whose default is `start`. A profile is a choice among the words of `profiles`.
fn declared(parameter: &Declared, profiles: &[Profile], start: Option<&str>) -> Parameter {
    let none = String::new;
    let (unit, of, words) = match parameter.unit {
        Unit::Time => (Code::Time, 0, none()),
        Unit::Millis => (Code::Millis, 0, none()),
        Unit::Micros => (Code::Micros, 0, none()),
        Unit::Rate => (Code::Rate, 0, none()),
        Unit::Size => (Code::Size, 0, none()),
        Unit::SignedSize(below) => (Code::SignedSize, below, none()),
        Unit::Packets => (Code::Packets, 0, none()),
        Unit::Count(what) => (Code::Count, 0, what.to_owned()),
        Unit::CountOrOff(what) => (Code::CountOrOff, 0, what.to_owned()),
        Unit::Fraction => (Code::Fraction, 0, none()),
        Unit::Weight => (Code::Weight, 0, none()),
        Unit::Percent => (Code::Percent, 0, none()),
        Unit::Ratio(whole) => (Code::Ratio, whole, none()),
        Unit::Decimal(places) => (Code::Decimal, places, none()),
        Unit::Flag => (Code::Flag, 0, none()),
        Unit::Choice(words) => (Code::Choice, 0, words.join(" ")),
        Unit::Profile => {
            let words: Vec<_> = profiles.iter().map(|profile| profile.word()).collect();
            (Code::Choice, 0, words.join(" "))
        }
        Unit::Numbers
        | Unit::Ratios(_)
        | Unit::Masked
        | Unit::Leaves
        | Unit::Word(_)
        | Unit::Entries(_) => {
            panic!(
                "{}: plug-ins do not support parameters of this type",
                parameter.key
            )
        }
    };
    let mut scalar = Scalar::Unset;
    if let Some(text) = start {
        match profiles.iter().position(|profile| profile.word() == text) {
            Some(place) if parameter.unit == Unit::Profile => scalar = Scalar::Whole(place as u64),
            _ => {
                let read = scalar.read(parameter, text);
                read.unwrap_or_else(|flaw| panic!("{}: default {text}: {flaw:?}", parameter.key));
            }
        }
    }
    Parameter {
        key: Text::of(parameter.key),
        meaning: Text::of(parameter.meaning),
        provenance: Text::of(parameter.provenance),
        unset: Text::of(parameter.unset),
        words: Text::of(words.leak()),
        unit: unit as u32,
        of,
        min: parameter.min,
        max: parameter.max,
        start: Value::from(scalar),
    }
}

impl From<Scalar> for Value {
    fn from(scalar: Scalar) -> Self {
        let (is_set, whole, real) = match scalar {
            Scalar::Unset => (0, 0, 0.0),
            Scalar::Whole(whole) => (1, whole, 0.0),
            Scalar::Real(real) => (1, 0, real),
        };
        Self {
            is_set,
            whole,
            real,
        }
    }
}

/// The parameters with `values`, one for each that `T` declares.
///
/// # Safety
/// There are as many.
unsafe fn read<T: Params>(values: *const Value) -> T {
    let kind = kind::<T>();
    let mut params = (kind.start)();
    for (place, parameter) in kind.parameters.iter().enumerate() {
        // SAFETY: the caller passes as many values as there are parameters.
        let value = unsafe { *values.add(place) };
        let scalar = match parameter.unit {
            _ if value.is_set == 0 => Scalar::Unset,
            Unit::Fraction | Unit::Weight | Unit::Percent => Scalar::Real(value.real),
            _ => Scalar::Whole(value.whole),
        };
        let Some(field) = params.value(parameter.key) else {
            continue;
        };
        let text = match scalar {
            Scalar::Whole(place) if parameter.unit == Unit::Profile => {
                let profile = usize::try_from(place).map(|place| kind.profiles.get(place));
                profile
                    .ok()
                    .flatten()
                    .map(|profile| profile.word().to_owned())
            }
            _ => scalar.text(parameter.unit),
        };
        match text {
            None => field.clear(),
            Some(text) => {
                let set = parameter.set(field, &text);
                set.unwrap_or_else(|flaw| panic!("{} {text}: {flaw:?}", parameter.key));
            }
        }
    }
    params
}

thread_local! {
    /// The message of the last panic.
    static MESSAGE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Keeps the message of a panic, with its place, for the report of the run instead of printing it. It concerns the
/// library alone, which has a standard library of its own.
pub fn report_panics_by_message() {
    set_hook(Box::new(|info| {
        MESSAGE.with_borrow_mut(|message| *message = info.to_string());
    }));
}

/// What a panic says.
fn message(payload: &(dyn Any + Send)) -> String {
    let kept = MESSAGE.take();
    if let Some(failure) = payload.downcast_ref::<QueueFailure>() {
        let cause = failure.cause.downcast_ref::<String>();
        return cause.map_or("failed", String::as_str).to_owned();
    }
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
    // "panicked at src/lib.rs:30:9:\nattempt to subtract with overflow"
    let place = kept.lines().next().unwrap_or_default();
    let place = place
        .strip_prefix("panicked at ")
        .map_or("", |rest| rest.trim_end_matches(':'));
    let text = text.unwrap_or("panicked");
    if place.is_empty() {
        text.to_owned()
    } else {
        format!("{text} ({place})")
    }
}

/// Calls `work` and reports a panic in it to `host`, because it must not leave the library.
///
/// # Safety
/// `host` is valid.
#[inline]
unsafe fn guarded<R>(host: *mut Host, otherwise: R, work: impl FnOnce() -> R) -> R {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(done) => done,
        Err(payload) => {
            let message = message(&*payload);
            // SAFETY: the host is valid, and it copies the text.
            unsafe { ((*host).calls.fail)(host, Text::of(&message)) };
            otherwise
        }
    }
}

/// The queue behind a pointer of the host.
///
/// # Safety
/// `create::<T, K>` or `clone::<T, K>` made it, and nothing else uses it during `'a`.
#[inline]
unsafe fn queue<'a, T: Params, K: Handled>(queue: *mut c_void) -> &'a mut T::Queue<K> {
    // SAFETY: as the caller promises.
    unsafe { &mut *queue.cast() }
}

/// As [`queue()`], to read it.
///
/// # Safety
/// As [`queue()`].
#[inline]
unsafe fn shared<'a, T: Params, K: Handled>(queue: *const c_void) -> &'a T::Queue<K> {
    // SAFETY: as the caller promises.
    unsafe { &*queue.cast() }
}

unsafe extern "C" fn conflict<T: Params>(values: *const Value, host: *mut Host) {
    let work = || {
        // SAFETY: the host passes a value for each parameter.
        if let Some(why) = unsafe { read::<T>(values) }.conflict() {
            // SAFETY: the host is valid, and it copies the text.
            unsafe { ((*host).calls.fail)(host, Text::of(&why)) };
        }
    };
    // SAFETY: the host is valid.
    unsafe { guarded(host, (), work) };
}

unsafe extern "C" fn create<T: Params, K: Handled>(
    values: *const Value,
    link: *const Link,
    seed: u64,
    host: *mut Host,
) -> *mut c_void {
    let work = || {
        // SAFETY: the link is valid.
        let link = unsafe { *link };
        let name = if link.size_of_name() == 0 {
            None
        } else {
            // SAFETY: the host passes UTF-8 that is valid during the call.
            let bytes = unsafe { std::slice::from_raw_parts(link.name.data, link.name.size) };
            Some(Arc::from(&*String::from_utf8_lossy(bytes)))
        };
        let facts = LinkFacts {
            rate: Rate::from_bits_per_sec(link.rate),
            mtu: Bytes(link.mtu),
            name,
            flows: None,
        };
        // SAFETY: the host passes a value for each parameter.
        let mut params = unsafe { read::<T>(values) };
        params.resolve(&facts);
        let queue = params.build::<K>(&facts, Rng::new(seed));
        Box::into_raw(Box::new(queue)).cast()
    };
    // SAFETY: the host is valid.
    unsafe { guarded(host, ptr::null_mut(), work) }
}

impl Link {
    const fn size_of_name(&self) -> usize {
        self.name.size
    }
}

unsafe extern "C" fn clone<T: Params, K: Handled>(of: *const c_void, host: *mut Host) -> *mut c_void
where
    T::Queue<K>: Clone,
{
    let work = || {
        // SAFETY: the host passes a queue of this type.
        let copy = unsafe { shared::<T, K>(of) }.clone();
        Box::into_raw(Box::new(copy)).cast()
    };
    // SAFETY: the host is valid.
    unsafe { guarded(host, ptr::null_mut(), work) }
}

unsafe extern "C" fn destroy<T: Params, K: Handled>(queue: *mut c_void) {
    // SAFETY: the host passes a queue of this type for the last time.
    let queue: Box<T::Queue<K>> = unsafe { Box::from_raw(queue.cast()) };
    // A panic has no one to be reported to.
    let _ = catch_unwind(AssertUnwindSafe(|| drop(queue)));
}

/// A copy of a ticket that the host has just written. It is read by words as it was written: a processor waits when
/// it reads more at a time than it wrote.
///
/// # Safety
/// The pointer is valid.
#[inline]
unsafe fn copied(ticket: *const Ticket) -> Ticket {
    const WORDS: usize = size_of::<Ticket>() / size_of::<u64>();
    let mut words = [0_u64; WORDS];
    for (place, word) in words.iter_mut().enumerate() {
        // SAFETY: a ticket consists of this many words.
        *word = unsafe { ticket.cast::<u64>().add(place).read_volatile() };
    }
    // SAFETY: a ticket is words of any value, and as large.
    unsafe { mem::transmute(words) }
}

unsafe extern "C" fn enqueue<T: Params, K: Handled>(
    of: *mut c_void,
    host: *mut Host,
    now: u64,
    packet: *const Ticket,
    headers: *const Headers,
) {
    // SAFETY: the host passes a queue of this type, and headers or null.
    let (queue, headers) = unsafe { (queue::<T, K>(of), headers.as_ref()) };
    let work = || {
        // SAFETY: the host passes a valid packet.
        let packet = K::of(unsafe { copied(packet) }, headers);
        queue.enqueue(Instant::from_nanos(now), packet, &mut Reporter(host));
    };
    // SAFETY: the host is valid.
    unsafe { guarded(host, (), work) };
}

unsafe extern "C" fn dequeue<T: Params, K: Handled>(
    of: *mut c_void,
    host: *mut Host,
    now: u64,
) -> u64 {
    // SAFETY: the host passes a queue of this type.
    let queue = unsafe { queue::<T, K>(of) };
    let work = || {
        let left = queue.dequeue(Instant::from_nanos(now), &mut Reporter(host));
        left.map_or(NOTHING, |left| left.ticket().leaving().word())
    };
    // SAFETY: the host is valid.
    unsafe { guarded(host, NOTHING, work) }
}

unsafe extern "C" fn peek<T: Params, K: Handled>(of: *const c_void, host: *mut Host) -> u64 {
    // SAFETY: the host passes a queue of this type.
    let queue = unsafe { shared::<T, K>(of) };
    let work = || match queue.peek() {
        Peek::Dequeues => UNKNOWN,
        Peek::Head(size) => size.0,
        Peek::Empty => 0,
    };
    // SAFETY: the host is valid.
    unsafe { guarded(host, UNKNOWN, work) }
}

unsafe extern "C" fn next_timer<T: Params, K: Handled>(of: *const c_void, host: *mut Host) -> u64 {
    // SAFETY: the host passes a queue of this type.
    let queue = unsafe { shared::<T, K>(of) };
    let work = || queue.next_timer().map_or(NEVER, Instant::as_nanos);
    // SAFETY: the host is valid.
    unsafe { guarded(host, NEVER, work) }
}

unsafe extern "C" fn on_timer<T: Params, K: Handled>(of: *mut c_void, host: *mut Host, now: u64) {
    // SAFETY: the host passes a queue of this type.
    let queue = unsafe { queue::<T, K>(of) };
    // SAFETY: the host is valid.
    unsafe { guarded(host, (), || queue.on_timer(Instant::from_nanos(now))) };
}

unsafe extern "C" fn on_link_rate<T: Params, K: Handled>(
    of: *mut c_void,
    host: *mut Host,
    now: u64,
    rate: u64,
) {
    // SAFETY: the host passes a queue of this type.
    let queue = unsafe { queue::<T, K>(of) };
    let work = || {
        if let Some(rate) = Rate::from_bits_per_sec(rate) {
            queue.on_link_rate(Instant::from_nanos(now), rate);
        }
    };
    // SAFETY: the host is valid.
    unsafe { guarded(host, (), work) };
}

unsafe extern "C" fn statistics<T: Params, K: Handled>(of: *const c_void, host: *mut Host) {
    // SAFETY: the host passes a queue of this type.
    let queue = unsafe { shared::<T, K>(of) };
    let work = || {
        for one in queue.statistics() {
            Reporter(host).statistic(&one);
        }
    };
    // SAFETY: the host is valid.
    unsafe { guarded(host, (), work) };
}

unsafe extern "C" fn state<T: Params, K: Handled>(of: *const c_void, host: *mut Host, now: u64) {
    // SAFETY: the host passes a queue of this type.
    let queue = unsafe { shared::<T, K>(of) };
    let work = || {
        for one in queue.state(Instant::from_nanos(now)) {
            Reporter(host).statistic(&one);
        }
    };
    // SAFETY: the host is valid.
    unsafe { guarded(host, (), work) };
}

unsafe extern "C" fn classes<T: Params, K: Handled>(of: *const c_void, host: *mut Host) {
    // SAFETY: the host passes a queue of this type.
    let queue = unsafe { shared::<T, K>(of) };
    let work = || {
        for class in queue.classes() {
            Reporter(host).in_class(class);
        }
    };
    // SAFETY: the host is valid.
    unsafe { guarded(host, (), work) };
}

/// Passes on what a queue reports during a call. The host is valid during the call.
struct Reporter(*mut Host);

impl Reporter {
    fn statistic(&self, one: &Statistic) {
        let (list, place) = one.part.unwrap_or_default();
        let (kind, whole, real) = match one.value {
            Number::Count(count) => (0, count, 0.0),
            Number::Real(real) => (1, 0, real),
            Number::Flag(flag) => (2, flag.into(), 0.0),
        };
        let reported = Reported {
            name: Text::of(one.name),
            list: Text::of(list),
            place: place as u64,
            kind,
            whole,
            real,
        };
        // SAFETY: the host is valid, and it copies what it keeps.
        unsafe { ((*self.0).calls.statistic)(self.0, &raw const reported) };
    }

    fn in_class(&self, class: ClassId) {
        let (name, place) = (Text::of(class.name), class.place as u64);
        // SAFETY: the host is valid, and it copies what it keeps.
        unsafe { ((*self.0).calls.in_class)(self.0, name, place, class.numbered.into()) };
    }
}

impl<K: Handled> Observer<K> for Reporter {
    fn on_class(&mut self, class: ClassId) {
        self.in_class(class);
    }

    fn on_drop(&mut self, _now: Instant, pkt: K, reason: DropReason) {
        let reason = match reason {
            // No queue drops its own packets because it is replaced.
            DropReason::Overlimit | DropReason::Replaced => 0,
            DropReason::Aqm => 1,
            DropReason::AckFilter => 2,
        };
        // SAFETY: the host is valid, and it only reads the packet.
        unsafe { ((*self.0).calls.drop)(self.0, pkt.ticket(), reason) };
    }

    fn on_mark(&mut self, _now: Instant, pkt: &K, reason: MarkReason) {
        let reason = match reason {
            MarkReason::Aqm => 0,
            MarkReason::CeThreshold => 1,
        };
        // SAFETY: the host is valid, and it only reads the packet.
        unsafe { ((*self.0).calls.mark)(self.0, pkt.ticket(), reason) };
    }
}
