//! The virtual counter of the generic timer. All processors have the same one, and it ticks at one rate in all states.

use std::arch::asm;

#[inline(always)]
pub(crate) fn read() -> u64 {
    let ticks;
    // SAFETY: Linux lets programs read the counter. Where a processor reads it wrongly, the kernel reads it in their place.
    unsafe { asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack, preserves_flags)) };
    ticks
}

/// Whether the kernel keeps its time by this counter. (An emulator of programs has the clocks of another architecture.)
pub(crate) fn is_reliable() -> bool {
    super::kernel_has("arch_sys_counter")
}

/// The rate that the firmware states.
pub(crate) fn hertz() -> Option<u64> {
    let hertz: u64;
    // SAFETY: as for the counter.
    unsafe { asm!("mrs {}, cntfrq_el0", out(reg) hertz, options(nomem, nostack, preserves_flags)) };
    Some(hertz).filter(|&hertz| hertz > 0)
}

/// Waits until the instructions before it are done, and keeps those after it from beginning. (A counter is no memory: `dsb`
/// waits for the accesses before, and `isb` keeps the instructions in order.)
pub(super) fn fence() {
    // SAFETY: the instructions access nothing.
    unsafe { asm!("dsb ish", "isb", options(nostack, preserves_flags)) }
}

/// Keeps the processor busy for about this many cycles: a turn of the loop takes one. (The counter ticks at a rate that has
/// nothing to do with the processor's.)
#[inline]
pub fn burn(cycles: u64) {
    if cycles > 0 {
        // SAFETY: counts a register down.
        unsafe {
            asm!("2:", "subs {left}, {left}, #1", "b.ne 2b", left = inout(reg) cycles => _, options(nomem, nostack));
        }
    }
}
