//! TUN devices: IP packets to and from the kernel, as if over a wire (Linux's `tuntap.rst`).
//!
//! One system call carries one packet. On a device with offloads, a packet may be several of one flow, and its
//! checksum may be open; the header before it describes that (`wire::virtio`). No other method carries more packets
//! per call: io_uring saves only the entry into the kernel, a tenth of a packet's cost there.
//!
//! Left out: TAP, persistent devices, and programs that steer packets to queues.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

use crate::sys::interface;
use crate::syscalls::{Call, enter};

/// Bytes of the header before each packet of a device with offloads.
pub const HEADER: usize = 10;

/// The kernel's limit of queues per device.
pub const QUEUES_MAX: usize = 256;

/// Options of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TunOptions {
    /// A header before each packet, and merged packets as far as the kernel supports them.
    pub offloads: bool,
    /// Queues over which the kernel spreads flows: at least one, at most [`QUEUES_MAX`].
    pub queues: usize,
}

/// The offloads of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Offloads {
    /// Each packet has a header of [`HEADER`] bytes before it, read and written.
    pub header: bool,
    /// Checksums of packets read may be open. Those of packets written may be open whenever there is a header.
    pub checksum: bool,
    /// A packet read may be several TCP segments. A packet written may be whenever there is a header.
    pub tcp: bool,
    /// A packet read or written may be several UDP datagrams (Linux 6.2).
    pub udp: bool,
}

impl fmt::Display for Offloads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            (self.checksum, "checksums"),
            (self.tcp, "TSO (IPv4, IPv6)"),
            (self.udp, "USO (IPv4, IPv6)"),
        ];
        let mut between = "";
        for (_, name) in parts.into_iter().filter(|(has, _)| *has) {
            write!(f, "{between}{name}")?;
            between = ", ";
        }
        match (between, self.header) {
            ("", true) => f.write_str("packets sent only"),
            ("", false) => f.write_str("none"),
            _ => Ok(()),
        }
    }
}

/// A queue of a TUN device that this process made, in the network namespace of the thread that opened it. The device
/// vanishes with its last queue.
#[derive(Debug)]
pub struct Tun {
    file: File,
    name: String,
    offloads: Offloads,
}

impl Tun {
    /// Makes a device of one queue; it is down and has no address. Packets have no header before the IP header.
    ///
    /// # Errors
    /// The kernel's error, with what to do: the name is taken, the privilege is missing, or `/dev/net/tun` does not
    /// exist.
    pub fn open(name: &str) -> io::Result<Self> {
        Self::attach(name, 0, Offloads::default())
    }

    /// Makes a device with those `options` that the kernel supports, and returns its queues, which are all alike. It
    /// is down and has no address. The kernel replaces `%d` in the name by a number.
    ///
    /// # Errors
    /// As [`Tun::open`].
    pub fn open_queues(name: &str, options: &TunOptions) -> io::Result<Vec<Self>> {
        let count = options.queues.clamp(1, QUEUES_MAX);
        let several = if count > 1 { libc::IFF_MULTI_QUEUE } else { 0 };
        let header = if options.offloads {
            libc::IFF_VNET_HDR
        } else {
            0
        };
        let wanted = Offloads {
            header: options.offloads,
            ..Offloads::default()
        };
        let mut queues = vec![Self::attach(name, several | header, wanted)?];
        if options.offloads {
            queues[0].offload()?;
        }
        for _ in 1..count {
            let (name, offloads) = (queues[0].name.clone(), queues[0].offloads);
            let queue = Self::attach(&name, several | header, offloads)?;
            queue.set_header()?;
            queues.push(queue);
        }
        Ok(queues)
    }

    fn attach(name: &str, flags: libc::c_int, offloads: Offloads) -> io::Result<Self> {
        let mut options = File::options();
        options
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK);
        let file = enter(Call::Open)
            .map_err(io::Error::from)
            .and_then(|()| options.open("/dev/net/tun"))
            .map_err(|error| refused(&error, "open /dev/net/tun"))?;
        let name = interface::attach_tun(file.as_fd(), name, flags)
            .map_err(|error| refused(&error, &format!("make the TUN device {name}")))?;
        Ok(Self {
            file,
            name,
            offloads,
        })
    }

    /// Requests all offloads, and fewer if the kernel refuses.
    fn offload(&mut self) -> io::Result<()> {
        self.set_header()?;
        let tcp = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN;
        let udp = libc::TUN_F_USO4 | libc::TUN_F_USO6;
        for wanted in [tcp | udp, tcp, libc::TUN_F_CSUM] {
            match interface::set_tun_offloads(self.file.as_fd(), wanted) {
                Ok(()) => {
                    self.offloads.checksum = true;
                    self.offloads.tcp = wanted & tcp == tcp;
                    self.offloads.udp = wanted & udp == udp;
                    return Ok(());
                }
                Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn set_header(&self) -> io::Result<()> {
        if self.offloads.header {
            interface::set_tun_header(self.file.as_fd(), HEADER as libc::c_int)?;
        }
        Ok(())
    }

    /// The device's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The offloads of its packets.
    #[must_use]
    pub fn offloads(&self) -> Offloads {
        self.offloads
    }

    /// Takes the next packet that the kernel routed to it, with its header if it has offloads; `None` if there is
    /// none now. A packet that does not fit the buffer is lost: with offloads it may have [`HEADER`] and 65,575
    /// bytes.
    ///
    /// # Errors
    /// The kernel's error, for example that the device is down (`EIO`).
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        let entered = enter(Call::Read).map_err(io::Error::from);
        match entered.and_then(|()| (&self.file).read(buffer)) {
            Ok(length) => Ok(Some(length)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Passes a packet to the kernel as if it came from a wire, with its header before it if the device has offloads.
    ///
    /// # Errors
    /// The kernel's error: it is no IP packet, or its header contradicts it (`EINVAL`), or the device is down
    /// (`EIO`).
    pub fn send(&self, packet: &[u8]) -> io::Result<()> {
        enter(Call::Write)?;
        (&self.file).write(packet).map(drop)
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// The kernel's error, with what to do about it.
fn refused(error: &io::Error, what: &str) -> io::Error {
    let hint = match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => {
            "run as root or with CAP_NET_ADMIN, or in a network namespace of a user namespace"
        }
        Some(libc::ENOENT | libc::ENODEV | libc::ENXIO) => {
            "the kernel's tun module is not loaded (modprobe tun), or a container hides the device"
        }
        Some(libc::EBUSY) => "another process has it open",
        Some(libc::EINVAL) => {
            "there is a device of that name that is no TUN device, or is of another kind"
        }
        _ => "the kernel said so",
    };
    io::Error::new(error.kind(), format!("cannot {what}: {error}: {hint}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_what_to_do() {
        let text = |code| refused(&io::Error::from_raw_os_error(code), "open it").to_string();
        assert!(text(libc::EACCES).contains("CAP_NET_ADMIN"));
        assert!(text(libc::ENOENT).contains("modprobe tun"));
        assert!(text(libc::EIO).starts_with("cannot open it: "));
    }

    #[test]
    fn offloads_are_named() {
        let mut offloads = Offloads::default();
        assert_eq!(offloads.to_string(), "none");
        offloads.header = true;
        assert_eq!(offloads.to_string(), "packets sent only");
        (offloads.checksum, offloads.tcp, offloads.udp) = (true, true, true);
        let text = "checksums, TSO (IPv4, IPv6), USO (IPv4, IPv6)";
        assert_eq!(offloads.to_string(), text);
    }
}
