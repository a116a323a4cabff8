//! A simulation that has found its size allocates nothing per packet.

#![expect(
    unsafe_code,
    reason = "a global allocator cannot be written without it"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

use sojourn_bench::dumbbell::Dumbbell;
use sojourn_net::Duration;

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call is passed on to the system's allocator with the arguments it came with.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps `alloc`'s contract, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps `realloc`'s contract, which is the same.
        unsafe { System.realloc(ptr, layout, new_size) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps `dealloc`'s contract, which is the same.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Packets delivered and allocations made in a run of `seconds`, with one sample at its end.
fn cost(name: &str, seconds: u64) -> (u64, u64) {
    let mut config = Dumbbell::named(name).expect("one of the list").config();
    config.duration = Duration::from_secs(seconds);
    config.sample = config.duration;
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    let records = sojourn_sim::run(&config, &mut |_| true)
        .expect("the scenario is sound")
        .expect("nobody stopped it");
    let after = ALLOCATIONS.load(Ordering::Relaxed);
    let delivered = records.links[Dumbbell::BOTTLENECK].totals.sent_packets;
    (delivered, after - before)
}

/// The second half of a run against the first: what start-up costs is in both.
///
/// One test, not several: they would count each other's allocations.
#[test]
fn the_second_half_of_a_run_allocates_nothing_per_packet() {
    for name in ["S1", "S5"] {
        let (half_delivered, half) = cost(name, 20);
        let (delivered, whole) = cost(name, 40);
        let packets = delivered - half_delivered;
        assert!(packets > 100_000, "{name}: only {packets} packets");
        let allocations = whole.saturating_sub(half);
        assert!(
            allocations * 10_000 < packets,
            "{name}: {allocations} allocations for {packets} packets"
        );
    }
}
