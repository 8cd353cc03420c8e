//! What a host sends by the clock: a flood, a thin stream, pings.

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

/// Something that sends on a schedule.
#[derive(Debug)]
struct Periodic {
    what: What,
    to: Ipv4Addr,
    /// When the next one would be due if each kept its time.
    slot: Instant,
    /// When the next one is sent.
    next: Instant,
    end: Instant,
    interval: Duration,
    sent: u64,
}

/// One echo request and what became of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Echo {
    /// Who it was sent to, and with which traffic class.
    pub target: (Ipv4Addr, u8),
    /// When it was sent.
    pub sent: Instant,
    /// How long its reply took; `None` for none.
    pub round_trip: Option<Duration>,
}

/// All that one host sends so.
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

    /// Sends `what` every `interval` from `now` to `end`. The first is sent at any time within the first interval: what
    /// begins together would else arrive together for ever, and the same one always find the last free place taken.
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

    /// Nothing is sent from now on.
    pub(super) fn end(&mut self, now: Instant) {
        for each in &mut self.all {
            each.end = each.end.min(now);
        }
    }

    /// Datagrams of the stream that were sent.
    pub(super) fn stream_sent(&self) -> u64 {
        let streams = self.all.iter().filter(|each| each.what == What::Stream);
        streams.map(|each| each.sent).sum()
    }

    /// The reply to the request with this number is there.
    pub(super) fn answered(&mut self, number: u64, now: Instant) {
        let echo = usize::try_from(number).ok();
        if let Some(echo) = echo.and_then(|number| self.echoes.get_mut(number)) {
            echo.round_trip = Some(now.since(echo.sent));
        }
    }

    /// When something is due.
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
                // Two clocks of the same machine would else stay in step, and a full queue hit always the same one.
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
