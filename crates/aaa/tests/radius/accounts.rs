//! Accounting records and their delivery to a server.

use std::collections::{BTreeMap, HashSet};

use aaa::accounting::{
    Authentic, Delivery, DeliveryConfig, DeliveryEvent, QueueUsage, Record, Report, SessionId,
    Subscriber, TerminateCause, Usage,
};
use aaa::radius::{Event, Line, Refused, Tunnel};
use base::Duration;
use wire::radius::attribute as a;
use wire::radius::{Attributes, Packet};

use crate::lab::{How, Lab, config, nas};

const AT_S: u64 = 1_700_000_000;

fn subscriber(class: &[Box<[u8]>]) -> Subscriber<'_> {
    Subscriber {
        user: b"alice",
        line: Line {
            port: 4,
            tunnel: Some(Tunnel {
                client: Some([192, 0, 2, 9].into()),
                server: [192, 0, 2, 1].into(),
                client_name: b"lac",
                server_name: b"lns",
                assignment: b"",
                call: 4_000_000_000,
            }),
            ..Line::default()
        },
        class,
        address: Some([203, 0, 113, 9].into()),
        interface_id: Some([1; 8]),
        ipv6: aaa::accounting::Ipv6Leases {
            prefix: aaa::Prefix::new("2001:db8:0:7::".parse().unwrap(), 64),
            delegated: aaa::Prefix::new("2001:db8:4::".parse().unwrap(), 47),
            address: aaa::Prefix::new("2001:db8::9".parse().unwrap(), 128),
        },
        authentic: Authentic::Radius,
    }
}

fn record(number: u64, report: Report<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    let nas = nas();
    let record = Record {
        nas: &nas,
        session: SessionId { boot: 1, number },
        at_s: AT_S,
        report,
    };
    record.encode(&mut out).unwrap();
    out
}

fn value(record: &[u8], kind: u8) -> Option<&[u8]> {
    let mut attributes = Attributes::parse(record).unwrap();
    attributes
        .find(|attribute| attribute.kind == kind)
        .map(|attribute| attribute.value)
}

#[test]
fn the_record_of_an_end_has_all_that_was_used_and_why_it_ended() {
    let class = [b"one".as_slice().into(), b"two".as_slice().into()];
    let usage = Usage {
        time_s: 3_600,
        input_octets: 5,
        output_octets: 3 << 32 | 7,
        input_packets: 1,
        output_packets: 1 << 33,
        queue: Some(QueueUsage {
            vendor: 32_473,
            dropped: [5, 1 << 33],
            marked: [0, 7],
        }),
    };
    let cause = TerminateCause::IdleTimeout;
    let stop = record(2, Report::Stop(subscriber(&class), usage, cause));
    let is = |kind, expected: &[u8]| assert_eq!(value(&stop, kind), Some(expected), "{kind}");
    is(a::ACCT_STATUS_TYPE, &[0, 0, 0, 2]);
    is(a::EVENT_TIMESTAMP, &(AT_S as u32).to_be_bytes());
    is(a::USER_NAME, b"alice");
    is(a::NAS_IDENTIFIER, b"edge");
    is(a::ACCT_SESSION_ID, b"000000010000000002");
    is(a::FRAMED_IP_ADDRESS, &[203, 0, 113, 9]);
    is(a::FRAMED_INTERFACE_ID, &[1; 8]);
    is(
        a::FRAMED_IPV6_PREFIX,
        &[0, 64, 0x20, 1, 0x0d, 0xb8, 0, 0, 0, 7],
    );
    is(
        a::DELEGATED_IPV6_PREFIX,
        &[0, 47, 0x20, 1, 0x0d, 0xb8, 0, 4],
    );
    is(
        a::FRAMED_IPV6_ADDRESS,
        &[0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9],
    );
    is(a::ACCT_SESSION_TIME, &[0, 0, 14, 16]);
    is(a::ACCT_INPUT_OCTETS, &[0, 0, 0, 5]);
    is(a::ACCT_OUTPUT_OCTETS, &[0, 0, 0, 7]);
    is(a::ACCT_OUTPUT_GIGAWORDS, &[0, 0, 0, 3]);
    is(a::ACCT_OUTPUT_PACKETS, &[255; 4]);
    is(a::ACCT_TERMINATE_CAUSE, &[0, 0, 0, 4]);
    is(a::ACCT_AUTHENTIC, &[0, 0, 0, 1]);
    is(a::ACCT_TUNNEL_CONNECTION, b"4000000000");
    let queues = [
        0, 0, 0x7e, 0xd9, 16, 6, 0, 0, 0, 5, 17, 6, 255, 255, 255, 255, 18, 6, 0, 0, 0, 0, 19, 6,
        0, 0, 0, 7,
    ];
    is(a::VENDOR_SPECIFIC, &queues);
    assert_eq!(value(&stop, a::ACCT_INPUT_GIGAWORDS), None);
    let attributes = Attributes::parse(&stop).unwrap();
    let classes = attributes.filter(|attribute| attribute.kind == a::CLASS);
    let classes: Vec<&[u8]> = classes.map(|attribute| attribute.value).collect();
    assert_eq!(classes, [b"one", b"two"]);

    let on = record(1, Report::On);
    assert_eq!(value(&on, a::ACCT_STATUS_TYPE), Some(&[0, 0, 0, 7][..]));
    assert_eq!(value(&on, a::USER_NAME), None);
    let start = record(1, Report::Start(subscriber(&[])));
    assert_eq!(value(&start, a::ACCT_SESSION_TIME), None);
}

#[test]
fn the_longest_record_has_room_in_a_packet() {
    let long = [b'x'; 253];
    let mut nas = nas();
    nas.identifier = Some("n".repeat(253).into());
    nas.address = Some("2001:db8::1".parse().unwrap());
    let class: Vec<Box<[u8]>> = vec![[7; 248].into(); 6];
    let address: std::net::IpAddr = "2001:db8:1111:2222:3333:4444:5555:6666".parse().unwrap();
    // Both identifiers and every number of RFC 4679.
    let mut access = Vec::new();
    for kind in [1, 2] {
        access.extend([kind, 63]);
        access.extend([b'x'; 63]);
    }
    for kind in 0x81..=0x8e {
        access.extend([kind, 4, 0, 0, 0, 9]);
    }
    access.extend([0x90, 3, 1, 2, 3, 0xfe, 0]);
    let line = Line {
        port: 1,
        port_id: core::str::from_utf8(&long).unwrap(),
        calling: &long,
        called: &long,
        access: &access,
        kind: aaa::radius::PortType::default(),
        tunnel: Some(Tunnel {
            client: Some(address),
            server: address,
            client_name: &long,
            server_name: &long,
            assignment: b"",
            call: u32::MAX,
        }),
    };
    let subscriber = Subscriber {
        user: &long,
        line,
        class: &class,
        ..subscriber(&[])
    };
    let usage = Usage {
        input_octets: u64::MAX,
        output_octets: u64::MAX,
        queue: Some(QueueUsage::default()),
        ..Usage::default()
    };
    let report = Report::Stop(subscriber, usage, TerminateCause::NasReboot);
    let record = Record {
        nas: &nas,
        session: SessionId::default(),
        at_s: AT_S,
        report,
    };
    let mut out = Vec::new();
    record.encode(&mut out).unwrap();
    let mut lab = Lab::new(config(1), &[How::Accept], 1);
    lab.client.account(lab.now, AT_S, &out, 1).unwrap();
    lab.run_for(1);
    assert_eq!(lab.ends()[&1], Event::Recorded { token: 1 });
}

#[test]
fn a_repeated_record_is_the_same_and_one_with_a_delay_has_a_new_identifier() {
    for acct_delay_time in [false, true] {
        let mut config = config(1);
        config.acct_delay_time = acct_delay_time;
        let mut lab = Lab::new(config, &[How::Silent], 1);
        let start = record(1, Report::Start(subscriber(&[])));
        lab.client.account(lab.now, AT_S + 100, &start, 1).unwrap();
        lab.run_for(5);
        let got = &lab.servers[0].got;
        let packets: Vec<_> = got
            .iter()
            .map(|octets| Packet::parse(octets).unwrap())
            .collect();
        let delays: Vec<Option<u32>> = packets
            .iter()
            .map(|packet| packet.find(a::ACCT_DELAY_TIME)?.integer())
            .collect();
        if acct_delay_time {
            assert_ne!(packets[0].identifier(), packets[1].identifier());
            assert_eq!(delays[0], Some(100));
            assert!(delays[1] >= Some(101), "{delays:?}");
        } else {
            assert_eq!(got[0], got[1]);
            assert_eq!(delays, [None, None]);
        }
        lab.servers[0].how = How::Accept;
        lab.run_for(60);
        assert_eq!(lab.ends()[&1], Event::Recorded { token: 1 });
        lab.assert_idle();
    }
}

#[test]
fn octets_that_are_no_record_are_refused() {
    let mut lab = Lab::new(config(1), &[How::Accept], 1);
    let cut = lab.client.account(lab.now, 0, &[40, 6, 0], 1);
    assert!(matches!(cut, Err(Refused::Malformed(_))));
    let long = [[25; 25].as_slice(); 163].concat();
    let long = lab.client.account(lab.now, 0, &long, 1);
    assert_eq!(long, Err(Refused::TooLong));
}

/// A delivery, a client and a simulated disk.
struct Edge {
    lab: Lab,
    delivery: Delivery,
    /// Records on disk, by token.
    disk: BTreeMap<u64, Vec<u8>>,
    given_up: Vec<u64>,
    events_seen: usize,
    sent: Vec<u64>,
}

impl Edge {
    fn new(config: DeliveryConfig, how: How, seed: u64) -> Self {
        Self {
            lab: Lab::new(crate::lab::config(1), &[how], seed),
            delivery: Delivery::new(config),
            disk: BTreeMap::new(),
            given_up: Vec::new(),
            events_seen: 0,
            sent: Vec::new(),
        }
    }

    fn run_for(&mut self, seconds: u64) {
        let end = self.lab.now + Duration::from_secs(seconds);
        while self.lab.now < end {
            self.delivery.handle_timeout(self.lab.now);
            for (&token, record) in &self.disk {
                if self.delivery.push(token, record).is_err() {
                    break;
                }
            }
            while let Some(outgoing) = self.delivery.poll_send(self.lab.now) {
                let token = outgoing.token;
                self.sent.push(token);
                let client = &mut self.lab.client;
                let taken = client.account(self.lab.now, AT_S, outgoing.record, token);
                if taken.is_err() {
                    self.delivery.failed(token, self.lab.now);
                }
            }
            let next = self.lab.now + Duration::from_millis(100);
            self.lab.run_until(next);
            for (_, event) in &self.lab.events[self.events_seen..] {
                match event {
                    Event::Recorded { token } => self.delivery.recorded(*token),
                    Event::RecordFailed { token, .. } => {
                        self.delivery.failed(*token, self.lab.now);
                    }
                    _ => {}
                }
            }
            self.events_seen = self.lab.events.len();
            while let Some(event) = self.delivery.poll_event() {
                match event {
                    DeliveryEvent::Delivered { token } => {
                        self.disk.remove(&token).expect("delivered twice");
                    }
                    DeliveryEvent::GivenUp { token } => {
                        self.disk.remove(&token).expect("ended twice");
                        self.given_up.push(token);
                    }
                }
            }
        }
    }
}

/// Adds sessions with a Start, an Interim-Update and a Stop each; the token encodes which.
fn fill(edge: &mut Edge, sessions: u64) {
    for number in 0..sessions {
        let usage = Usage::default();
        let who = subscriber(&[]);
        let cause = TerminateCause::UserRequest;
        for (n, report) in [
            Report::Start(who),
            Report::Interim(who, usage),
            Report::Stop(who, usage, cause),
        ]
        .into_iter()
        .enumerate()
        {
            edge.disk
                .insert(number * 3 + n as u64, record(number, report));
        }
    }
}

#[test]
fn every_record_arrives_in_its_session_s_order_when_the_server_comes_back() {
    sim::seeds(20, |seed| {
        let config = DeliveryConfig {
            window: 16,
            held_max: 50,
            ..DeliveryConfig::default()
        };
        let mut edge = Edge::new(config, How::Silent, seed);
        fill(&mut edge, 60);
        edge.run_for(100);
        assert_eq!(edge.disk.len(), 180);
        // While no record is accepted, one is tried at intervals.
        let tried: HashSet<_> = edge.lab.servers[0].got.iter().collect();
        assert!(tried.len() <= 16 + 7, "{} records tried", tried.len());
        edge.lab.servers[0].how = How::Lossy;
        edge.run_for(400);
        edge.lab.servers[0].how = How::Accept;
        edge.run_for(300);
        assert!(edge.disk.is_empty(), "{} are left", edge.disk.len());
        assert_eq!(edge.given_up, [0_u64; 0]);
        let totals = edge.delivery.totals();
        assert_eq!(
            (totals.held, totals.in_flight, totals.delivered),
            (0, 0, 180)
        );
        let mut seen: BTreeMap<u64, u64> = BTreeMap::new();
        for &token in &edge.sent {
            let latest = seen.entry(token / 3).or_insert(token);
            assert!(token >= *latest, "{token} was sent after {latest}");
            *latest = token;
        }
    });
}

#[test]
fn a_record_that_no_server_wants_is_given_up_and_holds_up_nobody() {
    let config = DeliveryConfig {
        window: 2,
        held_max: 8,
        ..DeliveryConfig::default()
    };
    let mut delivery = Delivery::new(config);
    let mut now = base::Instant::ZERO;
    let records: Vec<Vec<u8>> = (0..100).map(|number| record(number, Report::On)).collect();
    let mut next = 0;
    let mut ends = Vec::new();
    while now < base::Instant::from_nanos(600_000_000_000) {
        delivery.handle_timeout(now);
        while next < 100 && delivery.push(next, &records[next as usize]).is_ok() {
            next += 1;
        }
        while let Some(token) = delivery.poll_send(now).map(|outgoing| outgoing.token) {
            match token {
                0 => delivery.failed(token, now),
                _ => delivery.recorded(token),
            }
        }
        while let Some(event) = delivery.poll_event() {
            ends.push(event);
        }
        now += Duration::from_secs(1);
    }
    let delivered = ends
        .iter()
        .filter(|end| matches!(end, DeliveryEvent::Delivered { .. }));
    assert_eq!(delivered.count(), 99);
    assert_eq!(
        delivery.totals().refused > 0,
        delivery.want_more() == 0 || next == 100
    );
}

#[test]
fn a_record_that_fails_again_and_again_beside_others_that_do_not_is_given_up() {
    let mut delivery = Delivery::new(DeliveryConfig::default());
    let mut now = base::Instant::ZERO;
    delivery.push(0, &record(0, Report::On)).unwrap();
    delivery.push(1_000, &record(0, Report::Off)).unwrap();
    let mut given_up = false;
    for token in 1..100 {
        delivery.push(token, &record(token, Report::On)).unwrap();
        let mut sent = Vec::new();
        while let Some(outgoing) = delivery.poll_send(now) {
            sent.push(outgoing.token);
        }
        assert!(
            given_up || !sent.contains(&1_000),
            "it is behind one that is not done"
        );
        for &token in sent.iter().rev() {
            match token {
                0 => delivery.failed(token, now),
                _ => delivery.recorded(token),
            }
        }
        while let Some(event) = delivery.poll_event() {
            given_up |= event == DeliveryEvent::GivenUp { token: 0 };
        }
        now += Duration::from_secs(10);
        delivery.handle_timeout(now);
    }
    assert!(given_up);
    assert_eq!(delivery.totals().held, 0);
}
