//! The floor: loops over TCP connections that know no BGP. They run as a process of their own, `headend bench
//! bgp-bare`, so that they are booked as a daemon is.

use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::process::ExitCode;

use anyhow::Result;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::net::sockopt;

/// Octets read at a time.
const BUFFER: usize = 1 << 16;

/// Connections that wait to be accepted.
const BACKLOG: i32 = 4096;

/// The places of what is no connection.
const STDIN: u64 = u64::MAX;
const LISTENER: u64 = u64::MAX - 1;

/// Run a bare loop over TCP until standard input ends.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    kind: Kind,
    listen: SocketAddr,
}

/// What the loop does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Kind {
    /// Sends back what comes: a KEEPALIVE for each KEEPALIVE
    Echo,
    /// Passes on what comes over the first two connections from each to the other
    Relay,
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Echo => "echo",
            Kind::Relay => "relay",
        }
    }
}

/// Runs a bare loop in this process.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let listener = TcpListener::bind(args.listen)?;
    // Listening again sets the number of those who may wait.
    rustix::net::listen(&listener, BACKLOG)?;
    match args.kind {
        Kind::Echo => echo(&listener)?,
        Kind::Relay => relay(&listener)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn watch(epoll: impl AsFd, fd: impl AsFd, place: u64) -> Result<()> {
    let data = EventData::new_u64(place);
    Ok(epoll::add(epoll, fd, data, EventFlags::IN)?)
}

/// Answers every connection with its own octets, until standard input ends.
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

/// Passes octets between the first two connections, until standard input ends.
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
            // They block: whoever reads slowly holds the other up, as a relay must.
            let (mut from, mut to) = (from, to);
            match from.read(&mut buffer) {
                Ok(0) | Err(_) => return Ok(()),
                Ok(count) => to.write_all(&buffer[..count])?,
            }
        }
    }
}
