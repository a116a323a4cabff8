//! Asks the processor to load memory that is read soon.
//!
//! With thousands of flows, their state exceeds the caches, and each packet waits for the memory of
//! its flow. A simulator knows which packets come next, so it can ask for that memory early. A
//! prefetch changes no result. On processors other than x86-64 and ARM64 it does nothing.

#![no_std]

#[cfg(test)]
extern crate std;

/// Bytes of a cache line.
const LINE: usize = 64;

/// Asks for the memory of `value`, all cache lines of it, without waiting.
#[inline]
pub fn prefetch<T>(value: &T) {
    let first = core::ptr::from_ref(value).cast::<u8>();
    for_each_line(size_of::<T>(), align_of::<T>(), |offset| {
        line(first.wrapping_add(offset));
    });
}

/// Calls `touch` with the offsets of bytes of which each cache line of a value has at least one, wherever the value
/// begins.
#[inline(always)]
#[expect(
    clippy::inline_always,
    reason = "size and alignment are constants, so that no loop remains"
)]
fn for_each_line(size: usize, align: usize, mut touch: impl FnMut(usize)) {
    for offset in (0..size).step_by(LINE) {
        touch(offset);
    }
    // A value that does not begin at the start of a line may end in one more.
    if align < LINE && size > 1 {
        touch(size - 1);
    }
}

/// Asks for the cache line of `address`.
#[cfg(target_arch = "x86_64")]
#[inline]
#[expect(unsafe_code, reason = "safe Rust has no prefetch instruction")]
fn line(address: *const u8) {
    use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

    // SAFETY: `prefetcht0` reads no value and never faults, whatever the address; every x86-64
    // processor has it.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) }
}

/// Asks for the cache line of `address`.
#[cfg(target_arch = "aarch64")]
#[inline]
#[expect(unsafe_code, reason = "safe Rust has no prefetch instruction")]
fn line(address: *const u8) {
    // SAFETY: `prfm` reads no value and never faults, whatever the address; it changes neither
    // memory nor registers.
    unsafe {
        core::arch::asm!(
            "prfm pldl1keep, [{address}]",
            address = in(reg) address,
            options(nostack, preserves_flags, readonly)
        );
    }
}

/// Does nothing.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[inline]
fn line(_: *const u8) {}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::vec;

    use super::{LINE, for_each_line, prefetch};

    #[test]
    fn every_line_of_a_value_is_asked_for() {
        for size in [0, 1, 8, 63, 64, 65, 200, 512] {
            for align in [1, 8, 64] {
                for begin in (0..2 * LINE).step_by(align) {
                    let lines: BTreeSet<_> = (begin..begin + size).map(|at| at / LINE).collect();
                    let mut asked = BTreeSet::new();
                    for_each_line(size, align, |at| {
                        asked.insert((begin + at) / LINE);
                    });
                    assert_eq!(asked, lines, "{size} bytes at {begin}");
                }
            }
        }
    }

    #[test]
    fn a_prefetch_changes_nothing() {
        let large = vec![[7_u8; 1_000]; 3];
        large.iter().for_each(prefetch);
        prefetch(&());
        prefetch(&large[1][999]);
        assert!(large.iter().flatten().all(|&byte| byte == 7));
    }
}
