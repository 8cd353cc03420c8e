//! Advice to the kernel about memory (madvise(2)).

/// What every processor's smallest page is a multiple of; the kernel wants whole pages.
const PAGE: usize = 65_536;

/// Asks for large pages for all whole pages of a range of addresses.
pub(crate) fn large_pages(start: usize, length: usize) {
    let first = start.next_multiple_of(PAGE);
    let end = start.saturating_add(length) / PAGE * PAGE;
    if first >= end {
        return;
    }
    // SAFETY: this advice changes only which pages the kernel backs memory with, never its content or its access rights,
    // so it is harmless for any address. The kernel refuses addresses that are not mapped.
    let _ = unsafe { libc::madvise(first as *mut libc::c_void, end - first, libc::MADV_HUGEPAGE) };
}
