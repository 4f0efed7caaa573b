//! The processor's counter of time: all that differs between architectures, a file for each.
//!
//! Each file has `read`, the counter's value; `is_reliable`, whether it measures time; `hertz`, its rate if the processor
//! states one; `fence`, which keeps instructions in order; and `burn`, which keeps the processor busy.

#[cfg_attr(target_arch = "x86_64", path = "counter/x86_64.rs")]
#[cfg_attr(target_arch = "aarch64", path = "counter/aarch64.rs")]
#[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), path = "counter/none.rs")]
mod architecture;

pub use architecture::burn;
pub(crate) use architecture::{hertz, is_reliable, read};

/// Reads a clock in program order: otherwise a processor may read its counter early, which is not a defect of the counter.
pub fn in_order(read: impl FnOnce() -> u64) -> u64 {
    architecture::fence();
    let time = read();
    architecture::fence();
    time
}

/// Whether the kernel offers a clock of this name, which it does as long as it trusts the counter behind it. An unreadable
/// list is not evidence against the counter.
#[allow(dead_code, reason = "not every architecture has a counter")]
fn kernel_has(clock: &str) -> bool {
    std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/available_clocksource")
        .map_or(true, |list| list.contains(clock))
}
