//! Socket addresses in the kernel's format.

use std::mem::{self, size_of};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

/// An IPv4 or IPv6 socket address in the kernel's format.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) union RawAddress {
    family: libc::sa_family_t,
    v4: libc::sockaddr_in,
    v6: libc::sockaddr_in6,
}

impl RawAddress {
    pub(crate) fn zeroed() -> Self {
        // SAFETY: all zeros is a valid value of each of the union's plain C structs.
        unsafe { mem::zeroed() }
    }

    /// Writes `address`; returns its length.
    pub(crate) fn set(&mut self, address: SocketAddr) -> libc::socklen_t {
        match address {
            SocketAddr::V4(address) => {
                self.v4 = libc::sockaddr_in {
                    sin_family: libc::AF_INET as libc::sa_family_t,
                    sin_port: address.port().to_be(),
                    sin_addr: in_addr(*address.ip()),
                    sin_zero: [0; 8],
                };
                size_of::<libc::sockaddr_in>() as libc::socklen_t
            }
            SocketAddr::V6(address) => {
                self.v6 = libc::sockaddr_in6 {
                    sin6_family: libc::AF_INET6 as libc::sa_family_t,
                    sin6_port: address.port().to_be(),
                    sin6_flowinfo: address.flowinfo(),
                    sin6_addr: in6_addr(*address.ip()),
                    sin6_scope_id: address.scope_id(),
                };
                size_of::<libc::sockaddr_in6>() as libc::socklen_t
            }
        }
    }

    pub(crate) fn get(&self) -> Option<SocketAddr> {
        // SAFETY: the union was zeroed or written whole, so that every variant's
        // bytes are initialised; all of them start with the family.
        unsafe {
            match i32::from(self.family) {
                libc::AF_INET => {
                    let ip = Ipv4Addr::from(self.v4.sin_addr.s_addr.to_ne_bytes());
                    Some(SocketAddrV4::new(ip, u16::from_be(self.v4.sin_port)).into())
                }
                libc::AF_INET6 => {
                    let ip = Ipv6Addr::from(self.v6.sin6_addr.s6_addr);
                    let port = u16::from_be(self.v6.sin6_port);
                    let (flow, scope) = (self.v6.sin6_flowinfo, self.v6.sin6_scope_id);
                    Some(SocketAddrV6::new(ip, port, flow, scope).into())
                }
                _ => None,
            }
        }
    }
}

pub(super) fn in_addr(ip: Ipv4Addr) -> libc::in_addr {
    libc::in_addr {
        s_addr: u32::from_ne_bytes(ip.octets()),
    }
}

pub(super) fn in6_addr(ip: Ipv6Addr) -> libc::in6_addr {
    libc::in6_addr {
        s6_addr: ip.octets(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn socket_addresses_survive_the_way_to_the_kernel_and_back() {
        for text in ["192.0.2.1:1701", "[2001:db8::1]:65535", "[fe80::1%7]:1"] {
            let address: SocketAddr = text.parse().unwrap();
            let mut raw = RawAddress::zeroed();
            raw.set(address);
            assert_eq!(raw.get(), Some(address));
        }
        assert_eq!(RawAddress::zeroed().get(), None);
    }
}
