//! Large pages for tables that packets read at random.
//!
//! A table of many megabytes has more pages of 4 KiB than the processor keeps translations of, so that each read at random
//! waits for the page's translation and then for the data. With pages of 2 MiB only the second wait is left. Linux takes
//! such pages for all memory, for memory that asks for it, or not at all, by
//! `/sys/kernel/mm/transparent_hugepage/enabled`.

/// Asks for large pages for the memory of this length in bytes that starts here, best before anything is written to it. It
/// changes no content, and does nothing where the system has no large pages.
pub fn large_pages(start: *const u8, length: usize) {
    crate::sys::memory::large_pages(start as usize, length);
}

#[cfg(test)]
mod tests {
    #[test]
    fn content_stays_as_it_is() {
        let mut memory = vec![7_u8; 8 << 20];
        super::large_pages(memory.as_ptr(), memory.len());
        memory[5 << 20] = 8;
        super::large_pages(memory.as_ptr(), memory.len());
        let sum: u64 = memory.iter().map(|&one| u64::from(one)).sum();
        assert_eq!(sum, 7 * (8 << 20) + 1);
        // Less than a page, and memory that is not there.
        super::large_pages(memory.as_ptr(), 10);
        super::large_pages(core::ptr::null(), 1 << 20);
    }
}
