//! Events as IPFIX: the elements and events of RFC 8158.

use std::net::Ipv4Addr;

use wire::ipfix::{Field, Writer};

use super::Clock;
use crate::discard::Discard;
use crate::event::{Event, Forward};
use crate::pool::Protocol;

/// Seconds between two transmissions of the templates over UDP (RFC 7011 section 8.4, 10 minutes).
const TEMPLATES_EVERY: u32 = 600;
/// Records that wait at most; one waits as long as the caller lets it.
const RECORDS_MAX: usize = 100_000;

/// observationTimeMilliseconds, natEvent, sourceIPv4Address, postNATSourceIPv4Address, portRangeStart, portRangeEnd.
const BLOCK: [Field; 6] = [
    Field::new(323, 8),
    Field::new(230, 1),
    Field::new(8, 4),
    Field::new(225, 4),
    Field::new(361, 2),
    Field::new(362, 2),
];
/// observationTimeMilliseconds, natEvent, sourceIPv4Address, postNATSourceIPv4Address, protocolIdentifier,
/// sourceTransportPort, postNAPTSourceTransportPort.
const BINDING: [Field; 7] = [
    Field::new(323, 8),
    Field::new(230, 1),
    Field::new(8, 4),
    Field::new(225, 4),
    Field::new(4, 1),
    Field::new(7, 2),
    Field::new(227, 2),
];
/// observationTimeMilliseconds, natEvent, sourceIPv4Address, natQuotaExceededEvent.
const SHORTAGE: [Field; 4] = [
    Field::new(323, 8),
    Field::new(230, 1),
    Field::new(8, 4),
    Field::new(466, 4),
];

/// The templates: port blocks, port forwardings, shortages.
pub const TEMPLATES: [(u16, &[Field]); 3] = [(256, &BLOCK), (257, &BINDING), (258, &SHORTAGE)];

/// Values of natEvent (IANA's registry, from RFC 8158).
mod nat_event {
    pub(super) const BIB_CREATE: u8 = 8;
    pub(super) const BIB_DELETE: u8 = 9;
    pub(super) const PORTS_EXHAUSTED: u8 = 12;
    pub(super) const QUOTA_EXCEEDED: u8 = 13;
    pub(super) const BLOCK_ALLOCATED: u8 = 16;
    pub(super) const BLOCK_FREED: u8 = 17;
}

/// natQuotaExceededEvent: the maximum of entries of one user.
const PER_USER: u32 = 3;

/// Collects events, and makes messages of them.
#[derive(Debug)]
pub struct Exporter {
    domain: u32,
    clock: Clock,
    message_max: usize,
    sequence: u32,
    templates_at: Option<u32>,
    /// Records by template, and where the next one to send starts.
    waiting: [Vec<u8>; 3],
    sent: [usize; 3],
    lost: u64,
}

impl Exporter {
    /// An exporter for this observation domain. A message has at most `message_max` octets, from 256 on: what fits into one
    /// UDP datagram of the path.
    #[must_use]
    pub fn new(domain: u32, clock: Clock, message_max: usize) -> Self {
        Self {
            domain,
            clock,
            message_max: message_max.clamp(256, wire::ipfix::MESSAGE_MAX),
            sequence: 0,
            templates_at: None,
            waiting: Default::default(),
            sent: [0; 3],
            lost: 0,
        }
    }

    /// Uses another relation of the clocks from now on, because the calendar's was set.
    pub fn set_clock(&mut self, clock: Clock) {
        self.clock = clock;
    }

    /// Adds an event.
    pub fn push(&mut self, event: &Event) {
        let (which, record) = self.record(event);
        if self.waiting[which].len() - self.sent[which] >= RECORDS_MAX * record.len() {
            self.lost += 1;
            return;
        }
        self.waiting[which].extend_from_slice(&record);
    }

    /// Events that found no room, because the caller took no messages.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Octets of records that wait. A caller sends when they fill a message, or after a second.
    #[must_use]
    pub fn waiting(&self) -> usize {
        let all = self.waiting.iter().zip(&self.sent);
        all.map(|(records, sent)| records.len() - sent).sum()
    }

    /// Appends the next message to `out`, of records of one kind. `None` if no record waits. `now_s` is in seconds since
    /// 1970.
    pub fn poll_message(&mut self, now_s: u32, out: &mut Vec<u8>) -> Option<()> {
        let waits = |which: &usize| self.waiting[*which].len() > self.sent[*which];
        let which = (0..self.waiting.len()).find(waits)?;
        let (template, fields) = TEMPLATES[which];
        let length: usize = fields.iter().map(|field| usize::from(field.length)).sum();
        let is_due = self.are_templates_due(now_s);
        let mut writer = Writer::new(out, now_s, self.sequence, self.domain);
        if is_due {
            writer.templates(&TEMPLATES);
            self.templates_at = Some(now_s);
        }
        let room = (self.message_max - writer.len() - 4) / length * length;
        let start = self.sent[which];
        let end = self.waiting[which].len().min(start + room);
        writer.data(template, &self.waiting[which][start..end]);
        writer.finish();
        self.sequence = self.sequence.wrapping_add(((end - start) / length) as u32);
        self.sent[which] = end;
        if end == self.waiting[which].len() {
            self.waiting[which].clear();
            self.sent[which] = 0;
        }
        Some(())
    }

    /// Appends a message with the templates alone, if they are due: at the start, and every 10 minutes from then on. A
    /// collector can so read the first records that reach it (RFC 7011 section 8.4).
    pub fn poll_templates(&mut self, now_s: u32, out: &mut Vec<u8>) -> Option<()> {
        if !self.are_templates_due(now_s) {
            return None;
        }
        let mut writer = Writer::new(out, now_s, self.sequence, self.domain);
        writer.templates(&TEMPLATES);
        writer.finish();
        self.templates_at = Some(now_s);
        Some(())
    }

    fn are_templates_due(&self, now_s: u32) -> bool {
        let is_due = |at: u32| now_s.saturating_sub(at) >= TEMPLATES_EVERY;
        self.templates_at.is_none_or(is_due)
    }

    /// Which template, and the record.
    fn record(&self, event: &Event) -> (usize, Vec<u8>) {
        let head = |at, kind: u8, inside: Ipv4Addr| {
            let mut record = self.clock.millis(at).to_be_bytes().to_vec();
            record.push(kind);
            record.extend(inside.octets());
            record
        };
        let binding = |forward: &Forward, at, kind| {
            let mut record = head(at, kind, forward.inside);
            record.extend(forward.external.octets());
            record.push(match forward.protocol {
                Protocol::Tcp => wire::tcp::PROTOCOL,
                Protocol::Udp => wire::udp::PROTOCOL,
                Protocol::Icmp => wire::icmp::PROTOCOL,
            });
            record.extend(forward.inside_port.to_be_bytes());
            record.extend(forward.external_port.to_be_bytes());
            (1, record)
        };
        let (block, at, kind) = match event {
            Event::BlockAllocated(block, at) => (block, *at, nat_event::BLOCK_ALLOCATED),
            Event::BlockFreed(block, at) => (block, *at, nat_event::BLOCK_FREED),
            Event::ForwardAdded(forward, at) => {
                return binding(forward, *at, nat_event::BIB_CREATE);
            }
            Event::ForwardRemoved(forward, at) => {
                return binding(forward, *at, nat_event::BIB_DELETE);
            }
            Event::PoolUsedUp { inside, at, .. } => {
                let mut record = head(*at, nat_event::PORTS_EXHAUSTED, *inside);
                record.extend([0; 4]);
                return (2, record);
            }
            Event::SubscriberLimit {
                inside, at, why, ..
            } => {
                // The address has no port left, which is not a quota.
                let (kind, quota) = match why {
                    Discard::AddressUsedUp => (nat_event::PORTS_EXHAUSTED, 0),
                    _ => (nat_event::QUOTA_EXCEEDED, PER_USER),
                };
                let mut record = head(*at, kind, *inside);
                record.extend(quota.to_be_bytes());
                return (2, record);
            }
        };
        let mut record = head(at, kind, block.inside);
        record.extend(block.external.octets());
        record.extend(block.first.to_be_bytes());
        record.extend(block.last.to_be_bytes());
        (0, record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Block;
    use base::{Duration, Instant};
    use wire::ipfix::{Message, value};

    fn block(n: u32) -> Block {
        Block {
            tag: n.into(),
            inside: (0x6440_0000 + n).into(),
            external: Ipv4Addr::new(192, 0, 2, 1),
            first: 1024,
            last: 1535,
        }
    }

    #[test]
    fn rfc_8158_port_blocks_are_read_back_with_their_elements() {
        let clock = Clock {
            origin_ms: 1_700_000_000_000,
        };
        let mut exporter = Exporter::new(5, clock, 1400);
        let at = Instant::ZERO + Duration::from_millis(1234);
        for n in 0..100 {
            exporter.push(&Event::BlockAllocated(block(n), at));
        }
        exporter.push(&Event::BlockFreed(block(7), at));
        let mut records = 0;
        let mut octets = Vec::new();
        let mut has_templates = Vec::new();
        while exporter.poll_message(1_700_000_001, &mut octets).is_some() {
            assert!(octets.len() <= 1400);
            let (message, rest) = Message::parse(&octets).expect("a message");
            assert!(rest.is_empty());
            assert_eq!((message.domain, message.sequence), (5, records));
            has_templates.push(false);
            for set in message.sets() {
                let set = set.expect("a whole set");
                if set.id == 2 {
                    let all = set.templates().expect("whole templates");
                    assert_eq!(all.len(), 3);
                    *has_templates.last_mut().expect("pushed") = true;
                    continue;
                }
                for record in set.records(&BLOCK) {
                    let get = |element| value(&BLOCK, record, element);
                    let inside = 0x6440_0000 + u64::from(if records == 100 { 7 } else { records });
                    assert_eq!(get(323), Some(1_700_000_001_234));
                    assert_eq!(get(230), Some(if records == 100 { 17 } else { 16 }));
                    assert_eq!(get(8), Some(inside));
                    assert_eq!(get(225), Some(0xc000_0201));
                    assert_eq!((get(361), get(362)), (Some(1024), Some(1535)));
                    records += 1;
                }
            }
            octets.clear();
        }
        assert_eq!(records, 101);
        assert_eq!(
            has_templates,
            [true, false],
            "templates once in ten minutes"
        );
        assert_eq!(exporter.waiting(), 0);
        exporter.push(&Event::BlockFreed(block(7), at));
        let _ = exporter.poll_message(1_700_000_601, &mut octets);
        let (message, _) = Message::parse(&octets).expect("a message");
        assert_eq!(message.sets().count(), 2);
    }

    #[test]
    fn rfc_7011_section_8_4_templates_are_sent_at_the_start_and_again() {
        let mut exporter = Exporter::new(5, Clock { origin_ms: 0 }, 1400);
        let mut octets = Vec::new();
        let mut sent = Vec::new();
        for now_s in [100, 101, 699, 700, 701] {
            octets.clear();
            sent.push(exporter.poll_templates(now_s, &mut octets).is_some());
            if let Ok((message, _)) = Message::parse(&octets) {
                assert_eq!((message.domain, message.sequence), (5, 0));
                assert_eq!(message.sets().count(), 1);
            }
        }
        assert_eq!(sent, [true, false, false, true, false]);
    }

    #[test]
    fn every_event_has_a_record_of_its_template_s_length() {
        let exporter = Exporter::new(0, Clock { origin_ms: 0 }, 1400);
        let forward = Forward {
            protocol: Protocol::Tcp,
            external: Ipv4Addr::LOCALHOST,
            external_port: 80,
            inside: Ipv4Addr::LOCALHOST,
            inside_port: 8080,
            tag: 0,
            until: None,
        };
        let (tag, inside, at) = (1, Ipv4Addr::LOCALHOST, Instant::ZERO);
        let why = Discard::SubscriberBlocks;
        let events = [
            Event::BlockAllocated(block(1), at),
            Event::BlockFreed(block(1), at),
            Event::ForwardAdded(forward, at),
            Event::ForwardRemoved(forward, at),
            Event::PoolUsedUp { tag, inside, at },
            Event::SubscriberLimit {
                tag,
                inside,
                why,
                at,
            },
        ];
        for event in events {
            let (which, record) = exporter.record(&event);
            let fields = TEMPLATES[which].1;
            let length: usize = fields.iter().map(|field| usize::from(field.length)).sum();
            assert_eq!(record.len(), length, "{event:?}");
        }
    }
}
