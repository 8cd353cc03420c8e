//! Lists the addresses of an interface.

use std::io;
use std::net::IpAddr;

use rustix::net::{RecvFlags, SendFlags, netlink};

use super::{HEADER, Netlink, Request, attribute};
use crate::syscalls::{Call, SysCounts};

/// Bytes of `struct ifaddrmsg`.
const ADDRESS_HEAD: usize = 8;
/// More than the kernel puts into one datagram of a list.
const BUFFER: usize = 65_536;

impl Netlink {
    /// The addresses of the interface with this index, each with its prefix length.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn addresses(&mut self, index: u32) -> io::Result<Vec<(IpAddr, u8)>> {
        let mut request = Request::unacknowledged(libc::RTM_GETADDR, libc::NLM_F_DUMP);
        // An `ifaddrmsg` of zeros: every family and interface.
        request.0.extend([0; ADDRESS_HEAD]);
        self.sequence = self.sequence.wrapping_add(1);
        let length = request.0.len() as u32;
        request.0[..4].copy_from_slice(&length.to_ne_bytes());
        request.0[8..12].copy_from_slice(&self.sequence.to_ne_bytes());
        SysCounts::note(Call::Sendto);
        let to = netlink::SocketAddrNetlink::new(0, 0);
        rustix::net::sendto(&self.fd, &request.0, SendFlags::empty(), &to)?;
        let mut found = Vec::new();
        let mut buffer = vec![0; BUFFER];
        loop {
            SysCounts::note(Call::Recvfrom);
            let (length, _) = match rustix::net::recv(&self.fd, &mut buffer[..], RecvFlags::empty())
            {
                Err(rustix::io::Errno::INTR) => continue,
                result => result?,
            };
            if read(&buffer[..length], self.sequence, index, &mut found)? {
                return Ok(found);
            }
        }
    }
}

/// Reads the messages of one datagram; returns whether the list is complete.
fn read(
    mut messages: &[u8],
    sequence: u32,
    index: u32,
    found: &mut Vec<(IpAddr, u8)>,
) -> io::Result<bool> {
    while let Some((head, _)) = messages.split_at_checked(HEADER) {
        let number =
            |at: usize| u32::from_ne_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let (length, kind) = (number(0) as usize, u16::from_ne_bytes([head[4], head[5]]));
        let Some(body) = messages.get(HEADER..length) else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        if number(8) == sequence {
            match i32::from(kind) {
                libc::NLMSG_DONE => return Ok(true),
                libc::NLMSG_ERROR => {
                    let code = body
                        .first_chunk()
                        .map_or(0, |code| i32::from_ne_bytes(*code));
                    return Err(io::Error::from_raw_os_error(-code));
                }
                _ if kind == libc::RTM_NEWADDR => found.extend(address(body, index)),
                _ => {}
            }
        }
        messages = messages
            .get(length.next_multiple_of(4)..)
            .unwrap_or_default();
    }
    Ok(false)
}

/// The address of one entry of the list, if it is the interface's.
fn address(body: &[u8], index: u32) -> Option<(IpAddr, u8)> {
    let (head, attributes) = body.split_first_chunk::<ADDRESS_HEAD>()?;
    let of = u32::from_ne_bytes([head[4], head[5], head[6], head[7]]);
    // On a point-to-point interface IFA_ADDRESS is the other end's.
    let octets = attribute(attributes, libc::IFA_LOCAL)
        .or_else(|| attribute(attributes, libc::IFA_ADDRESS))
        .filter(|_| of == index)?;
    let address = match octets.len() {
        4 => IpAddr::from(<[u8; 4]>::try_from(octets).ok()?),
        _ => IpAddr::from(<[u8; 16]>::try_from(octets).ok()?),
    };
    Some((address, head[1]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::namespace::Namespace;

    #[test]
    fn the_addresses_of_an_interface_are_listed_and_no_others() {
        let namespace = Namespace::new().expect("root, or leave to make namespaces");
        let mut netlink = namespace.netlink().unwrap();
        netlink.add_veth("here", "there", None).unwrap();
        let [one, two, other] =
            ["192.0.2.9", "2001:db8::9", "192.0.2.10"].map(|text| text.parse::<IpAddr>().unwrap());
        netlink.add_address("here", one, 24).unwrap();
        netlink.add_address("there", other, 25).unwrap();
        let index = netlink.index("here").unwrap();
        let mut expected = vec![(one, 24)];
        // A kernel without IPv6 refuses the address.
        if netlink.add_address("here", two, 64).is_ok() {
            expected.push((two, 64));
        }
        assert_eq!(netlink.addresses(index).unwrap(), expected);
        assert_eq!(netlink.addresses(u32::MAX >> 1).unwrap(), []);
    }

    #[test]
    fn a_list_that_is_cut_off_is_an_error_and_no_panic() {
        let mut whole = vec![0; HEADER + ADDRESS_HEAD + 8];
        let length = whole.len() as u32;
        whole[..4].copy_from_slice(&length.to_ne_bytes());
        whole[4..6].copy_from_slice(&libc::RTM_NEWADDR.to_ne_bytes());
        whole[8..12].copy_from_slice(&7_u32.to_ne_bytes());
        whole[HEADER + 1] = 24;
        whole[HEADER + 4] = 3;
        whole[HEADER + ADDRESS_HEAD..][..4].copy_from_slice(&[8, 0, libc::IFA_LOCAL as u8, 0]);
        whole[HEADER + ADDRESS_HEAD + 4..].copy_from_slice(&[192, 0, 2, 1]);
        let mut found = Vec::new();
        assert!(!read(&whole, 7, 3, &mut found).unwrap());
        assert_eq!(found, [("192.0.2.1".parse().unwrap(), 24)]);
        for length in HEADER..whole.len() {
            assert!(read(&whole[..length], 7, 3, &mut Vec::new()).is_err());
        }
        let mut zero = whole.clone();
        zero[..4].copy_from_slice(&[0; 4]);
        assert!(read(&zero, 7, 3, &mut Vec::new()).is_err());
    }
}
