//! The processor's instruction that loads a cache line before it is needed.

/// Starts to load the cache line of `byte`; the processor goes on at once. Does nothing except on x86-64.
#[inline]
pub(crate) fn line(byte: &u8) {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the instruction is part of every x86-64 processor. It changes no memory and cannot fault.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(core::ptr::from_ref(byte).cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = byte;
}
