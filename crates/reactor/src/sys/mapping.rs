//! Memory that the kernel shares with this process (mmap(2)).

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};

/// Mapped memory, unmapped on drop. Every access is checked against its length.
pub(crate) struct Mapping {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: the memory belongs to the value alone, and does not depend on a thread.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps `length` bytes of a socket's ring at `offset`.
    pub(crate) fn of(socket: &OwnedFd, length: usize, offset: libc::off_t) -> io::Result<Self> {
        Self::map(socket.as_raw_fd(), length, offset, libc::MAP_SHARED)
    }

    /// Zeroed memory of this process, aligned to a page.
    pub(crate) fn anonymous(length: usize) -> io::Result<Self> {
        Self::map(-1, length, 0, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS)
    }

    fn map(fd: libc::c_int, length: usize, offset: libc::off_t, flags: i32) -> io::Result<Self> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the kernel chooses an unused address, so no memory that is in use changes.
        let start = unsafe { libc::mmap(ptr::null_mut(), length, access, flags, fd, offset) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, length })
    }

    /// The address, for the kernel.
    pub(crate) fn address(&self) -> u64 {
        self.start.as_ptr() as u64
    }

    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// The place of a value in it. The offset has to be a multiple of the value's alignment.
    fn place<T>(&self, offset: usize) -> *mut T {
        let end = offset.checked_add(size_of::<T>());
        assert!(end.is_some_and(|end| end <= self.length), "outside of it");
        assert!(offset.is_multiple_of(align_of::<T>()), "not aligned");
        // SAFETY: the place is inside of the mapping, which is aligned to a page.
        unsafe { self.start.as_ptr().add(offset).cast() }
    }

    /// A number that the kernel changes too: read before anything after it, written after anything before it.
    pub(crate) fn shared(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: the place holds four bytes as long as `self` lives, and both sides access them as a whole.
        unsafe { AtomicU32::from_ptr(self.place(offset)) }
    }

    /// Reads a value. Only for plain numbers and structs of them: any bytes are valid.
    pub(crate) fn read<T: Plain>(&self, offset: usize) -> T {
        // SAFETY: the place is inside and aligned, and all bytes are a valid value of these types.
        unsafe { self.place::<T>(offset).read_volatile() }
    }

    /// Writes a value.
    pub(crate) fn write<T: Plain>(&mut self, offset: usize, value: T) {
        // SAFETY: the place is inside and aligned.
        unsafe { self.place::<T>(offset).write_volatile(value) }
    }

    /// Bytes that the kernel does not write until `self` is used again: the caller owns this part of a ring.
    pub(crate) fn bytes(&self, offset: usize, length: usize) -> &[u8] {
        let end = offset.checked_add(length);
        assert!(end.is_some_and(|end| end <= self.length), "outside of it");
        // SAFETY: the part is inside, and its owner is this process until it returns the part to the kernel, for
        // which it takes another call with `self`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().add(offset), length) }
    }

    /// Copies `bytes` to a part that the kernel does not use now.
    pub(crate) fn put(&mut self, offset: usize, bytes: &[u8]) {
        let end = offset.checked_add(bytes.len());
        assert!(end.is_some_and(|end| end <= self.length), "outside of it");
        // SAFETY: the part is inside, and nothing in this process refers to it while `self` is borrowed exclusively.
        unsafe {
            ptr::copy_nonoverlapping(bytes.as_ptr(), self.start.as_ptr().add(offset), bytes.len());
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own, and no reference to it outlives the value.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}

/// Types of which any bytes are a value.
///
/// # Safety
/// No padding matters, no reference, no pointer, no value that is not allowed.
pub(crate) unsafe trait Plain: Copy {}

// SAFETY: plain numbers, and structs of them.
unsafe impl Plain for u64 {}
// SAFETY: as above.
unsafe impl Plain for libc::xdp_desc {}
// SAFETY: as above.
unsafe impl Plain for libc::tpacket2_hdr {}

/// Reads a number that the kernel wrote, and after it whatever the kernel wrote before.
pub(crate) fn load(number: &AtomicU32) -> u32 {
    number.load(Ordering::Acquire)
}

/// Writes a number that the kernel reads, after everything written before.
pub(crate) fn store(number: &AtomicU32, value: u32) {
    number.store(value, Ordering::Release);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_bytes_are_where_they_were_put() {
        let mut mapping = Mapping::anonymous(4_096).unwrap();
        mapping.put(100, b"bytes");
        mapping.write(8, 7_u64);
        store(mapping.shared(16), 9);
        assert_eq!(mapping.bytes(100, 5), b"bytes");
        assert_eq!((mapping.read::<u64>(8), load(mapping.shared(16))), (7, 9));
        assert_eq!(mapping.address() % 4_096, 0);
    }

    #[test]
    #[should_panic(expected = "outside of it")]
    fn nothing_outside_is_read() {
        Mapping::anonymous(4_096).unwrap().bytes(4_090, 7);
    }

    #[test]
    #[should_panic(expected = "not aligned")]
    fn no_number_is_read_where_it_is_not_aligned() {
        Mapping::anonymous(4_096).unwrap().read::<u64>(4);
    }
}
