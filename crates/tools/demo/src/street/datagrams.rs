//! A stream of numbered datagrams from the server in the internet to an address of a line's delegated prefix.

use std::io;
use std::net::{Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::place::{Place, SERVER_V6};

/// Payload of a datagram in bytes.
const PAYLOAD: usize = 500;
/// Time between two datagrams.
const INTERVAL: Duration = Duration::from_millis(5);
/// How long the receiver waits for the last datagrams.
const TAIL: Duration = Duration::from_millis(500);

/// What became of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Received {
    pub(super) sent: u64,
    pub(super) received: u64,
    /// Datagrams that arrived after one with a higher number.
    pub(super) reordered: u64,
    /// Datagrams that arrived again.
    pub(super) duplicated: u64,
}

impl Received {
    pub(super) fn lost(&self) -> u64 {
        (self.sent + self.duplicated).saturating_sub(self.received)
    }
}

/// Counts the numbers of arriving datagrams.
#[derive(Debug, Default)]
struct Counter {
    received: Received,
    /// By number: whether it has arrived.
    seen: Vec<bool>,
}

impl Counter {
    fn arrived(&mut self, number: u64) {
        let place = number as usize;
        self.received.received += 1;
        if place < self.seen.len() {
            let counted = match self.seen[place] {
                true => &mut self.received.duplicated,
                false => &mut self.received.reordered,
            };
            *counted += 1;
            self.seen[place] = true;
        } else {
            self.seen.resize(place, false);
            self.seen.push(true);
        }
    }
}

/// A stream that runs.
pub(super) struct Stream {
    stop: Arc<AtomicBool>,
    sender: JoinHandle<io::Result<io::Result<()>>>,
    receiver: JoinHandle<io::Result<Received>>,
}

impl Stream {
    /// Starts a stream to this address of a line.
    ///
    /// # Errors
    /// The kernel's error.
    pub(super) fn start(place: &Place, to: Ipv6Addr) -> Result<Self> {
        let receiving = place.street.run(|| UdpSocket::bind((to, 0)))??;
        let sending = place.internet.run(|| UdpSocket::bind((SERVER_V6, 0)))??;
        let to = receiving.local_addr()?;
        let stop = Arc::new(AtomicBool::new(false));
        let sent = Arc::new(AtomicU64::new(0));
        let sender = {
            let (stop, sent) = (Arc::clone(&stop), Arc::clone(&sent));
            let work = move || send(&sending, to, &stop, &sent);
            place.internet.spawn("datagrams", work)?
        };
        let stopped = Arc::clone(&stop);
        let receiver = std::thread::spawn(move || receive(&receiving, &stopped, &sent));
        Ok(Self {
            stop,
            sender,
            receiver,
        })
    }

    /// Ends the stream.
    ///
    /// # Errors
    /// The kernel's error for one of the sockets.
    pub(super) fn finish(self) -> Result<Received> {
        self.stop.store(true, Ordering::Relaxed);
        let (sender, receiver) = (self.sender.join(), self.receiver.join());
        sender.unwrap_or_else(|panic| std::panic::resume_unwind(panic))??;
        Ok(receiver.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?)
    }
}

fn send(socket: &UdpSocket, to: SocketAddr, stop: &AtomicBool, sent: &AtomicU64) -> io::Result<()> {
    let mut payload = [0x55; PAYLOAD];
    let mut next = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        let number = sent.load(Ordering::Relaxed);
        payload[..8].copy_from_slice(&number.to_be_bytes());
        socket.send_to(&payload, to)?;
        sent.store(number + 1, Ordering::Relaxed);
        next += INTERVAL;
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
    }
    Ok(())
}

fn receive(socket: &UdpSocket, stop: &AtomicBool, sent: &AtomicU64) -> io::Result<Received> {
    socket.set_read_timeout(Some(Duration::from_millis(50)))?;
    let mut counter = Counter::default();
    let mut buffer = [0; 2 * PAYLOAD];
    let mut stopped: Option<Instant> = None;
    loop {
        match socket.recv(&mut buffer) {
            Ok(PAYLOAD) => {
                let (number, _) = buffer.split_first_chunk().unwrap_or((&[0; 8], &[]));
                counter.arrived(u64::from_be_bytes(*number));
            }
            Ok(_) => {}
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock) => {}
            Err(error) => return Err(error),
        }
        if stop.load(Ordering::Relaxed) {
            let since = *stopped.get_or_insert_with(Instant::now);
            let all = sent.load(Ordering::Relaxed);
            let is_complete = counter.received.received >= all + counter.received.duplicated;
            if since.elapsed() > TAIL || is_complete && since.elapsed() > INTERVAL * 4 {
                counter.received.sent = all;
                return Ok(counter.received);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_late_ones_and_copies_are_counted_apart() {
        let mut counter = Counter::default();
        for number in [0, 1, 4, 3, 4, 5] {
            counter.arrived(number);
        }
        let received = Received {
            sent: 7,
            ..counter.received
        };
        assert_eq!((received.received, received.reordered), (6, 1));
        assert_eq!((received.duplicated, received.lost()), (1, 2));
    }
}
