//! Sending frames by an AF_XDP socket (the kernel's Documentation/networking/af_xdp.rst): frames are copied to
//! chunks of shared memory, and one call sends them all. It works with every Ethernet interface (`XDP_COPY`) and
//! takes no program. The frames go to the interface's first queue, without its queue discipline.
//!
//! Left out: receiving, frames that the interface has to cut, and frames without a checksum.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::ptr;

use rustix::net::{AddressFamily, SocketFlags, SocketType};

use super::check;
use super::mapping::{Mapping, load, store};
use super::socket::{get_plain, set_number, set_plain};
use crate::syscalls::{Call, enter};

/// Chunks, and entries of each ring; a power of two.
const CHUNKS: u32 = 512;

/// `XDP_MAX_TX_SKB_BUDGET` (Linux 6.17): frames sent by one call, 32 before.
const BUDGET: libc::c_int = 9;

/// The longest frame that fits a chunk: a chunk is a page at most.
const FRAME_MAX: usize = 4_096;

/// No chunk: the kernel skips an entry with this address.
const NOWHERE: u64 = u64::MAX;

/// A socket that sends by rings.
pub(crate) struct XdpSend {
    socket: OwnedFd,
    chunks: Mapping,
    chunk: usize,
    /// Entries for the kernel: a ring of descriptors.
    entries: Ring,
    /// Chunks that the kernel has sent: a ring of addresses.
    done: Ring,
    /// Entries written so far.
    written: u32,
    free: Vec<u32>,
    in_use: [bool; CHUNKS as usize],
}

struct Ring {
    memory: Mapping,
    producer: usize,
    consumer: usize,
    entries: usize,
}

impl Ring {
    fn map(
        socket: &OwnedFd,
        offsets: libc::xdp_ring_offset,
        entry: usize,
        page: libc::off_t,
    ) -> io::Result<Self> {
        let [producer, consumer, entries] =
            [offsets.producer, offsets.consumer, offsets.desc].map(|offset| offset as usize);
        Ok(Self {
            memory: Mapping::of(socket, entries + CHUNKS as usize * entry, page)?,
            producer,
            consumer,
            entries,
        })
    }
}

/// What a call of [`XdpSend::push_out`] did.
#[derive(Debug)]
pub(crate) struct PushedOut {
    /// Frames that are no longer ours, of those put since the last call.
    pub(crate) taken: usize,
    /// Of these, frames that the interface refused.
    pub(crate) refused: usize,
    /// Why there are fewer than all, if it is not that the interface takes no more for now.
    pub(crate) error: Option<io::Error>,
}

impl XdpSend {
    /// Opens a socket for interface `index` and frames of up to `frame` bytes.
    pub(crate) fn new(index: u32, frame: usize) -> io::Result<Self> {
        if frame > FRAME_MAX {
            let text = format!("frames of {frame} bytes exceed a page");
            return Err(io::Error::new(io::ErrorKind::Unsupported, text));
        }
        let chunk = if frame <= 2_048 { 2_048 } else { 4_096 };
        enter(Call::Socket)?;
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let family = AddressFamily::from_raw(libc::AF_XDP as _);
        let socket = rustix::net::socket_with(family, SocketType::RAW, flags, None)?;
        let chunks = Mapping::anonymous(CHUNKS as usize * chunk)?;
        // SAFETY: all zeros is a valid `xdp_umem_reg`.
        let mut region: libc::xdp_umem_reg = unsafe { std::mem::zeroed() };
        region.addr = chunks.address();
        region.len = chunks.length() as u64;
        region.chunk_size = chunk as u32;
        let fd = socket.as_fd();
        set_plain(fd, libc::SOL_XDP, libc::XDP_UMEM_REG, &region)?;
        // The kernel wants all rings of the memory, though nothing is received.
        let rings = [
            libc::XDP_UMEM_FILL_RING,
            libc::XDP_UMEM_COMPLETION_RING,
            libc::XDP_TX_RING,
        ];
        for ring in rings {
            set_number(fd, libc::SOL_XDP, ring, CHUNKS as libc::c_int)?;
        }
        // Older kernels lack it.
        let _ = set_number(fd, libc::SOL_XDP, BUDGET, CHUNKS as libc::c_int);
        let offsets: libc::xdp_mmap_offsets = get_plain(fd, libc::SOL_XDP, libc::XDP_MMAP_OFFSETS)?;
        let page = libc::XDP_UMEM_PGOFF_COMPLETION_RING as libc::off_t;
        let entry = size_of::<libc::xdp_desc>();
        let entries = Ring::map(&socket, offsets.tx, entry, libc::XDP_PGOFF_TX_RING)?;
        let done = Ring::map(&socket, offsets.cr, size_of::<u64>(), page)?;
        bind(&socket, index)?;
        Ok(Self {
            socket,
            chunks,
            chunk,
            entries,
            done,
            written: 0,
            free: (0..CHUNKS).rev().collect(),
            in_use: [false; CHUNKS as usize],
        })
    }

    /// Bytes of the longest frame.
    pub(crate) fn frame_max(&self) -> usize {
        self.chunk
    }

    /// Takes back the chunks that the kernel has sent.
    fn reclaim(&mut self) {
        let end = load(self.done.memory.shared(self.done.producer));
        let mut at = load(self.done.memory.shared(self.done.consumer));
        while at != end {
            let place = self.done.entries + (at % CHUNKS) as usize * size_of::<u64>();
            let chunk = self.done.memory.read::<u64>(place) / self.chunk as u64;
            self.give_back(chunk as u32 % CHUNKS);
            at = at.wrapping_add(1);
        }
        store(self.done.memory.shared(self.done.consumer), end);
    }

    fn give_back(&mut self, chunk: u32) {
        if std::mem::take(&mut self.in_use[chunk as usize]) {
            self.free.push(chunk);
        }
    }

    /// Entries that the kernel has not looked at.
    fn waiting(&self) -> u32 {
        let consumer = self.entries.memory.shared(self.entries.consumer);
        self.written.wrapping_sub(load(consumer))
    }

    /// Copies a frame to be sent with the next call of [`XdpSend::push_out`]; `false` if it does not fit or all
    /// chunks are in use.
    pub(crate) fn put(&mut self, frame: &[u8]) -> bool {
        if self.free.is_empty() {
            self.reclaim();
        }
        if frame.len() > self.chunk || self.waiting() >= CHUNKS {
            return false;
        }
        let Some(chunk) = self.free.pop() else {
            return false;
        };
        self.in_use[chunk as usize] = true;
        let address = chunk as usize * self.chunk;
        self.chunks.put(address, frame);
        let entry = libc::xdp_desc {
            addr: address as u64,
            len: frame.len() as u32,
            options: 0,
        };
        let place = self.place(self.written);
        self.entries.memory.write(place, entry);
        self.written = self.written.wrapping_add(1);
        true
    }

    fn place(&self, number: u32) -> usize {
        self.entries.entries + (number % CHUNKS) as usize * size_of::<libc::xdp_desc>()
    }

    /// Sends the `count` frames put since the last call. Frames that are not sent are taken back.
    pub(crate) fn push_out(&mut self, count: usize) -> PushedOut {
        store(
            self.entries.memory.shared(self.entries.producer),
            self.written,
        );
        let (mut refused, mut error) = (0, None);
        // The loop also makes one call if no frame waits, which tells whether the interface is up.
        loop {
            let before = self.waiting();
            let done = self.call();
            let has_progress = self.waiting() < before;
            match done {
                // The kernel also returns early after an entry that it skips.
                Ok(()) if !has_progress => break,
                Ok(()) | Err(libc::EINTR) => {}
                // A frame was refused, and the kernel does not go on by itself.
                Err(libc::EBUSY) => refused += 1,
                // It sends so many frames in a call.
                Err(libc::EAGAIN | libc::ENOBUFS) if has_progress => {}
                Err(libc::EAGAIN | libc::ENOBUFS) => break,
                Err(code) => {
                    error = Some(io::Error::from_raw_os_error(code));
                    break;
                }
            }
            if self.waiting() == 0 || refused > count {
                break;
            }
        }
        self.reclaim();
        let left = self.take_back().min(count);
        let taken = count - left;
        PushedOut {
            taken,
            refused: refused.min(taken),
            error,
        }
    }

    /// One call of sendto(2) without data.
    fn call(&self) -> Result<(), libc::c_int> {
        enter(Call::Sendto).map_err(rustix::io::Errno::raw_os_error)?;
        // SAFETY: there is neither data nor an address.
        let result = unsafe {
            libc::sendto(
                self.socket.as_raw_fd(),
                ptr::null(),
                0,
                libc::MSG_DONTWAIT,
                ptr::null(),
                0,
            )
        };
        let error = |error: io::Error| error.raw_os_error().unwrap_or(libc::EIO);
        check(result as libc::c_int).map(drop).map_err(error)
    }

    /// Makes the kernel skip the entries that it has not sent; returns how many frames these are.
    fn take_back(&mut self) -> usize {
        let mut left = 0;
        for back in 1..=self.waiting() {
            let place = self.place(self.written.wrapping_sub(back));
            let mut entry: libc::xdp_desc = self.entries.memory.read(place);
            let chunk = entry.addr / self.chunk as u64;
            // Skipped before, or sent already though the kernel has not said so.
            if entry.addr == NOWHERE || !self.in_use[chunk as usize % CHUNKS as usize] {
                continue;
            }
            self.give_back(chunk as u32 % CHUNKS);
            entry.addr = NOWHERE;
            self.entries.memory.write(place, entry);
            left += 1;
        }
        left
    }
}

fn bind(socket: &OwnedFd, index: u32) -> io::Result<()> {
    let address = libc::sockaddr_xdp {
        sxdp_family: libc::AF_XDP as u16,
        sxdp_flags: libc::XDP_COPY,
        sxdp_ifindex: index,
        sxdp_queue_id: 0,
        sxdp_shared_umem_fd: 0,
    };
    enter(Call::Bind)?;
    // SAFETY: the pointer and length are those of a `sockaddr_xdp`, only read.
    check(unsafe {
        libc::bind(
            socket.as_raw_fd(),
            (&raw const address).cast(),
            size_of::<libc::sockaddr_xdp>() as libc::socklen_t,
        )
    })
    .map(drop)
}
