//! A UDP socket to a collector. A collector that does not answer, or that cannot be reached, costs its datagrams; that is
//! counted, and reported once.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// How long nothing fails until a collector counts as reachable again.
const QUIET: Duration = Duration::from_secs(60);

/// A socket to one collector.
pub(super) struct Collector {
    what: &'static str,
    pub(super) address: SocketAddr,
    socket: UdpSocket,
    /// The last failure, if it is not long ago.
    failed: Option<Instant>,
}

impl Collector {
    /// A socket that sends to this address only.
    pub(super) fn open(what: &'static str, address: SocketAddr) -> io::Result<Self> {
        let any: IpAddr = match address {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let socket = UdpSocket::bind((any, 0))?;
        socket.set_nonblocking(true)?;
        Ok(Self {
            what,
            address,
            socket,
            failed: None,
        })
    }

    /// Sends a datagram. Returns whether the kernel took it, and no ICMP error about an earlier one had come.
    pub(super) fn send(&mut self, octets: &[u8]) -> bool {
        let mut sent = self.attempt(octets);
        if let Err(error) = &sent
            && error.kind() == io::ErrorKind::ConnectionRefused
        {
            // The error is about an earlier datagram, and the call has sent nothing.
            self.note(Some(error));
            let _ = self.attempt(octets);
            return false;
        }
        if let Err(error) = &sent
            && error.kind() == io::ErrorKind::Interrupted
        {
            sent = self.attempt(octets);
        }
        self.note(sent.as_ref().err());
        sent.is_ok()
    }

    fn attempt(&self, octets: &[u8]) -> io::Result<()> {
        // A connected socket gets ICMP errors; the address may have no route yet at the start.
        if self.socket.peer_addr().is_err() {
            self.socket.connect(self.address)?;
        }
        self.socket.send(octets).map(drop)
    }

    /// Reports the first of several failures, and that there have been none for a while: of a collector that is gone, only
    /// every other datagram fails.
    fn note(&mut self, error: Option<&io::Error>) {
        match (error, self.failed) {
            (Some(error), before) => {
                if before.is_none() {
                    tracing::warn!(collector = %self.address, %error, "nat log: {} is not received", self.what);
                }
                self.failed = Some(Instant::now());
            }
            (None, Some(failed)) if failed.elapsed() >= QUIET => {
                tracing::info!(collector = %self.address, "nat log: {} is sent again", self.what);
                self.failed = None;
            }
            (None, _) => {}
        }
    }
}
