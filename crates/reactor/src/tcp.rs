//! TCP for protocols with long sessions: non-blocking listeners and connections, with signatures (RFC 2385) and the
//! generalized TTL security mechanism (RFC 5082).
//!
//! Left out: the TCP Authentication Option (RFC 5925), available in Linux from 6.7 on.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, sockopt};

use crate::faults::part;
use crate::sys::socket as sys;
use crate::syscalls::{Call, enter};

pub use crate::sys::socket::MD5_KEY_MAX;

/// Options of a connection or a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct TcpOptions {
    /// The TTL or hop limit of sent segments; `None` for the kernel's default.
    pub ttl: Option<u8>,
    /// Segments with a lower TTL or hop limit are dropped (RFC 5082).
    pub ttl_min: Option<u8>,
    /// The kernel's receive buffer in bytes; `None` lets it grow by itself.
    pub receive_buffer_bytes: Option<usize>,
    /// The kernel's send buffer in bytes; `None` lets it grow by itself.
    pub send_buffer_bytes: Option<usize>,
    /// The bytes that the kernel takes beyond those in flight; `None` for as many as the send buffer holds. An accepted
    /// connection has the limit of its listener.
    pub unsent_bytes: Option<usize>,
}

/// A listening socket.
#[derive(Debug)]
pub struct TcpListener(OwnedFd);

/// One connection, from its first SYN on.
#[derive(Debug)]
pub struct TcpStream(OwnedFd);

impl TcpListener {
    /// Listens on `local`; port 0 takes a free one. An IPv6 listener takes IPv6 alone.
    ///
    /// # Errors
    /// The kernel's error, for example that the address is in use or needs a privilege.
    pub fn listen(local: SocketAddr, options: TcpOptions, backlog: i32) -> io::Result<Self> {
        let fd = open(local)?;
        sockopt::set_socket_reuseaddr(&fd, true)?;
        if local.is_ipv6() {
            sockopt::set_ipv6_v6only(&fd, true)?;
        }
        apply(fd.as_fd(), local.ip(), options)?;
        enter(Call::Bind)?;
        rustix::net::bind(&fd, &local)?;
        rustix::net::listen(&fd, backlog)?;
        Ok(Self(fd))
    }

    /// The local address.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn local(&self) -> io::Result<SocketAddr> {
        local_of(self.0.as_fd())
    }

    /// The next incoming connection and its remote address; `None` if there is none now.
    ///
    /// # Errors
    /// The kernel's error, for example that no descriptor is left. A connection that ended while it waited is
    /// skipped.
    pub fn accept(&self) -> io::Result<Option<(TcpStream, SocketAddr)>> {
        loop {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let accepted =
                enter(Call::Accept).and_then(|()| rustix::net::acceptfrom_with(&self.0, flags));
            match accepted {
                Ok((fd, Some(remote))) => {
                    let remote = SocketAddr::try_from(remote)
                        .map_err(|_| io::Error::from(io::ErrorKind::AddrNotAvailable))?;
                    sockopt::set_tcp_nodelay(&fd, true)?;
                    return Ok(Some((TcpStream(fd), remote)));
                }
                Ok((_, None)) | Err(rustix::io::Errno::INTR | rustix::io::Errno::CONNABORTED) => {}
                Err(rustix::io::Errno::AGAIN) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Requires signatures (RFC 2385) of peers in this network; an empty key ends that.
    ///
    /// # Errors
    /// `InvalidInput` if the key is too long; else the kernel's error.
    pub fn set_md5(&self, network: (IpAddr, u8), key: &[u8]) -> io::Result<()> {
        sys::set_md5(self.0.as_fd(), network, key)
    }

    /// Sets the TTLs of future connections.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn set_options(&self, options: TcpOptions) -> io::Result<()> {
        apply(self.0.as_fd(), self.local()?.ip(), options)
    }
}

impl TcpStream {
    /// Starts to connect to `remote`, from `local` if given. The connection becomes writable when the result is
    /// known: then [`TcpStream::error`] returns it.
    ///
    /// # Errors
    /// The kernel's immediate error, for example that there is no route.
    pub fn connect(
        local: Option<SocketAddr>,
        remote: SocketAddr,
        options: TcpOptions,
        md5: Option<&[u8]>,
    ) -> io::Result<Self> {
        let fd = open(remote)?;
        apply(fd.as_fd(), remote.ip(), options)?;
        sockopt::set_tcp_nodelay(&fd, true)?;
        if let Some(key) = md5 {
            let bits = if remote.is_ipv4() { 32 } else { 128 };
            sys::set_md5(fd.as_fd(), (remote.ip(), bits), key)?;
        }
        if let Some(local) = local {
            // The kernel chooses the port once it knows the remote end, so many connections can share a port.
            sys::set_number(fd.as_fd(), libc::SOL_IP, libc::IP_BIND_ADDRESS_NO_PORT, 1)?;
            enter(Call::Bind)?;
            rustix::net::bind(&fd, &local)?;
        }
        match enter(Call::Connect).and_then(|()| rustix::net::connect(&fd, &remote)) {
            Ok(()) | Err(rustix::io::Errno::INPROGRESS) => Ok(Self(fd)),
            Err(error) => Err(error.into()),
        }
    }

    /// Why it did not connect, or broke; `None` if there is no error. The kernel reports each error once.
    ///
    /// # Errors
    /// The kernel's error for the query itself.
    pub fn error(&self) -> io::Result<Option<io::Error>> {
        enter(Call::Getsockopt)?;
        Ok(sockopt::socket_error(&self.0)?.err().map(io::Error::from))
    }

    /// The local address.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn local(&self) -> io::Result<SocketAddr> {
        local_of(self.0.as_fd())
    }

    /// Sets TTLs and buffers of an open connection.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn set_options(&self, options: TcpOptions) -> io::Result<()> {
        apply(self.0.as_fd(), self.local()?.ip(), options)
    }

    /// Closes our side of the stream: the peer reads its end after the written bytes. The peer's bytes can still be
    /// read.
    ///
    /// # Errors
    /// The kernel's error: the connection is broken.
    pub fn end_output(&self) -> io::Result<()> {
        Ok(rustix::net::shutdown(
            &self.0,
            rustix::net::Shutdown::Write,
        )?)
    }

    /// Reads the available bytes; `None` if there are none, 0 at the end of the stream.
    ///
    /// # Errors
    /// The kernel's error: the connection is broken.
    pub fn read(&self, into: &mut [u8]) -> io::Result<Option<usize>> {
        loop {
            let end = part(Call::Recvfrom, into.len());
            let read = enter(Call::Recvfrom)
                .and_then(|()| rustix::net::recv(&self.0, &mut into[..end], RecvFlags::empty()));
            match read {
                Ok((count, _)) => return Ok(Some(count)),
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Writes as many bytes as the kernel takes; `None` if it takes none now.
    ///
    /// # Errors
    /// The kernel's error: the connection is broken.
    pub fn write(&self, octets: &[u8]) -> io::Result<Option<usize>> {
        loop {
            let end = part(Call::Sendto, octets.len());
            let sent = enter(Call::Sendto)
                .and_then(|()| rustix::net::send(&self.0, &octets[..end], SendFlags::NOSIGNAL));
            match sent {
                Ok(count) => return Ok(Some(count)),
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl AsFd for TcpListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsFd for TcpStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn open(address: SocketAddr) -> io::Result<OwnedFd> {
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    enter(Call::Socket)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(rustix::net::socket_with(
        family,
        SocketType::STREAM,
        flags,
        None,
    )?)
}

fn local_of(fd: BorrowedFd<'_>) -> io::Result<SocketAddr> {
    enter(Call::Getsockname)?;
    SocketAddr::try_from(rustix::net::getsockname(fd)?)
        .map_err(|_| io::ErrorKind::AddrNotAvailable.into())
}

fn apply(fd: BorrowedFd<'_>, family: IpAddr, options: TcpOptions) -> io::Result<()> {
    let (level, ttl, ttl_min) = match family {
        IpAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_TTL, libc::IP_MINTTL),
        IpAddr::V6(_) => (
            libc::IPPROTO_IPV6,
            libc::IPV6_UNICAST_HOPS,
            sys::IPV6_MINHOPCOUNT,
        ),
    };
    if let Some(value) = options.ttl {
        sys::set_number(fd, level, ttl, value.into())?;
    }
    if let Some(value) = options.ttl_min {
        sys::set_number(fd, level, ttl_min, value.into())?;
    }
    if let Some(octets) = options.receive_buffer_bytes {
        sockopt::set_socket_recv_buffer_size(fd, octets)?;
    }
    if let Some(octets) = options.send_buffer_bytes {
        sockopt::set_socket_send_buffer_size(fd, octets)?;
    }
    if let Some(octets) = options.unsent_bytes {
        let octets = i32::try_from(octets).unwrap_or(i32::MAX);
        sys::set_number(fd, libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, octets)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::sleep;
    use std::time::Duration;

    fn listener(options: TcpOptions) -> (TcpListener, SocketAddr) {
        let listener = TcpListener::listen("127.0.0.1:0".parse().unwrap(), options, 8).unwrap();
        let local = listener.local().unwrap();
        (listener, local)
    }

    /// Asks until there is an answer, for at most `tries` milliseconds.
    fn until<T>(tries: u32, mut ask: impl FnMut() -> Option<T>) -> Option<T> {
        (0..tries).find_map(|_| {
            let found = ask();
            if found.is_none() {
                sleep(Duration::from_millis(1));
            }
            found
        })
    }

    fn accepted(listener: &TcpListener, tries: u32) -> Option<(TcpStream, SocketAddr)> {
        until(tries, || listener.accept().unwrap())
    }

    #[test]
    fn what_one_end_writes_the_other_reads() {
        let (listener, address) = listener(TcpOptions::default());
        assert!(listener.accept().unwrap().is_none());
        let from = "127.9.8.7:0".parse().unwrap();
        let here = TcpStream::connect(Some(from), address, TcpOptions::default(), None).unwrap();
        let (there, remote) = accepted(&listener, 2000).unwrap();
        assert_eq!(remote, here.local().unwrap());
        assert_eq!(remote.ip().to_string(), "127.9.8.7");
        let mut octets = [0; 8];
        assert_eq!(there.read(&mut octets).unwrap(), None);
        assert_eq!(here.write(b"open").unwrap(), Some(4));
        let count = until(2000, || there.read(&mut octets).unwrap());
        assert_eq!(&octets[..count.unwrap()], b"open");
        drop(here);
        assert_eq!(
            until(2000, || there.read(&mut octets).unwrap()),
            Some(0),
            "the end of the stream"
        );
    }

    #[test]
    fn nobody_there_is_an_error_that_is_told_once_it_is_known() {
        let (gone, address) = listener(TcpOptions::default());
        drop(gone);
        let begun = TcpStream::connect(None, address, TcpOptions::default(), None);
        let refused = match begun {
            Err(error) => Some(error),
            Ok(stream) => until(2000, || stream.error().unwrap()),
        };
        assert_eq!(refused.unwrap().kind(), io::ErrorKind::ConnectionRefused);
    }

    #[test]
    fn a_peer_that_is_too_far_away_is_not_heard() {
        // RFC 5082 3: accept only segments sent with 255 that passed no router.
        let near = TcpOptions {
            ttl_min: Some(255),
            ..TcpOptions::default()
        };
        let (listener, address) = listener(near);
        let far = TcpStream::connect(None, address, TcpOptions::default(), None).unwrap();
        assert!(accepted(&listener, 100).is_none());
        let options = TcpOptions {
            ttl: Some(255),
            ..TcpOptions::default()
        };
        let _near = TcpStream::connect(None, address, options, None).unwrap();
        assert!(accepted(&listener, 2000).is_some());
        drop(far);
    }

    #[test]
    fn only_who_knows_the_key_connects() {
        let (listener, address) = listener(TcpOptions::default());
        let network = ("127.0.0.0".parse().unwrap(), 8);
        if let Err(error) = listener.set_md5(network, b"secret") {
            // A kernel may be built without signatures: then it must report that.
            assert_eq!(error.raw_os_error(), Some(libc::ENOPROTOOPT));
            return;
        }
        let options = TcpOptions::default();
        let unsigned = TcpStream::connect(None, address, options, None).unwrap();
        let wrong = TcpStream::connect(None, address, options, Some(b"other")).unwrap();
        assert!(accepted(&listener, 100).is_none());
        let right = TcpStream::connect(None, address, options, Some(b"secret")).unwrap();
        let (there, _) = accepted(&listener, 2000).unwrap();
        assert_eq!(right.write(b"x").unwrap(), Some(1));
        let mut octets = [0; 2];
        assert_eq!(until(2000, || there.read(&mut octets).unwrap()), Some(1));
        drop((unsigned, wrong));
    }

    #[test]
    fn a_key_that_is_too_long_is_refused() {
        let (listener, _) = listener(TcpOptions::default());
        let network = ("127.0.0.0".parse().unwrap(), 8);
        let error = listener
            .set_md5(network, &[7; MD5_KEY_MAX + 1])
            .unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }
}
