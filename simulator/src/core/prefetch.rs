// SPDX-License-Identifier: GPL-2.0-or-later
//! Prefetch memory that an event will need soon, so that it arrives while other events run.

/// Prefetches a value without waiting for it. Does nothing on processors without the instruction.
#[inline]
#[allow(unsafe_code)]
pub(crate) fn prefetch<T>(value: &T) {
    let start = std::ptr::from_ref(value).cast::<i8>();
    for line in 0..size_of::<T>().div_ceil(LINE) {
        let at = start.wrapping_add(line * LINE);
        // SAFETY: a prefetch reads nothing that the program could see, and faults at no address.
        #[cfg(target_arch = "x86_64")]
        unsafe {
            use std::arch::x86_64::{_mm_prefetch, _MM_HINT_T0};
            _mm_prefetch::<_MM_HINT_T0>(at);
        }
        #[cfg(target_arch = "aarch64")]
        unsafe {
            std::arch::asm!(
                "prfm pldl1keep, [{at}]",
                at = in(reg) at,
                options(nostack, preserves_flags, readonly)
            );
        }
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        let _ = at;
    }
}

/// Bytes of a cache line.
const LINE: usize = 64;
