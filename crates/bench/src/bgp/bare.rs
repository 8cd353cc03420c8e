//! The floor of `headend bench bgp`: loops over TCP connections that implement no BGP. They run as
//! a process of their own, `headend bench bgp-bare`, so that their processor time is measured in
//! the same way as a daemon's.

use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Result;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::net::sockopt;
use rustix::time::Timespec;

use super::octets::KEEPALIVE;

/// Bytes read at a time.
const BUFFER: usize = 1 << 16;

/// Backlog of connections waiting to be accepted.
const BACKLOG: i32 = 4096;

/// Descriptor numbers of the sources that are not connections.
const STDIN: u64 = u64::MAX;
const LISTENER: u64 = u64::MAX - 1;

/// Run a bare loop over TCP until standard input ends.
#[derive(Debug, clap::Args)]
pub(crate) struct BgpBareArgs {
    kind: Kind,
    /// The address to listen on; with --connect, the source address
    address: SocketAddr,
    /// Open N connections to ADDRESS
    #[arg(long, num_args = 2, value_names = ["N", "ADDRESS"])]
    connect: Vec<String>,
}

/// What the loop does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Kind {
    /// Returns every message to its sender: a KEEPALIVE for each KEEPALIVE
    Echo,
    /// Forwards bytes between the first two connections, in both directions
    Relay,
    /// Sends a KEEPALIVE over each connection every second, and discards the received ones
    Beat,
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Echo => "echo",
            Kind::Relay => "relay",
            Kind::Beat => "beat",
        }
    }
}

/// Runs a bare loop in this process.
pub(crate) fn run(args: &BgpBareArgs) -> Result<ExitCode> {
    if let [count, remote] = args.connect.as_slice() {
        Beat::dial(args.address, remote.parse()?, count.parse()?)?.run(None)?;
        return Ok(ExitCode::SUCCESS);
    }
    let listener = TcpListener::bind(args.address)?;
    // A second listen call raises the backlog.
    rustix::net::listen(&listener, BACKLOG)?;
    match args.kind {
        Kind::Echo => echo(&listener)?,
        Kind::Relay => relay(&listener)?,
        Kind::Beat => Beat::new()?.run(Some(&listener))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn watch(epoll: impl AsFd, fd: impl AsFd, place: u64) -> Result<()> {
    let data = EventData::new_u64(place);
    Ok(epoll::add(epoll, fd, data, EventFlags::IN)?)
}

/// Returns every connection's own bytes, until standard input ends.
fn echo(listener: &TcpListener) -> Result<()> {
    listener.set_nonblocking(true)?;
    let epoll = epoll::create(CreateFlags::CLOEXEC)?;
    watch(&epoll, listener, LISTENER)?;
    watch(&epoll, std::io::stdin(), STDIN)?;
    let mut streams: HashMap<u64, TcpStream> = HashMap::new();
    let mut next = 0;
    let mut events = [Event {
        flags: EventFlags::empty(),
        data: EventData::new_u64(0),
    }; 256];
    let mut buffer = vec![0; BUFFER];
    loop {
        let count = match epoll::wait(&epoll, &mut events, None) {
            Ok(count) => count,
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        };
        for event in &events[..count] {
            let place = event.data.u64();
            match place {
                STDIN => return Ok(()),
                LISTENER => {
                    while let Ok((stream, _)) = listener.accept() {
                        stream.set_nonblocking(true)?;
                        sockopt::set_tcp_nodelay(&stream, true)?;
                        watch(&epoll, &stream, next)?;
                        streams.insert(next, stream);
                        next += 1;
                    }
                }
                _ => {
                    let Some(stream) = streams.get_mut(&place) else {
                        continue;
                    };
                    let is_open = match stream.read(&mut buffer) {
                        Ok(0) => false,
                        Ok(count) => stream.write_all(&buffer[..count]).is_ok(),
                        Err(error) => error.kind() == ErrorKind::WouldBlock,
                    };
                    if !is_open {
                        streams.remove(&place);
                    }
                }
            }
        }
    }
}

/// Passes bytes between the first two connections, until standard input ends.
fn relay(listener: &TcpListener) -> Result<()> {
    let (first, _) = listener.accept()?;
    let (second, _) = listener.accept()?;
    let ends = [first, second];
    for end in &ends {
        sockopt::set_tcp_nodelay(end, true)?;
    }
    let epoll = epoll::create(CreateFlags::CLOEXEC)?;
    watch(&epoll, std::io::stdin(), STDIN)?;
    watch(&epoll, &ends[0], 0)?;
    watch(&epoll, &ends[1], 1)?;
    let mut events = [Event {
        flags: EventFlags::empty(),
        data: EventData::new_u64(0),
    }; 4];
    let mut buffer = vec![0; BUFFER];
    loop {
        let count = match epoll::wait(&epoll, &mut events, None) {
            Ok(count) => count,
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        };
        for event in &events[..count] {
            let place = event.data.u64() as usize;
            let (Some(from), Some(to)) = (ends.get(place), ends.get(1 - place.min(1))) else {
                return Ok(());
            };
            // Both sockets block: a slow reader holds the sender up, as in a BGP daemon that
            // relays.
            let (mut from, mut to) = (from, to);
            match from.read(&mut buffer) {
                Ok(0) | Err(_) => return Ok(()),
                Ok(count) => to.write_all(&buffer[..count])?,
            }
        }
    }
}

/// Connections that each carry a KEEPALIVE per second, at evenly spread times.
struct Beat {
    epoll: OwnedFd,
    streams: Vec<TcpStream>,
    /// The time of the first KEEPALIVE, and the number sent since.
    start: Instant,
    turn: u64,
}

impl Beat {
    fn new() -> Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        watch(&epoll, std::io::stdin(), STDIN)?;
        Ok(Self {
            epoll,
            streams: Vec::new(),
            start: Instant::now(),
            turn: 0,
        })
    }

    /// Opens `count` connections from the address of `local` to `remote`.
    fn dial(local: SocketAddr, remote: SocketAddr, count: usize) -> Result<Self> {
        let mut beat = Self::new()?;
        for _ in 0..count {
            let socket = rustix::net::socket(
                rustix::net::AddressFamily::INET,
                rustix::net::SocketType::STREAM,
                None,
            )?;
            rustix::net::bind(&socket, &local)?;
            rustix::net::connect(&socket, &remote)?;
            beat.add(socket.into())?;
        }
        Ok(beat)
    }

    fn add(&mut self, stream: TcpStream) -> Result<()> {
        stream.set_nonblocking(true)?;
        sockopt::set_tcp_nodelay(&stream, true)?;
        watch(&self.epoll, &stream, self.streams.len() as u64)?;
        self.streams.push(stream);
        // The KEEPALIVEs are spread again over the present connections.
        (self.start, self.turn) = (Instant::now(), 0);
        Ok(())
    }

    /// When KEEPALIVE number `turn` is due.
    fn due(&self, turn: u64) -> Instant {
        let count = self.streams.len().max(1) as u64;
        self.start + Duration::from_nanos(turn.saturating_mul(1_000_000_000) / count)
    }

    fn run(&mut self, listener: Option<&TcpListener>) -> Result<()> {
        if let Some(listener) = listener {
            listener.set_nonblocking(true)?;
            watch(&self.epoll, listener, LISTENER)?;
        }
        let mut events = [Event {
            flags: EventFlags::empty(),
            data: EventData::new_u64(0),
        }; 256];
        let mut buffer = vec![0; BUFFER];
        loop {
            let mut now = Instant::now();
            while !self.streams.is_empty() && self.due(self.turn) <= now {
                let place = (self.turn % self.streams.len() as u64) as usize;
                // A peer that is gone or whose buffer is full misses its KEEPALIVE; this loop
                // counts nothing.
                let _ = (&self.streams[place]).write(&KEEPALIVE);
                self.turn += 1;
                now = Instant::now();
            }
            let rest = self.due(self.turn).saturating_duration_since(now);
            let rest = Timespec::try_from(rest)?;
            let timeout = (!self.streams.is_empty()).then_some(&rest);
            let count = match epoll::wait(&self.epoll, &mut events, timeout) {
                Ok(count) => count,
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            };
            for event in &events[..count] {
                match event.data.u64() {
                    STDIN => return Ok(()),
                    LISTENER => {
                        while let Some(Ok((stream, _))) = listener.map(TcpListener::accept) {
                            self.add(stream)?;
                        }
                    }
                    place => {
                        let read = (&self.streams[place as usize]).read(&mut buffer);
                        if matches!(read, Ok(0)) {
                            return Ok(());
                        }
                    }
                }
            }
        }
    }
}
