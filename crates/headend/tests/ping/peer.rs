//! A test responder over UDP that uses the documented format and injects faults.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// When a reply is sent.
#[derive(Clone, Copy)]
pub(crate) enum When {
    /// At once.
    Now,
    /// After a delay.
    After(Duration),
    /// After this many further packets have arrived, behind their replies.
    Behind(u64),
}

/// The replies to a packet, by its number.
pub(crate) type Fate = fn(u64) -> Vec<When>;

/// A responder on a loopback port, which runs until it is dropped.
pub(crate) struct Peer {
    address: SocketAddr,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<Vec<usize>>>,
}

impl Peer {
    /// Starts a responder that sends each reply at the time that `fate` gives.
    pub(crate) fn new(fate: Fate) -> Peer {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        socket
            .set_read_timeout(Some(Duration::from_micros(500)))
            .unwrap();
        let over = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&over);
        let thread = std::thread::spawn(move || answer(&socket, fate, &ended));
        Peer {
            address,
            over,
            thread: Some(thread),
        }
    }

    pub(crate) fn port(&self) -> String {
        self.address.port().to_string()
    }

    /// Stops the responder; returns the lengths of the requests received.
    pub(crate) fn end(mut self) -> Vec<usize> {
        self.over.store(true, Ordering::Release);
        self.thread.take().unwrap().join().unwrap()
    }
}

fn answer(socket: &UdpSocket, fate: Fate, over: &AtomicBool) -> Vec<usize> {
    let mut waiting: Vec<(Instant, Vec<u8>, SocketAddr)> = Vec::new();
    let mut behind: Vec<(u64, Vec<u8>, SocketAddr)> = Vec::new();
    let mut lengths = Vec::new();
    let mut buffer = [0; 2_048];
    while !over.load(Ordering::Acquire) {
        if let Ok((length, from)) = socket.recv_from(&mut buffer) {
            let request = &buffer[..length];
            assert_eq!(request[..6], *b"hPng\x01\x01");
            let number = u64::from_be_bytes(request[16..24].try_into().unwrap());
            lengths.push(length);
            let mut reply = request.to_vec();
            reply[5] = 2;
            reply[40..44].copy_from_slice(&(lengths.len() as u32).to_be_bytes());
            for when in fate(number) {
                match when {
                    When::Now => drop(socket.send_to(&reply, from).unwrap()),
                    When::After(delay) => {
                        waiting.push((Instant::now() + delay, reply.clone(), from));
                    }
                    When::Behind(count) => behind.push((count + 1, reply.clone(), from)),
                }
            }
            behind.retain_mut(|(left, reply, to)| {
                *left -= 1;
                if *left == 0 {
                    socket.send_to(reply, *to).unwrap();
                }
                *left > 0
            });
        }
        let now = Instant::now();
        waiting.sort_by_key(|reply| reply.0);
        let due = waiting.partition_point(|reply| reply.0 <= now);
        for (_, reply, to) in waiting.drain(..due) {
            socket.send_to(&reply, to).unwrap();
        }
    }
    lengths
}
