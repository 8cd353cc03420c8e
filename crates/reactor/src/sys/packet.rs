//! Packet sockets (packet(7)): batches of frames with the kernel's descriptions (`PACKET_VNET_HDR`,
//! `PACKET_AUXDATA`).

use std::io;
use std::mem::{self, size_of};
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::ptr;

use rustix::net::{AddressFamily, SocketFlags, SocketType};

use crate::sys::batch::{empty_header, recvmmsg, sendmmsg};
use crate::sys::check;
use crate::sys::socket::{get_plain, set_number};
use crate::syscalls::{Call, enter};

/// `struct virtio_net_hdr` (virtio 5.1.6), in the machine's byte order.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Offload {
    pub(crate) flags: u8,
    pub(crate) gso_type: u8,
    pub(crate) header_length: u16,
    pub(crate) gso_size: u16,
    pub(crate) checksum_start: u16,
    pub(crate) checksum_offset: u16,
}

impl Offload {
    /// Reads one from as many bytes.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let word = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        Self {
            flags: bytes[0],
            gso_type: bytes[1],
            header_length: word(2),
            gso_size: word(4),
            checksum_start: word(6),
            checksum_offset: word(8),
        }
    }
}

/// `VIRTIO_NET_HDR_F_NEEDS_CSUM`.
pub(crate) const NEEDS_CHECKSUM: u8 = 1;
/// `VIRTIO_NET_HDR_GSO_*`.
pub(crate) const GSO_NONE: u8 = 0;
pub(crate) const GSO_TCPV4: u8 = 1;
pub(crate) const GSO_TCPV6: u8 = 4;
pub(crate) const GSO_UDP: u8 = 5;
pub(crate) const GSO_ECN: u8 = 0x80;

/// The longest frame that a local stack makes, with room for tags.
pub(crate) const LARGE: usize = 65_536 + 64;

/// Bytes of a VLAN tag.
const TAG: usize = 4;

/// Words for one `tpacket_auxdata`.
type Control = [u64; 6];

/// Opens a packet socket that receives nothing yet.
pub(crate) fn open() -> io::Result<OwnedFd> {
    open_as(SocketType::RAW)
}

/// Opens a packet socket that receives nothing yet, and will receive packets without their link layer's header.
pub(crate) fn open_cooked() -> io::Result<OwnedFd> {
    open_as(SocketType::DGRAM)
}

fn open_as(kind: SocketType) -> io::Result<OwnedFd> {
    enter(Call::Socket)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(rustix::net::socket_with(
        AddressFamily::PACKET,
        kind,
        flags,
        None,
    )?)
}

/// Sets the options that must be set before a ring is made and before the socket is bound.
pub(crate) fn describe(socket: &OwnedFd) -> io::Result<()> {
    let fd = socket.as_fd();
    set_number(fd, libc::SOL_PACKET, libc::PACKET_AUXDATA, 1)?;
    set_number(fd, libc::SOL_PACKET, libc::PACKET_VNET_HDR, 1)?;
    set_number(fd, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1)
}

/// Binds the socket to all protocols of interface `index`.
pub(crate) fn bind(socket: &OwnedFd, index: u32, bypass_queue: bool) -> io::Result<()> {
    let fd = socket.as_fd();
    if bypass_queue {
        set_number(fd, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, 1)?;
    }
    listen_to_all(socket, index)?;
    bind_to(socket, index)
}

/// Puts interface `index` into promiscuous mode as long as the socket is open.
pub(crate) fn listen_to_all(socket: &OwnedFd, index: u32) -> io::Result<()> {
    // SAFETY: all zeros is a valid `packet_mreq`.
    let mut request: libc::packet_mreq = unsafe { mem::zeroed() };
    request.mr_ifindex = index.cast_signed();
    request.mr_type = libc::PACKET_MR_PROMISC as libc::c_ushort;
    enter(Call::Setsockopt)?;
    // SAFETY: the pointer and size are those of a `packet_mreq`, only read.
    check(unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_ADD_MEMBERSHIP,
            (&raw const request).cast(),
            size_of::<libc::packet_mreq>() as libc::socklen_t,
        )
    })
    .map(drop)
}

/// Binds the socket to all protocols of interface `index`, or of all interfaces if that is 0, without promiscuous mode.
pub(crate) fn bind_to(socket: &OwnedFd, index: u32) -> io::Result<()> {
    // SAFETY: all zeros is a valid `sockaddr_ll`.
    let mut address: libc::sockaddr_ll = unsafe { mem::zeroed() };
    address.sll_family = libc::AF_PACKET as libc::c_ushort;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = index.cast_signed();
    enter(Call::Bind)?;
    // SAFETY: the pointer and length are those of a `sockaddr_ll`, only read.
    check(unsafe {
        libc::bind(
            socket.as_raw_fd(),
            (&raw const address).cast(),
            size_of::<libc::sockaddr_ll>() as libc::socklen_t,
        )
    })
    .map(drop)
}

/// Frames that the kernel dropped since the last call because nobody read them: `PACKET_STATISTICS`.
pub(crate) fn drops(socket: &OwnedFd) -> io::Result<u32> {
    counts(socket).map(|(_, drops)| drops)
}

/// Frames that passed the socket's filter since the last call, and how many of these the kernel dropped because nobody
/// read them in time: `PACKET_STATISTICS`.
pub(crate) fn counts(socket: &OwnedFd) -> io::Result<(u32, u32)> {
    let [frames, drops]: [u32; 2] =
        get_plain(socket.as_fd(), libc::SOL_PACKET, libc::PACKET_STATISTICS)?;
    Ok((frames, drops))
}

/// A received frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    /// Its bytes, without the kernel's description.
    pub(crate) length: usize,
    pub(crate) offload: Offload,
    /// The VLAN tag that the kernel removed.
    pub(crate) tag: Option<[u8; 4]>,
}

/// Headers for a batch of frames, allocated once. Each frame goes to the room that the caller gives; the rest of it
/// goes to a buffer after that.
pub(crate) struct RecvSlots {
    headers: Vec<libc::mmsghdr>,
    vectors: Vec<[libc::iovec; 3]>,
    offloads: Vec<Offload>,
    controls: Vec<Control>,
    /// For each frame, room for the largest.
    large: Vec<u8>,
    used: usize,
}

// SAFETY: the pointers lead to memory that the struct itself owns, or to the caller's rooms, which are used only within
// `receive`, which sets those pointers first.
unsafe impl Send for RecvSlots {}

impl RecvSlots {
    pub(crate) fn new(slots: usize) -> Self {
        Self {
            headers: vec![empty_header(); slots],
            vectors: vec![[vector(ptr::null_mut(), 0); 3]; slots],
            offloads: vec![Offload::default(); slots],
            controls: vec![Control::default(); slots],
            large: vec![0; slots * LARGE],
            used: 0,
        }
    }

    pub(crate) fn capacity(&self) -> usize {
        self.headers.len()
    }

    /// Makes frame `index` of the next call go to `room`.
    fn prepare(&mut self, index: usize, room: &mut [u8]) {
        let large = &mut self.large[index * LARGE..(index + 1) * LARGE];
        // Before it is space for a tag and for the bytes in the room, so that the whole frame can be assembled there.
        let rest = &mut large[(TAG + room.len()).min(LARGE)..];
        self.vectors[index] = [
            vector((&raw mut self.offloads[index]).cast(), size_of::<Offload>()),
            vector(room.as_mut_ptr().cast(), room.len()),
            vector(rest.as_mut_ptr().cast(), rest.len()),
        ];
        let header = &mut self.headers[index].msg_hdr;
        header.msg_iov = self.vectors[index].as_mut_ptr();
        header.msg_iovlen = 3;
        header.msg_control = (&raw mut self.controls[index]).cast();
        header.msg_controllen = size_of::<Control>() as _;
    }

    /// One recvmmsg call into `rooms`, which are ranges of `octets`. Returns the number of frames.
    pub(crate) fn receive(
        &mut self,
        socket: &OwnedFd,
        octets: &mut [u8],
        rooms: impl Iterator<Item = Range<usize>>,
    ) -> io::Result<usize> {
        let mut count = 0;
        for (index, room) in rooms.take(self.capacity()).enumerate() {
            self.prepare(index, &mut octets[room]);
            count = index + 1;
        }
        self.used = 0;
        enter(Call::Recvmmsg)?;
        // SAFETY: the headers point to this struct's buffers and to parts of `octets`, with the lengths they say, and
        // nothing else refers to them during the call.
        self.used = unsafe { recvmmsg(socket, &mut self.headers[..count], 0) }?;
        Ok(self.used)
    }

    /// The kernel's description of a frame of the last call.
    pub(crate) fn arrival(&self, index: usize) -> Arrival {
        let raw = &self.headers[..self.used][index];
        let mut arrival = Arrival {
            length: (raw.msg_len as usize).saturating_sub(size_of::<Offload>()),
            offload: self.offloads[index],
            tag: None,
        };
        let mut header = raw.msg_hdr;
        header.msg_control = self.controls[index].as_ptr().cast_mut().cast();
        // SAFETY: the kernel wrote `msg_controllen` bytes of well-formed ancillary data into the aligned buffer, and
        // data of this kind has this type.
        unsafe {
            let next = libc::CMSG_FIRSTHDR(&raw const header);
            if let Some(control) = next.as_ref()
                && (control.cmsg_level, control.cmsg_type)
                    == (libc::SOL_PACKET, libc::PACKET_AUXDATA)
            {
                let data = libc::CMSG_DATA(next).cast::<libc::tpacket_auxdata>();
                arrival.tag = tag(&ptr::read_unaligned(data));
            }
        }
        arrival
    }

    /// One recvmmsg call for one frame, which is stored whole: [`RecvSlots::put_together`] has it with an empty room.
    pub(crate) fn receive_whole(&mut self, socket: &OwnedFd, index: usize) -> io::Result<Arrival> {
        self.prepare(index, &mut []);
        self.used = self.used.max(index + 1);
        enter(Call::Recvmmsg)?;
        // SAFETY: the header points to this struct's buffers, with the lengths it says, and nothing else refers to
        // them during the call.
        unsafe { recvmmsg(socket, &mut self.headers[index..=index], 0) }?;
        Ok(self.arrival(index))
    }

    /// Stores a whole frame; returns its range.
    pub(crate) fn keep(&mut self, index: usize, bytes: &[u8], arrival: &Arrival) -> Range<usize> {
        self.put_together(index, arrival, bytes)
    }

    /// Assembles the frame of `arrival` whose start is in `room`; returns its range.
    pub(crate) fn put_together(
        &mut self,
        index: usize,
        arrival: &Arrival,
        room: &[u8],
    ) -> Range<usize> {
        let start = index * LARGE;
        let large = &mut self.large[start..start + LARGE];
        let end = (TAG + arrival.length).min(LARGE);
        let head = room.len().min(end - TAG);
        large[TAG..TAG + head].copy_from_slice(&room[..head]);
        let Some(tag) = arrival.tag else {
            return start + TAG..start + end;
        };
        large.copy_within(TAG..TAG + 12, 0);
        large[12..12 + TAG].copy_from_slice(&tag);
        start..start + end
    }

    /// A frame assembled since the last call of [`RecvSlots::receive`].
    pub(crate) fn large(&self, range: Range<usize>) -> &[u8] {
        &self.large[range]
    }
}

/// The tag that the kernel removed, if it did.
pub(super) fn tag(data: &libc::tpacket_auxdata) -> Option<[u8; 4]> {
    named_tag(data.tp_status, data.tp_vlan_tpid, data.tp_vlan_tci)
}

/// A tag of its kind and number, if `status` says that there is one.
pub(super) fn named_tag(status: u32, kind: u16, number: u16) -> Option<[u8; 4]> {
    if status & libc::TP_STATUS_VLAN_VALID == 0 {
        return None;
    }
    let is_known = status & libc::TP_STATUS_VLAN_TPID_VALID != 0;
    let kind = if is_known {
        kind
    } else {
        libc::ETH_P_8021Q as u16
    };
    let ([a, b], [c, d]) = (kind.to_be_bytes(), number.to_be_bytes());
    Some([a, b, c, d])
}

fn vector(base: *mut libc::c_void, length: usize) -> libc::iovec {
    libc::iovec {
        iov_base: base,
        iov_len: length,
    }
}

/// Headers for a batch of frames to send, allocated once.
pub(crate) struct SendSlots {
    headers: Vec<libc::mmsghdr>,
    vectors: Vec<[libc::iovec; 2]>,
    offloads: Vec<Offload>,
}

// SAFETY: the pointers are used only within `send`, which sets them first.
unsafe impl Send for SendSlots {}

impl SendSlots {
    pub(crate) fn new(slots: usize) -> Self {
        Self {
            headers: vec![empty_header(); slots],
            vectors: vec![[vector(ptr::null_mut(), 0); 2]; slots],
            offloads: vec![Offload::default(); slots],
        }
    }

    /// One sendmmsg call for as many of `frames` as there are slots. Returns the number sent; an error is about the
    /// first one.
    pub(crate) fn send<'a>(
        &mut self,
        socket: &OwnedFd,
        frames: impl Iterator<Item = (&'a [u8], Offload)>,
    ) -> io::Result<usize> {
        let mut count = 0;
        for (index, (frame, offload)) in frames.take(self.headers.len()).enumerate() {
            self.offloads[index] = offload;
            self.vectors[index] = [
                vector((&raw mut self.offloads[index]).cast(), size_of::<Offload>()),
                vector(frame.as_ptr().cast_mut().cast(), frame.len()),
            ];
            let header = &mut self.headers[index].msg_hdr;
            header.msg_iov = self.vectors[index].as_mut_ptr();
            header.msg_iovlen = 2;
            count = index + 1;
        }
        enter(Call::Sendmmsg)?;
        // SAFETY: the headers point to the frames, which live for `'a` and are only read, and to this struct's buffers,
        // with the lengths they say.
        unsafe { sendmmsg(socket, &mut self.headers[..count], 0) }
    }
}
