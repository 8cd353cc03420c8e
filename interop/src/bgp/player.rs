//! A peer played by hand: it sends the contents of a file in a chosen manner, and prints what it receives.

use crate::net::LNS;
use crate::process::Process;
use crate::runner::Bench;
use anyhow::{Context, Result, bail, ensure};
use rustix::net::{AddressFamily, SocketType, sockopt};
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddrV4, TcpStream};
use std::time::Duration;
use wire::bgp::{Capability, FamilyId, KEEPALIVE, Kind, MESSAGE_MAX, Open, PORT, frame};

/// The interval of its KEEPALIVEs.
const INTERVAL: Duration = Duration::from_secs(1);

/// Bytes that it reads at a time.
const BLOCK: usize = 65_536;

/// How the player behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// It sends the file once, and keeps the session.
    Once,
    /// It sends the file repeatedly, as fast as the peer reads.
    Again,
    /// It sends the file once, and then stops reading.
    Deaf,
    /// For each octet of an OPEN and the file, it connects, sends everything before that octet and closes; then
    /// it continues as `Once`.
    Cut,
}

const MANNERS: [(Manner, &str); 4] = [
    (Manner::Once, "once"),
    (Manner::Again, "again"),
    (Manner::Deaf, "deaf"),
    (Manner::Cut, "cut"),
];

/// A running player.
pub(crate) struct Player {
    /// Its log has a line with type and octets for each received message except KEEPALIVEs.
    pub(crate) process: Process,
}

impl Player {
    /// Starts a player in the bench's LAC namespace, which connects from `address`.
    ///
    /// # Errors
    /// It cannot be started.
    pub(crate) fn start(
        bench: &Bench<'_>,
        manner: Manner,
        address: &str,
        asn: u32,
        octets: &[u8],
    ) -> Result<Player> {
        let name = format!("player-{address}");
        let file = bench.directory.join(format!("{name}.octets"));
        std::fs::write(&file, octets)?;
        let word = MANNERS.iter().find(|(one, _)| *one == manner);
        let (_, word) = word.context("a manner")?;
        let mut command = bench
            .wire
            .lac
            .command(std::env::current_exe().context("our own path")?);
        command
            .args(["play", word, address, &asn.to_string()])
            .arg(file);
        let process = Process::start(command, &name, &bench.directory)?;
        Ok(Player { process })
    }

    /// Waits until its session is established.
    ///
    /// # Errors
    /// The session is not established.
    pub(crate) fn established(&mut self, limit: Duration) -> Result<()> {
        self.process.wait_for("established", limit).map(drop)
    }
}

/// Plays the peer until the session ends.
///
/// # Errors
/// No session.
pub(crate) fn play(manner: &str, address: &str, asn: &str, file: &str) -> Result<()> {
    let manner = MANNERS.iter().find(|(_, word)| *word == manner);
    let (manner, _) = *manner.context("a manner")?;
    let (address, asn) = (address.parse::<Ipv4Addr>()?, asn.parse::<u32>()?);
    let octets = std::fs::read(file).with_context(|| file.to_owned())?;
    let opening = opening(address, asn)?;
    if manner == Manner::Cut {
        let all = [&opening[..], &octets[..]].concat();
        for length in 0..all.len() {
            cut(address, &all[..length], length % 2 == 1)
                .with_context(|| format!("cut at {length}"))?;
        }
        println!("cut at each of {} octets", all.len());
    }
    let mut stream = connect(address)?;
    stream.write_all(&opening)?;
    let mut input = Input::default();
    while !input.take(&mut stream)?.contains(&Kind::Keepalive) {}
    println!("established");
    let mut out = stream.try_clone()?;
    let writer = std::thread::spawn(move || -> Result<()> {
        let times = if manner == Manner::Again {
            usize::MAX
        } else {
            1
        };
        for _ in 0..times {
            out.write_all(&octets)?;
        }
        loop {
            std::thread::sleep(INTERVAL);
            out.write_all(&KEEPALIVE)?;
        }
    });
    if manner != Manner::Deaf {
        while input.take(&mut stream).is_ok() {}
        println!("closed");
    }
    // When the session has ended, the writer ends too.
    let _ = writer.join();
    Ok(())
}

/// An OPEN with both families, and the KEEPALIVE that answers the other side's OPEN.
fn opening(address: Ipv4Addr, asn: u32) -> Result<Vec<u8>> {
    let mut open = Open::new(asn, 3, address.to_bits());
    open.capabilities.extend([
        Capability::Multiprotocol(FamilyId::Ipv4Unicast.into()),
        Capability::Multiprotocol(FamilyId::Ipv6Unicast.into()),
        Capability::RouteRefresh,
    ]);
    let mut octets = Vec::new();
    open.emit(&mut octets)
        .ok()
        .context("an OPEN that is too long")?;
    octets.extend_from_slice(&KEEPALIVE);
    Ok(octets)
}

fn connect(from: Ipv4Addr) -> Result<TcpStream> {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    rustix::net::bind(&socket, &SocketAddrV4::new(from, 0))?;
    rustix::net::connect(&socket, &SocketAddrV4::new(LNS.parse()?, PORT))?;
    Ok(TcpStream::from(socket))
}

/// One connection that is closed early, with a FIN or with a RST.
fn cut(from: Ipv4Addr, octets: &[u8], resets: bool) -> Result<()> {
    let mut stream = connect(from)?;
    // Writing fails if the other side has closed.
    let _ = stream.write_all(octets);
    if resets {
        sockopt::set_socket_linger(&stream, Some(Duration::ZERO))?;
    } else {
        let _ = stream.shutdown(Shutdown::Write);
        stream.set_read_timeout(Some(INTERVAL))?;
        // Read its answer, so that closing this end sends no RST.
        let mut block = [0; 4096];
        while stream.read(&mut block).is_ok_and(|length| length > 0) {}
    }
    Ok(())
}

/// Received bytes that do not form a complete message yet.
#[derive(Default)]
struct Input(Vec<u8>);

impl Input {
    /// Reads some bytes, prints the messages except KEEPALIVEs, and returns their types.
    fn take(&mut self, stream: &mut TcpStream) -> Result<Vec<Kind>> {
        let mut block = vec![0; BLOCK];
        let length = stream.read(&mut block)?;
        ensure!(length > 0, "closed");
        self.0.extend_from_slice(&block[..length]);
        let (mut kinds, mut done, mut lines) = (Vec::new(), 0, String::new());
        loop {
            match frame(&self.0[done..], MESSAGE_MAX) {
                Ok(Some((kind, body, length))) => {
                    if kind != Kind::Keepalive {
                        write!(lines, "{kind:?} ")?;
                        body.iter()
                            .try_for_each(|octet| write!(lines, "{octet:02x}"))?;
                        lines.push('\n');
                    }
                    kinds.push(kind);
                    done += length;
                }
                Ok(None) => break,
                Err(fault) => bail!("no message of BGP: {fault}"),
            }
        }
        print!("{lines}");
        self.0.drain(..done);
        Ok(kinds)
    }
}
