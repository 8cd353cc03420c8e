//! All frames of an interface, in both directions, for an analyser that only watches.
//!
//! A [`Capture`] is a packet socket with a receive ring (packet(7), TPACKET_V3): the kernel fills blocks, and
//! [`Capture::read`] passes the frames of the oldest one to its caller. Frames have the kernel's time stamps in
//! nanoseconds. A frame that the host sends through the loopback interface comes only once.
//!
//! Ethernet interfaces and the loopback interface give whole frames. Interfaces without a link layer's header give IP
//! packets; all other interfaces, and [`ANY`], give packets without their link layer's header ([`Form::Cooked`]).
//!
//! `block` has the layout of a block, `sys::block_ring` the ring. Left out: several sockets on several cores
//! (`PACKET_FANOUT`), hardware time stamps.

mod block;

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::netdevice::name_to_index;
use rustix::net::sockopt::socket_error;

pub use block::Frame;

use block::Frames;

use crate::sys::block_ring::BlockRing;
use crate::sys::{interface, packet, socket};

/// The name that stands for all interfaces.
pub const ANY: &str = "any";

/// How long the kernel keeps a partly filled block, in milliseconds: a capture learns of a frame after this time at the
/// latest.
pub const HOLD_MS: u32 = 100;

/// Options of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CaptureOptions {
    /// Bytes of each frame to capture; all if `None`.
    pub snap: Option<u32>,
    /// Whether frames to other hosts are captured too, if the interface receives them.
    pub is_promiscuous: bool,
    /// Bytes of the ring.
    pub ring_bytes: usize,
}

impl Default for CaptureOptions {
    fn default() -> Self {
        Self {
            snap: None,
            is_promiscuous: false,
            ring_bytes: 32 << 20,
        }
    }
}

/// What the frames of a capture start with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// An Ethernet header.
    Ethernet,
    /// An IP header.
    Ip,
    /// The packet behind the link layer's header, whose fields are in [`Frame`].
    Cooked,
}

/// Why a capture cannot start, or ended. The text does not name the interface.
#[derive(Debug)]
pub enum CaptureError {
    /// There is no interface of this name.
    Unknown,
    /// The privilege to open packet sockets is missing.
    Denied,
    /// The interface was set down.
    Down,
    /// The interface no longer exists.
    Gone,
    /// [`ANY`] has no promiscuous mode.
    AnyPromiscuous,
    /// Any other error of the kernel, and the step that failed.
    Other(&'static str, io::Error),
}

impl fmt::Display for CaptureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => write!(f, "no such interface"),
            Self::Denied => write!(
                f,
                "capturing needs CAP_NET_RAW: run this as root (sudo), or give the program the capability once: setcap \
                 cap_net_raw,cap_sys_ptrace,cap_dac_read_search+ep PROGRAM (the last two show processes of other users)"
            ),
            Self::Down => write!(f, "the interface is down"),
            Self::Gone => write!(f, "the interface no longer exists"),
            Self::AnyPromiscuous => {
                write!(
                    f,
                    "there is no promiscuous mode for all interfaces: name one"
                )
            }
            Self::Other(step, error) => write!(f, "cannot {step}: {error}"),
        }
    }
}

impl std::error::Error for CaptureError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Other(_, error) => Some(error),
            _ => None,
        }
    }
}

/// Counters of a capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CaptureStats {
    /// Frames that were read.
    pub captured: u64,
    /// Frames that the kernel dropped because the ring was full, as of the last [`Capture::look`].
    pub dropped: u64,
    /// Frames that could not be read from their block.
    pub unreadable: u64,
}

/// A running capture.
pub struct Capture {
    ring: BlockRing,
    fd: OwnedFd,
    name: String,
    /// 0 for all interfaces.
    index: u32,
    form: Form,
    stats: CaptureStats,
}

/// `ARPHRD_IPGRE`, `ARPHRD_IP6GRE` and `ARPHRD_RAWIP`, which libc lacks for some C libraries.
const IPGRE: u16 = 778;
const IP6GRE: u16 = 823;
const RAWIP: u16 = 519;

impl Form {
    /// The form of an interface's frames, by its link type.
    fn of(hardware: u16) -> Self {
        match hardware {
            libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK => Self::Ethernet,
            libc::ARPHRD_NONE
            | libc::ARPHRD_PPP
            | libc::ARPHRD_TUNNEL
            | libc::ARPHRD_TUNNEL6
            | libc::ARPHRD_SIT
            | RAWIP
            | IPGRE
            | IP6GRE => Self::Ip,
            _ => Self::Cooked,
        }
    }
}

impl Capture {
    /// Starts to capture at the interface `name` of the calling thread's network namespace, or at [`ANY`].
    ///
    /// # Errors
    /// The interface does not exist or is down, the privilege is missing, or the kernel's error.
    pub fn open(name: &str, options: &CaptureOptions) -> Result<Self, CaptureError> {
        let other = |step| move |error| CaptureError::Other(step, error);
        let opened = |result: io::Result<OwnedFd>| {
            result.map_err(|error| match error.kind() {
                io::ErrorKind::PermissionDenied => CaptureError::Denied,
                _ => other("open a packet socket")(error),
            })
        };
        if name == ANY && options.is_promiscuous {
            return Err(CaptureError::AnyPromiscuous);
        }
        let mut fd = opened(packet::open())?;
        let (index, form) = find(&fd, name)?;
        if form != Form::Ethernet {
            fd = opened(packet::open_cooked())?;
        }
        let ring = BlockRing::new(&fd, options.ring_bytes, HOLD_MS);
        let ring = ring.map_err(other("make the ring"))?;
        if let Some(snap) = options.snap {
            // BPF_RET: the filter's result is the number of bytes to keep.
            let program = [(0x06, 0, 0, snap.max(1))];
            socket::attach_filter(fd.as_fd(), &program).map_err(other("set the length"))?;
        }
        if options.is_promiscuous {
            let done = packet::listen_to_all(&fd, index);
            done.map_err(other("set promiscuous mode"))?;
        }
        packet::bind_to(&fd, index).map_err(|error| match error.raw_os_error() {
            Some(libc::ENETDOWN) => CaptureError::Down,
            _ => other("bind the packet socket")(error),
        })?;
        let capture = Self {
            ring,
            fd,
            name: name.to_owned(),
            index,
            form,
            stats: CaptureStats::default(),
        };
        // The kernel accepts an interface that is down, and notes the error.
        capture.check()?;
        Ok(capture)
    }

    /// The interface's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The interface's index; 0 for all.
    #[must_use]
    pub fn index(&self) -> u32 {
        self.index
    }

    /// What frames start with.
    #[must_use]
    pub fn form(&self) -> Form {
        self.form
    }

    /// Bytes of the ring.
    #[must_use]
    pub fn ring_bytes(&self) -> usize {
        self.ring.length()
    }

    /// Passes the frames of the oldest block to `take`, if the kernel has handed one over. Returns whether it has.
    pub fn read(&mut self, mut take: impl FnMut(&Frame<'_>)) -> bool {
        let Some(block) = self.ring.take() else {
            return false;
        };
        let mut frames = Frames::of(block.bytes());
        for frame in frames.by_ref() {
            // Through the loopback interface, each frame passes as sent and as received.
            if frame.kind == libc::PACKET_OUTGOING && frame.hardware == libc::ARPHRD_LOOPBACK {
                continue;
            }
            self.stats.captured += 1;
            take(&frame);
        }
        self.stats.unreadable += u64::from(frames.unreadable());
        true
    }

    /// Captures no further frames. Those captured so far can be read within [`HOLD_MS`].
    ///
    /// # Errors
    /// The kernel's error.
    pub fn stop(&self) -> io::Result<()> {
        // BPF_RET 0: no frame passes.
        socket::attach_filter(self.fd.as_fd(), &[(0x06, 0, 0, 0)])
    }

    /// The counters, after asking the kernel how many frames it dropped.
    pub fn look(&mut self) -> CaptureStats {
        let counts = packet::counts(&self.fd);
        self.stats.dropped += counts.map_or(0, |(_, drops)| u64::from(drops));
        self.stats
    }

    /// Whether the interface is still there and up, as the kernel noted for this socket.
    ///
    /// # Errors
    /// The interface was set down, or no longer exists. The kernel reports this only once.
    pub fn check(&self) -> Result<(), CaptureError> {
        let (Ok(Err(error)) | Err(error)) = socket_error(&self.fd) else {
            return Ok(());
        };
        let error = io::Error::from(error);
        Err(match error.raw_os_error() {
            Some(libc::ENETDOWN | libc::ENXIO | libc::ENODEV) => {
                match name_to_index(&self.fd, &self.name) == Ok(self.index) {
                    true => CaptureError::Down,
                    false => CaptureError::Gone,
                }
            }
            _ => CaptureError::Other("capture", error),
        })
    }
}

impl fmt::Debug for Capture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Capture")
            .field("name", &self.name)
            .field("form", &self.form)
            .field("stats", &self.stats)
            .finish_non_exhaustive()
    }
}

impl AsFd for Capture {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// The index and the form of an interface.
fn find(socket: &OwnedFd, name: &str) -> Result<(u32, Form), CaptureError> {
    if name == ANY {
        return Ok((0, Form::Cooked));
    }
    let fault = |error: io::Error| match error.raw_os_error() {
        Some(libc::ENODEV) => CaptureError::Unknown,
        _ => CaptureError::Other("find the interface", error),
    };
    let hardware = interface::link_type(socket.as_fd(), name).map_err(fault)?;
    let flags = interface::flags(socket.as_fd(), name).map_err(fault)?;
    if flags & libc::IFF_UP == 0 {
        return Err(CaptureError::Down);
    }
    let index = name_to_index(socket, name).map_err(|error| fault(error.into()))?;
    Ok((index, Form::of(hardware)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_without_a_header_gives_ip_packets() {
        let forms = [
            (libc::ARPHRD_ETHER, Form::Ethernet),
            (libc::ARPHRD_LOOPBACK, Form::Ethernet),
            (libc::ARPHRD_PPP, Form::Ip),
            (libc::ARPHRD_NONE, Form::Ip),
            (libc::ARPHRD_IEEE80211_RADIOTAP, Form::Cooked),
        ];
        for (hardware, form) in forms {
            assert_eq!(Form::of(hardware), form, "{hardware}");
        }
    }

    #[test]
    fn errors_name_the_remedy() {
        let refused = |name: &str, options: &CaptureOptions| match Capture::open(name, options) {
            Err(error) => error.to_string(),
            Ok(_) => panic!("{name} is captured"),
        };
        let options = CaptureOptions::default();
        let error = refused("no-such", &options);
        let denied = error.contains("CAP_NET_RAW") && error.contains("setcap");
        assert!(denied || error == "no such interface", "{error}");
        let promiscuous = CaptureOptions {
            is_promiscuous: true,
            ..options
        };
        assert!(refused(ANY, &promiscuous).contains("promiscuous"));
    }
}
