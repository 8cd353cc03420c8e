//! Which node's socket receives a datagram.

use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use crate::NodeId;

/// What a socket is bound to: one address, or every address of a prefix, and a
/// port.
///
/// Written `192.0.2.1:1701`, `[2001:db8::1]:1701`, `10.0.0.0/8:1701` or
/// `[2001:db8::/32]:1701`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bind {
    network: IpAddr,
    prefix_len: u8,
    port: u16,
}

/// The text or prefix length given for a [`Bind`] is not one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BindError(String);

impl Bind {
    /// Every address of `network/prefix_len`, at `port`.
    ///
    /// # Errors
    /// The prefix is longer than an address of its family.
    pub fn prefix(network: IpAddr, prefix_len: u8, port: u16) -> Result<Self, BindError> {
        if prefix_len > address_bits(network) {
            return Err(BindError(format!("{network}/{prefix_len}")));
        }
        Ok(Self {
            network: mask(network, prefix_len),
            prefix_len,
            port,
        })
    }

    /// Whether `ip` is one of its addresses.
    pub fn contains(&self, ip: IpAddr) -> bool {
        self.network.is_ipv4() == ip.is_ipv4() && mask(ip, self.prefix_len) == self.network
    }

    /// The default source address: the lowest.
    pub fn primary(&self) -> SocketAddr {
        SocketAddr::new(self.network, self.port)
    }
}

/// Parses `text`, for literals in tests: `addr("192.0.2.1:1701")`.
///
/// # Panics
/// The text is not an address with a port.
pub fn addr(text: &str) -> SocketAddr {
    text.parse()
        .unwrap_or_else(|_| panic!("not an address with a port: {text:?}"))
}

impl From<SocketAddr> for Bind {
    fn from(address: SocketAddr) -> Self {
        let network = address.ip();
        Self {
            network,
            prefix_len: address_bits(network),
            port: address.port(),
        }
    }
}

impl From<&str> for Bind {
    /// For literals in tests.
    ///
    /// # Panics
    /// The text is no bind; parse text from outside instead.
    fn from(text: &str) -> Self {
        text.parse().unwrap_or_else(|e| panic!("{e}"))
    }
}

impl FromStr for Bind {
    type Err = BindError;

    fn from_str(text: &str) -> Result<Self, BindError> {
        if let Ok(address) = text.parse::<SocketAddr>() {
            return Ok(address.into());
        }
        let fault = || BindError(text.to_owned());
        let (prefix, port) = text.rsplit_once(':').ok_or_else(fault)?;
        let bracketed = prefix.strip_prefix('[').and_then(|p| p.strip_suffix(']'));
        let (network, len) = bracketed
            .unwrap_or(prefix)
            .split_once('/')
            .ok_or_else(fault)?;
        let network: IpAddr = network.parse().map_err(|_| fault())?;
        if network.is_ipv6() != bracketed.is_some() {
            return Err(fault());
        }
        let len = len.parse().map_err(|_| fault())?;
        Self::prefix(network, len, port.parse().map_err(|_| fault())?).map_err(|_| fault())
    }
}

impl fmt::Display for Bind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            network,
            prefix_len,
            port,
        } = self;
        if *prefix_len == address_bits(*network) {
            write!(f, "{}", self.primary())
        } else if network.is_ipv6() {
            write!(f, "[{network}/{prefix_len}]:{port}")
        } else {
            write!(f, "{network}/{prefix_len}:{port}")
        }
    }
}

impl fmt::Display for BindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not an address or prefix with a port: {:?}", self.0)
    }
}

impl std::error::Error for BindError {}

fn address_bits(ip: IpAddr) -> u8 {
    if ip.is_ipv4() { 32 } else { 128 }
}

/// `ip` with the bits after `prefix_len` cleared.
fn mask(ip: IpAddr, prefix_len: u8) -> IpAddr {
    match ip {
        IpAddr::V4(ip) => {
            let ones = u32::MAX
                .checked_shl(32 - u32::from(prefix_len))
                .unwrap_or(0);
            Ipv4Addr::from_bits(ip.to_bits() & ones).into()
        }
        IpAddr::V6(ip) => {
            let ones = u128::MAX
                .checked_shl(128 - u32::from(prefix_len))
                .unwrap_or(0);
            Ipv6Addr::from_bits(ip.to_bits() & ones).into()
        }
    }
}

/// A socket of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Socket {
    /// Receives datagrams to its addresses.
    Bound(Bind),
    /// Receives datagrams from `peer` to `local`, before any bound socket.
    Connected { local: SocketAddr, peer: SocketAddr },
}

impl Socket {
    /// The address a datagram leaves from, if the socket may use it.
    pub(crate) fn source(&self, asked: Option<IpAddr>) -> Option<SocketAddr> {
        match *self {
            Socket::Bound(bind) => match asked {
                None => Some(bind.primary()),
                Some(ip) => bind.contains(ip).then(|| SocketAddr::new(ip, bind.port)),
            },
            Socket::Connected { local, .. } => {
                asked.is_none_or(|ip| ip == local.ip()).then_some(local)
            }
        }
    }
}

impl fmt::Display for Socket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Socket::Bound(bind) => bind.fmt(f),
            Socket::Connected { local, peer } => write!(f, "{local}>{peer}"),
        }
    }
}

/// A node and the number of one of its sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) node: NodeId,
    pub(crate) socket: u32,
}

/// Finds the socket for a datagram: the connected one, else the one with the longest prefix.
#[derive(Default)]
pub(crate) struct Addresses {
    owners: HashMap<Socket, Owner>,
    /// Prefix lengths used so far, longest first.
    prefix_lens: Vec<u8>,
}

impl Addresses {
    /// Gives `socket` to `owner`; `false` if it is taken.
    pub(crate) fn insert(&mut self, socket: Socket, owner: Owner) -> bool {
        if self.owners.contains_key(&socket) {
            return false;
        }
        self.owners.insert(socket, owner);
        if let Socket::Bound(Bind { prefix_len, .. }) = socket
            && let Err(at) = self.prefix_lens.binary_search_by(|len| prefix_len.cmp(len))
        {
            self.prefix_lens.insert(at, prefix_len);
        }
        true
    }

    pub(crate) fn remove(&mut self, socket: &Socket) {
        self.owners.remove(socket);
    }

    /// The owner of datagrams from `from` to `to`.
    pub(crate) fn find(&self, from: SocketAddr, to: SocketAddr) -> Option<Owner> {
        if let Some(owner) = self.owners.get(&Socket::Connected {
            local: to,
            peer: from,
        }) {
            return Some(*owner);
        }
        let fits = self
            .prefix_lens
            .iter()
            .filter(|len| **len <= address_bits(to.ip()));
        fits.filter_map(|len| {
            let bind = Bind {
                network: mask(to.ip(), *len),
                prefix_len: *len,
                port: to.port(),
            };
            self.owners.get(&Socket::Bound(bind)).copied()
        })
        .next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_parse_and_print_back() {
        for text in [
            "192.0.2.1:1701",
            "[2001:db8::1]:1701",
            "10.0.0.0/8:1701",
            "[2001:db8::/32]:1",
        ] {
            assert_eq!(text.parse::<Bind>().unwrap().to_string(), text);
        }
        for text in [
            "",
            "192.0.2.1",
            "10.0.0.0/33:1",
            "2001:db8::/32:1",
            "[10.0.0.0/8]:1",
            "/:",
        ] {
            assert!(text.parse::<Bind>().is_err(), "{text}");
        }
        assert_eq!(Bind::from("10.1.2.3/8:1"), Bind::from("10.0.0.0/8:1"));
    }

    #[test]
    fn the_longest_prefix_takes_it_and_a_connected_socket_goes_first() {
        let mut addresses = Addresses::default();
        let owner = |socket| Owner {
            node: NodeId::new(0),
            socket,
        };
        let (lac, lns) = (addr("10.0.0.9:1701"), addr("10.0.0.1:1701"));
        assert!(addresses.insert(Socket::Bound("0.0.0.0/0:1701".into()), owner(0)));
        assert!(addresses.insert(Socket::Bound("10.0.0.0/8:1701".into()), owner(1)));
        assert!(addresses.insert(Socket::Bound("[2001:db8::/64]:1701".into()), owner(2)));
        assert!(!addresses.insert(Socket::Bound("10.0.0.0/8:1701".into()), owner(3)));
        let socket = |a: &Addresses, to: &str| a.find(lac, addr(to)).map(|o| o.socket);
        assert_eq!(socket(&addresses, "10.0.0.1:1701"), Some(1));
        assert_eq!(socket(&addresses, "11.0.0.1:1701"), Some(0));
        assert_eq!(socket(&addresses, "11.0.0.1:1702"), None);
        assert_eq!(socket(&addresses, "[2001:db8::5]:1701"), Some(2));
        let connected = Socket::Connected {
            local: lns,
            peer: lac,
        };
        assert!(addresses.insert(connected, owner(4)));
        assert_eq!(socket(&addresses, "10.0.0.1:1701"), Some(4));
        addresses.remove(&connected);
        assert_eq!(socket(&addresses, "10.0.0.1:1701"), Some(1));
    }

    #[test]
    fn a_socket_sends_only_from_its_own_addresses() {
        let prefix = Socket::Bound("10.0.0.0/24:1701".into());
        let from = |ip: &str| prefix.source(Some(ip.parse().unwrap()));
        assert_eq!(prefix.source(None), Some(addr("10.0.0.0:1701")));
        assert_eq!(from("10.0.0.7"), Some(addr("10.0.0.7:1701")));
        assert_eq!(from("10.0.1.7"), None);
        assert_eq!(from("2001:db8::1"), None);
    }
}
