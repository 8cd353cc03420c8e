//! Sends packets, and reads their time stamps.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;

use crate::clock::now;
use crate::datagram::is_about_an_earlier_datagram;
use crate::sys::timed::{Envelope, Message, QueuedError};
use crate::timed::receive::{ErrorSource, NetworkError};
use crate::timed::{
    ERRORS_MAX, FLAGS, QUOTE_BYTES, SocketKind, Stamp, TimedSocket, ask_for_stamps,
};

/// How often to retry a send after an error that an earlier packet caused.
const RETRIES: usize = 4;

/// A packet to send.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing<'a> {
    /// An ICMP message or UDP payload.
    pub bytes: &'a [u8],
    /// The destination.
    pub to: SocketAddr,
    /// The source address; `None` lets the kernel choose.
    pub from: Option<IpAddr>,
    /// TOS octet or traffic class: DSCP in the upper six bits, ECN in the lower two.
    pub traffic_class: u8,
}

/// A packet that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// The number that its time stamp from [`TimedSocket::send_times`] will carry; numbers wrap.
    pub id: u32,
    /// The time right before the system call, used if the kernel's time stamp never arrives.
    pub called: Stamp,
}

impl TimedSocket {
    /// Sends one packet.
    ///
    /// # Errors
    /// The kernel's error for this packet; [`io::ErrorKind::WouldBlock`] if the send buffer is full.
    pub fn send(&mut self, bytes: &[u8], to: SocketAddr, traffic_class: u8) -> io::Result<Sent> {
        let mut results = Vec::with_capacity(1);
        let packet = Outgoing {
            bytes,
            to,
            from: None,
            traffic_class,
        };
        self.send_many(&[packet], &mut results);
        results
            .pop()
            .unwrap_or_else(|| Err(io::ErrorKind::WouldBlock.into()))
    }

    /// Sends many packets with few calls. Appends a result for each to `results`, in order. If there are fewer
    /// results than packets, the send buffer is full: the rest was not sent.
    pub fn send_many(&mut self, packets: &[Outgoing<'_>], results: &mut Vec<io::Result<Sent>>) {
        let mut rest = packets;
        let mut tries = 0;
        while !rest.is_empty() {
            let called = self.clock.own(now());
            match self.send_some(rest) {
                Ok(count) => {
                    let first = self.next;
                    results.extend((0..count as u32).map(|n| {
                        let id = first.wrapping_add(n);
                        Ok(Sent { id, called })
                    }));
                    self.next = first.wrapping_add(count as u32);
                    self.stats.sent += count as u64;
                    rest = &rest[count..];
                    tries = 0;
                }
                Err(error) => match error.raw_os_error() {
                    Some(libc::EAGAIN) => return,
                    Some(libc::EINTR) => {}
                    // Perhaps the kernel does not take numbers (Linux before 6.13).
                    Some(libc::EINVAL) if self.numbers && self.stats.sent == 0 => {
                        self.numbers = false;
                    }
                    // An error of an earlier packet is reported once instead of sending.
                    Some(code) if tries < RETRIES && is_about_an_earlier_datagram(code) => {
                        tries += 1;
                    }
                    _ => {
                        results.push(Err(error));
                        self.recount();
                        rest = &rest[1..];
                        tries = 0;
                    }
                },
            }
        }
    }

    fn send_some(&mut self, packets: &[Outgoing<'_>]) -> io::Result<usize> {
        let (numbers, first) = (self.numbers, self.next);
        // A raw socket would take a port for a protocol number.
        let ports = self.kind == SocketKind::Udp;
        let messages = packets.iter().enumerate().map(|(n, packet)| {
            let mut to = packet.to;
            if !ports {
                to.set_port(0);
            }
            Message {
                bytes: packet.bytes,
                to,
                from: packet.from,
                traffic_class: packet.traffic_class,
                number: numbers.then_some(first.wrapping_add(n as u32)),
            }
        });
        self.send_slots.send(&self.fd, messages)
    }

    /// Makes the kernel count from 0 again. Whether it counted a packet that it refused depends on the reason.
    fn recount(&mut self) {
        if self.numbers {
            return;
        }
        // Turning the option off and on restarts the count. An error here would have occurred in the set-up too.
        for flags in [
            FLAGS & !libc::SOF_TIMESTAMPING_OPT_ID & !libc::SOF_TIMESTAMPING_OPT_TSONLY,
            FLAGS,
        ] {
            let _ = ask_for_stamps(self.fd.as_fd(), flags);
        }
        self.base = self.next;
    }

    /// Reads the error queue: appends the number and time of each packet that left since the last call, and keeps
    /// errors for [`TimedSocket::errors`]. A packet may have no time stamp (its interface's driver gives none), or
    /// two (it was fragmented).
    ///
    /// # Errors
    /// The kernel's error for the socket itself.
    pub fn send_times(&mut self, times: &mut Vec<(u32, Stamp)>) -> io::Result<()> {
        loop {
            let count = match self.error_slots.receive(&self.fd, true) {
                Ok(count) => count,
                Err(error) => match error.raw_os_error() {
                    Some(libc::EAGAIN) => return Ok(()),
                    Some(libc::EINTR) => continue,
                    Some(code) if is_about_an_earlier_datagram(code) => continue,
                    _ => return Err(error),
                },
            };
            self.clock.refresh();
            for index in 0..count {
                let envelope = self.error_slots.envelope(index);
                match envelope.error {
                    Some(error) if error.origin == libc::SO_EE_ORIGIN_TIMESTAMPING => {
                        if let Some(real_ns) = envelope.stamp {
                            let counted = error.data.wrapping_add(self.base);
                            let id = if self.numbers { error.data } else { counted };
                            times.push((id, self.clock.convert(real_ns)));
                            self.stats.sent_stamped += 1;
                        }
                    }
                    Some(error) => self.keep_error(index, &envelope, &error),
                    None => {}
                }
            }
            if count < self.error_slots.capacity() {
                return Ok(());
            }
        }
    }

    /// The errors that [`TimedSocket::send_times`] found.
    pub fn errors(&mut self) -> impl Iterator<Item = NetworkError> + '_ {
        self.errors.drain(..)
    }

    fn keep_error(&mut self, index: usize, envelope: &Envelope, error: &QueuedError) {
        let source = match error.origin {
            libc::SO_EE_ORIGIN_LOCAL => ErrorSource::Local,
            libc::SO_EE_ORIGIN_ICMP | libc::SO_EE_ORIGIN_ICMP6 => ErrorSource::Icmp {
                kind: error.kind,
                code: error.code,
            },
            _ => return,
        };
        let bytes = self.error_slots.bytes(index);
        // Raw sockets receive ICMP errors about every process's packets.
        let identifier = bytes
            .get(4..6)
            .map(|raw| u16::from_be_bytes([raw[0], raw[1]]));
        let by_icmp = source != ErrorSource::Local;
        if self.kind == SocketKind::Raw && by_icmp && identifier != Some(self.identifier) {
            return;
        }
        if self.errors.len() >= ERRORS_MAX {
            self.stats.errors_lost += 1;
            return;
        }
        let mut quote = [0; QUOTE_BYTES];
        let length = bytes.len().min(QUOTE_BYTES);
        quote[..length].copy_from_slice(&bytes[..length]);
        let at = match envelope.stamp {
            Some(real_ns) => self.clock.convert(real_ns),
            None => self.clock.own(now()),
        };
        self.stats.errors += 1;
        self.errors.push_back(NetworkError {
            at,
            source,
            errno: error.errno.cast_signed(),
            info: error.info,
            to: envelope.peer,
            from: error.offender,
            quote,
            length,
        });
    }
}
