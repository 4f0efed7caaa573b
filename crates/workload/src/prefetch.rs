//! The processor's hint that memory will be read soon.

/// Brings a value into the nearest cache. It is only a hint, and does nothing on processors without one that is known here.
#[inline(always)]
pub(crate) fn prefetch<T>(value: &T) {
    let address = std::ptr::from_ref(value);
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a hint, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: a hint, whatever the address.
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{}]", in(reg) address, options(readonly, nostack, preserves_flags));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = address;
}
