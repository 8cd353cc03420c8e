//! The bare loops of `headend bench forward`: a process in the LNS's place that receives and
//! writes, or reads and sends.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, UdpSocket};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use reactor::netlink::Netlink;
use reactor::tun::Tun;
use rustix::net::sockopt;

use super::Way;
use super::place::{LNS, OWN, POOL, Place, TUN};
use crate::harness::Bench;
use crate::harness::run::Running;
use crate::harness::server::Server;

/// Size of the socket's buffers, in bytes.
const ROOM: usize = 64 << 20;

/// Run a bare loop until standard input ends.
#[derive(Debug, clap::Args)]
pub(crate) struct ForwardBareArgs {
    way: Way,
    /// Octets before a packet, and the socket's peer
    strip: usize,
    peer: SocketAddr,
}

/// Starts a bare loop in the LNS's namespace.
///
/// # Errors
/// It does not start.
pub(super) fn start(
    bench: &Bench,
    place: &Place,
    way: Way,
    strip: usize,
    peer: SocketAddr,
) -> Result<Server> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["bench", "forward-bare", way.name()]);
    command.args([strip.to_string(), peer.to_string()]);
    place.lns.command(&mut command)?;
    let mut running: Running = bench.spawn("bare", command)?;
    let mut line = String::new();
    let out = running.stdout.as_mut().context("the bare loop's output")?;
    BufReader::new(out).read_line(&mut line)?;
    anyhow::ensure!(line.trim() == "ready", "the bare loop: {}", running.log());
    Ok(Server {
        running,
        addresses: vec![LNS],
    })
}

/// Runs a bare loop in this process.
pub(crate) fn run(args: &ForwardBareArgs) -> Result<ExitCode> {
    let stop = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&stop);
    std::thread::spawn(move || {
        // The parent is gone when standard input ends or fails.
        let _ = std::io::stdin().lock().read_to_end(&mut Vec::new());
        told.store(true, Ordering::Relaxed);
    });
    let tun = Tun::open(TUN)?;
    let mut netlink = Netlink::open()?;
    netlink.set_up(TUN, true)?;
    netlink.add_address(TUN, OWN.into(), 32)?;
    netlink.add_route(POOL.0.into(), POOL.1, None, TUN)?;
    let socket = UdpSocket::bind(LNS)?;
    socket.set_nonblocking(true)?;
    // The same buffer size as the LNS asks for; the kernel applies the same limit to both.
    let _ = sockopt::set_socket_recv_buffer_size_force(&socket, ROOM);
    let _ = sockopt::set_socket_send_buffer_size(&socket, ROOM);
    let mut out = std::io::stdout().lock();
    writeln!(out, "ready")?;
    out.flush()?;
    match args.way {
        Way::In => reactor::bare::receive_and_write(&socket, &tun, args.strip, &stop)?,
        Way::Out => {
            socket.connect(args.peer)?;
            reactor::bare::read_and_send(&tun, &socket, &vec![0; args.strip], &stop)?
        }
    };
    Ok(ExitCode::SUCCESS)
}
