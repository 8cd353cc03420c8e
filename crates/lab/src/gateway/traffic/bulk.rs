//! A TCP connection that sends as fast as possible, as `scp` of a large file does.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::{LOOK_EVERY, Span};
use crate::gateway::stop::Stop;

/// Longest wait for a connection to open through a full link.
const CONNECT_MAX: Duration = Duration::from_secs(30);

/// Longest time before the end at which the other end may close first.
const CLOSING: Duration = Duration::from_millis(500);

/// Sends until the span ends or `over` is set. Returns the bytes that the kernel took, or zero if no connection was
/// established in time.
///
/// # Errors
/// The connection is refused or breaks.
pub fn send(span: Span, over: &Stop) -> std::io::Result<u64> {
    span.wait();
    let left = span.end.saturating_duration_since(Instant::now());
    let limit = left.clamp(Duration::from_millis(1), CONNECT_MAX);
    let mut stream = match TcpStream::connect_timeout(&span.to, limit) {
        Ok(stream) => stream,
        Err(error) if is_patience(&error) => return Ok(0),
        Err(error) => return Err(error),
    };
    stream.set_write_timeout(Some(LOOK_EVERY))?;
    let block = [0; 1 << 14];
    let mut sent = 0;
    while Instant::now() < span.end && !over.is_set() {
        match stream.write(&block) {
            Ok(0) => break,
            Ok(octets) => sent += octets as u64,
            Err(error) if is_patience(&error) => {}
            Err(_) if Instant::now() + CLOSING > span.end => break,
            Err(error) => return Err(error),
        }
    }
    Ok(sent)
}

/// Accepts one connection and adds received bytes to `octets`, until `end`, until `over` is set, or
/// until the sender closes.
///
/// # Errors
/// No connection can be accepted.
pub fn receive(
    listener: &TcpListener,
    octets: &AtomicU64,
    end: Instant,
    over: &Stop,
) -> std::io::Result<()> {
    listener.set_nonblocking(true)?;
    let stream = loop {
        match listener.accept() {
            Ok((stream, _)) => break stream,
            Err(error) if is_patience(&error) => {
                if Instant::now() >= end || over.is_set() {
                    return Ok(());
                }
                std::thread::sleep(Duration::from_millis(2));
            }
            Err(error) => return Err(error),
        }
    };
    stream.set_nonblocking(false)?;
    count(stream, octets, end, over)
}

fn count(
    mut stream: TcpStream,
    octets: &AtomicU64,
    end: Instant,
    over: &Stop,
) -> std::io::Result<()> {
    stream.set_read_timeout(Some(LOOK_EVERY))?;
    let mut buffer = vec![0; 1 << 16];
    while Instant::now() < end && !over.is_set() {
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => {
                octets.fetch_add(read as u64, Ordering::Relaxed);
            }
            Err(error) if is_patience(&error) => {}
            // The experiment cuts senders off, so an error here is expected.
            Err(_) => break,
        }
    }
    Ok(())
}

/// Whether an error only means that no data arrived in time.
fn is_patience(error: &std::io::Error) -> bool {
    matches!(
        error.kind(),
        std::io::ErrorKind::WouldBlock
            | std::io::ErrorKind::TimedOut
            | std::io::ErrorKind::Interrupted
    )
}
