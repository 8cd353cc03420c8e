//! Changes of queues: many requests in one system call, the kernel's refusals with its own words, and lists.
//!
//! The bodies of the messages are the caller's. The kernel processes all messages of one call before the call returns,
//! so a process that is killed has sent all of them or none. It goes on after a message that it refuses.

use std::io;

use rustix::net::{RecvFlags, SendFlags, netlink};

use super::{HEADER, Netlink, Request, attribute, checked, found};
use crate::sys::socket::{get_plain, set_number};
use crate::syscalls::{Call, enter};

/// The kernel's explanation of an error (`NLMSGERR_ATTR_MSG`).
const ATTR_MESSAGE: u16 = 1;
/// The error message has attributes (`NLM_F_ACK_TLVS`).
const WITH_ATTRIBUTES: u16 = 0x200;
/// linux/socket.h: the number of a socket's network namespace.
const SO_NETNS_COOKIE: i32 = 71;
/// The most bytes of requests in one call.
const BYTES_MAX: usize = 64 << 20;

/// A request without its header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// The type (`RTM_...`).
    pub kind: u16,
    /// Flags beside `NLM_F_REQUEST`.
    pub flags: u16,
    /// The bytes after the header.
    pub body: Vec<u8>,
}

/// A request that the kernel refused.
#[derive(Debug)]
pub struct Refused {
    /// Its place among the requests.
    pub place: usize,
    /// The error.
    pub error: io::Error,
    /// The kernel's explanation; empty if it gave none.
    pub text: String,
}

impl Netlink {
    /// Sends all requests in one system call. Returns those that the kernel refused, in order.
    ///
    /// # Errors
    /// The kernel's error for the whole call: it processed none of them.
    pub fn change_all(&mut self, requests: &[Asked]) -> io::Result<Vec<Refused>> {
        let Some(last) = requests.len().checked_sub(1) else {
            return Ok(Vec::new());
        };
        let first = self.sequence.wrapping_add(1);
        let mut bytes = Vec::new();
        for (place, asked) in requests.iter().enumerate() {
            let mut request = match place == last {
                true => Request::new(asked.kind, asked.flags.into()),
                false => Request::unacknowledged(asked.kind, asked.flags.into()),
            };
            request.0.extend(&asked.body);
            self.sequence = self.sequence.wrapping_add(1);
            request.finish(self.sequence);
            bytes.extend(request.0);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
        if bytes.len() > BYTES_MAX {
            let text = "more than 64 MiB of changes";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        self.make_room(bytes.len());
        enter(Call::Sendto)?;
        let to = netlink::SocketAddrNetlink::new(0, 0);
        rustix::net::sendto(&self.fd, &bytes, SendFlags::empty(), &to)?;
        self.read_refusals(first, last)
    }

    /// Lists objects: the type and the body of each message.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn list(&mut self, asked: &Asked) -> io::Result<Vec<(u16, Vec<u8>)>> {
        let mut request = Request::new(asked.kind, libc::NLM_F_DUMP);
        request.0.extend(&asked.body);
        self.dump(&request, |kind, body| Some((kind, body.to_vec())))
    }

    /// Creates an intermediate functional block, an interface whose queue shapes packets that are redirected to it. It
    /// is up.
    ///
    /// # Errors
    /// [`io::ErrorKind::Unsupported`] if the kernel has none; else the kernel's error.
    pub fn add_ifb(&mut self, name: &str) -> io::Result<u32> {
        let flags = libc::NLM_F_CREATE | libc::NLM_F_EXCL;
        let mut request = Request::link(libc::RTM_NEWLINK, flags, 0, Some(true));
        request.text(libc::IFLA_IFNAME, checked(name)?);
        request.nest(libc::IFLA_LINKINFO, |info| {
            info.text(libc::IFLA_INFO_KIND, "ifb");
        });
        self.ask(request)?;
        self.index(name)
    }

    /// The kind of link layer of an interface (`ARPHRD_...`).
    ///
    /// # Errors
    /// The kernel's error.
    pub fn link_layer(&mut self, index: u32) -> io::Result<u16> {
        let request = Request::link(libc::RTM_GETLINK, 0, index, None);
        let mut layer = 0;
        self.converse(request, |kind, body| {
            if let (libc::RTM_NEWLINK, Some(&[low, high])) = (kind, body.get(2..4)) {
                layer = u16::from_ne_bytes([low, high]);
            }
        })?;
        Ok(layer)
    }

    /// The number of this network namespace, which no later one gets.
    ///
    /// # Errors
    /// The kernel is older than Linux 5.14.
    pub fn namespace_cookie(&self) -> io::Result<u64> {
        get_plain(self.borrowed(), libc::SOL_SOCKET, SO_NETNS_COOKIE)
    }

    /// Buffers for this many bytes of requests, and for the kernel's answers with its explanations. Without the
    /// privilege they stay as they are.
    fn make_room(&self, bytes: usize) {
        let size = i32::try_from(bytes).unwrap_or(i32::MAX).max(1 << 20);
        let options = [
            (libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, size),
            (libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, size),
            (libc::SOL_NETLINK, libc::NETLINK_EXT_ACK, 1),
            (libc::SOL_NETLINK, libc::NETLINK_CAP_ACK, 1),
        ];
        for (level, option, value) in options {
            let set = set_number(self.borrowed(), level, option, value);
            drop(set);
        }
    }

    /// Reads refusals up to the acknowledgement of the last request. If there are more than the buffer holds, the first
    /// ones are returned.
    fn read_refusals(&mut self, first: u32, last: usize) -> io::Result<Vec<Refused>> {
        let mut refused = Vec::new();
        let mut buffer = vec![0; 32_768];
        loop {
            let read = enter(Call::Recvfrom)
                .and_then(|()| rustix::net::recv(&self.fd, &mut buffer[..], RecvFlags::DONTWAIT));
            let length = match read {
                Ok((length, _)) => length,
                Err(rustix::io::Errno::AGAIN) => return Ok(refused),
                Err(rustix::io::Errno::INTR | rustix::io::Errno::NOBUFS) => continue,
                Err(error) => return Err(error.into()),
            };
            for message in found::messages(&buffer[..length]) {
                let place = message.sequence.wrapping_sub(first) as usize;
                if i32::from(message.kind) != libc::NLMSG_ERROR || place > last {
                    continue;
                }
                refused.extend(refusal(place, message.flags, message.body));
            }
        }
    }
}

/// The refusal in an error message (`struct nlmsgerr`); `None` for an acknowledgement.
fn refusal(place: usize, flags: u16, body: &[u8]) -> Option<Refused> {
    let code = i32::from_ne_bytes(*body.first_chunk::<4>()?);
    if code == 0 {
        return None;
    }
    let attributes = body
        .get(4 + HEADER..)
        .filter(|_| flags & WITH_ATTRIBUTES != 0);
    let text = attributes.and_then(|attributes| attribute(attributes, ATTR_MESSAGE));
    let text = text.and_then(|text| text.split(|&byte| byte == 0).next());
    Some(Refused {
        place,
        error: io::Error::from_raw_os_error(-code),
        text: String::from_utf8_lossy(text.unwrap_or_default()).into_owned(),
    })
}
