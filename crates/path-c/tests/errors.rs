//! What a caller in C can do wrong is an error with a text, never a panic.

#![expect(clippy::unwrap_used, reason = "a test may panic")]
#![allow(unsafe_code, reason = "the functions are called as C calls them")]

use std::ffi::{CStr, c_void};
use std::{fs, ptr, slice};

use sojournpath::abi::{
    ABI, Config, Counters, Delivery, EVENTS, Event, NEVER, NO_PACKET, STRICT, Text,
};
use sojournpath::*;

const PLAIN: &str = "rate 10mbit delay 5ms qdisc fq_codel";

fn config(forward: &str) -> Config {
    Config {
        abi: ABI,
        flags: EVENTS,
        seed: 1,
        forward: Text::of(forward),
        reverse: Text::of(""),
        forward_trace: Text::of(""),
        reverse_trace: Text::of(""),
        capture_file: Text::of(""),
        capture: None,
        capture_context: ptr::null_mut(),
    }
}

/// A path that is freed at the end of a test.
struct Owned(*mut Handle);

impl Owned {
    fn new(config: &Config) -> Self {
        // SAFETY: a valid config.
        Self(unsafe { sojourn_path_new(config) })
    }

    fn error(&self) -> Option<&str> {
        // SAFETY: a valid path, whose text lives until the next call.
        unsafe {
            let text = sojourn_path_error(self.0);
            (!text.is_null()).then(|| CStr::from_ptr(text).to_str().unwrap())
        }
    }

    fn push(&self, now: u64, way: u32, bytes: &[u8], ecn: u32, flow: u32) -> u64 {
        let (data, size) = (bytes.as_ptr().cast(), bytes.len());
        // SAFETY: a valid path and valid bytes.
        unsafe { sojourn_path_push(self.0, now, way, data, size, ecn, flow) }
    }

    fn poll(&self, now: u64) -> Result<Option<(Delivery, Vec<u8>)>, String> {
        let mut delivery = std::mem::MaybeUninit::<Delivery>::uninit();
        // SAFETY: a valid path, and a delivery that is read only if it was written.
        unsafe {
            match sojourn_path_poll(self.0, now, delivery.as_mut_ptr()) {
                1 => {
                    let delivery = delivery.assume_init();
                    let bytes = slice::from_raw_parts(delivery.bytes.cast(), delivery.size);
                    Ok(Some((delivery, bytes.to_vec())))
                }
                0 => Ok(None),
                _ => Err(self.error().unwrap().to_owned()),
            }
        }
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: the last use.
        unsafe { sojourn_path_free(self.0) };
    }
}

fn refused(config: &Config) -> String {
    let path = Owned::new(config);
    let error = path.error().unwrap().to_owned();
    // Every call fails, and the error stays.
    assert_eq!(path.push(0, 0, &[0; 10], 0, 0), NO_PACKET);
    assert!(path.poll(0).is_err());
    // SAFETY: a valid path.
    assert_eq!(unsafe { sojourn_path_deadline(path.0) }, NEVER);
    assert_eq!(path.error(), Some(&*error));
    assert_eq!(error.lines().count(), 1);
    error
}

#[test]
fn a_wrong_parameter_is_named() {
    for (text, error) in [
        (
            "rate 10 qdisc pfifo",
            "forward.rate: \"10\" is not a rate: the unit is missing",
        ),
        (
            "rate 10mbit",
            "forward.rate: a rate needs a queue; add, for example, \"qdisc fq_codel\"",
        ),
        (
            "qdisc pfifo",
            "forward.qdisc: a queue needs a rate or a trace",
        ),
        (
            "rate 10mbit qdisc codel tarqet 5ms",
            "forward.qdisc: codel: unknown parameter \"tarqet\"; did you mean \"target\"?",
        ),
        (
            "rate 10mbit lose 1% qdisc pfifo",
            "forward.lose: unknown key; expected delay,",
        ),
        ("delay 1ms delay 2ms", "forward.delay: given twice"),
        ("loss", "forward.loss: the value is missing"),
        (
            "loss 0.01",
            "forward.loss: \"0.01\" is not a percentage; expected 0% to 100%",
        ),
        (
            "drop 3,x",
            "forward.drop: \"x\" is not the number of a packet",
        ),
        (
            "drop 0",
            "forward.drop: \"0\" is not the number of a packet",
        ),
        (
            "order free",
            "forward.order: there is no jitter; add, for example, \"jitter 2ms\"",
        ),
    ] {
        let found = refused(&config(text));
        assert!(found.starts_with(error), "{text}: {found}");
    }
    let traced = |text: &'static str, trace: &'static str| Config {
        forward_trace: Text::of(trace),
        ..config(text)
    };
    let error = refused(&traced("qdisc pfifo", "1\n5\n3\n"));
    assert_eq!(
        error,
        "forward_trace: line 3: 3 follows 5; expected non-decreasing times"
    );
    let error = refused(&traced(PLAIN, "1\n"));
    assert_eq!(
        error,
        "forward.rate: the trace states the rate; remove one of them"
    );
    let error = refused(&Config {
        abi: 99,
        ..config(PLAIN)
    });
    assert_eq!(
        error,
        format!("version 99 of the interface; this library has version {ABI}")
    );
    let bytes = Text {
        data: [0xFF].as_ptr(),
        size: 1,
    };
    assert_eq!(
        refused(&Config {
            forward: bytes,
            ..config("")
        }),
        "forward: the text is not UTF-8"
    );
    // SAFETY: null is permitted.
    let nothing = Owned(unsafe { sojourn_path_new(ptr::null()) });
    assert_eq!(nothing.error(), Some("config is NULL"));
}

#[test]
fn a_late_poll_of_a_strict_path_is_an_error() {
    let path = Owned::new(&Config {
        flags: STRICT,
        ..config(PLAIN)
    });
    path.push(0, 0, b"a packet", 0, 1);
    assert_eq!(
        path.poll(9_000_000).unwrap_err(),
        "packet 0 arrived at 5.040000ms and was polled at 9.000000ms; call poll at each deadline"
    );
    path.push(9_000_000, 0, b"in time", 0, 1);
    // SAFETY: a valid path.
    let next = || unsafe { sojourn_path_deadline(path.0) };
    let mut arrived = 0;
    while next() != NEVER {
        arrived += usize::from(path.poll(next()).unwrap().is_some());
    }
    assert_eq!(arrived, 1);
    let error = refused(&Config {
        flags: 4,
        ..config(PLAIN)
    });
    assert_eq!(
        error,
        "unknown flags 0x4; expected the sum of 1 (events) and 2 (strict), one of them or 0"
    );
}

#[test]
fn an_error_leaves_the_path_as_it_was() {
    let path = Owned::new(&config(PLAIN));
    assert_eq!(path.error(), None);
    assert_eq!(path.push(1_000, 0, b"first", 2, 7), 0);
    for (now, way, ecn, flow, error) in [
        (
            999,
            0,
            0,
            0,
            "time 0.000999ms precedes that of an earlier call, 0.001000ms",
        ),
        (
            NEVER,
            0,
            0,
            0,
            "time 18446744073709551615 ns is out of range; expected less than 9223372036854775808 ns (292 years)",
        ),
        (
            1_000,
            2,
            0,
            0,
            "unknown direction 2; expected 0 (forward) or 1 (reverse)",
        ),
        (
            1_000,
            0,
            4,
            0,
            "unknown ECN field 4; expected 0 (not ECT), 1 (ECT(1)), 2 (ECT(0)) or 3 (CE)",
        ),
        (1_000, 0, 0, 65_536, "flow 65536 is not 0 to 65535"),
    ] {
        assert_eq!(path.push(now, way, b"never", ecn, flow), NO_PACKET);
        assert_eq!(path.error(), Some(error));
    }
    // SAFETY: a valid path, valid bytes, or null.
    unsafe {
        assert_eq!(
            sojourn_path_push_ip(path.0, 1_000, 0, b"E".as_ptr().cast(), 1),
            NO_PACKET
        );
        assert_eq!(
            path.error(),
            Some("1 bytes are not a complete IPv4 or IPv6 packet")
        );
        assert_eq!(
            sojourn_path_push(path.0, 1_000, 0, ptr::null(), 5, 0, 0),
            NO_PACKET
        );
        assert_eq!(path.error(), Some("5 bytes at NULL"));
        assert_eq!(sojourn_path_counters(path.0, 0, ptr::null_mut()), -1);
        assert_eq!(sojourn_path_set_rate(path.0, 1_000, 0, 0), -1);
        assert_eq!(path.error(), Some("the rate must be > 0"));
        assert_eq!(
            sojourn_path_set_wire(path.0, 1_000, 0, Text::of("loss 200%")),
            -1
        );
        assert_eq!(
            path.error(),
            Some("forward.loss: \"200%\" is not a percentage; expected 0% to 100%")
        );
        assert_eq!(sojourn_path_sojourn(path.0, 1, 0.5, &mut 0), -1);
        assert_eq!(path.error(), Some("no packet has departed"));
        assert_eq!(sojourn_path_events(path.0, ptr::null_mut(), 9), 0);
        assert_eq!(
            sojourn_path_set_wire(path.0, 1_000, 0, Text::of("delay 1ms")),
            0
        );
        assert_eq!(path.error(), None);
    }
    assert_eq!(path.push(1_000, 0, b"second", 0, 8), 1);
    // 60 B and 48 B take 37.6 and 38.4 µs at 10 Mbit/s; the wire takes 1 ms.
    let (first, bytes) = path.poll(2_000_000).unwrap().unwrap();
    assert_eq!(
        (first.packet, first.at, first.flow, first.ecn),
        (0, 1_038_600, 7, 2)
    );
    assert_eq!(bytes, b"first");
    let (second, bytes) = path.poll(2_000_000).unwrap().unwrap();
    assert_eq!(
        (second.packet, second.waited, &*bytes),
        (1, 37_600, &b"second"[..])
    );
    assert!(path.poll(2_000_000).unwrap().is_none());
    let mut counters = Counters::default();
    // SAFETY: a valid path.
    let code = unsafe { sojourn_path_counters(path.0, 0, &raw mut counters) };
    assert_eq!(code, 0);
    assert_eq!((counters.sent_packets, counters.sent_bytes), (2, 95));
}

#[test]
fn null_is_an_error() {
    let null = ptr::null_mut();
    // SAFETY: null is permitted.
    unsafe {
        assert_eq!(
            sojourn_path_push(null, 0, 0, ptr::null(), 0, 0, 0),
            NO_PACKET
        );
        assert_eq!(sojourn_path_poll(null, 0, ptr::null_mut()), -1);
        assert_eq!(sojourn_path_deadline(null), NEVER);
        assert_eq!(CStr::from_ptr(sojourn_path_error(null)), c"path is NULL");
        sojourn_path_free(null);
    }
}

unsafe extern "C" fn keep(context: *mut c_void, bytes: *const c_void, size: usize) {
    // SAFETY: the test passes a vector, and the path valid bytes.
    let (kept, part) = unsafe {
        let part = slice::from_raw_parts(bytes.cast::<u8>(), size);
        (&mut *context.cast::<Vec<u8>>(), part)
    };
    kept.extend_from_slice(part);
}

#[test]
fn a_file_and_a_function_get_the_same_capture() {
    let folder = tempfile::tempdir().unwrap();
    let name = folder.path().join("test.pcapng");
    let mut kept = Vec::<u8>::new();
    let to_file = Config {
        capture_file: Text::of(name.to_str().unwrap()),
        ..config(PLAIN)
    };
    let to_function = Config {
        capture: Some(keep),
        capture_context: (&raw mut kept).cast(),
        ..config(PLAIN)
    };
    for config in [&to_file, &to_function] {
        let path = Owned::new(config);
        assert_eq!(path.push(0, 0, b"payload", 0, 7), 0);
        assert!(path.poll(100_000_000).unwrap().is_some());
        // SAFETY: a valid path.
        assert_eq!(unsafe { sojourn_path_finish_capture(path.0) }, 0);
    }
    assert!(kept.windows(7).any(|part| part == b"payload"));
    assert_eq!(fs::read(&name).unwrap(), kept);
    let both = Config {
        capture: Some(keep),
        ..to_file
    };
    assert_eq!(
        refused(&both),
        "capture_file and capture are both set; set one"
    );
}

#[test]
fn events_and_statistics_are_those_of_the_queue() {
    let path = Owned::new(&config("rate 1mbit qdisc pie limit 2"));
    for _ in 0..4 {
        path.push(0, 0, &[0; 1_000], 0, 1);
    }
    let zero = Event {
        at: 0,
        packet: 0,
        waited: 0,
        size: 0,
        direction: 0,
        kind: 0,
        reason: 0,
        reserved: 0,
    };
    let mut some = [zero; 4];
    let mut kinds = Vec::new();
    loop {
        // SAFETY: a valid path and room for four.
        let count = unsafe { sojourn_path_events(path.0, some.as_mut_ptr(), 4) };
        kinds.extend(
            some[..count]
                .iter()
                .map(|event| (event.packet, event.kind, event.size)),
        );
        if count < 4 {
            break;
        }
    }
    // One departs, two wait, one is dropped.
    let size = 1_042;
    assert_eq!(
        kinds,
        [
            (0, 0, size),
            (0, 3, size),
            (1, 0, size),
            (2, 0, size),
            (3, 0, size),
            (3, 1, size)
        ]
    );
    let nothing = abi::Statistic {
        name: Text::of(""),
        list: Text::of(""),
        place: 0,
        kind: 0,
        whole: 0,
        real: 0.0,
    };
    let mut all = [nothing; 32];
    // SAFETY: a valid path and room for 32.
    let count = unsafe { sojourn_path_statistics(path.0, 0, all.as_mut_ptr(), 32) };
    let names = all[..count].iter().map(|one| {
        // SAFETY: the text lives as long as the library.
        let bytes = unsafe { slice::from_raw_parts(one.name.data, one.name.size) };
        str::from_utf8(bytes).unwrap()
    });
    assert!(names.into_iter().any(|name| name == "prob"), "{count}");
    // SAFETY: a valid path; room for none is permitted.
    let without_room = unsafe { sojourn_path_statistics(path.0, 0, ptr::null_mut(), 0) };
    assert_eq!(without_room, count);
}
