//! SCCRQs from spoofed addresses: how many answers they draw, and who is still served.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use base::{Datagram, Duration, Instant, Machine, Route};
use l2tp::{Config, Discard, Endpoint, Limits};
use wire::l2tp::{MessageType as M, Version};

use crate::common::{Body, Peer, Stage, US, counter, kinds, lns_config, only, only_ack};

/// An endpoint and the answers that it sent, by address.
struct Flooded {
    lns: Endpoint,
    now: Instant,
    answers: HashMap<IpAddr, u32>,
}

impl Flooded {
    fn new(limits: Limits) -> Self {
        let config = Config {
            limits,
            ..lns_config()
        };
        Self {
            lns: Endpoint::new(config, [3; 32]),
            now: Instant::ZERO + Duration::from_secs(1),
            answers: HashMap::new(),
        }
    }

    fn receive(&mut self, from: IpAddr, bytes: &[u8]) {
        let route = Route {
            peer: SocketAddr::new(from, 1701),
            local: Some(US.ip()),
            socket: 0,
        };
        _ = self.lns.handle(Datagram { route, bytes }, self.now);
        self.drain();
    }

    fn drain(&mut self) {
        let mut out = Vec::new();
        while let Some(route) = self.lns.poll_transmit(self.now, &mut out) {
            *self.answers.entry(route.peer.ip()).or_default() += 1;
            out.clear();
        }
        while self.lns.poll_event().is_some() {}
    }

    /// Advances the clock, and fires every timer on the way.
    fn run_until(&mut self, end: Instant) {
        while let Some((at, _)) = self.lns.poll_timeout().filter(|&(at, _)| at <= end) {
            self.now = self.now.max(at);
            self.lns.handle_timeout(self.now);
            self.drain();
        }
        self.now = end;
    }

    /// `count` requests, each from an address of its own, 100 us apart; then silence.
    fn flood(&mut self, count: u32, request: &[u8]) {
        for n in 0..count {
            self.receive(source(n), request);
            self.run_until(self.now + Duration::from_micros(100));
        }
        self.run_until(self.now + Duration::from_secs(100));
    }

    fn answers(&self) -> u32 {
        self.answers.values().sum()
    }

    fn most(&self) -> u32 {
        self.answers.values().copied().max().unwrap_or(0)
    }
}

fn source(n: u32) -> IpAddr {
    Ipv4Addr::from(0x0a00_0000 + n).into()
}

fn limits(half_open: u32, half_open_flood: u32) -> Limits {
    Limits {
        half_open,
        half_open_flood,
        ..Config::default().limits
    }
}

/// 250,000 requests from spoofed addresses drew 580,000 answers: an SCCRP and five retransmissions each, for as many
/// as there was room for. Now each request draws two at most, with the default limits and at the limit of half-open
/// tunnels.
#[test]
fn a_flood_of_requests_draws_at_most_two_answers_each() {
    const REQUESTS: u32 = 10_000;
    for version in [Version::V2, Version::V3] {
        for limits in [Config::default().limits, limits(2_000, 500)] {
            let mut flooded = Flooded::new(limits);
            let mut lac = Peer::new(version, 9);
            let request = lac.sccrq();
            let request = lac.packet(0, &request);
            flooded.flood(REQUESTS, &request);
            // Those below the threshold at the end get the RFC's retransmissions.
            assert!(flooded.answers() <= 2 * REQUESTS + 6 * limits.half_open_flood);
            let many = flooded.answers.values().filter(|&&n| n > 2).count();
            assert!(many <= limits.half_open_flood as usize, "{many}");
            assert!(counter(&flooded.lns, "half_open_cut_short") > 1_000);
            assert_eq!(flooded.lns.counts(), Default::default());
        }
    }
}

/// A threshold of 0: no request ever draws more than two answers, whether it is accepted or refused.
#[test]
fn a_threshold_of_0_limits_every_request_to_two_answers() {
    for unacceptable in [false, true] {
        let mut flooded = Flooded::new(limits(1_000, 0));
        let mut lac = Peer::v2();
        let mut request = lac.sccrq();
        if unacceptable {
            request = request.raw(0x80, 0, 9_999, b"");
        }
        let request = lac.packet(0, &request);
        flooded.flood(100, &request);
        assert_eq!((flooded.answers(), flooded.most()), (200, 2));
        assert_eq!(counter(&flooded.lns, "half_open_cut_short"), 100);
    }
}

/// Repeating a spoofed request draws nothing more. Below the threshold each duplicate is answered.
#[test]
fn repeated_requests_draw_no_further_answers_in_a_flood() {
    for (flood, answers) in [(0, 2), (1, 6)] {
        let mut flooded = Flooded::new(limits(1_000, flood));
        let mut lac = Peer::v2();
        let request = lac.sccrq();
        let request = lac.packet(0, &request);
        for _ in 0..6 {
            flooded.receive(source(1), &request);
        }
        assert_eq!(flooded.answers(), answers);
        let unanswered = counter(&flooded.lns, "duplicates_unanswered");
        assert_eq!(unanswered, u64::from(6 - answers));
    }
}

/// A genuine peer needs one round trip, and during a flood as well. If both SCCRPs to it were lost, it repeats its
/// SCCRQ and is served again.
#[test]
fn a_genuine_peer_is_served_during_a_flood() {
    let mut stage = Stage::new(Config {
        limits: limits(64, 8),
        ..lns_config()
    });
    let flood = |stage: &mut Stage, start: u32| {
        let mut spoofed = Peer::v2();
        let request = spoofed.sccrq();
        let request = spoofed.packet(0, &request);
        for n in start..start + 40 {
            stage.send_from(SocketAddr::new(source(n), 1701), &request);
        }
    };
    flood(&mut stage, 0);
    let mut lac = Peer::v3();
    lac.connect(&mut stage);
    let mut unlucky = Peer::v2();
    let request = unlucky.sccrq();
    let request = unlucky.packet(0, &request);
    stage.send(&request);
    assert_eq!(kinds(&stage.hear()), [Some(M::Sccrp)]);
    flood(&mut stage, 100);
    stage.run_secs(2);
    assert_eq!(kinds(&stage.hear()), [Some(M::Sccrp)]);
    stage.run_secs(2);
    assert!(stage.hear().is_empty());
    stage.send(&request);
    let got = unlucky.hear(&mut stage);
    unlucky.take_sccrp(&only(&got, M::Sccrp));
    let scccn = Body::new(M::Scccn);
    only_ack(&unlucky.say(&mut stage, &scccn));
    assert_eq!(stage.counts().established, 2);
}

/// One source cannot fill the table: above its limit its requests are ignored until one of its tunnels is settled.
#[test]
fn half_open_tunnels_of_one_source_have_a_limit() {
    let mut stage = Stage::new(Config {
        limits: Limits {
            half_open_per_source: 3,
            ..Config::default().limits
        },
        ..lns_config()
    });
    let request = |id: u32| {
        let mut lac = Peer::new(Version::V2, id);
        let body = lac.sccrq();
        (lac.packet(0, &body), lac)
    };
    let mut first = request(1);
    for id in 1..=3 {
        stage.send(&request(id).0);
    }
    let sccrp = stage.hear().into_iter().find(|got| got.connection == 1);
    stage.send(&request(4).0);
    assert!(stage.hear().is_empty());
    assert_eq!(stage.discarded(Discard::HalfOpenPerSource), 1);
    assert_eq!(stage.counter("discard_half_open_per_source"), 1);
    // Another source is served; a port is not another source.
    let peer = |ip: &str, port| SocketAddr::new(ip.parse().expect("an address"), port);
    stage.send_from(peer("198.51.100.9", 1701), &request(4).0);
    assert_eq!(stage.counts().half_open, 4);
    stage.send_from(peer("192.0.2.1", 999), &request(4).0);
    assert_eq!(stage.discarded(Discard::HalfOpenPerSource), 2);
    // A peer that restarts replaces its own half-open tunnel.
    let lac = Peer::new(Version::V2, 2);
    let restarted = lac.sccrq().avp(wire::l2tp::Attribute::VendorName, b"2");
    stage.send(&lac.clone().packet(0, &restarted));
    only(&stage.hear(), M::Sccrp);
    // An established tunnel makes room.
    first.1.take_sccrp(&sccrp.expect("an SCCRP to the first"));
    first.1.nr = 1;
    stage.send(&first.1.clone().packet(0, &Body::new(M::Scccn)));
    only_ack(&stage.hear());
    stage.send(&request(4).0);
    only(&stage.hear(), M::Sccrp);
    // A source at its limit makes room after one retransmission, whatever the number of half-open tunnels is.
    stage.run_secs(1);
    assert_eq!(stage.hear().len(), 3);
    stage.run_secs(3);
    assert_eq!(stage.counter("half_open_cut_short"), 1);
}

/// An IPv6 host can send from any address of its /64.
#[test]
fn the_addresses_of_an_ipv6_network_are_one_source() {
    let mut flooded = Flooded::new(Limits {
        half_open_per_source: 2,
        ..Config::default().limits
    });
    for (n, from) in [
        "2001:db8::1",
        "2001:db8::2",
        "2001:db8::3",
        "2001:db8:0:1::1",
    ]
    .iter()
    .enumerate()
    {
        let mut lac = Peer::new(Version::V3, 1 + n as u32);
        let request = lac.sccrq();
        let request = lac.packet(0, &request);
        flooded.receive(from.parse().expect("an address"), &request);
    }
    assert_eq!(flooded.answers(), 3);
    assert_eq!(counter(&flooded.lns, "discard_half_open_per_source"), 1);
}
