//! Bulk TCP through one session, between a LAC of ours that has a client session and the LNS.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use lab::report::CoreWitness;
use reactor::namespace::Namespace;
use serde_json::Value;

use super::Way;
use super::place::{LNS, OWN, Place};
use crate::harness::Bench;
use crate::harness::others_of;
use crate::harness::run::Running;
use crate::harness::server::daemon;
use crate::subscribers::lns as users;

/// The client's device.
const DEVICE: &str = "outside";

/// Bytes of one write or read.
const CHUNK: usize = 256 << 10;

/// Time until a connection has reached its rate.
const WARM: Duration = Duration::from_millis(500);

/// Longest time that a client may take to connect.
const PATIENCE: Duration = Duration::from_secs(10);

/// Results.
#[derive(Clone, Debug)]
pub(super) struct Bulk {
    pub(super) way: Way,
    pub(super) bits: f64,
    pub(super) seconds: f64,
    /// Processor time of the LNS.
    pub(super) cpu_us: f64,
    pub(super) others_percent: Option<f64>,
}

/// Measures one connection in each direction.
///
/// # Errors
/// A daemon does not start or has ended, or the kernel's error.
pub(super) fn measure(
    bench: &Bench,
    place: &Place,
    ways: &[Way],
    span: Duration,
) -> Result<Vec<Bulk>> {
    let lns = place.start(bench, 1, true)?;
    let lac = client(bench, place)?;
    let mut all = Vec::new();
    for &way in ways {
        bench.say(format!("TCP, {}", super::ways::words(way)));
        let flow = Flow::start(place, way)?;
        std::thread::sleep(WARM);
        let witness = CoreWitness::start();
        let before = (lns.server.booked()?, flow.received());
        std::thread::sleep(span);
        let spent = lns.server.spent_since(&before.0)?;
        let octets = flow.received() - before.1;
        flow.end()?;
        for running in [&lns.server.running, &lac] {
            running.check()?;
        }
        all.push(Bulk {
            way,
            bits: octets as f64 * 8.0,
            seconds: spent.seconds,
            cpu_us: spent.cpu_us,
            others_percent: others_of(witness.finish()),
        });
    }
    Ok(all)
}

/// Starts a LAC on the load's core, with one connected client.
fn client(bench: &Bench, place: &Place) -> Result<Running> {
    let socket = bench.directory.path("lac.sock");
    let text = format!(
        "[control]\nsocket = {}\n[log]\nto = \"stderr\"\nlevel = \"debug\"\n[lac]\n\
         [client]\nname = \"{}\"\nsecret = \"{}\"\n[tun]\nname = \"{DEVICE}\"\nroutes = [\"{OWN}/32\"]\n",
        Value::from(socket.to_string_lossy()),
        users::user(0),
        users::PASSWORD,
    );
    let program = std::env::current_exe()?;
    let mut command = daemon(bench, "lac", &text)?;
    place.peers.command(&mut command)?;
    let lac = bench.directory.spawn("lac", command)?;
    let started = Instant::now();
    let peer = LNS.to_string();
    let words = ["tunnel", "create", "--session", "--version", "2"];
    loop {
        let mut create = Command::new(&program);
        create.args(words).args(["--peer", &peer, "--socket"]);
        if create.arg(&socket).output()?.status.success() {
            break;
        }
        lac.check()?;
        if started.elapsed() > PATIENCE {
            bail!("the LAC opened no session: {}", lac.log());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let address = loop {
        if let Some(address) = address_in(&lac.log()) {
            break address;
        }
        if started.elapsed() > PATIENCE {
            bail!("the client got no address: {}", lac.log());
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let mut netlink = place.peers.netlink()?;
    netlink.add_address(DEVICE, address.into(), 32)?;
    Ok(lac)
}

/// The address that our client got, from its log.
fn address_in(log: &str) -> Option<Ipv4Addr> {
    let (_, rest) = log.split_once("addresses=Some((")?;
    rest.split(',').next()?.parse().ok()
}

/// A connection on which one end sends as fast as possible.
struct Flow {
    received: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<std::io::Result<std::io::Result<()>>>>,
}

impl Flow {
    fn start(place: &Place, way: Way) -> Result<Self> {
        let received = Arc::new(AtomicU64::new(0));
        let stop = Arc::new(AtomicBool::new(false));
        let listener = place.lns.run(|| TcpListener::bind((OWN, 0)))??;
        let at = listener.local_addr()?;
        let outer = place.peers.run(|| connect(at))??;
        let (inner, _) = listener.accept().context("no connection")?;
        let (from, to): ((&Namespace, TcpStream), (&Namespace, TcpStream)) = match way {
            Way::In => ((&place.peers, outer), (&place.lns, inner)),
            Way::Out => ((&place.lns, inner), (&place.peers, outer)),
        };
        let told = Arc::clone(&stop);
        let sends = from.0.spawn("sends", move || send(from.1, &told))?;
        let count = Arc::clone(&received);
        let takes = to.0.spawn("takes", move || take(to.1, &count))?;
        Ok(Self {
            received,
            stop,
            threads: vec![sends, takes],
        })
    }

    fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// Closes the sending end, and waits for data in flight.
    fn end(self) -> Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads {
            let done = thread.join();
            done.map_err(|_| anyhow::anyhow!("a thread of the connection failed"))???;
        }
        Ok(())
    }
}

fn connect(at: SocketAddr) -> std::io::Result<TcpStream> {
    TcpStream::connect_timeout(&at, PATIENCE)
}

fn send(mut stream: TcpStream, stop: &AtomicBool) -> std::io::Result<()> {
    let chunk = vec![0x5a; CHUNK];
    while !stop.load(Ordering::Relaxed) {
        stream.write_all(&chunk)?;
    }
    Ok(())
}

fn take(mut stream: TcpStream, count: &AtomicU64) -> std::io::Result<()> {
    let mut chunk = vec![0; CHUNK];
    loop {
        match stream.read(&mut chunk)? {
            0 => return Ok(()),
            octets => count.fetch_add(octets as u64, Ordering::Relaxed),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_s_address_is_found_in_the_log() {
        let log = "x client addresses=None\ny client addresses=Some((10.0.0.7, 10.255.255.254))\n";
        assert_eq!(address_in(log), Some(Ipv4Addr::new(10, 0, 0, 7)));
        assert_eq!(address_in("addresses=None"), None);
    }
}
