//! Events as lines of syslog (RFC 5424).

use core::fmt::Write;

use super::{Clock, date};
use crate::event::{Block, Event, Forward};
use crate::pool::Protocol;

/// Facility local0, severity informational.
const INFORMATIONAL: u8 = 16 * 8 + 6;
/// Facility local0, severity warning.
const WARNING: u8 = 16 * 8 + 4;

/// Appends an event as one line without its end, in the form of RFC 5424 section 6: priority, time, host, application and
/// kind of message, then `key=value` pairs.
///
/// `host` is printable ASCII without spaces. `subscriber` is the caller's text for the event's tag, as it is to be logged.
pub fn line(out: &mut String, event: &Event, clock: Clock, host: &str, subscriber: &str) {
    let (priority, at, kind) = match event {
        Event::BlockAllocated(_, at) => (INFORMATIONAL, at, "NATBLK"),
        Event::BlockFreed(_, at) => (INFORMATIONAL, at, "NATBLK"),
        Event::ForwardAdded(_, at) | Event::ForwardRemoved(_, at) => (INFORMATIONAL, at, "NATFWD"),
        Event::PoolUsedUp { at, .. } | Event::SubscriberLimit { at, .. } => {
            (WARNING, at, "NATFULL")
        }
    };
    let millis = clock.millis(*at);
    let (year, month, day) = date(millis / 86_400_000);
    let (seconds, millis) = (millis / 1000 % 86_400, millis % 1000);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let _ = write!(
        out,
        "<{priority}>1 {year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z {host} headend - \
         {kind} - ",
    );
    // Writing to a string cannot fail.
    let _ = match event {
        Event::BlockAllocated(block, _) => write_block(out, "allocated", block),
        Event::BlockFreed(block, _) => write_block(out, "freed", block),
        Event::ForwardAdded(forward, _) => write_forward(out, "forwarded", forward),
        Event::ForwardRemoved(forward, _) => write_forward(out, "unforwarded", forward),
        Event::PoolUsedUp { inside, .. } => write!(out, "pool-used-up inside={inside}"),
        Event::SubscriberLimit { inside, why, .. } => {
            write!(out, "limit inside={inside} why=\"{why}\"")
        }
    };
    let _ = write!(out, " subscriber={subscriber}");
}

fn write_block(out: &mut String, what: &str, block: &Block) -> core::fmt::Result {
    let Block {
        inside,
        external,
        first,
        last,
        ..
    } = block;
    write!(
        out,
        "{what} inside={inside} external={external} ports={first}-{last}"
    )
}

fn write_forward(out: &mut String, what: &str, forward: &Forward) -> core::fmt::Result {
    let protocol = match forward.protocol {
        Protocol::Tcp => "tcp",
        Protocol::Udp => "udp",
        Protocol::Icmp => "icmp",
    };
    write!(
        out,
        "{what} {protocol} inside={}:{} external={}:{}",
        forward.inside, forward.inside_port, forward.external, forward.external_port
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{Duration, Instant};
    use std::net::Ipv4Addr;

    #[test]
    fn rfc_5424_section_6_a_block_is_one_line() {
        let block = Block {
            tag: 1,
            inside: Ipv4Addr::new(100, 64, 0, 1),
            external: Ipv4Addr::new(192, 0, 2, 1),
            first: 1024,
            last: 1535,
        };
        let clock = Clock {
            origin_ms: 1_709_164_799_000,
        };
        let at = Instant::ZERO + Duration::from_millis(1_007);
        let mut out = String::new();
        let event = Event::BlockAllocated(block, at);
        line(&mut out, &event, clock, "edge1", "ann");
        assert_eq!(
            out,
            "<134>1 2024-02-29T00:00:00.007Z edge1 headend - NATBLK - allocated inside=100.64.0.1 external=192.0.2.1 \
             ports=1024-1535 subscriber=ann"
        );
    }

    #[test]
    fn dates_are_gregorian() {
        assert_eq!(date(0), (1970, 1, 1));
        assert_eq!(date(11_016), (2000, 2, 29));
        assert_eq!(date(11_017), (2000, 3, 1));
        assert_eq!(date(20_780), (2026, 11, 23));
    }
}
