//! Bulk TCP: one connection for each subscriber, always sending.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketFlags, SocketType};

use super::{Row, Shared, Traffic, Way, within};
use crate::configs::GATEWAY;

/// Size of one write in bytes, and limit of one read.
const PART: usize = 256 * 1024;

/// Longest time to open a connection.
const PATIENCE: Duration = Duration::from_secs(5);

impl Traffic<'_> {
    pub(super) fn tcp(&mut self, way: Way) -> Result<Row> {
        let pairs = self.connect()?;
        let shared = Shared::default();
        std::thread::scope(|scope| {
            for (subscriber, server) in &pairs {
                let (from, to) = match way {
                    Way::Up => (subscriber, server),
                    Way::Down => (server, subscriber),
                };
                scope.spawn(|| send(from, &shared));
                scope.spawn(|| receive(to, &shared));
            }
            let row = self.measure("TCP", way, &shared);
            shared.stop.store(true, Ordering::Relaxed);
            for stream in pairs.iter().flat_map(|(one, other)| [one, other]) {
                // It fails only if the connection has ended already.
                let _ = stream.shutdown(Shutdown::Both);
            }
            row
        })
    }

    /// Opens a connection from each subscriber to the LNS's side; returns both ends.
    fn connect(&self) -> Result<Vec<(TcpStream, TcpStream)>> {
        let listener = within(&self.place.lns, || TcpListener::bind((GATEWAY, 0)))?;
        let SocketAddr::V4(server) = listener.local_addr()? else {
            unreachable!("an IPv4 listener has an IPv4 address");
        };
        let mut pairs = Vec::new();
        for &address in &self.addresses {
            let subscriber = within(&self.place.lac, || connect(address, server))
                .with_context(|| format!("cannot connect from {address} to {server}"))?;
            let (accepted, _) = listener.accept()?;
            pairs.push((subscriber, accepted));
        }
        Ok(pairs)
    }
}

/// A connection from a certain address.
pub(crate) fn connect(from: Ipv4Addr, to: SocketAddrV4) -> io::Result<TcpStream> {
    let flags = SocketFlags::CLOEXEC;
    let fd = rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
    rustix::net::bind(&fd, &SocketAddrV4::new(from, 0))?;
    // This also limits the time to connect.
    set_socket_timeout(&fd, Timeout::Send, Some(PATIENCE))?;
    rustix::net::connect(&fd, &to)?;
    set_socket_timeout(&fd, Timeout::Send, None)?;
    Ok(TcpStream::from(fd))
}

fn send(mut to: &TcpStream, shared: &Shared) {
    let part = vec![0x55; PART];
    while !shared.is_stopped() && to.write_all(&part).is_ok() {}
}

fn receive(mut from: &TcpStream, shared: &Shared) {
    let mut part = vec![0; PART];
    while let Ok(length @ 1..) = from.read(&mut part) {
        shared.octets.fetch_add(length as u64, Ordering::Relaxed);
    }
}
