//! One TCP connection from the near interface to the far one.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use reactor::port::offloads::OffloadsOff;

use super::super::wires::Wires;
use super::case::Load;

const NEAR: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
const FAR: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2));

/// Bytes of one write or read.
const CHUNK: usize = 256 << 10;

/// Longest time for the connection, and for a write.
const PATIENCE: Duration = Duration::from_secs(5);

/// Gives both ends addresses and turns offloads off, if the load takes that.
///
/// # Errors
/// The kernel's.
pub(super) fn prepare(wires: &Wires, load: Load) -> Result<Vec<OffloadsOff>> {
    let mut off = Vec::new();
    if load.frame().is_some() {
        // The kernel cuts the sender's runs before they leave.
        off.push(wires.near.run(|| OffloadsOff::new("eth0"))??);
        return Ok(off);
    }
    for (namespace, address) in [(&wires.near, NEAR), (&wires.far, FAR)] {
        namespace.netlink()?.add_address("eth0", address, 24)?;
    }
    if load == Load::TcpCut {
        let (near, middle, far) = (&wires.near, &wires.middle, &wires.far);
        let ends = [
            (near, "eth0"),
            (middle, "left"),
            (middle, "right"),
            (far, "eth0"),
        ];
        for (namespace, name) in ends {
            off.push(namespace.run(|| OffloadsOff::new(name))??);
        }
    }
    Ok(off)
}

/// A connection: the near end, and the far one.
///
/// # Errors
/// Nothing forwards, or the kernel's error.
pub(super) fn connect(wires: &Wires) -> Result<(TcpStream, TcpStream)> {
    let at = SocketAddr::new(FAR, 5_001);
    let listener = wires.far.run(|| TcpListener::bind(at))??;
    let near = wires
        .near
        .run(|| TcpStream::connect_timeout(&at, PATIENCE))??;
    near.set_write_timeout(Some(PATIENCE))?;
    let (far, _) = listener.accept().context("no connection")?;
    Ok((near, far))
}

/// Sends until `stop` is set.
pub(super) fn send(mut stream: TcpStream, stop: &AtomicBool) -> Result<()> {
    let chunk = vec![0x5a; CHUNK];
    while !stop.load(Ordering::Relaxed) {
        stream.write_all(&chunk)?;
    }
    Ok(())
}

/// Reads until the other end closes.
pub(super) fn take(mut stream: TcpStream) -> Result<()> {
    let mut chunk = vec![0; CHUNK];
    while stream.read(&mut chunk)? > 0 {}
    Ok(())
}
