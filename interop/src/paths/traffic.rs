//! Both ends of a transfer in a guest. The receiver opens the connection.

use anyhow::{Context, Result, bail, ensure};
use rustix::net::{AddressFamily, SocketType, sockopt};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::time::Duration;

/// The sender's port.
pub(crate) const PORT: u16 = 5001;

/// Attempts to connect, 10 ms apart: the sender may not listen yet.
const ATTEMPTS: u32 = 100;

/// What the application of the sender does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sends {
    /// All at once.
    Bulk { bytes: u64 },
    /// `count` writes of `bytes` every `every_ms`.
    Writes {
        bytes: u64,
        every_ms: u64,
        count: u64,
    },
    /// Answers of `bytes` to each request, `think_ms` after it.
    Answers { bytes: u64, think_ms: u64 },
}

/// What the application of the receiver does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Takes {
    /// Reads everything.
    All,
    /// Reads `bytes` every `every_ms`.
    Slowly { bytes: u64, every_ms: u64 },
    /// Sends `count` requests, `pause_ms` after the whole answer of `bytes`.
    Asks {
        count: u64,
        pause_ms: u64,
        bytes: u64,
    },
}

impl Sends {
    pub(crate) fn words(self) -> String {
        match self {
            Self::Bulk { bytes } => format!("bulk,{bytes}"),
            Self::Writes {
                bytes,
                every_ms,
                count,
            } => format!("writes,{bytes},{every_ms},{count}"),
            Self::Answers { bytes, think_ms } => format!("answers,{bytes},{think_ms}"),
        }
    }

    fn read(words: &str) -> Result<Sends> {
        let (kind, numbers) = parse(words)?;
        Ok(match (kind, numbers.as_slice()) {
            ("bulk", &[bytes]) => Self::Bulk { bytes },
            ("writes", &[bytes, every_ms, count]) => Self::Writes {
                bytes,
                every_ms,
                count,
            },
            ("answers", &[bytes, think_ms]) => Self::Answers { bytes, think_ms },
            _ => bail!("'{words}' is no work of a sender"),
        })
    }
}

impl Takes {
    pub(crate) fn words(self) -> String {
        match self {
            Self::All => "all".to_owned(),
            Self::Slowly { bytes, every_ms } => format!("slowly,{bytes},{every_ms}"),
            Self::Asks {
                count,
                pause_ms,
                bytes,
            } => format!("asks,{count},{pause_ms},{bytes}"),
        }
    }

    fn read(words: &str) -> Result<Takes> {
        let (kind, numbers) = parse(words)?;
        Ok(match (kind, numbers.as_slice()) {
            ("all", &[]) => Self::All,
            ("slowly", &[bytes, every_ms]) => Self::Slowly { bytes, every_ms },
            ("asks", &[count, pause_ms, bytes]) => Self::Asks {
                count,
                pause_ms,
                bytes,
            },
            _ => bail!("'{words}' is no work of a receiver"),
        })
    }
}

fn parse(words: &str) -> Result<(&str, Vec<u64>)> {
    let mut parts = words.split(',');
    let kind = parts.next().unwrap_or_default();
    let numbers = parts.map(|number| number.parse().context("a number"));
    Ok((kind, numbers.collect::<Result<_>>()?))
}

fn sleep(ms: u64) {
    std::thread::sleep(Duration::from_millis(ms));
}

/// Accepts a connection and sends what `words` say, by the congestion control `congestion`.
///
/// # Errors
/// A socket is refused, or the connection breaks.
pub(crate) fn send(congestion: &str, words: &str) -> Result<()> {
    let work = Sends::read(words)?;
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, PORT)).context("the sender's port")?;
    sockopt::set_tcp_congestion(&listener, congestion)
        .with_context(|| format!("the congestion control {congestion}"))?;
    let (mut stream, _) = listener.accept()?;
    stream.set_nodelay(true)?;
    let block = vec![0x41; 1 << 16];
    match work {
        Sends::Bulk { bytes } => put(&mut stream, &block, bytes)?,
        Sends::Writes {
            bytes,
            every_ms,
            count,
        } => {
            for _ in 0..count {
                put(&mut stream, &block, bytes)?;
                sleep(every_ms);
            }
        }
        Sends::Answers { bytes, think_ms } => {
            let mut request = [0; REQUEST];
            while stream.read_exact(&mut request).is_ok() {
                sleep(think_ms);
                put(&mut stream, &block, bytes)?;
            }
        }
    }
    stream.shutdown(std::net::Shutdown::Write)?;
    // The receiver closes once it has everything.
    let _ = stream.read(&mut [0; 16]);
    Ok(())
}

/// Bytes of a request.
const REQUEST: usize = 120;

fn put(stream: &mut TcpStream, block: &[u8], bytes: u64) -> Result<()> {
    let mut left = bytes;
    while left > 0 {
        let part = usize::try_from(left)?.min(block.len());
        stream.write_all(&block[..part])?;
        left -= part as u64;
    }
    Ok(())
}

/// Connects to the sender, with a receive buffer of `buffer` bytes if that is not 0, and does what `words` say.
///
/// # Errors
/// A socket is refused, or the connection breaks.
pub(crate) fn receive(address: &str, buffer: &str, words: &str) -> Result<()> {
    let work = Takes::read(words)?;
    let mut stream = connect(address.parse()?, buffer.parse()?)?;
    let mut block = vec![0; 1 << 18];
    match work {
        Takes::All => while stream.read(&mut block)? > 0 {},
        Takes::Slowly { bytes, every_ms } => {
            let part = usize::try_from(bytes)?.min(block.len());
            while take(&mut stream, &mut block[..part])? == part {
                sleep(every_ms);
            }
        }
        Takes::Asks {
            count,
            pause_ms,
            bytes,
        } => {
            for _ in 0..count {
                stream.write_all(&[0x42; REQUEST])?;
                let mut left = usize::try_from(bytes)?;
                while left > 0 {
                    let part = left.min(block.len());
                    let taken = take(&mut stream, &mut block[..part])?;
                    ensure!(taken > 0, "the sender closed within an answer");
                    left -= taken;
                }
                sleep(pause_ms);
            }
        }
    }
    Ok(())
}

/// Fills `block`, unless the sender closes first. Returns the number of bytes.
fn take(stream: &mut TcpStream, block: &mut [u8]) -> Result<usize> {
    let mut filled = 0;
    while filled < block.len() {
        match stream.read(&mut block[filled..])? {
            0 => break,
            more => filled += more,
        }
    }
    Ok(filled)
}

fn connect(address: Ipv4Addr, buffer: usize) -> Result<TcpStream> {
    for _ in 0..ATTEMPTS {
        let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None)?;
        if buffer > 0 {
            // The kernel doubles what it is given; the window's scale follows from it.
            sockopt::set_socket_recv_buffer_size(&socket, buffer / 2)?;
        }
        if rustix::net::connect(&socket, &SocketAddrV4::new(address, PORT)).is_ok() {
            return Ok(TcpStream::from(socket));
        }
        sleep(10);
    }
    bail!("no sender at {address}")
}
