//! All frames to and from an Ethernet interface.
//!
//! A [`Port`] is a packet socket (packet(7)). It receives every frame that arrives at the interface, whatever its
//! destination, into slots of [`Frames`], and sends frames unchanged. The host's own stack still sees arriving
//! frames; give the interface no address if the host must not answer.
//!
//! A frame whose checksum a local stack left open stays so: [`Port::send`] leaves it to the interface. A frame that a
//! local stack left to be segmented is a [`Large`], for `wire::segment`. VLAN tags that the kernel removed are put
//! back.
//!
//! With [`Io::Rings`], frames are received from memory that is shared with the kernel (`rings`) and sent by an AF_XDP
//! socket, where the kernel has that for the interface: [`Port::fallbacks`] says where not.
//!
//! Left out: links other than Ethernet.

mod frames;
mod link;
pub mod offloads;
mod rings;

use std::fmt;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::netdevice::name_to_index;

pub use frames::{Frames, OpenChecksum, Uncut};
pub use link::Link;

use rings::Rings;

use crate::buffers::{self, BufferReport, BufferSide};
use crate::sys::interface;
use crate::sys::packet::{self, Offload, RecvSlots, SendSlots};

/// Frames in one system call.
pub const BATCH: usize = 64;

/// Options of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortOptions {
    /// Receive buffer in bytes, including the kernel's overhead; the kernel's default if `None`.
    pub recv_buffer_bytes: Option<usize>,
    /// Send buffer in bytes; the kernel's default if `None`.
    pub send_buffer_bytes: Option<usize>,
    /// Passes frames to the driver directly, without the interface's queue discipline. Sending by a ring always does.
    pub bypass_queue: bool,
    /// How frames are received and sent.
    pub io: Io,
    /// Whether frames may be sent that the kernel or the interface cuts. The interface's offloads must stay as they
    /// are when the port is opened.
    pub keep_large: bool,
}

/// How a port receives and sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Io {
    /// recvmmsg(2) and sendmmsg(2).
    #[default]
    Calls,
    /// Memory that is shared with the kernel, as far as the kernel has it; else as [`Io::Calls`].
    Rings,
}

/// Why a port cannot be opened, or stopped working.
#[derive(Debug)]
pub enum PortError {
    /// There is no interface of this name.
    Unknown(String),
    /// The interface is no Ethernet.
    NotEthernet(String),
    /// The interface was down, or went down. It may come up again, and then the port works again.
    Down(String),
    /// The interface has vanished.
    Gone(String),
    /// The privilege to open packet sockets (`CAP_NET_RAW`) is missing.
    Denied(String),
    /// Any other error of the kernel.
    Other(String, io::Error),
}

impl fmt::Display for PortError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(name) => write!(f, "{name}: no such interface"),
            Self::NotEthernet(name) => write!(f, "{name}: not an Ethernet interface"),
            Self::Down(name) => write!(f, "{name}: the interface is down"),
            Self::Gone(name) => write!(f, "{name}: the interface has vanished"),
            Self::Denied(name) => {
                write!(f, "{name}: packet sockets take root or CAP_NET_RAW")
            }
            Self::Other(name, error) => write!(f, "{name}: {error}"),
        }
    }
}

impl std::error::Error for PortError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Other(_, error) => Some(error),
            _ => None,
        }
    }
}

/// Counters of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct PortStats {
    /// Frames received.
    pub received: u64,
    /// Frames received that must be segmented.
    pub received_large: u64,
    /// Bytes received.
    pub received_bytes: u64,
    /// Frames that the kernel dropped because they were not read in time, as of the last [`Port::drops`].
    pub missed: u64,
    /// Frames received and dropped because [`Frames`] had no free slot.
    pub no_room: u64,
    /// Frames sent.
    pub sent: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Frames that the kernel or the interface's queue refused.
    pub refused: u64,
    /// How often the send buffer was full.
    pub blocked: u64,
}

/// A received frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// It is in this slot.
    Frame(u32),
    /// It did not fit a slot, or must be segmented: [`Port::large`] has it until the next call of [`Port::receive`].
    Large(usize),
}

/// How to segment a frame that a local stack left unsegmented.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cut {
    /// TCP, into segments with this many bytes of payload.
    Tcp(u16),
    /// UDP, into datagrams with this many bytes of payload.
    Udp(u16),
}

/// A frame larger than the link's MTU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Large<'a> {
    /// Its bytes.
    pub bytes: &'a [u8],
    /// How to segment it; `None` if it is just too long for a slot, or has to be segmented in an unknown way.
    pub cut: Option<Cut>,
}

/// Which frames may be sent uncut.
#[derive(Clone, Copy, Debug, Default)]
struct Keeps {
    tcp: bool,
    udp: bool,
}

impl Keeps {
    /// What an interface allows, if frames bypass its queue discipline and are sent by a ring or not.
    fn of(fd: BorrowedFd<'_>, name: &str, bypasses: bool, has_ring: bool) -> Self {
        // The ring sends by the first queue, and calls by one that the kernel chooses.
        let keeps_order = !has_ring || matches!(interface::send_queues(fd, name), Ok(1));
        // Without the queue discipline, the kernel cuts nothing.
        let cuts_tcp = !bypasses || offloads::cuts_tcp(fd, name);
        Self {
            tcp: keeps_order && cuts_tcp,
            udp: !bypasses,
        }
    }
}

/// An Ethernet interface: receives all its frames and sends any frame.
pub struct Port {
    fd: OwnedFd,
    name: String,
    index: u32,
    recv_slots: RecvSlots,
    send_slots: SendSlots,
    /// Slots for the next frames.
    spare: Vec<u32>,
    /// The large frames of the last call.
    large: Vec<(Range<usize>, Option<Cut>)>,
    stats: PortStats,
    receive_buffer: Option<BufferReport>,
    rings: Rings,
    /// The interface's MTU, as of the last look.
    mtu: u32,
    keeps: Keeps,
}

impl fmt::Debug for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Port")
            .field("name", &self.name)
            .field("stats", &self.stats)
            .finish_non_exhaustive()
    }
}

impl Port {
    /// Opens the interface `name` of the calling thread's network namespace. It receives from then on, in whatever
    /// thread it is used.
    ///
    /// # Errors
    /// The interface does not exist, is no Ethernet interface or is down, or the privilege is missing.
    pub fn open(name: &str, options: &PortOptions) -> Result<Self, PortError> {
        let other = |error: io::Error| PortError::Other(name.to_owned(), error);
        let fd = packet::open().map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied => PortError::Denied(name.to_owned()),
            _ => other(error),
        })?;
        let flags =
            interface::flags(fd.as_fd(), name).map_err(|error| match error.raw_os_error() {
                Some(libc::ENODEV) => PortError::Unknown(name.to_owned()),
                _ => other(error),
            })?;
        let index = name_to_index(&fd, name).map_err(|error| other(error.into()))?;
        let link = interface::link_type(fd.as_fd(), name).map_err(other)?;
        if link != libc::ARPHRD_ETHER {
            return Err(PortError::NotEthernet(name.to_owned()));
        }
        if flags & libc::IFF_UP == 0 {
            return Err(PortError::Down(name.to_owned()));
        }
        let sized = |side, bytes: Option<usize>| {
            let report = bytes.map(|bytes| buffers::size(&fd, side, bytes));
            report.transpose().map_err(other)
        };
        let receive_buffer = sized(BufferSide::Receive, options.recv_buffer_bytes)?;
        sized(BufferSide::Send, options.send_buffer_bytes)?;
        packet::describe(&fd).map_err(other)?;
        let mtu = interface::mtu(fd.as_fd(), name).map_err(other)?;
        let rings = match options.io {
            Io::Calls => Rings::default(),
            Io::Rings => Rings::open(&fd, index, mtu, options.recv_buffer_bytes),
        };
        let bypass_queue = options.bypass_queue || rings.send.is_some();
        packet::bind(&fd, index, bypass_queue).map_err(other)?;
        let keeps = if options.keep_large {
            Keeps::of(fd.as_fd(), name, bypass_queue, rings.send.is_some())
        } else {
            Keeps::default()
        };
        Ok(Self {
            fd,
            name: name.to_owned(),
            index,
            recv_slots: RecvSlots::new(BATCH),
            send_slots: SendSlots::new(BATCH),
            spare: Vec::with_capacity(BATCH),
            large: Vec::with_capacity(BATCH),
            stats: PortStats::default(),
            receive_buffer,
            keeps,
            rings,
            mtu,
        })
    }

    /// Why frames are received or sent without a ring, if [`Io::Rings`] was asked for.
    pub fn fallbacks(&self) -> impl Iterator<Item = &str> {
        self.rings.fallbacks.iter().map(String::as_str)
    }

    /// The longest segment that the link takes now, in bytes of its frame, if the interface or the kernel cuts frames
    /// of this kind and they cannot overtake others; `None` if they have to be cut before.
    #[must_use]
    pub fn segment_max(&self, cut: Cut) -> Option<usize> {
        let keeps = match cut {
            Cut::Tcp(_) => self.keeps.tcp,
            Cut::Udp(_) => self.keeps.tcp && self.keeps.udp,
        };
        keeps.then_some(self.mtu as usize + 14)
    }

    /// Whether frames are sent by a ring. Frames with an open checksum are not: complete it first.
    #[must_use]
    pub fn sends_by_ring(&self) -> bool {
        self.rings.send.is_some()
    }

    /// The interface's name when it was opened.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The interface's MTU now, in bytes without the Ethernet header.
    ///
    /// # Errors
    /// The interface has vanished.
    pub fn mtu(&self) -> Result<u32, PortError> {
        interface::mtu(self.fd.as_fd(), &self.name).map_err(|error| self.fault(error))
    }

    /// Its counters so far.
    #[must_use]
    pub fn stats(&self) -> PortStats {
        self.stats
    }

    /// The result of the request for a receive buffer; `None` if there was none.
    #[must_use]
    pub fn receive_buffer(&self) -> Option<BufferReport> {
        self.receive_buffer
    }

    /// Asks the kernel how many frames it has dropped because they were not read in time: [`PortStats::missed`].
    pub fn drops(&mut self) -> u64 {
        self.stats.missed += packet::drops(&self.fd).map_or(0, u64::from);
        if let Ok(mtu) = self.mtu() {
            self.mtu = mtu;
        }
        self.stats.missed
    }

    /// Receives the waiting frames, up to [`BATCH`], with one call, and appends them to `received`. Returns their
    /// number; fewer than [`BATCH`] if no more are waiting. Without a free slot, frames are dropped.
    ///
    /// # Errors
    /// [`PortError::Down`] once when the interface goes down; [`PortError::Gone`] when it has vanished.
    pub fn receive(
        &mut self,
        frames: &mut Frames,
        received: &mut Vec<Received>,
    ) -> Result<usize, PortError> {
        self.large.clear();
        if self.rings.receive.is_some() {
            return self.receive_from_ring(frames, received);
        }
        while self.spare.len() < BATCH
            && let Some(handle) = frames.take()
        {
            self.spare.push(handle);
        }
        let mut ranges = [const { 0..0 }; BATCH];
        for (range, &handle) in ranges.iter_mut().zip(&self.spare) {
            *range = frames.range(handle);
        }
        let slots = match self.spare.len() {
            // Without room, to be dropped.
            0 => BATCH,
            slots => slots,
        };
        let rooms = ranges.into_iter().take(slots);
        let count = loop {
            match self
                .recv_slots
                .receive(&self.fd, frames.octets(), rooms.clone())
            {
                Ok(count) => break count,
                Err(error) => match error.raw_os_error() {
                    Some(libc::EAGAIN) => return Ok(0),
                    Some(libc::EINTR) => {}
                    // The kernel cannot describe how to segment this frame; reading takes it off the queue.
                    Some(libc::EINVAL) => self.stats.missed += 1,
                    _ => return Err(self.fault(error)),
                },
            }
        };
        self.stats.received += count as u64;
        if self.spare.is_empty() {
            self.stats.no_room += count as u64;
        } else {
            self.sort(count, frames, received);
        }
        Ok(count)
    }

    /// Gives each frame of the last call its slot, or keeps it as a large one.
    fn sort(&mut self, count: usize, frames: &mut Frames, received: &mut Vec<Received>) {
        let room = frames.frame_max();
        // Unused slots stay, at the front.
        let mut kept = 0;
        for index in 0..self.spare.len() {
            let handle = self.spare[index];
            if index < count {
                let arrival = self.recv_slots.arrival(index);
                let offload = arrival.offload;
                self.stats.received_bytes += arrival.length as u64;
                if arrival.length <= room && offload.gso_type == packet::GSO_NONE {
                    let open =
                        (offload.flags & packet::NEEDS_CHECKSUM != 0).then_some(OpenChecksum {
                            start: offload.checksum_start,
                            offset: offload.checksum_offset,
                        });
                    frames.set(handle, arrival.length, open);
                    if let Some(tag) = arrival.tag {
                        frames.insert_tag(handle, tag);
                    }
                    received.push(Received::Frame(handle));
                    continue;
                }
                self.stats.received_large += 1;
                frames.set(handle, room, None);
                let range = self
                    .recv_slots
                    .put_together(index, &arrival, frames.get(handle));
                received.push(Received::Large(self.large.len()));
                self.large.push((range, cut(&offload)));
            }
            self.spare[kept] = handle;
            kept += 1;
        }
        self.spare.truncate(kept);
    }

    /// A frame that the last call of [`Port::receive`] reported as [`Received::Large`].
    #[must_use]
    pub fn large(&self, index: usize) -> Large<'_> {
        let (range, cut) = &self.large[index];
        Large {
            bytes: self.recv_slots.large(range.clone()),
            cut: *cut,
        }
    }

    /// Sends the frames in these slots, in order, with few calls. Returns how many are done, including those that the
    /// kernel refused. If that is fewer than all, the send buffer is full: try again when the port is writable. The
    /// slots remain the caller's.
    ///
    /// # Errors
    /// [`PortError::Down`] while the interface is down; [`PortError::Gone`] when it has vanished.
    pub fn send(&mut self, frames: &Frames, handles: &[u32]) -> Result<usize, PortError> {
        let mut done = 0;
        while done < handles.len() {
            let (batch, is_plain) = self.rings.batch(frames, &handles[done..], self.mtu);
            let count = if is_plain {
                self.send_by_ring(frames, batch)?
            } else {
                self.send_by_calls(frames, batch)?
            };
            done += count;
            if count < batch.len() {
                self.stats.blocked += 1;
                break;
            }
        }
        Ok(done)
    }

    fn send_by_calls(&mut self, frames: &Frames, handles: &[u32]) -> Result<usize, PortError> {
        let mut done = 0;
        while done < handles.len() {
            let batch = handles[done..].iter().map(|&handle| {
                let offload = described(frames, handle);
                (frames.get(handle), offload)
            });
            match self.send_slots.send(&self.fd, batch) {
                Ok(count) => {
                    let sent = handles[done..done + count].iter();
                    self.stats.sent_bytes += sent
                        .map(|&handle| frames.get(handle).len() as u64)
                        .sum::<u64>();
                    self.stats.sent += count as u64;
                    done += count;
                }
                Err(error) => match error.raw_os_error() {
                    Some(libc::EAGAIN) => return Ok(done),
                    Some(libc::EINTR) => {}
                    Some(libc::ENETDOWN | libc::ENXIO | libc::ENODEV) => {
                        return Err(self.fault(error));
                    }
                    // The interface's queue is full, or the frame is too long or too short for it.
                    _ => {
                        // The kernel does not cut such frames.
                        let is_invalid = error.raw_os_error() == Some(libc::EINVAL);
                        self.keeps.tcp &= !is_invalid || frames.uncut(handles[done]).is_none();
                        self.stats.refused += 1;
                        done += 1;
                    }
                },
            }
        }
        Ok(done)
    }

    /// Whether the interface is down or gone; the kernel reports the same error for both.
    fn fault(&self, error: io::Error) -> PortError {
        match error.raw_os_error() {
            Some(libc::ENETDOWN | libc::ENXIO | libc::ENODEV) => {
                let is_there = name_to_index(&self.fd, &self.name) == Ok(self.index);
                let kind = if is_there {
                    PortError::Down
                } else {
                    PortError::Gone
                };
                kind(self.name.clone())
            }
            _ => PortError::Other(self.name.clone(), error),
        }
    }
}

impl AsFd for Port {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// The kernel's description of a frame in a slot.
fn described(frames: &Frames, handle: u32) -> Offload {
    let Some(open) = frames.open_checksum(handle) else {
        return Offload::default();
    };
    let open = Offload {
        flags: packet::NEEDS_CHECKSUM,
        checksum_start: open.start,
        checksum_offset: open.offset,
        ..Offload::default()
    };
    let Some(uncut) = frames.uncut(handle) else {
        return open;
    };
    let (gso_type, gso_size) = match uncut.cut {
        Cut::Tcp(size) if uncut.is_v6 => (packet::GSO_TCPV6, size),
        Cut::Tcp(size) => (packet::GSO_TCPV4, size),
        Cut::Udp(size) => (packet::GSO_UDP, size),
    };
    let ecn = if uncut.has_cwr { packet::GSO_ECN } else { 0 };
    Offload {
        gso_type: gso_type | ecn,
        gso_size,
        header_length: uncut.headers,
        ..open
    }
}

/// How to segment a frame, from the kernel's description.
fn cut(offload: &Offload) -> Option<Cut> {
    match offload.gso_type & !packet::GSO_ECN {
        packet::GSO_TCPV4 | packet::GSO_TCPV6 => Some(Cut::Tcp(offload.gso_size)),
        packet::GSO_UDP => Some(Cut::Udp(offload.gso_size)),
        _ => None,
    }
}
