//! The crate `nat`, with its defaults.

use super::{EXTERNAL, INSIDE_HOSTS, Line, Schedule, Side, Translator, inside, run};
use anyhow::{Context, Result, ensure};
use base::Instant;
use nat::{Config, Direction, Nat, Range, SubscriberId, Sum, Verdict};
use std::net::Ipv4Addr;
use wire::ip::Header;

struct Ours {
    nat: Nat,
    hosts: Vec<(Ipv4Addr, SubscriberId)>,
    /// The clock at the schedule's start.
    start: Instant,
}

/// Runs a schedule through the crate `nat`.
///
/// # Errors
/// See [`run::run`].
pub(crate) fn play(schedule: Schedule) -> Result<Vec<Line>> {
    let external: Range = Ipv4Addr::from(EXTERNAL).to_string().parse()?;
    let mut nat = Nat::new(Config::new(vec![external], [3, 5, 7]))?;
    let hosts = (1..=INSIDE_HOSTS).map(|host| {
        let address = Ipv4Addr::from(inside(host, 0).address);
        let id = nat.join(host.into(), address).context("a subscriber")?;
        Ok((address, id))
    });
    let hosts = hosts.collect::<Result<_>>()?;
    let start = Instant::from_nanos(1 << 40);
    let mut ours = Ours { nat, hosts, start };
    run::run(schedule, &mut ours)
}

impl Translator for Ours {
    fn pass(&mut self, at_us: u64, from: Side, packet: &[u8]) -> Result<Vec<(Side, Vec<u8>)>> {
        let now = Instant::from_nanos(self.start.as_nanos() + at_us * 1_000);
        while self.nat.poll_timeout().is_some_and(|(due, _)| due <= now) {
            self.nat.handle_timeout(now);
        }
        while self.nat.poll_event().is_some() {}
        let mut packet = packet.to_vec();
        let header = Header::read(&packet).ok().context("an IP header")?;
        let verdict = match from {
            Side::Inside => {
                let source = Ipv4Addr::from(header.source as u32);
                let host = self.hosts.iter().find(|(address, _)| *address == source);
                let (_, id) = host.context("a subscriber")?;
                self.nat
                    .outbound(*id, &header, &mut packet, Sum::Complete, now)
            }
            Side::Outside => self.nat.inbound(&header, &mut packet, Sum::Complete, now),
        };
        let direction = match from {
            Side::Inside => Direction::Out,
            Side::Outside => Direction::In,
        };
        let mut out = Vec::new();
        match verdict {
            Ok(Verdict::Held) | Err(_) => {}
            Ok(verdict) => out.push((leaves(direction, verdict), packet)),
        }
        let mut released = Vec::new();
        while let Some((direction, verdict)) = self.nat.poll_released(&mut released) {
            out.push((leaves(direction, verdict), core::mem::take(&mut released)));
        }
        let external = u32::from_be_bytes(EXTERNAL);
        for (side, packet) in &out {
            let to = packet[16..20] == external.to_be_bytes();
            ensure!(*side == Side::Outside || !to, "a packet to us goes inside");
        }
        Ok(out)
    }
}

const fn leaves(direction: Direction, verdict: Verdict) -> Side {
    match (direction, verdict) {
        (Direction::Out, Verdict::Translated | Verdict::Untouched) => Side::Outside,
        _ => Side::Inside,
    }
}
