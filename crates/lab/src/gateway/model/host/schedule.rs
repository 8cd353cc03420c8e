//! Scheduled traffic of a host: a flood, a thin stream, pings.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddrV4};

use base::{Duration, Instant};
use sim::Rng;

use super::super::packet;
use super::{FLOOD, STREAM};
use crate::gateway::traffic::{flood, stream};

/// What is sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum What {
    Flood,
    Stream,
    Ping { class: u8 },
}

/// A periodic sender.
#[derive(Debug)]
struct Periodic {
    what: What,
    to: Ipv4Addr,
    /// When the next packet is due without jitter.
    slot: Instant,
    /// When the next packet is sent.
    next: Instant,
    end: Instant,
    interval: Duration,
    sent: u64,
}

/// One echo request and its outcome.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Echo {
    /// Its destination and traffic class.
    pub target: (Ipv4Addr, u8),
    /// When it was sent.
    pub sent: Instant,
    /// Its round-trip time; `None` without a reply.
    pub round_trip: Option<Duration>,
}

/// All periodic traffic of one host.
#[derive(Debug)]
pub(super) struct Schedule {
    address: Ipv4Addr,
    chance: Rng,
    all: Vec<Periodic>,
    pub(super) echoes: Vec<Echo>,
}

impl Schedule {
    pub(super) fn new(address: Ipv4Addr, chance: Rng) -> Self {
        Self {
            address,
            chance,
            all: Vec::new(),
            echoes: Vec::new(),
        }
    }

    /// Sends `what` every `interval` from `now` to `end`, starting at a random time within the
    /// first interval. Senders that started together would otherwise stay in step, and the same one
    /// would always get the last free place in a queue.
    pub(super) fn every(
        &mut self,
        what: What,
        to: Ipv4Addr,
        interval: Duration,
        (now, end): (Instant, Instant),
    ) {
        let first = self.chance.below(interval.as_nanos().max(1));
        let first = now + Duration::from_nanos(first);
        self.all.push(Periodic {
            what,
            to,
            slot: first,
            next: first,
            end,
            interval,
            sent: 0,
        });
    }

    /// Stops sending.
    pub(super) fn end(&mut self, now: Instant) {
        for each in &mut self.all {
            each.end = each.end.min(now);
        }
    }

    /// Number of datagrams of the stream sent.
    pub(super) fn stream_sent(&self) -> u64 {
        let streams = self.all.iter().filter(|each| each.what == What::Stream);
        streams.map(|each| each.sent).sum()
    }

    /// Records the reply to the request with this number.
    pub(super) fn answered(&mut self, number: u64, now: Instant) {
        let echo = usize::try_from(number).ok();
        if let Some(echo) = echo.and_then(|number| self.echoes.get_mut(number)) {
            echo.round_trip = Some(now.since(echo.sent));
        }
    }

    /// When the next packet is due.
    pub(super) fn next(&self) -> Option<Instant> {
        let going_on = self.all.iter().filter(|each| each.next < each.end);
        going_on.map(|each| each.next).min()
    }

    /// Sends what is due.
    pub(super) fn send_due(&mut self, now: Instant, out: &mut VecDeque<Vec<u8>>) {
        for each in &mut self.all {
            while each.next <= now && each.next < each.end {
                out.push_back(each.packet(self.address, &mut self.echoes, now));
                each.sent += 1;
                each.slot += each.interval;
                each.next = each.slot;
                // Jitter, since two senders on exact clocks would stay in step and a full queue
                // would always drop the same one's packets.
                if each.what == What::Flood {
                    each.next += self.chance.up_to(each.interval);
                }
            }
        }
    }
}

impl Periodic {
    fn packet(&self, address: Ipv4Addr, echoes: &mut Vec<Echo>, now: Instant) -> Vec<u8> {
        let from = |port| SocketAddrV4::new(address, port);
        let to = |port| SocketAddrV4::new(self.to, port);
        match self.what {
            What::Flood => packet::udp(from(FLOOD), to(FLOOD), flood::PAYLOAD, &[]),
            What::Stream => {
                let head = [self.sent.to_be_bytes(), now.as_nanos().to_be_bytes()].concat();
                packet::udp(from(STREAM), to(STREAM), stream::PAYLOAD, &head)
            }
            What::Ping { class } => {
                let number = echoes.len() as u64;
                echoes.push(Echo {
                    target: (self.to, class),
                    sent: now,
                    round_trip: None,
                });
                packet::echo(from(0), to(0), class, number)
            }
        }
    }
}
