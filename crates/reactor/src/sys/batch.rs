//! recvmmsg(2) and sendmmsg(2): many messages per call, with names and `N` words of ancillary data each.

use std::io;
use std::mem::{self, size_of};
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;

use crate::sys::address::RawAddress;
use crate::sys::check;
use crate::sys::control::each_control;
use crate::syscalls::{Call, enter};

pub(super) fn empty_header() -> libc::mmsghdr {
    // SAFETY: all zeros (null pointers, no lengths) is a valid `mmsghdr`.
    unsafe { mem::zeroed() }
}

/// recvmmsg(2) without waiting for more messages than are there.
///
/// This and [`sendmmsg`] are the system calls themselves, because musl's `sendmmsg` calls sendmsg(2) for each message:
/// its `msghdr` has 32-bit lengths with padding beside them, where the kernel has 64-bit lengths. That padding is 0 in
/// headers made by [`empty_header`].
///
/// # Safety
/// The headers are made by [`empty_header`]. They point to buffers of the lengths they say, and nothing else refers to
/// these during the call.
pub(super) unsafe fn recvmmsg(
    socket: &OwnedFd,
    headers: &mut [libc::mmsghdr],
    flags: libc::c_int,
) -> io::Result<usize> {
    let no_limit: *mut libc::timespec = ptr::null_mut();
    // SAFETY: the caller promises what the pointers lead to; the kernel writes at most `headers.len()` headers.
    let result = unsafe {
        libc::syscall(
            libc::SYS_recvmmsg,
            socket.as_raw_fd(),
            headers.as_mut_ptr(),
            headers.len() as libc::c_uint,
            libc::MSG_DONTWAIT | flags,
            no_limit,
        )
    };
    check(result as libc::c_int)
}

/// sendmmsg(2): all `headers` in one system call.
///
/// # Safety
/// As for [`recvmmsg`]; the kernel only reads the buffers.
pub(super) unsafe fn sendmmsg(
    socket: &OwnedFd,
    headers: &mut [libc::mmsghdr],
    flags: libc::c_int,
) -> io::Result<usize> {
    // SAFETY: as in `recvmmsg`.
    let result = unsafe {
        libc::syscall(
            libc::SYS_sendmmsg,
            socket.as_raw_fd(),
            headers.as_mut_ptr(),
            headers.len() as libc::c_uint,
            libc::MSG_DONTWAIT | flags,
        )
    };
    check(result as libc::c_int)
}

/// Buffers for a batch of received messages, allocated once.
pub(super) struct Incoming<const N: usize> {
    // The headers point into the other vectors, which never grow.
    headers: Vec<libc::mmsghdr>,
    _vectors: Vec<libc::iovec>,
    names: Vec<RawAddress>,
    controls: Vec<[u64; N]>,
    payload: Vec<u8>,
    stride: usize,
    /// Headers that the kernel has written to.
    used: usize,
}

// SAFETY: the pointers lead only to memory that the struct itself owns.
unsafe impl<const N: usize> Send for Incoming<N> {}

impl<const N: usize> Incoming<N> {
    /// `stride` bytes apart, `size` of them used for each message.
    pub(super) fn new(slots: usize, size: usize, stride: usize) -> Self {
        let mut payload = vec![0_u8; slots * stride];
        let mut names = vec![RawAddress::zeroed(); slots];
        let mut controls = vec![[0; N]; slots];
        let mut vectors: Vec<libc::iovec> = payload
            .chunks_exact_mut(stride)
            .map(|chunk| libc::iovec {
                iov_base: chunk.as_mut_ptr().cast(),
                iov_len: size.min(stride),
            })
            .collect();
        let mut headers = vec![empty_header(); slots];
        for (i, header) in headers.iter_mut().enumerate() {
            header.msg_hdr.msg_name = (&raw mut names[i]).cast();
            header.msg_hdr.msg_iov = &raw mut vectors[i];
            header.msg_hdr.msg_iovlen = 1;
            header.msg_hdr.msg_control = (&raw mut controls[i]).cast();
        }
        Self {
            headers,
            _vectors: vectors,
            names,
            controls,
            payload,
            stride,
            used: slots,
        }
    }

    pub(super) fn capacity(&self) -> usize {
        self.headers.len()
    }

    /// One non-blocking recvmmsg call. Returns the number of messages.
    pub(super) fn receive(&mut self, socket: &OwnedFd, flags: libc::c_int) -> io::Result<usize> {
        for header in &mut self.headers[..self.used] {
            header.msg_hdr.msg_namelen = size_of::<RawAddress>() as libc::socklen_t;
            header.msg_hdr.msg_controllen = size_of::<[u64; N]>() as _;
        }
        self.used = 0;
        enter(Call::Recvmmsg)?;
        // SAFETY: the headers point to buffers of the lengths they say, which this
        // struct owns and nothing else refers to during the call.
        self.used = unsafe { recvmmsg(socket, &mut self.headers, flags) }?;
        Ok(self.used)
    }

    /// The sender's address of a message of the last call.
    pub(super) fn name(&self, index: usize) -> Option<SocketAddr> {
        // Without an address the buffer holds that of an earlier message.
        let named = self.headers[..self.used][index].msg_hdr.msg_namelen > 0;
        self.names[index].get().filter(|_| named)
    }

    /// The length that recvmmsg reported for a message: the bytes it stored, or with `MSG_TRUNC` the bytes it had.
    pub(super) fn length(&self, index: usize) -> u32 {
        self.headers[..self.used][index].msg_len
    }

    /// Whether a message was truncated.
    pub(super) fn is_truncated(&self, index: usize) -> bool {
        self.headers[..self.used][index].msg_hdr.msg_flags & libc::MSG_TRUNC != 0
    }

    /// The first `length` bytes of a message's buffer.
    pub(super) fn payload(&self, index: usize, length: usize) -> &[u8] {
        let start = index * self.stride;
        &self.payload[start..start + length]
    }

    /// Calls `f` with level, type and data of each piece of a message's ancillary data.
    pub(super) fn each_control(
        &self,
        index: usize,
        f: impl FnMut(libc::c_int, libc::c_int, &[u8]),
    ) {
        let header = &self.headers[..self.used][index].msg_hdr;
        each_control(header, &self.controls[index], f);
    }
}

/// A message to send.
pub(super) trait Outgoing<'a> {
    /// Its bytes.
    fn bytes(&self) -> &'a [u8];
    /// The receiver; `None` on a connected socket.
    fn peer(&self) -> Option<SocketAddr>;
    /// Writes its ancillary data; returns its bytes.
    fn write_controls(&self, buffer: &mut [u64]) -> usize;
}

/// Headers for a batch of messages to send, allocated once.
pub(super) struct Headers<const N: usize> {
    headers: Vec<libc::mmsghdr>,
    vectors: Vec<libc::iovec>,
    names: Vec<RawAddress>,
    controls: Vec<[u64; N]>,
}

// SAFETY: the pointers are used only within `send`, which sets them first.
unsafe impl<const N: usize> Send for Headers<N> {}

impl<const N: usize> Headers<N> {
    pub(super) fn new(slots: usize) -> Self {
        let vector = libc::iovec {
            iov_base: ptr::null_mut(),
            iov_len: 0,
        };
        Self {
            headers: vec![empty_header(); slots],
            vectors: vec![vector; slots],
            names: vec![RawAddress::zeroed(); slots],
            controls: vec![[0; N]; slots],
        }
    }

    pub(super) fn capacity(&self) -> usize {
        self.headers.len()
    }

    /// One sendmmsg call for as many of `messages` as there are slots. Returns the number sent; an error is about the
    /// first one.
    pub(super) fn send<'a, M: Outgoing<'a>>(
        &mut self,
        socket: &OwnedFd,
        messages: impl Iterator<Item = M>,
    ) -> io::Result<usize> {
        let mut count = 0;
        for (index, message) in messages.take(self.capacity()).enumerate() {
            self.fill(index, &message);
            count = index + 1;
        }
        enter(Call::Sendmmsg)?;
        // SAFETY: the headers point to the messages' bytes, which live for `'a` and are only read, and to this
        // struct's buffers, with the lengths they say.
        unsafe { sendmmsg(socket, &mut self.headers[..count], libc::MSG_NOSIGNAL) }
    }

    fn fill<'a>(&mut self, index: usize, message: &impl Outgoing<'a>) {
        let bytes = message.bytes();
        self.vectors[index] = libc::iovec {
            iov_base: bytes.as_ptr().cast_mut().cast(),
            iov_len: bytes.len(),
        };
        let controls = message.write_controls(&mut self.controls[index]);
        let name = message.peer().map_or(0, |peer| self.names[index].set(peer));
        let header = &mut self.headers[index].msg_hdr;
        header.msg_name = match name {
            0 => ptr::null_mut(),
            _ => (&raw mut self.names[index]).cast(),
        };
        header.msg_namelen = name;
        header.msg_iov = &raw mut self.vectors[index];
        header.msg_iovlen = 1;
        header.msg_control = match controls {
            0 => ptr::null_mut(),
            _ => (&raw mut self.controls[index]).cast(),
        };
        // No more than the buffer holds, whatever the message says.
        header.msg_controllen = controls.min(size_of::<[u64; N]>()) as _;
    }
}
