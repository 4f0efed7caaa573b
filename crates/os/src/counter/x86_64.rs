//! The time stamp counter.

use std::arch::x86_64::{__cpuid, _mm_lfence, _rdtsc};

#[inline(always)]
pub(crate) fn read() -> u64 {
    // SAFETY: every x86-64 processor has the instruction.
    unsafe { _rdtsc() }
}

/// Whether the counter ticks at one rate in all frequency and sleep states of the processor (CPUID 8000_0007h, EDX bit
/// 8), and the kernel trusts it too.
pub(crate) fn is_reliable() -> bool {
    let invariant = __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & (1 << 8) != 0;
    invariant && super::kernel_has("tsc")
}

/// Few processors state the rate, so it is measured.
pub(crate) fn hertz() -> Option<u64> {
    None
}

/// Waits until the instructions before it are done, and keeps those after it from beginning.
pub(super) fn fence() {
    // SAFETY: every x86-64 processor has the instruction.
    unsafe { _mm_lfence() }
}

/// Keeps the processor busy for this many ticks of the counter, which runs at the processor's nominal frequency.
#[inline]
pub fn burn(cycles: u64) {
    let began = read();
    while read().wrapping_sub(began) < cycles {
        std::hint::spin_loop();
    }
}
